"""Measure Tracehouse against the goals of its design and write docs/performance.md.

    python benchmarks/run.py [SOURCE] [--quick]

SOURCE is the trace that all others are made from: by default the largest of the real traces in
../shared/traces/h100, where they are there, else the largest sample. --quick measures once, small,
and only prints.

The unit is json.load of the same file in the same run, so that figures of different machines
compare. Each measurement runs in a process of its own (measure.py), because of memory; a child
inherits its parent's peak, so this process imports nothing large.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "performance.md"
LIBRARIES = ("numba", "numpy", "pyarrow", "duckdb", "ijson")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    repeats: int
    traces: int  # in the archive
    small_traces: int
    megabytes: tuple[
        int, ...
    ]  # of single traces; the last two are those whose peak memory is compared
    link_events: int
    op_calls: int
    kernels: int  # of the archive that is queried


FULL = Sizes(3, 200, 1_000, (100, 200, 400, 1_000, 2_000), 1_000_000, 10_000_000, 100_000_000)
QUICK = Sizes(1, 10, 50, (25, 50, 100), 100_000, 1_000_000, 1_000_000)


@dataclass(frozen=True)
class Line:
    """A line of the page. met: None where there is no goal."""

    work: str
    measure: str
    goal: str
    measured: str
    met: bool | None = None

    def __str__(self) -> str:
        met = {True: "yes", False: "**no**", None: ""}[self.met]
        return f"| {self.work} | {self.measure} | {self.goal} | {self.measured} | {met} |"


@dataclass(frozen=True)
class Child:
    """What a finished child process printed and used."""

    output: str
    wall: float
    peak_bytes: int

    def result(self) -> dict[str, float]:
        """The object that measure.py prints last."""
        return json.loads(self.output.splitlines()[-1])


def child(folder: Path, *command: str) -> Child:
    """Run a command with this Python, `folder` for what it writes; ends the run if it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{output}{shlex.join(command)} failed with {process.returncode}")
    return Child(output, wall, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def default_source() -> Path:
    """The largest real trace, else the largest sample."""
    shared = Path(os.environ.get("TRACEHOUSE_SHARED_TRACES", ROOT.parent / "shared" / "traces"))
    found = [*(shared / "h100").glob("*.json.gz")] or [
        *(ROOT / "data" / "samples").glob("*.json.gz")
    ]
    return max(found, key=lambda path: path.stat().st_size)


class Bench:
    """The measurements, in a temporary folder."""

    def __init__(self, folder: Path, source: Path, sizes: Sizes) -> None:
        self.folder = folder
        self.sizes = sizes
        self.one = folder / "one.json"
        self.source = self.measure(
            "prepare",
            source=source,
            folder=folder,
            traces=sizes.traces,
            small_traces=sizes.small_traces,
            megabytes=sizes.megabytes,
        )

    def child(self, name: str, **arguments: Any) -> Child:
        """Make a measurement of measure.py; what it leaves on disk is removed."""
        print(f"  {name} {' '.join(Path(str(a)).name for a in arguments.values())}", flush=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            script = str(HERE / "measure.py")
            return child(Path(scratch), script, name, json.dumps(arguments, default=str))

    def measure(self, name: str, **arguments: Any) -> dict[str, float]:
        """The result of a measurement."""
        return self.child(name, **arguments).result()

    def readers(self) -> list[Line]:
        used = self.measure(
            "readers",
            path=self.one,
            array_path=self.folder / "array.json",
            repeats=self.sizes.repeats,
        )
        self.unit = used["json.load"]
        ratio = {name: cpu / self.unit for name, cpu in used.items()}
        against = used["scan"] / used["duckdb array"]
        measure = "CPU / json.load"
        return [
            goal("reading alone (scan → Arrow), plain JSON", measure, ratio["scan"], 0.10),
            goal("the same", "CPU / DuckDB's `read_json` of the bare array", against, 1 / 3),
            Line(
                "DuckDB's `read_json` of the bare array",
                measure,
                "",
                f"{ratio['duckdb array']:.2f}",
            ),
            Line(
                "DuckDB's `read_json` of the whole file", measure, "", f"{ratio['duckdb file']:.2f}"
            ),
            Line("reading with `--reader ijson`", measure, "", f"{ratio['ijson']:.1f}"),
        ]

    def one_trace(self) -> list[Line]:
        used = self.measure("analyze", path=self.one, repeats=self.sizes.repeats)
        cold, loads = [], []
        for _ in range(self.sizes.repeats + 1):
            with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                out = str(Path(scratch) / "out")
                command = ("-m", "tracehouse", "analyze", str(self.one), "-o", out)
                cold.append(child(Path(scratch), *command).wall)
            loads.append(self.measure("load_wall", path=self.one)["json.load"])
        # The first round fills the caches of the disk and of compiled code.
        ratio = statistics.median(cold[1:]) / statistics.median(loads[1:])
        work = (
            f"one {self.source['bytes'] / 1e6:.0f} MB trace, warm process, all tables, all written"
        )
        return [
            goal(work, "CPU / json.load", used["analyze"] / used["json.load"], 0.35),
            goal(
                "the same as one cold command (compiled code cached)",
                "wall / json.load",
                ratio,
                1.0,
            ),
        ]

    def archives(self) -> list[Line]:
        folder = self.folder / "archive"
        unit = self.measure("load_archive", folder=folder)
        used = self.measure("archive", folder=folder, workers=2)
        alone = self.measure("archive", folder=folder, workers=1)
        dask = self.measure("archive_on_dask", folder=folder, workers=2)
        grown = self.measure("worker_growth", folder=self.folder / "small", workers=2)
        small = self.measure("small_traces", folder=self.folder / "small", repeats=1)
        count = small["traces"]
        size = f"{self.sizes.traces} traces, {unit['bytes'] / 1e6:,.0f} MB"
        return [
            goal(
                f"archive of {size}, .json.gz, 2 workers",
                "CPU / Σ json.load of the text",
                used["cpu"] / unit["json.load"],
                0.35,
            ),
            Line("the same", "wall / Σ json.load", "", f"{used['wall'] / unit['json.load']:.2f}"),
            Line(
                "the same by 1 worker",
                "CPU, wall / by 2",
                "",
                f"{alone['cpu'] / used['cpu']:.2f}, {alone['wall'] / used['wall']:.2f}",
            ),
            Line(
                "the same by a Dask cluster of 2 workers",
                "CPU, wall / by 2 processes",
                "",
                f"{dask['cpu'] / used['cpu']:.2f}, {dask['wall'] / used['wall']:.2f}",
            ),
            goal(
                f"archive of {count:,} small traces, 2 workers, in {grown['parts']:.0f} parts",
                "memory of a worker after the last parts / after the first",
                grown["ratio"],
                1.1,
            ),
            goal(
                f"archive of {count:,} small traces (250 to 5,000 events)",
                "CPU ms a trace beyond reading",
                (small["analyze"] - small["read"]) / count * 1e3,
                15,
            ),
            Line("the same", "CPU ms a trace of reading", "", f"{small['read'] / count * 1e3:.1f}"),
            goal(
                "unchanged archive of the small traces, second run",
                "seconds per 1,000 traces",
                small["again"] / count * 1e3,
                1.0,
            ),
        ]

    def growth(self) -> list[Line]:
        cpu, peak, sizes = [], [], []
        for megabytes in self.sizes.megabytes:
            path = self.folder / f"{megabytes}.json"
            repeats = 1 if megabytes > 500 else min(self.sizes.repeats, 3)
            run = self.child("growth", small=self.one, path=path, repeats=repeats)
            sizes.append(path.stat().st_size)
            cpu.append(run.result()["analyze"])
            peak.append(run.peak_bytes / 1e9)
        slope = statistics.linear_regression(
            [math.log(size) for size in sizes], [math.log(seconds) for seconds in cpu]
        ).slope
        smaller, larger = (f"{megabytes / 1e3:g} GB" for megabytes in self.sizes.megabytes[-2:])
        span = f"{self.sizes.megabytes[0]} MB to {larger}"
        return [
            goal(f"{smaller} trace", "peak memory, GB", peak[-2], 1.5),
            goal(
                f"{larger} trace (flat from {smaller} on)",
                "peak memory / that",
                peak[-1] / peak[-2],
                1.1,
            ),
            goal(f"cost as the file grows, {span}", "slope of CPU in log-log", slope, 1.05),
        ]

    def linking(self) -> list[Line]:
        events = self.sizes.link_events
        used = self.measure("link_events", events=events, repeats=self.sizes.repeats)
        unit = self.unit * events / self.source["events"]
        work = f"linking and nesting {events:,} events"
        return [Line(work, "CPU / json.load of as many events", "", f"{used['link'] / unit:.3f}")]

    def formulas(self) -> list[Line]:
        calls = self.sizes.op_calls
        used = self.measure("formulas", calls=calls)
        work = f"FLOPs and bytes of {calls:,} op calls, one core"
        most = 1.0 * calls / 10_000_000
        return [
            goal(f"{work}, of 4,000 distinct inputs", "CPU s", used.pop("dictionary"), most),
            *(Line(f"{work}, {name}", "CPU s", "", f"{cpu:.2f}") for name, cpu in used.items()),
        ]

    def query(self) -> list[Line]:
        used = self.measure("query", path=self.one, kernels=self.sizes.kernels)
        archive = (
            f"archive of {used['traces']:,.0f} traces with {used['kernels'] / 1e6:,.0f}M kernels"
        )
        return [
            goal(f"{archive}: `op_summary` by label and week", "seconds", used["query"], 1.0),
            Line("building the database of that archive", "seconds", "", f"{used['build']:.1f}"),
        ]


def goal(work: str, measure: str, value: float, most: float) -> Line:
    """A line with a goal: at most `most`."""
    return Line(work, measure, f"≤ {most:.3g}", f"{value:.3g}", value <= most)


def page(lines: list[Line], bench: Bench, source: Path) -> str:
    """The text of docs/performance.md."""
    table = "\n".join(map(str, lines))
    size, events = bench.source["bytes"] / 1e6, bench.source["events"]
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"""# Performance

Written by `make bench` on {datetime.date.today()}; not to be edited by hand.

The unit is `json.load` of the same file, in the same run: that travels with the machine, as seconds
do not. Here it was {bench.unit:.2f} CPU seconds for `{source.name}`
({size:.1f} MB of JSON, {events:,} events). CPU is user and system time of all processes and
threads; figures of one trace are medians of {bench.sizes.repeats}, run in turn with `json.load`.
The archives and the larger traces are made from that trace by `benchmarks/enlarge.py`.

| work | measure | goal | measured | met |
|---|---|---|---|---|
{table}

Notes:

- The warm process has analysed the file before. A cold command is a new process that finds the
  compiled code in the cache.
- An archive's traces are compressed: taking that off counts for Tracehouse, not for `json.load`.
- DuckDB reads, in one thread, the columns of table `events`; of `args` only what is a column.
- The archive that is queried holds the summaries of one trace again and again, each under another
  id, label and week; its lake has no table but those that the query and the build read.
- Peak memory is the largest resident set of the process, its imports (about 0.2 GB) included.

Machine: {os.cpu_count()} cores of {processor()}, {platform.system()} {platform.machine()},
Python {platform.python_version()}; {libraries}.
"""


def processor() -> str:
    """The model of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, nargs="?", default=default_source())
    parser.add_argument("--quick", action="store_true", help="measure once, small, and only print")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracehouse-bench-") as folder:
        bench = Bench(Path(folder), args.source, QUICK if args.quick else FULL)
        lines = []
        parts = (bench.readers, bench.linking, bench.formulas, bench.one_trace, bench.archives)
        for part in (*parts, bench.query, bench.growth):
            measured = part()
            print(*measured, sep="\n", flush=True)
            lines += measured
    text = page(lines, bench, args.source)
    print(text)
    if not args.quick:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
