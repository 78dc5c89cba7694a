"""Kernels of a launch and dispatches of a capture, aligned (inference §8, a to d)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.analysis.captured import CapturedGraph
from tracehouse.analysis.columns import Integers, Words
from tracehouse.analysis.graph_match import GRAFTS, Replay, align
from tracehouse.compute.aligning import ANY, COPY, FILL, FOREIGN

NONE = np.empty(0, dtype=np.int64)


def codes(values):
    return np.array(values, dtype=np.int64)


def graph(dispatches):
    """A graph of dispatches alone."""
    signature = Integers(NONE, np.empty(0, np.bool_))
    name = Words(np.empty(0, np.int32), [])
    op = np.full(len(dispatches), -1, dtype=np.int64)
    return CapturedGraph(codes(dispatches), op, NONE, NONE, name, signature, NONE)


def aligned(dispatches, kernels, streams=None, nodes=None):
    """Return the dispatch of each kernel and the words for how sure they are; None for none."""
    stream = codes(streams or [0] * len(kernels))
    order = None if nodes is None else np.argsort(codes(nodes), kind="stable")
    found = align(graph(dispatches), Replay(codes(kernels), stream, order))
    if found is None:
        return None
    return found.dispatch.tolist(), [GRAFTS[code] for code in found.graft.tolist()]


A, B, C, D = range(4)


@pytest.mark.parametrize(
    ("dispatches", "kernels", "places", "graft"),
    [
        # a: as many, and all of them agree; copies and fills by kind
        ([A, B, A], [A, B, A], [0, 1, 2], "exact"),
        ([COPY, A, FILL], [COPY, A, FILL], [0, 1, 2], "exact"),
        # b: as many of each name in another order: k-th with k-th
        ([A, B, A, C], [A, A, C, B], [0, 2, 3, 1], "by_name"),
        # c: more were captured; D did not run, and the first A is passed over
        ([D, A, B, C], [A, B, C], [1, 2, 3], "aligned"),
        ([A, A, B], [A, B], [0, 2], None),
        # names that were not recorded: by place
        ([ANY, COPY, ANY], [A, COPY, FOREIGN], [0, 1, 2], "position"),
        ([ANY, B], [A, B], [0, 1], "position"),
    ],
)
def test_one_stream(dispatches, kernels, places, graft):
    found, words = aligned(dispatches, kernels)
    assert found == places
    # of A, A, B without one A, either A may be the one that ran: B is sure, the other likely
    assert words == ([graft] * len(kernels) if graft else ["likely", "aligned"])


@pytest.mark.parametrize(
    ("dispatches", "kernels", "streams"),
    [
        ([A, B], [A, C], None),  # another kernel
        ([A, B], [A, B, C], None),  # more ran than were captured
        ([A, B, C], [B, A], None),  # fewer, out of order
        ([A, A, B], [A, B, B], None),  # the numbers of each name differ
        ([A, B, C], [B], None),  # less than half of it
        ([COPY], [FILL], None),
        ([ANY], [COPY], None),  # a kernel is no copy, whatever its name
        ([ANY, ANY], [A], None),  # unnamed, and not as many
        ([ANY, ANY], [A, B], [0, 1]),  # unnamed on two streams: no order
        ([A, B], [FOREIGN, FOREIGN], None),
        ([A], [], None),
    ],
)
def test_no_match(dispatches, kernels, streams):
    assert aligned(dispatches, kernels, streams) is None


def test_streams_keep_their_order():
    # d: captured A0 C1 B0 C0 (stream behind the name), in time C1 A0 B0 C0: by name the first C in
    # time would be the first captured, and so it is; A0 B0 C0 stay in order.
    found, words = aligned([A, C, B, C], [C, A, B, C], [1, 0, 0, 0])
    assert found == [1, 0, 2, 3]
    assert set(words) == {"by_stream"}


def test_a_tie_goes_to_the_longest_run():
    # Both streams begin with A. Captured A B …: on stream 1 A is followed by B, on 0 by C.
    found, _ = aligned([A, B, A, C], [A, A, C, B], [0, 1, 0, 1])
    assert found == [2, 0, 3, 1]


def test_streams_with_a_dispatch_that_did_not_run():
    found, words = aligned([D, A, B], [B, A], [1, 0])
    assert (found, set(words)) == ([2, 1], {"by_stream"})


def test_nodes_tell_the_order_where_streams_mix_it():
    # in time A A, in the order of the nodes the second first: names alone could not tell
    found, words = aligned([A, A, B], [A, B, A], [0, 1, 1], nodes=[12, 13, 11])
    assert (found, set(words)) == ([1, 2, 0], {"exact"})


graphs = st.lists(st.sampled_from([A, B, C, D, COPY, FILL]), min_size=1, max_size=30)


@given(graphs)
def test_a_replay_of_all_is_exact(dispatches):
    found, words = aligned(dispatches, dispatches)
    assert found == list(range(len(dispatches)))
    assert set(words) == {"exact"}


@given(graphs, st.data())
def test_what_is_aligned_is_the_one_that_ran(dispatches, data):
    at_least = (len(dispatches) + 1) // 2
    places = st.sampled_from(range(len(dispatches)))
    ran = sorted(data.draw(st.sets(places, min_size=at_least)))
    found, words = aligned(dispatches, [dispatches[i] for i in ran])
    assert [dispatches[i] for i in found] == [dispatches[i] for i in ran]
    assert found == sorted(set(found))
    for mine, true, word in zip(found, ran, words, strict=True):
        assert word == "likely" or mine == true


@given(graphs, st.data())
def test_every_stream_is_a_sequence_of_the_capture(dispatches, data):
    """Whatever way it is aligned: each dispatch once, of the kernel's name."""
    streams = [data.draw(st.integers(0, 2)) for _ in dispatches]
    order = data.draw(st.permutations(range(len(dispatches))))
    order.sort(key=lambda i: streams[i])  # streams one after another, each shuffled
    kernels = [dispatches[i] for i in order]
    number = {s: n for n, s in enumerate(dict.fromkeys(streams[i] for i in order))}
    found = aligned(dispatches, kernels, [number[streams[i]] for i in order])
    assert found is not None  # by name it always fits
    assert sorted(found[0]) == list(range(len(dispatches)))
    assert [dispatches[i] for i in found[0]] == kernels
