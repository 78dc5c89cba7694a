"""Nesting of rows on their threads, and the row that is around a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tracehouse.analysis.columns import Ints, Mask, pick
from tracehouse.analysis.frame import Frame
from tracehouse.compute.nesting import innermost, nest

TOLERANCE_NS = 1_000  # how much later than its parent a child may end (field_cases F48)

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Nesting:
    """Some rows of the frame as a forest, one tree per outermost call.

    `order` (n,) lists the rows' places (0..n-1, in event order) in preorder; the other columns are
    in preorder too. `parent` is a position in preorder, -1 at a root.
    """

    order: Ints
    parent: Ints
    depth: NDArray[np.int32]
    self_ns: Ints
    overhang: Mask

    def by_place(self, values: NDArray[_Scalar]) -> NDArray[_Scalar]:
        """Return values given in preorder in event order."""
        result = np.empty_like(values)
        result[self.order] = values
        return result

    def parent_places(self) -> Ints:
        """Return the place of each row's parent, -1 at a root; in event order."""
        return self.by_place(pick(self.order, self.parent))


def call_order(frame: Frame, group: Ints, rows: Ints) -> Ints:
    """Sort rows by (group, start, end descending, External id, event order).

    So parents come before children. External ids of ops rise with their starts: they tell which of
    two ops of equal times is the parent, wherever they stand in the file. `group` is of the rows.
    """
    start, end = frame.start.values[rows], frame.end[rows]
    order = np.lexsort((-end, start, group))
    equal = np.ones(max(len(rows) - 1, 0), dtype=np.bool_)
    for column in (group, start, end):
        in_order = column[order]
        equal &= in_order[1:] == in_order[:-1]
    if not equal.any():
        return order
    return np.lexsort((frame.integers("external_id", rows).values, -end, start, group))


def nest_rows(frame: Frame, rows: Ints) -> Nesting:
    """Nest rows of the frame on their threads (or streams)."""
    frame.spill.settle()
    thread, start, end = frame.thread[rows], frame.start.values[rows], frame.end[rows]
    order = call_order(frame, thread, rows)
    leaf = ~frame.is_timed[rows]
    thread, start, end, leaf = thread[order], start[order], end[order], leaf[order]
    columns = nest(thread, start, end, leaf, TOLERANCE_NS)
    return Nesting(frame.spill.array(order), *map(frame.spill.array, columns))


def around(frame: Frame, group: Ints, spans: Ints, moments: Ints) -> Ints:
    """Find, for each row of `moments`, the innermost row of `spans` it starts in.

    `group` (n,) numbers the thread, or the process, of every row of the frame. Returns rows of the
    frame, -1 where none is around.
    """
    frame.spill.settle()
    start, end = frame.start.values, frame.end
    spans = spans[call_order(frame, group[spans], spans)]
    order = np.lexsort((start[moments], group[moments]))
    moments = moments[order]
    found = innermost(group[spans], start[spans], end[spans], group[moments], start[moments])
    result = np.empty(len(moments), dtype=np.int64)
    result[order] = pick(spans, found)
    return result
