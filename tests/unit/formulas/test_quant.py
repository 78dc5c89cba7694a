"""Quantisation and what undoes it."""

from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_quant as twin
from reference.formulas_norm import Tensor

BF16 = "c10::BFloat16"
FP8 = "c10::Float8_e4m3fn"
INT8 = "signed char"


def test_operands_count_by_their_own_types():
    # n = 2·128: 2.59375n; out 1 byte, x 2, scales 4 (perf_models A13). The peer swaps the types:
    # it counts x as 1 byte of the output and the scales as 2 of x: 256 + 256·1 + 2·2.
    done = work_of(
        "aiter::dynamic_per_token_scaled_quant",
        [[2, 128], [2, 128], [2, 1]],
        [FP8, BF16, "float"],
    )
    assert done.flops == 2.59375 * 256 == 664
    assert done.bytes == 256 + 256 * 2 + 2 * 4 == 776
    assert (done.dtype, done.why) == ("bf16", None)


def test_group_quantisation():
    # 6n; 2n + n + M·⌈N/g⌉·4
    done = work_of(
        "vllm::triton_per_token_group_quant_fp8",
        [[3, 200], []],
        [BF16, "Scalar"],
        values=["", "128"],
    )
    assert (done.flops, done.bytes) == (6 * 600, 3 * 600 + 3 * 2 * 4)
    assert done.parameters == {"elements": 600, "block": 128}


def test_mxfp4():
    # 2n; n·2 + n/2 + n/32
    done = work_of("sglang_profiler::quant_dynamic_mxfp4_quant", [[4, 64]], [BF16])
    assert (done.flops, done.bytes) == (512, 512 + 128 + 8)
    done = work_of(
        "sglang_profiler::fused_mxfp4_quant_fused_flatten_mxfp4_quant", [[4, 4, 16]], [BF16]
    )
    assert (done.flops, done.bytes) == (512, 512 + 128 + 8)
    done = work_of(
        "aiter::fused_dynamic_mxfp4_quant_moe_sort_hip",
        [[4, 32], [64, 2], [4, 64], [99], [2]],  # its scales lie in an order with padding
        ["unsigned char", "unsigned char", BF16, "int", "int"],
    )
    assert (done.flops, done.bytes) == (512, 512 + 128 + 8)
    done = work_of(
        "aiter::dynamic_per_group_scaled_quant_fp4",
        [[4, 32], [4, 64], [4, 2]],
        ["c10::Float4_e2m1fn_x2", BF16, "c10::Float8_e8m0fnu"],
    )
    assert (done.flops, done.bytes) == (512, 512 + 128 + 8)


