"""Begin and end events: each pair is one span of its thread (field_cases F30)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Mask,
    Words,
    constant,
    pick,
    read_integers,
    read_words,
)
from tracehouse.compute.pairing import pair_ends
from tracehouse.findings import Findings
from tracehouse.schema import tables
from tracehouse.spill import Spill
from tracehouse.vocab import HOST_CATEGORIES, canonical_category

_BEGIN, _END = "B", "E"


def pair_spans(
    frame: pa.Table, trace_id: str, *, findings: Findings, spill: Spill
) -> tuple[pa.Table, pa.Table]:
    """Pair the begin and end events of a frame.

    Returns the frame with complete events alone, and the table `spans`. A pair whose category is
    analysed on the host becomes a complete event of the frame; one on the GPU never does, so that
    it is in no busy time. SPAN_UNPAIRED counts begins that are never closed and ends that close
    nothing. The duration is NULL where it is unknown or passes the range of int64.
    """
    phase = read_words(frame, "ph")
    is_begin, is_end = _is(phase, _BEGIN), _is(phase, _END)
    rows = np.flatnonzero(is_begin | is_end)
    if not len(rows):
        return frame, tables.SPANS.schema.empty_table()
    pid, tid = read_words(frame, "pid").take(rows), read_words(frame, "tid").take(rows)
    times = read_integers(frame, "ts_ns").take(rows)
    thread = pid.codes.astype(np.int64) * (len(tid.values) + 1) + tid.codes
    at = _placed(times, thread)
    order = np.lexsort((at, thread))
    partner = np.empty(len(rows), dtype=np.int64)
    partner[order] = pick(order, pair_ends(thread[order], is_begin[rows[order]]))
    length = np.where(partner >= 0, at[partner] - at, 0)
    both_known = (partner >= 0) & times.known & times.known[partner]
    dur = Integers(length, both_known & (length >= 0))
    unpaired = np.flatnonzero(partner < 0)
    event_id = read_integers(frame, "event_id").values
    if len(unpaired):
        findings.add("SPAN_UNPAIRED", len(unpaired), int(event_id[rows[unpaired[0]]]))
    begins = np.flatnonzero(is_begin[rows])
    closed = Integers(pick(event_id[rows], partner[begins]), partner[begins] >= 0)
    spans = _table(frame.take(rows[begins]), trace_id, closed, dur.take(begins))
    complete = ~(is_begin | is_end)
    return _completed(frame, complete, rows[begins], dur.take(begins), spill), spill.table(spans)


def _placed(times: Integers, thread: Ints) -> Ints:
    """Return the times; an event without one has that of the event before it on its thread."""
    if times.known.all():
        return times.values
    order = np.argsort(thread, kind="stable")
    is_first = np.diff(thread[order], prepend=thread[order[0]] - 1) != 0
    told = np.where(times.known[order] | is_first, np.arange(len(order)), 0)
    placed = np.empty_like(times.values)
    filled = np.where(times.known, times.values, np.iinfo(np.int64).min)[order]
    placed[order] = filled[np.maximum.accumulate(told)]
    return placed


def _is(words: Words, word: str) -> Mask:
    return words.codes == words.values.index(word) if word in words.values else words.codes < -1


def _completed(
    frame: pa.Table, complete: Mask, begins: Ints, dur: Integers, spill: Spill
) -> pa.Table:
    """Return the complete events, and the begins of an analysed host category as such events."""
    cat = read_words(frame, "cat")
    is_host = np.array([*(canonical_category(w) in HOST_CATEGORIES for w in cat.values), False])
    has_start = read_integers(frame, "ts_ns").known[begins]  # without one it is no op (F28)
    is_op = is_host[cat.codes[begins]] & has_start
    recorded = read_integers(frame, "dur_ns")
    lengths = Integers(recorded.values.copy(), recorded.known.copy())
    lengths.values[begins], lengths.known[begins] = dur.values, dur.known
    keep = complete.copy()
    keep[begins[is_op]] = True
    column = frame.schema.get_field_index("dur_ns")
    frame = frame.set_column(column, frame.schema.field(column), lengths.arrow())
    kept = [spill.chunks(values.filter(pa.array(keep))) for values in frame.columns]
    return pa.Table.from_arrays(kept, schema=frame.schema)


def _table(begins: pa.Table, trace_id: str, end_id: Integers, dur: Integers) -> pa.Table:
    columns = {
        "trace_id": constant(trace_id, begins.num_rows).arrow(),
        "end_id": end_id.arrow(),
        "process": begins["pid"],
        "thread": begins["tid"],
        "dur_ns": dur.arrow(),
    } | {name: begins[name] for name in ("event_id", "name", "cat", "ts_ns")}
    return pa.table([columns[n] for n in tables.SPANS.names], schema=tables.SPANS.schema)
