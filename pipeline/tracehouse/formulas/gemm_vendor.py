"""Matrix products of other libraries: scaled, packed, batched, of any output type.

Weights are mostly (N, K), as a linear layer holds them. Source: perf_models A3; positions of
inputs: A3, and the libraries' own declarations.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import (
    BF16,
    BYTES,
    CODE,
    FIRST_TENSOR_TYPE,
    FP4,
    FP16,
    LIST,
    UINT8,
    UNKNOWN,
    VALUES,
    dtype_of_enum,
)
from tracehouse.formulas.gemm import (
    LABELS,
    add_flops,
    multiply_add_flops,
    operand_bytes,
    other_bytes,
    report,
)
from tracehouse.formulas.inputs import (
    Inputs,
    Ints,
    count,
    dim,
    dtype,
    is_tensor,
    item,
    number,
    numel,
    rank,
    touched,
    values,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_A, _B, _BIAS, _OUT, _OUT_TYPE, _DEFAULT, _SCALE_A, _SCALE_B, _OTHER = range(9)
_LAYOUT, _PACKED, _SIZES, _FORM = range(9, 13)
_K_N, _N_K, _EITHER, _FOUR_BITS, _LAST, _LIST, _VALUE = range(7)
_FIXED, _SCALED_MM, _WV_SPLIT_K = range(3)
OF_A = -1  # the output has the type of a
OF_WIDE_A = -2  # the type of a, bfloat16 where that has 8 bits


@njit
def product(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate matrix products of other libraries.

    Slots:  a (…, M, K); b: (K, N), (N, K), either, 4-bit values in any order, (any, N), or as the
            input `sizes` says, by `layout`; both may have a batch in front. bias: N elements; out:
            a tensor of M·N elements; out_type: a ScalarType number; default: type code of the
            output where neither says; scale_a, scale_b, other: further tensors that are read;
            packed: values in a byte of an 8-bit b, or of both if a has 8 bits; form: which of the
            declarations that an op has had.
    Units:  FLOPs, bytes.
    Needs:  the shapes of a and b.
    Cost:   O(1) a call.
    Source: perf_models A3, C17: scales are read, the bias counts by its own shape, the output by
            its own type.
    """
    for i in range(calls.row.shape[0]):
        _product(x, calls, work, i)


