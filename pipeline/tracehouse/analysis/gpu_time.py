"""GPU time of calls and ops: unions of the intervals of their activities."""

from __future__ import annotations

import numpy as np

from tracehouse.analysis.columns import Ints
from tracehouse.analysis.frame import Frame
from tracehouse.analysis.host import Nesting
from tracehouse.compute.intervals import union_by_group
from tracehouse.compute.subtree import add_to_parents, subtree_union


def counts(group: Ints, groups: int) -> Ints:
    """Count the activities of each group (groups,); `group` is -1 for none."""
    return np.bincount(group[group >= 0], minlength=groups).astype(np.int64)


def unions(frame: Frame, activities: Ints, group: Ints, groups: int) -> Ints:
    """Measure the time covered by the activities of each group (groups,), in ns.

    `activities` are rows of the frame, `group` (m,) their group, -1 for none. What has no known
    start and duration covers nothing.
    """
    keep = (group >= 0) & frame.is_timed[activities]
    group, rows = group[keep], activities[keep]
    order = np.lexsort((frame.start.values[rows], group))
    group, rows = group[order], rows[order]
    return union_by_group(group, frame.start.values[rows], frame.end[rows], groups)


def subtree_counts(nesting: Nesting, place: Ints) -> Ints:
    """Count the activities of each op and all below it; `place` (m,) is the op's, -1 for none."""
    total = counts(place, len(nesting.order))[nesting.order]
    add_to_parents(nesting.parent, total)
    return nesting.by_place(total)


def subtree_unions(frame: Frame, activities: Ints, nesting: Nesting, place: Ints) -> Ints:
    """Measure the time covered by the activities of each op and all below it, in ns.

    `place` (m,) is the place of each activity's op, -1 for none. In event order of the ops.
    """
    position = np.empty(len(nesting.order), dtype=np.int64)
    position[nesting.order] = np.arange(len(nesting.order))
    keep = (place >= 0) & (frame.end[activities] > frame.start.values[activities])
    node, rows = position[place[keep]], activities[keep]
    order = np.argsort(node, kind="stable")
    node, rows = node[order], rows[order]
    start, end = frame.start.values[rows], frame.end[rows]
    by_start, by_end = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    return nesting.by_place(subtree_union(nesting.parent, node, start, end, by_start, by_end))
