"""Which dispatch of a captured graph each kernel of a launch is, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracehouse.analysis.captured import CapturedGraph
from tracehouse.analysis.columns import Ints
from tracehouse.compute.aligning import ANY, first_fit, fit_by_stream, fit_in_order

# From the surest to the least sure; schema/tables.py says what each means.
EXACT, BY_NAME, BY_STREAM, ALIGNED, LIKELY, POSITION = range(6)
GRAFTS = ("exact", "by_name", "by_stream", "aligned", "likely", "position")


@dataclass(frozen=True, eq=False)
class Replay:
    """The kernels of a graph launch, in order of time.

    kernel: codes as in CapturedGraph. stream: 0, 1 … as they come. node_order: the kernels' places
    in order of their nodes in the graph; None where the nodes are not known, or in that order.
    """

    kernel: Ints
    stream: Ints
    node_order: Ints | None

    @cached_property
    def key(self) -> bytes:
        """What replays share that are aligned in the same way."""
        columns = [self.kernel, self.stream]
        if self.node_order is not None:
            columns.append(self.node_order)
        return b"".join(column.tobytes() for column in columns)


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The dispatch of each kernel (k,) of a replay, and how sure it is: a place in GRAFTS."""

    dispatch: Ints
    graft: Ints

    @property
    def worst(self) -> int:
        """The least sure of them."""
        return int(self.graft.max(initial=EXACT))


def align(graph: CapturedGraph, replay: Replay) -> Alignment | None:
    """Find the dispatch of every kernel; None if one has none.

    In order, if all names agree; else in the order of the graph's nodes; else stream by stream;
    else by name, the k-th of a name with the k-th; else, if more was dispatched than ran, in order
    with gaps. A launch that runs less than half of a graph is of another. Without recorded names
    the order alone decides, and only where there is one stream.

    Source: inference §8, alignments a to d.
    """
    dispatch, kernel = graph.kernel, replay.kernel
    count = len(kernel)
    if not count or count > len(dispatch) or 2 * count < len(dispatch):
        return None
    order = np.arange(count, dtype=np.int64)
    streams = int(replay.stream.max(initial=0)) + 1
    if (dispatch == ANY).any():
        if count != len(dispatch) or streams > 1 or not fit_in_order(dispatch, kernel):
            return None
        return _all(order, POSITION)
    if count == len(dispatch):
        if fit_in_order(dispatch, kernel):
            return _all(order, EXACT)
        nodes = replay.node_order
        if nodes is not None and fit_in_order(dispatch, kernel[nodes]):
            place = np.empty(count, dtype=np.int64)
            place[nodes] = order
            return _all(place, EXACT)
    if streams > 1:
        found = fit_by_stream(dispatch, kernel, replay.stream, streams)
        if found[0] >= 0:
            return _all(found, BY_STREAM)
    if count == len(dispatch):
        return _by_name(dispatch, kernel)
    return None if streams > 1 else _with_gaps(graph, kernel)


def _all(dispatch: Ints, graft: int) -> Alignment:
    return Alignment(dispatch, np.full(len(dispatch), graft, dtype=np.int64))


def _by_name(dispatch: Ints, kernel: Ints) -> Alignment | None:
    """Pair the k-th of each name with the k-th, if all names occur equally often."""
    of_dispatch = np.argsort(dispatch, kind="stable")
    of_kernel = np.argsort(kernel, kind="stable")
    if not (dispatch[of_dispatch] == kernel[of_kernel]).all():
        return None
    place = np.empty(len(kernel), dtype=np.int64)
    place[of_kernel] = of_dispatch
    return _all(place, BY_NAME)


def _with_gaps(graph: CapturedGraph, kernel: Ints) -> Alignment | None:
    """Pass over dispatches that did not run; where it is open which, the first fit is likely."""
    found = first_fit(graph.kernel, kernel)
    if found[0] < 0:
        return None
    last = len(graph.kernel) - 1 - first_fit(graph.kernel[::-1].copy(), kernel[::-1].copy())[::-1]
    return Alignment(found, np.where(found == last, ALIGNED, LIKELY))
