"""Matrix products whose operands are transposed by flags, and those of two 4-bit operands.

Source: perf_models A3.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import (
    BF16,
    BYTES,
    CODE,
    FP4,
    FP8,
    FP16,
    FP32,
    INT64,
    UINT8,
    UNKNOWN,
)
from tracehouse.formulas.gemm import (
    GELU_FLOPS,
    LABELS,
    operand_bytes,
    other_bytes,
    report,
)
from tracehouse.formulas.gemm_vendor import is_output, output_type, scale_bytes, values_of
from tracehouse.formulas.inputs import (
    AN_INT,
    Inputs,
    Ints,
    count,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    numel,
    rank,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_A, _B, _BIAS, _OUT, _OUT_TYPE, _DEFAULT, _SCALE_A, _SCALE_B, _BLOCK, _PACKED = range(10)
_TRANS_A, _TRANS_B, _TRANS_C, _BETA, _SUM, _TYPE_A, _GELU, _GRAD, _MOVED = range(10, 19)
# TransformerEngine's numbers of types.
_TE_TYPES = np.array(
    (UINT8, CODE["int32"], INT64, FP32, FP16, BF16, FP8, CODE["fp8_e5m2"]), dtype=np.int64
)


@njit
def product_by_flags(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate matrix products of a (M, K), or (K, M), and b (K, N), or (N, K).

    Slots:  a, b; trans_a, trans_b, trans_c: the flags; an op without flags has a as (M, K) and b
            as (N, K). bias; out: a tensor of M·N elements; out_type: a ScalarType number; default:
            type code of the output where neither says; scale_a, scale_b; block: values of K that
            share a scale, so that padding is not counted; packed: values in an 8-bit element;
            beta, sum: what the output is added to if the value beta is not 0; type_a:
            TransformerEngine's number of the type of a; gelu, grad: its epilogue; moved: 1 if an
            integer in place of `bias` tells the declaration in which there is no `out`.
    Units:  FLOPs, bytes.
    Needs:  a and b with two dimensions, and the flags' values.
    Cost:   O(1) a call.
    Source: perf_models A3. A gelu adds 8 FLOPs an element (A7) and writes its input; what its
            gradient costs is not known.
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
    if rank(x, r, a) != 2 or rank(x, r, b) != 2:
        work.why[i] = Why.MISFIT
        return
    flag_a, flag_b = _flag(x, r, slot[_TRANS_A], 0.0), _flag(x, r, slot[_TRANS_B], 1.0)
    flag_c, beta = _flag(x, r, slot[_TRANS_C], 0.0), _flag(x, r, slot[_BETA], 0.0)
    grad = _flag(x, r, slot[_GRAD], 0.0)
    if math.isnan(flag_a + flag_b + flag_c + beta + grad):
        work.why[i] = Why.NO_VALUE
        return
    if slot[_MOVED] == 1 and kind(x, r, slot[_BIAS]) == AN_INT:
        slot[_BIAS], slot[_OUT_TYPE], slot[_OUT] = slot[_OUT], slot[_BIAS], ABSENT
    m, k = _two(x, r, a, slot[_PACKED], flag_a == 0)
    n, inner = _two(x, r, b, slot[_PACKED], flag_b != 0)
    if m < 0 or n < 0 or k < 0 or inner != k:
        work.why[i] = Why.MISFIT
        return
    out = slot[_OUT] if is_output(x, r, slot[_OUT], m * n) else ABSENT
    bias = slot[_BIAS]
    biased = is_tensor(x, r, bias) and numel(x, r, bias) > 0
    if biased and numel(x, r, bias) != n:
        work.why[i] = Why.MISFIT
        return
    summed = beta != 0 and is_tensor(x, r, slot[_SUM])
    gelu = is_tensor(x, r, slot[_GELU]) and numel(x, r, slot[_GELU]) > 0
    adds = (1.0 if biased else 0.0) + (1.0 if summed else 0.0) + (GELU_FLOPS if gelu else 0.0)
    work.flops[i] = m * n * (2.0 * k + (math.nan if gelu and grad != 0 else adds))
    groups = math.ceil(k / slot[_BLOCK]) if slot[_BLOCK] > 0 else math.inf
    written = output_type(x, r, a, out, slot[_OUT_TYPE], slot[_DEFAULT])
    work.bytes[i] = (
        operand_bytes(x, r, a)
        + operand_bytes(x, r, b)
        + (other_bytes(x, r, bias) if biased else 0.0)
        + (other_bytes(x, r, slot[_SUM]) if summed else 0.0)
        + (other_bytes(x, r, slot[_GELU]) if gelu else 0.0)
        + _scales(x, r, slot[_SCALE_A], m, groups)
        + _scales(x, r, slot[_SCALE_B], n, groups)
        + m * n * BYTES[written]
    )
    work.dtype[i] = _precision(x, r, slot)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    elif math.isnan(work.flops[i]):
        work.why[i] = Why.NO_FORMULA
    if flag_c != 0:
        m, n = n, m
    report(work, i, 1.0, m, n, k, biased)


@njit
def _flag(x: Inputs, r: int, i: int, default: float) -> float:
    return default if i < 0 or i >= count(x, r) else number(x, r, i)


@njit
def _two(x: Inputs, r: int, i: int, packed: int, k_is_last: bool) -> tuple[float, float]:
    """Return the other dimension of an operand and its K; values are packed along the last one."""
    last = float(dim(x, r, i, 1)) * values_of(dtype(x, r, i), packed)
    first = float(dim(x, r, i, 0))
    return (first, last) if k_is_last else (last, first)


@njit
def _scales(x: Inputs, r: int, i: int, lines: float, groups: float) -> float:
    return scale_bytes(x, r, i, math.inf if math.isinf(groups) else lines * groups)


@njit
def _precision(x: Inputs, r: int, slot: Ints) -> int:
    """Return the type of a, which a packed or TransformerEngine's operand holds as bytes."""
    code = dtype(x, r, slot[_A])
    if code != UINT8:
        return code
    if slot[_PACKED] == 2:
        return FP4
    held = number(x, r, slot[_TYPE_A])
    return _TE_TYPES[int(held)] if 0 <= held < _TE_TYPES.shape[0] else code


