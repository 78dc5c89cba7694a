from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.pairing import partners

from tracehouse.compute.pairing import pair_ends


def paired(events):
    thread = np.array([thread for thread, _ in events], dtype=np.int64)
    return pair_ends(thread, np.array([begins for _, begins in events], dtype=np.bool_)).tolist()


def test_an_end_closes_the_begin_opened_last():
    # B B E E: 1-2 inside 0-3
    assert paired([(0, True), (0, True), (0, False), (0, False)]) == [3, 2, 1, 0]


def test_what_is_never_closed_and_what_closes_nothing():
    # E B B E: the first end has no begin, the first begin no end
    assert paired([(0, False), (0, True), (0, True), (0, False)]) == [-1, -1, 3, 2]


def test_threads_do_not_close_each_other():
    assert paired([(0, True), (1, False), (2, True), (2, False)]) == [-1, -1, 3, 2]


def test_no_events():
    assert paired([]) == []


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=40))
def test_equals_reference(events):
    events.sort(key=lambda event: event[0])
    assert paired(events) == partners(events)
