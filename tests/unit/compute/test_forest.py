from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.compute.forest import add_upward, or_upward, topmost


@st.composite
def forests(draw):
    """Draw parents, in any order of the nodes, and an order with each node before its parent."""
    size = draw(st.integers(0, 12))
    above = [draw(st.integers(-1, i - 1)) for i in range(size)]
    label = draw(st.permutations(range(size)))
    parent = [-1] * size
    for node, up in enumerate(above):
        parent[label[node]] = label[up] if up >= 0 else -1
    return (
        np.array(parent, dtype=np.int64),
        np.array(label[::-1], dtype=np.int64),
    )


def way_up(parent, node):
    while node >= 0:
        yield node
        node = parent[node]


@given(forests(), st.data())
def test_against_the_plain_definitions(forest, data):
    parent, inner_first = forest
    size = len(parent)
    bits = np.array(data.draw(st.lists(st.integers(0, 511), min_size=size, max_size=size)), int)
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    ors, sums = bits.copy(), bits.copy()
    or_upward(parent, inner_first, ors)
    add_upward(parent, inner_first, sums)
    top = topmost(parent, inner_first, marked)
    for node in range(size):
        below = [n for n in range(size) if node in way_up(parent, n)]
        assert ors[node] == np.bitwise_or.reduce(bits[below])
        assert sums[node] == bits[below].sum()
        carrying = [n for n in way_up(parent, node) if marked[n]]
        assert top[node] == (carrying[-1] if carrying else -1)
