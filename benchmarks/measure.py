"""The measurements, each made in a process of its own by run.py.

    python benchmarks/measure.py NAME ARGUMENTS

ARGUMENTS are a JSON object, and so is the result, which it prints. CPU seconds are user and system,
of this process and of those it waited for.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing.forkserver
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import bench_formulas
import bench_query
import duckdb
import pyarrow as pa
from bench_link import make_frame
from enlarge import Source, read_text

import tracehouse
from tracehouse.analysis.link import link
from tracehouse.commands import analyze as analyze_command
from tracehouse.commands import division
from tracehouse.commands.analyze import RunReport
from tracehouse.commands.part import run_part
from tracehouse.commands.part_task import PartOutcome, PartTask
from tracehouse.findings import Findings
from tracehouse.ingest import fields
from tracehouse.ingest.read import read_file

Work = Callable[[], object]


def cpu_seconds() -> float:
    """CPU time so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def cpu_of(work: Work) -> float:
    """CPU time of one call; letting go of its result is not counted."""
    before = cpu_seconds()
    result = work()
    after = cpu_seconds()
    del result
    return after - before


def interleaved(works: dict[str, Work], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each work, called in turn; the first round only warms up."""
    rounds = [{name: cpu_of(work) for name, work in works.items()} for _ in range(repeats + 1)]
    return {name: statistics.median(r[name] for r in rounds[1:]) for name in works}


def load(path: str) -> object:
    with Path(path).open("rb") as file:
        return json.load(file)


def read_events(path: str, reader: str) -> list[pa.Table]:
    """The rows of table `events` of a file."""
    rows: list[pa.Table] = []
    traces = read_file(
        path, reader=reader, sink=rows.append, wanted=lambda _: True, findings=Findings()
    )
    for _ in traces:
        pass
    return rows


def analyzed(path: str, out: Path | str, workers: int = 1) -> RunReport:
    """What `analyze` reports; a run that rejects traces is worth no figure, and ends this."""
    report = tracehouse.analyze(path, out, workers=workers)
    if report.rejected:
        reasons = {result.reason for result in report.results if result.reason}
        raise SystemExit(f"{report.rejected} of {report.total} files rejected: {reasons}")
    return report


def analyze_afresh(path: str) -> Work:
    """`analyze` of a path into a new folder at each call."""
    numbers = count()
    folder = Path(tempfile.mkdtemp())
    return lambda: analyzed(path, folder / str(next(numbers)))


def duckdb_read(path: str, *, bare: bool) -> Work:
    """DuckDB's read_json of a trace or its bare event list, in one thread, with our columns."""
    args = [f'"{key}" BIGINT' for key in fields.ARG_INT_KEYS]
    args += [f'"{key}" JSON' for key in fields.ARG_TEXT_KEYS]
    columns = {key: "VARCHAR" for key in fields.WORD_KEYS} | {
        key: "DOUBLE" for key in fields.TIME_KEYS
    }
    columns |= {key: "BIGINT" for key in fields.TOP_INT_KEYS} | {
        "args": f"STRUCT({', '.join(args)})"
    }
    size = Path(path).stat().st_size + 1
    if bare:
        given = ", ".join(f"{key}: '{kind}'" for key, kind in columns.items())
        query = f"SELECT * FROM read_json(?, format = 'array', columns = {{{given}}})"
    else:
        event = ", ".join(f'"{key}" {kind}' for key, kind in columns.items())
        given = f"{{traceEvents: 'STRUCT({event})[]'}}"
        query = (
            "SELECT unnest(traceEvents) FROM"
            f" read_json(?, columns = {given}, maximum_object_size = {size})"
        )
    connection = duckdb.connect(config={"threads": 1})
    return lambda: connection.sql(query, params=[path]).to_arrow_table()


def prepare(
    source: str, folder: str, traces: int, small_traces: int, megabytes: list[int]
) -> dict[str, float]:
    """Write all that is measured: the source, its bare event list, archives, larger traces."""
    text = read_text(Path(source))
    to = Path(folder)
    (to / "one.json").write_text(text, encoding="utf-8")
    trace = Source(text)
    (to / "array.json").write_text(trace.array, encoding="utf-8")
    trace.write_archive(to / "archive", traces, 5_000, 50_000)
    trace.write_archive(to / "small", small_traces, 250, 5_000)
    for size in megabytes:
        trace.write(to / f"{size}.json", size * 10**6)
    return {"events": len(trace.events) + len(trace.metadata), "bytes": len(text)}


def readers(path: str, array_path: str, repeats: int) -> dict[str, float]:
    works: dict[str, Work] = {
        "json.load": lambda: load(path),
        "scan": lambda: read_events(path, "scan"),
        "duckdb array": duckdb_read(array_path, bare=True),
        "duckdb file": duckdb_read(path, bare=False),
        "ijson": lambda: read_events(path, "ijson"),
    }
    return interleaved(works, repeats)


def analyze(path: str, repeats: int) -> dict[str, float]:
    works: dict[str, Work] = {"json.load": lambda: load(path), "analyze": analyze_afresh(path)}
    return interleaved(works, repeats)


def growth(small: str, path: str, repeats: int) -> dict[str, float]:
    """CPU seconds of `analyze` of one trace in a warm process; run.py sees its peak memory."""
    analyze_afresh(small)()
    work = analyze_afresh(path)
    return {"analyze": statistics.median(cpu_of(work) for _ in range(repeats))}


def load_wall(path: str) -> dict[str, float]:
    started = time.perf_counter()
    loaded = load(path)
    seconds = time.perf_counter() - started
    del loaded
    return {"json.load": seconds}


def load_archive(folder: str) -> dict[str, float]:
    """Sum of json.load over an archive, decompression aside, and the bytes of its text."""
    seconds, size = 0.0, 0
    for path in sorted(Path(folder).iterdir()):
        text = gzip.decompress(path.read_bytes())
        size += len(text)
        seconds += cpu_of(lambda text=text: json.loads(text))
    return {"json.load": seconds, "bytes": size}


def archive(folder: str, workers: int) -> dict[str, float]:
    """A nightly run in a new process, start-up and workers included, and a second run."""
    out = tempfile.mkdtemp()
    started = time.perf_counter()
    analyzed(folder, out, workers)
    seconds = time.perf_counter() - started
    multiprocessing.forkserver._forkserver._stop()  # its workers count once it is waited for
    return {"cpu": cpu_seconds(), "wall": seconds, "again": second_run(folder, out)}


def archive_on_dask(folder: str, workers: int) -> dict[str, float]:
    """The same by a Dask cluster of as many processes, which runs before and after."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        started = time.perf_counter()
        report = tracehouse.analyze(folder, tempfile.mkdtemp(), dask=cluster.scheduler_address)
        seconds = time.perf_counter() - started
    if report.rejected:
        raise SystemExit(f"{report.rejected} of {report.total} files rejected")
    return {"cpu": report.record.cpu_seconds, "wall": seconds}


def run_and_note_memory(task: PartTask) -> PartOutcome:
    """Run a part, and note the process and what it holds then."""
    outcome = run_part(task)
    held = int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) << 10
    with Path(os.environ["TMPDIR"], "memory").open("a") as notes:
        notes.write(f"{os.getpid()} {held}\n")
    return outcome


def worker_growth(folder: str, workers: int) -> dict[str, float]:
    """What a worker holds after the last parts of an archive, as a multiple of the first ones.

    The first two parts of a worker load what it needs, and don't count. Small parts, so that there
    are many; the worst worker.
    """
    import measure  # this file under a name that workers can import; they know of no main script

    division.PART_BYTES = 16 << 20
    analyze_command.run_part = measure.run_and_note_memory
    analyzed(folder, tempfile.mkdtemp(), workers)
    held: dict[str, list[int]] = {}
    for line in Path(os.environ["TMPDIR"], "memory").read_text().splitlines():
        pid, size = line.split()
        held.setdefault(pid, []).append(int(size))
    ratios = []
    for sizes in held.values():
        settled = sizes[2:]
        third = max(len(settled) // 3, 1)
        ratios.append(statistics.mean(settled[-third:]) / statistics.mean(settled[:third]))
    return {"ratio": max(ratios), "parts": sum(map(len, held.values()))}


def second_run(folder: str, out: str) -> float:
    started = time.perf_counter()
    report = analyzed(folder, out)
    seconds = time.perf_counter() - started
    if report.unchanged != report.total:
        raise SystemExit(
            f"{report.total - report.unchanged} of {report.total} files were read again"
        )
    return seconds


def small_traces(folder: str, repeats: int) -> dict[str, float]:
    paths = [str(path) for path in sorted(Path(folder).iterdir())]
    works: dict[str, Work] = {
        "read": lambda: [read_events(path, "scan") for path in paths],
        "analyze": analyze_afresh(folder),
    }
    out = tempfile.mkdtemp()
    analyzed(folder, out)
    return interleaved(works, repeats) | {"again": second_run(folder, out), "traces": len(paths)}


def link_events(events: int, repeats: int) -> dict[str, float]:
    table = make_frame(events)
    return interleaved({"link": lambda: link(table, "0" * 16, findings=Findings())}, repeats)


def formulas(calls: int) -> dict[str, float]:
    return bench_formulas.measured(calls)


def query(path: str, kernels: int) -> dict[str, float]:
    return bench_query.measured(path, kernels)


def main() -> None:
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    measured: dict[str, Any] = globals()[name](**arguments)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
