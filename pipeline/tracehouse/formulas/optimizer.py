"""Ops over lists of tensors: `_foreach_*` and fused optimiser steps.

FLOPs = those of the op times all elements; bytes = each list that is read and each that is written,
once. An input says `TensorList` and no type, so the bytes of an element come from the kernel's
name. A list of more than 30 tensors is recorded as an empty one: then nothing is known. Source:
perf_models A14.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import UNKNOWN
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dtype,
    is_tensor,
    member_rank,
    members,
    number,
    tensor_bytes,
)
from tracehouse.formulas.inputs import member_dim as size_of
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.pointwise import as_parameter, elements

_X, _Y, _Z, _ALPHA, _FLOPS, _READS_X, _PER_TENSOR = range(7)
_P, _G, _STATE0, _STATE1, _STATE2, _FIRST_STEP, _SCALE, _EACH, _STATE_EACH, _SINGLES = range(10)


@njit
def foreach(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate pointwise ops and norms of each tensor of a list.

    Slots:  x, y, z: lists of tensors of the same shapes; in the place of a list a tensor, which is
            read, or a number; alpha: a factor, one more FLOP where it is not 1; constants: flops
            an element, reads_x (0 where the first list is only written), per_tensor: how many
            results a tensor has, 0 if as many as elements.
    Units:  FLOPs, bytes.
    Needs:  lists of as many elements, and the bytes of one. An alpha not recorded is 1.
    Cost:   O(tensors) a call.
    Source: perf_models A14, with the FLOPs of A7.
    """
    for i in range(calls.row.shape[0]):
        _foreach(x, calls, work, i)


