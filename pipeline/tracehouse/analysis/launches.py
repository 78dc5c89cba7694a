"""Which call launched each GPU activity, and which op each belongs to.

Correlation ids tie activities to calls, External ids tie calls and activities to ops: they are two
spaces of numbers, and are never compared with each other (field_cases F50).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tracehouse.analysis.columns import Ints, Mask, distinct_rows, numbered, pick, places
from tracehouse.analysis.frame import CATEGORIES, Frame
from tracehouse.analysis.host import TOLERANCE_NS, around
from tracehouse.compute.linking import innermost_calls
from tracehouse.vocab import GRAPH_LAUNCH, Category, Link, Unlinked

LINKS = (Link.NONE, Link.CORRELATION, Link.EXTERNAL_ID)
UNLINKED = tuple(Unlinked)
# Calls that start GPU work, as their names say; they need not, where an id is theirs alone.
_STARTS_WORK = re.compile(r"launch|memcpy|memset|copy|fill|enqueue|exec", re.IGNORECASE)
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
    launch if the call starts in it; where none is, the External id of the call decides, else that
    of its activities.
    """
    frame.spill.settle()
    calls = calls[frame.correlation[calls] > 0]
    is_driver = frame.category[calls] == CATEGORIES.index(Category.DRIVER)  # below the runtime
    start, end = frame.start.values[calls], frame.end[calls]
    order = (is_driver, -end, start, frame.thread[calls], frame.correlation[calls])
    calls = _starting_work(frame, calls[np.lexsort(order)])
    start, end = frame.start.values[calls], frame.end[calls]
    keys, chosen = innermost_calls(
        frame.correlation[calls], frame.thread[calls], start, end, TOLERANCE_NS
    )
    run = places(keys, frame.correlation[activities])
    ambiguous = (run >= 0) & (pick(chosen, run) < 0)
    row = pick(calls, pick(chosen, run))
    rows = distinct_rows(row)
    launch = places(rows, row)
    is_graph = _names_that(frame, GRAPH_LAUNCH.match)[frame.name.codes[rows]]
    is_graph[launch[(launch >= 0) & _of_node(frame, activities)]] = True
    op_rows = around(frame, frame.thread, ops, rows)
    bare = np.flatnonzero(op_rows < 0)
    if len(bare):
        op_rows[bare] = ops_of_calls(frame, ops, rows[bare])
        started = np.flatnonzero((launch >= 0) & (pick(op_rows, launch) < 0))
        by_activity = ops_by_external_id(frame, ops, activities[started])
        agreed = _agreed(by_activity, launch[started], len(rows))
        op_rows = np.where(op_rows >= 0, op_rows, agreed)
    return Launches(rows, is_graph, op_rows, launch, ambiguous)


def _names_that(frame: Frame, test: Callable[[str], object]) -> Mask:
    """Return for each code of a name whether the name passes the test; the last is for none."""
    return np.array([*(bool(test(name)) for name in frame.name.values), False])


def _starting_work(frame: Frame, calls: Ints) -> Ints:
    """Leave out the calls that start no work, where one that does has their id (F54).

    `calls` are in order of their ids.
    """
    key = frame.correlation[calls]
    if not (key[1:] == key[:-1]).any():
        return calls
    starts_work = _names_that(frame, _STARTS_WORK.search)[frame.name.codes[calls]]
    return calls[starts_work | ~np.isin(key, key[starts_work])]


def _agreed(values: Ints, group: Ints, groups: int) -> Ints:
    """Return the one value >= 0 that each group has, -1 where it has none or several."""
    known = values >= 0
    least, most = np.full(groups, _HIGHEST), np.full(groups, -1, dtype=np.int64)
    np.minimum.at(least, group[known], values[known])
    np.maximum.at(most, group[known], values[known])
    return np.where(least == most, most, -1)


def find_owners(
    frame: Frame, ops: Ints, launches: Launches, activities: Ints, of_graph: Mask
) -> Owners:
    """Find the op of each GPU activity; `of_graph` (m,) as `in_graph` tells it.

    It is the op of the launch; without a launch the External id of the activity decides. A replayed
    graph knows no ops: the op around its launch, which is that of the External id too, is not that
    of its kernels (field_cases F56).
    """
    frame.spill.settle()
    launched = launches.launch >= 0
    by_id = ops_by_external_id(frame, ops, activities)
    by_id[launched | launches.ambiguous] = -1
    above = np.where(launched, pick(launches.op_rows, launches.launch), by_id)
    link = np.where(
        launched,
        LINKS.index(Link.CORRELATION),
        np.where(by_id >= 0, LINKS.index(Link.EXTERNAL_ID), LINKS.index(Link.NONE)),
    )
    return Owners(np.where(of_graph, -1, above), above, link)


def _replayed(launches: Launches) -> Mask:
    return pick(launches.is_graph.astype(np.int64), launches.launch) > 0


def in_graph(frame: Frame, launches: Launches, activities: Ints) -> Mask:
    """Tell which activities (m,) are of a graph.

    A graph launch started them, they say so, or their launch is lost and has started several.
    """
    return (
        _replayed(launches)
        | _of_node(frame, activities)
        | _started_together(frame, launches, activities)
    )


def _started_together(frame: Frame, launches: Launches, activities: Ints) -> Mask:
    """Tell which kernels of a device share their correlation, and no call of the file has it.

    Only a graph launch starts several kernels (perf_models B3). Those with an External id are of
    that op, whatever writes so.
    """
    told = np.zeros(len(activities), dtype=np.bool_)
    correlation = frame.correlation[activities]
    is_lost = (launches.launch < 0) & ~launches.ambiguous & (correlation > 0)
    is_lost &= frame.category[activities] == CATEGORIES.index(Category.KERNEL)
    lost = np.flatnonzero(is_lost & (frame.external_id[activities] <= 0))
    if len(lost) > 1:
        key, device = correlation[lost], frame.device.values[activities[lost]]
        order = np.lexsort((device, key))
        key, device, lost = key[order], device[order], lost[order]
        is_next_alike = (key[1:] == key[:-1]) & (device[1:] == device[:-1])
        told[lost[:-1][is_next_alike]] = True
        told[lost[1:][is_next_alike]] = True
    return told


def _of_node(frame: Frame, activities: Ints) -> Mask:
    """Tell which activities (m,) say that they are of a graph; an id of 0 is none (F57)."""
    node, graph = (frame.integers(n, activities) for n in ("graph_node_id", "graph_id"))
    return (node.values != 0) | (graph.values != 0)


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
    return _ops_by_key(ops, frame.external_id[ops], frame.external_id[rows])


def ops_of_calls(frame: Frame, ops: Ints, calls: Ints) -> Ints:
    """Do as ops_by_external_id; of a process that has ops, only those count for its calls."""
    ops = ops[frame.external_id[ops] > 0]
    by_id = ops_by_external_id(frame, ops, calls)
    process = frame.process[ops]
    if not len(ops) or (process == process[0]).all():
        return by_id
    number, distinct = numbered(frame.external_id[np.concatenate([ops, calls])])
    of_ops = process * len(distinct) + number[: len(ops)]
    of_calls = frame.process[calls] * len(distinct) + number[len(ops) :]
    has_ops = np.isin(frame.process[calls], process)
    return np.where(has_ops, _ops_by_key(ops, of_ops, of_calls), by_id)


def _ops_by_key(ops: Ints, keys: Ints, wanted: Ints) -> Ints:
    distinct, first, count = np.unique(keys, return_index=True, return_counts=True)
    unique = count == 1
    return pick(ops[first[unique]], places(distinct[unique], wanted))
