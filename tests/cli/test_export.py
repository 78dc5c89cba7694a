"""`export`: a trace written back, as a user runs it."""

from __future__ import annotations

import gzip
import json

import pytest
import zstandard
from tracegen import Trace

HF = "hf_" + "a1B2" * 8


def drawn(**envelope):
    return (
        Trace(**envelope)
        .op("aten::mm", 0, 50, **{"Input Dims": [[2, 2]]})
        .launch(5, "4.25", correlation=1)
        .kernel("gemm", "10.125", 20, correlation=1)
    )


@pytest.fixture
def analysed(tracehouse, tmp_path):
    """Analyse drawn traces by name and return the warehouse; extra arguments go to analyze."""

    def analyse(traces, *arguments, **options):
        for name, trace in traces.items():
            trace.write(tmp_path / "in" / name, **options)
        out = tmp_path / "out"
        result = tracehouse(
            "analyze", tmp_path / "in", "-o", out, "--workers", "1", *arguments, "--format", "csv"
        )
        assert "Error" not in result.stderr
        return out

    return analyse


def test_equal_in_every_container(tracehouse, analysed, tmp_path):
    trace = drawn(note="é\n", nothing=None)
    out = analysed({"run.json.gz": trace})
    for name, read in {
        "back.json": bytes,
        "back.json.gz": gzip.decompress,
        "back.json.zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    }.items():
        result = tracehouse("export", out, "run", "-o", tmp_path / name)
        assert result.returncode == 0, result.stderr
        assert result.stdout == ""
        assert result.stderr == (
            f"Wrote 3 events of {tmp_path / 'in' / 'run.json.gz'} to {tmp_path / name}\n"
        )
        assert json.loads(read((tmp_path / name).read_bytes())) == json.loads(trace.text())
    assert [path.name for path in tmp_path.iterdir() if "tmp" in path.name] == []


def test_to_stdout(tracehouse, analysed):
    trace = drawn()
    result = tracehouse("export", analysed({"run.json": trace}), "run.json", "-o", "-")
    assert json.loads(result.stdout) == json.loads(trace.text())
    assert result.stderr == ""


@pytest.mark.parametrize(
    "text",
    [
        '[{"ph":"X","ts":1,"dur":2}]',
        '{"traceEvents":[{"ph":"X","ts":1,"dur":2}]}',
        '{"traceEvents":[]}',
        '{"traceEvents":[],"a":1}',
    ],
)
def test_a_list_stays_a_list(tracehouse, tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    tracehouse("analyze", tmp_path / "run.json", "-o", tmp_path / "out", "--workers", "1")
    result = tracehouse("export", tmp_path / "out", "run", "-o", "-")
    assert json.loads(result.stdout) == json.loads(text)


def test_a_repaired_trace_is_written_repaired(tracehouse, tmp_path):
    whole = '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":2,"args":{}}'
    (tmp_path / "cut.json").write_text('{"schemaVersion":1,"traceEvents":[' + whole + ',{"ph":"X')
    tracehouse("analyze", tmp_path / "cut.json", "-o", tmp_path / "out", "--workers", "1")
    result = tracehouse("export", tmp_path / "out", "cut", "-o", "-")
    assert json.loads(result.stdout) == {"schemaVersion": 1, "traceEvents": [json.loads(whole)]}


def test_only_the_trace_that_was_named(tracehouse, analysed):
    out = analysed({"run.json": drawn(n=1), "run.json.old.json": drawn(n=2), "b.json": drawn(n=3)})
    for name, number in {"b": 3, "run.json": 1, "run.json.old": 2}.items():
        result = tracehouse("export", out, name, "-o", "-")
        assert json.loads(result.stdout)["n"] == number
    several = tracehouse("export", out, "ru", "-o", "-")
    assert several.returncode == 2
    assert several.stdout == ""
    assert several.stderr.startswith("Error: 2 traces start with 'ru': ")


@pytest.mark.parametrize(
    ("trace", "message"),
    [("nope", "No trace starts with 'nope'"), ("other.json", "other.json was rejected")],
)
def test_what_is_not_there(tracehouse, archive, tmp_path, trace, message):
    tracehouse("analyze", archive, "-o", tmp_path / "out", "--workers", "1")
    result = tracehouse("export", tmp_path / "out", trace, "-o", tmp_path / "x.json")
    assert result.returncode == 2
    assert message in result.stderr
    assert not (tmp_path / "x.json").exists()


def test_a_folder_that_is_not_there(tracehouse, analysed, tmp_path):
    out = analysed({"run.json": drawn()})
    result = tracehouse("export", out, "run", "-o", tmp_path / "no" / "x.json")
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr


def test_an_older_file_stays_whole_if_the_lake_is_damaged(tracehouse, analysed, tmp_path):
    out = analysed({"run.json": drawn()})
    (tmp_path / "x.json").write_text("older")
    (events,) = (out / "lake" / "events").iterdir()
    events.write_bytes(events.read_bytes()[:50])
    result = tracehouse("export", out, "run", "-o", tmp_path / "x.json")
    assert result.returncode == 1
    assert "the lake is damaged" in result.stderr
    assert (tmp_path / "x.json").read_text() == "older"


TELLING = ("alexandra", "gpu-17", "/home", "/root", "Users", "bobby", HF)


def telling():
    return (
        drawn(
            env={"USER": "alexandra", "HOSTNAME": "gpu-17", "HOME": "/home/alexandra"},
            traceName="/home/alexandra/runs/gpu-17_4711.1700000000000.pt.trace.json",
        )
        .frame("/home/alexandra/model.py(12): forward", 60, 5)
        .frame("/root/.cache/x.py(1): go", 70, 5)
        .annotation("alexandra's run on gpu-17", 80, 5)
        .event(
            ph="M",
            name="process_labels",
            pid="gpu-17",
            tid=0,
            args={"labels": "C:\\Users\\bobby\\x", "token": HF},
            note="/home/alexandra",
        )
    )


def test_scrub_leaves_nothing_that_tells(tracehouse, analysed, tmp_path):
    trace = telling()
    assert all(word in trace.text() for word in TELLING)
    out = analysed({"run.json": trace}, "--keep-secrets")
    kept = tracehouse("export", out, "run", "-o", "-").stdout
    assert json.loads(kept) == json.loads(trace.text())
    result = tracehouse("export", out, "run", "-o", tmp_path / "x.json", "--scrub")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "x.json").read_text()
    assert [word for word in TELLING if word in text] == []
    events = json.loads(text)["traceEvents"]
    assert [event["name"] for event in events[3:6]] == [
        "~/model.py(12): forward",
        "~/.cache/x.py(1): go",
        "user's run on host",
    ]
    assert events[:3] == json.loads(trace.text())["traceEvents"][:3]
    assert events[6]["pid"] == "host"


def test_secrets_are_redacted_unless_kept(tracehouse, analysed):
    result = tracehouse("export", analysed({"run.json": telling()}), "run", "-o", "-")
    assert HF not in result.stdout
    last = json.loads(result.stdout)["traceEvents"][-1]
    assert last["args"] == {"labels": "C:\\Users\\bobby\\x", "token": "redacted"}
