"""Two runs at once, and what table `runs` says of each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest
from warehouses import analyse, contents, drawn, query

from tracehouse.commands import analyze, division, memory
from tracehouse.commands.refresh import refresh_warehouse
from tracehouse.errors import TracehouseError
from tracehouse.storage.lock import lock


def command(*arguments, **options):
    words = [sys.executable, "-m", "tracehouse", "analyze", *map(str, arguments)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_two_runs_at_once_both_end_well_if_they_wait(tmp_path):
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    for number in range(4):
        drawn(number).write(tmp_path / "in" / f"job{number % 2}" / f"{number}.json")
    runs = [command(tmp_path / "in" / job, "-o", out, "--wait", 120) for job in ("job0", "job1")]
    ends = [(run.communicate()[1], run.returncode) for run in runs]
    assert [code for _, code in ends] == [0, 0], ends
    analyse(tmp_path / "in", out=fresh)
    assert contents(out) == contents(fresh)
    assert query(out, "SELECT run_id, files, exit_code FROM runs ORDER BY 1") == [
        ("run-000001", 2, 0),
        ("run-000002", 2, 0),
    ]


def test_the_wait_for_another_run_is_none_of_its_time(tmp_path):
    drawn(1).write(tmp_path / "in" / "a.json")
    out = tmp_path / "out"
    analyse(tmp_path / "in", out=out)
    with lock(out):
        waiting = Thread(target=analyse, args=[tmp_path / "in"], kwargs={"out": out, "wait": 60})
        began = time.monotonic()
        waiting.start()
        time.sleep(2)
    waiting.join()
    whole = time.monotonic() - began
    ((seconds,),) = query(out, "SELECT seconds FROM runs WHERE unchanged = 1")
    assert whole - seconds > 1  # of the two that it had to wait, but for the time until it did


def test_a_run_is_a_row(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    drawn(1).write(folder / "a.json")
    (folder / "b.json").write_text("nonsense")
    first = analyse(folder, out=out, label="nightly", memory_limit=10**9)
    second = analyse(folder, out=out)
    columns = (
        "run_id, exit_code, error, executor, workers, memory_limit_bytes, files, unchanged, pruned,"
        " traces_ok, traces_repaired, traces_partial, traces_rejected, events, worker_deaths"
    )
    limit = second.record.memory_limit_bytes
    assert query(out, f"SELECT {columns} FROM runs ORDER BY run_id") == [
        ("run-000001", 1, None, "process", 1, 10**9, 2, 0, 0, 1, 0, 0, 1, 4, 0),
        ("run-000002", 1, None, "process", 1, limit, 2, 2, 0, 0, 0, 0, 0, 0, 0),
    ]
    ((size, arguments, host, pid),) = query(
        out, "SELECT bytes, arguments, host, pid FROM runs WHERE run_id = 'run-000001'"
    )
    assert size == (folder / "a.json").stat().st_size
    assert json.loads(arguments) == {
        "paths": [str(folder)],
        "label": "nightly",
        "reader": "scan",
        "workers": 1,
    }
    assert (host, pid) == (os.uname().nodename, os.getpid())
    # The parts of the time are less than the whole, and the whole is what the report says.
    ((started, finished, seconds, cpu, publish, peak),) = query(
        out,
        "SELECT started_at, finished_at, seconds, cpu_seconds, publish_seconds, peak_memory_bytes"
        " FROM runs WHERE run_id = 'run-000001'",
    )
    assert 0 < (finished - started).total_seconds() <= seconds + 1
    assert seconds == first.seconds
    assert 0 < publish < cpu
    assert peak > 50e6
    stages = query(
        out,
        "SELECT read_seconds + link_seconds + formulas_seconds + views_seconds + write_seconds"
        " FROM traces ORDER BY status",
    )
    assert 0 < stages[0][0] < cpu
    assert stages[1] == (None,)  # nothing was analysed


def test_credentials_in_urls_are_not_written_down(tmp_path):
    from tracehouse.analysis.settings import DEFAULT
    from tracehouse.commands.run_record import arguments_of

    urls = ["s3://key:secret@bucket/a/*.json?token=abc#x", "memory://b/c.json"]
    assert arguments_of(urls, DEFAULT, label=None) == {
        "paths": ["s3://bucket/a/*.json", "memory://b/c.json"]
    }
    many = arguments_of([f"{number}.json" for number in range(50)], DEFAULT)
    assert (len(many["paths"]), many["more_paths"]) == (20, 30)


def test_a_run_that_fails_says_why(tmp_path, monkeypatch):
    out = tmp_path / "out"
    file = drawn(1).write(tmp_path / "a.json")
    with monkeypatch.context() as broken:

        def full(task):
            raise OSError(28, "No space left on device", "s3://me:hunter2@bucket/latin-\udce9")

        broken.setattr(analyze, "run_part", full)
        with pytest.raises(OSError, match="No space left"):
            analyse(file, out=out)
    (out / "lake" / "manifests").mkdir(exist_ok=True)
    (out / "lake" / "manifests" / "part-000001.json").write_text("{")
    with pytest.raises(TracehouseError, match="cannot be used"):
        analyse(file, out=out)
    (out / "lake" / "manifests" / "part-000001.json").unlink()
    refresh_warehouse(out)
    rows = query(out, "SELECT exit_code, error, traces_ok FROM runs ORDER BY run_id")
    assert [row[0] for row in rows] == [1, 1]
    assert "No space left on device" in rows[0][1]
    assert "hunter2" not in rows[0][1]
    assert r"latin-\udce9" in rows[0][1]
    assert "TracehouseError: the manifest" in rows[1][1]


def test_a_run_that_was_killed_has_no_end(tmp_path, monkeypatch):
    out = tmp_path / "out"
    file = drawn(1).write(tmp_path / "a.json")
    monkeypatch.setattr(division, "PART_BYTES", 1)
    code = (
        "import os, signal, pathlib, sys; from tracehouse.commands import analyze\n"
        "analyze.run_part = lambda task: os.kill(os.getpid(), signal.SIGKILL)\n"
        "analyze.analyze(sys.argv[1:2], pathlib.Path(sys.argv[2]))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(file), str(out)], check=False)
    assert run.returncode == -signal.SIGKILL
    report = analyse(file, out=out)
    assert report.record.executor == "pool"  # this process would die of it too, if it came again
    assert query(out, "SELECT finished_at IS NULL, exit_code FROM runs ORDER BY run_id") == [
        (True, None),
        (False, 0),
    ]


def test_logs_for_machines(tmp_path):
    out = tmp_path / "out"
    drawn(1).write(tmp_path / "in" / "a.json")
    (tmp_path / "in" / "b.json").write_text("nonsense")
    run = command(tmp_path / "in", "-o", out, "--log-format", "json", "--profile", "--workers", 1)
    table, log = run.communicate()
    assert run.returncode == 1
    head = table.splitlines()[0].split()
    assert head[-5:] == [
        f"{stage}_seconds" for stage in ("read", "link", "formulas", "views", "write")
    ]
    lines = [json.loads(line) for line in log.splitlines()]
    assert all("time" in line for line in lines)
    traces = {Path(line["path"]).name: line for line in lines if line["event"] == "trace"}
    assert {name: line["status"] for name, line in traces.items()} == {
        "a.json": "ok",
        "b.json": "rejected",
    }
    assert traces["a.json"]["kernels"] == 1
    assert "NOT_A_TRACE" in traces["b.json"]["reason"] or traces["b.json"]["reason"]
    (sums,) = [line for line in lines if line["event"] == "run"]
    assert (sums["exit_code"], sums["traces_ok"], sums["traces_rejected"]) == (1, 1, 1)
    assert sums["arguments"]["workers"] == 1
    (stages,) = [line for line in lines if line["event"] == "profile"]
    assert sum(v for k, v in stages.items() if k.endswith("_seconds")) <= sums["cpu_seconds"]


def test_errors_for_machines(tmp_path):
    run = command(tmp_path / "nowhere", "-o", tmp_path / "out", "--log-format", "json")
    table, log = run.communicate()
    assert (run.returncode, table) == (2, "")
    error = json.loads(log)
    assert (error["event"], error["code"]) == ("error", "USAGE")
    assert "nowhere" in error["message"]


def test_a_trace_beyond_the_memory_limit_runs_alone_and_is_named(tmp_path, monkeypatch, capsys):
    from tracehouse.cli.run_log import TextLog

    folder, out = tmp_path / "in", tmp_path / "out"
    for number in range(3):
        drawn(number).write(folder / f"{number}.json")
    large = drawn(3)
    for at in range(200):
        large.op("aten::relu", 200 + at, 1)
    large.write(folder / "large.json")
    # As if each byte of text needed a mebibyte, so that 28 kB of it are beyond 10 GB.
    monkeypatch.setattr(memory, "PER_TEXT_BYTE", 1 << 20)
    monkeypatch.setattr(division, "FILE_BYTES", 0)
    monkeypatch.setattr(division, "PART_BYTES", 1)
    report = analyse(folder, out=out, workers=2, memory_limit=10 * 10**9)
    assert report.alone == (str(folder / "large.json"),)
    assert report.rejected == 0
    TextLog().end(report, [], out)
    said = capsys.readouterr().err
    assert "may need more memory than the limit of 10.0 GB" in said
    assert "large.json" in said


def test_a_trace_that_the_memory_limit_is_too_small_for_is_rejected(tmp_path, monkeypatch):
    folder, out = tmp_path / "in", tmp_path / "out"
    for number in range(2):
        drawn(number).write(folder / f"{number}.json")
    large = drawn(2)
    for at in range(196):
        large.op("aten::relu", 200 + at, 1)
    large.write(folder / "large.json")
    with monkeypatch.context() as patch:
        # As if each row needed 10 MB and there were room for 100 in memory: its 200 need 2.4 GB.
        patch.setattr(memory, "PER_ROW", 10**7)
        patch.setattr(memory, "rows_held", lambda share: 100)
        report = analyse(folder, out=out, memory_limit=10**9)
    [rejected] = [result for result in report.results if result.status == "rejected"]
    assert rejected.path == str(folder / "large.json")
    assert rejected.reason == (
        "beyond the memory limit: 200 op calls, calls and kernels need about 2.4 GB,"
        " and --memory-limit is 1.0 GB"
    )
    assert query(out, "SELECT code FROM issues WHERE severity = 'error'") == [("MEMORY_LIMIT",)]
    again = analyse(folder, out=out)  # by default the machine's
    assert (again.rejected, again.unchanged) == (0, 2)
    analyse(folder, out=tmp_path / "once")
    assert contents(out) == contents(tmp_path / "once")


def test_sql_views_keep_to_their_memory():
    from tracehouse.warehouse.connection import limit_memory, open_session

    def limit() -> str:
        with open_session() as session:
            rows = session.execute("SELECT current_setting('memory_limit')").fetchall()
            return rows[0][0]

    limit_memory(None)
    default = limit()
    limit_memory(300 << 20)
    assert limit() == "300.0 MiB"
    with open_session() as session:  # more than may be held: it goes to disk
        session.execute("CREATE TEMP TABLE t AS SELECT hash(range) AS h FROM range(50_000_000)")
        assert session.execute("SELECT count(*) FROM t").fetchall() == [(50_000_000,)]
    limit_memory(None)
    assert limit() == default


def test_views_that_need_more_memory_than_planned_get_it(tmp_path, repo_root, monkeypatch):
    from tracehouse.commands import part

    given = []
    real = part.limit_memory
    monkeypatch.setattr(part, "limit_memory", lambda limit: (given.append(limit), real(limit)))
    monkeypatch.setattr(memory, "for_queries", lambda share, text_bytes: 1 << 20)
    sample = repo_root / "data" / "samples" / "serving.json.gz"
    analyse(sample, out=tmp_path / "little")
    assert given == [1 << 20, memory.default_limit() - memory.BASE]  # a MiB was too little
    monkeypatch.undo()
    analyse(sample, out=tmp_path / "plenty")
    assert contents(tmp_path / "little") == contents(tmp_path / "plenty")
