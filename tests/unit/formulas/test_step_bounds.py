"""Bounds on attention where a step says only its tokens: the truth of drawn requests is inside."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehouse.formulas.step_bounds import bounds
from tracehouse.formulas.step_sums import CONTEXT, EITHER, GENERATION, UNCLEAR, Sums, part_of
from tracehouse.formulas.step_work import Sizes, attention

NAN = math.nan
LONGEST = 24
REQUESTS = st.lists(
    st.tuples(st.integers(1, 8), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))),
    max_size=4,
)


def sums_of(context, generation):
    """The sums of requests, each (queries, keys)."""
    values = {"r_c": len(context), "r_g": len(generation)}
    for side, requests in (("c", context), ("g", generation), ("t", context + generation)):
        values[f"{side}_sq"] = sum(q for q, _ in requests)
        values[f"{side}_sk"] = sum(k for _, k in requests)
        values[f"{side}_sqsq"] = sum(q * q for q, _ in requests)
        values[f"{side}_sqsk"] = sum(q * k for q, k in requests)
    return Sums(**{name: np.array([float(value)]) for name, value in values.items()})


def sizes(window=NAN, shared=0):
    """Two query heads on one of keys; widths 3 and 2; 2 bytes a query, 1 a key."""
    return Sizes(*(np.array([float(v)]) for v in (NAN, 2, 1, 3, 2, 3, 2, 2, 1, window, shared)))


def hidden(sums, names):
    """The sums with some not said; totals that need them are not said either."""
    gone = {name: np.array([NAN]) for name in names}
    for name in ("sk", "sqsq", "sqsk"):
        if {f"c_{name}", f"g_{name}"} & set(names):
            gone[f"t_{name}"] = np.array([NAN])
    return sums._replace(**gone)


UNSAID = st.sets(
    st.sampled_from(
        ["r_c", "r_g", "c_sk", "c_sqsq", "c_sqsk", "g_sk", "g_sqsq", "g_sqsk"],
    )
)


@given(REQUESTS, REQUESTS, UNSAID, st.booleans())
@settings(deadline=None)
def test_the_truth_is_inside(context, generation, unsaid, is_latent):
    whole = sums_of(context, generation)
    truth = attention(sizes(shared=is_latent), whole)
    found = bounds(sizes(shared=is_latent), hidden(whole, unsaid), LONGEST)
    assert found.flops_min[0] <= truth.flops[0] <= found.flops_max[0]
    assert found.bytes_min[0] <= truth.bytes[0] <= found.bytes_max[0]


def windowed(context, generation, window):
    """Twice the pairs, and the keys, that a window leaves, request by request.

    A query of context sees what is before it and half of itself, as everywhere; one of generation
    all keys of its request that the window covers.
    """
    pairs = keys = 0.0
    for queries, length in context:
        for row in range(queries):
            before = length - queries + row
            pairs += 2 * min(before, window - 1) + 1
        keys += min(length, queries + window - 1)
    for queries, length in generation:
        pairs += 2 * queries * min(length, window)
        keys += min(length, queries + window - 1)
    return pairs, keys


@given(REQUESTS, REQUESTS, UNSAID, st.integers(1, 12))
@settings(deadline=None)
def test_the_truth_is_inside_with_a_window(context, generation, unsaid, window):
    whole = sums_of(context, generation)
    pairs, keys = windowed(context, generation, window)
    flops, moved = 2 * 5 * pairs, whole.t_sq[0] * 2 * 5 * 2 + keys * 5
    for longest in (LONGEST, NAN):
        found = bounds(sizes(window), hidden(whole, unsaid), longest)
        assert found.flops_min[0] <= flops <= found.flops_max[0]
        assert found.bytes_min[0] <= moved <= found.bytes_max[0]
    most = attention(sizes(window), whole)
    assert flops <= most.flops[0]
    assert moved <= most.bytes[0]


@given(REQUESTS, REQUESTS)
@settings(deadline=None)
def test_bounds_of_what_is_known_are_it(context, generation):
    whole = sums_of(context, generation)
    truth, found = attention(sizes(), whole), bounds(sizes(), whole, NAN)
    assert found.flops_min == found.flops_max == truth.flops == truth.flops_seed
    assert found.bytes_min == found.bytes_max == truth.bytes


def test_two_prefills_by_hand():
    """execute_context_2(14721)_generation_0(0); H 32/8, d 128: truth for 7803 and 6918 is inside.

    Least: 8192·14721²/2. Most: 2·14721·16384 - 14721²/2 with 16,384 positions.
    """
    values = dict.fromkeys(Sums._fields, NAN) | {"r_c": 2, "c_sq": 14721, "t_sq": 14721}
    values |= {f"g_{name}": 0 for name in ("sq", "sk", "sqsq", "sqsk")} | {"r_g": 0}
    step = Sums(**{name: np.array([float(value)]) for name, value in values.items()})
    heads = Sizes(*(np.array([float(v)]) for v in (NAN, 32, 8, 128, 128, 128, 128, 2, 2, NAN, 0)))
    found = bounds(heads, step, 16384)
    assert found.flops_min[0] == 8192 * 14721**2 / 2 == 887635316736  # 4096·216,707,841
    assert found.flops_max[0] == 8192 * (2 * 14721 * 16384 - 14721**2 / 2)
    assert found.flops_min[0] <= 890843406336 <= found.flops_max[0]
    assert found.bytes_min[0] == 301486080  # no token is cached: as in the worked example
    assert found.bytes_max[0] == (14721 * 8192 + 2 * 16384 * 2048) * 2
    without = bounds(heads, step, NAN)
    assert math.isnan(without.flops_max[0])
    assert math.isnan(without.bytes_max[0])
    assert without.flops_min == found.flops_min


def test_nothing_is_known_of_a_step_without_tokens():
    """execute_new_1_cached_63."""
    values = dict.fromkeys(Sums._fields, NAN) | {"r_c": 1, "r_g": 63}
    step = Sums(**{name: np.array([float(value)]) for name, value in values.items()})
    assert all(np.isnan(column[0]) for column in bounds(sizes(), step, 4096))


def test_totals_bound_what_is_not_split():
    """Σqk of all: the triangle of context takes between nothing and Σq² of all."""
    values = dict.fromkeys(Sums._fields, NAN) | {"t_sq": 20, "t_sk": 90, "t_sqsq": 110}
    values |= {"t_sqsk": 500}
    step = Sums(**{name: np.array([float(value)]) for name, value in values.items()})
    found = bounds(sizes(), step, NAN)
    assert (found.flops_min[0], found.flops_max[0]) == (10 * (1000 - 110), 10 * 1000)
    assert found.bytes_min[0] == found.bytes_max[0] == 20 * 10 * 2 + 90 * 5


@pytest.mark.parametrize(
    ("stated", "queries", "part"),
    [
        (0, NAN, 0),
        (0, 104, 0),
        (0, 128, 0),  # padded
        (0, 100, CONTEXT),
        (0, 4, GENERATION),
        (0, 64, UNCLEAR),
        (GENERATION, 104, GENERATION),
        (EITHER, NAN, UNCLEAR),
        (EITHER, 104, 0),
        (EITHER, 4, GENERATION),
    ],
)
def test_requests_that_a_call_is_for(stated, queries, part):
    step = sums_of([(100, 300)], [(1, 9)] * 4)
    assert part_of(np.array([stated]), np.array([float(queries)]), step)[0] == part


def test_an_op_of_either_kind_takes_the_one_there_is():
    step = sums_of([], [(1, 9)] * 4)
    assert part_of(np.array([EITHER]), np.array([NAN]), step)[0] == 0
