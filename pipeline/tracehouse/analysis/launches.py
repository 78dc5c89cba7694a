"""Which call launched each GPU activity, and which op each belongs to.

Correlation ids tie activities to calls, External ids tie calls and activities to ops: they are two
spaces of numbers, and are never compared with each other (field_cases F50).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehouse.analysis.columns import Ints, Mask, distinct_rows, pick, places
from tracehouse.analysis.frame import Frame
from tracehouse.analysis.host import TOLERANCE_NS, around
from tracehouse.compute.linking import innermost_calls
from tracehouse.vocab import GRAPH_LAUNCH, Link, Unlinked

LINKS = (Link.NONE, Link.CORRELATION, Link.EXTERNAL_ID)
UNLINKED = tuple(Unlinked)
_HIGHEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Launches:
    """The calls that launched something (n,), and the activities (m,) by their launch.

    `rows` and `op_rows` are rows of the frame, -1 for none; `launch` is a place in `rows`.
    """

    rows: Ints  # (n,) ascending
    is_graph: Mask  # (n,)
    op_rows: Ints  # (n,) op around the call
    launch: Ints  # (m,) launch of each activity, -1 for none
    ambiguous: Mask  # (m,) whether unrelated calls share its correlation id


@dataclass(frozen=True, slots=True)
class Owners:
    """What each GPU activity (m,) belongs to; rows of the frame, -1 for none."""

    op_rows: Ints  # the op whose own work it is
    above_rows: Ints  # the op in whose subtree it counts: that op, or the one around a graph launch
    link: Ints  # position in LINKS


def find_launches(frame: Frame, ops: Ints, calls: Ints, activities: Ints) -> Launches:
    """Find the launch of each GPU activity, and the op of each launch.

    `ops`, `calls` (runtime and driver) and `activities` are rows of the frame. An op is around a
    launch if the call starts in it; where none is, the External id decides.
    """
    calls = calls[frame.correlation[calls] > 0]
    key, thread = frame.correlation[calls], frame.thread[calls]
    start, end = frame.start.values[calls], frame.end[calls]
    order = np.lexsort((-end, start, thread, key))
    keys, chosen = innermost_calls(
        key[order], thread[order], start[order], end[order], TOLERANCE_NS
    )
    run = places(keys, frame.correlation[activities])
    ambiguous = (run >= 0) & (pick(chosen, run) < 0)
    row = pick(calls[order], pick(chosen, run))
    rows = distinct_rows(row)
    names = frame.name
    is_graph = np.array([*(bool(GRAPH_LAUNCH.match(name)) for name in names.values), False])
    op_rows = around(frame, frame.thread, ops, rows)
    op_rows = np.where(op_rows >= 0, op_rows, ops_by_external_id(frame, ops, rows))
    return Launches(rows, is_graph[names.codes[rows]], op_rows, places(rows, row), ambiguous)


def find_owners(frame: Frame, ops: Ints, launches: Launches, activities: Ints) -> Owners:
    """Find the op of each GPU activity.

    It is the op of the launch; without a launch the External id of the activity decides. A replayed
    graph knows no ops: the op around its launch is not that of its kernels (field_cases F56).
    """
    launched = launches.launch >= 0
    by_id = ops_by_external_id(frame, ops, activities)
    by_id[launched | launches.ambiguous] = -1
    above = np.where(launched, pick(launches.op_rows, launches.launch), by_id)
    link = np.where(
        launched,
        LINKS.index(Link.CORRELATION),
        np.where(by_id >= 0, LINKS.index(Link.EXTERNAL_ID), LINKS.index(Link.NONE)),
    )
    return Owners(np.where(_replayed(launches), -1, above), above, link)


def _replayed(launches: Launches) -> Mask:
    return pick(launches.is_graph.astype(np.int64), launches.launch) > 0


def in_graph(frame: Frame, launches: Launches, activities: Ints) -> Mask:
    """Tell which activities (m,) are of a graph: a graph launch started them, or they say so."""
    node = frame.integers("graph_node_id", activities)  # 0 is none (field_cases F57)
    return _replayed(launches) | (node.values != 0)


def why_unlinked(
    frame: Frame, calls: Ints, launches: Launches, owners: Owners, activities: Ints
) -> Ints:
    """Find why each activity (m,) has no link: a position in UNLINKED, -1 where it has one.

    Correlation ids rise with time: an id below all those of the recorded calls of its rank is that
    of a call before the recording.
    """
    recorded = frame.integers("correlation", calls)
    first = np.full(len(frame.ranks) + 1, _HIGHEST)
    known = recorded.values > 0
    np.minimum.at(first, frame.rank[calls[known]], recorded.values[known])
    own = frame.integers("correlation", activities).values
    lowest = first[frame.rank[activities]]
    why = np.full(len(activities), UNLINKED.index(Unlinked.MISSING))
    why[(own < lowest) & (lowest < _HIGHEST)] = UNLINKED.index(Unlinked.PRE_WINDOW)
    why[launches.ambiguous] = UNLINKED.index(Unlinked.AMBIGUOUS)
    why[own <= 0] = UNLINKED.index(Unlinked.NO_CORRELATION)
    why[owners.link != LINKS.index(Link.NONE)] = -1
    return why


def ops_by_external_id(frame: Frame, ops: Ints, rows: Ints) -> Ints:
    """Return the one op that has the External id of each row, -1 where none or several have."""
    ops = ops[frame.external_id[ops] > 0]
    ids, first, count = np.unique(frame.external_id[ops], return_index=True, return_counts=True)
    unique = count == 1
    return pick(ops[first[unique]], places(ids[unique], frame.external_id[rows]))
