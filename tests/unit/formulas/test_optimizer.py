"""Ops over lists of tensors, by hand and against a plain twin."""

from __future__ import annotations

import math

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_softmax as plain

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

TENSORS, SCALAR, FLOAT = "TensorList", "Scalar", "float"
TWO = [[3, 4], [5]]  # 17 elements


def test_sglang_copies_by_hand():
    # sglang_decode: _foreach_copy_ of a list of one tensor (32), int32: 32 × (4 + 4).
    dims, types = [[[32]], [[32]], []], [TENSORS, TENSORS, SCALAR]
    done = work_of("aten::_foreach_copy_", dims, types, None, ["", "", "False"], element=4)
    assert (done.flops, done.bytes) == (0, 256)
    assert done.parameters == {"tensors": 1, "elements": 32}


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "flops", "moved"),
    [
        ("add_", [TWO, TWO, []], [TENSORS, TENSORS, SCALAR], ["", "", "1"], 17, 3 * 17 * 2),
        ("add_", [TWO, TWO, []], [TENSORS, TENSORS, SCALAR], ["", "", "0.5"], 34, 3 * 17 * 2),
        ("add_", [TWO, []], [TENSORS, SCALAR], ["", "1"], 17, 2 * 17 * 2),
        ("mul_", [TWO, []], [TENSORS, FLOAT], ["", ""], 17, 2 * 17 * 2 + 4),
        ("mul", [TWO, []], [TENSORS, "ScalarList"], ["", "[1, 2]"], 17, 2 * 17 * 2),
        ("pow", [[], TWO], [SCALAR, TENSORS], ["2", ""], 17, 2 * 17 * 2),
        ("sqrt", [TWO], [TENSORS], [""], 17, 2 * 17 * 2),
        ("zero_", [TWO], [TENSORS], [""], 0, 17 * 2),
        ("addcdiv_", [TWO] * 3 + [[]], [TENSORS] * 3 + [SCALAR], ["", "", "", "1"], 51, 4 * 34),
        ("lerp_", [TWO, TWO, []], [TENSORS, TENSORS, SCALAR], ["", "", "0.1"], 51, 3 * 34),
        ("norm", [TWO, [], []], [TENSORS, SCALAR, ""], ["", "2", ""], 17, 17 * 2 + 2 * 2),
        ("add_", [[[], [0]], []], [TENSORS, SCALAR], ["", "1"], 1, 2 * 2),
    ],
)
def test_foreach_by_hand(op, dims, types, values, flops, moved):
    done = work_of(f"aten::_foreach_{op}", dims, types, None, values, element=2)
    assert (done.flops, done.bytes) == (flops, moved)


def test_unscaling_gradients():
    op = "aten::_amp_foreach_non_finite_check_and_unscale_"
    done = work_of(op, [TWO, [], []], [TENSORS, FLOAT, FLOAT], None, [""] * 3, element=2)
    assert (done.flops, done.bytes) == (34, 17 * 4 + 8)


def test_the_scale_of_a_loss():
    types = [FLOAT, "int", FLOAT, SCALAR, SCALAR, SCALAR]
    done = work_of("aten::_amp_update_scale_", [[]] * 6, types)
    assert (done.flops, done.bytes) == (1, 3 * 4 + 2 * 4)


ADAM_TYPES = [TENSORS] * 6 + [SCALAR] * 7 + ["", ""]
ADAM_VALUES = [""] * 6 + ["0.1"] * 7 + ["", ""]


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=2), min_size=1, max_size=4),
    st.sampled_from([2, 4]),
    st.booleans(),
)
def test_adam_as_the_plain_twin(shapes, width, has_max):
    lists = [shapes] * 4 + [shapes if has_max else [], [[]] * len(shapes)]
    dims = lists + [[]] * 9
    done = work_of("aten::_fused_adamw_", dims, ADAM_TYPES, None, ADAM_VALUES, element=width)
    assert (done.flops, done.bytes) == plain.adam(shapes, width, has_max)


def test_adam_by_hand():
    # Seven passes of 4 bytes: p, g, m, v read, p, m, v written; 12 FLOPs a parameter.
    dims = [TWO] * 4 + [[], [[], []]] + [[]] * 9
    done = work_of("aten::_fused_adam_", dims, ADAM_TYPES, None, ADAM_VALUES, element=4)
    assert (done.flops, done.bytes) == (17 * 12, 17 * 7 * 4)
    # With a scale the gradients are written back too.
    types = [*ADAM_TYPES[:-2], FLOAT, FLOAT]
    done = work_of("aten::_fused_adam_", dims, types, None, ADAM_VALUES, element=4)
    assert done.bytes == 17 * 8 * 4


@pytest.mark.parametrize(
    ("momentum", "is_first", "flops", "passes"),
    [(TWO, "False", 4, 5), (TWO, "True", 4, 4), ([], "True", 2, 3)],
)
def test_sgd(momentum, is_first, flops, passes):
    dims = [TWO, TWO, momentum] + [[]] * 9
    types = [TENSORS] * 3 + [SCALAR] * 7 + ["", ""]
    values = [""] * 3 + ["0.1"] * 4 + ["False", "False", is_first] + ["", ""]
    done = work_of("aten::_fused_sgd_", dims, types, None, values, element=4)
    assert (done.flops, done.bytes) == (17 * flops, 17 * passes * 4)


@pytest.mark.parametrize(
    ("op", "dims", "types", "element", "flops", "why"),
    [
        ("_foreach_add_", None, None, 4, None, "inputs were not recorded"),
        # more than 30 tensors are recorded as none
        ("_foreach_add_", [[], [], []], [TENSORS, TENSORS, SCALAR], 4, None, "shape of an input"),
        ("_foreach_add_", [TWO, []], [TENSORS, SCALAR], math.nan, 17, "type of an input"),
        ("_foreach_add_", [TWO, [[5]], []], [TENSORS] * 2, 4, None, "do not fit"),
        ("_foreach_add_", [TWO, [[4], [5]]], [TENSORS] * 2, 4, None, "no formula"),
        ("_foreach_add_", [[[-3, -4]], []], [TENSORS, SCALAR], 4, None, "do not fit"),
        ("_foreach_add_", [[3, 4], []], [FLOAT, SCALAR], 4, None, "shape of an input"),
        ("_fused_adam_", [[]] * 6, [TENSORS] * 6, 4, None, "shape of an input"),
        ("_fused_adam_", [TWO], [TENSORS], 4, None, "do not fit"),
        ("_fused_adam_", [TWO, [[3, 4], [6]]], [TENSORS] * 2, 4, None, "do not fit"),
        ("_fused_adam_", [TWO] * 4, [TENSORS] * 4, math.nan, 204, "type of an input"),
        ("_amp_update_scale_", [[2], [], []], [FLOAT, "int", FLOAT], 4, None, "do not fit"),
        ("_amp_update_scale_", [[], [], []], None, 4, 1, "type of an input"),
    ],
)
def test_what_cannot_be_known(op, dims, types, element, flops, why):
    done = work_of(f"aten::{op}", dims, types, element=element)
    assert (done.flops, done.bytes) == (flops, None)
    assert why in done.why


def test_every_op_of_the_table_has_a_formula_or_is_known_to_have_none():
    found = {
        op
        for op, rule in op_categories.load().exact.items()
        if rule.family in ("foreach", "fused_optim")
        and model_of(rule.family).slots_of(op, rule.family) is None
    }
    apex = ("adam", "axpby", "l2norm", "lamb", "scale")
    assert found == {f"amp_C::multi_tensor_{name}" for name in apex}
