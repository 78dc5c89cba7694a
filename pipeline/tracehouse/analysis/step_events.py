"""Which events of a trace belong to some of its steps and can stand in a file of their own.

A *window* is the time from the start of the first of these steps to the end of the last, for the
process they are of. To it belong

- what starts in one of the steps on its thread, and all that starts in the window on the threads of
  the process outside any step: other threads at work, and the host between two steps;
- the GPU activities that all this launched, whenever they ran, and the ranges on the GPU around
  them;
- the op calls and plain annotations around those, and the Python frames open when the window
  begins: without them the nesting and the stacks would lack their roots;
- ends of flows on what belongs, if their other end does too;
- counters, and instants of the process, in the window; metadata; and what has no time.

Not to it belong: other steps, what is launched in them, GPU work whose launch was not recorded and
that is of no step, annotations that hold several steps (alone they could be taken for a step).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Mask,
    combination,
    distinct_rows,
    numbered,
    places,
    read_integers,
    read_words,
)
from tracehouse.analysis.step_belonging import Belonging
from tracehouse.analysis.step_clock import LATEST, Clock, ends_of, spans_of, spread_over
from tracehouse.vocab import GPU_CATEGORIES, Category, Role, canonical_category

FLOW_COLUMNS = ("event_id", "ph", "cat", "name", "pid", "tid", "ts_ns", "flow_id")

_GPU = {*GPU_CATEGORIES, Category.GPU_USER_ANNOTATION}
_CALLS = {Category.RUNTIME, Category.DRIVER}
_HOLDING = ("holds_steps", "in_dummy", "in_capture")


class StepEvents:
    """The events of one linked trace, asked for those of some steps.

    `frame` has FRAME_SCHEMA; `linked` are the tables of analysis.link; `flows` has FLOW_COLUMNS,
    the flow events in order.
    """

    def __init__(self, frame: pa.Table, linked: Mapping[str, pa.Table], flows: pa.Table) -> None:
        self.linked, self.flows = linked, flows
        self.event_id = read_integers(frame, "event_id").values
        self.pid, self.tid = read_words(frame, "pid"), read_words(frame, "tid")
        self.ts, self.dur = read_integers(frame, "ts_ns"), read_integers(frame, "dur_ns")
        self.correlation = read_integers(frame, "correlation")
        category, phase = read_words(frame, "cat"), read_words(frame, "ph")
        found = [canonical_category(word) for word in category.values]
        self.on_gpu = spread_over(category, [c in _GPU for c in found])
        self.is_call = spread_over(category, [c in _CALLS for c in found]) & ~self.on_gpu
        self.is_activity = spread_over(category, [c in GPU_CATEGORIES for c in found])
        self.is_end = spread_over(phase, [word == "E" for word in phase.values])
        self.step = np.full(len(self.event_id), -1, dtype=np.int64)
        for name in ("ops", "launches", "annotations", "kernels"):
            self.step[self._rows(linked[name], "event_id")] = _or_none(
                read_integers(linked[name], "step_id")
            )
        self.callers = frozenset(self.pid.values[c] for c in self.pid.take(self._host()).used()[0])

    def _host(self) -> Ints:
        return np.flatnonzero(~self.on_gpu)

    def _rows(self, table: pa.Table, column: str) -> Ints:
        """Return the rows of the frame that a column of event ids names, -1 for none."""
        return places(self.event_id, _or_none(read_integers(table, column)))

    def of(self, steps: Ints) -> Belonging:
        """Return what belongs to steps, given by their numbers."""
        wanted = np.zeros(max(int(self.step.max(initial=-1)), int(steps.max(initial=-1))) + 2, bool)
        wanted[steps] = True
        clock = self._clock(wanted)
        chosen = clock.holds(self.pid, self.tid, self.ts.values) & self.ts.known & ~self.on_gpu
        chosen &= ~self.is_end
        chosen = np.where(self.step >= 0, wanted[self.step], chosen)
        self._leave_out(chosen)
        self._add_gpu(chosen)
        self._add_around(chosen)
        spans = self.linked["spans"]
        begins, ends = self._rows(spans, "event_id"), self._rows(spans, "end_id")
        chosen[ends[(ends >= 0) & chosen[begins]]] = True
        ids = np.union1d(self.event_id[chosen], self._flows(chosen, clock))
        calls = np.unique(self.correlation.values[chosen & self.is_call & self.correlation.known])
        return Belonging(ids, clock, calls[calls > 0], self.callers)

    def _clock(self, wanted: Mask) -> Clock:
        notes = self.linked["annotations"]
        role = read_words(notes, "role")
        is_step = spread_over(role, [word == Role.STEP for word in role.values])
        is_span = is_step | spread_over(role, [word == Role.SUB_STEP for word in role.values])
        step, start = read_integers(notes, "step_id"), read_integers(notes, "ts_ns")
        rows = np.flatnonzero(is_span & step.known & start.known)
        process, thread = (read_words(notes, c).take(rows) for c in ("process", "thread"))
        begin = start.values[rows]
        end = ends_of(begin, read_integers(notes, "dur_ns").values[rows])
        is_chosen = wanted[step.values[rows]]
        windows: dict[str | None, tuple[int, int]] = {}
        for code in np.unique(process.codes).tolist():
            own = (process.codes == code) & is_chosen & is_step[rows]
            if own.any():
                word = process.values[code] if code >= 0 else None
                windows[word] = int(begin[own].min()), int(end[own].max())
        host = np.flatnonzero(process.codes >= 0)
        spans = spans_of(process.take(host), thread.take(host), begin[host], end[host])
        first, last = begin[is_chosen].min(initial=LATEST), end[is_chosen].max(initial=-LATEST)
        return Clock(windows, spans, is_chosen[host], int(first), int(last))

    def _leave_out(self, chosen: Mask) -> None:
        """Leave out the annotations that could be taken for a step in a file without the rest."""
        notes = self.linked["annotations"]
        why = read_words(notes, "why")
        holding = spread_over(why, [word in _HOLDING for word in why.values])
        rows = self._rows(notes, "event_id")[holding]
        chosen[rows[self.step[rows] < 0]] = False

    def _add_gpu(self, chosen: Mask) -> None:
        """Add what the chosen calls launched, the calls of what is chosen, and ranges around."""
        kernels = self.linked["kernels"]
        rows, calls = self._rows(kernels, "event_id"), self._rows(kernels, "launch_id")
        launched = (calls >= 0) & (self.step[rows] < 0)
        chosen[rows[launched]] |= chosen[calls[launched]]
        chosen[distinct_rows(calls[chosen[rows]])] = True
        notes = self.linked["annotations"]
        side, rule = read_words(notes, "side"), read_words(notes, "rule")
        is_plain = spread_over(side, [word == "gpu" for word in side.values]) & (rule.codes < 0)
        ranges = self._rows(notes, "event_id")[is_plain]
        if not len(ranges):
            return
        stream, _ = combination([self.pid, self.tid])
        own = rows[chosen[rows] & self.ts.known[rows]]
        order = own[np.lexsort((self.ts.values[own], stream[own]))]
        # Both sorted by stream and time: some activity starts in a range if the counts differ.
        begin = _count_before(stream, self.ts.values, order, ranges, self.ts.values[ranges])
        end = ends_of(self.ts.values[ranges], self.dur.values[ranges])
        chosen[ranges[_count_before(stream, self.ts.values, order, ranges, end) > begin]] = True

    def _add_around(self, chosen: Mask) -> None:
        """Add the ops that own chosen work, and the ops and plain annotations around the chosen."""
        for name in ("launches", "kernels"):
            rows, ops = (self._rows(self.linked[name], c) for c in ("event_id", "op_id"))
            chosen[distinct_rows(ops[chosen[rows]])] = True
        rule = read_words(self.linked["annotations"], "rule")
        for name, is_plain in (("ops", None), ("annotations", rule.codes < 0)):
            rows, parents = (self._rows(self.linked[name], c) for c in ("event_id", "parent_id"))
            parent = np.full(len(chosen) + 1, -1, dtype=np.int64)
            parent[rows] = parents
            may = np.ones(len(chosen) + 1, np.bool_)
            if is_plain is not None:
                may[rows] = is_plain
            inner = rows[chosen[rows] & ~self.on_gpu[rows]]
            while len(inner := distinct_rows(parent[inner])):
                chosen[inner[may[inner]]] = True

    def _flows(self, chosen: Mask, clock: Clock) -> Ints:
        """Return the event ids of the ends of flows that belong."""
        flows = self.flows
        if not flows.num_rows:
            return np.empty(0, dtype=np.int64)
        pid, tid, phase = (read_words(flows, name) for name in ("pid", "tid", "ph"))
        at = read_integers(flows, "ts_ns")
        gpu = np.flatnonzero(self.is_activity & self.ts.known)
        begin = self.ts.values[gpu]
        end = ends_of(begin, np.maximum(self.dur.values[gpu], 1))
        streams = spans_of(self.pid.take(gpu), self.tid.take(gpu), begin, end)
        group = streams.groups(pid, tid)
        on_gpu = np.append(chosen[gpu], False)[streams.around(group, at.values)]
        on_host = clock.holds(pid, tid, at.values)
        is_here = np.where(group >= 0, on_gpu, on_host) & at.known
        is_start = spread_over(phase, [word == "s" for word in phase.values])
        key = _flow_keys(flows)
        # An end stays if one of its other ends does, or if it never had one.
        other_here = _any(key, is_here & is_start), _any(key, is_here & ~is_start)
        other_any = _any(key, is_start), _any(key, ~is_start)
        has_other = np.where(is_start, other_here[1][key], other_here[0][key])
        is_alone = ~np.where(is_start, other_any[1][key], other_any[0][key])
        keep = is_here & (has_other | is_alone)
        return read_integers(flows, "event_id").values[keep]


def _or_none(column: Integers) -> Ints:
    return np.where(column.known, column.values, -1)


def _count_before(stream: Ints, ts: Ints, order: Ints, rows: Ints, at: Ints) -> Ints:
    """Count the rows `order`, sorted by stream and start, that precede a moment on a stream."""
    both = np.concatenate([order, rows])
    is_moment = np.concatenate([np.zeros(len(order), np.int64), np.ones(len(rows), np.int64)])
    time = np.concatenate([ts[order], at])
    by_time = np.lexsort((-is_moment, time, stream[both]))
    counts = np.empty(len(both), dtype=np.int64)
    counts[by_time] = np.cumsum(is_moment[by_time] == 0)
    return counts[len(order) :]


def _flow_keys(flows: pa.Table) -> Ints:
    """Number the flows: category, name and id; one without an id is a flow of its own."""
    kind, _ = combination([read_words(flows, "cat"), read_words(flows, "name")])
    ids = read_integers(flows, "flow_id")
    number, distinct = numbered(ids.values)
    key, _ = numbered(kind * (len(distinct) + 1) + number)
    lone = np.flatnonzero(~ids.known)
    key[lone] = key.max(initial=-1) + 1 + np.arange(len(lone))
    return key


def _any(key: Ints, mask: Mask) -> Mask:
    """Return for each key whether any of its rows is in the mask."""
    result = np.zeros(int(key.max(initial=-1)) + 1, np.bool_)
    result[key[mask]] = True
    return result