@njit
def _product(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    slot = calls.slot[i].copy()
    a, b = slot[_A], slot[_B]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    if rank(x, r, a) < 1 or rank(x, r, b) < 1:
        work.why[i] = Why.NO_SHAPE
        return
    _as_declared(x, r, slot)
    code = dtype(x, r, a)
    rows, k = lines_of(x, r, a), float(dim(x, r, a, -1)) * values_of(code, slot[_PACKED])
    n, inner = _columns(x, r, slot, k)
    if math.isnan(n):
        work.why[i] = Why.NO_VALUE
        return
    batch = float(dim(x, r, b, 0)) if rank(x, r, b) == 3 and slot[_LAYOUT] == _N_K else 1.0
    fits = batch == 1 or (rank(x, r, a) == 3 and batch in (dim(x, r, a, 0), dim(x, r, a, 1)))
    if not (fits and rows >= 0 and n >= 0 and k >= 0 and batch >= 0 and inner == k):
        work.why[i] = Why.MISFIT
        return
    out = slot[_OUT] if is_output(x, r, slot[_OUT], rows * n) else ABSENT
    bias = slot[_BIAS] if slot[_BIAS] != out else ABSENT
    biased = is_tensor(x, r, bias)
    if biased and numel(x, r, bias) != n and numel(x, r, bias) != n * batch:
        work.why[i] = Why.MISFIT
        return
    work.flops[i] = rows * n * (k * multiply_add_flops(code) + (add_flops(code) if biased else 0.0))
    written = output_type(x, r, a, out, slot[_OUT_TYPE], slot[_DEFAULT])
    work.bytes[i] = (
        operand_bytes(x, r, a)
        + operand_bytes(x, r, b)
        + other_bytes(x, r, bias)
        + other_bytes(x, r, slot[_SCALE_A])
        + other_bytes(x, r, slot[_SCALE_B])
        + other_bytes(x, r, slot[_OTHER])
        + rows * n * BYTES[written]
    )
    work.dtype[i] = FP4 if code == UINT8 and slot[_PACKED] == 2 else code
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    report(work, i, batch, rows / max(batch, 1.0), n, k, biased)


@njit
def _as_declared(x: Inputs, r: int, slot: Ints) -> None:
    """Move slots to where an older declaration of the op has its inputs.

    `_scaled_mm` had (bias, out_dtype, scale_a, scale_b, scale_result) after its operands;
    `wvSplitKQ` had no bias.
    """
    if slot[_FORM] == _SCALED_MM and dtype(x, r, 3) != UNKNOWN and not is_tensor(x, r, 3):
        slot[_BIAS], slot[_OUT_TYPE] = 2, 3
        slot[_SCALE_A], slot[_SCALE_B], slot[_OTHER] = 4, 5, 6
    if slot[_FORM] == _WV_SPLIT_K and count(x, r) == 6:
        slot[_BIAS], slot[_OUT], slot[_SCALE_A], slot[_SCALE_B] = ABSENT, 2, 3, 4


@njit
def _columns(x: Inputs, r: int, slot: Ints, k: float) -> tuple[float, float]:
    """Return N and K as b says; N is NaN if a value that says it is missing."""
    b, layout = slot[_B], slot[_LAYOUT]
    code = dtype(x, r, b)
    if layout == _LIST:
        return item(x, r, slot[_SIZES], 0), item(x, r, slot[_SIZES], 1)
    if layout == _VALUE:
        return number(x, r, slot[_SIZES]), k
    if layout == _LAST:
        return float(dim(x, r, b, -1)), k
    if layout == _FOUR_BITS:
        held = numel(x, r, b) * 2.0 * BYTES[code]
        return (math.floor(held / k), k if held % k == 0 else -1.0) if k > 0 else (-1.0, k)
    last = float(dim(x, r, b, -1)) * values_of(code, slot[_PACKED])
    before = float(dim(x, r, b, -2))
    if layout == _N_K or (layout == _EITHER and before != k):
        return before, last
    return float(dim(x, r, b, -1)), before * VALUES[code]


@njit
def values_of(code: int, packed: int) -> float:
    """Return the values in an element: those of its type, or `packed` in one of 8 bits."""
    if packed > 1 and (code == UNKNOWN or BYTES[code] == 1):
        return float(packed)
    return float(VALUES[code])


@njit
def lines_of(x: Inputs, r: int, i: int) -> float:
    """Return the product of all dimensions of input i but the last; NaN if one is negative."""
    product_of_dims = 1.0
    for d in range(rank(x, r, i) - 1):
        size = dim(x, r, i, d)
        product_of_dims *= size if size >= 0 else math.nan
    return product_of_dims


@njit
def is_output(x: Inputs, r: int, i: int, elements: float) -> bool:
    """Tell whether input i is the output: a tensor of that many elements, no vector."""
    return is_tensor(x, r, i) and rank(x, r, i) > 1 and numel(x, r, i) == elements


@njit
def output_type(x: Inputs, r: int, a: int, out: int, out_type: int, default: int) -> int:
    """Return the type of the output: its own, the one asked for, or the op's default.

    A default that is the type of `a` is known only if the value was recorded, as None.
    """
    if out >= 0:
        return dtype(x, r, out)
    asked = number(x, r, out_type)
    if not math.isnan(asked):
        return dtype_of_enum(asked)
    if default >= 0:
        return default
    code = dtype(x, r, a)
    if code >= FIRST_TENSOR_TYPE and BYTES[code] == 1:
        if default == OF_WIDE_A:
            return BF16
        if out_type >= 0 and out_type >= values(x, r):
            return UNKNOWN
    return code


@njit
def scale_bytes(x: Inputs, r: int, i: int, scales: float) -> float:
    """Return the bytes of at most so many scales: a padded tensor of them has more."""
    if i < 0:
        return 0.0
    if dtype(x, r, i) == LIST:
        return math.nan
    if not is_tensor(x, r, i):
        return 0.0
    return min(touched(x, r, i), scales) * BYTES[dtype(x, r, i)]


_INT32 = CODE["int32"]
_LINEAR = {"a": 0, "b": 1, "layout": _N_K}
_SCALED = {"a": 0, "b": 1, "scale_a": 2, "scale_b": 3, "layout": _K_N}
_LINEAR_SCALED = _SCALED | {"layout": _N_K, "default": BF16}
_INTO = {"out": 0, "a": 1, "b": 2, "layout": _EITHER, "default": UNKNOWN}
_SLOTS = {
    "a": ABSENT,
    "b": ABSENT,
    "bias": ABSENT,
    "out": ABSENT,
    "out_type": ABSENT,
    "default": OF_A,
    "scale_a": ABSENT,
    "scale_b": ABSENT,
    "other": ABSENT,
    "layout": _K_N,
    "packed": 1,
    "sizes": ABSENT,
    "form": _FIXED,
}
_OPS_NT = {
    "vllm::rocm_unquantized_gemm": _LINEAR | {"bias": 2},
    "vllm::default_unquantized_gemm": _LINEAR | {"bias": 2},
    "aiter::gemm_a16w16": _LINEAR
    | {"bias": 2, "out_type": 3, "scale_a": 4, "scale_b": 5, "other": 6},
    "aiter::gemm_a16w16_atomic_": _LINEAR | {"out_type": 2, "out": 3},
    "aiter::_gemm_a16w16_asm": _LINEAR | {"out": 2, "bias": 4},
    "sglang_profiler::gemm_kernels_flydsl_hgemm": _LINEAR | {"bias": 2, "out": 2},
    "_rocm_C::LLMM1": _LINEAR | {"a": 1, "b": 0, "out": 2},
    "_rocm_C::wvSplitK": _LINEAR | {"a": 1, "b": 0, "bias": 2},
    "_rocm_C::wvSplitKQ": _LINEAR
    | {
        "default": UNKNOWN,
        "a": 1,
        "b": 0,
        "bias": 2,
        "out": 3,
        "scale_a": 4,
        "scale_b": 5,
        "form": _WV_SPLIT_K,
    },
    "aiter::wvSpltK": _LINEAR | {"a": 1, "b": 0, "out": 2},
    "hipb_mm": {"a": 0, "b": 1, "bias": 3, "out_type": 4, "scale_a": 5, "scale_b": 6, "other": 7}
    | {"layout": _EITHER},
}
_OPS_SCALED = {
    "aten::_scaled_mm": _SCALED
    | {"bias": 4, "other": 5, "out_type": 6, "out": 8, "form": _SCALED_MM},
    "aten::_scaled_mm_v2": {"a": 0, "b": 1, "scale_a": 2, "scale_b": 5, "bias": 8, "out_type": 9},
    "aten::_int_mm": {"a": 0, "b": 1, "out": 2, "default": _INT32},
    "aten::_weight_int8pack_mm": _LINEAR | {"scale_b": 2, "out": 3},
    "aten::_weight_int4pack_mm": _LINEAR | {"scale_b": 3, "layout": _FOUR_BITS},
    "trtllm::cublas_scaled_mm": _SCALED | {"bias": 4, "out_type": 5},
    "bitsandbytes::int8_linear_matmul": _LINEAR | {"out": 2, "default": _INT32},
    "bitsandbytes::int8_scaled_mm": _SCALED
    | {"layout": _N_K, "bias": 4, "out_type": 5, "default": FP16},
    "bitsandbytes::gemv_4bit": _LINEAR
    | {"sizes": 2, "scale_b": 3, "other": 4, "out": 6, "layout": _LIST},
    "sgl_kernel::fp8_scaled_mm": _SCALED | {"out_type": 4, "bias": 5, "default": UNKNOWN},
    "sgl_kernel::int8_scaled_mm": _SCALED | {"out_type": 4, "bias": 5, "default": UNKNOWN},
    "sgl_kernel::fp8_blockwise_scaled_mm": _SCALED | {"out_type": 4, "default": UNKNOWN},
    "sgl_kernel::dsv3_fused_a_gemm": _INTO,
    "sgl_kernel::dsv3_router_gemm": _INTO,
    "sgl_kernel::cutlass_scaled_fp4_mm": _INTO
    | {"scale_a": 3, "scale_b": 4, "other": 5, "layout": _N_K, "packed": 2, "default": BF16},
    "_C::cutlass_scaled_fp4_mm": _INTO
    | {"scale_a": 3, "scale_b": 4, "other": 5, "layout": _N_K, "packed": 2, "default": BF16},
    "_C::cutlass_scaled_mm": _INTO | {"scale_a": 3, "scale_b": 4, "bias": 5, "layout": _K_N},
    "_C::cutlass_scaled_mm_azp": _INTO
    | {"scale_a": 3, "scale_b": 4, "other": 5, "bias": 7, "layout": _K_N},
    "_C::awq_gemm": {"a": 0, "b": 1, "scale_b": 2, "other": 3, "layout": _FOUR_BITS},
    "_C::gptq_gemm": {"a": 0, "b": 1, "other": 2, "scale_b": 3, "scale_a": 4, "layout": _LAST},
    "_C::ggml_mul_mat_a8": {"a": 1, "b": 0, "sizes": 3, "layout": _VALUE},
    "fbgemm::f8f8bf16": _LINEAR | {"scale_a": 2, "default": BF16},
    "fbgemm::f8f8bf16_rowwise": _LINEAR_SCALED | {"bias": 4},
    "fbgemm::f8f8bf16_blockwise": _LINEAR_SCALED,
    "vllm::gemm_with_dynamic_quant": _LINEAR
    | {"scale_b": 2, "out_type": 4, "scale_a": 5, "packed": 2, "default": OF_WIDE_A},
}
_OPS_A8W8 = {
    "aiter::gemm_a8w8_asm": _LINEAR_SCALED | {"out": 4, "bias": 6},
    "aiter::gemm_a8w8_ck": _LINEAR_SCALED | {"out": 4, "bias": 5},
    "aiter::gemm_a8w8_bpreshuffle": _LINEAR_SCALED | {"bias": 4, "out_type": 5},
    "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm": _LINEAR
    | {"out": 2, "scale_a": 3, "scale_b": 4, "bias": 5, "default": BF16},
    "vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm": _LINEAR_SCALED
    | {"bias": 4, "out_type": 5},
    "vllm::rocm_aiter_gemm_a8w8_blockscale": _LINEAR_SCALED | {"out_type": 4},
    "vllm::rocm_aiter_triton_gemm_a8w8_blockscale": _LINEAR_SCALED | {"out_type": 4},
    "vllm::w8a8_triton_block_scaled_mm_func": _LINEAR_SCALED | {"out_type": 5},
}
_OPS_BATCHED = {
    "aiter::batched_gemm_a16wfp4_": _LINEAR
    | {"scale_b": 2, "out_type": 3, "out": 4, "packed": 2, "default": BF16},
    "aiter::batched_gemm_a8w8": _LINEAR_SCALED | {"out": 4, "bias": 5},
    "aiter::batched_gemm_bf16": _LINEAR | {"out": 2, "bias": 3},
}

MODELS = (
    Model(
        name="gemm_vendor",
        kernel=product,
        unit="matrix",
        slots=_SLOTS,
        labels=LABELS,
        families={
            "gemm_nt": None,
            "gemm_scaled": None,
            "gemm_a8w8": _LINEAR_SCALED | {"out": 4},
            "gemm_batched_quant": _LINEAR | {"default": BF16},
            "gemm_te_pseudo": {"a": 0, "b": 1, "default": BF16},
        },
        ops=_OPS_NT | _OPS_SCALED | _OPS_A8W8 | _OPS_BATCHED,
    ),
)
