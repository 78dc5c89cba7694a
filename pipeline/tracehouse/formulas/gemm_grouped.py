"""Grouped matrix products: one for each expert, of as many rows as it has tokens.

The rows of all groups lie one after the other, and how many a group has is not recorded; the work
of all of them together does not depend on it. Source: perf_models A3.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BF16, BYTES, dtype_of_enum
from tracehouse.formulas.gemm import add_flops, multiply_add_flops, operand_bytes, other_bytes
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    member_dim,
    member_rank,
    members,
    number,
    numel,
    rank,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_A, _B, _GROUPS, _BIAS, _OUT_TYPE, _DEFAULT, _SCALE_A, _SCALE_B, _OTHER, _SUM_ROWS, _SUM_FLAG = (
    range(11)
)
_LARGEST = 2.0**62


@njit
def grouped(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate grouped matrix products.

    Slots:  a (M, K) or (G, M, K); b (G, K, N), (G, N, K) or (K, N); groups: a tensor of G elements
            that says where groups end; bias; out_type: a ScalarType number; default: type code of
            the output, -1 for the type of a; scale_a, scale_b, other: further tensors read;
            sum_rows: 1 if the rows of a (M, K) and b (M, N) are what is summed over; sum_flag: the
            flag that says so.
    Units:  FLOPs, bytes.
    Needs:  all rows belong to a group; two 2-D operands share K, which the groups divide. Lists
            are products of pairs; their bytes need `element`.
    Cost:   O(1) a call, O(G) for lists.
    Source: perf_models A3, C17: the output has its own type, not that of the weight. `groups` is
            not counted.
    """
    for i in range(calls.row.shape[0]):
        if members(x, calls.row[i], calls.slot[i, _A]) > 0:
            _pairs(x, calls, work, i)
        else:
            _grouped(x, calls, work, i)


@njit
def _grouped(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    slot = calls.slot[i]
    a, b = slot[_A], slot[_B]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    if rank(x, r, a) < 2 or rank(x, r, b) < 2:
        work.why[i] = Why.NO_SHAPE
        return
    g = numel(x, r, slot[_GROUPS]) if rank(x, r, slot[_GROUPS]) == 1 else math.nan
    if rank(x, r, b) == 3:
        g = float(dim(x, r, b, 0))
    elif rank(x, r, a) == 3:
        g = float(dim(x, r, a, 0))
    sum_rows = slot[_SUM_ROWS] == 1 or number(x, r, slot[_SUM_FLAG]) == 1
    m, n, k, results = _sizes(x, r, a, b, g, sum_rows)
    if m < 0 or n < 0 or k < 0:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    biased = is_tensor(x, r, slot[_BIAS])
    asked = number(x, r, slot[_OUT_TYPE])
    written = code if slot[_DEFAULT] < 0 else slot[_DEFAULT]
    if not math.isnan(asked):
        written = dtype_of_enum(asked)
    work.flops[i] = m * n * k * multiply_add_flops(code)
    if biased:
        work.flops[i] += results * add_flops(code)
    work.bytes[i] = (
        operand_bytes(x, r, a)
        + operand_bytes(x, r, b)
        + other_bytes(x, r, slot[_BIAS])
        + other_bytes(x, r, slot[_SCALE_A])
        + other_bytes(x, r, slot[_SCALE_B])
        + other_bytes(x, r, slot[_OTHER])
        + results * BYTES[written]
    )
    work.dtype[i] = code
    if math.isnan(work.flops[i]) or math.isnan(results):
        work.why[i] = Why.NO_SHAPE
    elif math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    sizes = (g, m, n, k)
    for place in range(4):
        if 0 <= sizes[place] < _LARGEST:
            work.parameters[i, place] = int(sizes[place])


@njit
def _sizes(
    x: Inputs, r: int, a: int, b: int, g: float, sum_rows: bool
) -> tuple[float, float, float, float]:
    """Return M, N, K over all groups, and the elements of the output; M is -1 if they misfit."""
    rows, k = float(dim(x, r, a, -2)), float(dim(x, r, a, -1))
    before, n = float(dim(x, r, b, -2)), float(dim(x, r, b, -1))
    misfit = (-1.0, n, k, 0.0)
    ranks = 10 * rank(x, r, a) + rank(x, r, b)
    if sum_rows:
        return (k, n, rows, g * k * n) if ranks == 22 and rows == before else misfit
    if ranks == 22:
        return (rows, n, k, g * rows * n) if before == k else misfit
    if ranks == 32:
        return (rows, n, k, rows * n) if before == k else misfit
    if ranks == 23 or (ranks == 33 and dim(x, r, a, 0) == g):
        rows = rows * g if ranks == 33 else rows
        if before != k and n == k:
            before, n = n, before
        return (rows, n, k, rows * n) if before == k else misfit
    return misfit


@njit
def _pairs(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    """Evaluate the products of two lists' tensors: (M, K) by (K, N) or (N, K); (M, K) by (M, N)."""
    r = calls.row[i]
    a, b = calls.slot[i, _A], calls.slot[i, _B]
    pairs = members(x, r, a)
    if members(x, r, b) != pairs:
        work.why[i] = Why.NO_SHAPE if members(x, r, b) == 0 else Why.MISFIT
        return
    flops, elements = 0.0, 0.0
    for p in range(pairs):
        if member_rank(x, r, a, p) != 2 or member_rank(x, r, b, p) != 2:
            work.why[i] = Why.MISFIT
            return
        m, k = float(member_dim(x, r, a, p, 0)), float(member_dim(x, r, a, p, 1))
        first, last = float(member_dim(x, r, b, p, 0)), float(member_dim(x, r, b, p, 1))
        if calls.slot[i, _SUM_ROWS] == 1 and first == m:
            m, k = k, m
        elif first != k:
            first, last = last, first
        if first != k or m < 0 or k < 0 or last < 0:
            work.why[i] = Why.MISFIT
            return
        flops += 2.0 * m * k * last
        elements += m * k + k * last + m * last
    work.flops[i] = flops
    work.bytes[i] = elements * calls.element[i]
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = pairs


_PLAIN = {"a": 0, "b": 1, "groups": 2}

MODELS = (
    Model(
        name="gemm_grouped",
        kernel=grouped,
        unit="matrix",
        slots={
            "a": ABSENT,
            "b": ABSENT,
            "groups": ABSENT,
            "bias": ABSENT,
            "out_type": ABSENT,
            "default": -1,
            "scale_a": ABSENT,
            "scale_b": ABSENT,
            "other": ABSENT,
            "sum_rows": 0,
            "sum_flag": ABSENT,
        },
        labels=("G", "M", "N", "K"),
        families={"gemm_grouped": _PLAIN, "gemm_grouped_wgrad": _PLAIN | {"sum_rows": 1}},
        ops={
            "grouped_gemm::gmm": _PLAIN | {"sum_flag": 3},
            "aten::_grouped_mm": _PLAIN | {"bias": 3, "out_type": 4},
            "aten::_scaled_grouped_mm": _PLAIN
            | {"scale_a": 2, "scale_b": 3, "groups": 4, "bias": 5, "other": 6, "default": BF16},
            "aten::_scaled_grouped_mm_v2": _PLAIN
            | {"scale_a": 2, "scale_b": 5, "groups": 8, "bias": 9, "default": BF16},
        },
    ),
)
