"""Small traces, runs over them, and what a warehouse holds after a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracegen import Trace

import tracehouse
from tracehouse.commands.analyze import RunReport
from tracehouse.commands.analyze import analyze as run_analyze
from tracehouse.stopwatch import STAGES
from tracehouse.storage.manifest import load_state
from tracehouse.warehouse.query import Warehouse

# Columns that differ from run to run, as all of `runs` does.
OF_THE_RUN = {"analysed_at", "seconds", *(f"{stage}_seconds" for stage in STAGES)}

# Views over the runs of a job and the phases of steps: four fifths of the time of all tables.
# DuckDB computes them when they are read, from the tables that are compared.
COMPUTED = {
    *("job_runs", "regressions", "trends"),
    *("phase_kernel_summary", "phase_op_summary", "phase_roofline", "phase_triton"),
}

Contents = dict[str, list[str]]


def drawn(number: int) -> Trace:
    """Draw a trace whose names and times tell its number.

    us   0         10+n      30+n   40+n      50
    CPU  [ aten::op<n>, launch 5-9 ............]
    GPU            [ k<n>    ]      [copy 5 µs]
    """
    return (
        Trace(number=number)
        .op(f"aten::op{number}", 0, 50, **{"Input Dims": [[number, 2]]})
        .launch(5, 4, correlation=1)
        .kernel(f"k{number}", 10 + number, 20, correlation=1)
        .memcpy(40 + number, 5)
    )


def analyse(*paths: Path, out: Path, workers: int = 1, **options: Any) -> RunReport:
    return run_analyze([str(path) for path in paths], out, workers=workers, **options)


def contents(out: Path) -> Contents:
    """Every row of every table that is stored, sorted, without what differs from run to run."""
    with tracehouse.open(out) as warehouse:
        return {
            table.name: rows(
                warehouse, table.name, [c.name for c in table.columns if c.name not in OF_THE_RUN]
            )
            for table in warehouse.describe()
            if table.name not in ("runs", *COMPUTED)
        }


def rows(warehouse: Warehouse, table: str, columns: list[str]) -> list[str]:
    names = ", ".join(f'"{name}"' for name in columns)
    return sorted(map(repr, warehouse.sql(f"SELECT {names} FROM {table}").to_pylist()))


def query(out: Path, sql: str) -> list[tuple[Any, ...]]:
    with tracehouse.open(out) as warehouse:
        return [tuple(row.values()) for row in warehouse.sql(sql).to_pylist()]


def names_in(out: Path) -> list[tuple[Any, ...]]:
    """What a warehouse holds, in short: of a drawn trace each name tells its number."""
    return query(
        out,
        "SELECT path, ops.name, kernels.name FROM traces JOIN ops USING (trace_id)"
        " JOIN kernels USING (trace_id) ORDER BY ALL",
    )


def manifests(out: Path) -> set[str]:
    return {path.name for path in (out / "lake" / "manifests").iterdir()}


def temporary_files(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if "tmp" in path.name]


def files_of(out: Path) -> dict[str, str]:
    """Checksums of the Parquet files of the tables that hold nothing of the run itself."""
    return {
        file.path: file.checksum
        for part in load_state(out).parts
        for name, file in part.tables.items()
        if name != "traces"
    }
