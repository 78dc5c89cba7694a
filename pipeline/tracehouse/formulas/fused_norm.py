"""Root-mean-square norms of inference engines: with a residual, a quantised or padded output.

n = rows·C elements. FLOPs = 4n + 2·rows, n more for the residual, and for a quantised output 2n
more where the scale is found, n where it is given. Bytes: what is read and written, the outputs by
their own shapes and types where they are arguments. Source: perf_models A10, A16.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, FP32
from tracehouse.formulas.inputs import (
    A_BOOL,
    Inputs,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.norm import elements, leading, reported, why_unknown

# How the output is quantised: not; to a byte by a scale that is given or found; to MX FP4.
NOT, GIVEN_SCALE, FOUND_SCALE, MXFP4 = 0, 1, 2, 3
_BLOCK = 32.0  # values with one scale in the MX formats


@njit
def fused_norm(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the root-mean-square norms of inference engines.

    Slots:  x (…, C); w (C,); residual, x2 like x with w2: optional; out, residual_out, scale:
            outputs that are arguments (a scale may be an input); bound: of the scale; quantised:
            see above; group: value, elements with one scale; pad: value, of whose multiple the
            rows of the output are; plain: flag, the output is written unquantised too.
    Units:  FLOPs, bytes.
    Needs:  w as long as a row of x; group and pad as values.
    Cost:   O(rank) a call.
    Source: perf_models A10 (fused extensions), A16; the reduction across devices is not counted.
    """
    for i in range(calls.row.shape[0]):
        _fused_norm(x, calls, work, i)


