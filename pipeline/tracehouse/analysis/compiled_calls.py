"""Op calls that are launches of compiled kernels, with what their launcher says."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import Ints, Words, constant, pick, places, read_words
from tracehouse.analysis.link_tables import Linked
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.schema import tables
from tracehouse.triton.names import parse_name

_FAMILY = "triton_"  # of the families of compiled kernels in data/op_categories.csv
_LONGEST = 4096


def compiled_calls(linked: Linked, trace_id: str, rules: OpCategories) -> pa.Table:
    """Make the table COMPILED_CALLS: op calls that are known by their name or by their launcher.

    Each distinct word is looked at once.
    """
    frame = linked.frame
    names = frame.name.take(linked.ops)
    used, position = names.used()
    by_name = np.array(
        [*(_is_compiled(names.values[code], rules) for code in used.tolist()), False]
    )
    chosen = by_name[position]
    for told in ("kernel_hash", "kernel_file"):
        if frame.table[told].null_count < frame.table.num_rows:
            chosen = chosen | (read_words(frame.table, told).codes[linked.ops] >= 0)
    if not chosen.any():
        return tables.COMPILED_CALLS.schema.empty_table()
    rows = linked.ops[chosen]
    columns = {
        name: read_words(frame.table, name).take(rows).each(plain).arrow()
        for name in tables.LAUNCHER_TEXTS
    }
    columns["gpu_grid"] = _grids(linked, rows, read_words(frame.table, "grid")).arrow()
    columns["trace_id"] = constant(trace_id, len(rows)).arrow()
    columns["event_id"] = pa.array(frame.event_id[rows])
    table = tables.COMPILED_CALLS
    return pa.table([columns[name] for name in table.names], schema=table.schema)


def _is_compiled(name: str, rules: OpCategories) -> bool:
    return parse_name(name) is not None or rules.family(name).startswith(_FAMILY)


def plain(text: str) -> str | None:
    """Return the text that a JSON text holds, a number as its digits; None for null."""
    if not text.startswith('"'):
        return None if text == "null" else text[:_LONGEST]
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value.encode("utf-8", "replace").decode()[:_LONGEST] if isinstance(value, str) else None


def _grids(linked: Linked, rows: Ints, grids: Words) -> Words:
    """Return the grid of the first kernel that each call launched itself, NULL if not known."""
    owner = places(rows, linked.owners.op_rows)
    has_grid = grids.codes[linked.activities] >= 0
    activity = np.flatnonzero((owner >= 0) & has_grid)
    start = linked.frame.start.values[linked.activities[activity]]
    order = activity[np.argsort(start, kind="stable")]
    first = np.full(len(rows), -1, dtype=np.int64)
    first[owner[order[::-1]]] = linked.activities[order[::-1]]
    code = pick(grids.codes.astype(np.int64), first)
    return Words(code.astype(np.int32), grids.values).each(plain)
