from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.intervals import covered, cut, overlapping

from tracehouse.compute.intervals import (
    clip_overflow,
    overlaps_earlier,
    union_by_group,
)

spans = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-50, 50), st.integers(0, 20)).map(
        lambda s: (s[0], s[1], s[1] + s[2])
    ),
    max_size=30,
).map(sorted)


def columns(rows):
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return tuple(np.ascontiguousarray(table[:, i]) for i in range(3))


def union(rows):
    """Measure the union of one group."""
    return union_by_group(*columns([(0, *row) for row in rows]), 1).tolist()[0]


def test_shared_time_counts_once():
    assert union([(0, 4), (2, 6)]) == 6  # [0,4) and [2,6) share 2 ns


def test_no_interval_covers_nothing():
    assert union([]) == 0
    assert union_by_group(*columns([]), 2).tolist() == [0, 0]


def test_an_inner_interval_adds_nothing_and_a_gap_stays_out():
    # [0,10) holds [2,3); then a gap of 5; then [15,16): 10 + 1
    assert union([(0, 10), (2, 3), (15, 16)]) == 11


def test_nanoseconds_since_1970_are_exact():
    at = 1_759_300_074_000_000_000
    assert union([(at, at + 3), (at + 2, at + 4)]) == 4


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
def test_overlaps_equal_reference(rows):
    assert overlaps_earlier(*columns(rows)).tolist() == overlapping(rows)


def clipped(rows, slack=1_000):
    group, start, end = columns([row[:3] for row in rows])
    exempt = np.array([row[3] for row in rows], dtype=np.bool_)
    return clip_overflow(group, start, end, exempt, slack).tolist()


def test_an_interval_that_runs_far_over_later_ones_ends_where_the_next_begins():
    # F45 in µs, slack 1 ms: add and the copy are cut to 1040 and 1100
    rows = [(1000, 3_401_000), (1040, 1060), (1070, 3_151_070), (1100, 1120)]
    assert clipped([(0, *row, False) for row in rows]) == [1040, 1060, 1100, 1120]


def test_what_is_not_far_stays():
    # ends exactly 1000 after the next start, and one tick more
    assert clipped([(0, 0, 1_010, False), (0, 10, 20, False)]) == [1_010, 20]
    assert clipped([(0, 0, 1_011, False), (0, 10, 20, False)]) == [10, 20]


def test_what_outlives_no_later_one_stays():
    # the later one ends with it, or behind it
    assert clipped([(0, 0, 5_000, False), (0, 10, 5_000, False)]) == [5_000, 5_000]
    assert clipped([(0, 0, 5_000, False), (0, 10, 5_001, False)]) == [5_000, 5_001]


def test_the_one_outlived_need_not_be_the_next():
    # [10, 9000) outlives [0, 5000), [20, 30) does not: cut at 10
    rows = [(0, 0, 5_000, False), (0, 10, 9_000, False), (0, 20, 30, False)]
    assert clipped(rows) == [10, 20, 30]


def test_equal_starts_are_no_later_ones():
    # both are cut at 10; without the third both stay
    rows = [(0, 0, 5_000, False), (0, 0, 6_000, False)]
    assert clipped(rows) == [5_000, 6_000]
    assert clipped([*rows, (0, 10, 20, False)]) == [10, 10, 20]


def test_other_streams_and_graphs_are_left_alone():
    assert clipped([(0, 0, 5_000, False), (1, 10, 20, False)]) == [5_000, 20]
    assert clipped([(0, 0, 5_000, True), (0, 10, 20, False)]) == [5_000, 20]


def test_ends_beyond_every_range():
    top = 2**63 - 2**32
    assert clipped([(0, -top, top, False), (0, -top + 1, -top + 2, False)]) == [-top + 1, -top + 2]


rows_to_cut = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 40), st.booleans()).map(
        lambda row: (row[0], row[1], row[1] + row[2], row[3])
    ),
    max_size=15,
).map(lambda rows: sorted(rows, key=lambda row: row[:2]))


@given(rows_to_cut, st.integers(0, 10))
def test_clipping_equals_reference(rows, slack):
    assert clipped(rows, slack) == cut(rows, slack)
