from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.intervals import covered, overlapping

from tracehouse.compute.intervals import overlaps_earlier, union_by_group, union_length

spans = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-50, 50), st.integers(0, 20)).map(
        lambda s: (s[0], s[1], s[1] + s[2])
    ),
    max_size=30,
).map(sorted)


def columns(rows, width=3):
    table = np.array(rows, dtype=np.int64).reshape(-1, width)
    return tuple(np.ascontiguousarray(table[:, i]) for i in range(width))


def test_shared_time_counts_once():
    assert union_length(*columns([(0, 4), (2, 6)], 2)) == 6  # [0,4) and [2,6) share 2 ns


def test_no_interval_covers_nothing():
    assert union_length(*columns([], 2)) == 0
    assert union_by_group(*columns([]), 2).tolist() == [0, 0]


def test_an_inner_interval_adds_nothing_and_a_gap_stays_out():
    # [0,10) holds [2,3); then a gap of 5; then [15,16): 10 + 1
    assert union_length(*columns([(0, 10), (2, 3), (15, 16)], 2)) == 11


def test_nanoseconds_since_1970_are_exact():
    at = 1_759_300_074_000_000_000
    assert union_length(*columns([(at, at + 3), (at + 2, at + 4)], 2)) == 4


def test_groups_do_not_share_time():
    # group 0: [0,4) and [2,6) = 6; group 1 none; group 2: [2,6) = 4
    assert union_by_group(*columns([(0, 0, 4), (0, 2, 6), (2, 2, 6)]), 3).tolist() == [6, 0, 4]


def test_touching_and_empty_intervals_do_not_overlap():
    # field case F47: (10, dur 0), (10, dur 5), (15, dur 0), (15, dur 5)
    rows = [(0, 10, 10), (0, 10, 15), (0, 15, 15), (0, 15, 20)]
    assert overlaps_earlier(*columns(rows)).tolist() == [False] * 4


def test_an_overlap_is_seen_past_the_neighbour():
    # [0,10) reaches over [1,2) to [5,6)
    rows = [(0, 0, 10), (0, 1, 2), (0, 5, 6), (1, 5, 6)]
    assert overlaps_earlier(*columns(rows)).tolist() == [False, True, True, False]


@given(spans)
def test_union_by_group_equals_reference(rows):
    expected = [covered([row[1:] for row in rows if row[0] == g]) for g in range(4)]
    assert union_by_group(*columns(rows), 4).tolist() == expected


@given(spans)
def test_union_length_equals_reference(rows):
    ordered = sorted(row[1:] for row in rows)
    assert union_length(*columns(ordered, 2)) == covered(ordered)


@given(spans)
def test_overlaps_equal_reference(rows):
    assert overlaps_earlier(*columns(rows)).tolist() == overlapping(rows)
