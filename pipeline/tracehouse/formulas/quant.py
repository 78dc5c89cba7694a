"""Quantisation: values to 8 or 4 bits with scales, and back.

FLOPs are a number per element that the op names; bytes are what is read and written, every operand
by its own type (the peer swaps those of the input and the scale, perf_models C17).
Source: perf_models A13.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BOOL_TYPE, BYTES, FP32, VALUES, dtype_of_enum
from tracehouse.formulas.inputs import (
    A_BOOL,
    Inputs,
    dim,
    dtype,
    is_tensor,
    item,
    items,
    kind,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.norm import elements, reported, why_unknown

# FLOPs of an element, in 1/32.
_COUNTED = 83  # 2.59375, as counters of the dynamic kernels show
_SCALED, _FOUND, _GROUPED, _THERE_AND_BACK = 32, 64, 192, 128
_MX_BLOCK = 32


@njit
def quantise(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate quantisations, and what undoes them.

    Slots:  x (…, N); out, scale: tensors that are arguments, an output or an input alike; zero:
            zero points; out_type: a ScalarType number; out_bits: of an output value, if neither
            says; out_shape: value, if not like x; mask: 1 if a bool is written for every element;
            block: value, elements of a row with one scale, or mx_block: the same as a constant;
            scale_bytes: of a scale that is not an argument; both: 1 if the columns are quantised
            as well; blocks_of_all: 1 if blocks run on over the rows; flat: 1 if all but the first
            dimension are one row; flops: of an element, in 1/32; is_static: flag, the scale is
            given, and an element costs one FLOP.
    Units:  FLOPs, bytes.
    Needs:  the shape of x; block, out_type and out_shape as values.
    Cost:   O(rank) a call.
    Source: perf_models A13.
    """
    for i in range(calls.row.shape[0]):
        _quantise(x, calls, work, i)


