"""Unions and overlaps of half-open intervals `[start, end)`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

_LEAST = np.iinfo(np.int64).min


@njit
def union_by_group(
    group: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], groups: int
) -> NDArray[np.int64]:
    """Measure the time covered by at least one interval, for each group.

    Shapes: group, start, end (n,): int64, contiguous; out (groups,): int64, 0 for an empty group.
    Units:  ns in, ns out.
    Needs:  sorted by (group, start); 0 <= group < groups; end[i] >= start[i].
    Cost:   O(n + groups) time, O(groups) memory.
    Source: perf_models B3 (direct kernel time is a union).
    """
    covered = np.zeros(groups, dtype=np.int64)
    reach = 0
    for i in range(group.shape[0]):
        if i == 0 or group[i] != group[i - 1]:
            covered[group[i]] = end[i] - start[i]
            reach = end[i]
        elif end[i] > reach:
            covered[group[i]] += end[i] - max(start[i], reach)
            reach = end[i]
    return covered


@njit
def overlaps_earlier(
    group: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Mark the intervals that share time with an earlier one of their group.

    Touching intervals and intervals of no length share none.

    Shapes: group, start, end (n,): int64, contiguous; out (n,): bool.
    Units:  ns.
    Needs:  sorted by (group, start); end[i] >= start[i].
    Cost:   O(n) time, O(n) memory.
    Source: field_cases F46, F47.
    """
    overlaps = np.zeros(group.shape[0], dtype=np.bool_)
    reach = 0
    for i in range(group.shape[0]):
        if i == 0 or group[i] != group[i - 1]:
            reach = end[i]
        elif end[i] > start[i]:
            overlaps[i] = start[i] < reach
            reach = max(reach, end[i])
    return overlaps


@njit
def clip_overflow(
    group: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    exempt: NDArray[np.bool_],
    slack: int,
) -> NDArray[np.int64]:
    """Find where each interval ends that may not run far over later ones of its group.

    One that ends more than `slack` after the next later start, and after some later-starting one
    has ended, ends at that start instead. Intervals of one start are no later ones to each other.

    Shapes: group, start, end (n,): int64, contiguous; exempt (n,): bool, not to be clipped. Out
            (n,): int64.
    Units:  ns.
    Needs:  sorted by (group, start); end[i] >= start[i]; slack >= 0.
    Cost:   O(n) time, O(n) memory.
    Source: field_cases "Rules used below" and F45.
    """
    n = group.shape[0]
    clipped = end.copy()
    lowest = _LEAST + slack  # what ends no later runs over nothing by more
    least_end = np.int64(0)  # of the intervals of the group that start later
    last = n - 1
    while last >= 0:
        first = last
        while first > 0 and group[first - 1] == group[last] and start[first - 1] == start[last]:
            first -= 1
        has_later = last + 1 < n and group[last + 1] == group[last]
        if has_later:
            following = start[last + 1]
            for i in range(first, last + 1):
                is_far = end[i] > lowest and end[i] - slack > following
                if is_far and end[i] > least_end and not exempt[i]:
                    clipped[i] = following
        for i in range(first, last + 1):
            if not has_later and i == first:
                least_end = end[i]
            least_end = min(least_end, end[i])
        last = first - 1
    return clipped
