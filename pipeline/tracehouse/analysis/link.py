"""From the events of a trace to its ops, signatures, launches, annotations and kernels.

`link` finds which call launched each GPU activity, which op each call belongs to, how ops nest and
which step they are in. It works on numpy columns: Python code runs once per distinct word only.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehouse.analysis import gpu_time, link_tables
from tracehouse.analysis.clocks import (
    are_apart,
    clocks_differ,
    overlapping,
    without_clock,
    without_overflow,
)
from tracehouse.analysis.columns import Ints, Words, pick, read_words
from tracehouse.analysis.compiled_calls import compiled_calls
from tracehouse.analysis.frame import CATEGORIES, Frame, read_frame
from tracehouse.analysis.gpu_names import says_nothing
from tracehouse.analysis.host import nest_rows
from tracehouse.analysis.launches import find_launches, find_owners, in_graph, why_unlinked
from tracehouse.analysis.link_tables import Linked
from tracehouse.analysis.op_categories import OpCategories, load
from tracehouse.analysis.signatures import signatures, with_extra_inputs
from tracehouse.analysis.spans import pair_spans
from tracehouse.analysis.step_grammars import Grammars
from tracehouse.analysis.step_grammars import load as load_grammars
from tracehouse.analysis.steps import find_steps
from tracehouse.findings import Findings
from tracehouse.schema import tables
from tracehouse.spill import Spill
from tracehouse.vocab import GPU_CATEGORIES, Category, canonical_category


def link(
    frame: pa.Table,
    trace_id: str,
    *,
    findings: Findings,
    rules: OpCategories | None = None,
    grammars: Grammars | None = None,
    spill: Spill | None = None,
) -> dict[str, pa.Table]:
    """Link and nest the events of one trace.

    `frame` has FRAME_SCHEMA, in ascending event_id. `rules`: the categories of ops, `grammars`:
    those of steps; None for what comes with Tracehouse. `spill`: where columns go, if not into
    memory. Returns the tables `ops`, `signatures`,
    `launches`, `annotations`, `kernels`, `spans` and `compiled_calls` as schema/tables.py defines
    them, in event order (signatures: in order of first use). What is odd is added to `findings`.
    Nothing in the events raises; an absent or contradictory link is NULL.

    Source: perf_models B2 to B4, field_cases D to H.
    """
    spill = Spill() if spill is None else spill
    frame, spans = pair_spans(frame, trace_id, findings=findings, spill=spill)
    read = read_frame(frame, spill)
    noted = _Notes(read, findings)
    linked = _linked(read, noted, grammars or load_grammars())
    texts = [read_words(frame, n).take(linked.ops).kept(spill) for n in tables.SIGNATURE_TEXTS]
    signature_ids, signature_table = signatures(texts, trace_id)
    signature_ids = signature_ids.kept(spill)
    _note_host(linked, texts, noted)
    noted.add("ARGS_EXTRA", linked.ops[with_extra_inputs(signature_ids, signature_table)])
    _note_gpu(linked, noted)
    rules = rules or load()
    return {
        "ops": link_tables.ops_table(linked, trace_id, signature_ids, rules),
        "signatures": signature_table,
        "launches": link_tables.launches_table(linked, trace_id),
        "annotations": link_tables.annotations_table(linked, trace_id),
        "kernels": link_tables.kernels_table(linked, trace_id),
        "spans": spans,
        "compiled_calls": compiled_calls(linked, trace_id, rules),
    }


def _linked(recorded: Frame, noted: _Notes, grammars: Grammars) -> Linked:
    ops = recorded.spill.array(recorded.rows(Category.CPU_OP))
    activities = recorded.spill.array(recorded.rows(*GPU_CATEGORIES))
    calls = recorded.rows(Category.RUNTIME, Category.DRIVER)
    frame, zero = without_clock(recorded, activities)
    noted.add("CLOCK_ZERO", zero)
    launches = find_launches(frame, ops, calls, activities)
    of_graph = in_graph(frame, launches, activities)
    frame, clipped = without_overflow(frame, activities, of_graph)
    noted.add("DUR_OVERFLOW", clipped)
    is_apart = clocks_differ(frame, np.concatenate([ops, calls]), activities)
    if is_apart:
        noted.add("CLOCK_DOMAIN", activities[:1])
    owners = find_owners(frame, ops, launches, activities, of_graph)
    steps = find_steps(frame, grammars, has_one_clock=not is_apart)
    noted.add("STEP_NESTED", steps.again)
    noted.add("STEP_UNPARSED", steps.kept[steps.is_unparsed])
    calling = pick(launches.rows, launches.launch)
    return Linked(
        frame=frame,
        recorded_dur=recorded.dur,
        ops=ops,
        activities=activities,
        steps=steps,
        nesting=nest_rows(frame, ops),
        launches=launches,
        owners=owners,
        of_graph=of_graph,
        why_unlinked=why_unlinked(frame, calls, launches, owners, activities),
        activity_steps=steps.of_activities(
            activities, np.where(calling >= 0, calling, owners.above_rows), calling >= 0
        ),
        has_one_clock=not is_apart,
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

    def add_once(self, code: str, example: str | None = None) -> None:
        """Add `code` for the trace as a whole."""
        self._findings.add(code, example=example)

    def add_without_gpu(self) -> None:
        """Add NO_GPU_EVENTS, unless there are no events at all."""
        if "NO_EVENTS" not in self._findings:
            self._findings.add("NO_GPU_EVENTS")


def _note_host(linked: Linked, texts: list[Words], noted: _Notes) -> None:
    launches, nesting = linked.launches, linked.nesting
    if not (texts[0].codes >= 0).any():
        noted.add("SHAPES_MISSING", linked.ops)
    started = gpu_time.counts(launches.launch, len(launches.rows))
    noted.add("NEST_TOLERANCE", linked.ops[nesting.by_place(nesting.overhang)])
    noted.add("GRAPH_REPLAY", launches.rows[launches.is_graph & (started > 1)])


def _note_gpu(linked: Linked, noted: _Notes) -> None:
    frame, rows, launches = linked.frame, linked.activities, linked.launches
    frame.spill.settle()
    if not len(rows):
        noted.add_without_gpu()
    _note_names(frame, rows, noted)
    if len(frame.ranks) > 1:
        noted.add_once("RANKS_MERGED", ", ".join(frame.ranks))
    has_no_op = (linked.owners.op_rows < 0) & ~linked.of_graph
    noted.add("ORPHAN_KERNEL", rows[(launches.launch < 0) | has_no_op])
    ambiguous = rows[launches.ambiguous]
    _, first = np.unique(frame.correlation[ambiguous], return_index=True)
    noted.add("CORRELATION_AMBIGUOUS", ambiguous[first])
    noted.add("STREAM_OVERLAP", overlapping(frame, rows))
    if linked.has_one_clock:
        is_linked = launches.launch >= 0
        kernels, calls = rows[is_linked], launches.rows[launches.launch[is_linked]]
        both_known = frame.start.known[kernels] & frame.start.known[calls]
        begun, called = frame.start.values[kernels], frame.start.values[calls]
        is_apart = are_apart(begun, called)
        noted.add("LAUNCH_SKEW", kernels[both_known & (begun < called) & ~is_apart])
        noted.add("CLOCK_DOMAIN", kernels[both_known & is_apart][:1])


def _note_names(frame: Frame, rows: Ints, noted: _Notes) -> None:
    """Note names that say nothing, and copies and fills that are filed as kernels."""
    used, position = frame.name.take(rows).used()
    empty = np.array([*(says_nothing(frame.name.values[code]) for code in used), True])
    noted.add("NAME_UNKNOWN", rows[empty[position]])
    cat = read_words(frame.table, "cat")
    kernel = [canonical_category(word) is Category.KERNEL for word in cat.values]
    filed = np.array([*kernel, False])[cat.codes[rows]]
    is_kernel = frame.category[rows] == CATEGORIES.index(Category.KERNEL)
    noted.add("RECLASSIFIED", rows[filed & ~is_kernel])
