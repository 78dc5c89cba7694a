"""Convolutions, forward: aten's, the leafs that its backends have, and Apex's fused ones.

x (N, C_in, …), w (C_out, C_in/groups, …), or (C_in, C_out/groups, …) if transposed. FLOPs =
2·∏out·∏w[1:], transposed 2·∏x·∏w[1:], and one per output for a bias. Source: perf_models A4.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES
from tracehouse.formulas.gemm import add_flops, multiply_add_flops
from tracehouse.formulas.inputs import (
    A_BOOL,
    AN_INT,
    NO_VALUE,
    Inputs,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.windows import missing, per_dimension, unfit, well_formed

# Slots that the models of the forward and of the backward share, in this order.
X, W, BIAS, STRIDE, PADDING, DILATION, TRANSPOSED, OUTPUT_PADDING, GROUPS, IS_TRANSPOSED = range(10)
EITHER_ORDER = 10
SHAPE_SLOTS = {
    "x": ABSENT,
    "w": ABSENT,
    "bias": ABSENT,
    "stride": ABSENT,
    "padding": ABSENT,
    "dilation": ABSENT,
    "transposed": ABSENT,
    "output_padding": ABSENT,
    "groups": ABSENT,
    "is_transposed": 0,
    "either_order": 0,
}
SHAPE_LABELS = ("N", "C_in", "C_out", "inputs", "outputs", "kernel", "groups", "transposed", "bias")
_OPERAND = 11


@njit
def convolution(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate convolutions.

    Slots:  x (N, C_in, …), or (C_in, …) without a batch; w; bias; stride, padding, dilation,
            output_padding: a number or a list; transposed: a bool; groups; is_transposed: 1 for
            ops that always are; either_order: 1 for ops whose stride and padding may stand in
            the other order; operand: a tensor that the epilogue adds or multiplies by.
    Units:  FLOPs, bytes. Labels inputs, outputs and kernel are elements.
    Needs:  1 to 3 spatial dimensions.
    Cost:   O(1) a call.
    Source: perf_models A4. Bias counts if it is a tensor (C5); ReLU of fused ops counts nothing.
    """
    for i in range(calls.row.shape[0]):
        _convolution(x, calls, work, i)


