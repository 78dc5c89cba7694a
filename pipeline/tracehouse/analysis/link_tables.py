"""The tables of a linked trace, one function each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis import gpu_names, gpu_time
from tracehouse.analysis.clocks import are_apart
from tracehouse.analysis.collectives import collectives
from tracehouse.analysis.columns import (
    Columns,
    Integers,
    Ints,
    Mask,
    Words,
    constant,
    numbered,
    pick,
    places,
    spread,
    table_of,
)
from tracehouse.analysis.frame import CATEGORIES, Frame
from tracehouse.analysis.host import Nesting, nest_rows
from tracehouse.analysis.launches import LINKS, UNLINKED, Launches, Owners
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.analysis.steps import Steps
from tracehouse.schema import tables
from tracehouse.vocab import Kind

_UNKNOWN_START = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Linked:
    """The rows of one trace by what they are, and what links them. Rows are rows of the frame."""

    frame: Frame  # with the times that count
    recorded_dur: Integers  # durations of the frame's rows as they stood
    ops: Ints
    activities: Ints
    steps: Steps
    nesting: Nesting  # of the ops
    launches: Launches
    owners: Owners
    of_graph: Mask  # of the activities
    why_unlinked: Ints  # of the activities: position in UNLINKED, -1 where linked
    activity_steps: Ints  # number of the step of each activity, -1 for none
    has_one_clock: bool  # whether GPU and host times can be compared


def ops_table(
    linked: Linked, trace_id: str, signature_ids: Integers, rules: OpCategories
) -> pa.Table:
    """Make the table `ops`; `signature_ids` are those of the ops, `rules` give their categories."""
    frame, rows, nesting, activities = linked.frame, linked.ops, linked.nesting, linked.activities
    own = places(rows, linked.owners.op_rows)
    below = places(rows, linked.owners.above_rows)

    def columns() -> Columns:
        yield from _event_columns(frame, rows, trace_id)
        yield from _thread_columns(frame, rows)
        yield "parent_id", frame.events(pick(rows, nesting.parent_places())).arrow()
        yield "depth", pa.array(nesting.by_place(nesting.depth))
        yield "category", frame.name.take(rows).each(rules.category).arrow()
        yield "signature_id", signature_ids.arrow()
        yield "step_id", _numbers(linked.steps.of_calls(rows))
        yield "self_ns", _self_times(linked).arrow()
        yield "external_id", frame.integers("external_id", rows).arrow()
        yield "sequence_number", frame.integers("sequence_number", rows).arrow()
        yield "kernel_count", pa.array(gpu_time.subtree_counts(nesting, below))
        yield "kernel_time_ns", pa.array(gpu_time.subtree_unions(frame, activities, nesting, below))
        yield "direct_kernel_count", pa.array(gpu_time.counts(own, len(rows)))
        yield "direct_kernel_time_ns", pa.array(gpu_time.unions(frame, activities, own, len(rows)))
        yield "origin", constant("trace", len(rows)).arrow()

    return table_of(tables.OPS, columns(), frame.spill)


def _self_times(linked: Linked) -> Integers:
    nesting = linked.nesting
    return Integers(nesting.by_place(nesting.self_ns), linked.frame.is_timed[linked.ops])


def launches_table(linked: Linked, trace_id: str) -> pa.Table:
    """Make the table `launches`."""
    frame, found, rows = linked.frame, linked.launches, linked.launches.rows
    without_op = np.where(linked.owners.op_rows < 0, found.launch, -1)

    def columns() -> Columns:
        yield from _event_columns(frame, rows, trace_id)
        yield from _thread_columns(frame, rows)
        yield "correlation", frame.integers("correlation", rows).arrow()
        yield "op_id", frame.events(found.op_rows).arrow()
        yield "step_id", _numbers(linked.steps.of_calls(rows))
        yield "kernel_count", pa.array(gpu_time.counts(found.launch, len(rows)))
        times = gpu_time.unions(frame, linked.activities, found.launch, len(rows))
        yield "kernel_time_ns", pa.array(times)
        yield "is_graph", pa.array(found.is_graph)
        yield "delay_ns", _delays(linked).arrow()
        yield "direct_kernel_count", pa.array(gpu_time.counts(without_op, len(rows)))
        times = gpu_time.unions(frame, linked.activities, without_op, len(rows))
        yield "direct_kernel_time_ns", pa.array(times)
        yield "capture", _nothing(len(rows))
        yield "capture_size", pa.nulls(len(rows), pa.int64())
        yield "why_no_capture", _nothing(len(rows))

    return table_of(tables.LAUNCHES, columns(), frame.spill)


def _delays(linked: Linked) -> Integers:
    """Return start of the call to start of its first GPU activity.

    NULL where one is unknown, or the two clocks are not one (field_cases F43), be it for this one
    launch alone.
    """
    frame, found = linked.frame, linked.launches
    keep = (found.launch >= 0) & frame.start.known[linked.activities]
    first = np.full(len(found.rows), _UNKNOWN_START)
    np.minimum.at(first, found.launch[keep], frame.start.values[linked.activities[keep]])
    known = (first != _UNKNOWN_START) & frame.start.known[found.rows] & linked.has_one_clock
    start = frame.start.values[found.rows]
    return Integers(first - start, known & ~are_apart(first, start))


def annotations_table(linked: Linked, trace_id: str) -> pa.Table:
    """Make the table `annotations`, of both sides."""
    frame, steps = linked.frame, linked.steps
    rows, on_gpu = steps.rows, steps.on_gpu
    parents = np.full(len(rows), -1, dtype=np.int64)
    for side in (rows[~on_gpu], rows[on_gpu]):
        parents[places(rows, side)] = pick(side, nest_rows(frame, side).parent_places())
    count, own = len(steps.kept), np.full(len(rows), -1, dtype=np.int64)
    own[places(rows, steps.kept)] = np.arange(count)
    kernel_count = gpu_time.counts(linked.activity_steps, count)
    kernel_time = gpu_time.unions(frame, linked.activities, linked.activity_steps, count)

    def columns() -> Columns:
        yield from _event_columns(frame, rows, trace_id)
        for name, words in _thread(frame):
            yield name, _where(~on_gpu, words.take(rows)).arrow()
        yield "side", Words(on_gpu.astype(np.int32), ["cpu", "gpu"]).arrow()
        yield "device", frame.device.take(rows).where(on_gpu).arrow()
        yield "stream", frame.stream.take(rows).where(on_gpu).arrow()
        yield "parent_id", frame.events(parents).arrow()
        yield "role", steps.role.arrow()
        yield "why", steps.why.arrow()
        yield "step_id", _numbers(steps.step)
        yield "rule", steps.rule.arrow()
        yield "fields", steps.fields.arrow()
        yield "numbers", steps.numbers
        yield "kernel_count", _numbers(pick(kernel_count, own))
        yield "kernel_time_ns", _numbers(pick(kernel_time, own))

    return table_of(tables.ANNOTATIONS, columns(), frame.spill)


def kernels_table(linked: Linked, trace_id: str) -> pa.Table:
    """Make the table `kernels`."""
    frame, rows, owners = linked.frame, linked.activities, linked.owners
    frame.spill.settle()
    calls = pick(linked.launches.rows, linked.launches.launch)
    category = Words(frame.category[rows].astype(np.int32), list(CATEGORIES))
    kinds = _kinds(category, frame.name.take(rows))
    is_comm = np.array([*(kind == Kind.COMM for kind in kinds.values), False])[kinds.codes]

    def columns() -> Columns:
        yield from _event_columns(frame, rows, trace_id)
        yield "rank_label", frame.rank_labels(rows).arrow()
        yield "device", frame.device.take(rows).arrow()
        yield "stream", frame.stream.take(rows).arrow()
        yield "category", category.arrow()
        yield "kind", kinds.arrow()
        stated = collectives(frame, linked.ops, linked.launches, rows)
        yield "collective", _where(is_comm, stated).arrow()
        yield "short_name", frame.name.take(rows).each(gpu_names.short_name).arrow()
        yield "raw_dur_ns", _other_durations(linked).arrow()
        yield "correlation", frame.integers("correlation", rows).arrow()
        yield "launch_id", frame.events(calls).arrow()
        yield "op_id", frame.events(owners.op_rows).arrow()
        yield "step_id", _numbers(linked.activity_steps)
        yield "graph", pa.array(linked.of_graph)
        graph = frame.integers("graph_id", rows)
        yield "graph_id", graph.where(graph.values != 0).arrow()
        node = frame.integers("graph_node_id", rows)
        yield "graph_node_id", node.where(node.values != 0).arrow()
        yield "bytes", frame.integers("bytes", rows).arrow()
        yield "link", Words(owners.link.astype(np.int32), list(LINKS)).arrow()
        yield "why_unlinked", Words(linked.why_unlinked.astype(np.int32), list(UNLINKED)).arrow()
        yield "graft", _nothing(len(rows))

    return table_of(tables.KERNELS, columns(), frame.spill)


def _nothing(size: int) -> pa.Array:
    """Return a column of words that `graft` fills where there are captures."""
    return Words(np.full(size, -1, dtype=np.int32), []).arrow()


def _numbers(values: Ints) -> pa.Array:
    """Return a column of numbers of which -1 is none."""
    return Integers(values, values >= 0).arrow()


def _other_durations(linked: Linked) -> Integers:
    """Return the recorded durations of the activities, NULL where they are those that count."""
    recorded = linked.recorded_dur.take(linked.activities)
    counting = linked.frame.dur.take(linked.activities)
    return recorded.where(~counting.known | (counting.values != recorded.values))


def _kinds(category: Words, name: Words) -> Words:
    """Return the kind of each GPU activity, asked for once per distinct category and name."""
    names = [*name.values, ""]  # code -1, no name, is the last
    codes = name.codes % len(names)
    number, distinct = numbered(category.codes.astype(np.int64) * len(names) + codes)
    kinds = [
        gpu_names.kind_of(CATEGORIES[pair // len(names)], names[pair % len(names)])
        for pair in distinct.tolist()
    ]
    return spread(number.astype(np.int32), kinds)


def _thread(frame: Frame) -> tuple[tuple[str, Words], tuple[str, Words]]:
    return ("process", frame.pid), ("thread", frame.tid)


def _thread_columns(frame: Frame, rows: Ints) -> Columns:
    for name, words in _thread(frame):
        yield name, words.take(rows).arrow()


def _event_columns(frame: Frame, rows: Ints, trace_id: str) -> Columns:
    """Make the columns that every table of events has."""
    yield "trace_id", constant(trace_id, len(rows)).arrow()
    yield "event_id", pa.array(frame.event_id[rows])
    yield "name", frame.name.take(rows).arrow()
    yield "ts_ns", frame.start.take(rows).arrow()
    yield "dur_ns", frame.dur.take(rows).arrow()


def _where(condition: Mask, words: Words) -> Words:
    """Return the words with NULL where the condition fails."""
    return Words(np.where(condition, words.codes, -1).astype(np.int32), words.values)
