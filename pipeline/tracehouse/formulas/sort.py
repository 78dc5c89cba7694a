"""Sorts and searches: sort, topk, kthvalue, bucketize, searchsorted.

Bytes = what must be read and written once, values and int64 indices; the passes of a radix sort
over its scratch space are not in them. FLOPs are unknown: comparisons depend on the values.
Source: perf_models A11. `nonzero`, `unique` and `bincount` have no formula: how much they write
depends on the values.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.copy import MOVED, settle, stored, unusable
from tracehouse.formulas.dtypes import BYTES, CODE, INT64
from tracehouse.formulas.inputs import Inputs, dim, dtype, number, numel, rank
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_INT32 = CODE["int32"]
_X, _K, _DIM, _IS_ONE, _SORTED, _IS_INT32 = range(6)


@njit
def sort(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate sorts, and searches in what is sorted.

    Slots:  x; k and dim: positions of how many are kept along which dimension, all without them;
            is_one: 1 if one is kept; sorted: the tensor to find the elements of x in; is_int32:
            position of whether the places are int32.
    Units:  bytes; FLOPs are unknown.
    Needs:  shapes and types, and the value of k.
    Cost:   O(dimensions) a call.
    Source: perf_models A11, of which only the compulsory traffic is certain.
    """
    for i in range(calls.row.shape[0]):
        _sort(x, calls, work, i)


@njit
def _sort(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a, among = calls.row[i], calls.slot[i, _X], calls.slot[i, _SORTED]
    why = unusable(x, r, a)
    if why == Why.KNOWN and among != ABSENT:
        why = unusable(x, r, among)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    read, element = stored(x, r, a), BYTES[dtype(x, r, a)]
    if among != ABSENT:
        wanted = number(x, r, calls.slot[i, _IS_INT32])
        if math.isnan(wanted):
            work.why[i] = Why.NO_VALUE
            return
        place = BYTES[_INT32] if wanted == 1 else BYTES[INT64]
        settle(work, i, dtype(x, r, a), read + stored(x, r, among), numel(x, r, a) * place)
    else:
        kept, why = _kept(x, r, calls, i)
        if why != Why.KNOWN:
            work.why[i] = why
            return
        settle(work, i, dtype(x, r, a), read, kept * (element + BYTES[INT64]))
    if work.why[i] == Why.KNOWN:
        work.why[i] = Why.NO_FORMULA


@njit
def _kept(x: Inputs, r: int, calls: Calls, i: int) -> tuple[float, int]:
    """Return how many elements are kept, and why that is not known."""
    a, n = calls.slot[i, _X], numel(x, r, calls.slot[i, _X])
    if calls.slot[i, _DIM] == ABSENT:
        return n, Why.KNOWN
    k = 1.0 if calls.slot[i, _IS_ONE] == 1 else number(x, r, calls.slot[i, _K])
    along = number(x, r, calls.slot[i, _DIM])
    if math.isnan(k) or math.isnan(along):
        return math.nan, Why.NO_VALUE
    dims = max(rank(x, r, a), 1)
    size = 1 if rank(x, r, a) == 0 else dim(x, r, a, int(along) if abs(along) <= dims else dims)
    if along < -dims or along >= dims or not (k >= 0 and k <= size):
        return math.nan, Why.MISFIT
    return (n / size * k if size > 0 else 0.0), Why.KNOWN


MODELS = (
    Model(
        name="sort",
        kernel=sort,
        unit="",
        slots={
            "x": ABSENT,
            "k": ABSENT,
            "dim": ABSENT,
            "is_one": 0,
            "sorted": ABSENT,
            "is_int32": ABSENT,
        },
        labels=MOVED,
        families={"sort": None},
        ops={
            "aten::bucketize": {"x": 0, "sorted": 1, "is_int32": 2},
            "aten::kthvalue": {"x": 0, "dim": 2, "is_one": 1},
            "aten::searchsorted": {"sorted": 0, "x": 1, "is_int32": 2},
            "aten::sort": {"x": 0},
            "aten::topk": {"x": 0, "k": 1, "dim": 2},
        },
    ),
)
