"""The tables of a linked trace, one function each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis import gpu_names, gpu_time
from tracehouse.analysis.clocks import are_apart
from tracehouse.analysis.collectives import collectives
from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Mask,
    Words,
    constant,
    numbered,
    pick,
    places,
    spread,
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
    self_ns = Integers(nesting.by_place(nesting.self_ns), frame.is_timed[rows])
    return _table(
        tables.OPS,
        _event_columns(frame, rows, trace_id)
        | _thread_columns(frame, rows)
        | {
            "parent_id": frame.events(pick(rows, nesting.parent_places())).arrow(),
            "depth": nesting.by_place(nesting.depth),
            "category": frame.name.take(rows).each(rules.category).arrow(),
            "signature_id": signature_ids.arrow(),
            "step_id": _numbers(linked.steps.of_calls(rows)),
            "self_ns": self_ns.arrow(),
            "external_id": frame.integers("external_id", rows).arrow(),
            "sequence_number": frame.integers("sequence_number", rows).arrow(),
            "kernel_count": gpu_time.subtree_counts(nesting, below),
            "kernel_time_ns": gpu_time.subtree_unions(frame, activities, nesting, below),
            "direct_kernel_count": gpu_time.counts(own, len(rows)),
            "direct_kernel_time_ns": gpu_time.unions(frame, activities, own, len(rows)),
            "origin": constant("trace", len(rows)).arrow(),
        },
    )


def launches_table(linked: Linked, trace_id: str) -> pa.Table:
    """Make the table `launches`."""
    frame, found, rows = linked.frame, linked.launches, linked.launches.rows
    without_op = np.where(linked.owners.op_rows < 0, found.launch, -1)
    return _table(
        tables.LAUNCHES,
        _event_columns(frame, rows, trace_id)
        | _thread_columns(frame, rows)
        | {
            "correlation": frame.integers("correlation", rows).arrow(),
            "op_id": frame.events(found.op_rows).arrow(),
            "step_id": _numbers(linked.steps.of_calls(rows)),
            "kernel_count": gpu_time.counts(found.launch, len(rows)),
            "kernel_time_ns": gpu_time.unions(frame, linked.activities, found.launch, len(rows)),
            "is_graph": found.is_graph,
            "delay_ns": _delays(linked).arrow(),
            "direct_kernel_count": gpu_time.counts(without_op, len(rows)),
            "direct_kernel_time_ns": gpu_time.unions(
                frame, linked.activities, without_op, len(rows)
            ),
            "capture": _nothing(len(rows)),
            "capture_size": pa.nulls(len(rows), pa.int64()),
            "why_no_capture": _nothing(len(rows)),
        },
    )


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
    host = {name: _where(~on_gpu, words.take(rows)).arrow() for name, words in _thread(frame)}
    count, own = len(steps.kept), np.full(len(rows), -1, dtype=np.int64)
    own[places(rows, steps.kept)] = np.arange(count)
    kernel_count = gpu_time.counts(linked.activity_steps, count)
    kernel_time = gpu_time.unions(frame, linked.activities, linked.activity_steps, count)
    return _table(
        tables.ANNOTATIONS,
        _event_columns(frame, rows, trace_id)
        | host
        | {
            "side": Words(on_gpu.astype(np.int32), ["cpu", "gpu"]).arrow(),
            "device": frame.device.take(rows).where(on_gpu).arrow(),
            "stream": frame.stream.take(rows).where(on_gpu).arrow(),
            "parent_id": frame.events(parents).arrow(),
            "role": steps.role.arrow(),
            "why": steps.why.arrow(),
            "step_id": _numbers(steps.step),
            "rule": steps.rule.arrow(),
            "fields": steps.fields.arrow(),
            "numbers": steps.numbers,
            "kernel_count": _numbers(pick(kernel_count, own)),
            "kernel_time_ns": _numbers(pick(kernel_time, own)),
        },
    )


def kernels_table(linked: Linked, trace_id: str) -> pa.Table:
    """Make the table `kernels`."""
    frame, rows, owners = linked.frame, linked.activities, linked.owners
    calls = pick(linked.launches.rows, linked.launches.launch)
    node, graph = frame.integers("graph_node_id", rows), frame.integers("graph_id", rows)
    category = Words(frame.category[rows].astype(np.int32), list(CATEGORIES))
    kinds = _kinds(category, frame.name.take(rows))
    is_comm = np.array([*(kind == Kind.COMM for kind in kinds.values), False])[kinds.codes]
    stated = collectives(frame, linked.ops, linked.launches, rows)
    return _table(
        tables.KERNELS,
        _event_columns(frame, rows, trace_id)
        | {
            "rank_label": frame.rank_labels(rows).arrow(),
            "device": frame.device.take(rows).arrow(),
            "stream": frame.stream.take(rows).arrow(),
            "category": category.arrow(),
            "kind": kinds.arrow(),
            "collective": _where(is_comm, stated).arrow(),
            "short_name": frame.name.take(rows).each(gpu_names.short_name).arrow(),
            "raw_dur_ns": _other_durations(linked).arrow(),
            "correlation": frame.integers("correlation", rows).arrow(),
            "launch_id": frame.events(calls).arrow(),
            "op_id": frame.events(owners.op_rows).arrow(),
            "step_id": _numbers(linked.activity_steps),
            "graph": linked.of_graph,
            "graph_id": graph.where(graph.values != 0).arrow(),
            "graph_node_id": node.where(node.values != 0).arrow(),
            "bytes": frame.integers("bytes", rows).arrow(),
            "link": Words(owners.link.astype(np.int32), list(LINKS)).arrow(),
            "why_unlinked": Words(linked.why_unlinked.astype(np.int32), list(UNLINKED)).arrow(),
            "graft": _nothing(len(rows)),
        },
    )


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


def _thread_columns(frame: Frame, rows: Ints) -> dict[str, pa.Array]:
    return {name: words.take(rows).arrow() for name, words in _thread(frame)}


def _event_columns(frame: Frame, rows: Ints, trace_id: str) -> dict[str, pa.Array]:
    """Return the columns that every table of events has."""
    return {
        "trace_id": constant(trace_id, len(rows)).arrow(),
        "event_id": pa.array(frame.event_id[rows]),
        "name": frame.name.take(rows).arrow(),
        "ts_ns": frame.start.take(rows).arrow(),
        "dur_ns": frame.dur.take(rows).arrow(),
    }


def _where(condition: Mask, words: Words) -> Words:
    """Return the words with NULL where the condition fails."""
    return Words(np.where(condition, words.codes, -1).astype(np.int32), words.values)


def _table(table: tables.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """Put the columns into the order and the types of the table's definition."""
    return pa.table([columns[name] for name in table.names], schema=table.schema)
