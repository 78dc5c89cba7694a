"""Marks that go up and down a forest of op calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

Ints = NDArray[np.int64]


@njit
def or_upward(parent: Ints, inner_first: Ints, bits: Ints) -> None:
    """Give each node the bits of all below it, in place.

    Shapes: parent, inner_first, bits (n,): int64; parent -1 at a root.
    Units:  none.
    Needs:  inner_first lists every node, each before its parent.
    Cost:   O(n) time, O(1) memory.
    Source: perf_models B3 (an op's kernels are those of its subtree).
    """
    for node in inner_first:
        if parent[node] >= 0:
            bits[parent[node]] |= bits[node]


@njit
def topmost(parent: Ints, inner_first: Ints, marked: NDArray[np.bool_]) -> Ints:
    """Find the outermost marked node on the way from each node to its root, itself included.

    Shapes: parent, inner_first (n,): int64; marked (n,): bool. Out (n,): int64, -1 for none.
    Units:  none.
    Needs:  inner_first lists every node, each before its parent.
    Cost:   O(n) time, O(n) memory.
    Source: perf_models B5 (top-down, stop at the first op with a model).
    """
    found = np.full(parent.shape[0], -1, dtype=np.int64)
    for at in range(inner_first.shape[0] - 1, -1, -1):
        node = inner_first[at]
        above = parent[node]
        if above >= 0 and found[above] >= 0:
            found[node] = found[above]
        elif marked[node]:
            found[node] = node
    return found


@njit
def add_upward(parent: Ints, inner_first: Ints, value: Ints) -> None:
    """Add each node's value to all above it, in place: the sum over each subtree.

    Shapes: parent, inner_first, value (n,): int64; parent -1 at a root.
    Units:  those of value.
    Needs:  inner_first lists every node, each before its parent.
    Cost:   O(n) time, O(1) memory.
    Source: perf_models B3.
    """
    for node in inner_first:
        if parent[node] >= 0:
            value[parent[node]] += value[node]
