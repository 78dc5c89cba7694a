from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import table
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.formulas.dtypes import NONE
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.model import ABSENT, NO_PARAMETER, WHY, Model, Why

LARGEST = 2.0**62


def run(amounts, whys=None, labels=("n",)):
    """Evaluate a model that states these FLOPs and bytes."""

    def kernel(x, calls, work):
        for i, (flops, moved) in enumerate(amounts):
            work.flops[i], work.bytes[i] = flops, moved
            if whys is not None:
                work.why[i] = whys[i]

    model = Model("test", kernel, "vector", {"a": ABSENT}, labels, {"f": {}})
    found, rows = table([{"dims": [[2]]}] * len(amounts))
    return evaluate(
        model,
        read_inputs(found),
        np.array(rows, dtype=np.int64),
        np.full((len(amounts), 1), ABSENT, dtype=np.int64),
        np.full(len(amounts), np.nan),
    )


@pytest.mark.parametrize("amount", [-1.0, -1e-9, LARGEST, 2.0**63, 1e300, math.inf, -math.inf])
@pytest.mark.parametrize("which", [0, 1])
def test_out_of_range_is_unknown_and_says_so(amount, which):
    amounts = [(amount, 1.0), (1.0, amount)][which]
    work = run([amounts])
    assert math.isnan((work.flops, work.bytes)[which][0])
    assert (work.flops, work.bytes)[1 - which][0] == 1
    assert work.why[0] == Why.TOO_LARGE


@pytest.mark.parametrize("amount", [0.0, -0.0, 0.5, 2.0**53, np.nextafter(LARGEST, 0)])
def test_in_range_stays(amount):
    work = run([(amount, amount)])
    assert (work.flops[0], work.bytes[0], work.why[0]) == (amount, amount, Why.KNOWN)


def test_only_the_call_that_is_out_of_range():
    work = run([(1, 2), (-1, 2), (3, 4)])
    assert work.why.tolist() == [Why.KNOWN, Why.TOO_LARGE, Why.KNOWN]
    assert (work.flops[0], work.flops[2]) == (1, 3)


def test_a_reason_that_was_given_stays():
    work = run([(math.nan, 1), (1, math.nan)], [Why.NO_TYPE, Why.NO_VALUE])
    assert work.why.tolist() == [Why.NO_TYPE, Why.NO_VALUE]


def test_out_of_range_outranks_a_reason():
    assert run([(-1, math.nan)], [Why.NO_TYPE]).why[0] == Why.TOO_LARGE


def test_unknown_without_a_reason_gets_one():
    work = run([(math.nan, 1), (1, math.nan), (math.nan, math.nan)])
    assert work.why.tolist() == [Why.NO_FORMULA] * 3


def test_what_a_model_does_not_write_is_unknown():
    work = run([], labels=("a", "b"))
    assert work.parameters.shape == (0, 2)
    untouched = Model("none", lambda x, calls, work: None, "", {}, ("a", "b"), {"f": {}})
    found, rows = table([{"dims": [[2]]}])
    work = evaluate(
        untouched,
        read_inputs(found),
        np.array(rows),
        np.zeros((1, 0), dtype=np.int64),
        np.full(1, np.nan),
    )
    assert math.isnan(work.flops[0])
    assert math.isnan(work.bytes[0])
    assert (work.why[0], work.dtype[0]) == (Why.NO_FORMULA, NONE)
    assert work.parameters.tolist() == [[NO_PARAMETER, NO_PARAMETER]]


def test_no_calls():
    work = run([])
    assert [len(part) for part in work] == [0] * 5


amounts = st.floats() | st.sampled_from([LARGEST, -1.0, 0.0, math.nan])
reasons = st.sampled_from([Why.KNOWN, Why.NO_TYPE, Why.MISFIT])


@given(st.lists(st.tuples(amounts, amounts, reasons), max_size=8))
def test_every_unknown_has_a_text(calls):
    work = run([call[:2] for call in calls], [call[2] for call in calls])
    for flops, moved, why in zip(work.flops, work.bytes, work.why, strict=True):
        for amount in (flops, moved):
            assert math.isnan(amount) or 0 <= amount < LARGEST
        if math.isnan(flops) or math.isnan(moved):
            assert WHY[Why(why)]


def test_every_reason_has_a_text_of_its_own():
    assert set(WHY) == set(Why)
    assert WHY[Why.KNOWN] is None
    texts = [text for text in WHY.values() if text is not None]
    assert len(set(texts)) == len(Why) - 1
