"""Runs whose memory runs out, for real: a trace costs one retry, then its rejection, never the run.

The memory is eaten by a stand-in, so that neither the test nor the machine depends on how much a
trace needs. What happens then is real: the kernel's OOM killer in a control group, a process that
is killed when it has grown too large, and allocations that fail below `ulimit -v`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from killers import attempts_of
from warehouses import analyse, drawn, query, temporary_files

import tracehouse
from tracehouse.commands import analyze, division, linked_trace, part
from tracehouse.commands.part import run_part
from tracehouse.commands.schedule import STARVED
from tracehouse.errors import TracehouseError

COMMAND = """
import resource, sys
import killers
from tracehouse.cli.main import main
from tracehouse.commands import analyze, division
analyze.run_part = killers.run_and_hoard
division.PART_BYTES = 1  # a part a file
if __name__ == "__main__":
    limit = int(sys.argv.pop(1))
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    main()
"""
ROOM = 700 << 20  # for a command and two workers that do nothing much
ADDRESSES = 3 << 30  # most of which is never touched
CGROUPS = Path("/sys/fs/cgroup")


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        drawn(number).write(tmp_path / "in" / f"good{number}.json")
    (tmp_path / "command.py").write_text(COMMAND)
    return tmp_path / "in"


def start(tmp_path, *options, limit=0, group: Path | None = None):
    """Start the command, in a control group perhaps."""
    words = [sys.executable, str(tmp_path / "command.py"), str(limit), "analyze"]
    words += [str(tmp_path / "in"), "-o", str(tmp_path / "out"), *map(str, options)]
    if group is not None:
        enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        words = ["sh", "-c", enter, "sh", *words]
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def assert_only_the_hoarder_went(tmp_path, run, said, hoarder, why):
    out = tmp_path / "out"
    assert run.returncode == 1, said
    assert f"rejected: {hoarder}: {why}" in said
    assert "Traceback" not in said
    statuses = query(out, "SELECT status, count(*) FROM files GROUP BY ALL ORDER BY ALL")
    assert statuses == [("ok", 3), ("rejected", 1)]
    assert query(out, "SELECT code FROM issues WHERE severity = 'error'") == [("WORKER_DIED",)]
    assert attempts_of(hoarder) == ["1 False", "1 True"]  # once, and once more alone
    assert temporary_files(out) == []


@pytest.fixture
def control_group():
    """Return a control group that may have ROOM, or skip: making one needs the right to."""
    folder = CGROUPS / "memory" if (CGROUPS / "memory").is_dir() else CGROUPS
    group = folder / f"tracehouse-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no right to make a control group")
    limits = [group / "memory.limit_in_bytes", group / "memory.max"]
    try:
        found = [path for path in limits if path.exists()]
        if not found:
            pytest.skip("control groups do not bound memory here")
        found[0].write_text(str(ROOM))
        yield group
    finally:
        for _ in range(100):  # until the last process has left
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def test_the_kernel_s_oom_killer_costs_the_file_that_ate_the_memory(
    tmp_path, folder, control_group
):
    hoarder = drawn(7).write(folder / "hoard-bytes.json")
    with start(tmp_path, "--workers", 2, group=control_group) as run:
        said = run.communicate(timeout=120)[1]
    assert_only_the_hoarder_went(tmp_path, run, said, hoarder, "the process that analysed it died")
    assert "processes that died: 2" in said
    events = [control_group / name for name in ("memory.oom_control", "memory.events")]
    words = next(path for path in events if path.exists()).read_text().split()
    assert int(words[words.index("oom_kill") + 1]) >= 2  # it was the kernel


def resident(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int((status.partition("VmRSS:")[2].split() or ["0"])[0]) << 10


def descendants(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found + [below for child in found for below in descendants(child)]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_worker_that_is_killed_for_its_size(tmp_path, folder):
    hoarder = drawn(7).write(folder / "hoard-bytes.json")
    killed = 0
    with start(tmp_path, "--workers", 2) as run:
        while run.poll() is None:
            for pid in descendants(run.pid):
                if resident(pid) > ROOM:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            time.sleep(0.01)
        said = run.communicate()[1]
    assert killed == 2
    assert_only_the_hoarder_went(tmp_path, run, said, hoarder, "the process that analysed it died")


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v counts on Linux")
@pytest.mark.parametrize(("workers", "kind"), [(2, "arrow"), (1, "numpy")])
def test_memory_that_is_refused(tmp_path, folder, workers, kind):
    hoarder = drawn(7).write(folder / f"hoard-{kind}.json")
    with start(tmp_path, "--workers", workers, limit=ADDRESSES) as run:
        said = run.communicate(timeout=120)[1]
    why = "there was not enough memory to analyse it, twice"
    assert_only_the_hoarder_went(tmp_path, run, said, hoarder, why)
    assert "processes that died" not in said  # none did


def starving(task):
    if any("hoard" in file.path for file in task.files):
        raise MemoryError
    return run_part(task)


def test_in_a_part_of_several_only_the_one_that_needs_it_goes(tmp_path, folder, monkeypatch):
    out = tmp_path / "out"
    hoarder = drawn(7).write(folder / "hoard.json")
    monkeypatch.setattr(analyze, "run_part", starving)
    report = analyse(folder, out=out)  # a part of four, in this process
    assert (report.rejected, report.record.worker_deaths) == (1, 0)
    assert query(out, "SELECT path, status, reason FROM files WHERE status <> 'ok'") == [
        (str(hoarder), "rejected", STARVED)
    ]
    # The next run tries it again, in a process apart, and no other.
    monkeypatch.setattr(analyze, "run_part", run_part)
    again = analyse(folder, out=out)
    assert (again.unchanged, again.rejected, again.record.executor) == (3, 0, "pool")


@pytest.mark.parametrize(("stage", "error"), [
    ("read_file", MemoryError()),
    ("link", np._core._exceptions._ArrayMemoryError((1 << 40,), np.dtype("int64"))),
    ("link", pa.ArrowMemoryError("malloc of size 64 failed")),
    ("summarise", duckdb.OutOfMemoryException("failed to allocate block")),
])  # fmt: skip
def test_memory_that_an_analysis_is_refused(tmp_path, folder, monkeypatch, stage, error):
    out = tmp_path / "out"
    hungry = drawn(7).write(folder / "hungry.json")
    module = linked_trace if stage == "link" else part
    real = getattr(module, stage)

    def starved(*arguments, **options):
        if "aten::op7" in str(arguments) or str(hungry) in arguments:
            raise error
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, stage, starved)
        report = analyse(folder, out=out)
    assert (report.rejected, report.record.worker_deaths) == (1, 0)
    assert query(out, "SELECT path, reason FROM files WHERE status <> 'ok'") == [
        (str(hungry), STARVED)
    ]
    assert query(out, "SELECT count(*) FROM issues WHERE code = 'ANALYSIS_FAILED'") == [(0,)]
    assert analyse(folder, out=out).rejected == 0  # the next run tries it again


@pytest.mark.parametrize(("limit", "asked", "executor"), [
    (10**9, None, "pool"), (10**9, 1, "process"), (10**10, None, "process")
])  # fmt: skip
def test_a_trace_that_may_need_most_of_the_memory_runs_apart(
    tmp_path, monkeypatch, limit, asked, executor
):
    drawn(1).write(tmp_path / "in" / "a.json")
    monkeypatch.setattr(division, "FILE_BYTES", 2 << 30)  # so much text needs 0.6 GB
    report = analyse(tmp_path / "in", out=tmp_path / "out", workers=asked, memory_limit=limit)
    assert (report.record.executor, report.rejected) == (executor, 0)


def test_a_query_beyond_the_memory_says_so(tmp_path, monkeypatch):
    drawn(1).write(tmp_path / "a.json")
    analyse(tmp_path / "a.json", out=tmp_path / "out")
    query = "SELECT list(hash(range)) FROM range(20_000_000)"
    with tracehouse.open(tmp_path / "out") as warehouse:
        warehouse.sql("SET memory_limit = '20MB'")
        with pytest.raises(TracehouseError, match="not enough memory for this query") as caught:
            warehouse.sql(query)
    assert caught.value.code == "OUT_OF_MEMORY"
