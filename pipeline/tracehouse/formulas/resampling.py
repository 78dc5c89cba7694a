"""Interpolation and padding: outputs made of one or a few inputs each, and their backwards.

An output of t taps is 2·t FLOPs, one that is a copy 0. Source: perf_models A7 (others).
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES
from tracehouse.formulas.inputs import (
    A_LIST,
    NO_VALUE,
    Inputs,
    dim,
    dtype,
    item,
    items,
    kind,
    number,
    numel,
    rank,
    tensor_bytes,
    touched,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.windows import missing, per_dimension, unfit, well_formed

_SLOTS = {
    "x": ABSENT,
    "output_size": ABSENT,
    "scales": ABSENT,
    "grid": ABSENT,
    "mode": ABSENT,
    "padding": ABSENT,
    "grad": ABSENT,
    "input_size": ABSENT,
    "taps": 1,
    "per_output": 0,
}
_X, _SIZE, _SCALES, _GRID, _MODE, _PADDING, _GRAD, _INPUT_SIZE, _TAPS, _PER_OUTPUT = range(10)
_LABELS = ("inputs", "outputs", "taps")
_UNKNOWN_TAPS = 0  # antialiased: as many as the scale asks for


@njit
def resample(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate interpolation.

    Slots:  x (N, C, …); output_size: a list; scales: a list of factors, if output_size is none;
            grid (N, …, dims) of places to sample and mode, 0 linear, 1 nearest, 2 cubic; taps along
            a dimension: 1 nearest, 2 linear, 4 cubic, 0 unknown.
    Units:  FLOPs, bytes. Label taps: inputs per output.
    Needs:  1 to 3 spatial dimensions.
    Cost:   O(1) a call.
    Source: perf_models A7, C15: output_size, else the scales of the .vec overload. Read are the
            inputs that are reached, at most taps·outputs along a dimension.
    """
    for i in range(calls.row.shape[0]):
        _resample(x, calls, work, i)


