"""Matrix products of ATen: mm, addmm, bmm, baddbmm and those with vectors.

[B] · (M, K) × (K, N). FLOPs = B·(2·M·N·K + M·N if something is added); bytes = each operand read
once, the output written once. Source: perf_models A3. The parts that the products of other
libraries need as well are public here: `operand_bytes`, `other_bytes`, `report`.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import (
    BYTES,
    CATEGORY,
    COMPLEX,
    FIRST_TENSOR_TYPE,
    LIST,
    dtype_of_enum,
)
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    number,
    rank,
    touched,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

LABELS = ("B", "M", "N", "K", "bias")
RELU_FLOPS, GELU_FLOPS = 1, 8  # per element; perf_models A7
_LARGEST = 2.0**62
_A, _B, _ADDED, _INPUTS, _RANK_A, _RANK_B, _OUTER, _SUMMED, _GELU = range(9)


@njit
def operand_bytes(x: Inputs, r: int, i: int) -> float:
    """Return the bytes of the distinct elements of a tensor that the op must have.

    NaN where its type is no type of a tensor, or not known.
    """
    code = dtype(x, r, i)
    return touched(x, r, i) * BYTES[code] if code >= FIRST_TENSOR_TYPE else math.nan


@njit
def other_bytes(x: Inputs, r: int, i: int) -> float:
    """Return the bytes of a tensor that the op may have: 0 if absent, NaN for a list."""
    if i < 0:
        return 0.0
    if dtype(x, r, i) == LIST:
        return math.nan
    return operand_bytes(x, r, i) if is_tensor(x, r, i) else 0.0


@njit
def multiply_add_flops(code: int) -> float:
    """Return the FLOPs of a multiply-add of a type: 2, of complex numbers 8."""
    return 8.0 if CATEGORY[code] == COMPLEX else 2.0


@njit
def add_flops(code: int) -> float:
    """Return the FLOPs of an addition of a type: 1, of complex numbers 2."""
    return 2.0 if CATEGORY[code] == COMPLEX else 1.0


@njit
def report(work: Work, i: int, batch: float, m: float, n: float, k: float, adds: bool) -> None:
    """Write the sizes of a product to the parameters LABELS; sizes out of range are left out."""
    sizes = (batch, m, n, k)
    for place in range(4):
        if 0 <= sizes[place] < _LARGEST:
            work.parameters[i, place] = int(sizes[place])
    work.parameters[i, 4] = adds


@njit
def gemm(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the matrix products of ATen.

    Slots:  a, b: the operands, of the ranks rank_a and rank_b; added: what the product is added
            to, of any shape that broadcasts, ABSENT if nothing; inputs: how many the op declares;
            outer: 1 if two vectors make a matrix; summed: 1 if the products of a batch are summed;
            gelu: the flag of an epilogue, which is relu where false.
    Units:  FLOPs, bytes.
    Needs:  a tensor beyond the declared inputs is the output; one more input after the operands is
            the output's type.
    Cost:   O(1) a call.
    Source: perf_models A3; what is added counts by its own shape, and not at all if beta is 0.
    """
    for i in range(calls.row.shape[0]):
        _gemm(x, calls, work, i)