@njit
def _convolution(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    why, products, outputs = conv_shape(x, calls, work, i)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    first, w, bias = calls.slot[i, X], calls.slot[i, W], calls.slot[i, BIAS]
    operand = calls.slot[i, _OPERAND]
    work.dtype[i] = dtype(x, r, first)
    work.bytes[i] = (
        tensor_bytes(x, r, first)
        + tensor_bytes(x, r, w)
        + tensor_bytes(x, r, bias)
        + tensor_bytes(x, r, operand)
        + outputs * BYTES[dtype(x, r, first)]
    )
    epilogue = is_tensor(x, r, bias) + is_tensor(x, r, operand)
    code = work.dtype[i]
    work.flops[i] = multiply_add_flops(code) * products + epilogue * outputs * add_flops(code)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


@njit
def conv_shape(x: Inputs, calls: Calls, work: Work, i: int) -> tuple[int, float, float]:
    """Return a Why, the multiply-adds of a convolution and its outputs; fill in its parameters."""
    r = calls.row[i]
    first, w = calls.slot[i, X], calls.slot[i, W]
    if rank(x, r, first) <= 0 or rank(x, r, w) <= 0:
        return missing(x, r), 0.0, 0.0
    dims = rank(x, r, w) - 2
    batched = rank(x, r, first) == dims + 2
    if dims < 1 or dims > 3 or not (batched or rank(x, r, first) == dims + 1):
        return Why.MISFIT, 0.0, 0.0
    if not (well_formed(x, r, first) and well_formed(x, r, w)):
        return Why.MISFIT, 0.0, 0.0
    why, transposed = _is_transposed(x, calls, i)
    if why != Why.KNOWN:
        return why, 0.0, 0.0
    images = float(dim(x, r, first, 0)) if batched else 1.0
    c_in, per_group = float(dim(x, r, first, -dims - 1)), float(dim(x, r, w, 1))
    why, groups = _groups(x, r, calls.slot[i, GROUPS], c_in, per_group, transposed)
    if why != Why.KNOWN:
        return why, 0.0, 0.0
    c_out = per_group * groups if transposed else float(dim(x, r, w, 0))
    of_input = float(dim(x, r, w, 0)) if transposed else per_group * groups
    if of_input != c_in or dim(x, r, w, 0) % groups != 0:
        return Why.MISFIT, 0.0, 0.0
    size_in, size_out, kernel = 1.0, 1.0, 1.0
    for d in range(dims):
        why, out = _length(x, calls, i, d, dims, transposed)
        if why != Why.KNOWN:
            return why, 0.0, 0.0
        size_in *= dim(x, r, first, d - dims)
        size_out *= out
        kernel *= dim(x, r, w, d - dims)
    inputs, outputs = images * c_in * size_in, images * c_out * size_out
    parameters = (images, c_in, c_out, inputs, outputs, kernel, groups)
    for k in range(7):
        work.parameters[i, k] = int(parameters[k])
    work.parameters[i, 7] = transposed
    work.parameters[i, 8] = is_tensor(x, r, calls.slot[i, BIAS])
    return Why.KNOWN, (inputs if transposed else outputs) * per_group * kernel, outputs


@njit
def _is_transposed(x: Inputs, calls: Calls, i: int) -> tuple[int, bool]:
    flag = calls.slot[i, TRANSPOSED]
    if flag < 0:
        return Why.KNOWN, calls.slot[i, IS_TRANSPOSED] == 1
    what = kind(x, calls.row[i], flag)
    if what == NO_VALUE:
        return Why.NO_VALUE, False
    if what != A_BOOL and what != AN_INT:
        return Why.MISFIT, False
    return Why.KNOWN, number(x, calls.row[i], flag) != 0.0


@njit
def _groups(
    x: Inputs, r: int, groups: int, c_in: float, per_group: float, transposed: bool
) -> tuple[int, float]:
    """Return a Why and the number of groups: the one recorded, else what the channels imply."""
    what = kind(x, r, groups)
    if what == AN_INT:
        found = number(x, r, groups)
        return (Why.KNOWN if 1.0 <= found < 2.0**53 else Why.MISFIT), found
    if what != NO_VALUE:
        return Why.MISFIT, 1.0
    if transposed or per_group == 0.0:
        return Why.KNOWN, 1.0
    implied = c_in // per_group
    return (Why.KNOWN if implied >= 1.0 else Why.MISFIT), implied


@njit
def _is_swapped(stride: float, padding: float, kernel: int) -> bool:
    """Tell whether stride and padding of Apex's ops stand in the other order.

    Its source passes the padding first, perf_models A4 saw the stride first. No stride is 0; else
    the padding is the one of the two that keeps the size, where only one does.
    """
    if stride == 0.0 or padding == 0.0:
        return stride == 0.0
    keeps_size = (kernel - 1.0) / 2.0
    return stride == keeps_size and padding != keeps_size


@njit
def _length(
    x: Inputs, calls: Calls, i: int, d: int, dims: int, transposed: bool
) -> tuple[int, float]:
    """Return a Why and the length of the output along spatial dimension d."""
    r = calls.row[i]
    size, kernel = dim(x, r, calls.slot[i, X], d - dims), dim(x, r, calls.slot[i, W], d - dims)
    stride = per_dimension(x, r, calls.slot[i, STRIDE], d, dims, 1.0)
    padding = per_dimension(x, r, calls.slot[i, PADDING], d, dims, 0.0)
    dilation = per_dimension(x, r, calls.slot[i, DILATION], d, dims, 1.0)
    if calls.slot[i, EITHER_ORDER] == 1 and _is_swapped(stride, padding, kernel):
        stride, padding = padding, stride
    beyond = 0.0
    if transposed:
        beyond = per_dimension(x, r, calls.slot[i, OUTPUT_PADDING], d, dims, 0.0)
    for found, least in ((stride, 1.0), (padding, 0.0), (dilation, 1.0), (beyond, 0.0)):
        why = unfit(found, least)
        if why != Why.KNOWN:
            return why, 0.0
    reach = dilation * (kernel - 1.0)
    if transposed:
        out = (size - 1.0) * stride - 2.0 * padding + reach + beyond + 1.0
    else:
        out = (size + 2.0 * padding - reach - 1.0) // stride + 1.0
    return (Why.KNOWN if out >= 1.0 and kernel >= 1 else Why.MISFIT), out


_ATEN = {
    "x": 0,
    "w": 1,
    "bias": 2,
    "stride": 3,
    "padding": 4,
    "dilation": 5,
    "transposed": 6,
    "output_padding": 7,
    "groups": 8,
}
_LEAF = {"x": 0, "w": 1, "bias": 2, "padding": 3, "stride": 4, "dilation": 5, "groups": 6}
_LEAF_TRANSPOSED = {
    "x": 0,
    "w": 1,
    "bias": 2,
    "padding": 3,
    "output_padding": 4,
    "stride": 5,
    "dilation": 6,
    "groups": 7,
    "is_transposed": 1,
}
_WITH_RELU = {"x": 0, "w": 1, "bias": 2, "stride": 3, "padding": 4, "dilation": 5, "groups": 6}
_WITH_ADD = {
    "x": 0,
    "w": 1,
    "operand": 2,
    "bias": 4,
    "stride": 5,
    "padding": 6,
    "dilation": 7,
    "groups": 8,
}
_SLOW = {"x": 0, "w": 1, "bias": 3, "stride": 4, "padding": 5}
_DILATED = {**_SLOW, "dilation": 6}
_APEX = {"x": 0, "w": 1, "bias": 2, "padding": 3, "stride": 4, "either_order": 1}

MODELS = (
    Model(
        name="convolution",
        kernel=convolution,
        unit="matrix",
        slots={**SHAPE_SLOTS, "operand": ABSENT},
        labels=SHAPE_LABELS,
        families={"conv": _ATEN, "conv_leaf": None, "conv_fused": None},
        ops={
            "aten::cudnn_convolution": {
                "x": 0,
                "w": 1,
                "padding": 2,
                "stride": 3,
                "dilation": 4,
                "groups": 5,
            },
            "aten::cudnn_convolution_transpose": {
                "x": 0,
                "w": 1,
                "padding": 2,
                "output_padding": 3,
                "stride": 4,
                "dilation": 5,
                "groups": 6,
                "is_transposed": 1,
            },
            "aten::cudnn_convolution_relu": _WITH_RELU,
            "aten::miopen_convolution_relu": _WITH_RELU,
            "aten::cudnn_convolution_add_relu": _WITH_ADD,
            "aten::miopen_convolution_add_relu": _WITH_ADD,
            "aten::miopen_convolution": _LEAF,
            "aten::miopen_depthwise_convolution": _LEAF,
            "aten::mkldnn_convolution": _LEAF,
            "aten::miopen_convolution_transpose": _LEAF_TRANSPOSED,
            "aten::thnn_conv2d": _SLOW,
            "aten::_slow_conv2d_forward": _SLOW,
            "aten::slow_conv3d_forward": _SLOW,
            "aten::slow_conv_dilated2d": _DILATED,
            "aten::_conv_depthwise2d": _DILATED,
            "aten::conv_depthwise3d": _DILATED,
            "aten::slow_conv_transpose2d": {
                **_SLOW,
                "output_padding": 6,
                "dilation": 7,
                "is_transposed": 1,
            },
            "ConvBias_": _APEX,
            "ConvBiasReLU_": _APEX,
            "ConvBiasMaskReLU_": {**_APEX, "operand": 3, "padding": 4, "stride": 5},
            "ConvFrozenScaleBiasReLU_": {
                **_APEX,
                "operand": 2,
                "bias": 3,
                "padding": 4,
                "stride": 5,
            },
        },
    ),
)