@pytest.mark.parametrize("shape", [(64, 32), (8, 33), (1, 33)])
def test_mxfp4_rows_and_columns(shape):
    m, n = shape
    done = work_of("primus_turbo::quantize_mxfp4_dual", [list(shape)], [BF16])
    assert done.flops == m * n
    assert done.bytes == 2 * m * n + 2 * -(-m * n // 2) + m * -(-n // 32) + n * -(-m // 32)


def test_tensorwise():
    dims, types = [[16, 8], [], []], [BF16, "Scalar", ""]
    for op in ("primus_turbo::quantize_fp8_tensorwise", "tex_ts::cast_to_fp8_ts"):
        done = work_of(op, dims, types)
        assert (done.flops, done.bytes) == (128, 3 * 128)


def test_given_scales_cost_one_flop():
    dims, types = [[2, 8], [2, 8], [1]], [FP8, BF16, "float"]
    for op in ("_C::static_scaled_fp8_quant", "aiter::static_per_tensor_quant"):
        done = work_of(op, dims, types)
        assert (done.flops, done.bytes) == (16, 16 + 32 + 4)
    dims, types = [[2, 8], [2, 8], [1], []], [BF16, FP8, "float", "Scalar"]
    op = "sgl_kernel::sgl_per_tensor_quant_fp8"
    done = work_of(op, dims, types, values=["", "", "", "True"])
    assert (done.flops, done.bytes) == (16, 52)
    done = work_of(op, dims, types, values=["", "", "", "False"])
    assert (done.flops, done.bytes) == (2.59375 * 16, 52)
    done = work_of(op, dims, types)
    assert (done.flops, done.bytes) == (None, 52)
    assert "value" in done.why


def test_more_rows_of_output_than_of_input():
    # vLLM pads the number of tokens of the output; nothing writes the rows beyond
    done = work_of("_C::dynamic_scaled_fp8_quant", [[17, 8], [2, 8], [1]], [FP8, BF16, "float"])
    assert done.bytes == 16 + 32 + 4


def test_nvfp4_has_two_declarations():
    types = ["unsigned char", BF16, FP8, "float"]
    done = work_of("_C::scaled_fp4_quant", [[2, 32], [2, 64], [2, 4], [1]], types)
    assert (done.flops, done.bytes) == (2 * 128, 64 + 256 + 8 + 4)
    done = work_of("_C::scaled_fp4_quant", [[2, 64], [1], []], [BF16, "float", "Scalar"])
    assert (done.flops, done.bytes) == (None, None)
    assert "fit" in done.why


def test_4_bit_blocks():
    done = work_of(
        "bitsandbytes::quantize_4bit",
        [[3, 50], [], [], []],
        [BF16, "Scalar", "", "Scalar"],
        values=["", "64", "nf4", "0"],
    )
    assert (done.flops, done.bytes) == (2 * 150, 300 + 75 + 3 * 4)
    done = work_of(
        "bitsandbytes::dequantize_4bit",
        [[75, 1], [3], [], [], [], []],
        ["unsigned char", "float", "Scalar", "", "ScalarList", "Scalar"],
        values=["", "", "64", "nf4", "[3, 50]", "15"],
    )
    assert (done.flops, done.bytes) == (150, 75 + 12 + 300)


def test_aten():
    dims, types = [[2, 8], [], [], []], ["float", "Scalar", "Scalar", "Scalar"]
    done = work_of("aten::quantize_per_tensor", dims, types, values=["", "0.1", "0", "13"])
    assert (done.flops, done.bytes) == (32, 64 + 16)
    done = work_of("aten::quantize_per_tensor", dims, types)
    assert (done.flops, done.bytes) == (32, None)
    done = work_of("aten::dequantize", [[2, 8]], ["c10::quint8"])
    assert (done.flops, done.bytes) == (32, 16 + 64)
    done = work_of("aten::dequantize", [[[2, 8], [3]]], ["TensorList"])
    assert (done.flops, done.bytes) == (None, None)
    done = work_of("aten::fake_quantize_per_tensor_affine_cachemask", dims, types)
    assert (done.flops, done.bytes) == (64, 64 + 64 + 16)


@pytest.mark.parametrize(
    ("dims", "why"),
    [
        (None, "shape"),
        ([[2, 8]], "shape"),
        ([[2, 7], [2, 8], [2, 1]], "fit"),
        ([[1, 8], [2, 8], [2, 1]], "fit"),
        ([[-2, -8], [-2, -8], [2, 1]], "shape"),
        ([[2**40, 2**40], [2**40, 2**40], [1]], "out of range"),
    ],
)
def test_unknown(dims, why):
    types = dims and [FP8, BF16, "float"][: len(dims)]
    done = work_of("aiter::dynamic_per_token_scaled_quant", dims, types)
    assert (done.flops, done.bytes) == (None, None)
    assert why in done.why


def test_no_types_leave_flops():
    done = work_of("aiter::dynamic_per_token_scaled_quant", [[2, 8], [2, 8], [2, 1]])
    assert (done.flops, done.bytes) == (2.59375 * 16, None)
    assert "type" in done.why


@pytest.mark.parametrize("size", [None, "0", "-4", "many"])
def test_no_group_size(size):
    values = None if size is None else ["", size]
    op = "vllm::triton_per_token_group_quant_fp8"
    done = work_of(op, [[2, 8], []], [BF16, "Scalar"], values=values)
    assert (done.flops, done.bytes) == (96, None)
    assert "value" in done.why


@pytest.mark.parametrize(
    "op",
    [
        "aten::_fused_moving_avg_obs_fq_helper",
        "aten::choose_qparams_optimized",
        "tex_ts::fp8_cast_transpose_ts",
        "aiter::per_tensor_quant",
        "bitsandbytes::int8_vectorwise_quant",
    ],
)
def test_ops_without_a_formula(op):
    with pytest.raises(AssertionError, match="no slots"):
        work_of(op, [[2, 4]], ["float"])


def as_args(*tensors):
    return (
        [[] if t is None else list(t.shape) for t in tensors],
        ["" if t is None else t.type for t in tensors],
    )


kinds = st.sampled_from((BF16, "c10::Half", "float"))
shapes = st.lists(st.integers(0, 3), min_size=1, max_size=2)


@given(shapes, st.integers(1, 90), kinds, st.integers(1, 50))
def test_groups_equal_reference(rows, half, kind, size):
    x = Tensor((*rows, 2 * half), kind)
    done = work_of(
        "vllm::triton_per_token_group_quant_fp8", *as_args(x, None), values=["", str(size)]
    )
    assert (done.flops, done.bytes) == twin.per_row(x, size, 6, FP8, "float")
    done = work_of("sglang_profiler::quant_dynamic_mxfp4_quant", *as_args(x))
    expected = twin.per_row(x, 32, 2, "unsigned char", "unsigned char", packed=2)
    assert (done.flops, done.bytes) == expected
    scale = Tensor((*rows, twin.blocks(2 * half, size)), "float")
    done = work_of(
        "sgl_kernel::sgl_per_token_group_quant_fp8", *as_args(x, Tensor(x.shape, INT8), scale)
    )
    assert (done.flops, done.bytes) == twin.per_row(x, size, 2.59375, INT8, "float")


@given(st.integers(0, 70), st.integers(0, 70), kinds)
def test_rows_and_columns_equal_reference(rows, columns, kind):
    x = Tensor((rows, columns), kind)
    done = work_of("primus::quantize_mxfp4_dual", *as_args(x))
    assert (done.flops, done.bytes) == twin.dual(x)


@given(shapes, st.integers(1, 9), kinds, st.sampled_from([(12, INT8), (13, INT8), (14, "int")]))
def test_affine_equals_reference(rows, channels, kind, out):
    number, stored = out
    x = Tensor((*rows, channels), kind)
    scale, zero = Tensor((channels,), "double"), Tensor((channels,), "long int")
    done = work_of(
        "aten::quantize_per_channel",
        *as_args(x, scale, zero, None, None),
        values=["", "", "", "1", str(number)],
    )
    assert (done.flops, done.bytes) == twin.affine(x, stored, scale, zero, 2, mask=False)
    done = work_of(
        "aten::fake_quantize_per_channel_affine_cachemask",
        *as_args(x, scale, zero, None, None, None),
    )
    assert (done.flops, done.bytes) == twin.affine(x, x.type, scale, zero, 4, mask=True)
