"""Unions and overlaps of half-open intervals `[start, end)`."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def union_length(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Measure the time covered by at least one interval.

    Shapes: start (n,), end (n,): int64, contiguous; n may be 0.
    Units:  ns in, ns out.
    Needs:  start ascending, end[i] >= start[i].
    Cost:   O(n) time, O(1) memory.
    Source: perf_models B3 (busy time is a union).
    """
    covered = 0
    reach = np.iinfo(np.int64).min
    for i in range(start.shape[0]):
        if end[i] > reach:
            covered += end[i] - max(start[i], reach)
            reach = end[i]
    return covered


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
