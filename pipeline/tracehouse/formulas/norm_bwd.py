"""Normalisation by rows, backward: layer norm, root mean square norm, LN + modulate.

A gradient that output_mask does not ask for is not written. The models can be evaluated from the
inputs of the forward call: then every gradient is asked for, and the incoming one is like x.
Source: perf_models A10, C7 to C9.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, FP32
from tracehouse.formulas.inputs import (
    Inputs,
    dim,
    dtype,
    is_tensor,
    item,
    items,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.norm import (
    elements,
    leading,
    reported,
    statistic_type,
    trailing,
    why_unknown,
)


@njit
def asked(x: Inputs, r: int, mask: int, flags: int, which: int) -> float:
    """Tell whether a gradient (0: x, 1: weight, 2: bias) is asked for: 1, 0, NaN if not known.

    mask: position of the list of flags; flags: position of the first of flags of their own. An op
    without either computes all.
    """
    if flags != ABSENT:
        flag = number(x, r, flags + which)
    elif mask != ABSENT:
        flag = item(x, r, mask, which) if items(x, r, mask) > which else math.nan
    else:
        flag = 1.0
    return flag if math.isnan(flag) or flag == 0 else 1.0


@njit
def incoming(x: Inputs, r: int, dy: int, n: float, code: int) -> float:
    """Return the bytes of the incoming gradient: its own, or those of n elements like x."""
    return n * BYTES[code] if dy == ABSENT else tensor_bytes(x, r, dy)


@njit
def given(x: Inputs, r: int, i: int, count: float, code: int) -> float:
    """Return the bytes of an input, those of `count` elements of a type if it has no position."""
    return count * BYTES[code] if i == ABSENT else tensor_bytes(x, r, i)


@njit
def gradient(x: Inputs, r: int, i: int, like: int) -> float:
    """Return the bytes of the gradient of a weight or bias, of the type of `like` if i is none."""
    own = i if is_tensor(x, r, i) else like
    return numel(x, r, own) * BYTES[dtype(x, r, own)] if is_tensor(x, r, own) else 0.0


@njit
def fits(x: Inputs, r: int, a: int, dy: int, n: float) -> bool:
    """Tell whether the n elements of input a are known, and dy has as many if it has a position."""
    return rank(x, r, a) >= 1 and not math.isnan(n) and (dy == ABSENT or elements(x, r, dy) == n)


@njit
def normalised_flops(n: float, wants_dx: float) -> float:
    """Return the FLOPs where the statistics are those of the batch: 9n, 6n without that of x."""
    return 9 * n if wants_dx == 1 else 6 * n


@njit
def row_norm_backward(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the gradients of layer norms and root-mean-square norms.

    Slots:  dy, x (…, C); shape, w, b, is_rms, last: as in the forward model; mean, rstd: one of
            every row; mask: output_mask.
    Units:  FLOPs, bytes.
    Needs:  the mask as a value; whether there is a weight.
    Cost:   O(rank) a call.
    Source: perf_models A10. Layer norm 9n, 6n if x needs no gradient; root mean square
            n·(1 + w + 6·m0 + 2·m1·w), w and m being 0 or 1.
    """
    for i in range(calls.row.shape[0]):
        _row_norm_backward(x, calls, work, i)


