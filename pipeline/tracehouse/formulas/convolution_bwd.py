"""Convolutions, backward: the gradients of the input, the weight and the bias that are asked for.

Each gradient of the input and of the weight is as many FLOPs as the forward without its bias; that
of the bias is one per output. Source: perf_models A4.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.convolution import BIAS, SHAPE_LABELS, SHAPE_SLOTS, W, X, conv_shape
from tracehouse.formulas.dtypes import BYTES
from tracehouse.formulas.gemm import add_flops, multiply_add_flops
from tracehouse.formulas.inputs import (
    NO_VALUE,
    Inputs,
    dim,
    dtype,
    is_tensor,
    item,
    items,
    kind,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.windows import missing

_GRAD, _BIAS_SIZES, _MASK = 11, 12, 13
_C_OUT, _DX = 2, len(SHAPE_LABELS)


@njit
def convolution_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate backward convolutions.

    Slots:  those of the forward; grad of the forward's output; bias_sizes: the shape of the bias,
            [0] if it has none; mask: which of the three gradients are computed. With the inputs of
            the forward call, all gradients of the tensors it has are.
    Units:  FLOPs, bytes. Labels as in the forward; dx, dw, db: the gradients computed.
    Needs:  as in the forward.
    Cost:   O(1) a call.
    Source: perf_models A4 and C5: two passes, one for dx and one for dw, each read grad; dx reads
            w and dw reads x.
    """
    for i in range(calls.row.shape[0]):
        _convolution_bwd(x, calls, work, i)


@njit
def _convolution_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    why, products, outputs = conv_shape(x, calls, work, i)
    if why == Why.KNOWN:
        why = _fit(x, calls, i, work.parameters[i, _C_OUT], outputs)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    why, dx, dw, db = _gradients(x, calls, i)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    work.parameters[i, _DX] = dx
    work.parameters[i, _DX + 1] = dw
    work.parameters[i, _DX + 2] = db
    first, w, grad = calls.slot[i, X], calls.slot[i, W], calls.slot[i, _GRAD]
    type_x, type_w = dtype(x, r, first), dtype(x, r, w)
    of_grad = tensor_bytes(x, r, grad) if grad >= 0 else outputs * BYTES[type_x]
    passes = dx + dw
    moved = (passes if passes > 0 else db) * of_grad
    if dx:
        moved += tensor_bytes(x, r, w) + numel(x, r, first) * BYTES[type_x]
    if dw:
        moved += tensor_bytes(x, r, first) + numel(x, r, w) * BYTES[type_w]
    if db:
        moved += work.parameters[i, _C_OUT] * BYTES[type_w]
    work.bytes[i] = moved
    work.dtype[i] = type_x
    work.flops[i] = passes * multiply_add_flops(type_x) * products + db * outputs * add_flops(
        type_x
    )
    if math.isnan(moved):
        work.why[i] = Why.NO_TYPE


@njit
def _fit(x: Inputs, calls: Calls, i: int, c_out: int, outputs: float) -> int:
    """Return the Why of a gradient that is not of the forward's output."""
    r, grad = calls.row[i], calls.slot[i, _GRAD]
    if grad < 0:
        return Why.KNOWN
    dims = rank(x, r, calls.slot[i, W]) - 2
    if rank(x, r, grad) <= 0:
        return missing(x, r)
    if rank(x, r, grad) != rank(x, r, calls.slot[i, X]):
        return Why.MISFIT
    fits = dim(x, r, grad, -dims - 1) == c_out and numel(x, r, grad) == outputs
    return Why.KNOWN if fits else Why.MISFIT


@njit
def _gradients(x: Inputs, calls: Calls, i: int) -> tuple[int, bool, bool, bool]:
    """Return a Why, and whether dx, dw and db are computed."""
    r, mask, sizes = calls.row[i], calls.slot[i, _MASK], calls.slot[i, _BIAS_SIZES]
    if mask < 0:
        return Why.KNOWN, True, True, is_tensor(x, r, calls.slot[i, BIAS])
    if kind(x, r, mask) == NO_VALUE:
        return Why.NO_VALUE, False, False, False
    length = items(x, r, mask)
    if length != 2 and length != 3:
        return Why.MISFIT, False, False, False
    has_bias = length == 3 and (items(x, r, sizes) < 0 or item(x, r, sizes, 0) > 0)
    db = has_bias and item(x, r, mask, 2) != 0
    return Why.KNOWN, item(x, r, mask, 0) != 0, item(x, r, mask, 1) != 0, db


_ATEN = {
    "grad": 0,
    "x": 1,
    "w": 2,
    "bias_sizes": 3,
    "stride": 4,
    "padding": 5,
    "dilation": 6,
    "transposed": 7,
    "output_padding": 8,
    "groups": 9,
    "mask": 10,
}
_LEAF = {"x": 0, "grad": 1, "w": 2, "padding": 3, "stride": 4, "dilation": 5, "groups": 6}

MODELS = (
    Model(
        name="convolution_bwd",
        kernel=convolution_bwd,
        unit="matrix",
        slots={**SHAPE_SLOTS, "grad": ABSENT, "bias_sizes": ABSENT, "mask": ABSENT},
        labels=(*SHAPE_LABELS, "dx", "dw", "db"),
        families={"conv_bwd": _ATEN, "conv_bwd_leaf": None, "conv_fused_bwd": None},
        ops={
            "aten::convolution_backward_overrideable": {
                "grad": 0,
                "x": 1,
                "w": 2,
                "stride": 3,
                "padding": 4,
                "dilation": 5,
                "transposed": 6,
                "output_padding": 7,
                "groups": 8,
                "mask": 9,
            },
            "aten::_slow_conv2d_backward": {
                "grad": 0,
                "x": 1,
                "w": 2,
                "stride": 4,
                "padding": 5,
                "mask": 6,
            },
            "aten::cudnn_convolution_backward": {**_LEAF, "mask": 10},
            "aten::miopen_convolution_backward": {**_LEAF, "mask": 9},
        },
    ),
)
