from __future__ import annotations

import numpy as np
import pytest
from formula_cases import table, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_copy as places
from reference import formulas_fill as slow

from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.registry import model_of

BF16, F32, I64 = "c10::BFloat16", "float", "long int"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
NO_FORMULA = "no formula for this form of the op"


def test_fill_of_a_trace():
    # vLLM capture: aten::fill_ ((8192, 64, 64), ()) bf16
    dims = [[8192, 64, 64], []]
    done = work_of("aten::fill_", dims, [BF16, "Scalar"], [[4096, 64, 1], []], ["", "0"])
    assert (done.flops, done.bytes) == (0, 8192 * 4096 * 2) == (0, 67_108_864)
    assert done.parameters == {"bytes_read": 0, "bytes_written": 67_108_864}
    assert work_of("aten::zero_", [[8192, 64, 64]], [BF16]).bytes == done.bytes


def test_fill_of_one_value_and_of_none():
    assert work_of("aten::fill_", [[], []], [BF16, "Scalar"]).bytes == 2
    assert work_of("aten::fill_", [[0, 72], []], ["int", "Scalar"]).bytes == 0


def arange(values, out=None, types=("", "", "", "Scalar")):
    given_types = ["Scalar"] * len(values)
    if out is None:
        dims, types = [[]] * (len(values) + 4), [*given_types, *types]
        return work_of("aten::arange", dims, types, None, [*values, "", "", "", "False"])
    return work_of(
        "aten::arange", [[]] * len(values) + [[0]], [*given_types, out], None, [*values, ""]
    )


def test_arange_of_traces():
    # h100 Qwen: (0, 559) outside, (0, 559, 1, out (0,) long int) inside: both write 559 numbers
    for done in (arange(["0", "559"]), arange(["0", "559", "1"], I64)):
        assert (done.flops, done.bytes, done.dtype) == (0, 559 * 8, "int64")
    # h100 owlv2: (5,)
    assert arange(["5"]).bytes == 40
    # sglang: (238, 270), dtype 4
    types = ["Scalar", "Scalar", "Scalar", "", "", "Scalar"]
    done = work_of("aten::arange", [[]] * 6, types, None, ["238", "270", "4", "", "", "False"])
    assert done.bytes == 32 * 8
    # hta sampled_rank-1: no values
    done = work_of("aten::arange", [[]] * 5, ["Scalar", "Scalar", "", "", ""])
    assert (done.flops, done.bytes, done.why) == (0, None, NO_VALUE)


def test_arange_of_other_types():
    assert arange(["0", "1", "0.25"]).bytes == 4 * 4
    assert arange(["0", "1", "0.25"], BF16).bytes == 4 * 2
    assert arange(["5", "0", "-2"]).bytes == 3 * 8
    assert arange(["3", "3"]).bytes == 0
    types = ["Scalar"] * 3 + ["Scalar", "", "", "Scalar"]
    done = work_of("aten::arange", [[]] * 7, types, None, ["0", "8", "2", "15", "", "", ""])
    assert (done.bytes, done.dtype) == (4 * 2, "bf16")
    done = work_of("aten::arange", [[]] * 7, types, None, ["0", "8", "2", "99", "", "", ""])
    assert (done.bytes, done.why) == (None, NO_TYPE)


@pytest.mark.parametrize("values", [["5", "0"], ["0", "5", "0"], ["0", "5", "-1"], ["0", "1e300"]])
def test_arange_that_never_ends(values):
    done = arange(values)
    assert (done.flops, done.bytes) == (0, None)
    assert done.why is not None


def test_linspace():
    types = ["Scalar", "Scalar", "Scalar", "", "", "", "Scalar"]
    values = ["0", "1", "50", "", "", "", "False"]
    assert work_of("aten::linspace", [[]] * 7, types, None, values).bytes == 50 * 4
    assert work_of("aten::linspace", [[]] * 5, types[:5], None, values[:5]).why == NO_FORMULA


def test_random_numbers_of_a_trace():
    # hta MI250: aten::normal_ ((5, 128), (), (), ()) float; 10 FLOPs each (A14)
    dims, types = [[5, 128], [], [], []], [F32, "Scalar", "Scalar", ""]
    done = work_of("aten::normal_", dims, types, [[128, 1], [], [], []], ["", "0.", "1.", ""])
    assert (done.flops, done.bytes) == (10 * 640, 640 * 4)


def test_bernoulli_reads_probabilities_that_are_a_tensor():
    assert work_of("aten::bernoulli_", [[8], [], []], ["bool", "Scalar", ""]).bytes == 8
    assert work_of("aten::bernoulli_", [[8], [8], []], ["bool", F32, ""]).bytes == 8 + 32
    assert work_of("aten::poisson", [[8], []], [F32, ""]).bytes == 64


