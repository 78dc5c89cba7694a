"""Softmax, its backward, and ops over lists of tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import table, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_softmax as plain

from tracehouse.analysis import op_categories
from tracehouse.formulas import softmax as module
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.registry import model_of

BF16, HALF, FLOAT, SCALAR = "c10::BFloat16", "c10::Half", "float", "Scalar"
WIDTHS = {BF16: 2, HALF: 2, FLOAT: 4, "double": 8}


def test_owlv2_by_hand():
    # h100 owlv2: bf16 (16, 5185, 5185), dim -1, half_to_float False; the peer has no model.
    dims, types = [[16, 5185, 5185], [], []], [BF16, SCALAR, SCALAR]
    done = work_of("aten::_softmax", dims, types, None, ["", "-1", "False"])
    n = 16 * 5185 * 5185
    assert n == 430_147_600
    assert (done.flops, done.bytes) == (5 * n, 4 * n) == (2_150_738_000, 1_720_590_400)
    assert done.parameters == {"elements": n}


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "flops", "moved"),
    [
        ("aten::_softmax", [[4], [], []], [HALF, SCALAR, SCALAR], ["", "0", "True"], 20, 24),
        ("aten::_log_softmax", [[4], [], []], [HALF, SCALAR, SCALAR], ["", "0", "False"], 20, 16),
        ("aten::softmax", [[4], [], []], [HALF, SCALAR, ""], ["", "0", ""], 20, 16),
        ("aten::log_softmax", [[4], [], []], [HALF, SCALAR, SCALAR], ["", "0", "6"], 20, 24),
        ("aten::_safe_softmax", [[], [], []], [FLOAT, SCALAR, ""], ["", "0", ""], 5, 8),
        ("aten::_softmax", [[4], [], [], [4]], [BF16, SCALAR, SCALAR, FLOAT], None, 20, 24),
        (
            "aten::_masked_softmax",
            [[2, 3, 4], [3, 4], [], []],
            [FLOAT, "bool", SCALAR, SCALAR],
            ["", "", "-1", "0"],
            120,
            192 + 12,
        ),
        # read 2 × n, write n; the gradient of half that became float is half
        (
            "aten::_softmax_backward_data",
            [[4], [4], [], []],
            [FLOAT, FLOAT, SCALAR, SCALAR],
            ["", "", "0", "5"],
            16,
            4 * (4 + 4 + 2),
        ),
        (
            "aten::_log_softmax_backward_data",
            [[4], [4], [], []],
            [FLOAT, FLOAT, SCALAR, SCALAR],
            ["", "", "0", "6"],
            16,
            48,
        ),
        ("ScaledMaskedSoftmax", [[2, 1, 3, 3], [2, 1, 3, 3]], [HALF, "bool"], None, 108, 18 * 5),
    ],
)
def test_by_hand(op, dims, types, values, flops, moved):
    done = work_of(op, dims, types, None, values)
    assert (done.flops, done.bytes) == (flops, moved)


def test_backward_by_the_inputs_of_its_forward_call():
    # half in, float out: y and its gradient are float, the result is half.
    call = {"dims": [[4], [], []], "types": [HALF, SCALAR, SCALAR], "values": ["", "0", "True"]}
    found, places = table([call])
    forward, backward = module.MODELS
    slots = backward.slots_of_forward(forward, "aten::_softmax", "softmax")
    arrays = np.array(places), np.array([slots]), np.array([math.nan])
    work = evaluate(backward, read_inputs(found), *arrays)
    assert (work.flops[0], work.bytes[0]) == (16, 4 * (4 + 4 + 2))


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(sorted(WIDTHS)), st.booleans())
def test_as_the_plain_twin(shape, spelling, to_float):
    values = ["", "0", str(to_float)]
    done = work_of("aten::_softmax", [shape, [], []], [spelling, SCALAR, SCALAR], None, values)
    width = WIDTHS[spelling]
    expected = plain.softmax(shape, width, 4 if to_float else width)
    assert (done.flops, done.bytes) == expected


@given(st.integers(0, 3), st.integers(0, 5))
def test_causal_as_the_plain_twin(batches, length):
    done = work_of("ScaledUpperTriangMaskedSoftmax", [[batches, length, length]], [HALF])
    assert (done.flops, done.bytes) == plain.causal_softmax(batches, length, 2)


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "flops", "why"),
    [
        ("_softmax", None, None, None, None, "inputs were not recorded"),
        ("_softmax", [[4], [], []], None, None, 20, "type of an input"),
        ("_softmax", [[4], [], []], [HALF, SCALAR, SCALAR], None, 20, "a value that"),
        ("softmax", [[4], [], []], [HALF, SCALAR, SCALAR], None, 20, "a value that"),
        ("_softmax", [[-4, -4], [], []], [HALF, SCALAR, SCALAR], None, None, "do not fit"),
        ("_softmax", [[], [], []], ["", SCALAR, SCALAR], None, None, "do not fit"),
        ("_masked_softmax", [[4]], [FLOAT], None, None, "do not fit"),
        ("_softmax_backward_data", [[4], [3], [], []], [FLOAT] * 2, None, None, "do not fit"),
        ("_softmax_backward_data", [[4]], [FLOAT], None, None, "do not fit"),
    ],
)
def test_what_cannot_be_known(op, dims, types, values, flops, why):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert (done.flops, done.bytes) == (flops, None)
    assert why in done.why


def test_rows_of_a_causal_softmax_are_as_long_as_there_are_many():
    done = work_of("ScaledUpperTriangMaskedSoftmax", [[2, 3, 4]], [HALF])
    assert done.flops is done.bytes is None
    assert "do not fit" in done.why


def test_every_softmax_of_the_table_has_a_formula_or_is_known_to_have_none():
    found = {
        op
        for op, rule in op_categories.load().exact.items()
        if rule.family in ("softmax", "softmax_bwd")
        and model_of(rule.family).slots_of(op, rule.family) is None
    }
    assert found == {"aten::softmin"}
