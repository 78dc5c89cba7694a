"""Softmax and log-softmax, and their backwards.

FLOPs = 5 an element (max, difference, exp, sum, quotient), 4 backward; bytes = input and mask read
once, output written once; backward the gradient and the output read, the gradient written. Source:
perf_models A9.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BF16, BYTES, FP16, FP32, NONE, UNKNOWN
from tracehouse.formulas.inputs import (
    NO_VALUE,
    Inputs,
    count,
    dim,
    dtype,
    kind,
    number,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.pointwise import as_parameter, asked_type, elements, out_type

_X, _HALF_TO_FLOAT, _DTYPE, _OUT, _MASK, _FLOPS, _CAUSAL = range(7)
_G, _Y = 5, 6  # of the backward, which has the first five too


@njit
def softmax(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate softmax and log-softmax.

    Slots:  x; half_to_float: a bool, the result is float; dtype: a ScalarType of the result; out:
            where an `out=` may begin; mask of any shape; constants: flops of an element, causal:
            only the lower triangle of the last two dimensions is read and computed.
    Units:  FLOPs, bytes.
    Needs:  square last dimensions if causal.
    Cost:   O(dimensions) a call.
    Source: perf_models A9; causal as the kernels of Megatron have it.
    """
    for i in range(calls.row.shape[0]):
        _softmax(x, calls, work, i)


@njit
def _softmax(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    first, mask = calls.slot[i, _X], calls.slot[i, _MASK]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    n = elements(x, r, first)
    if math.isnan(n) or dtype(x, r, first) == NONE or (mask >= 0 and rank(x, r, mask) < 0):
        work.why[i] = Why.MISFIT
        return
    given = dtype(x, r, first)
    computed, read = n, tensor_bytes(x, r, first)
    if calls.slot[i, _CAUSAL] == 1:
        length = dim(x, r, first, -1)
        if rank(x, r, first) < 2 or dim(x, r, first, -2) != length:
            work.why[i] = Why.MISFIT
            return
        computed = n * (length + 1) / (2 * length) if length > 0 else 0.0
        read = computed * BYTES[given]
    work.flops[i] = computed * calls.slot[i, _FLOPS]
    code = out_type(x, r, calls.slot[i, _OUT], _type_of_result(x, calls, i, r))
    work.bytes[i] = read + tensor_bytes(x, r, mask) + n * BYTES[code]
    work.dtype[i] = given
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE if given == UNKNOWN else Why.NO_VALUE
    work.parameters[i, 0] = as_parameter(n)


@njit
def _type_of_result(x: Inputs, calls: Calls, i: int, r: int) -> int:
    """Return the type of the forward's output, as half_to_float or dtype ask for it."""
    code = dtype(x, r, calls.slot[i, _X])
    to_float = calls.slot[i, _HALF_TO_FLOAT]
    if to_float < 0 or rank(x, r, to_float) < 0:
        return asked_type(x, r, calls.slot[i, _DTYPE], code)
    if kind(x, r, to_float) == NO_VALUE and code in (FP16, BF16):
        return UNKNOWN
    return FP32 if number(x, r, to_float) == 1 else code


@njit
def softmax_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the backwards of softmax and log-softmax.

    Slots:  g: the gradient of the output; y: the output; dtype: a ScalarType of the result; out:
            where a `grad_input=` may begin; mask. Without g the inputs are the forward's: x,
            half_to_float, dtype, mask.
    Units:  FLOPs, bytes.
    Needs:  g and y of as many elements.
    Cost:   O(dimensions) a call.
    Source: perf_models A9.
    """
    for i in range(calls.row.shape[0]):
        _softmax_bwd(x, calls, work, i)


@njit
def _softmax_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    own = calls.slot[i, _G] >= 0
    g = calls.slot[i, _G] if own else calls.slot[i, _X]
    y = calls.slot[i, _Y] if own else calls.slot[i, _X]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    n = elements(x, r, g)
    if not elements(x, r, y) == n or dtype(x, r, g) == NONE or dtype(x, r, y) == NONE:
        work.why[i] = Why.MISFIT
        return
    given = dtype(x, r, g)
    if own:
        read = tensor_bytes(x, r, g) + tensor_bytes(x, r, y)
        code = asked_type(x, r, calls.slot[i, _DTYPE], given)
        written = n * BYTES[out_type(x, r, calls.slot[i, _OUT], code)]
    else:
        read = 2 * n * BYTES[_type_of_result(x, calls, i, r)]
        written = n * BYTES[given]
    work.flops[i] = 4 * n
    work.bytes[i] = read + tensor_bytes(x, r, calls.slot[i, _MASK]) + written
    work.dtype[i] = given
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE if given == UNKNOWN else Why.NO_VALUE
    work.parameters[i, 0] = as_parameter(n)


_SHARED = {"x": ABSENT, "half_to_float": ABSENT, "dtype": ABSENT, "out": ABSENT, "mask": ABSENT}
_CORE = {"x": 0, "half_to_float": 2, "out": 3}
_WITH_DTYPE = {"x": 0, "dtype": 2, "out": 3}
_BACKWARD = {"g": 0, "y": 1, "dtype": 3, "out": 4}
_SCALED = {"x": 0, "mask": 1, "flops": 6}  # a product more
_SCALED_CAUSAL = {"x": 0, "flops": 6, "causal": 1}

# No formula: `softmin` (a negation and a softmax, which have formulas).
MODELS = (
    Model(
        name="softmax",
        kernel=softmax,
        unit="vector",
        slots={**_SHARED, "flops": 5, "causal": 0},
        labels=("elements",),
        families={"softmax": None},
        ops={
            "aten::_softmax": _CORE,
            "aten::_log_softmax": _CORE,
            "aten::softmax": _WITH_DTYPE,
            "aten::log_softmax": _WITH_DTYPE,
            "aten::_safe_softmax": _WITH_DTYPE,
            "aten::_masked_softmax": {"x": 0, "mask": 1, "out": 4},
            "ScaledMaskedSoftmax": _SCALED,
            "scaled_masked_softmax_cuda::forward": _SCALED,
            "ScaledUpperTriangMaskedSoftmax": _SCALED_CAUSAL,
            "scaled_upper_triang_masked_softmax_cuda::forward": _SCALED_CAUSAL,
        },
    ),
    Model(
        name="softmax_bwd",
        kernel=softmax_bwd,
        unit="vector",
        slots={**_SHARED, "g": ABSENT, "y": ABSENT},
        labels=("elements",),
        families={"softmax_bwd": None},
        ops={
            "aten::_softmax_backward_data": _BACKWARD,
            "aten::_log_softmax_backward_data": _BACKWARD,
            "aten::_masked_softmax_backward": {"g": 0, "y": 1, "mask": 2, "out": 4},
        },
    ),
)
