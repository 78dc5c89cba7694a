from __future__ import annotations

import math

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_copy as places

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

BF16, F32 = "c10::BFloat16", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_FORMULA = "no formula for this form of the op"


def test_routing_moves_all_operands():
    # topk_softmax(weights, indices, token_expert_indices, gating_output, renormalize)
    dims = [[8, 2], [8, 2], [8, 2], [8, 32], []]
    done = work_of("aiter::topk_softmax", dims, [F32, "int", "int", BF16, "Scalar"])
    assert done.bytes == 3 * 16 * 4 + 256 * 2
    assert done.flops == 256  # elements of the largest operand
    assert done.parameters == {"largest": 256}


def test_sending_tokens():
    done = work_of("MoEDispatch", [[8, 32]], [BF16])
    assert (done.flops, done.bytes) == (0, 8 * 32 * 2)
    assert done.parameters == {"tokens": 8, "hidden": 32}
    assert work_of("MoECombine", [[2, 4, 32]], [F32]).bytes == 8 * 32 * 4
    done = work_of("deep_ep::dispatch", [[8, 32]], [BF16])
    assert (done.flops, done.bytes, done.why) == (0, None, NO_FORMULA)


@pytest.mark.parametrize("op", ["SortTokens", "TopK", "_OperationFuserAutogradFunction"])
def test_what_returns_its_outputs_has_no_formula(op):
    # vLLM captures: SortTokens ((32, 4), (32, 4), ()), whose results are no inputs
    family = op_categories.load().family(op)
    assert model_of(family).slots_of(op, family) is None


spellings = st.sampled_from(sorted(places.SIZES))


@given(st.lists(st.tuples(st.lists(st.integers(0, 4), max_size=3), spellings), min_size=1))
def test_routing_as_slow(operands):
    dims = [shape for shape, _ in operands]
    done = work_of("aiter::moe_sorting_fwd", [*dims, []], [*(t for _, t in operands), "Scalar"])
    assert done.bytes == sum(places.moved(shape, spelling) for shape, spelling in operands)
    assert done.flops == max(math.prod(shape) for shape in dims)


@given(
    st.sampled_from(["aiter::moe_sum", "MoEDispatch"]),
    st.lists(st.lists(st.integers(-3, 4), max_size=3), max_size=4),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", "TensorList"]), max_size=4),
)
def test_any_inputs_are_valued_or_explained(op, dims, types):
    done = work_of(op, dims, types)
    assert (done.why is None) == (done.flops is not None and done.bytes is not None)


@pytest.mark.parametrize(
    ("op", "dims", "types", "flops", "why"),
    [
        ("aiter::moe_sum", [], [], None, NO_INPUTS),
        ("aiter::moe_sum", [[]], ["Scalar"], None, NO_SHAPE),
        ("aiter::moe_sum", [[-2, -3]], [F32], None, MISFIT),
        ("aiter::moe_sum", [[2, 3]], None, 6, NO_TYPE),
        ("MoEDispatch", [], [], 0, NO_INPUTS),
        ("MoEDispatch", [[5]], [F32], 0, MISFIT),
        ("MoEDispatch", [[5, 3]], None, 0, NO_TYPE),
    ],
)
def test_unknown_with_a_reason(op, dims, types, flops, why):
    done = work_of(op, dims, types, None, None if dims else [""])
    assert (done.flops, done.bytes, done.why) == (flops, None, why)