@njit
def _gemm(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    slot = calls.slot[i]
    a, b, added = slot[_A], slot[_B], slot[_ADDED]
    given = count(x, r)
    if given <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    if rank(x, r, a) <= 0 or rank(x, r, b) <= 0:
        work.why[i] = Why.NO_SHAPE
        return
    out = given - 1 if given > slot[_INPUTS] and is_tensor(x, r, given - 1) else ABSENT
    more = max(given - slot[_INPUTS] - (1 if out >= 0 else 0), 0)
    if rank(x, r, a) != slot[_RANK_A] or rank(x, r, b) != slot[_RANK_B] or more > 1:
        work.why[i] = Why.MISFIT
        return
    batch, m, n, k, inner = _sizes(x, r, a, b, slot[_OUTER] == 1)
    results = 1.0 if slot[_SUMMED] == 1 else batch
    vector = slot[_RANK_A] == 2 and slot[_RANK_B] == 1
    fits = added < 0 or _broadcasts(x, r, added, results, m, n, vector, slot[_RANK_A] == 3)
    if batch < 0 or m < 0 or n < 0 or k < 0 or inner != k or not fits:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    adds = added >= 0 and number(x, r, b + 1 + more) != 0
    flops = batch * m * n * k * multiply_add_flops(code)
    flops += results * m * n * add_flops(code) if adds else 0.0
    work.flops[i] = flops + _epilogue(x, r, slot[_GELU], more) * m * n
    if out >= 0:
        code = dtype(x, r, out)
    elif more == 1:
        code = dtype_of_enum(number(x, r, b + 1))
    moved = operand_bytes(x, r, a) + operand_bytes(x, r, b) + results * m * n * BYTES[code]
    work.bytes[i] = moved + operand_bytes(x, r, added) if adds else moved
    work.dtype[i] = dtype(x, r, a)
    if math.isnan(work.flops[i]) or (out < 0 and more == 1 and math.isnan(number(x, r, b + 1))):
        work.why[i] = Why.NO_VALUE
    elif math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    report(work, i, batch, m, n, k, adds)


@njit
def _sizes(
    x: Inputs, r: int, a: int, b: int, outer: bool
) -> tuple[float, float, float, float, float]:
    """Return B, M, N, K, and K as b says; the missing dimension of a vector is 1."""
    batch, m, n = 1.0, 1.0, 1.0
    k, inner = float(dim(x, r, a, -1)), float(dim(x, r, b, -1))
    if outer:
        return batch, k, inner, 1.0, 1.0
    if rank(x, r, a) > 1:
        m = float(dim(x, r, a, -2))
    if rank(x, r, b) > 1:
        n, inner = inner, float(dim(x, r, b, -2))
    if rank(x, r, a) == 3:
        batch = float(dim(x, r, a, 0))
        if dim(x, r, b, 0) != batch:
            batch = -1.0
    return batch, m, n, k, inner


@njit
def _broadcasts(
    x: Inputs, r: int, i: int, results: float, m: float, n: float, vector: bool, batched: bool
) -> bool:
    """Tell whether what is added broadcasts to the results; one without a shape is not judged."""
    sizes = (m, -1.0, -1.0) if vector else (n, m, results if batched else -1.0)
    for d in range(rank(x, r, i)):
        size = dim(x, r, i, -1 - d)
        if d > 2 or sizes[d] < 0 or (size != 1 and size != sizes[d]):
            return False
    return True


@njit
def _epilogue(x: Inputs, r: int, gelu: int, more: int) -> float:
    if gelu < 0:
        return 0.0
    flag = number(x, r, gelu + more)
    if math.isnan(flag):
        return math.nan
    return float(GELU_FLOPS) if flag != 0 else float(RELU_FLOPS)


_PLAIN = {"a": 0, "b": 1, "inputs": 2}
_ADDED_TO = {"added": 0, "a": 1, "b": 2, "inputs": 5}
_MATRICES = {"rank_a": 2, "rank_b": 2}
_BATCHES = {"rank_a": 3, "rank_b": 3}
_MATRIX_VECTOR = {"rank_a": 2, "rank_b": 1}
_VECTORS = {"rank_a": 1, "rank_b": 1}

MODELS = (
    Model(
        name="gemm",
        kernel=gemm,
        unit="matrix",
        slots={
            "a": ABSENT,
            "b": ABSENT,
            "added": ABSENT,
            "inputs": 0,
            "rank_a": 2,
            "rank_b": 2,
            "outer": 0,
            "summed": 0,
            "gelu": ABSENT,
        },
        labels=LABELS,
        families={"gemm": _PLAIN | _MATRICES, "gemm_batched": _PLAIN | _BATCHES},
        ops={
            "aten::addmm": _ADDED_TO | _MATRICES,
            "aten::addmm.out": _ADDED_TO | _MATRICES,
            "aten::addmm_": _ADDED_TO | _MATRICES,
            "aten::_addmm_activation": _ADDED_TO | _MATRICES | {"inputs": 6, "gelu": 5},
            "aten::addmv": _ADDED_TO | _MATRIX_VECTOR,
            "aten::addmv_": _ADDED_TO | _MATRIX_VECTOR,
            "aten::mv": _PLAIN | _MATRIX_VECTOR,
            "aten::addr": _ADDED_TO | _VECTORS | {"outer": 1},
            "aten::ger": _PLAIN | _VECTORS | {"outer": 1},
            "aten::dot": _PLAIN | _VECTORS,
            "aten::vdot": _PLAIN | _VECTORS,
            "aten::addbmm": _ADDED_TO | _BATCHES | {"summed": 1},
            "aten::addbmm_": _ADDED_TO | _BATCHES | {"summed": 1},
            "aten::baddbmm": _ADDED_TO | _BATCHES,
            "aten::baddbmm_": _ADDED_TO | _BATCHES,
        },
    ),
)
