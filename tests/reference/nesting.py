"""Nesting by asking every pair of spans, and self time by counting ticks."""

from __future__ import annotations

from itertools import pairwise

from reference.intervals import ticks


def parent_of(spans, i, tolerance):
    """Return the last (thread, start, end, leaf) before span `i` that may be its parent."""
    thread, start, end, _ = spans[i]
    fitting = [
        j
        for j, (other, _, other_end, leaf) in enumerate(spans[:i])
        if other == thread and not leaf and other_end > start and end <= other_end + tolerance
    ]
    return fitting[-1] if fitting else -1


def nest(spans, tolerance):
    """Return parents, depths, self times and overhangs of sorted spans."""
    parents = [parent_of(spans, i, tolerance) for i in range(len(spans))]
    depths, selves = [], []
    for i, (_, start, end, _) in enumerate(spans):
        depths.append(0 if parents[i] < 0 else depths[parents[i]] + 1)
        children = [ticks(*spans[j][1:3]) for j in range(len(spans)) if parents[j] == i]
        selves.append(len(ticks(start, end) - set().union(*children)))
    overhangs = [p >= 0 and spans[i][2] > spans[p][2] for i, p in enumerate(parents)]
    return parents, depths, selves, overhangs


def innermost(spans, group, moment):
    """Return the last of the sorted (group, start, end) that is open at the moment."""
    open_ones = [i for i, (g, s, e) in enumerate(spans) if g == group and s <= moment < e]
    return open_ones[-1] if open_ones else -1


def innermost_call(calls, tolerance):
    """Return the place of the innermost (thread, start, end) of a key, -1 if they do not nest."""
    for outer, inner in pairwise(calls):
        inside = outer[1] <= inner[1] < outer[2] and inner[2] <= outer[2] + tolerance
        if inner[0] != outer[0] or not inside:
            return -1
    return len(calls) - 1


def subtree_union(parents, intervals):
    """Return for each node the ticks that (node, start, end) of its subtree cover."""
    covered = [set() for _ in parents]
    for node, start, end in intervals:
        while node >= 0:
            covered[node] |= ticks(start, end)
            node = parents[node]
    return [len(found) for found in covered]
