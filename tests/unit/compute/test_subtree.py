from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import nesting as reference

from tracehouse.compute.subtree import add_to_parents, subtree_union


def run(parents, intervals):
    table = np.array(sorted(intervals), dtype=np.int64).reshape(-1, 3)
    node, start, end = (np.ascontiguousarray(table[:, i]) for i in range(3))
    by_start, by_end = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    parent = np.array(parents, dtype=np.int64)
    return subtree_union(parent, node, start, end, by_start, by_end).tolist()


@st.composite
def forests(draw):
    """Draw parents in preorder: each node hangs below one of the open path, or is a root."""
    parents, path = [], []
    for node in range(draw(st.integers(1, 12))):
        path = path[: draw(st.integers(0, len(path)))]
        parents.append(path[-1] if path else -1)
        path.append(node)
    return parents


@st.composite
def cases(draw):
    parents = draw(forests())
    one = st.tuples(st.integers(0, len(parents) - 1), st.integers(0, 40), st.integers(1, 15))
    spans = draw(st.lists(one, max_size=80))  # more than a word of 64 bits
    return parents, [(node, start, start + length) for node, start, length in spans]


def test_shared_time_of_two_children_counts_once_above():
    #   0        root, own [0,2)
    #   ├ 1      [10,20)
    #   └ 2      [15,30)     union below 0: 2 + |[10,30)| = 22
    #   3        root without any
    assert run([-1, 0, 0, -1], [(0, 0, 2), (1, 10, 20), (2, 15, 30)]) == [22, 10, 15, 0]


def test_two_trees_share_no_ancestor():
    assert run([-1, -1], [(0, 0, 10), (1, 5, 20)]) == [10, 15]


def test_no_interval():
    assert run([-1, 0], []) == [0, 0]


def test_a_chain_of_many_ops_below_one():
    # 1000 ops one inside the other, each with one kernel: [i, i+2). Below op i: [i, 1001)
    depth = 1000
    spans = [(i, i, i + 2) for i in range(depth)]
    assert run(range(-1, depth - 1), spans) == [depth + 1 - i for i in range(depth)]


def test_all_kernels_active_at_once():
    # 5000 kernels [i, 10_000) of 5000 children of one op: three levels of 64-bit words
    count = 5000
    spans = [(i + 1, i, 10_000) for i in range(count)]
    assert run([-1] + [0] * count, spans) == [10_000] + [10_000 - i for i in range(count)]


def test_nanoseconds_since_1970_do_not_overflow():
    at = 1_759_300_074_000_000_000  # ten of them pass 2^63
    spans = [(1 + i % 3, at + i, at + i + 5) for i in range(30)]
    assert run([-1, 0, 0, 0], spans)[0] == 34  # [at, at+34)


@given(cases())
def test_equals_reference(case):
    parents, intervals = case
    assert run(parents, intervals) == reference.subtree_union(parents, intervals)


def test_values_add_up_the_tree():
    value = np.array([1, 10, 100, 1000], dtype=np.int64)
    add_to_parents(np.array([-1, 0, 1, -1]), value)
    assert value.tolist() == [111, 110, 100, 1000]
