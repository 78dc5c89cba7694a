"""Backwards of pointwise ops and gated activations, by hand and from golden rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import table, work_of

from tracehouse.formulas import elementwise, elementwise_bwd
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs

BF16, FLOAT, SCALAR = "c10::BFloat16", "float", "Scalar"


def test_golden_threshold_backward():
    # perf_models A7: 2007040 × 2 B × (gradient, input, result) = 11.484 MiB.
    dims, types = [[10, 64, 56, 56]] * 2 + [[]], [BF16, BF16, SCALAR]
    done = work_of("aten::threshold_backward", dims, types, None, ["", "", "0"])
    assert done.flops == 10 * 64 * 56 * 56 == 2_007_040
    assert done.bytes == 2_007_040 * 6
    assert done.mib == pytest.approx(11.484, abs=1e-3)


@pytest.mark.parametrize(
    ("op", "dims", "types", "flops", "moved"),
    [
        ("aten::gelu_backward", [[8], [8], []], [BF16, BF16, ""], 64, 48),
        ("aten::silu_backward", [[8], [8]], [FLOAT] * 2, 8, 96),
        ("aten::tanh_backward", [[8], [8], [8]], [FLOAT] * 3, 8, 96),  # with grad_input=
        ("aten::elu_backward", [[8], [], [], [], [], [8]], [FLOAT, *[SCALAR] * 4, FLOAT], 8, 96),
        # g has 4, x 8, the result 8 elements
        ("aten::glu_backward", [[2, 2], [2, 4], []], [FLOAT, FLOAT, SCALAR], 40, (4 + 8 + 8) * 4),
        # a gradient of the input and one of the weight, both of the input's shape
        ("aten::_prelu_kernel_backward", [[2, 3], [2, 3], [1, 3]], [FLOAT] * 3, 12, 108),
        # g, and a and b that were saved; da and db
        ("LigerSiLUMulFunctionBackward", [[2, 8]], [BF16], 32, 16 * 2 * 5),
    ],
)
def test_by_hand(op, dims, types, flops, moved):
    done = work_of(op, dims, types)
    assert (done.flops, done.bytes) == (flops, moved)


def test_liger_by_the_inputs_of_its_forward_call_is_the_same():
    found, places = table([{"dims": [[2, 8], [2, 8]], "types": [BF16] * 2}])
    backward = elementwise_bwd.MODELS[0]
    slots = backward.slots_of_forward(elementwise.MODELS[0], "LigerSiLUMulFunction", "binary")
    arrays = np.array(places), np.array([slots]), np.array([math.nan])
    work = evaluate(backward, read_inputs(found), *arrays)
    assert (work.flops[0], work.bytes[0]) == (32, 16 * 2 * 5)


@pytest.mark.parametrize(
    ("op", "dims", "types", "flops", "moved"),
    [
        # sglang_decode: golden 0.00196608 GFLOP, 2.25 MiB
        ("sgl_kernel::silu_and_mul", [[32, 12288], [32, 24576]], [BF16] * 2, 1_966_080, 2_359_296),
        # perf_models A7: 0.943718 GFLOP, 1080.0 MiB
        (
            "sgl_kernel::silu_and_mul",
            [[15360, 12288], [15360, 24576]],
            [BF16] * 2,
            943_718_400,
            1080 * 2**20,
        ),
        (
            "_C::silu_and_mul_quant",
            [[2, 4], [2, 8], [1]],
            ["c10::Float8_e4m3fn", BF16, FLOAT],
            48,
            44,
        ),
        ("_C::gelu_new", [[2, 4], [2, 4]], [BF16] * 2, 64, 32),
        ("aten::glu", [[2, 8], []], [FLOAT, SCALAR], 40, 96),
    ],
)
def test_gated(op, dims, types, flops, moved):
    done = work_of(op, dims, types)
    assert (done.flops, done.bytes) == (flops, moved)


@pytest.mark.parametrize(
    ("op", "dims", "types", "flops", "why"),
    [
        ("aten::silu_backward", None, None, None, "inputs were not recorded"),
        ("aten::silu_backward", [[8]], [FLOAT], None, "do not fit"),
        ("aten::silu_backward", [[8], [7]], [FLOAT] * 2, None, "do not fit"),
        ("aten::silu_backward", [[8], []], [FLOAT, ""], None, "do not fit"),
        ("aten::silu_backward", [[8], [8]], None, 8, "type of an input"),
        ("aten::glu_backward", [[2, 3], [2, 4], []], [FLOAT, FLOAT, SCALAR], None, "do not fit"),
        ("_C::silu_and_mul", [[2, 4], [2, 7]], [BF16] * 2, None, "do not fit"),
        ("_C::silu_and_mul", [[2, 4]], [BF16], None, "do not fit"),
        ("_C::silu_and_mul", [[2, -4], [2, -8]], [BF16] * 2, None, "do not fit"),
        ("_C::silu_and_mul", [[2, 4], [2, 8]], None, 40, "type of an input"),
        ("_C::silu_and_mul", None, None, None, "inputs were not recorded"),
        ("aten::glu", [[3], []], [FLOAT, SCALAR], None, "do not fit"),
    ],
)
def test_what_cannot_be_known(op, dims, types, flops, why):
    done = work_of(op, dims, types)
    assert (done.flops, done.bytes) == (flops, None)
    assert why in done.why
