"""Steady regions of a sequence: long runs of values near a level, short gaps closed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit


@njit
def runs_near_level(
    value: NDArray[np.int64], level: int, widest_gap: int, shortest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the half-open runs [first, end) of values in band, at least `shortest` long.

    In band is what is at least level − max(1, level / 10): there is no upper limit. Of the values
    between two in band, up to `widest_gap` count as in band too.

    Shapes: value (n,) int64, negative where unknown. Out: first (k,), end (k,) int64, ascending.
    Needs:  level >= 1; widest_gap >= 0; shortest >= 1.
    Cost:   O(n) time, O(n) memory.
    Source: inference §4.3.
    """
    n = value.shape[0]
    first = np.empty(n, dtype=np.int64)
    end = np.empty(n, dtype=np.int64)
    found = 0
    begun = np.int64(-1)
    last = np.int64(-1)
    for i in range(n + 1):
        # value >= level - max(1, level / 10), in whole numbers
        in_band = i < n and (value[i] >= level - 1 or value[i] * 10 >= level * 9)
        in_band = in_band and value[i] > 0
        if in_band:
            if begun < 0:
                begun = np.int64(i)
            last = np.int64(i)
        elif begun >= 0 and (i - last > widest_gap or i == n):
            if last + 1 - begun >= shortest:
                first[found] = begun
                end[found] = last + 1
                found += 1
            begun = np.int64(-1)
    return first[:found], end[:found]


@njit
def longest_run(wanted: NDArray[np.bool_], start: int, stop: int) -> tuple[int, int]:
    """Return the first of the longest half-open runs of wanted places in [start, stop).

    Shapes: wanted (n,) bool. An empty run (start, start) where none is wanted.
    Needs:  0 <= start <= stop <= n.
    Cost:   O(stop − start) time.
    Source: inference §4.2 (longest run of steps of one kind).
    """
    best, best_end, begun = start, start, start
    for i in range(start, stop):
        if not wanted[i]:
            begun = i + 1
        elif i + 1 - begun > best_end - best:
            best, best_end = begun, i + 1
    return best, best_end
