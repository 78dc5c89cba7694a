"""Times of GPU activities that cannot be true: no clock, another clock, a length that overflowed.

Each function returns the frame with the times that count; the rows are rows of the frame.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracehouse.analysis.columns import Integers, Ints, Mask, numbered
from tracehouse.analysis.frame import Frame
from tracehouse.compute.intervals import clip_overflow, overlaps_earlier

_RELATIVE_NS = 10**9 * 1_000  # a trace in which all GPU starts lie above is no relative one (F39)
_OVERFLOW_NS = 1_000_000  # how far an activity may run over the next one's start (F45)
_APART_NS = 3_600 * 10**9  # two ranges further apart are on two clocks (F43)
_FAR_APART_NS = 24 * _APART_NS  # no launch waits for so long


def without_clock(frame: Frame, activities: Ints) -> tuple[Frame, Ints]:
    """Make the times NULL of the activities that have none: start 0 (field_cases F39).

    A start of 0 is none where the duration is 0 too, or where all other activities start above
    10^9 µs: in a relative trace 0 is a fine start. Returns those rows too.
    """
    start, dur = frame.start, frame.dur
    at_zero = start.known[activities] & (start.values[activities] == 0)
    if not at_zero.any():
        return frame, activities[:0]
    zero, others = activities[at_zero], activities[~at_zero & start.known[activities]]
    is_absolute = len(others) > 0 and start.values[others].min() > _RELATIVE_NS
    rows = zero if is_absolute else zero[dur.known[zero] & (dur.values[zero] == 0)]
    known = np.ones(len(start.known), dtype=np.bool_)
    known[rows] = False
    ends = np.where(known, frame.end, 0)
    timed = frame.is_timed & known
    return replace(
        frame, start=start.where(known), dur=dur.where(known), end=ends, is_timed=timed
    ), rows


def without_overflow(frame: Frame, activities: Ints, exempt: Mask) -> tuple[Frame, Ints]:
    """Clip the activities that run far over later work of their own stream (field_cases F45).

    `exempt` (m,) are the activities of graphs, whose branches may run side by side. Returns those
    rows too, ascending.
    """
    frame.spill.settle()
    rows, group, places = by_stream(frame, activities)
    start, end = frame.start.values[rows], frame.end[rows]
    clipped = clip_overflow(group, start, end, exempt[places], _OVERFLOW_NS)
    changed = np.flatnonzero(clipped != end)
    if not len(changed):
        return frame, activities[:0]
    ends, lengths = frame.end.copy(), frame.dur.values.copy()
    ends[rows[changed]] = clipped[changed]
    lengths[rows[changed]] = clipped[changed] - start[changed]
    clipped_frame = replace(frame, dur=Integers(lengths, frame.dur.known), end=ends)
    return clipped_frame, np.sort(rows[changed])


def overlapping(frame: Frame, activities: Ints) -> Ints:
    """Return the activities that start before an earlier one on their stream has ended (F46)."""
    rows, group, _ = by_stream(frame, activities)
    return rows[overlaps_earlier(group, frame.start.values[rows], frame.end[rows])]


def by_stream(frame: Frame, activities: Ints) -> tuple[Ints, Ints, Ints]:
    """Sort the timed activities of known streams by (stream, start).

    Returns their rows, the number of the stream of each, and its place in `activities`.
    """
    places = np.flatnonzero((frame.device.known & frame.stream.known & frame.is_timed)[activities])
    rows = activities[places]
    group = frame.rank[rows]
    for column in (frame.device, frame.stream):
        number, distinct = numbered(column.values[rows])
        group, _ = numbered(group * len(distinct) + number)
    order = np.lexsort((frame.start.values[rows], group))
    return rows[order], group[order], places[order]


def clocks_differ(frame: Frame, host: Ints, activities: Ints) -> bool:
    """Return whether the times of host rows and of GPU activities lie more than an hour apart."""
    ranges = []
    for rows in (host[frame.start.known[host]], activities[frame.start.known[activities]]):
        if not len(rows):
            return False
        ranges.append((int(frame.start.values[rows].min()), int(frame.end[rows].max())))
    (host_start, host_end), (gpu_start, gpu_end) = ranges
    return max(gpu_start - host_end, host_start - gpu_end) > _APART_NS


def are_apart(some: Ints, others: Ints) -> Mask:
    """Tell which pairs of times are too far apart to be of one clock; differences may overflow."""
    return np.abs(some.astype(np.float64) - others) > _FAR_APART_NS
