"""Ops that work element by element: unary, binary and ternary ones.

FLOPs = n of the broadcast shape times those of the op; bytes = the distinct elements of each
operand read once, n elements of the result written once. Source: perf_models A7.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import (
    BYTES,
    CATEGORY,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    LIST,
    NONE,
    UNKNOWN,
)
from tracehouse.formulas.elementwise_ops import OPS
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dtype,
    is_tensor,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.pointwise import (
    OF_FIRST,
    as_parameter,
    broadcast,
    out_type,
    promoted,
    result_type,
)

_X, _Y, _Z, _MASK, _EXTRA, _ALPHA, _MODE, _OUT = range(8)
_FLOPS, _COMPLEX_FLOPS, _RESULT, _IN_PLACE, _OPTIONAL = range(8, 13)


@njit
def elementwise(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate pointwise ops.

    Slots:  x, y, z: operands, tensors or numbers, which broadcast and promote; mask broadcasts
            only; extra is only read; alpha: a factor, one more FLOP where it is not 1; mode: the
            rounding of a division; out: where an `out=` may begin; constants: flops an element,
            complex_flops where all operands are complex, result: flags of pointwise.py, in_place,
            optional: y and z may be None.
    Units:  FLOPs, bytes.
    Needs:  shapes that broadcast, to that of x if in_place. An alpha that was not recorded is 1.
    Cost:   O(dimensions) a call.
    Source: perf_models A7 (pow of two tensors and alpha: as marked there), A1 (types).
    """
    for i in range(calls.row.shape[0]):
        _elementwise(x, calls, work, i)


@njit
def _elementwise(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    first, second, third = calls.slot[i, _X], calls.slot[i, _Y], calls.slot[i, _Z]
    mask, extra = calls.slot[i, _MASK], calls.slot[i, _EXTRA]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    if dtype(x, r, first) == LIST or (mask >= 0 and count(x, r) == 1):
        work.why[i] = Why.NO_FORMULA
        return
    n = broadcast(x, r, first, second, third, mask)
    if _is_missing(x, r, first) or (calls.slot[i, _OPTIONAL] == 0 and _is_missing(x, r, second)):
        work.why[i] = Why.MISFIT
        return
    if math.isnan(n) or (calls.slot[i, _IN_PLACE] == 1 and n != numel(x, r, first)):
        work.why[i] = Why.MISFIT
        return
    each = calls.slot[i, _FLOPS]
    alpha = number(x, r, calls.slot[i, _ALPHA])
    if not math.isnan(alpha) and alpha != 1:
        each += 1
    common = promoted(x, r, first, second, third)
    if CATEGORY[common] == COMPLEX:
        each = each * 2
        if _all_complex(x, r, first) and _all_complex(x, r, second):
            each = max(each, calls.slot[i, _COMPLEX_FLOPS])
    work.flops[i] = n * each
    code = result_type(_type_of(x, calls, i, r, common), calls.slot[i, _RESULT])
    if calls.slot[i, _IN_PLACE] == 1:
        code = dtype(x, r, first)
    code = out_type(x, r, calls.slot[i, _OUT], code)
    for operand in (first, second, third, mask, extra):
        if operand >= 0 and dtype(x, r, operand) == UNKNOWN:
            code = UNKNOWN
    work.bytes[i] = (
        tensor_bytes(x, r, first)
        + tensor_bytes(x, r, second)
        + tensor_bytes(x, r, third)
        + tensor_bytes(x, r, mask)
        + tensor_bytes(x, r, extra)
        + n * BYTES[code]
    )
    work.dtype[i] = _computed_in(x, r, first, second, common)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = as_parameter(n)
    work.parameters[i, 1] = each


@njit
def _is_missing(x: Inputs, r: int, i: int) -> bool:
    """Tell whether input i, where the op has one, was not recorded or is None."""
    return i >= 0 and (rank(x, r, i) < 0 or dtype(x, r, i) == NONE)


@njit
def _type_of(x: Inputs, calls: Calls, i: int, r: int, common: int) -> int:
    """Return the type that the flags of the result start from."""
    if calls.slot[i, _RESULT] & OF_FIRST:
        return dtype(x, r, calls.slot[i, _X])
    mode = calls.slot[i, _MODE]
    is_rounded = mode >= 0 and rank(x, r, mode) >= 0 and not is_tensor(x, r, mode)
    if is_rounded and CATEGORY[common] <= INTEGRAL:
        return UNKNOWN  # a text, which traces do not record, says if the quotients are rounded
    return common


@njit
def _all_complex(x: Inputs, r: int, i: int) -> bool:
    """Tell whether input i holds complex numbers, or is not there to be multiplied with."""
    return i < 0 or CATEGORY[dtype(x, r, i)] == COMPLEX


@njit
def _computed_in(x: Inputs, r: int, first: int, second: int, common: int) -> int:
    """Return the type of the arithmetic: that of the first operand with dimensions.

    Where that one is of integers and the op gives fractions, the promoted type.
    """
    i = second if rank(x, r, first) == 0 and rank(x, r, second) > 0 else first
    code = dtype(x, r, i)
    if CATEGORY[code] < FLOATING and CATEGORY[common] >= FLOATING:
        return common
    return code


MODELS = (
    Model(
        name="elementwise",
        kernel=elementwise,
        unit="vector",
        slots={
            "x": ABSENT,
            "y": ABSENT,
            "z": ABSENT,
            "mask": ABSENT,
            "extra": ABSENT,
            "alpha": ABSENT,
            "mode": ABSENT,
            "out": ABSENT,
            "flops": 1,
            "complex_flops": 0,
            "result": 0,
            "in_place": 0,
            "optional": 0,
        },
        labels=("elements", "flops_each"),
        families={"unary": None, "binary": None, "ternary": None},
        ops=OPS,
    ),
)
