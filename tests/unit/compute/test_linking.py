from __future__ import annotations

from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.nesting import innermost_call

from tracehouse.compute.linking import innermost_calls

TOLERANCE = 2


def run(calls):
    table = np.array(calls, dtype=np.int64).reshape(-1, 4)
    columns = (np.ascontiguousarray(table[:, i]) for i in range(4))
    keys, chosen = innermost_calls(*columns, TOLERANCE)
    return keys.tolist(), chosen.tolist()


def test_the_driver_call_below_the_runtime_call_is_the_launch():
    # F54: id 8 has a runtime row [0,10) and a driver row [2,8) on thread 5; id 9 has one row
    assert run([(8, 5, 0, 10), (8, 5, 2, 8), (9, 5, 20, 25)]) == ([8, 9], [1, 2])


def test_calls_on_two_threads_are_unrelated():
    assert run([(40, 1, 0, 10), (40, 2, 2, 8)]) == ([40], [-1])  # F53


def test_calls_one_after_the_other_are_unrelated():
    assert run([(40, 1, 0, 10), (40, 1, 10, 20)]) == ([40], [-1])


def test_one_stray_call_spoils_the_whole_id():
    # [2,8) nests in [0,10), but [30,40) is elsewhere, and [31,35) in it changes nothing
    assert run([(40, 1, 0, 10), (40, 1, 2, 8), (40, 1, 30, 40), (40, 1, 31, 35)]) == ([40], [-1])


def test_no_calls():
    assert run([]) == ([], [])


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 9), st.integers(0, 9)),
        max_size=12,
    )
)
def test_equals_reference(rows):
    calls = sorted(
        ((k, t, s, s + d) for k, t, s, d in rows), key=lambda c: (c[0], c[1], c[2], -c[3])
    )
    expected = {}
    for key, group in groupby(range(len(calls)), key=lambda i: calls[i][0]):
        places = list(group)
        inner = innermost_call([calls[i][1:] for i in places], TOLERANCE)
        expected[key] = -1 if inner < 0 else places[inner]
    assert run(calls) == (list(expected), list(expected.values()))
