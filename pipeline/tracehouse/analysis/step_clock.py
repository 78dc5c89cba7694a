"""Windows of steps: what of the host belongs to them, by thread and time alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracehouse.analysis.columns import Ints, Mask, Words, combination, pick
from tracehouse.compute.nesting import innermost

LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals on threads; a thread is known by its number in `threads`."""

    threads: dict[tuple[str, str] | None, int]
    group: Ints
    start: Ints
    end: Ints

    def around(self, group: Ints, at: Ints) -> Ints:
        """Return the innermost span around each moment, -1 for none; group -1 has none."""
        mine = np.lexsort((-self.end, self.start, self.group))
        order = np.lexsort((at, group))
        found = innermost(
            self.group[mine], self.start[mine], self.end[mine], group[order], at[order]
        )
        result = np.empty(len(at), dtype=np.int64)
        result[order] = pick(mine, found)
        return result

    def groups(self, pid: Words, tid: Words) -> Ints:
        """Return the number of each thread, -1 where no span is on it."""
        numbers, first = combination([pid, tid])
        known = [self.threads.get(word, -1) for word in _threads(pid, tid, first)]
        return np.array([*known, -1], dtype=np.int64)[numbers]


def spans_of(pid: Words, tid: Words, start: Ints, end: Ints) -> Spans:
    """Return intervals on the threads that `pid` and `tid` name, a row each."""
    numbers, first = combination([pid, tid])
    threads: dict[tuple[str, str] | None, int]
    threads = {word: n for n, word in enumerate(_threads(pid, tid, first)) if word}
    return Spans(threads, numbers, start, end)


def _threads(pid: Words, tid: Words, rows: Ints) -> list[tuple[str, str] | None]:
    """Return the process and thread of some rows, None where one is missing."""
    pids, tids = pid.codes[rows].tolist(), tid.codes[rows].tolist()
    return [
        (pid.values[a], tid.values[b]) if a >= 0 and b >= 0 else None
        for a, b in zip(pids, tids, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Clock:
    """The windows of some steps, by process (None for steps of the GPU), and all steps on threads.

    is_chosen (n,): which of the spans are of these steps. first, last: start and end of all that is
    chosen.
    """

    windows: dict[str | None, tuple[int, int]]
    spans: Spans
    is_chosen: Mask
    first: int
    last: int

    def in_window(self, pid: Words, at: Ints) -> Mask:
        """Return whether each moment lies in the window of the process."""
        bounds = [self.windows.get(word, (0, 0)) for word in pid.values] + [(0, 0)]
        start, end = np.array(bounds, dtype=np.int64).T
        return (start[pid.codes] <= at) & (at < end[pid.codes])

    def in_any_window(self, at: Ints) -> Mask:
        """Return whether each moment lies in the window of some process."""
        inside = np.zeros(len(at), np.bool_)
        for start, end in self.windows.values():
            inside |= (start <= at) & (at < end)
        return inside

    def holds(self, pid: Words, tid: Words, at: Ints) -> Mask:
        """Return whether what starts on a thread then belongs: in a chosen step, or in none."""
        result = np.zeros(len(at), np.bool_)
        near = np.flatnonzero((at >= self.first) & (at < self.last))
        if len(near):
            own_pid, own_tid, moment = pid.take(near), tid.take(near), at[near]
            step = self.spans.around(self.spans.groups(own_pid, own_tid), moment)
            in_step = np.append(self.is_chosen, False)[step]
            result[near] = np.where(step >= 0, in_step, self.in_window(own_pid, moment))
        return result


def spread_over(words: Words, results: Sequence[bool]) -> Mask:
    """Spread one answer per distinct word over the rows; no word is False."""
    return np.array([*results, False], dtype=np.bool_)[words.codes]


def are(words: Words, word: str) -> Mask:
    """Return which rows have a word."""
    return spread_over(words, [value == word for value in words.values])


def ends_of(start: Ints, dur: Ints) -> Ints:
    """Return start + dur, cut to the range of int64; a negative duration is none."""
    return start + np.clip(dur, 0, LATEST - np.maximum(start, 0))
