"""Pooling: maxima and averages over windows, and their backwards.

Every element of every window is one FLOP: a comparison, an addition. Maxima also write the places
they are from, 8 bytes each. Source: perf_models A14.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, INT64
from tracehouse.formulas.inputs import (
    Inputs,
    dim,
    dtype,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.windows import missing, per_dimension, unfit, well_formed

_SLOTS = {
    "x": ABSENT,
    "window": ABSENT,
    "stride": ABSENT,
    "padding": ABSENT,
    "dilation": ABSENT,
    "ceil": ABSENT,
    "output_size": ABSENT,
    "samples": ABSENT,
    "grad": ABSENT,
    "indices": ABSENT,
    "dims": 2,
    "is_max": 0,
}
_X, _WINDOW, _STRIDE, _PADDING, _DILATION, _CEIL, _SIZE, _SAMPLES = range(8)
_GRAD, _INDICES, _DIMS, _IS_MAX = 8, 9, 10, 11
_LABELS = ("inputs", "outputs", "visits")


@njit
def pool(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate pooling.

    Slots:  x (N, C, …) or (C, …); window, stride, padding, dilation, output_size: a number or a
            list; ceil: a bool; samples: a tensor that is read too; dims: spatial dimensions;
            is_max.
    Units:  FLOPs, bytes. visits: elements of all windows together.
    Needs:  an output size, or windows; a stride that is not given is the window's.
    Cost:   O(1) a call.
    Source: perf_models A14: read x, write the output, maxima with an index of 8 bytes each.
            Adaptive windows along a length n to m outputs have n + m - gcd(n, m) elements together.
    """
    for i in range(calls.row.shape[0]):
        _pool(x, calls, work, i, False)


@njit
def pool_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the backwards of pooling.

    Slots:  those of the forward; grad of its output; indices of the maxima.
    Units:  FLOPs, bytes.
    Needs:  the shape of x, which is not read.
    Cost:   O(1) a call.
    Source: perf_models A14: read grad (and indices), write the gradient of x. A maximum adds one
            gradient, an average one per element of its window.
    """
    for i in range(calls.row.shape[0]):
        _pool(x, calls, work, i, True)


@njit
def _pool(x: Inputs, calls: Calls, work: Work, i: int, backward: bool) -> None:
    r, first, grad = calls.row[i], calls.slot[i, _X], calls.slot[i, _GRAD]
    is_max = calls.slot[i, _IS_MAX] == 1
    why, outputs, visits = _windows(x, calls, i, backward)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    size = BYTES[dtype(x, r, first)]
    indices = outputs * BYTES[INT64] if is_max else 0.0
    if backward:
        work.flops[i] = outputs if is_max else visits
        if calls.slot[i, _INDICES] >= 0:
            indices = tensor_bytes(x, r, calls.slot[i, _INDICES])
        of_grad = tensor_bytes(x, r, grad) if grad >= 0 else outputs * size
        work.bytes[i] = of_grad + indices + numel(x, r, first) * size
    else:
        work.flops[i] = visits
        read = tensor_bytes(x, r, first) + tensor_bytes(x, r, calls.slot[i, _SAMPLES])
        work.bytes[i] = read + outputs * size + indices
    work.dtype[i] = dtype(x, r, first)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = int(numel(x, r, first))
    work.parameters[i, 1] = int(outputs)
    work.parameters[i, 2] = int(visits)


@njit
def _windows(x: Inputs, calls: Calls, i: int, backward: bool) -> tuple[int, float, float]:
    """Return a Why, the outputs, and the elements of all their windows together."""
    r, first, dims = calls.row[i], calls.slot[i, _X], calls.slot[i, _DIMS]
    if rank(x, r, first) <= 0:
        return missing(x, r), 0.0, 0.0
    above = rank(x, r, first) - dims
    if above < 1 or above > 2 or not well_formed(x, r, first):
        return Why.MISFIT, 0.0, 0.0
    why = _fit(x, calls, i, above)
    if why != Why.KNOWN:
        return why, 0.0, 0.0
    outputs = 1.0
    for d in range(above):
        outputs *= dim(x, r, first, d)
    visits = outputs
    for d in range(dims):
        why, out, visited = _along(x, calls, i, d, above + d, backward)
        if why != Why.KNOWN:
            return why, 0.0, 0.0
        outputs *= out
        visits *= visited
    return Why.KNOWN, outputs, visits


@njit
def _fit(x: Inputs, calls: Calls, i: int, above: int) -> int:
    """Return the Why of a gradient that is not of the forward's output."""
    r, first, grad = calls.row[i], calls.slot[i, _X], calls.slot[i, _GRAD]
    if grad < 0:
        return Why.KNOWN
    if rank(x, r, grad) <= 0:
        return missing(x, r)
    if rank(x, r, grad) != rank(x, r, first) or not well_formed(x, r, grad):
        return Why.MISFIT
    for d in range(above):
        if dim(x, r, grad, d) != dim(x, r, first, d):
            return Why.MISFIT
    return Why.KNOWN