_FOUR_BITS = {"a": 0, "b": 1, "scale_a": 2, "scale_b": 3, "block": 32, "packed": 2, "default": BF16}
_HIPBLASLT = {"a": 0, "scale_a": 1, "b": 2, "scale_b": 3, "out_type": 4}
_HIPBLASLT |= {"trans_a": 5, "trans_b": 6, "trans_c": 7, "beta": 9, "sum": 10, "default": UNKNOWN}

MODELS = (
    Model(
        name="gemm_flags",
        kernel=product_by_flags,
        unit="matrix",
        slots={
            "a": ABSENT,
            "b": ABSENT,
            "bias": ABSENT,
            "out": ABSENT,
            "out_type": ABSENT,
            "default": UNKNOWN,
            "scale_a": ABSENT,
            "scale_b": ABSENT,
            "block": 0,
            "packed": 1,
            "trans_a": ABSENT,
            "trans_b": ABSENT,
            "trans_c": ABSENT,
            "beta": ABSENT,
            "sum": ABSENT,
            "type_a": ABSENT,
            "gelu": ABSENT,
            "grad": ABSENT,
            "moved": 0,
        },
        labels=LABELS,
        families={
            "gemm_fp4": None,
            "gemm_fp8_trans": _HIPBLASLT,
            "gemm_te": {"a": 5, "b": 0, "trans_a": 9, "trans_b": 4, "out": 10, "bias": 14}
            | {"beta": 20, "sum": 10, "type_a": 8, "gelu": 16, "grad": 17},
        },
        ops={
            "aiter::gemm_a4w4": _FOUR_BITS | {"out": 4, "bias": 5, "moved": 1},
            "aiter::_gemm_a4w4_asm": _FOUR_BITS | {"out": 4, "bias": 6},
            "aiter::gemm_a4w4_blockscale": _FOUR_BITS | {"out": 4},
            "aiter::gemm_afp4wfp4_": _FOUR_BITS | {"out_type": 4, "out": 5},
            "primus_turbo::hipblaslt_gemm_fp4": _HIPBLASLT | {"block": 32, "packed": 2},
            "primus_turbo_cpp_extension::hipblaslt_gemm_fp4": _HIPBLASLT
            | {"block": 32, "packed": 2},
        },
    ),
)
