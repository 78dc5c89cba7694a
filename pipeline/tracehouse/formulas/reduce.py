"""Reductions over dimensions, and scans along one.

FLOPs = 1 an element of the input; bytes = the input read once, the results written once: a value
for each element of the dimensions that are kept (a scan keeps all), and its int64 index where the
op returns indices. Source: perf_models A8.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, CATEGORY, COMPLEX, NONE, UNKNOWN
from tracehouse.formulas.inputs import (
    A_LIST,
    A_TEXT,
    AN_INT,
    NO_VALUE,
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    item,
    items,
    kind,
    number,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.pointwise import (
    BOOL_OR_UINT8,
    FLOAT,
    IS_INT64,
    REAL,
    WIDE,
    as_parameter,
    asked_type,
    broadcast,
    elements,
    is_none,
    out_type,
    promoted,
    real_of,
    result_type,
)

_X, _OTHER, _ORD, _DIMS, _DTYPE, _SHORT, _SHORT_DTYPE = range(7)
_RESULT, _VALUES, _INDICES, _SCANS, _IN_PLACE, _EMPTY_KEEPS = range(7, 13)
_INDEX = 8.0  # bytes of an int64
_NO_SUCH_DIM, _NOT_RECORDED = -1.0, -2.0


@njit
def reduction(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate reductions and scans.

    Slots:  x; other: a second tensor, the op then works element by element; ord: of a norm, a
            matrix norm has no formula; dims: a list or a number, all if None or empty; dtype: a
            ScalarType of the result; constants: short: calls of so many inputs or fewer reduce
            all, with short_dtype as their dtype; result: flags of pointwise.py; values: how many
            results an element that is kept has; indices: how many indices, where dims are given;
            scans; in_place; empty_keeps: an empty list reduces nothing.
    Units:  FLOPs, bytes.
    Needs:  dims of x, each once.
    Cost:   O(dimensions) a call.
    Source: perf_models A8 (dims, indices and types of results as marked there).
    """
    for i in range(calls.row.shape[0]):
        _reduction(x, calls, work, i)