@njit
def _along(
    x: Inputs, calls: Calls, i: int, d: int, axis: int, backward: bool
) -> tuple[int, float, float]:
    """Return a Why, the outputs along a spatial dimension and the elements of their windows."""
    r, dims, grad = calls.row[i], calls.slot[i, _DIMS], calls.slot[i, _GRAD]
    window_slot, size_slot = calls.slot[i, _WINDOW], calls.slot[i, _SIZE]
    size = dim(x, r, calls.slot[i, _X], axis)
    out = math.nan
    if grad >= 0:
        out = float(dim(x, r, grad, axis))
    elif size_slot >= 0:
        out = per_dimension(x, r, size_slot, d, dims, math.nan)
        why = unfit(out, 0.0)
        if why != Why.KNOWN:
            return why, 0.0, 0.0
    if window_slot < 0:
        return Why.KNOWN, out, size + out - _gcd(size, int(out))
    if backward and calls.slot[i, _IS_MAX] == 1 and grad >= 0:
        return Why.KNOWN, out, out
    window = per_dimension(x, r, window_slot, d, dims, math.nan)
    why = unfit(window, 1.0)
    if why != Why.KNOWN:
        return why, 0.0, 0.0
    if math.isnan(out):
        why, out = _slid(x, calls, i, d, size, window)
    return why, out, out * window


@njit
def _slid(x: Inputs, calls: Calls, i: int, d: int, size: int, window: float) -> tuple[int, float]:
    """Return a Why and how many windows fit along a dimension of length `size`."""
    r, dims = calls.row[i], calls.slot[i, _DIMS]
    stride = per_dimension(x, r, calls.slot[i, _STRIDE], d, dims, window)
    padding = per_dimension(x, r, calls.slot[i, _PADDING], d, dims, 0.0)
    dilation = per_dimension(x, r, calls.slot[i, _DILATION], d, dims, 1.0)
    for found, least in ((stride, 1.0), (padding, 0.0), (dilation, 1.0)):
        why = unfit(found, least)
        if why != Why.KNOWN:
            return why, 0.0
    ceil = calls.slot[i, _CEIL] >= 0 and number(x, r, calls.slot[i, _CEIL]) == 1.0
    left = size + 2.0 * padding - dilation * (window - 1.0) - 1.0
    out = (left + (stride - 1.0 if ceil else 0.0)) // stride + 1.0
    if ceil and (out - 1.0) * stride >= size + padding:
        out -= 1.0
    return (Why.KNOWN if out >= 1.0 else Why.MISFIT), out


@njit
def _gcd(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


_MAX = {"x": 0, "window": 1, "stride": 2, "padding": 3, "dilation": 4, "ceil": 5, "is_max": 1}
_MEAN = {"x": 0, "window": 1, "stride": 2, "padding": 3, "ceil": 4}
_ADAPTIVE = {"x": 0, "output_size": 1}
_MAX_BWD = {
    "grad": 0,
    "x": 1,
    "window": 2,
    "stride": 3,
    "padding": 4,
    "dilation": 5,
    "ceil": 6,
    "indices": 7,
    "is_max": 1,
}
_MEAN_BWD = {"grad": 0, "x": 1, "window": 2, "stride": 3, "padding": 4, "ceil": 5}
_ADAPTIVE_BWD = {"grad": 0, "x": 1}

MODELS = (
    Model(
        name="pool",
        kernel=pool,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"pool": None},
        ops={
            "aten::max_pool2d": _MAX,
            "aten::max_pool2d_with_indices": _MAX,
            "aten::max_pool3d_with_indices": {**_MAX, "dims": 3},
            "aten::avg_pool1d": {**_MEAN, "dims": 1},
            "aten::avg_pool2d": _MEAN,
            "aten::avg_pool3d": {**_MEAN, "dims": 3},
            "aten::adaptive_avg_pool1d": {**_ADAPTIVE, "dims": 1},
            "aten::adaptive_avg_pool2d": _ADAPTIVE,
            "aten::_adaptive_avg_pool2d": _ADAPTIVE,
            "aten::_adaptive_avg_pool3d": {**_ADAPTIVE, "dims": 3},
            "aten::adaptive_max_pool1d": {**_ADAPTIVE, "dims": 1, "is_max": 1},
            "aten::adaptive_max_pool2d": {**_ADAPTIVE, "is_max": 1},
            "aten::fractional_max_pool2d": {
                "x": 0,
                "window": 1,
                "output_size": 2,
                "samples": 3,
                "is_max": 1,
            },
        },
    ),
    Model(
        name="pool_bwd",
        kernel=pool_bwd,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"pool_bwd": None},
        ops={
            "aten::max_pool2d_with_indices_backward": _MAX_BWD,
            "aten::max_pool3d_with_indices_backward": {**_MAX_BWD, "dims": 3},
            "aten::avg_pool2d_backward": _MEAN_BWD,
            "aten::avg_pool3d_backward": {**_MEAN_BWD, "dims": 3},
            "aten::_adaptive_avg_pool2d_backward": _ADAPTIVE_BWD,
            "aten::_adaptive_avg_pool3d_backward": {**_ADAPTIVE_BWD, "dims": 3},
            "aten::adaptive_max_pool2d_backward": {**_ADAPTIVE_BWD, "indices": 2, "is_max": 1},
        },
    ),
)