@njit
def _foreach(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    n, tensors, lists, single = math.nan, 0, 0, 0.0
    for k in (_X, _Y, _Z):
        at = calls.slot[i, k]
        if members(x, r, at) == 0:
            single += tensor_bytes(x, r, at)
            continue
        own = _elements_of(x, r, at)
        if math.isnan(own) or (lists > 0 and members(x, r, at) != tensors):
            work.why[i] = Why.MISFIT
            return
        if lists > 0 and own != n:
            work.why[i] = Why.NO_FORMULA
            return
        n, tensors, lists = own, members(x, r, at), lists + 1
    if lists == 0:
        work.why[i] = Why.NO_SHAPE
        return
    each = calls.slot[i, _FLOPS]
    alpha = number(x, r, calls.slot[i, _ALPHA])
    if not math.isnan(alpha) and alpha != 1:
        each += 1
    work.flops[i] = n * each
    per_tensor = calls.slot[i, _PER_TENSOR]
    results = float(tensors * per_tensor) if per_tensor > 0 else n
    reads = lists if calls.slot[i, _READS_X] == 1 else lists - 1
    work.bytes[i] = (reads * n + results) * calls.element[i] + single
    work.dtype[i] = UNKNOWN
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = tensors
    work.parameters[i, 1] = as_parameter(n)


@njit
def _elements_of(x: Inputs, r: int, at: int) -> float:
    """Return the elements of all tensors of a list; NaN if a dimension is negative."""
    total = 0.0
    for m in range(members(x, r, at)):
        product = 1.0
        for d in range(member_rank(x, r, at, m)):
            size = size_of(x, r, at, m, d)
            if size < 0:
                return math.nan
            product *= size
        total += product
    return total


@njit
def fused_optim(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate fused optimiser steps.

    Slots:  p: parameters, g: gradients, state0 to state2: what the optimiser keeps, which may be
            empty, all lists of tensors of the same shapes; first_step: a bool, the state is not
            read; scale: a tensor, gradients are unscaled in place; constants: flops a parameter,
            state_flops more where there is a state, singles: no lists but three tensors of one
            element, two of which are written.
    Units:  FLOPs, bytes.
    Needs:  lists of as many elements, and the bytes of one.
    Cost:   O(tensors) a call.
    Source: perf_models A14: Adam reads p, g, m, v, writes p, m, v, 12 FLOPs a parameter. The steps
            (a number a tensor) are not counted.
    """
    for i in range(calls.row.shape[0]):
        _fused_optim(x, calls, work, i)


@njit
def _fused_optim(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    p = calls.slot[i, _P]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    if calls.slot[i, _SINGLES] == 1:
        _update_of_scale(x, work, i, r)
        return
    if members(x, r, p) == 0:
        work.why[i] = Why.NO_SHAPE
        return
    n, states = _elements_of(x, r, p), 0
    for k in (_G, _STATE0, _STATE1, _STATE2):
        at = calls.slot[i, k]
        if k != _G and members(x, r, at) == 0:
            continue
        states += k != _G
        if members(x, r, at) != members(x, r, p) or _elements_of(x, r, at) != n:
            work.why[i] = Why.MISFIT
            return
    if math.isnan(n):
        work.why[i] = Why.MISFIT
        return
    each = calls.slot[i, _EACH] + (calls.slot[i, _STATE_EACH] if states > 0 else 0)
    work.flops[i] = n * each
    passes = 3 + 2 * states
    if states > 0 and number(x, r, calls.slot[i, _FIRST_STEP]) == 1:
        passes -= 1
    if is_tensor(x, r, calls.slot[i, _SCALE]):
        passes += 1
    work.bytes[i] = passes * n * calls.element[i]
    work.dtype[i] = UNKNOWN
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = members(x, r, p)
    work.parameters[i, 1] = as_parameter(n)


@njit
def _update_of_scale(x: Inputs, work: Work, i: int, r: int) -> None:
    """Evaluate the update of a loss scale: reads it, its growth and found_inf, writes the first."""
    if not (elements(x, r, 0) == 1 and elements(x, r, 1) == 1 and elements(x, r, 2) == 1):
        work.why[i] = Why.MISFIT
        return
    work.flops[i] = 1.0
    work.dtype[i] = dtype(x, r, 0)
    if not (is_tensor(x, r, 0) and is_tensor(x, r, 1) and is_tensor(x, r, 2)):
        work.why[i] = Why.NO_TYPE
        return
    written = tensor_bytes(x, r, 0) + tensor_bytes(x, r, 1)
    work.bytes[i] = 2 * written + tensor_bytes(x, r, 2)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


def _each(names: str, inplace: str = "", **slots: int) -> dict[str, Slots]:
    both = [*names.split(), *(f"{name}_" for name in inplace.split())]
    return {f"aten::_foreach_{name}": {"x": 0, **slots} for name in both}


_POINTWISE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_WITH_SECOND = "clamp_max clamp_min div maximum minimum mul pow"
_ADAM = {"p": 0, "g": 1, "state0": 2, "state1": 3, "state2": 4, "scale": 13, "flops": 12}

# No formula: `amp_C::multi_tensor_*` (their lists lie in a list, whose shapes are not recorded).
MODELS = (
    Model(
        name="foreach",
        kernel=foreach,
        unit="vector",
        slots={
            "x": ABSENT,
            "y": ABSENT,
            "z": ABSENT,
            "alpha": ABSENT,
            "flops": 1,
            "reads_x": 1,
            "per_tensor": 0,
        },
        labels=("tensors", "elements"),
        families={"foreach": None},
        ops={
            **_each(_POINTWISE, _POINTWISE),
            **_each(_WITH_SECOND, _WITH_SECOND, y=1),
            **_each("add sub", "add sub", y=1, alpha=2),
            **_each("addcdiv addcmul lerp", "addcdiv addcmul lerp", y=1, z=2, flops=3),
            **_each("copy", "copy", y=1, flops=0, reads_x=0),
            **_each("zero", "zero", flops=0, reads_x=0),
            **_each("norm max", per_tensor=1),
            "aten::_amp_foreach_non_finite_check_and_unscale_": {
                "x": 0,
                "y": 1,
                "z": 2,
                "flops": 2,
            },
        },
    ),
    Model(
        name="fused_optim",
        kernel=fused_optim,
        unit="vector",
        slots={
            "p": ABSENT,
            "g": ABSENT,
            "state0": ABSENT,
            "state1": ABSENT,
            "state2": ABSENT,
            "first_step": ABSENT,
            "scale": ABSENT,
            "flops": 0,
            "state_flops": 0,
            "singles": 0,
        },
        labels=("tensors", "elements"),
        families={"fused_optim": None},
        ops={
            "aten::_fused_adam_": _ADAM,
            "aten::_fused_adamw_": _ADAM,
            # p −= lr·g; with momentum one multiply-add more.
            "aten::_fused_sgd_": {
                **{"p": 0, "g": 1, "state0": 2, "first_step": 9, "scale": 10},
                **{"flops": 2, "state_flops": 2},
            },
            # sum += g²; p −= lr·g / (√sum + ε).
            "aten::_fused_adagrad_": {"p": 0, "g": 1, "state0": 2, "scale": 9, "flops": 7},
            "aten::_amp_update_scale_": {"singles": 1},
        },
    ),
)
