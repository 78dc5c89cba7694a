"""Root-mean-square norms of inference engines."""

from __future__ import annotations

import pytest
from formula_cases import MIB, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_fused_norm as twin
from reference.formulas_norm import Tensor

BF16 = "c10::BFloat16"
FP8 = "c10::Float8_e4m3fn"


def call(op, dims, types=None, strides=None, values=None):
    types = types or [BF16 if d else "Scalar" for d in dims]
    return work_of(op, [list(d) for d in dims], types, strides, values)


# Rows of the traces (inference/sglang_decode, vllm_decode_full, vllm_prefilldecode_piecewise) and
# of perf_models A10 (the last two), with the peer's numbers: equal.
GOLDEN = [
    ("aiter::rmsnorm", [(32, 4096)] * 2 + [(4096,), ()], 0.000524352, 0.5078125),
    ("aiter::rmsnorm", [(1024, 128)] * 2 + [(128,), ()], 0.000526336, 0.500244140625),
    ("aiter::rmsnorm", [(256, 128)] * 2 + [(128,), ()], 0.000131584, 0.125244140625),
    ("aiter::add_rmsnorm", [(32, 4096)] * 4 + [(4096,), ()], 0.000655424, 1.0078125),
    ("aiter::rms_norm", [(32, 2880), (2880,), (), ()], 0.000368704, 0.3570556640625),
    ("aiter::rms_norm", [(8192, 2880), (2880,), (), ()], 0.094388224, 90.0054931640625),
    (
        "aiter::rmsnorm2d_fwd_with_add_ck",
        [(32, 2880)] * 4 + [(2880,), (), ()],
        0.000460864,
        0.7086181640625,
    ),
    (
        "aiter::rmsnorm2d_fwd_with_add_ck",
        [(8192, 2880)] * 4 + [(2880,), (), ()],
        0.117981184,
        180.0054931640625,
    ),
    ("aiter::rmsnorm", [(491520, 128)] * 2 + [(128,), ()], 0.25264128, 240.000244140625),
    ("aiter::add_rmsnorm", [(15360, 4096)] * 4 + [(4096,), ()], 0.31460352, 480.0078125),
]


@pytest.mark.parametrize(("op", "dims", "gflop", "mib"), GOLDEN)
def test_golden(op, dims, gflop, mib):
    done = call(op, dims)
    assert done.gflop == pytest.approx(gflop, rel=1e-12)
    assert done.bytes == mib * MIB
    assert (done.dtype, done.why) == ("bf16", None)


def test_padded_rows_by_hand():
    # inference/vllm_decode_full: x is a view of rows of 3,072 numbers, 2,880 of which are read
    dims = [(32, 2880)] * 4 + [(2880,), (), ()]
    strides = [[2880, 1], [3072, 1], [2880, 1], [2880, 1], [1], [], []]
    done = call("aiter::rmsnorm2d_fwd_with_add_ck", dims, strides=strides)
    assert done.flops == 5 * 92_160 + 2 * 32 == 460_864
    assert done.bytes == 4 * 92_160 * 2 + 2_880 * 2 == 743_040


def test_outer_and_inner_agree():
    x, w = (32, 2880), (2880,)
    inner = call("aiter::rmsnorm2d_fwd_with_add_ck", [x, x, x, x, w, (), ()])
    assert call("vllm::rocm_aiter_rmsnorm2d_fwd_with_add", [x, x, w, ()]) == inner
    inner = call("aiter::rms_norm", [x, w, (), ()])
    assert call("vllm::rocm_aiter_rms_norm", [x, w, ()]) == inner


@pytest.mark.parametrize("op", ["_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm"])
def test_in_place_moves_as_much_as_out_of_place(op):
    x, w = (2, 8), (8,)
    assert call(op, [x, x, w, ()]) == call("aiter::add_rmsnorm", [x, x, x, x, w, ()])


