"""Which spans count as one step, and which occurrences belong together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.compute.stepping import (
    BARRIER,
    GENERIC,
    SPECIFIC,
    keep_steps,
    overlapping_runs,
    pair_in_order,
)

G, S, B = GENERIC, SPECIFIC, BARRIER


def kept(parent, kind):
    arrays = keep_steps(np.array(parent, dtype=np.int64), np.array(kind, dtype=np.int8))
    return [array.tolist() for array in arrays]


def test_a_specific_step_takes_what_is_below_it():
    assert kept([-1, 0, 1, 0], [S, S, G, S]) == [[0, 0, 0, 0], [-1] * 4, [-1] * 4]


def test_a_generic_step_names_the_specific_ones_below():
    keeper, holder, _ = kept([-1, 0, 1, 2, 0], [G, G, S, S, S])
    assert keeper == [0, 0, 2, 2, 4]
    assert holder == [-1, -1, 0, -1, 0]


def test_a_barrier_bars_all_below():
    keeper, _, barrier = kept([-1, 0, 1, -1], [B, S, S, S])
    assert keeper == [-1, -1, -1, 3]
    assert barrier == [0, 0, 0, -1]


def test_a_barrier_in_a_step_is_none_of_it():
    keeper, _, barrier = kept([-1, 0, 1], [S, B, S])
    assert keeper == [0, -1, -1]
    assert barrier == [-1, 1, 1]


trees = st.lists(st.tuples(st.integers(-1, 30), st.sampled_from([G, S, B])), max_size=25)


def ancestors(parent, i):
    while parent[i] >= 0:
        i = parent[i]
        yield i


@given(trees)
def test_any_tree(drawn):
    parent = [min(above, i - 1) if above >= 0 else -1 for i, (above, _) in enumerate(drawn)]
    kind = [k for _, k in drawn]
    keeper, holder, barrier = kept(parent, kind)
    for i in range(len(drawn)):
        barred = [j for j in (i, *ancestors(parent, i)) if kind[j] == B]
        assert barrier[i] == (barred[-1] if barred else -1)
        if barred:
            assert keeper[i] == -1
            continue
        line = [i, *ancestors(parent, i)][::-1]  # from the root down
        specific = [j for j in line if kind[j] == S]
        expected = specific[0] if specific else line[0]
        assert keeper[i] == expected
        has_generic_root = expected == i and kind[i] == S and kind[line[0]] == G
        assert holder[i] == (line[0] if has_generic_root else -1)


def runs(spans, touching):
    columns = [np.array(c, dtype=np.int64) for c in zip(*spans, strict=True)]
    return overlapping_runs(*columns, touching).tolist()


def test_runs_of_overlapping_spans():
    #  key 1: 0–10, 5–8, 9–12 | 12–14 touches; key 2 starts anew
    spans = [(1, 0, 10), (1, 5, 8), (1, 9, 12), (1, 12, 14), (2, 13, 15)]
    assert runs(spans, False) == [0, 0, 0, 3, 4]
    assert runs(spans, True) == [0, 0, 0, 0, 4]


def paired(mine, theirs, in_time=True):
    a, b = (
        [np.array([s[i] for s in side], dtype=np.int64) for i in range(2)]
        for side in (mine, theirs)
    )
    return pair_in_order(*a, *b, in_time).tolist()


def test_the_kth_with_the_kth_of_a_key():
    assert paired([(1, 5), (1, 9), (2, 1)], [(1, 0), (1, 6), (1, 7), (2, 0)]) == [0, 1, 3]


def test_what_begins_too_early_has_its_partner_elsewhere():
    assert paired([(1, 2), (1, 9)], [(1, 5)]) == [-1, 0]
    assert paired([(1, 2), (1, 9)], [(1, 5)], in_time=False) == [0, -1]


def test_keys_of_one_side_only():
    assert paired([(1, 2), (3, 9)], [(2, 0), (3, 0)]) == [-1, 1]
