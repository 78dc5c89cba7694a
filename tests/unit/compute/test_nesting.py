from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from reference import nesting as reference
from reference.frames import call, frame, kernel, op

from tracehouse.analysis.link import link
from tracehouse.compute import intervals, linking, nesting, pairing, subtree
from tracehouse.compute.nesting import innermost, nest
from tracehouse.findings import Findings

TOLERANCE = 3


def in_order(spans):
    """Sort (thread, start, end, leaf) as the routines need it."""
    return sorted(spans, key=lambda s: (s[0], s[1], -s[2]))


def run(spans, tolerance=TOLERANCE):
    table = np.array(spans, dtype=np.int64).reshape(-1, 4)
    thread, start, end = (np.ascontiguousarray(table[:, i]) for i in range(3))
    result = nest(thread, start, end, table[:, 3].astype(np.bool_), tolerance)
    return tuple(column.tolist() for column in result)


def spans_on(threads):
    one = st.tuples(
        st.integers(0, threads - 1), st.integers(0, 60), st.integers(0, 30), st.booleans()
    )
    return st.lists(
        one.map(lambda s: (s[0], s[1], s[1] if s[3] else s[1] + s[2], s[3])), max_size=25
    ).map(in_order)


def test_children_take_their_time_from_the_parent():
    # P [0,100) holds A [10,40) which holds B [20,30), and C [50,60): P keeps 100-30-10, A 30-10
    spans = [(0, 0, 100, 0), (0, 10, 40, 0), (0, 20, 30, 0), (0, 50, 60, 0)]
    parent, depth, self_ns, overhang = run(spans)
    assert parent == [-1, 0, 1, 0]
    assert depth == [0, 1, 2, 1]
    assert self_ns == [60, 20, 10, 10]
    assert overhang == [False] * 4


def test_a_child_that_ends_late_is_clipped():
    # F48: P [100_000, 150_000), C [120_000, 150_002): the clipped child takes 30_000
    parent, _, self_ns, overhang = run([(0, 100_000, 150_000, 0), (0, 120_000, 150_002, 0)], 1_000)
    assert (parent, self_ns, overhang) == ([-1, 0], [20_000, 30_002], [False, True])


@pytest.mark.parametrize(("late", "parent"), [(3, 0), (4, -1)])
def test_the_tolerance_includes_its_bound(late, parent):
    assert run([(0, 0, 10, 0), (0, 5, 10 + late, 0)])[0][1] == parent


def test_a_sibling_that_overhangs_hangs_below_the_grandparent():
    # G [0,100) holds P [10,50); S [40,90) overhangs P by 40: child of G. P and S share [40,50):
    # G keeps 100 - |[10,90)| = 20, P its own 40
    parent, depth, self_ns, overhang = run([(0, 0, 100, 0), (0, 10, 50, 0), (0, 40, 90, 0)])
    assert parent == [-1, 0, 0]
    assert depth == [0, 1, 1]
    assert self_ns == [20, 40, 50]
    assert not any(overhang)


def test_a_span_that_starts_at_the_end_is_no_child():
    assert run([(0, 0, 10, 0), (0, 10, 20, 0)])[0] == [-1, -1]


def test_a_span_of_unknown_length_is_a_leaf():
    parent, depth, self_ns, _ = run([(0, 0, 10, 0), (0, 5, 5, 1), (0, 5, 5, 0), (0, 6, 8, 0)])
    assert parent == [-1, 0, 0, 0]
    assert depth == [0, 1, 1, 1]
    assert self_ns == [8, 0, 0, 2]


def test_threads_do_not_nest_in_each_other():
    assert run([(0, 0, 100, 0), (1, 10, 20, 0)])[0] == [-1, -1]


@given(spans_on(2))
def test_nest_equals_reference(spans):
    assert run(spans) == reference.nest(spans, TOLERANCE)


@given(spans_on(1))
def test_descendants_follow_without_a_gap(spans):
    parent = run(spans)[0]
    last = list(range(len(parent)))
    for i in reversed(range(len(parent))):
        if parent[i] >= 0:
            last[parent[i]] = max(last[parent[i]], last[i])
    for i, p in enumerate(parent):
        assert all(parent[j] >= i for j in range(i + 1, last[i] + 1))
        assert p < i


@given(spans_on(2))
def test_self_times_of_one_thread_sum_to_its_roots(spans):
    # what the children take, they or theirs keep; siblings that overlap keep more
    parent, _, self_ns, _ = run(spans, 0)
    assert min(self_ns, default=0) >= 0
    roots = sum(s[2] - s[1] for s, p in zip(spans, parent, strict=True) if p < 0)
    assert sum(self_ns) >= roots


@given(spans_on(3), st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 95)), max_size=20))
def test_innermost_equals_reference(spans, moments):
    spans = [span[:3] for span in spans]
    moments = sorted(moments)
    columns = [np.array(column, dtype=np.int64) for column in zip(*spans, strict=True)]
    columns = columns or [np.empty(0, np.int64)] * 3
    at = np.array(moments, dtype=np.int64).reshape(-1, 2)
    found = innermost(*columns, np.ascontiguousarray(at[:, 0]), np.ascontiguousarray(at[:, 1]))
    assert found.tolist() == [reference.innermost(spans, *moment) for moment in moments]


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without JIT")
def test_each_routine_is_compiled_for_one_set_of_types():
    # other tests may have run first: the types are those of the callers, int64 and bool throughout
    events = [op("aten::mm", 0, 9), call("cudaLaunchKernel", 1, 1, 4), kernel("k", 3, 2, 4)]
    events.append({"ph": "B", "pid": 5, "tid": 5, "ts": 1})
    link(frame(events), "0" * 16, findings=Findings())
    routines = (
        nesting.nest,
        nesting.innermost,
        linking.innermost_calls,
        intervals.union_by_group,
        intervals.overlaps_earlier,
        intervals.clip_overflow,
        pairing.pair_ends,
        subtree.subtree_union,
        subtree.add_to_parents,
    )
    assert {routine.__name__: len(routine.signatures) for routine in routines} == {
        routine.__name__: 1 for routine in routines
    }