# n = 16 in rows of 8: 4n + 2·2, n for a residual, 2n to find scales or n to use one.
QUANTISED = [
    (
        "aiter::rmsnorm2d_fwd_with_dynamicquant_ck",
        [(2, 8), (2, 8), (2, 1), (8,), ()],
        [FP8, BF16, "float", BF16, "Scalar"],
        6 * 16 + 4,
        16 + 32 + 8 + 16,
    ),
    (
        "aiter::rmsnorm_quant",
        [(2, 4), (2, 8), (2, 2), (8,), ()],
        ["unsigned char", BF16, "float", BF16, "Scalar"],  # two values to a byte
        6 * 16 + 4,
        8 + 32 + 16 + 16,
    ),
    (
        "aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck",
        [(2, 8), (2, 8), (2, 8), (2, 8), (2, 1), (8,), ()],
        [FP8, BF16, BF16, BF16, "float", BF16, "Scalar"],
        7 * 16 + 4,
        16 + 3 * 32 + 8 + 16,
    ),
    (
        "_C::rms_norm_static_fp8_quant",
        [(2, 8), (2, 8), (8,), (1,), ()],
        [FP8, BF16, BF16, "float", "Scalar"],
        5 * 16 + 4,
        16 + 32 + 16 + 4,
    ),
    (
        "_C::fused_add_rms_norm_static_fp8_quant",
        [(2, 8), (2, 8), (2, 8), (8,), (1,), ()],
        [FP8, BF16, BF16, BF16, "float", "Scalar"],
        6 * 16 + 4,
        16 + 3 * 32 + 16 + 4,
    ),
    (
        "_C::rms_norm_dynamic_per_token_quant",
        [(2, 8), (2, 8), (8,), (2, 1), (), (), (2, 8)],
        [FP8, BF16, BF16, "float", "Scalar", "", BF16],
        7 * 16 + 4,
        16 + 3 * 32 + 16 + 8,
    ),
]


@pytest.mark.parametrize(("op", "dims", "types", "flops", "moved"), QUANTISED)
def test_quantised_outputs(op, dims, types, flops, moved):
    done = call(op, dims, types)
    assert (done.flops, done.bytes) == (flops, moved)


def test_allreduce():
    x, w = (4, 7168), (7168,)
    n = 4 * 7168
    done = call("aiter::fused_allreduce_rmsnorm", [(1,), (), x, x, x, x, w, (), (), ()])
    assert (done.flops, done.bytes) == (5 * n + 2 * 4, 4 * n * 2 + 7168 * 2)
    wrapped = call(
        "aiter::fused_allreduce_rmsnorm_",
        [x, x, w, (), (), (), ()],
        values=["", "", "", "1e-06", "tp:0", "False", "0"],
    )
    assert wrapped == done
    assert call("aiter::fused_allreduce_rmsnorm_", [x, x, w, (), ()]) == done


def test_other_declaration_of_allreduce_is_unknown():
    x, w = (4, 7168), (7168,)
    done = call("aiter::fused_allreduce_rmsnorm", [(), x, x, x, x, w, (), ()])
    assert (done.flops, done.bytes) == (None, None)
    assert "fit" in done.why


@pytest.mark.parametrize(
    ("dims", "why"),
    [
        (None, "shape"),
        ([(2, 8)], "shape"),
        ([(2, 8), (2, 8), (2, 8)], "fit"),
        ([(2, 8), (2, 8), (7,)], "fit"),
        ([(3, 8), (2, 8), (8,)], "fit"),
        ([(-2, -8), (-2, -8), (-8,)], "shape"),
        ([(2**40, 2**40), (2**40, 2**40), (2**40,)], "out of range"),
    ],
)
def test_unknown(dims, why):
    done = work_of("_C::rms_norm", dims, dims and [BF16] * len(dims))
    assert (done.flops, done.bytes) == (None, None)
    assert why in done.why