@njit
def _fused_norm(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, w, residual, x2, w2, out, residual_out = calls.slot[i, :7]
    scale, bound, quantised, group, pad, plain = calls.slot[i, 7:]
    n = elements(x, r, a)
    missing = residual != ABSENT and quantised != MXFP4 and rank(x, r, residual) < 0
    if rank(x, r, a) < 1 or rank(x, r, w) < 0 or missing or math.isnan(n):
        work.why[i] = Why.NO_SHAPE
        return
    has_residual, has_second = is_tensor(x, r, residual), is_tensor(x, r, x2)
    c = float(dim(x, r, a, -1))
    fits = is_tensor(x, r, w) and numel(x, r, w) == c
    for other in (residual, residual_out):
        if is_tensor(x, r, other):
            fits = fits and elements(x, r, other) == n
    if is_tensor(x, r, out):
        fits = fits and (elements(x, r, out) == n or 2 * elements(x, r, out) == n)
    if has_second:
        fits = fits and numel(x, r, w2) == dim(x, r, x2, -1)
    if not fits:
        work.why[i] = Why.MISFIT
        return
    rows = leading(x, r, a, 1)
    n2 = elements(x, r, x2) if has_second else 0.0
    rows2 = leading(x, r, x2, 1) if has_second else 0.0
    quantising = 0.0 if quantised == NOT else (1.0 if quantised == GIVEN_SCALE else 2.0)
    added = 1.0 if has_residual else 0.0
    code = dtype(x, r, a)
    work.flops[i] = 4 * n + 2 * rows + (added + quantising) * n + 4 * n2 + 2 * rows2
    work.dtype[i] = code
    work.parameters[i, 0] = reported(rows)
    work.parameters[i, 1] = reported(c)
    work.parameters[i, 2] = has_residual
    work.parameters[i, 3] = quantised
    moved = tensor_bytes(x, r, a) + tensor_bytes(x, r, w) + tensor_bytes(x, r, bound)
    moved += tensor_bytes(x, r, x2) + tensor_bytes(x, r, w2) + n2 * BYTES[code] * has_second
    if has_residual:
        moved += tensor_bytes(x, r, residual)
        moved += _written(x, r, residual_out, n * BYTES[dtype(x, r, residual)])
    moved += _written(x, r, out, _output(x, r, n, rows, c, code, quantised, pad))
    moved += _written(x, r, scale, _scales(x, r, rows, c, quantised, group))
    if plain != ABSENT:
        flag = number(x, r, plain) if kind(x, r, plain) == A_BOOL else 0.0
        moved += flag * n * BYTES[code]
    work.bytes[i] = moved
    if math.isnan(moved):
        work.why[i] = why_unknown(x, r)


@njit
def _written(x: Inputs, r: int, i: int, otherwise: float) -> float:
    """Return the bytes of an output: those of the argument that it is, if it is one."""
    return tensor_bytes(x, r, i) if is_tensor(x, r, i) else otherwise


@njit
def _output(
    x: Inputs, r: int, n: float, rows: float, c: float, code: int, quantised: int, pad: int
) -> float:
    """Return the bytes of the output of a call that makes it itself."""
    if quantised == MXFP4:
        return n / 2
    if quantised != NOT:
        return n
    if rank(x, r, pad) < 0:
        return n * BYTES[code]
    multiple = number(x, r, pad)
    if multiple > 0:
        return rows * np.ceil(c / multiple) * multiple * BYTES[code]
    return math.nan if math.isnan(multiple) else n * BYTES[code]


@njit
def _scales(x: Inputs, r: int, rows: float, c: float, quantised: int, group: int) -> float:
    """Return the bytes of the scales of a call that makes them itself."""
    if quantised == MXFP4:
        return rows * np.ceil(c / _BLOCK)
    if quantised != FOUND_SCALE:
        return 0.0
    size = number(x, r, group)
    return rows * np.ceil(c / size) * BYTES[FP32] if size > 0 else math.nan


_OF_INPUT: Slots = {"x": 0, "w": 1}
_INTO: Slots = {"out": 0, "x": 1, "w": 2}
_ADD: Slots = {"x": 0, "residual": 1, "w": 2}
_ADD_INTO: Slots = {"out": 0, "x": 1, "residual": 2, "residual_out": 3, "w": 4}
_ADD_PADDED: Slots = {"x": 0, "w": 1, "residual": 3, "pad": 4}
_QUANTISED: Slots = {"out": 0, "x": 1, "scale": 2, "w": 3, "quantised": FOUND_SCALE}
_TO_MXFP4: Slots = {
    "x": 0,
    "w": 1,
    "x2": 3,
    "w2": 4,
    "residual": 6,
    "plain": 9,
    "quantised": MXFP4,
}

MODELS = (
    Model(
        name="fused RMS norm",
        kernel=fused_norm,
        unit="vector",
        slots={
            **dict.fromkeys(("x", "w", "residual", "x2", "w2", "out", "residual_out"), ABSENT),
            **dict.fromkeys(("scale", "bound"), ABSENT),
            "quantised": NOT,
            **dict.fromkeys(("group", "pad", "plain"), ABSENT),
        },
        labels=("rows", "C", "residual", "quantised"),
        families={"rms_norm_fused": None, "allreduce_rmsnorm": None},
        ops={
            "aiter::rms_norm": _OF_INPUT,
            "aiter::rmsnorm2d_fwd": _OF_INPUT,
            "aiter::rmsnorm2d_fwd_ck": _OF_INPUT,
            "vllm::rocm_aiter_rms_norm": _OF_INPUT,
            "aiter::rmsnorm": _INTO,
            "_C::rms_norm": _INTO,
            "sgl_kernel::rmsnorm": _INTO,
            "sgl_kernel::gemma_rmsnorm": _INTO,
            "_C::fused_add_rms_norm": _ADD,
            "sgl_kernel::fused_add_rmsnorm": _ADD,
            "sgl_kernel::gemma_fused_add_rmsnorm": _ADD,
            "vllm::rocm_aiter_rmsnorm2d_fwd_with_add": _ADD,
            "aiter::add_rmsnorm": _ADD_INTO,
            "aiter::rmsnorm2d_fwd_with_add_ck": _ADD_INTO,
            "aiter::fused_add_rmsnorm_pad_": _ADD_PADDED,
            "vllm::rocm_aiter_triton_add_rmsnorm_pad": _ADD_PADDED,
            "aiter::rmsnorm_quant": _QUANTISED,
            "aiter::rmsnorm2d_fwd_with_dynamicquant_ck": _QUANTISED,
            "aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck": {
                **_ADD_INTO,
                "scale": 4,
                "w": 5,
                "quantised": FOUND_SCALE,
            },
            "_C::rms_norm_dynamic_per_token_quant": {
                **_INTO,
                "scale": 3,
                "bound": 5,
                "residual": 6,
                "quantised": FOUND_SCALE,
            },
            "_C::rms_norm_static_fp8_quant": {**_INTO, "scale": 3, "quantised": GIVEN_SCALE},
            "_C::fused_add_rms_norm_static_fp8_quant": {
                "out": 0,
                "x": 1,
                "residual": 2,
                "w": 3,
                "scale": 4,
                "quantised": GIVEN_SCALE,
            },
            "vllm::rocm_aiter_rmsnorm_fp8_group_quant": {
                **_OF_INPUT,
                "group": 3,
                "quantised": FOUND_SCALE,
            },
            "vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant": {
                **_ADD,
                "group": 4,
                "quantised": FOUND_SCALE,
            },
            "aiter::_fuse_rmsnorm_fp4_quant": _TO_MXFP4,
            "sglang_profiler::fused_mxfp4_quant_fused_rms_mxfp4_quant": _TO_MXFP4,
            "aiter::fused_allreduce_rmsnorm": {
                "x": 2,
                "residual": 3,
                "residual_out": 4,
                "out": 5,
                "w": 6,
            },
            "aiter::fused_allreduce_rmsnorm_": {**_ADD, "pad": 6},
        },
    ),
)
