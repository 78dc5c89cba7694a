"""`tracehouse split` as a user runs it, on the generated serving run (table in data/README.md).

One run has a process of its own; the others share this one, which is cheaper.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile

import pytest
import zstandard
from commandline import run

MIXED = "mixed_steady_state_prefill_0_prefilldecode_5_decode_8_bs243_conc8_serving.json.gz"
DECODE = "decode_only_steady_state_prefill_0_prefilldecode_0_decode_3_bs8_conc8_serving.json.gz"
PREFILL = (
    "prefilldecode_steady_state_prefill_0_prefilldecode_2_decode_0_bs519_conc8_serving.json.gz"
)


@pytest.fixture(scope="module")
def serving(repo_root):
    return repo_root / "data/samples/serving.json.gz"


@pytest.fixture(scope="module")
def windows(tracehouse, serving, tmp_path_factory):
    out = tmp_path_factory.mktemp("split") / "windows"
    result = tracehouse("split", serving, "-o", out, "--format", "json")
    assert result.returncode == 0, result.stderr
    return out, result


def document(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def test_the_windows_of_the_sample(windows):
    # steady from 3 to 15, prefill in 3, 7, 10, 11 and 14; tokens 1030, 4·519 and 8·8 for 13 steps;
    # 11 activities a step; 625 µs busy with prefill, 225 without
    out, result = windows
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [MIXED, DECODE, PREFILL, "execution_details.csv", "execution_details.json"]
    )
    rows = json.loads(result.stdout)
    assert [(r["window"], r["first_step"], r["last_step"], r["num_steps"]) for r in rows] == [
        ("mixed", 3, 15, 13),
        ("decode_only", 4, 6, 3),
        ("prefilldecode", 10, 11, 2),
    ]
    assert [r["num_gpu_events"] for r in rows] == [143, 33, 22]
    assert [r["gpu_busy_duration"] for r in rows] == [5 * 625 + 8 * 225, 3 * 225, 2 * 625]
    assert rows[0]["reference_share"] == rows[0]["prefill_share"] == 5 / 13
    # a decode step: annotation and mirror, 3 ops, 4 launches and a wait, 11 activities, 4 arrows
    # that start and 11 that end; 11 events of metadata
    assert rows[1]["event_count"] == 3 * (2 + 3 + 5 + 11 + 15) + 11


def test_the_details(windows):
    out, _ = windows
    details = json.loads((out / "execution_details.json").read_text())
    rows = list(csv.DictReader(io.StringIO((out / "execution_details.csv").read_text())))
    assert [d["output_path"] for d in details] == [MIXED, DECODE, PREFILL]
    assert [r["output_path"] for r in rows] == [MIXED, DECODE, PREFILL]
    decode = details[1]
    assert decode["phase"] == {
        **{"num_prefill": 0, "num_prefilldecode": 0, "num_decode": 3},
        **{"avg_bs": 8, "avg_conc": 8},
    }
    assert [step["step_id"] for step in decode["steps"]] == [4, 5, 6]
    # the GPU works from 150 to 435 of each
    assert decode["gpu_duration"] == 3 * 285
    assert sum(step["gpu_span_ns"] for step in decode["steps"]) == 3 * 285_000
    for row, listed in zip(rows, details, strict=True):
        assert int(row["event_count"]) == listed["event_count"]
        assert int(row["event_count"]) == len(document(out / row["output_path"])["traceEvents"])


def test_keys_and_metadata_are_those_of_the_source(windows, serving):
    out, _ = windows
    whole = document(serving)
    metadata = [e for e in whole["traceEvents"] if e["ph"] == "M"]
    for name in (MIXED, DECODE, PREFILL):
        part = document(out / name)
        events = part.pop("traceEvents")
        assert part == {k: v for k, v in whole.items() if k != "traceEvents"}
        assert [e for e in events if e["ph"] == "M"] == metadata


def test_a_split_file_is_a_trace_of_its_own(windows, serving):
    out, _ = windows
    columns = ("kernels", "gpu_busy_ns", "gpu_span_ns", "cpu_dur_ns", "phase", "r", "graph")

    def steps(path):
        rows = json.loads(run("steps", path, "--format", "json").stdout)
        return [{name: row[name] for name in (*columns, "ts_ns", "annotation")} for row in rows]

    whole = steps(serving)
    for name, first, end in ((MIXED, 3, 16), (DECODE, 4, 7), (PREFILL, 10, 12)):
        assert steps(out / name) == whole[first:end]


def test_for_people(serving, tmp_path):
    result = run("split", serving, "-o", tmp_path / "out", "--num-steps", "4")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    # of four neighbours two with prefill are closest to 5 of 13, first in 7 to 10
    assert lines[1][:6] == ["mixed", "7–10", "0", "2", "2", "50.00"]
    assert result.stderr == ""


def test_the_benchmark_gives_the_share(serving, tmp_path):
    # 2·8/(32·1.5) is a third, so that two steps become three; steps 3 to 5 are the first with one
    options = ("--conc", "8", "--osl", "32", "--r", "0.5", "--num-steps", "2")
    result = run("split", serving, "-o", tmp_path / "out", *options, "--format", "csv")
    assert result.returncode == 0, result.stderr
    mixed = next(csv.DictReader(io.StringIO(result.stdout)))
    assert float(mixed["reference_share"]) == pytest.approx(1 / 3)
    assert (mixed["num_steps"], mixed["num_steps_wanted"]) == ("3", "3")  # ceil(1 / (1/3))
    assert (mixed["num_prefilldecode"], mixed["first_step"]) == ("1", "3")
    assert "raised from 2 to 3 steps" in result.stderr


def test_steps_by_number(serving, repo_root, tmp_path):
    result = run("split", serving, "-o", tmp_path / "a", "--steps", "3:5", "--format", "json")
    (row,) = json.loads(result.stdout)
    name = "steps_3_5_prefill_0_prefilldecode_1_decode_1_bs519_conc8_serving.json.gz"
    assert (row["output_path"], row["num_gpu_events"]) == (name, 22)
    training = repo_root / "data/samples/training.json.gz"
    result = run("split", training, "-o", tmp_path / "b", "--steps", "1:9", "--format", "json")
    (row,) = json.loads(result.stdout)
    # half of the sample: 12 kernels, 2 copies, 1 fill; 1,200 µs busy a step
    assert (row["num_gpu_events"], row["gpu_busy_duration"]) == (15, 1200)
    assert row["output_path"].endswith("_decode_0_bsNA_concNA_training.json.gz")
    events = document(tmp_path / "b" / row["output_path"])["traceEvents"]
    assert {e["tid"] for e in events if e.get("cat") == "cpu_op"} == {4242, 4300}  # the backward
    assert sum(e.get("cat") == "fwdbwd" for e in events) == 8
    assert sum(e.get("cat") == "python_function" for e in events) == 6


@pytest.mark.parametrize("suffix", [".json", ".json.zst", ".zip"])
def test_other_containers(serving, windows, tmp_path, suffix):
    text = gzip.decompress(serving.read_bytes())
    path = tmp_path / f"serving{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("run/serving.json", text)
    else:
        path.write_bytes(zstandard.compress(text) if suffix.endswith("zst") else text)
    result = run("split", path, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    for name in (MIXED, DECODE, PREFILL):
        assert document(tmp_path / "out" / name) == document(windows[0] / name)


def test_a_truncated_trace(serving, tmp_path):
    path = tmp_path / "cut.json.gz"
    path.write_bytes(serving.read_bytes()[:-200])
    result = run("split", path, "-o", tmp_path / "out", "--steps", "3:5")
    assert result.returncode == 0, result.stderr
    assert "TRUNCATED" in result.stderr
    (file,) = (tmp_path / "out").glob("steps_3_5*")
    assert document(file)["schemaVersion"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--steps", "5:3"), "A below B"),
        (("--steps", "20:21"), "has 20"),
        (("--num-steps", "0"), "--num-steps"),
        (("--step-pattern", "("), "no regular expression"),
        (("--conc", "8"), "all of --conc, --osl and --r"),
    ],
)
def test_usage_errors(serving, tmp_path, options, words):
    result = run("split", serving, "-o", tmp_path / "out", *options)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


def test_where_to_and_from(serving, windows, tmp_path):
    out, _ = windows
    result = run("split", serving, "-o", out)
    assert result.returncode == 2
    assert "--overwrite" in result.stderr
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "no.json", "no such file")):
        result = run("split", path, "-o", tmp_path / "out")
        assert result.returncode == 2
        assert words in result.stderr


def test_nothing_to_split(repo_root, tmp_path):
    training = repo_root / "data/samples/training.json.gz"
    block = repo_root / "data/samples/triton_block.json.gz"
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    for path, words in ((training, "steady"), (block, "no steps"), (other, "not a trace")):
        result = run("split", path, "-o", tmp_path / "out")
        assert result.returncode == 1
        assert words in result.stderr
        assert not (tmp_path / "out").exists()
