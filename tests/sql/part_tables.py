"""The tables of one part from a few drawn rows: a column that a row leaves out is NULL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from tracehouse.analysis import step_grammars
from tracehouse.analysis.summaries import INPUTS
from tracehouse.schema import tables as schema

Row = Mapping[str, object]
A = "aaaaaaaaaaaaaaaa"
B = "bbbbbbbbbbbbbbbb"


def stored(name: str, rows: Iterable[Row]) -> pa.Table:
    """Make a stored table from rows; a column that it doesn't have is a mistake."""
    table = schema.TABLES[name]
    rows = list(rows)
    assert all(row.keys() <= set(table.names) for row in rows)
    columns = [
        pa.array([row.get(c.name) for row in rows], _plain(c.type)).cast(c.type)
        for c in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def part(traces: Iterable[str | Row] = (A,), **rows: Iterable[Row]) -> dict[str, pa.Table]:
    """Make all inputs of the views; a trace is an id, or a row."""
    named = [t if isinstance(t, Mapping) else {"trace_id": t, "status": "ok"} for t in traces]
    made = {name: stored(name, rows.get(name, ())) for name in INPUTS if name in schema.TABLES}
    return made | {
        "traces": stored("traces", named),
        "step_grammars": step_grammars.load().table(),
    }


def activity(event_id: int, kind: str, start: int | None, end: int | None, **more: object) -> Row:
    """Draw a GPU activity of trace A on device 0 over [start, end); an end of None is unknown."""
    duration = None if start is None or end is None else end - start
    return {
        "trace_id": A,
        "event_id": event_id,
        "device": 0,
        "kind": kind,
        "ts_ns": start,
        "dur_ns": duration,
        **more,
    }


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_
