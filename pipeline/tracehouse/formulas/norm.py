"""Normalisation by rows, forward: layer norm, root mean square norm, LN + modulate.

n elements in rows of C. FLOPs are those of perf_models A10; bytes are what the call reads and
writes: the statistics in their own number and type, weight and bias where there are any.
Source: perf_models A10, C7 to C9.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, CATEGORY, FLOATING, FP32, FP64, UNKNOWN
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    item,
    items,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, NO_PARAMETER, Calls, Model, Slots, Why, Work

_LARGEST = float(2**62)
_UNKNOWN, _MISFIT = -1, -2


@njit
def elements(x: Inputs, r: int, i: int) -> float:
    """Return the number of elements of input i, NaN where a dimension is negative or unknown."""
    for d in range(rank(x, r, i)):
        if dim(x, r, i, d) < 0:
            return math.nan
    return numel(x, r, i)


@njit
def reported(value: float) -> int:
    """Return a number as a parameter, NO_PARAMETER where it is unknown or out of range."""
    return int(value) if value >= 0 and value < _LARGEST else NO_PARAMETER


@njit
def why_unknown(x: Inputs, r: int) -> Why:
    """Return why bytes are unknown: for the type of a tensor of row r, else for a value."""
    for i in range(count(x, r)):
        if is_tensor(x, r, i) and math.isnan(BYTES[dtype(x, r, i)]):
            return Why.NO_TYPE
    return Why.NO_VALUE


@njit
def statistic_type(code: int) -> int:
    """Return the type in which a kernel keeps the mean and the deviation of values of a type.

    GPU kernels accumulate what is narrower than a float as float.
    """
    if code == FP64:
        return FP64
    return FP32 if CATEGORY[code] == FLOATING else UNKNOWN


@njit
def trailing(x: Inputs, r: int, a: int, shape: int, w: int, b: int, last: int) -> int:
    """Return how many trailing dimensions of input a are normalised.

    They are named by the value `shape`, else by the shape of the weight or the bias, else by
    `last`. -1 if nothing tells, -2 if they are not those of `a`.
    """
    if items(x, r, shape) >= 0:
        count = items(x, r, shape)
        for k in range(count):
            if item(x, r, shape, k) != dim(x, r, a, k - count):
                return _MISFIT
    elif is_tensor(x, r, w):
        count = rank(x, r, w)
    elif is_tensor(x, r, b):
        count = rank(x, r, b)
    else:
        count = last
    if count > rank(x, r, a) or count == 0:
        return _MISFIT
    if count < 0:
        return _UNKNOWN
    for k in range(count):
        size = dim(x, r, a, k - count)
        if is_tensor(x, r, w) and dim(x, r, w, k) != size:
            return _MISFIT
        if is_tensor(x, r, b) and dim(x, r, b, k) != size:
            return _MISFIT
    return count


@njit
def leading(x: Inputs, r: int, a: int, count: int) -> float:
    """Return the product of the dimensions of input a before the last `count` of them."""
    product = 1.0
    for d in range(rank(x, r, a) - count):
        product *= dim(x, r, a, d)
    return product


@njit
def row_norm(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate layer norms and root-mean-square norms.

    Slots:  x (…, C); shape: the normalised dimensions as a value; w, b of that shape; is_rms: 1
            for the root mean square; last: normalised dimensions if no other slot tells.
    Units:  FLOPs, bytes.
    Needs:  the normalised dimensions.
    Cost:   O(rank) a call.
    Source: perf_models A10: 5n + 6C; root mean square rows·(2C + 2) + n·(2 with a weight, else 1).
            Every row keeps its mean and deviation (C9), or its deviation alone.
    """
    for i in range(calls.row.shape[0]):
        _row_norm(x, calls, work, i)