def test_dropout():
    dims, types = [[8, 16], [], []], [BF16, "Scalar", "Scalar"]
    done = work_of("aten::native_dropout", dims, types, None, ["", "0.1", "True"])
    assert (done.flops, done.bytes) == (10 * 128, 128 * (2 + 2 + 1))
    done = work_of("aten::native_dropout", dims, types, None, ["", "0.1", "False"])
    assert (done.flops, done.bytes) == (0, 128 * 5)
    done = work_of("aten::native_dropout", dims, types, None, ["", "1", "True"])
    assert (done.flops, done.bytes) == (0, 128 * 3)
    done = work_of("aten::_fused_dropout", dims, types, None, ["", "0.1", ""])
    assert (done.flops, done.bytes) == (10 * 128, 128 * 5)


def test_dropout_backward():
    dims = [[8, 16], [8, 16], []]
    done = work_of("aten::native_dropout_backward", dims, [BF16, "bool", "Scalar"])
    assert (done.flops, done.bytes) == (2 * 128, 128 * (2 + 1 + 2))
    done = work_of("aten::native_dropout_backward", [[8], [9], []], [BF16, "bool", "Scalar"])
    assert (done.bytes, done.why) == (None, MISFIT)


def test_dropout_backward_from_its_forward_call():
    backward, forward = model_of("dropout_bwd"), model_of("dropout")
    slots = backward.slots_of_forward(forward, "aten::native_dropout", "dropout")
    found, rows = table([{"dims": [[8, 16], [], []], "types": [BF16, "Scalar", "Scalar"]}])
    none = np.array([np.nan])
    work = evaluate(backward, read_inputs(found), np.array(rows), np.array([slots]), none)
    assert (work.flops[0], work.bytes[0]) == (2 * 128, 128 * 5)


sizes = st.lists(st.integers(0, 4), max_size=3)
spellings = st.sampled_from(sorted(places.SIZES))


@given(st.data(), sizes, spellings)
def test_fill_as_slow(data, shape, spelling):
    strides = [data.draw(st.sampled_from([0, 1])) if i == 0 else 4**i for i in range(len(shape))]
    done = work_of("aten::fill_", [shape, []], [spelling, "Scalar"], [strides, []])
    assert done.bytes == places.moved(shape, spelling, strides)


@given(st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([-4, -1, -0.5, 0.5, 1, 3]))
def test_arange_as_slow(start, end, step):
    done = arange([str(start), str(end), str(step)], F32)
    if (end - start) * step < 0:
        assert (done.bytes, done.why) == (None, MISFIT)
    else:
        assert done.bytes == 4 * slow.counted(start, end, step)


@given(sizes, spellings, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_dropout_as_slow(shape, spelling, p, is_training):
    types, values = [spelling, "Scalar", "Scalar"], ["", str(p), str(is_training)]
    done = work_of("aten::native_dropout", [shape, [], []], types, None, values)
    assert (done.flops, done.bytes) == slow.dropped(shape, spelling, p, is_training)
    types = [spelling, "bool", "Scalar"]
    done = work_of("aten::native_dropout_backward", [shape, shape, []], types)
    assert (done.flops, done.bytes) == slow.undropped(shape, spelling, "bool")


OPS = ["fill_", "zero_", "arange", "linspace", "normal_", "bernoulli_", "native_dropout"]


@given(
    st.sampled_from([*OPS, "native_dropout_backward", "_fused_dropout"]),
    st.lists(st.lists(st.integers(-3, 4), max_size=3), max_size=7),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", "TensorList"]), max_size=7),
    st.lists(st.sampled_from(["", "0", "-7", "1e300", "nan", "inf", "True", "x"]), max_size=7),
)
def test_any_inputs_are_valued_or_explained(op, dims, types, values):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert (done.why is None) == (done.flops is not None and done.bytes is not None)
    assert done.bytes is None or done.bytes >= 0


@pytest.mark.parametrize(
    ("op", "dims", "types", "why"),
    [
        ("aten::fill_", [], [], NO_INPUTS),
        ("aten::arange", [], [], NO_INPUTS),
        ("aten::zero_", [[]], [""], NO_SHAPE),
        ("aten::zero_", [[-3, -2]], [F32], MISFIT),
        ("aten::zero_", [[3]], None, NO_TYPE),
    ],
)
def test_unknown_with_a_reason(op, dims, types, why):
    done = work_of(op, dims, types, None, None if dims else [""])
    assert (done.flops, done.bytes, done.why) == (0, None, why)


@pytest.mark.parametrize("op", ["aten::zeros", "aten::ones_like", "aten::rand", "aten::dropout"])
def test_those_whose_inside_does_the_work_have_no_formula(op):
    from tracehouse.analysis import op_categories

    family = op_categories.load().family(op)
    assert model_of(family).slots_of(op, family) is None
