"""What a warehouse holds: every table and view with its columns, from one list."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tracehouse.schema.tables import INT, REAL, TABLES, TEXT, Column, Table
from tracehouse.warehouse.views import View, ViewColumn, load_views

_UTC = pa.timestamp("us", "UTC")

FILES = Table(
    "files",
    "Files seen: one row per path.",
    ("path",),
    (
        Column("path", TEXT, "-", "path of the file", nullable=False),
        Column("size", INT, "bytes", "length of the file"),
        Column("mtime", pa.timestamp("us", "UTC"), "-", "when it was last changed"),
        Column("content_hash", TEXT, "-", "hash of its content; NULL if it could not be read"),
        Column("status", TEXT, "-", "ok, repaired, partial, rejected; pruned: traces were dropped"),
        Column("reason", TEXT, "-", "why the status is not ok"),
        Column("label", TEXT, "-", "label of the job it belongs to"),
        Column("traces", pa.list_(TEXT), "-", "trace_id of each trace in it"),
        Column(
            "role",
            TEXT,
            "-",
            "trace; or capture: it tells the ops of graphs that the traces beside it replay, and "
            "has no traces of its own",
        ),
    ),
)

# Written by `tracehouse.storage.runs`, whose fields these are.
RUNS = Table(
    "runs",
    "Runs of `tracehouse analyze`: one row per run. A run that was killed has no end.",
    ("run_id",),
    (
        Column("run_id", TEXT, "-", "run-000001 and ascending", nullable=False),
        Column("started_at", _UTC, "-", "when it had the warehouse for itself"),
        Column("pipeline_version", TEXT, "-", "version of Tracehouse"),
        Column("host", TEXT, "-", "machine that it ran on"),
        Column("pid", INT, "-", "its process there"),
        Column(
            "arguments",
            TEXT,
            "-",
            "what it was asked to do, as JSON text: paths, label, reader …; without credentials "
            "and parameters of URLs",
        ),
        Column(
            "executor",
            TEXT,
            "-",
            "what worked on the parts: process (its own), pool or dask; NULL if it had not begun",
        ),
        Column("workers", INT, "-", "processes that worked on parts, at the start"),
        Column("memory_limit_bytes", INT, "bytes", "memory that it was allowed to use"),
        Column("finished_at", _UTC, "-", "when it ended; NULL while it runs, or if it was killed"),
        Column("exit_code", INT, "-", "0 all well, 1 files were rejected or it failed, 2 usage"),
        Column("error", TEXT, "-", "why it failed as a whole; NULL if it did not"),
        Column("seconds", REAL, "s", "wall time"),
        Column("cpu_seconds", REAL, "s", "CPU time of all its processes, start-up aside"),
        Column("publish_seconds", REAL, "s", "CPU time of committing and building the warehouse"),
        Column(
            "peak_memory_bytes",
            INT,
            "bytes",
            "largest resident set of one of its processes while it worked on a part or published",
        ),
        Column("worker_deaths", INT, "-", "times that a process died under it"),
        Column("files", INT, "-", "files found"),
        Column("unchanged", INT, "-", "those that were not read again"),
        Column("pruned", INT, "-", "files that it forgot, because they are gone"),
        Column("traces_ok", INT, "-", "traces read in this run of status ok"),
        Column("traces_repaired", INT, "-", "those of status repaired"),
        Column("traces_partial", INT, "-", "those of status partial"),
        Column("traces_rejected", INT, "-", "those of status rejected"),
        Column("bytes", INT, "bytes", "decompressed text that it read"),
        Column("events", INT, "-", "events that it read"),
    ),
)

# Beside the columns that the lake holds: two files of one content are one trace.
_TRACE_PATH = (
    ViewColumn("path", "VARCHAR", "-", "file that holds the trace; of several, the first by name"),
    ViewColumn("label", "VARCHAR", "-", "label of that file: it groups runs of the same job"),
)

_COPIED = {
    "traces": "path, trace_id",
    "issues": "trace_id, code",
    "steady_state": "trace_id, region_id",
}
_STAYS_IN_LAKE = frozenset({"idle_gaps", "steps", "steady_steps"})
# What only the whole archive can tell: views of sql/warehouse whose rows a table gets beside those
# of the lake, from tables that are filled before it.
ADDED_ROWS = {"checks": "_rank_checks", "issues": "_rank_issues"}


@dataclass(frozen=True, slots=True)
class Relation:
    """One table or view of the warehouse.

    `order_by` is the order of the rows of a real table; None: a view. `query`: of a view over other
    relations; None: a view over the lake's Parquet.
    """

    name: str
    summary: str
    grain: tuple[str, ...]
    columns: tuple[ViewColumn, ...]
    order_by: str | None
    query: str | None = None

    @property
    def comment(self) -> str:
        """The words of its COMMENT."""
        return f"{self.summary} Key: {', '.join(self.grain)}."


def relations() -> tuple[Relation, ...]:
    """List the tables and views of a warehouse, in the order in which they are shown.

    A view over other relations follows those that it reads.
    """
    traces, *others = TABLES.values()
    views = sorted((v for v in load_views("trace") if not v.is_private), key=lambda v: v.name)
    return (
        _with_path(_stored(traces)),
        Relation(FILES.name, FILES.summary, FILES.grain, _columns(FILES), "path"),
        Relation(RUNS.name, RUNS.summary, RUNS.grain, _columns(RUNS), None),
        *(_stored(table) for table in others),
        *(_summary(view) for view in views),
        *(_live(view) for view in live_views() if not view.is_private),
    )


def live_views() -> tuple[View, ...]:
    """List the views over other relations, private ones too, each after those that it reads."""
    added = ADDED_ROWS.values()
    return tuple(view for view in load_views("warehouse") if view.name not in added)


def _stored(table: Table) -> Relation:
    order_by = _COPIED.get(table.name)
    return Relation(table.name, table.summary, table.grain, _columns(table), order_by)


def _with_path(traces: Relation) -> Relation:
    key, *rest = traces.columns
    columns = (key, *_TRACE_PATH, *rest)
    return Relation(traces.name, traces.summary, traces.grain, columns, traces.order_by)


def _summary(view: View) -> Relation:
    order_by = None if view.name in _STAYS_IN_LAKE else view.order_by
    return Relation(view.name, _words(view), view.grain, view.columns, order_by)


def _live(view: View) -> Relation:
    return Relation(view.name, _words(view), view.grain, view.columns, None, view.query)


def _words(view: View) -> str:
    return f"{view.summary} {view.notes}".strip()


def _columns(table: Table) -> tuple[ViewColumn, ...]:
    return tuple(ViewColumn(c.name, _duckdb_type(c.type), c.unit, c.meaning) for c in table.columns)


def _duckdb_type(arrow: pa.DataType) -> str:
    """Name the DuckDB type that holds an Arrow type; words become plain text."""
    if pa.types.is_list(arrow):
        return f"{_duckdb_type(arrow.value_type)}[]"
    if pa.types.is_struct(arrow):
        fields = ", ".join(f"{field.name} {_duckdb_type(field.type)}" for field in arrow)
        return f"STRUCT({fields})"
    if pa.types.is_dictionary(arrow):
        return _duckdb_type(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return "TIMESTAMP WITH TIME ZONE"
    return _SCALARS[arrow]


_SCALARS = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
}
