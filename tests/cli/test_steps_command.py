"""`tracehouse steps`, on a trace's file and on a warehouse."""

from __future__ import annotations

import csv
import io
import json

import pytest


@pytest.fixture(scope="module")
def serving(repo_root):
    return repo_root / "data/samples/serving.json.gz"


@pytest.fixture(scope="module")
def served(tracehouse, serving, repo_root, tmp_path_factory):
    out = tmp_path_factory.mktemp("served") / "out"
    training = repo_root / "data/samples/training.json.gz"
    result = tracehouse("analyze", serving, training, "-o", out, "--workers", "1")
    assert result.returncode == 0, result.stderr
    return out


def test_a_trace_for_people(tracehouse, serving):
    result = tracehouse("steps", serving, "--limit", "2")
    assert result.returncode == 0, result.stderr
    words = [line.split() for line in result.stdout.splitlines()]
    assert words[1] == ["20", "steps,", "written", "by", "vllm"]
    assert ["3–15", "mixed", "found", "13", "8"] in words
    assert words[-1][:4] == ["1", "mixed", "4", "1,026"]
    assert "2 of 20 steps shown" in result.stderr


def test_a_warehouse_and_a_file_say_the_same(tracehouse, serving, served):
    for table in ("steps", "step_summary", "steady_state"):
        options = ("--table", table, "--format", "json")
        from_file = json.loads(tracehouse("steps", serving, *options).stdout)
        stored = json.loads(tracehouse("steps", served, "--trace", serving.name, *options).stdout)
        assert stored == from_file


def test_every_trace_of_a_warehouse(tracehouse, served):
    result = tracehouse("steps", served, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["phase"] for row in rows].count("training") == 2
    assert len(rows) == 22


def test_the_parameters_of_the_benchmark(tracehouse, serving, served):
    options = ("--conc", "8", "--osl", "8", "--r", "0.5", "--table", "steady_state")
    for path in (serving, served):
        result = tracehouse("steps", path, *options, "--format", "json")
        kinds = [row["kind"] for row in json.loads(result.stdout) if row["rule"] == "analytic"]
        assert kinds == ["ramp_up", "completion", "completion", "completion", "completion", "mixed"]


def test_a_users_pattern(tracehouse, tmp_path):
    note = {"ph": "X", "cat": "user_annotation", "name": "iter 3 of 7", "pid": 1, "tid": 1}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"traceEvents": [{**note, "ts": 1, "dur": 9}]}), encoding="utf-8")
    result = tracehouse("steps", path)
    assert result.returncode == 0
    assert "--step-pattern" in result.stderr
    pattern = r"iter (?P<iteration>\d+) of (?P<r>\d+)"
    result = tracehouse("steps", path, "--step-pattern", pattern, "--format", "json")
    (step,) = json.loads(result.stdout)
    assert (step["framework"], step["r"]) == ("user", 7)
    out = tmp_path / "out"
    result = tracehouse("analyze", path, "-o", out, "--step-pattern", pattern)
    assert result.returncode == 0, result.stderr
    result = tracehouse("sql", out, "SELECT r FROM steps", "--format", "json")
    assert json.loads(result.stdout) == [{"r": 7}]
    result = tracehouse("analyze", path, "-o", out)  # other settings: it is read again
    result = tracehouse("sql", out, "SELECT r FROM steps", "--format", "json")
    assert json.loads(result.stdout) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--step-pattern", "("), "no regular expression"),
        (("--conc", "8"), "all of --conc, --osl and --r"),
        (("--num-prompts", "8"), "all of --conc, --osl and --r"),
        (("--conc", "0", "--osl", "8", "--r", "1"), "CONC must be from 1"),
        (("--trace", "x"), "--trace is for a warehouse"),
    ],
)
def test_usage_errors(tracehouse, serving, options, words):
    result = tracehouse("steps", serving, *options)
    assert result.returncode == 2
    assert words in result.stderr


def test_a_pattern_is_of_no_use_for_a_warehouse(tracehouse, served):
    result = tracehouse("steps", served, "--step-pattern", "x")
    assert result.returncode == 2
    assert "analyze" in result.stderr