@njit
def _quantise(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, out, scale, zero, out_type, out_bits, out_shape, mask = calls.slot[i, :8]
    block, mx_block, scale_bytes, both, of_all, flat, flops, is_static = calls.slot[i, 8:]
    n = elements(x, r, a)
    if not is_tensor(x, r, a) or math.isnan(n):
        work.why[i] = Why.NO_SHAPE
        return
    if both == 1 and rank(x, r, a) != 2:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    values = _values(x, r, n, out_shape)
    if is_tensor(x, r, out) and not _alike(x, r, a, out):
        work.why[i] = Why.MISFIT
        return
    work.dtype[i] = code
    row = values if rank(x, r, a) < 1 else float(dim(x, r, a, -1))
    if flat == 1 and dim(x, r, a, 0) > 0:
        row = n / dim(x, r, a, 0)
    rows = n / row if row > 0 else 0.0
    size = float(mx_block) if mx_block > 0 else number(x, r, block)
    if is_static == ABSENT or kind(x, r, is_static) == A_BOOL:
        given = is_static != ABSENT and number(x, r, is_static) == 1
        work.flops[i] = values * (_SCALED if given else flops) / 32
    moved = tensor_bytes(x, r, a) + tensor_bytes(x, r, scale) + tensor_bytes(x, r, zero)
    moved += _output(x, r, out, out_type, values, out_bits, both) + n * BYTES[BOOL_TYPE] * mask
    if scale_bytes > 0:
        if of_all == 1:
            moved += np.ceil(n / size) * scale_bytes if size > 0 else math.nan
        else:
            moved += rows * np.ceil(row / size) * scale_bytes if size > 0 else math.nan
        if both == 1:
            moved += row * np.ceil(rows / size) * scale_bytes
    work.bytes[i] = moved
    work.parameters[i, 0] = reported(values)
    if (block != ABSENT or mx_block > 0) and size > 0:
        work.parameters[i, 1] = reported(size)
    if math.isnan(moved) or math.isnan(work.flops[i]):
        work.why[i] = why_unknown(x, r)


@njit
def _values(x: Inputs, r: int, n: float, out_shape: int) -> float:
    """Return the number of values: of x, or of the shape that the output is asked to have."""
    if out_shape == ABSENT:
        return n
    if items(x, r, out_shape) < 0:
        return math.nan
    product = 1.0
    for k in range(items(x, r, out_shape)):
        product *= max(item(x, r, out_shape, k), 0.0)
    return product


@njit
def _alike(x: Inputs, r: int, a: int, out: int) -> bool:
    """Tell whether `out` can hold what `a` becomes: rows as long, or packed two to a byte.

    It may have more rows: they stay as they are.
    """
    row, packed = dim(x, r, a, -1), dim(x, r, out, -1)
    rows, written = elements(x, r, a), elements(x, r, out)
    if packed == row:
        return written >= rows
    return 2 * packed == row and 2 * written >= rows


@njit
def _output(
    x: Inputs, r: int, out: int, out_type: int, values: float, bits: int, both: int
) -> float:
    """Return the bytes of the output: by its own type, by the one asked for, or by its bits."""
    if is_tensor(x, r, out):
        code = dtype(x, r, out)
        own = numel(x, r, out) * BYTES[code]
        per_byte = 2.0 if bits == 4 and VALUES[code] == 1 else float(VALUES[code])
        return min(own, np.ceil(values / per_byte) * BYTES[code])
    if out_type != ABSENT:
        asked = number(x, r, out_type)
        return math.nan if math.isnan(asked) else values * BYTES[dtype_of_enum(asked)]
    if bits == 0:
        return values * BYTES[FP32]
    written = np.ceil(values * bits / 8)
    return 2 * written if both == 1 else written


# Kernels that get the output and the scales as arguments.
_DYNAMIC: Slots = {"out": 0, "x": 1, "scale": 2, "flops": _COUNTED}
_STATIC: Slots = {"out": 0, "x": 1, "scale": 2, "flops": _SCALED}
_PER_GROUP: Slots = {"x": 0, "out": 1, "scale": 2, "flops": _COUNTED}
_MXFP4: Slots = {
    "x": 0,
    "out_bits": 4,
    "mx_block": _MX_BLOCK,
    "scale_bytes": 1,
    "flops": _FOUND,
}
_NVFP4: Slots = {"out": 0, "x": 1, "scale": 2, "zero": 3, "out_bits": 4, "flops": _FOUND}
_MXFP4_SORTED: Slots = {**_MXFP4, "x": 2, "out": 0}
_MXFP4_DUAL: Slots = {**_MXFP4, "both": 1, "flops": _SCALED}
_TO_FP8: Slots = {"x": 0, "out_bits": 8, "flops": _SCALED}

MODELS = (
    Model(
        name="quantisation",
        kernel=quantise,
        unit="vector",
        slots={
            **dict.fromkeys(("x", "out", "scale", "zero", "out_type"), ABSENT),
            "out_bits": 8,
            "out_shape": ABSENT,
            "mask": 0,
            "block": ABSENT,
            "mx_block": 0,
            "scale_bytes": 0,
            "both": 0,
            "blocks_of_all": 0,
            "flat": 0,
            "flops": _FOUND,
            "is_static": ABSENT,
        },
        labels=("elements", "block"),
        families={"quant": None, "quant_group": None},
        ops={
            "aiter::dynamic_per_token_scaled_quant": _DYNAMIC,
            "aiter::dynamic_per_group_scaled_quant": _DYNAMIC,
            "aiter::dynamic_per_tensor_quant": _DYNAMIC,
            "aiter::static_per_tensor_quant": _STATIC,
            "_C::dynamic_scaled_fp8_quant": _DYNAMIC,
            "_C::dynamic_per_token_scaled_fp8_quant": {**_DYNAMIC, "zero": 3},
            "_C::dynamic_scaled_int8_quant": {**_DYNAMIC, "zero": 3},
            "_C::static_scaled_fp8_quant": _STATIC,
            "_C::static_scaled_int8_quant": {**_STATIC, "zero": 3},
            "_C::per_token_group_fp8_quant": _PER_GROUP,
            "sgl_kernel::sgl_per_token_group_quant_fp8": _PER_GROUP,
            "sgl_kernel::sgl_per_token_quant_fp8": _PER_GROUP,
            "sgl_kernel::sgl_per_tensor_quant_fp8": {**_PER_GROUP, "is_static": 3},
            "vllm::triton_per_token_group_quant_fp8": {
                "x": 0,
                "block": 1,
                "scale_bytes": 4,
                "flops": _GROUPED,
            },
            "aiter::dynamic_per_group_scaled_quant_fp4": {
                "out": 0,
                "x": 1,
                "scale": 2,
                "out_bits": 4,
                "flops": _FOUND,
            },
            "_C::scaled_fp4_quant": _NVFP4,
            "sgl_kernel::scaled_fp4_quant": _NVFP4,
            "aiter::fused_dynamic_mx_quant_moe_sort_hip": _MXFP4_SORTED,
            "aiter::fused_dynamic_mxfp4_quant_moe_sort_hip": _MXFP4_SORTED,
            "sglang_profiler::quant_dynamic_mxfp4_quant": _MXFP4,
            "sglang_profiler::fused_mxfp4_quant_fused_flatten_mxfp4_quant": {**_MXFP4, "flat": 1},
            "bitsandbytes::quantize_4bit": {
                "x": 0,
                "block": 1,
                "blocks_of_all": 1,
                "scale_bytes": 4,
                "out_bits": 4,
            },
            "bitsandbytes::dequantize_4bit": {
                "x": 0,
                "scale": 1,
                "out_shape": 4,
                "out_type": 5,
                "flops": _SCALED,
            },
            "primus::quantize_mxfp4_dual": _MXFP4_DUAL,
            "primus_turbo::quantize_mxfp4_dual": _MXFP4_DUAL,
            "primus_turbo_cpp_extension::quantize_mxfp4_dual": _MXFP4_DUAL,
            "primus_turbo::quantize_fp8_tensorwise": _TO_FP8,
            "primus_turbo_cpp_extension::quantize_fp8_tensorwise": _TO_FP8,
            "tex_ts::cast_to_fp8_ts": _TO_FP8,
            "aten::quantize_per_tensor": {"x": 0, "scale": 1, "zero": 2, "out_type": 3},
            "aten::quantize_per_channel": {"x": 0, "scale": 1, "zero": 2, "out_type": 4},
            "aten::dequantize": {"x": 0, "out_bits": 0},
            "aten::fake_quantize_per_tensor_affine_cachemask": {
                "x": 0,
                "out": 0,
                "mask": 1,
                "flops": _THERE_AND_BACK,
            },
            "aten::fake_quantize_per_channel_affine_cachemask": {
                "x": 0,
                "out": 0,
                "scale": 1,
                "zero": 2,
                "mask": 1,
                "flops": _THERE_AND_BACK,
            },
        },
    ),
)