@njit
def _row_norm_backward(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, shape, w, b, is_rms, last, dy, mean, rstd, mask = calls.slot[i]
    n = elements(x, r, a)
    if not fits(x, r, a, dy, n):
        work.why[i] = Why.NO_SHAPE
        return
    count = trailing(x, r, a, shape, w, b, last)
    if count < -1:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    has_weight = is_tensor(x, r, w)
    work.dtype[i] = code
    work.parameters[i, 0] = reported(n)
    work.parameters[i, 1] = has_weight
    dx, dw = asked(x, r, mask, ABSENT, 0), asked(x, r, mask, ABSENT, 1)
    db = 0.0 if is_rms == 1 else asked(x, r, mask, ABSENT, 2)
    if math.isnan(dx + dw + db):
        work.why[i] = Why.NO_VALUE
        return
    if is_rms == 1:
        weighted = 1.0 if has_weight else 0.0
        work.flops[i] = n * (1 + weighted + 6 * dx + 2 * dw * weighted)
    else:
        work.flops[i] = normalised_flops(n, dx)
    rows = numel(x, r, rstd) if rstd != ABSENT else math.nan
    if rstd == ABSENT and count > 0:
        rows = leading(x, r, a, count)
    moved = incoming(x, r, dy, n, code)
    if dx == 1 or dw == 1:
        moved += tensor_bytes(x, r, a) + given(x, r, rstd, rows, statistic_type(code))
        if is_rms != 1:
            moved += given(x, r, mean, rows, statistic_type(code))
    if dx == 1:
        moved += tensor_bytes(x, r, w) + n * BYTES[code]
    if dw == 1:
        moved += gradient(x, r, w, ABSENT)
    if db == 1:
        moved += gradient(x, r, b, ABSENT)
    work.bytes[i] = moved
    if math.isnan(moved):
        work.why[i] = why_unknown(x, r)


@njit
def ln_modulate_backward(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the gradients of a layer norm with a scale and a shift for every sample.

    Slots:  dy, x (T, B, H); scale (B, H); mean, rstd (T·B,).
    Units:  FLOPs, bytes.
    Needs:  the shape of x.
    Cost:   O(rank) a call.
    Source: perf_models A10: 15n; dy, x, the statistics and the scale are read, the gradients of x,
            scale and shift are written.
    """
    for i in range(calls.row.shape[0]):
        r = calls.row[i]
        a, scale, dy, mean, rstd = calls.slot[i]
        n = elements(x, r, a)
        if not fits(x, r, a, dy, n):
            work.why[i] = Why.NO_SHAPE
            continue
        if is_tensor(x, r, scale) and dim(x, r, scale, -1) != dim(x, r, a, -1):
            work.why[i] = Why.MISFIT
            continue
        code = dtype(x, r, a)
        rows = leading(x, r, a, 1)
        work.flops[i] = 15 * n
        work.bytes[i] = (
            incoming(x, r, dy, n, code)
            + tensor_bytes(x, r, a)
            + n * BYTES[code]
            + given(x, r, mean, rows, FP32)
            + given(x, r, rstd, rows, FP32)
            + tensor_bytes(x, r, scale)
            + 2 * gradient(x, r, scale, ABSENT)
        )
        work.dtype[i] = code
        work.parameters[i, 0] = reported(rows)
        work.parameters[i, 1] = dim(x, r, a, -1)
        if math.isnan(work.bytes[i]):
            work.why[i] = Why.NO_TYPE


_ROW_SLOTS = {
    "x": ABSENT,
    "shape": ABSENT,
    "w": ABSENT,
    "b": ABSENT,
    "is_rms": 0,
    "last": ABSENT,
    "dy": ABSENT,
    "mean": ABSENT,
    "rstd": ABSENT,
    "mask": ABSENT,
}

MODELS = (
    Model(
        name="layer norm backward",
        kernel=row_norm_backward,
        unit="vector",
        slots=_ROW_SLOTS,
        labels=("elements", "weight"),
        families={"layer_norm_bwd": None},
        ops={
            "aten::native_layer_norm_backward": {
                "dy": 0,
                "x": 1,
                "shape": 2,
                "mean": 3,
                "rstd": 4,
                "w": 5,
                "b": 6,
                "mask": 7,
            },
        },
    ),
    Model(
        name="RMS norm backward",
        kernel=row_norm_backward,
        unit="vector",
        slots={**_ROW_SLOTS, "is_rms": 1},
        labels=("elements", "weight"),
        families={"rms_norm_bwd": None},
        ops={
            "aten::_fused_rms_norm_backward": {
                "dy": 0,
                "x": 1,
                "shape": 2,
                "rstd": 3,
                "w": 4,
                "mask": 5,
            },
        },
    ),
    Model(
        name="LN + modulate backward",
        kernel=ln_modulate_backward,
        unit="vector",
        slots=dict.fromkeys(("x", "scale", "dy", "mean", "rstd"), ABSENT),
        labels=("rows", "C"),
        families={"ln_modulate_bwd": {"dy": 0, "x": 1, "mean": 2, "rstd": 3, "scale": 4}},
    ),
)
