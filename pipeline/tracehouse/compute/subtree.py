"""Union of the intervals below each node of a forest, in one sweep over time.

At any moment let `k` intervals be active, in the preorder of their nodes. A node has `a` of them in
its subtree, next to each other, and so `a - 1` pairs of neighbours; a pair lies in the subtree
exactly if its lowest common ancestor does. So give each active interval's node +1 and each
neighbouring pair's ancestor -1: the sum over a subtree is 1 if anything in it is active, else 0.
Integrated over time, that sum is the union. Active intervals are few, the forest may be deep: the
cost does not depend on the depth, nor on how many intervals a node has below it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]


@njit
def _lowest_bit(word: np.uint64) -> int:
    """Return the index of the lowest set bit; `word` is not 0."""
    at = 0
    width = 32
    while width > 0:
        if word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)) == np.uint64(0):
            word >>= np.uint64(width)
            at += width
        width >>= 1
    return at


@njit
def _highest_bit(word: np.uint64) -> int:
    """Return the index of the highest set bit; `word` is not 0."""
    at = 0
    width = 32
    while width > 0:
        if word >> np.uint64(width) != np.uint64(0):
            word >>= np.uint64(width)
            at += width
        width >>= 1
    return at


@njit
def _levels(size: int) -> Ints:
    """Return where each level of the set's bit words begins, and the number of words.

    The set of integers below `size` is a tree of 64-bit words: a bit of level 0 is a member, a bit
    of a higher level says whether the word below it has any.
    """
    begins = [0]
    while True:
        size = (size + 63) >> 6
        begins.append(begins[-1] + max(size, 1))
        if size <= 1:
            return np.array(begins, dtype=np.int64)


@njit
def _insert(bits: Bits, levels: Ints, at: int) -> None:
    """Add `at` to the set."""
    for level in range(levels.shape[0] - 1):
        bits[levels[level] + (at >> 6)] |= np.uint64(1) << np.uint64(at & 63)
        at >>= 6


@njit
def _remove(bits: Bits, levels: Ints, at: int) -> None:
    """Take `at` out of the set."""
    for level in range(levels.shape[0] - 1):
        word = levels[level] + (at >> 6)
        bits[word] &= ~(np.uint64(1) << np.uint64(at & 63))
        if bits[word] != np.uint64(0):
            return
        at >>= 6


@njit
def _after(bits: Bits, levels: Ints, at: int) -> int:
    """Return the smallest member above `at`, -1 if there is none."""
    for level in range(levels.shape[0] - 1):
        word = bits[levels[level] + (at >> 6)]
        rest = (word >> np.uint64(at & 63)) >> np.uint64(1)
        if rest != np.uint64(0):
            at += 1 + _lowest_bit(rest)
            for below in range(level - 1, -1, -1):
                at = (at << 6) + _lowest_bit(bits[levels[below] + at])
            return at
        at >>= 6
    return -1


@njit
def _before(bits: Bits, levels: Ints, at: int) -> int:
    """Return the largest member below `at`, -1 if there is none."""
    for level in range(levels.shape[0] - 1):
        word = bits[levels[level] + (at >> 6)]
        rest = word & ((np.uint64(1) << np.uint64(at & 63)) - np.uint64(1))
        at >>= 6
        if rest != np.uint64(0):
            at = (at << 6) + _highest_bit(rest)
            for below in range(level - 1, -1, -1):
                at = (at << 6) + _highest_bit(bits[levels[below] + at])
            return at
    return -1


@njit
def _heavy_heads(parent: Ints) -> Ints:
    """Return the top of each node's heavy path: the chain of largest children it lies on."""
    n = parent.shape[0]
    size = np.ones(n, dtype=np.int64)
    heavy = np.full(n, -1, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        above = parent[i]
        if above >= 0:
            size[above] += size[i]
            if heavy[above] < 0 or size[i] > size[heavy[above]]:
                heavy[above] = i
    head = np.arange(n, dtype=np.int64)
    for i in range(n):
        if parent[i] >= 0 and heavy[parent[i]] == i:
            head[i] = head[parent[i]]
    return head


@njit
def _common_ancestor(parent: Ints, head: Ints, a: int, b: int) -> int:
    """Return the lowest common ancestor of two nodes, -1 if their roots differ."""
    while head[a] != head[b]:
        if head[a] < head[b]:
            a, b = b, a
        a = parent[head[a]]
        if a < 0:
            return -1
    return min(a, b)


@njit
def _neighbours(active: Bits, levels: Ints, node: Ints, at: int) -> tuple[int, int, int]:
    """Return the nodes of an interval and of the active ones before and after it, -1 for none."""
    before, after = _before(active, levels, at), _after(active, levels, at)
    return (
        node[at],
        node[before] if before >= 0 else -1,
        node[after] if after >= 0 else -1,
    )


@njit
def _exchange(total: Ints, parent: Ints, head: Ints, nodes: tuple[int, int, int], by: int) -> None:
    """Add `by` for the middle node and for the pair it parts, take it off for the pairs it makes.

    `nodes` are the node itself and those of the active intervals before and after it, -1 for none.
    """
    node, before, after = nodes
    total[node] += by
    if before >= 0:
        pair = _common_ancestor(parent, head, before, node)
        if pair >= 0:
            total[pair] -= by
    if after >= 0:
        pair = _common_ancestor(parent, head, node, after)
        if pair >= 0:
            total[pair] -= by
    if before >= 0 and after >= 0:
        pair = _common_ancestor(parent, head, before, after)
        if pair >= 0:
            total[pair] += by


@njit
def subtree_union(
    parent: Ints, node: Ints, start: Ints, end: Ints, by_start: Ints, by_end: Ints
) -> Ints:
    """Measure, for each node, the time covered by the intervals of its subtree.

    Sums wrap in int64 on the way and come out right, because the results fit.

    Shapes: parent (m,): int64, -1 at a root; node, start, end, by_start, by_end (n,): int64.
            Out (m,): int64.
    Units:  ns.
    Needs:  nodes in preorder (parent[i] < i, a subtree is contiguous); node ascending,
            0 <= node < m; end[i] > start[i]; by_start and by_end sort start and end.
    Cost:   O(m + n log m) time, O(m + n) memory; the number of active intervals and the depth of
            the forest do not count.
    Source: perf_models B3 (subtree kernel time is a union).
    """
    n = node.shape[0]
    total = np.zeros(parent.shape[0], dtype=np.int64)
    head = _heavy_heads(parent)
    levels = _levels(n)
    active = np.zeros(levels[-1], dtype=np.uint64)
    opened = 0
    for closed in range(n):
        while opened < n and start[by_start[opened]] < end[by_end[closed]]:
            i = by_start[opened]
            opened += 1
            _insert(active, levels, i)
            _exchange(total, parent, head, _neighbours(active, levels, node, i), -start[i])
        i = by_end[closed]
        _remove(active, levels, i)
        _exchange(total, parent, head, _neighbours(active, levels, node, i), end[i])
    add_to_parents(parent, total)
    return total


@njit
def add_to_parents(parent: Ints, value: Ints) -> None:
    """Add each node's value to its ancestors, in place: the sum over each subtree.

    Shapes: parent, value (m,): int64; parent -1 at a root.
    Units:  those of value.
    Needs:  parent[i] < i.
    Cost:   O(m) time, O(1) memory.
    Source: perf_models B3.
    """
    for i in range(parent.shape[0] - 1, -1, -1):
        if parent[i] >= 0:
            value[parent[i]] += value[i]
