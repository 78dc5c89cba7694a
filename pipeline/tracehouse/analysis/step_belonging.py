"""Deciding batch by batch, as a trace is read again, which of its events belong to some steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracehouse.analysis.columns import Ints, Mask, Words, places
from tracehouse.analysis.step_clock import LATEST, Clock, are, spread_over
from tracehouse.vocab import canonical_category

FLOW_PHASES = ("s", "t", "f")

_PYTHON = "python_function"
_BY_TIME = frozenset("CiIRbneSTFNODPv")  # phases of which the time alone decides


class Batch(Protocol):
    """Consecutive events as columns: those of ingest.batches.EventBatch that are looked at."""

    @property
    def event_id(self) -> Ints: ...  # noqa: D102
    @property
    def numbers(self) -> Mapping[str, tuple[Ints, Mask]]: ...  # noqa: D102
    @property
    def codes(self) -> Mapping[str, NDArray[np.int32]]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Belonging:
    """What belongs to some steps.

    ids (k,): ascending event ids, of the events that the linker or a flow knows. calls: ids of the
    chosen calls (correlation), ascending. callers: the processes of the host.
    """

    ids: Ints
    clock: Clock
    calls: Ints
    callers: frozenset[str]

    def of(self, batch: Batch, words: Mapping[str, Sequence[str]]) -> Ints:
        """Return the event ids of a batch's events that belong, ascending; `words` by column."""
        number = batch.event_id
        if not len(number):
            return number
        at, timed = batch.numbers["ts_ns"]
        category = Words(batch.codes["cat"], list(words["cat"]))
        phase = Words(batch.codes["ph"], list(words["ph"]))
        is_linked = spread_over(
            category, [canonical_category(w) is not None for w in category.values]
        )
        complete = are(phase, "X")
        decided = complete & is_linked
        decided |= spread_over(phase, [word in ("B", "E", *FLOW_PHASES) for word in phase.values])
        keep = are(phase, "M") | (~timed & ~complete & ~decided)
        near = slice(*np.searchsorted(self.ids, [number[0], number[-1] + 1]))
        keep |= places(self.ids[near], number) >= 0
        open_ = np.flatnonzero(~decided & ~keep & timed & (at < self.clock.last))
        if len(open_):
            rest = _Rest(batch, words, open_)
            keep[open_] = rest.kept(self, phase.take(open_), category.take(open_))
        return number[keep]


class _Rest:
    """Events that the linker has no use for; what they are and when they are decides."""

    def __init__(self, batch: Batch, words: Mapping[str, Sequence[str]], rows: Ints) -> None:
        self.pid, self.tid = (Words(batch.codes[c][rows], list(words[c])) for c in ("pid", "tid"))
        self.at = batch.numbers["ts_ns"][0][rows]
        self.dur = batch.numbers["dur_ns"][0][rows]
        correlation, known = batch.numbers["correlation"]
        self.correlation = np.where(known[rows], correlation[rows], 0)

    def kept(self, own: Belonging, phase: Words, category: Words) -> Mask:
        """Return which of them belong."""
        clock = own.clock
        is_caller = spread_over(self.pid, [word in own.callers for word in self.pid.values])
        complete = are(phase, "X")
        by_time = spread_over(phase, [word in _BY_TIME for word in phase.values])
        here = complete & is_caller & clock.holds(self.pid, self.tid, self.at)
        here |= complete & ~is_caller & np.isin(self.correlation, own.calls)
        here |= by_time & clock.in_window(self.pid, self.at)
        here |= by_time & ~is_caller & clock.in_any_window(self.at)
        start = [clock.windows.get(word, (-LATEST, 0))[0] for word in self.pid.values]
        begun = np.array([*start, -LATEST], dtype=np.int64)[self.pid.codes]
        is_open = (self.at < begun) & (begun - self.at < self.dur)
        return here | (complete & are(category, _PYTHON) & is_open)
