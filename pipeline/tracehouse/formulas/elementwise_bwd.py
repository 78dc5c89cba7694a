"""Backwards of pointwise ops: a gradient and what the forward saved give a gradient.

FLOPs = n times those of the forward op; bytes = the gradient and the saved tensors read once, each
gradient written once. Source: perf_models A7.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, NONE, UNKNOWN
from tracehouse.formulas.inputs import Inputs, count, dtype, rank, tensor_bytes
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.pointwise import as_parameter, broadcast, elements, out_type, promoted

_G, _X, _Y, _OUT, _FLOPS, _SAVED, _WRITES, _HALVES = range(8)


@njit
def elementwise_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate backwards of pointwise ops.

    Slots:  g: the gradient of the output; x, y: tensors that the forward saved; out: where an
            `out=` may begin; constants: flops an element of a gradient, saved: how many tensors of
            g's shape are read that are no inputs, writes: how many gradients are written,
            halves: g has half of the elements of x. Without g the inputs are the forward's, and a
            gradient of each is written.
    Units:  FLOPs, bytes.
    Needs:  shapes that broadcast.
    Cost:   O(dimensions) a call.
    Source: perf_models A7 (`*_backward` read grad + saved, write grad).
    """
    for i in range(calls.row.shape[0]):
        _elementwise_bwd(x, calls, work, i)


@njit
def _elementwise_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    g, first, second = calls.slot[i, _G], calls.slot[i, _X], calls.slot[i, _Y]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    for operand in (g, first, second):
        if operand >= 0 and (rank(x, r, operand) < 0 or dtype(x, r, operand) == NONE):
            work.why[i] = Why.MISFIT
            return
    if calls.slot[i, _HALVES] == 1:
        n = elements(x, r, first)
        if 2 * elements(x, r, g) != n:
            n = math.nan
    else:
        n = broadcast(x, r, g, first, second, ABSENT)
    if math.isnan(n):
        work.why[i] = Why.MISFIT
        return
    code = promoted(x, r, g, first, second)
    read = tensor_bytes(x, r, g) + tensor_bytes(x, r, first) + tensor_bytes(x, r, second)
    if g >= 0:
        writes = float(calls.slot[i, _WRITES])
        written = writes * n * BYTES[out_type(x, r, calls.slot[i, _OUT], code)]
        work.bytes[i] = read + calls.slot[i, _SAVED] * n * BYTES[dtype(x, r, g)] + written
    else:
        writes = 1.0 if second < 0 else 2.0
        written = elements(x, r, first) * BYTES[dtype(x, r, first)]
        if second >= 0:
            written += elements(x, r, second) * BYTES[dtype(x, r, second)]
        work.bytes[i] = read + n * BYTES[code] + written
    if code == UNKNOWN:
        work.bytes[i] = math.nan
        work.why[i] = Why.NO_TYPE
    work.flops[i] = writes * n * calls.slot[i, _FLOPS]
    work.dtype[i] = dtype(x, r, g) if g >= 0 else dtype(x, r, first)
    work.parameters[i, 0] = as_parameter(n)
    work.parameters[i, 1] = calls.slot[i, _FLOPS]


def _saved(names: str, **slots: int) -> dict[str, Slots]:
    return {f"aten::{name}_backward": {"g": 0, "x": 1, **slots} for name in names.split()}


MODELS = (
    Model(
        name="elementwise_bwd",
        kernel=elementwise_bwd,
        unit="vector",
        slots={
            "g": ABSENT,
            "x": ABSENT,
            "y": ABSENT,
            "out": ABSENT,
            "flops": 1,
            "saved": 0,
            "writes": 1,
            "halves": 0,
        },
        labels=("elements", "flops_each"),
        families={"binary_bwd": None},
        ops={
            **_saved("hardsigmoid hardswish mish sigmoid silu tanh", out=2),
            **_saved("gelu", flops=8, out=3),
            **_saved("hardtanh", flops=2, out=4),
            **_saved("leaky_relu softplus", out=4),
            **_saved("logit threshold", out=3),
            **_saved("glu", out=3, flops=5, halves=1),
            "aten::elu_backward": {"g": 0, "x": 5, "out": 6},
            "aten::_prelu_kernel_backward": {"g": 0, "x": 1, "y": 2, "writes": 2},
            "LigerSiLUMulFunctionBackward": {"g": 0, "saved": 2, "writes": 2},
        },
    ),
)
