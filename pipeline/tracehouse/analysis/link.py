"""From the events of a trace to its ops, signatures, launches, annotations and kernels.

`link` finds which call launched each GPU activity, which op each call belongs to, how ops nest and
which step they are in. It works on numpy columns: Python code runs once per distinct word only.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehouse.analysis import gpu_time, link_tables
from tracehouse.analysis.columns import Ints, numbered, read_words
from tracehouse.analysis.frame import Frame, read_frame
from tracehouse.analysis.host import nest_rows
from tracehouse.analysis.launches import find_launches, find_owners
from tracehouse.analysis.link_tables import Linked
from tracehouse.analysis.signatures import signatures
from tracehouse.analysis.steps import step_rows
from tracehouse.compute.intervals import overlaps_earlier
from tracehouse.findings import Findings
from tracehouse.schema import tables
from tracehouse.vocab import GPU_CATEGORIES, Category


def link(frame: pa.Table, trace_id: str, *, findings: Findings) -> dict[str, pa.Table]:
    """Link and nest the events of one trace.

    `frame` has FRAME_SCHEMA, in ascending event_id. Returns the tables `ops`, `signatures`,
    `launches`, `annotations` and `kernels` as schema/tables.py defines them, in event order
    (signatures: in order of first use). What is odd is added to `findings`: NEST_TOLERANCE,
    CORRELATION_AMBIGUOUS, LAUNCH_SKEW, ORPHAN_KERNEL, GRAPH_REPLAY, NO_GPU_EVENTS, SHAPES_MISSING,
    STREAM_OVERLAP. Nothing in the events raises; an absent or contradictory link is NULL.

    Source: perf_models B2 to B4, field_cases E and F.
    """
    linked = _linked(read_frame(frame))
    texts = [read_words(frame, name).take(linked.ops) for name in tables.SIGNATURE_TEXTS]
    signature_ids, signature_table = signatures(texts, trace_id)
    noted = _Notes(linked.frame, findings)
    if not (texts[0].codes >= 0).any():
        noted.add("SHAPES_MISSING", linked.ops)
    _note_host(linked, noted)
    _note_gpu(linked, noted)
    return {
        "ops": link_tables.ops_table(linked, trace_id, signature_ids),
        "signatures": signature_table,
        "launches": link_tables.launches_table(linked, trace_id),
        "annotations": link_tables.annotations_table(linked, trace_id),
        "kernels": link_tables.kernels_table(linked, trace_id),
    }


def _linked(frame: Frame) -> Linked:
    ops, activities = frame.rows(Category.CPU_OP), frame.rows(*GPU_CATEGORIES)
    calls = frame.rows(Category.RUNTIME, Category.DRIVER)
    launches = find_launches(frame, ops, calls, activities)
    return Linked(
        frame=frame,
        ops=ops,
        activities=activities,
        steps=step_rows(frame),
        nesting=nest_rows(frame, ops),
        launches=launches,
        owners=find_owners(frame, ops, launches, activities),
    )


class _Notes:
    """Adds findings that concern rows of the frame."""

    def __init__(self, frame: Frame, findings: Findings) -> None:
        self._frame = frame
        self._findings = findings

    def add(self, code: str, rows: Ints) -> None:
        """Add `code` once for each of `rows`, with the first one as its example."""
        if len(rows):
            row = rows.min()
            name = self._frame.name
            example = name.values[name.codes[row]] if name.codes[row] >= 0 else None
            self._findings.add(code, len(rows), int(self._frame.event_id[row]), example)

    def add_once(self, code: str) -> None:
        """Add `code` for the trace as a whole."""
        self._findings.add(code)


def _note_host(linked: Linked, noted: _Notes) -> None:
    launches, nesting = linked.launches, linked.nesting
    started = gpu_time.counts(launches.launch, len(launches.rows))
    noted.add("NEST_TOLERANCE", linked.ops[nesting.by_place(nesting.overhang)])
    noted.add("GRAPH_REPLAY", launches.rows[launches.is_graph & (started > 1)])


def _note_gpu(linked: Linked, noted: _Notes) -> None:
    frame, rows, launches = linked.frame, linked.activities, linked.launches
    if not len(rows):
        noted.add_once("NO_GPU_EVENTS")
    noted.add("ORPHAN_KERNEL", rows[launches.launch < 0])
    ambiguous = rows[launches.ambiguous]
    _, first = np.unique(frame.correlation[ambiguous], return_index=True)
    noted.add("CORRELATION_AMBIGUOUS", ambiguous[first])
    is_linked = launches.launch >= 0
    kernels, calls = rows[is_linked], launches.rows[launches.launch[is_linked]]
    both_known = frame.start.known[kernels] & frame.start.known[calls]
    early = both_known & (frame.start.values[kernels] < frame.start.values[calls])
    noted.add("LAUNCH_SKEW", kernels[early])
    noted.add("STREAM_OVERLAP", _overlapping(frame, rows))


def _overlapping(frame: Frame, rows: Ints) -> Ints:
    """Return the GPU activities that start before an earlier one on their stream has ended."""
    rows = rows[(frame.device.known & frame.stream.known & frame.is_timed)[rows]]
    group = frame.rank[rows]
    for column in (frame.device, frame.stream):
        number, distinct = numbered(column.values[rows])
        group, _ = numbered(group * len(distinct) + number)
    order = np.lexsort((frame.start.values[rows], group))
    rows = rows[order]
    return rows[overlaps_earlier(group[order], frame.start.values[rows], frame.end[rows])]