@njit
def pad(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate padding.

    Slots:  x; padding: pairs (before, after), of the last dimension first; per_output: FLOPs.
    Units:  FLOPs, bytes.
    Needs:  pairs for some of the dimensions; a negative number cuts off.
    Cost:   O(dimensions) a call.
    Source: perf_models A7: read x, write the output; replication counts one FLOP per output, as the
            peer does, the others are copies (A11).
    """
    for i in range(calls.row.shape[0]):
        _pad(x, calls, work, i)


@njit
def resample_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the backwards of interpolation and padding.

    Slots:  grad of the output; input_size: the shape of the input, or x, which has it.
    Units:  FLOPs, bytes.
    Needs:  as in the forward.
    Cost:   O(dimensions) a call.
    Source: perf_models A7: read grad, write the gradient of the input; each output adds its
            gradient to the inputs it was made of.
    """
    for i in range(calls.row.shape[0]):
        _resample_bwd(x, calls, work, i)


@njit
def _resample(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, first = calls.row[i], calls.slot[i, _X]
    why, outputs, reached, taps = _interpolated(x, calls, i)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    size = BYTES[dtype(x, r, first)]
    grid = tensor_bytes(x, r, calls.slot[i, _GRID])
    work.bytes[i] = min(touched(x, r, first), reached) * size + outputs * size + grid
    _finish(x, work, i, numel(x, r, first), outputs, taps, dtype(x, r, first))
    if taps != _UNKNOWN_TAPS:
        work.flops[i] = 0.0 if taps == 1.0 else 2.0 * taps * outputs


@njit
def _pad(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, first = calls.row[i], calls.slot[i, _X]
    why, outputs, kept = _padded(x, calls, i)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    size = BYTES[dtype(x, r, first)]
    work.flops[i] = outputs * calls.slot[i, _PER_OUTPUT]
    work.bytes[i] = (min(touched(x, r, first), kept) + outputs) * size
    _finish(x, work, i, numel(x, r, first), outputs, 1.0, dtype(x, r, first))


@njit
def _resample_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, grad = calls.row[i], calls.slot[i, _GRAD]
    if calls.slot[i, _GRID] >= 0:
        work.why[i] = Why.NO_FORMULA  # the grid has a gradient too
        return
    taps = float(calls.slot[i, _TAPS])
    if grad >= 0:
        why, inputs, dims = _restored(x, calls, i)
        outputs, taps = numel(x, r, grad), taps**dims
        code, of_grad = dtype(x, r, grad), tensor_bytes(x, r, grad)
    else:
        if calls.slot[i, _PADDING] >= 0:
            why, outputs, _ = _padded(x, calls, i)
        else:
            why, outputs, _, taps = _interpolated(x, calls, i)
        inputs, code = numel(x, r, calls.slot[i, _X]), dtype(x, r, calls.slot[i, _X])
        of_grad = outputs * BYTES[code]
    if why != Why.KNOWN:
        work.why[i] = why
        return
    work.bytes[i] = of_grad + inputs * BYTES[code]
    _finish(x, work, i, inputs, outputs, taps, code)
    if taps != _UNKNOWN_TAPS:
        work.flops[i] = outputs if taps == 1.0 else 2.0 * taps * outputs


@njit
def _finish(
    x: Inputs, work: Work, i: int, inputs: float, outputs: float, taps: float, code: int
) -> None:
    work.dtype[i] = code
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = int(inputs)
    work.parameters[i, 1] = int(outputs)
    if taps != _UNKNOWN_TAPS:
        work.parameters[i, 2] = int(taps)


@njit
def _interpolated(x: Inputs, calls: Calls, i: int) -> tuple[int, float, float, float]:
    """Return a Why, the outputs, the inputs that are reached and the taps of an output."""
    r, first, grid = calls.row[i], calls.slot[i, _X], calls.slot[i, _GRID]
    if rank(x, r, first) <= 0:
        return missing(x, r), 0.0, 0.0, 0.0
    dims = rank(x, r, first) - 2
    if dims < 1 or dims > 3 or not well_formed(x, r, first):
        return Why.MISFIT, 0.0, 0.0, 0.0
    taps = float(calls.slot[i, _TAPS])
    if grid >= 0:
        why, taps = _grid(x, calls, i)
        if why != Why.KNOWN:
            return why, 0.0, 0.0, 0.0
    lead = float(dim(x, r, first, 0)) * dim(x, r, first, 1)
    outputs, reached, inputs = lead, lead, lead
    for d in range(dims):
        size = dim(x, r, first, d + 2)
        out = float(dim(x, r, grid, d + 1)) if grid >= 0 else _length(x, calls, i, d, dims, size)
        why = unfit(out, 0.0)
        if why != Why.KNOWN:
            return why, 0.0, 0.0, 0.0
        outputs *= out
        inputs *= size
        reached *= size if taps == _UNKNOWN_TAPS else min(float(size), taps * out)
    taps = taps**dims
    if grid >= 0:
        reached = min(inputs, taps * outputs)
    return Why.KNOWN, outputs, reached, taps


@njit
def _grid(x: Inputs, calls: Calls, i: int) -> tuple[int, float]:
    """Return a Why and the taps along a dimension of an op that samples at a grid."""
    r, first, grid = calls.row[i], calls.slot[i, _X], calls.slot[i, _GRID]
    if rank(x, r, grid) <= 0:
        return missing(x, r), 0.0
    if rank(x, r, grid) != rank(x, r, first) or not well_formed(x, r, grid):
        return Why.MISFIT, 0.0
    if dim(x, r, grid, -1) != rank(x, r, grid) - 2 or dim(x, r, grid, 0) != dim(x, r, first, 0):
        return Why.MISFIT, 0.0
    mode = number(x, r, calls.slot[i, _MODE])
    if math.isnan(mode):
        return Why.NO_VALUE, 0.0
    if mode == 0.0:
        return Why.KNOWN, 2.0
    if mode == 1.0:
        return Why.KNOWN, 1.0
    return (Why.KNOWN if mode == 2.0 else Why.MISFIT), 4.0


@njit
def _length(x: Inputs, calls: Calls, i: int, d: int, dims: int, size: int) -> float:
    """Return the length of the output along a spatial dimension: as asked for, else scaled."""
    r, scales = calls.row[i], calls.slot[i, _SCALES]
    asked = per_dimension(x, r, calls.slot[i, _SIZE], d, dims, math.nan)
    if not math.isnan(asked) or items(x, r, scales) != dims:
        return asked
    return (size * item(x, r, scales, d)) // 1.0


@njit
def _padded(x: Inputs, calls: Calls, i: int) -> tuple[int, float, float]:
    """Return a Why, the outputs, and the inputs that are not cut off."""
    r, first, padding = calls.row[i], calls.slot[i, _X], calls.slot[i, _PADDING]
    dims = rank(x, r, first)
    if dims <= 0:
        return missing(x, r), 0.0, 0.0
    if kind(x, r, padding) == NO_VALUE:
        return Why.NO_VALUE, 0.0, 0.0
    length = items(x, r, padding)
    if kind(x, r, padding) != A_LIST or length % 2 == 1 or length > 2 * dims:
        return Why.MISFIT, 0.0, 0.0
    if not well_formed(x, r, first):
        return Why.MISFIT, 0.0, 0.0
    outputs, kept = 1.0, 1.0
    for d in range(dims):
        before, after = 0.0, 0.0
        if 2 * d + 1 < length:
            before, after = item(x, r, padding, 2 * d), item(x, r, padding, 2 * d + 1)
        if not (_is_whole(before) and _is_whole(after)):
            return Why.MISFIT, 0.0, 0.0
        size = float(dim(x, r, first, -d - 1))
        out, left = size + before + after, size + min(before, 0.0) + min(after, 0.0)
        if out < 0.0 or left < 0.0:
            return Why.MISFIT, 0.0, 0.0
        outputs *= out
        kept *= left
    return Why.KNOWN, outputs, kept


@njit
def _is_whole(found: float) -> bool:
    return abs(found) < 2.0**53 and found == found // 1.0


@njit
def _restored(x: Inputs, calls: Calls, i: int) -> tuple[int, float, int]:
    """Return a Why, the elements of the input whose gradient is asked for, spatial dimensions."""
    r, grad, first = calls.row[i], calls.slot[i, _GRAD], calls.slot[i, _X]
    dims = rank(x, r, grad)
    if dims <= 0 or (first >= 0 and rank(x, r, first) <= 0):
        return missing(x, r), 0.0, 0
    if not well_formed(x, r, grad):
        return Why.MISFIT, 0.0, 0
    if first >= 0:
        fits = rank(x, r, first) == dims and well_formed(x, r, first)
        return (Why.KNOWN if fits else Why.MISFIT), numel(x, r, first), dims - 2
    sizes = calls.slot[i, _INPUT_SIZE]
    if kind(x, r, sizes) == NO_VALUE:
        return Why.NO_VALUE, 0.0, 0
    if items(x, r, sizes) != dims or dims < 3:
        return Why.MISFIT, 0.0, 0
    inputs = 1.0
    for d in range(dims):
        size = per_dimension(x, r, sizes, d, dims, math.nan)
        if unfit(size, 0.0) != Why.KNOWN or (d < 2 and size != dim(x, r, grad, d)):
            return Why.MISFIT, 0.0, 0
        inputs *= size
    return Why.KNOWN, inputs, dims - 2


_NEAREST = {"x": 0, "output_size": 1, "scales": 2, "taps": 1}
_LINEAR = {"x": 0, "output_size": 1, "scales": 3, "taps": 2}
_CUBIC = {**_LINEAR, "taps": 4}
_ANTIALIASED = {**_LINEAR, "taps": _UNKNOWN_TAPS}
_GRID_SAMPLER = {"x": 0, "grid": 1, "mode": 2}
_UPSAMPLE_BWD = {"grad": 0, "output_size": 1, "input_size": 2}
_PAD_BWD = {"grad": 0, "x": 1, "padding": 2}
_REPLICATION = {"x": 0, "padding": 1, "per_output": 1}

MODELS = (
    Model(
        name="resample",
        kernel=resample,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"upsample": None},
        ops={
            "aten::upsample_nearest1d": _NEAREST,
            "aten::upsample_nearest2d": _NEAREST,
            "aten::upsample_nearest3d": _NEAREST,
            "aten::_upsample_nearest_exact1d": _NEAREST,
            "aten::_upsample_nearest_exact2d": _NEAREST,
            "aten::_upsample_nearest_exact3d": _NEAREST,
            "aten::upsample_linear1d": _LINEAR,
            "aten::upsample_bilinear2d": _LINEAR,
            "aten::upsample_trilinear3d": _LINEAR,
            "aten::upsample_bicubic2d": _CUBIC,
            "aten::_upsample_bilinear2d_aa": _ANTIALIASED,
            "aten::_upsample_bicubic2d_aa": _ANTIALIASED,
            "aten::grid_sampler_2d": _GRID_SAMPLER,
            "aten::grid_sampler_3d": _GRID_SAMPLER,
        },
    ),
    Model(
        name="pad",
        kernel=pad,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"pad": {"x": 0, "padding": 1}},
        ops={f"aten::replication_pad{dims}d": _REPLICATION for dims in (1, 2, 3)},
    ),
    Model(
        name="resample_bwd",
        kernel=resample_bwd,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"upsample_bwd": None},
        ops={
            "aten::upsample_nearest1d_backward": _UPSAMPLE_BWD,
            "aten::upsample_nearest2d_backward": _UPSAMPLE_BWD,
            "aten::upsample_nearest3d_backward": _UPSAMPLE_BWD,
            "aten::upsample_bilinear2d_backward": {**_UPSAMPLE_BWD, "taps": 2},
            "aten::upsample_bicubic2d_backward": {**_UPSAMPLE_BWD, "taps": 4},
            "aten::replication_pad2d_backward": _PAD_BWD,
            "aten::reflection_pad2d_backward": _PAD_BWD,
        },
    ),
)
