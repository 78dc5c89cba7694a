"""Around the experts: choosing them, sorting tokens by them, sending tokens to them.

Source: perf_models A12.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.copy import unusable, whole
from tracehouse.formulas.dtypes import BYTES, NONE
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_X = 0


@njit
def moe_aux(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate routing ops whose outputs are among their inputs.

    Slots:  none: all tensors count.
    Units:  FLOPs, bytes.
    Needs:  shapes and types of all tensors.
    Cost:   O(inputs) a call.
    Source: perf_models A12: bytes = Σ operands, FLOPs = elements of the largest.
    """
    for i in range(calls.row.shape[0]):
        _moe_aux(x, calls, work, i)


@njit
def _moe_aux(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    largest, moved, first = -1.0, 0.0, NONE
    for k in range(count(x, r)):
        if not is_tensor(x, r, k):
            continue
        why = unusable(x, r, k)
        if why != Why.KNOWN:
            work.why[i] = why
            return
        largest = max(largest, numel(x, r, k))
        moved += tensor_bytes(x, r, k)
        first = dtype(x, r, k) if first == NONE else first
    if largest < 0:
        work.why[i] = Why.NO_INPUTS if count(x, r) == 0 else Why.NO_SHAPE
        return
    work.flops[i] = largest
    work.bytes[i] = moved
    work.dtype[i] = first
    work.parameters[i, 0] = whole(largest)
    if math.isnan(moved):
        work.why[i] = Why.NO_TYPE


@njit
def moe_comm(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate sending tokens to the ranks of their experts, and back.

    Slots:  x (…, hidden).
    Units:  FLOPs, bytes.
    Needs:  shape and type of x.
    Cost:   O(dimensions) a call.
    Source: perf_models A12: FLOPs = 0, bytes = tokens·hidden·b.
    """
    for i in range(calls.row.shape[0]):
        _moe_comm(x, calls, work, i)


@njit
def _moe_comm(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a = calls.row[i], calls.slot[i, _X]
    work.flops[i] = 0.0
    if a == ABSENT:
        work.why[i] = Why.NO_FORMULA
        return
    why = unusable(x, r, a)
    if why == Why.KNOWN and rank(x, r, a) < 2:
        why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    hidden, elements = dim(x, r, a, -1), numel(x, r, a)
    work.bytes[i] = elements * BYTES[dtype(x, r, a)]
    work.dtype[i] = dtype(x, r, a)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    work.parameters[i, 0] = whole(elements / hidden if hidden > 0 else 0.0)
    work.parameters[i, 1] = hidden


_ALL: dict[str, int] = {}
_TOKENS = {"x": 0}
_UNSIZED: dict[str, int] = {}

MODELS = (
    Model(
        name="moe_aux",
        kernel=moe_aux,
        unit="vector",
        slots={},
        labels=("largest",),
        families={"moe_aux": None},
        ops={
            "_moe_C::moe_align_block_size": _ALL,
            "_moe_C::moe_permute": _ALL,
            "_moe_C::moe_sum": _ALL,
            "_moe_C::moe_unpermute": _ALL,
            "_moe_C::topk_softmax": _ALL,
            "aiter::biased_grouped_topk_hip": _ALL,
            "aiter::grouped_topk": _ALL,
            "aiter::moe_align_block_size": _ALL,
            "aiter::moe_sorting_fwd": _ALL,
            "aiter::moe_sorting_opus_fwd": _ALL,
            "aiter::moe_sum": _ALL,
            "aiter::topk_sigmoid": _ALL,
            "aiter::topk_softmax": _ALL,
            "aiter::topk_softmax_asm": _ALL,
            "sgl_kernel::moe_align_block_size": _ALL,
            "sgl_kernel::moe_sum_reduce": _ALL,
            "sgl_kernel::topk_softmax": _ALL,
        },
    ),
    Model(
        name="moe_comm",
        kernel=moe_comm,
        unit="",
        slots={"x": ABSENT},
        labels=("tokens", "hidden"),
        families={"moe_comm": None},
        ops={
            "MoECombine": _TOKENS,
            "MoECombineBackward": _TOKENS,
            "MoEDispatch": _TOKENS,
            "MoEDispatchBackward": _TOKENS,
            "deep_ep::combine": _UNSIZED,
            "deep_ep::dispatch": _UNSIZED,
            "deep_ep::low_latency_combine": _UNSIZED,
            "deep_ep::low_latency_dispatch": _UNSIZED,
        },
    ),
)
