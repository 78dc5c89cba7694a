"""`tracehouse analyze`: what it prints where, and how it exits."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def first(tracehouse, archive, tmp_path_factory):
    """Return the folder and the outcome of a run over the archive, its bad file included."""
    out = tmp_path_factory.mktemp("first") / "out"
    arguments = ("--label", "nightly", "--workers", "1", "--format", "csv")
    return out, tracehouse("analyze", ".", "-o", out, *arguments, cwd=archive)


def test_result_is_a_row_a_trace(first, archive):
    found = {row.pop("path"): row for row in rows(first[1].stdout)}
    assert set(found) == {str(archive / f"{name}.json") for name in ("cut", "good", "other")}
    good = found[str(archive / "good.json")]
    assert float(good.pop("busy_pct")) == pytest.approx(100 * 40 / 70)
    assert good == {"status": "ok", "events": "4", "kernels": "1"}  # the copy is no kernel
    cut = found[str(archive / "cut.json")]
    assert (cut["status"], cut["events"]) == ("partial", "3")  # the fourth event is cut
    other = found[str(archive / "other.json")]
    assert other == {"status": "rejected", "events": "", "kernels": "", "busy_pct": ""}


def test_a_rejected_file_exits_with_1_and_a_partial_one_does_not(first, warehouse):
    assert first[1].returncode == 1
    assert warehouse.is_dir()  # made by a run over a whole and a cut file, which exited with 0


def test_stderr_has_a_line_a_file_then_the_reasons_the_checks_and_the_sum(first):
    lines = first[1].stderr.splitlines()
    assert len(lines) == 3 + 2 + 3 + 1
    assert "ok        good.json: 4 events, 1 kernels, busy 40.000 µs, " in "\n".join(lines[:3])
    reasons = dict(line.split(": ", 1) for line in lines[3:5])
    assert reasons["partial"].startswith("cut.json: ")
    assert reasons["rejected"].startswith("other.json: ")
    # No op has shapes, in both; the copy of the good one has no launch: 10 of 40 µs.
    assert [line.partition(", expected")[0] for line in lines[5:8]] == [
        "check: 2 traces, worst in cut.json: without_shapes_pct is 100",
        "check: cut.json: cut_short is 1",
        "check: good.json: unlinked_pct is 25",
    ]
    assert lines[8].startswith("3 files: 0 unchanged, 1 partial, 1 rejected; ")


def test_the_label_is_kept(first, tracehouse):
    query = "SELECT DISTINCT label FROM files"
    assert tracehouse("sql", first[0], query, "--format", "csv").stdout == "label\nnightly\n"


def test_a_second_run_reads_nothing_again(first, tracehouse, archive):
    result = tracehouse("analyze", archive / "good.json", "-o", first[0], cwd=archive)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("1 files: 1 unchanged, 0 partial, 0 rejected; ")
    # The table is there all the same, its paths relative to where the user stands.
    head, row = result.stdout.splitlines()
    assert head.split() == ["path", "status", "events", "kernels", "busy_pct"]
    assert row.split() == ["good.json", "ok", "4", "1", "57.143"]


def test_the_reference_reader_says_the_same(first, tracehouse, archive, tmp_path):
    result = tracehouse("analyze", archive, "-o", tmp_path, "--reader", "ijson", "--format", "csv")
    assert result.stdout == first[1].stdout


def test_an_unfinished_file_is_passed_over_and_counted(tracehouse, archive, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.json").write_bytes((archive / "good.json").read_bytes())
    (folder / "half.json.tmp").write_text("{")
    os.mkfifo(folder / "pipe")
    result = tracehouse("analyze", folder, "-o", tmp_path / "out")
    assert result.returncode == 0
    assert "TEMP_SKIPPED: 1 unfinished files passed over: " in result.stderr
    assert "half.json.tmp\npipes, sockets and devices passed over: 1: " in result.stderr
    assert "/pipe\n1 files: " in result.stderr
    again = tracehouse("analyze", folder, "-o", tmp_path / "out", "--log-format", "json")
    lines = [json.loads(line) for line in again.stderr.splitlines()]
    over = {Path(o["path"]).name: o["code"] for o in lines if o["event"] == "passed_over"}
    assert over == {"half.json.tmp": "TEMP_SKIPPED", "pipe": None}


def test_a_content_that_is_known_is_said_to_be(tracehouse, archive, tmp_path):
    good, out = tmp_path / "good.json", tmp_path / "out"
    good.write_bytes((archive / "good.json").read_bytes())
    tracehouse("analyze", good, "-o", out)
    os.utime(good, ns=(0, 1_000_000_000))
    result = tracehouse("analyze", good, "-o", out, "--format", "csv")
    assert "good.json: 4 events, content known before, " in result.stderr
    (row,) = rows(result.stdout)
    assert (row["events"], row["kernels"]) == ("4", "1")
    assert float(row["busy_pct"]) == pytest.approx(100 * 40 / 70)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.json", "-o", "out"), "nowhere.json"),
        (("*.nothing", "-o", "out"), "*.nothing"),
        (("x.json",), "--out"),
        (("x.json", "-o", "out", "--workers", "0"), "--workers"),
        (("x.json", "-o", "out", "--reader", "magic"), "--reader"),
    ],
)
def test_usage_errors_exit_with_2(tracehouse, tmp_path, arguments, words):
    result = tracehouse("analyze", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_progress_on_a_terminal_leaves_stdout_alone(archive, tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tracehouse", "analyze", "good.json", "-o", tmp_path / "out"]
    with (
        ThreadPoolExecutor(1) as reader,  # a terminal that nobody reads would block the process
        subprocess.Popen(
            [*command, "--format", "csv"], cwd=archive, stdout=subprocess.PIPE, stderr=theirs
        ) as process,
    ):
        os.close(theirs)
        reading = reader.submit(read_all, ours)
        assert process.stdout is not None
        out = process.stdout.read().decode()
        assert process.wait() == 0
        shown = reading.result()
    assert out.startswith("path,status,events,kernels,busy_pct\n")
    assert "\x1b[" in shown  # a live line
    assert "1 files: 0 unchanged" in shown


def read_all(terminal: int) -> str:
    """Read what was written to a terminal whose other end is closed."""
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:  # Linux says so that nobody writes any more
        pass
    os.close(terminal)
    return b"".join(parts).decode()
