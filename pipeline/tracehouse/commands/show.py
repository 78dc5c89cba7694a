"""What `tracehouse show` shows: one trace after the other, or the rows of one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import pyarrow as pa

from tracehouse.errors import UsageError
from tracehouse.warehouse.query import TableDoc, Warehouse

_TRACES = """
SELECT
    trace_id, path, label, status, reason, events, kernels,
    total_ns, busy_ns, busy_pct, computation_ns, computation_pct,
    comm_ns, exposed_comm_ns, exposed_comm_pct, memcpy_ns, exposed_memcpy_ns, exposed_memcpy_pct
FROM traces LEFT JOIN trace_timeline USING (trace_id)
"""
_TOP_OPS = """
SELECT name, category, count, direct_kernel_time_ns, pct
FROM op_summary WHERE trace_id = ? ORDER BY direct_kernel_time_ns DESC, name LIMIT ?
"""
_TOP_KERNELS = """
SELECT short_name, kind, count, time_ns, pct
FROM kernel_summary WHERE trace_id = ? ORDER BY time_ns DESC, name, kind LIMIT ?
"""
_ROOFLINE = """
SELECT
    name, input_dims, dtype, count, kernel_time_ns, pct, tflops_s, tb_s, roofline_pct, bound,
    why, note
FROM roofline WHERE trace_id = ?
ORDER BY kernel_time_ns DESC, name, signature_id, compute_spec
"""
_COVERAGE = """
SELECT
    traces.path, traces.devices, coverage.op_time_ns, coverage.no_op_ns, coverage.modelled_pct,
    coverage.unmodelled_names, peaks.arch, peaks.tb_s
FROM traces
LEFT JOIN coverage USING (trace_id)
LEFT JOIN (
    SELECT trace_id, min(arch) AS arch, min(peak_tb_s) AS tb_s FROM roofline GROUP BY trace_id
) AS peaks USING (trace_id)
WHERE traces.trace_id = ?
"""
_FAILING = """
SELECT name, value, expected, meaning
FROM checks WHERE trace_id = ? AND NOT ok ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """The first rows of a table, and how many it has."""

    table: pa.Table
    total: int


@dataclass(frozen=True, slots=True)
class TopLists:
    """The ops and kernels that took most GPU time in one trace, in descending order.

    And the checks that it fails: name, value, expected, meaning.
    """

    ops: pa.Table
    kernels: pa.Table
    failing: pa.Table


def trace_rows(out: Path, *, trace: str | None = None, limit: int = 0) -> Rows:
    """Return a row per trace: path, status, and its timeline over all devices; ordered by path.

    `trace`: an id, path or file name, or the start of one (UsageError if none fits). `limit`: rows
    at most, 0 for all. Timeline columns are as in `trace_timeline`, NULL where it has no row.
    """
    with Warehouse(out) as warehouse:
        where, parameters = restriction(warehouse, trace)
        rows = warehouse.arrow(f"{_TRACES} {where} ORDER BY path, trace_id", parameters)
    return Rows(rows.slice(0, limit) if limit else rows, rows.num_rows)


@dataclass(frozen=True, slots=True)
class TraceRoofline:
    """What `show roofline` says of a trace.

    about: one row: path, devices, op_time_ns, no_op_ns, modelled_pct, unmodelled_names, arch, tb_s.
    ops: the first rows of `roofline`, longest time first; total: how many rows there are.
    """

    about: pa.Table
    ops: pa.Table
    total: int


def rooflines(out: Path, *, trace: str | None = None, limit: int = 0) -> list[TraceRoofline]:
    """Return the roofline of each trace with GPU work, by path; `limit` rows each, 0 for all.

    `trace` as in trace_rows.
    """
    with Warehouse(out) as warehouse:
        _described(warehouse, "roofline")
        where, parameters = restriction(warehouse, trace)
        query = f"SELECT trace_id FROM traces {where} ORDER BY path, trace_id"
        found = []
        for trace_id in warehouse.arrow(query, parameters)["trace_id"].to_pylist():
            rows = warehouse.arrow(_ROOFLINE, [trace_id])
            if rows.num_rows:
                about = warehouse.arrow(_COVERAGE, [trace_id])
                first = rows.slice(0, limit) if limit else rows
                found.append(TraceRoofline(about, first, rows.num_rows))
    return found


def table_rows(out: Path, name: str, *, trace: str | None = None, limit: int = 0) -> Rows:
    """Return the rows of table `name`; `trace` and `limit` as in trace_rows.

    UsageError where there is no such table, or `trace` is given and its rows belong to no trace.
    """
    with Warehouse(out) as warehouse:
        described = _described(warehouse, name)
        if trace is not None and "trace_id" not in (c.name for c in described.columns):
            raise UsageError(f"The rows of {name!r} belong to no trace.", hint="Leave --trace out.")
        where, parameters = restriction(warehouse, trace)
        source = f'FROM "{name}" {where}'
        total = warehouse.arrow(f"SELECT count(*) AS rows {source}", parameters)
        first = f"LIMIT {limit:d}" if limit else ""
        rows = warehouse.arrow(f"SELECT * {source} {first}", parameters)
    return Rows(rows, total["rows"][0].as_py())


def _described(warehouse: Warehouse, name: str) -> TableDoc:
    """Return what table `name` is; UsageError where the warehouse has no such table."""
    described = {table.name: table for table in warehouse.describe()}
    if name not in described:
        raise UsageError(
            f"There is no table {name!r}.",
            hint=f"There are: {', '.join(described)}; a warehouse of an earlier version gets the "
            "others when it is analysed again",
        )
    return described[name]


def top_lists(out: Path, trace_ids: Sequence[str], length: int) -> dict[str, TopLists]:
    """Return the `length` ops and kernels with most GPU time of each trace, and failing checks."""
    with Warehouse(out) as warehouse:
        return {
            trace_id: TopLists(
                ops=warehouse.arrow(_TOP_OPS, [trace_id, length]),
                kernels=warehouse.arrow(_TOP_KERNELS, [trace_id, length]),
                failing=warehouse.arrow(_FAILING, [trace_id]),
            )
            for trace_id in trace_ids
        }


def restriction(warehouse: Warehouse, trace: str | None) -> tuple[str, list[list[str]]]:
    """Return the WHERE clause that keeps the traces meant by `trace`, and its parameters."""
    if trace is None:
        return "", []
    known = warehouse.arrow("SELECT trace_id, path FROM traces")
    pairs = zip(known["trace_id"].to_pylist(), known["path"].to_pylist(), strict=True)
    ids = [trace_id for trace_id, path in pairs if is_meant(trace, trace_id, path or "")]
    if not ids:
        raise UsageError(f"No trace starts with {trace!r}.", hint="Try: tracehouse show OUT traces")
    return "WHERE trace_id = ANY(?)", [ids]


def is_meant(trace: str, trace_id: str, path: str) -> bool:
    """Whether `trace` is the start of this trace's id, path or file name."""
    starts = (trace_id, path, PurePath(path).name)
    absolute = os.path.abspath(trace)  # noqa: PTH100 - resolve() would follow links
    return any(s.startswith(trace) for s in starts) or path.startswith(absolute)
