"""Gated activations of serving engines: out = act(in[..., :d]) · in[..., d:].

FLOPs = 5·n_out, bytes = n_in + n_out, each by its own type. Source: perf_models A7.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, NONE
from tracehouse.formulas.inputs import Inputs, count, dtype, rank, tensor_bytes
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.pointwise import as_parameter, elements

_OUT, _X, _SCALE, _HALVES, _FLOPS = range(5)


@njit
def gated(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate activations that multiply one half of their input with the other.

    Slots:  out: the tensor that is written, x's halved if there is none; x; scale: of a quantised
            result; constants: halves (0 where x is as large as the result), flops of an element.
    Units:  FLOPs, bytes.
    Needs:  x with twice the elements of the result (as many, if not halves).
    Cost:   O(dimensions) a call.
    Source: perf_models A7; a scale is one product more; gelu alone is 8.
    """
    for i in range(calls.row.shape[0]):
        _gated(x, calls, work, i)


@njit
def _gated(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    out, first, scale = calls.slot[i, _OUT], calls.slot[i, _X], calls.slot[i, _SCALE]
    if count(x, r) <= 0:
        work.why[i] = Why.NO_INPUTS
        return
    factor = 2.0 if calls.slot[i, _HALVES] == 1 else 1.0
    n = elements(x, r, first) / factor
    fits = math.floor(n) == n if out < 0 else elements(x, r, out) == n
    if not fits or dtype(x, r, first) == NONE or (out >= 0 and dtype(x, r, out) == NONE):
        work.why[i] = Why.MISFIT
        return
    if scale >= 0 and rank(x, r, scale) < 0:
        work.why[i] = Why.MISFIT
        return
    work.flops[i] = n * calls.slot[i, _FLOPS]
    code = dtype(x, r, first) if out < 0 else dtype(x, r, out)
    work.bytes[i] = tensor_bytes(x, r, first) + tensor_bytes(x, r, scale) + n * BYTES[code]
    work.dtype[i] = dtype(x, r, first)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = as_parameter(n)
    work.parameters[i, 1] = calls.slot[i, _FLOPS]


def _into(names: str, **slots: int) -> dict[str, Slots]:
    return {name: {"out": 0, "x": 1, **slots} for name in names.split()}


MODELS = (
    Model(
        name="gated",
        kernel=gated,
        unit="vector",
        slots={"out": ABSENT, "x": ABSENT, "scale": ABSENT, "halves": 1, "flops": 5},
        labels=("elements", "flops_each"),
        families={"gated_act": None},
        ops={
            **_into("_C::silu_and_mul aiter::silu_and_mul sgl_kernel::silu_and_mul"),
            **_into("_C::gelu_and_mul aiter::gelu_and_mul sgl_kernel::gelu_and_mul"),
            **_into("_C::gelu_tanh_and_mul aiter::gelu_tanh_and_mul"),
            **_into("sgl_kernel::gelu_tanh_and_mul _C::mul_and_silu"),
            **_into("_C::silu_and_mul_quant aiter::scaled_silu_and_mul", scale=2, flops=6),
            **_into("_C::gelu_fast _C::gelu_new _C::gelu_quick", halves=0, flops=8),
            "aten::glu": {"x": 0},
        },
    ),
)