@njit
def _reduction(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    first, other = calls.slot[i, _X], calls.slot[i, _OTHER]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    n = elements(x, r, first)
    if math.isnan(n) or dtype(x, r, first) == NONE:
        work.why[i] = Why.MISFIT
        return
    work.dtype[i] = dtype(x, r, first)
    if is_tensor(x, r, other):
        _of_two(x, work, i, r, first, other)
        return
    dims = calls.slot[i, _DIMS]
    is_short = count(x, r) <= calls.slot[i, _SHORT] and kind(x, r, dims) != A_LIST
    if is_short or rank(x, r, dims) < 0:
        dims = ABSENT
    if _is_matrix_norm(x, r, calls.slot[i, _ORD], first, dims):
        work.why[i] = Why.NO_FORMULA
        return
    scans = calls.slot[i, _SCANS] == 1
    results = _kept(x, r, first, dims)
    if results == _NO_SUCH_DIM:
        work.why[i] = Why.MISFIT
        return
    work.flops[i] = n
    work.parameters[i, 0] = as_parameter(n)
    if scans or (calls.slot[i, _EMPTY_KEEPS] == 1 and items(x, r, dims) == 0):
        results = n
    if results == _NOT_RECORDED:
        work.why[i] = Why.NO_VALUE
        return
    code = result_type(dtype(x, r, first), calls.slot[i, _RESULT])
    wanted = calls.slot[i, _SHORT_DTYPE if is_short else _DTYPE]
    code = dtype(x, r, first) if calls.slot[i, _IN_PLACE] == 1 else asked_type(x, r, wanted, code)
    if calls.slot[i, _VALUES] == 1 and calls.slot[i, _INDICES] == 0:
        code = out_type(x, r, 1, code)
    indices = calls.slot[i, _INDICES] if dims >= 0 else 0
    each = calls.slot[i, _VALUES] * BYTES[code] + indices * _INDEX
    if calls.slot[i, _VALUES] == 2 and CATEGORY[code] == COMPLEX:
        each = BYTES[code] + BYTES[real_of(code)]  # a variance is real, its mean is not
    work.bytes[i] = tensor_bytes(x, r, first) + results * each
    if dtype(x, r, first) == UNKNOWN:
        work.bytes[i] = math.nan
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE if dtype(x, r, first) == UNKNOWN else Why.NO_VALUE
    work.parameters[i, 1] = as_parameter(results)


@njit
def _of_two(x: Inputs, work: Work, i: int, r: int, first: int, other: int) -> None:
    """Evaluate the larger or smaller of two tensors, element by element."""
    n = broadcast(x, r, first, other, ABSENT, ABSENT)
    if math.isnan(n):
        work.why[i] = Why.MISFIT
        return
    work.flops[i] = n
    code = out_type(x, r, other + 1, promoted(x, r, first, other, ABSENT))
    work.bytes[i] = tensor_bytes(x, r, first) + tensor_bytes(x, r, other) + n * BYTES[code]
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = work.parameters[i, 1] = as_parameter(n)


@njit
def _is_matrix_norm(x: Inputs, r: int, order: int, first: int, dims: int) -> bool:
    if order < 0 or dtype(x, r, order) == NONE:
        return False
    over = items(x, r, dims) if items(x, r, dims) > 0 else rank(x, r, first)
    return over == 2 and kind(x, r, dims) in (A_LIST, NO_VALUE)


@njit
def _kept(x: Inputs, r: int, first: int, dims: int) -> float:
    """Return the number of elements of the dimensions that are not reduced.

    _NO_SUCH_DIM if one of `dims` is none of the tensor's or is there twice, _NOT_RECORDED if the
    dims were not recorded.
    """
    if dims < 0 or is_none(x, r, dims):
        return 1.0
    value = kind(x, r, dims)
    if value not in (A_LIST, AN_INT):
        return _NO_SUCH_DIM if value not in (NO_VALUE, A_TEXT) else _NOT_RECORDED
    length = items(x, r, dims) if value == A_LIST else 1
    if length == 0:
        return 1.0
    own = max(rank(x, r, first), 1)
    if length > own:
        return _NO_SUCH_DIM
    reduced = np.zeros(own, dtype=np.bool_)
    for k in range(length):
        given = item(x, r, dims, k) if value == A_LIST else number(x, r, dims)
        if not -own <= given < own or math.floor(given) != given or reduced[int(given)]:
            return _NO_SUCH_DIM
        reduced[int(given)] = True
    product = 1.0
    for d in range(rank(x, r, first)):
        if not reduced[d]:
            product *= dim(x, r, first, d)
    return product


def _ops(names: str, **slots: int) -> dict[str, Slots]:
    return {f"aten::{name}": {"x": 0, **slots} for name in names.split()}


# (self, dtype) and (self, dim, keepdim, dtype)
_TOTAL = {"dims": 1, "dtype": 3, "short": 3, "short_dtype": 1}
_LIST_OF_DIMS = {"dims": 1, "short": 3}  # (self, unbiased) and (self, dim, correction, keepdim)

# No formula: `allclose`, `count_nonzero`, `dist`, `equal`, `trace`, `diff` (several kernels, of
# ops that have formulas).
MODELS = (
    Model(
        name="reduce",
        kernel=reduction,
        unit="vector",
        slots={
            "x": ABSENT,
            "other": ABSENT,
            "ord": ABSENT,
            "dims": ABSENT,
            "dtype": ABSENT,
            "short": 0,
            "short_dtype": ABSENT,
            "result": 0,
            "values": 1,
            "indices": 0,
            "scans": 0,
            "in_place": 0,
            "empty_keeps": 0,
        },
        labels=("elements", "results"),
        families={"reduce": None, "scan": None},
        ops={
            **_ops("sum sum.dim_IntList nansum prod", result=WIDE, **_TOTAL),
            **_ops("mean", **_TOTAL),
            **_ops("std var", result=REAL, **_LIST_OF_DIMS),
            **_ops("std_mean var_mean", values=2, **_LIST_OF_DIMS),
            **_ops("amax amin", dims=1),
            **_ops("aminmax", dims=1, values=2),
            **_ops("logsumexp", dims=1, result=FLOAT),
            **_ops("argmax argmin", dims=1, result=IS_INT64),
            **_ops("all any", dims=1, result=BOOL_OR_UINT8, empty_keeps=1),
            **_ops("max min", other=1, dims=1, indices=1),
            **_ops("median nanmedian mode", dims=1, indices=1),
            **_ops("norm", dims=2, dtype=4, short=3, short_dtype=2, result=REAL),
            **_ops("linalg_vector_norm", dims=2, dtype=4, result=REAL),
            **_ops("linalg_norm", ord=1, dims=2, dtype=4, result=REAL),
            **_ops("cumsum cumprod", dims=1, dtype=2, scans=1, result=WIDE),
            **_ops("cumsum_ cumprod_", dims=1, scans=1, in_place=1),
            **_ops("_cumsum logcumsumexp", dims=1, scans=1),
            **_ops("cummax cummin", dims=1, scans=1, indices=1),
        },
    ),
)