def test_missing_residual_is_no_norm_without_one():
    done = work_of("_C::fused_add_rms_norm", [[2, 8], [], [8]][:1], [BF16])
    assert done.flops is None
    done = work_of("aiter::fused_add_rmsnorm_pad_", [[2, 8], [8], []], [BF16, BF16, "Scalar"])
    assert done.flops is None


def test_unknown_values_and_types():
    dims, types = [[2, 8], [8], [], []], [BF16, BF16, "Scalar", "Scalar"]
    done = work_of("vllm::rocm_aiter_rmsnorm_fp8_group_quant", dims, types)
    assert (done.flops, done.bytes) == (6 * 16 + 4, None)
    assert "value" in done.why
    done = work_of("aiter::rms_norm", dims)
    assert (done.flops, done.bytes) == (4 * 16 + 4, None)
    assert "type" in done.why
    done = work_of("aiter::rms_norm", dims, [BF16, "of another world", "Scalar", "Scalar"])
    assert done.bytes is None
    assert "type" in done.why


def test_flashinfer_has_no_formula():
    with pytest.raises(AssertionError, match="no slots"):
        call("vllm::flashinfer_trtllm_fused_allreduce_norm", [(2, 8), (2, 8), (8,)])


@st.composite
def cases(draw):
    rows = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    row = 2 * draw(st.integers(1, 40))
    kinds = st.sampled_from((BF16, "c10::Half", "float"))
    shape = (*rows, row)
    stride = draw(st.sampled_from((row, row + 6)))
    strides = (stride, 1) if len(rows) == 1 else (rows[1] * stride, stride, 1)
    x = Tensor(shape, draw(kinds), strides)
    return x, Tensor((row,), draw(kinds)), Tensor(shape, draw(kinds))


def as_args(*tensors):
    strides = [
        [] if t is None else list(t.strides or [int(s) for s in _contiguous(t.shape)])
        for t in tensors
    ]
    return (
        [[] if t is None else list(t.shape) for t in tensors],
        ["" if t is None else t.type for t in tensors],
        strides,
    )


def _contiguous(shape):
    step, steps = 1, []
    for size in reversed(shape):
        steps.insert(0, step)
        step *= size
    return steps


@given(cases(), st.integers(1, 50))
def test_equals_reference(case, size):
    x, w, residual = case
    out = Tensor(x.shape, x.type)
    done = work_of("_C::rms_norm", *as_args(out, x, w))
    assert (done.flops, done.bytes) == twin.fused_norm(x, w)
    done = work_of(
        "vllm::rocm_aiter_triton_add_rmsnorm_pad",
        *as_args(x, w, None, residual, None),
        values=["", "", "", "", str(size)],
    )
    assert (done.flops, done.bytes) == twin.fused_norm(x, w, residual, pad=size)
    done = work_of(
        "vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant",
        *as_args(x, residual, w, None, None),
        values=["", "", "", "", str(size)],
    )
    expected = twin.fused_norm(x, w, residual, quantised="found", group=size)
    assert (done.flops, done.bytes) == expected
    scale = Tensor((1,), "float")
    done = work_of("_C::rms_norm_static_fp8_quant", *as_args(Tensor(x.shape, FP8), x, w, scale))
    assert (done.flops, done.bytes) == twin.fused_norm(x, w, quantised="given", scale=scale)


@given(cases(), st.integers(1, 9), st.booleans(), st.booleans())
def test_mxfp4_equals_reference(case, row, has_residual, has_second):
    x, w, residual = case
    x2, w2 = Tensor((*x.shape[:-1], row), x.type), Tensor((row,), w.type)
    second = (x2, w2) if has_second else None
    residual = residual if has_residual else None
    done = work_of(
        "sglang_profiler::fused_mxfp4_quant_fused_rms_mxfp4_quant",
        *as_args(x, w, None, *(second or (None, None)), None, residual),
    )
    expected = twin.fused_norm(x, w, residual, second, quantised="mxfp4")
    assert (done.flops, done.bytes) == expected