@njit
def _row_norm(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, shape, w, b, is_rms, last = calls.slot[i]
    n = elements(x, r, a)
    if rank(x, r, a) < 1 or math.isnan(n):
        work.why[i] = Why.NO_SHAPE
        return
    count = trailing(x, r, a, shape, w, b, last)
    if count < 0:
        work.why[i] = Why.MISFIT if count == _MISFIT else Why.NO_VALUE
        return
    rows = leading(x, r, a, count)
    c = 1.0
    for k in range(count):
        c *= dim(x, r, a, k - count)
    has_weight, has_bias = is_tensor(x, r, w), is_tensor(x, r, b)
    code = dtype(x, r, a)
    if is_rms == 1:
        work.flops[i] = rows * (2 * c + 2) + n * (2 if has_weight else 1)
    else:
        work.flops[i] = 5 * n + 6 * c
    statistics = rows * (1 if is_rms == 1 else 2) * BYTES[statistic_type(code)]
    work.bytes[i] = (
        tensor_bytes(x, r, a)
        + tensor_bytes(x, r, w)
        + tensor_bytes(x, r, b)
        + n * BYTES[code]
        + statistics
    )
    work.dtype[i] = code
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = reported(rows)
    work.parameters[i, 1] = reported(c)
    work.parameters[i, 2] = has_weight
    work.parameters[i, 3] = has_bias


@njit
def ln_modulate(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate layer norms with a scale and a shift of their own for every sample.

    Slots:  x (T, B, H); scale, shift (B, H).
    Units:  FLOPs, bytes.
    Needs:  the shape of x.
    Cost:   O(rank) a call.
    Source: perf_models A10: 12n; mean and deviation of every row are written as float.
    """
    for i in range(calls.row.shape[0]):
        r = calls.row[i]
        a, scale, shift = calls.slot[i]
        n = elements(x, r, a)
        if rank(x, r, a) < 1 or math.isnan(n):
            work.why[i] = Why.NO_SHAPE
            continue
        if is_tensor(x, r, scale) and dim(x, r, scale, -1) != dim(x, r, a, -1):
            work.why[i] = Why.MISFIT
            continue
        rows = leading(x, r, a, 1)
        code = dtype(x, r, a)
        work.flops[i] = 12 * n
        work.bytes[i] = (
            tensor_bytes(x, r, a)
            + tensor_bytes(x, r, scale)
            + tensor_bytes(x, r, shift)
            + n * BYTES[code]
            + 2 * rows * BYTES[FP32]
        )
        work.dtype[i] = code
        work.parameters[i, 0] = reported(rows)
        work.parameters[i, 1] = dim(x, r, a, -1)
        if math.isnan(work.bytes[i]):
            work.why[i] = Why.NO_TYPE


_ROW_LABELS = ("rows", "C", "weight", "bias")
_ROW_SLOTS = {"x": ABSENT, "shape": ABSENT, "w": ABSENT, "b": ABSENT, "is_rms": 0, "last": ABSENT}
_LAYER: Slots = {"x": 0, "shape": 1, "w": 2, "b": 3}
_RMS: Slots = {"x": 0, "shape": 1, "w": 2}

MODELS = (
    Model(
        name="layer norm",
        kernel=row_norm,
        unit="vector",
        slots=_ROW_SLOTS,
        labels=_ROW_LABELS,
        families={"layer_norm": None},
        ops={"aten::layer_norm": _LAYER, "aten::native_layer_norm": _LAYER},
    ),
    Model(
        name="RMS norm",
        kernel=row_norm,
        unit="vector",
        slots={**_ROW_SLOTS, "is_rms": 1},
        labels=_ROW_LABELS,
        families={"rms_norm": None},
        ops={
            "aten::rms_norm": _RMS,
            "aten::_fused_rms_norm": _RMS,
            "FusedRMSNormAffineFunction": {"x": 0, "w": 1},
            "FusedLayerNormAffineFunction": {"x": 0, "w": 1, "b": 2, "is_rms": 0},
            "LigerRMSNormFunction": {"x": 0, "w": 1, "last": 1},
        },
    ),
    Model(
        name="LN + modulate",
        kernel=ln_modulate,
        unit="vector",
        slots=dict.fromkeys(("x", "scale", "shift"), ABSENT),
        labels=("rows", "C"),
        families={"ln_modulate": {"x": 0, "scale": 1, "shift": 2}},
    ),
)
