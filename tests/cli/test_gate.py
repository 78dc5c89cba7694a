"""`gate` as a pipeline runs it, on the nightly runs of data/nightly.py."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from commandline import run as invoke

from tracehouse.cli import gate_words as words
from tracehouse.commands.gate import GateOptions
from tracehouse.commands.gate import gate as judge

DOWN = "aten::mm [[4096, 8192], [8192, 2048]] ['c10::BFloat16', 'c10::BFloat16']"


@pytest.fixture(scope="module")
def nightly(repo_root, tmp_path_factory):
    """Write the archive of the tutorial: two jobs of 40 nights, one slower on the last."""
    folder = tmp_path_factory.mktemp("nightly")
    command = [sys.executable, repo_root / "data/nightly.py", folder]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def out(nightly, tmp_path_factory):
    """Analyse it, with a job of three nights and one whose last file is no trace."""
    folder = tmp_path_factory.mktemp("extra")
    for job, nights in (("young", 3), ("broken", 8), ("cut", 8)):
        (folder / job).mkdir()
        for path in sorted((nightly / "steady").iterdir())[-nights:]:
            # Under another traceName: two files of one content are one trace.
            text = gzip.decompress(path.read_bytes()).decode().replace("steady-", f"{job}-")
            (folder / job / path.name.removesuffix(".gz")).write_text(text, encoding="utf-8")
    last = folder / "broken" / "night-40.json"
    last.write_text('{"a": 1}', encoding="utf-8")
    cut = folder / "cut" / "night-40.json"
    cut.write_text(cut.read_text("utf-8")[:-2000], encoding="utf-8")
    out = tmp_path_factory.mktemp("warehouse") / "out"
    result = invoke("analyze", nightly, folder, "-o", out, "--workers", "1")
    assert result.returncode == 1, "one file is rejected"
    return out


def test_a_clean_archive_passes(out):
    result = invoke("gate", out, "--label", "steady", "--against", "last:20")
    assert result.returncode == 0
    assert result.stdout.startswith("PASSED steady: of 19 numbers none is 5 % slower")
    assert "night-40.json.gz (recorded 2026-07-07 20:26:40)" in result.stdout
    assert result.stderr == ""


def test_a_planted_slowdown_is_found_with_its_op_shape_and_kernel(out):
    result = invoke("gate", out, "--label", "slower", "--against", "last:20")
    assert result.returncode == 1
    assert result.stdout.startswith("FAILED slower: of 18 numbers 1 is 5 % slower")
    assert f"op_ns {DOWN}" in result.stdout
    assert "new kernel nvjet_tst_128x64_64x7_1x1_v_bz_coopA_NNT" in result.stdout
    assert "no more kernel nvjet_tst_192x128_64x4_1x2_v_bz_coopA_NNT" in result.stdout


def test_json_has_the_numbers_of_the_view(out):
    result = invoke("gate", out, "--label", "slower", "--format", "json")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert (report["outcome"], report["reason"], len(report["runs"])) == ("failed", None, 21)
    (slower,) = report["regressions"]
    assert (slower["subject"], slower["metric"]) == (DOWN, "op_ns")
    query = (
        "SELECT value, baseline, z FROM regressions WHERE label = 'slower' "
        f"AND metric = 'op_ns' AND subject = $${DOWN}$$"
    )
    (row,) = json.loads(invoke("sql", out, query, "--format", "json").stdout)
    assert {name: slower[name] for name in row} == row
    assert 7 < slower["change_pct"] < 10
    gained = {r["metric"]: r["change"] for r in report["rows"] if r["subject"] == "(all)"}
    assert slower["explained_pct"] == pytest.approx(100 * slower["change"] / gained["busy_ns"])
    assert sum(k["value"] or 0 for k in slower["kernels"]) == slower["value"]
    assert sum(k["baseline"] or 0 for k in slower["kernels"]) == slower["baseline"]


def test_junit_parses(out):
    result = invoke("gate", out, "--label", "slower", "--format", "junit")
    suite = ElementTree.fromstring(result.stdout)
    assert (suite.tag, suite.get("failures"), suite.get("errors")) == ("testsuite", "1", "0")
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases))
    (failed,) = [case for case in cases if case.find("failure") is not None]
    assert (failed.get("classname"), failed.get("name")) == ("op_ns", DOWN)
    assert "nvjet_tst_128x64_64x7_1x1_v_bz_coopA_NNT" in failed.findtext("failure", "")
    assert (
        suite.get("skipped") == str(sum(case.find("skipped") is not None for case in cases)) == "2"
    )


def test_junit_of_no_verdict_is_an_error(out):
    result = invoke("gate", out, "--label", "broken", "--format", "junit")
    assert result.returncode == 2
    suite = ElementTree.fromstring(result.stdout)
    assert suite.get("errors") == "1"
    assert "night-40.json" in suite.find("testcase/error").get("message")


def test_markdown_is_short(out):
    result = invoke("gate", out, "--label", "slower", "--format", "md")
    lines = result.stdout.splitlines()
    assert lines[0] == "### tracehouse gate: failed"
    (row,) = [line for line in lines if line.startswith("| op")]
    assert r"aten::mm \[\[4096, 8192\], \[8192, 2048\]\]" in row
    assert len(lines) < 15


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("young", "2 runs of last:20 can be compared with the newest, 5 are needed"),
        ("broken", "rejected: not a trace"),
        ("cut", "partial: text or compressed stream ends early"),
    ],
)
def test_too_little_to_judge_is_not_passed(out, label, words):
    result = invoke("gate", out, "--label", label)
    assert result.returncode == 2
    assert result.stdout.startswith(f"UNDECIDED {label}: ")
    assert words in result.stdout


def test_fewer_runs_can_be_asked_for(out):
    assert invoke("gate", out, "--label", "young", "--min-runs", "2").returncode == 0


def test_an_old_newest_run_is_a_missing_one(out):
    result = invoke("gate", out, "--label", "steady", "--max-age", "1h")
    assert (result.returncode, "the newest run is missing" in result.stdout) == (2, True)
    assert invoke("gate", out, "--label", "steady", "--max-age", "36500d").returncode == 0


@pytest.mark.parametrize("against", ["label:steady", "steady"])
def test_against_another_label(out, against):
    result = invoke("gate", out, "--label", "slower", "--against", against)
    assert result.returncode == 1
    assert DOWN in result.stdout
    assert "steady/night-40.json.gz" in result.stdout


def test_against_one_trace_the_noise_is_assumed(out, nightly):
    before = nightly / "slower" / "night-39.json.gz"
    result = invoke("gate", out, "--label", "slower", "--against", f"trace:{before}")
    assert result.returncode == 1
    assert "one run tells no noise, 1 % is assumed" in result.stdout
    assert DOWN in result.stdout


def test_the_limit_and_the_metrics_can_be_chosen(out):
    assert invoke("gate", out, "--label", "slower", "--max-slowdown", "12%").returncode == 0
    assert invoke("gate", out, "--label", "slower", "--metric", "busy_ns").returncode == 0
    chosen = invoke("gate", out, "--label", "slower", "--metric", "op_call_ns", "--format", "json")
    assert {row["metric"] for row in json.loads(chosen.stdout)["rows"]} == {"op_call_ns"}
    assert chosen.returncode == 1
    none = invoke("gate", out, "--label", "slower", "--metric", "tokens_per_s")
    assert (none.returncode, "no number could be judged" in none.stdout) == (2, True)


def test_a_median_of_three_nights_needs_more_than_one_slow_night(out):
    result = invoke("gate", out, "--label", "slower", "--newest", "3", "--format", "json")
    assert result.returncode == 0
    sides = [run["side"] for run in json.loads(result.stdout)["runs"]]
    assert (sides.count("newest"), sides.count("baseline")) == (3, 20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "nope"], "There is no label 'nope'"),
        ([], "The warehouse has 5 labels: say which"),
        (["--label", "steady", "--against", "last:0"], "'last:0' names no runs"),
        (["--label", "steady", "--against", "label:nope"], "There is no label 'nope'"),
        (["--label", "steady", "--against", "nope"], "'nope' is no label, and no trace starts"),
        (["--label", "steady", "--against", "trace:night"], "runs have traces that start with"),
        (["--label", "steady", "--metric", "speed"], "There is no metric 'speed'"),
        (["--label", "steady", "--max-slowdown", "much"], "is no percentage"),
        (["--label", "steady", "--max-slowdown", "-1"], "is no percentage"),
        (["--label", "steady", "--max-slowdown", "nan"], "is no percentage"),
        (["--label", "steady", "--max-age", "soon"], "is no length of time"),
        (["--label", "steady", "--newest", "0"], "0 is not in the range"),
    ],
)
def test_usage_errors(out, arguments, words):
    result = invoke("gate", out, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr


def test_hostile_names_are_text_in_every_format(out):
    """A name of a trace is shown, and neither run, nor markup, nor a broken file."""
    name = "<script>|`x`\x1b[31m]]>&\ufffe\n# head"
    report = judge(out, "slower", "last:20", GateOptions())
    (row,) = report.regressions
    report = replace(
        report,
        rows=[row | {"subject": name}],
        op_kernels={name: [{"subject": name, "kernel": name, "value": 1.0, "baseline": None}]},
    )
    assert json.loads(words.as_json(report))["regressions"][0]["subject"] == name
    suite = ElementTree.fromstring(words.junit(report))
    shown = "<script>|`x`\\x1b[31m]]>&\\ufffe\\n# head"
    assert suite.find("testcase").get("name") == shown
    assert shown in suite.findtext("testcase/failure")
    assert "\x1b" not in words.text(report)
    (line,) = [line for line in words.markdown(report).splitlines() if "script" in line]
    assert r"\<script\>\|\`x\`" in line


def test_no_warehouse(tmp_path):
    result = invoke("gate", tmp_path, "--label", "x")
    assert (result.returncode, "holds no warehouse" in result.stderr) == (2, True)
