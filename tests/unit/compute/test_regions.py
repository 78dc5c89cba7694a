"""Steady regions of sequences."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.compute.regions import longest_run, runs_near_level


def runs(values, level, gap=2, shortest=3):
    first, end = runs_near_level(np.array(values, dtype=np.int64), level, gap, shortest)
    return list(zip(first.tolist(), end.tolist(), strict=True))


def test_gaps_and_short_runs():
    #         0  1  2  3  4  5  6  7  8  9 10
    values = [9, 9, 1, 1, 9, 1, 1, 1, 9, 9, 1]
    assert runs(values, 9) == [(0, 5)]
    assert runs(values, 9, gap=3) == [(0, 10)]
    assert runs(values, 9, gap=0, shortest=2) == [(0, 2), (8, 10)]
    assert runs([], 9) == []
    assert runs([0] * 5, 1) == []  # nothing runs, however low the level


def test_a_gap_at_the_end_is_none():
    assert runs([9] * 4 + [1], 9) == [(0, 4)]


@given(st.lists(st.booleans(), max_size=30), st.data())
def test_the_longest_run(wanted, data):
    start = data.draw(st.integers(0, len(wanted)))
    stop = data.draw(st.integers(start, len(wanted)))
    best, end = longest_run(np.array(wanted, dtype=np.bool_), start, stop)
    assert all(wanted[best:end])
    assert start <= best <= end <= stop
    lengths = [0]
    for at in range(start, stop):
        lengths.append(lengths[-1] + 1 if wanted[at] else 0)
    assert end - best == max(lengths)
    if best < end:
        assert end - start == lengths.index(max(lengths))  # the first of them
