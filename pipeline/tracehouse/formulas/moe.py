"""Mixtures of experts: both matrix products of the chosen experts in one op, or each in its own.

T tokens of K values go to k of E experts with N inner values; g = 1 with a gate. A uniform choice
touches E·(1 − ((E − k)/E)^T) experts, and only their weights are read. Source: perf_models A12.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.copy import stored, unusable, whole
from tracehouse.formulas.dtypes import BYTES, VALUES
from tracehouse.formulas.inputs import Inputs, dim, dtype, number, numel, rank
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_LABELS = ("T", "K", "N", "E", "k", "gated")
_X, _UP, _DOWN, _OUT, _TOPK, _CHOSEN = range(6)
_U_X, _U_W, _U_OUT, _U_TOPK, _U_CHOSEN, _U_IS_DOWN = range(6)


@njit
def active(experts: float, k: float, tokens: float) -> float:
    """Return how many experts are touched when each token chooses k of them at random.

    Source: perf_models A12.
    """
    return experts * (1.0 - ((experts - k) / experts) ** tokens)


@njit
def moe_fused(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate ops that do both products, the activation and the weighted sum.

    Slots:  x (T, K); up (E, (1 + g)·N, K); down (E, K, N); out (T, K), of x's type if ABSENT;
            topk: position of k, or chosen: a tensor (T, k).
    Units:  FLOPs, bytes.
    Needs:  shapes and types. Weights of which several values share an element are shorter in their
            last dimension; how many is told by K.
    Cost:   O(1) a call.
    Source: perf_models A12: FLOPs = 2TKNk·(1 + g) + 2TKNk + TK(2k − 1); bytes = x, the weights of
            the touched experts, out. The precision is that of the weights.
    """
    for i in range(calls.row.shape[0]):
        _moe_fused(x, calls, work, i)


@njit
def _moe_fused(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a, out = calls.row[i], calls.slot[i, _X], calls.slot[i, _OUT]
    up, down = calls.slot[i, _UP], calls.slot[i, _DOWN]
    why = unusable(x, r, a)
    if why == Why.KNOWN:
        why = unusable(x, r, up)
    if why == Why.KNOWN:
        why = unusable(x, r, down)
    if why == Why.KNOWN and out != ABSENT:
        why = unusable(x, r, out)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    if rank(x, r, a) != 2 or rank(x, r, up) != 3 or rank(x, r, down) != 3:
        work.why[i] = Why.MISFIT
        return
    tokens, width = float(dim(x, r, a, 0)), float(dim(x, r, a, 1) * VALUES[dtype(x, r, a)])
    experts, packed = float(dim(x, r, up, 0)), values_in(x, r, up, width)
    inner = dim(x, r, down, 2) * packed
    k, why = chosen(x, r, calls.slot[i, _TOPK], calls.slot[i, _CHOSEN], experts, tokens)
    gates = dim(x, r, up, 1) / inner - 1.0 if inner > 0 else math.nan
    if dim(x, r, down, 0) != experts or dim(x, r, down, 1) != width or gates not in (0.0, 1.0):
        why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    product = 2.0 * tokens * width * inner * k
    work.flops[i] = product * (2.0 + gates) + tokens * width * (2.0 * k - 1.0)
    touched = active(experts, k, tokens) / experts
    moved = stored(x, r, a) + touched * (stored(x, r, up) + stored(x, r, down))
    written = BYTES[dtype(x, r, a)] if out == ABSENT else BYTES[dtype(x, r, out)]
    work.bytes[i] = moved + tokens * width * written
    _describe(work, i, dtype(x, r, up), tokens, width, inner, experts, k, gates)


@njit
def _describe(
    work: Work,
    i: int,
    code: int,
    tokens: float,
    width: float,
    inner: float,
    experts: float,
    k: float,
    gates: float,
) -> None:
    work.dtype[i] = code
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    for label, value in enumerate((tokens, width, inner, experts, k, gates)):
        work.parameters[i, label] = whole(value)


@njit
def values_in(x: Inputs, r: int, w: int, width: float) -> float:
    """Return how many values an element of weights w holds if its last dimension is width values.

    NaN if that is no whole number.
    """
    size = dim(x, r, w, -1)
    packed = width / size if size > 0 else math.nan
    return packed if packed == np.floor(packed) and packed >= 1 else math.nan


@njit
def chosen(
    x: Inputs, r: int, topk: int, choice: int, experts: float, tokens: float
) -> tuple[float, int]:
    """Return how many experts a token goes to, and why that is not known."""
    k = number(x, r, topk)
    if choice != ABSENT:
        why = unusable(x, r, choice)
        if why != Why.KNOWN:
            return math.nan, why
        if rank(x, r, choice) != 2 or dim(x, r, choice, 0) != tokens:
            return math.nan, Why.MISFIT
        k = float(dim(x, r, choice, 1))
    if math.isnan(k):
        return math.nan, Why.NO_VALUE
    return k, Why.KNOWN if k >= 1 and k <= experts else Why.MISFIT


@njit
def moe_unfused(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate ops that do one of the two products.

    Slots:  x (T, K) up, (T, k, N) down; w (E, (1 + g)·N, K) up, (E, K, N) down; out; topk: position
            of k; is_down: 1 for the second product; chosen: a tensor (T, k), then x is read once
            for each choice.
    Units:  FLOPs, bytes.
    Needs:  shapes and types; weights packed as for moe_fused.
    Cost:   O(1) a call.
    Source: perf_models A12: 2·T·k·∏w[1:] FLOPs; bytes = x, the weights of the touched experts, out.
            N comes from the shapes, where the peer takes it to be K. The precision is that of the
            weights.
    """
    for i in range(calls.row.shape[0]):
        _moe_unfused(x, calls, work, i)


@njit
def _moe_unfused(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a = calls.row[i], calls.slot[i, _U_X]
    w, out, choice = calls.slot[i, _U_W], calls.slot[i, _U_OUT], calls.slot[i, _U_CHOSEN]
    why = unusable(x, r, a)
    if why == Why.KNOWN:
        why = unusable(x, r, w)
    if why == Why.KNOWN:
        why = unusable(x, r, out)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    if rank(x, r, a) < 2 or rank(x, r, w) != 3:
        work.why[i] = Why.MISFIT
        return
    depth = float(dim(x, r, a, -1) * VALUES[dtype(x, r, a)])
    rows = numel(x, r, a) * VALUES[dtype(x, r, a)] / depth if depth > 0 else math.nan
    experts, packed = float(dim(x, r, w, 0)), values_in(x, r, w, depth)
    is_down = calls.slot[i, _U_IS_DOWN] == 1
    tokens = float(dim(x, r, choice, 0)) if choice != ABSENT else rows
    k, why = chosen(x, r, calls.slot[i, _U_TOPK], choice, experts, tokens)
    if why == Why.KNOWN and is_down:
        tokens = rows / k
    if why == Why.KNOWN and (math.isnan(packed) or tokens != np.floor(tokens)):
        why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    width = float(dim(x, r, w, 1))
    work.flops[i] = 2.0 * tokens * k * depth * width
    read = stored(x, r, a) if choice == ABSENT else tokens * k * depth * BYTES[dtype(x, r, a)]
    touched = active(experts, k, tokens) / experts
    work.bytes[i] = read + touched * stored(x, r, w) + stored(x, r, out)
    inner = depth if is_down else float(dim(x, r, out, -1))
    gates = 0.0 if is_down or inner <= 0 else width / inner - 1.0
    _describe(
        work, i, dtype(x, r, w), tokens, width if is_down else depth, inner, experts, k, gates
    )


_EXPERTS = {"x": 0, "up": 1, "down": 2, "chosen": 3}
_FMOE = {"out": 0, "x": 1, "up": 2, "down": 3, "topk": 8}

MODELS = (
    Model(
        name="moe_fused",
        kernel=moe_fused,
        unit="matrix",
        slots={
            "x": ABSENT,
            "up": ABSENT,
            "down": ABSENT,
            "out": ABSENT,
            "topk": ABSENT,
            "chosen": ABSENT,
        },
        labels=_LABELS,
        families={"moe_fused": None},
        ops={
            "aiter::fmoe": _FMOE,
            "aiter::fmoe_fp8_blockscale_g1u1": _FMOE,
            "aiter::fmoe_g1u1": _FMOE,
            "aiter::fmoe_g1u1_tkw1": _FMOE,
            "aiter::fmoe_int8_g1u0": _FMOE,
            "aiter::fused_moe_": _EXPERTS,
            "pseudo_op::moe_aiter_fused_1stage": _EXPERTS,
            "sglang::inplace_fused_experts": _EXPERTS,
            "sglang::outplace_fused_experts": _EXPERTS,
            "vllm::inplace_fused_experts": _EXPERTS,
            "vllm::outplace_fused_experts": _EXPERTS,
            "vllm::rocm_aiter_asm_moe_tkw1": _EXPERTS,
            "vllm::rocm_aiter_fused_moe": _EXPERTS,
        },
    ),
    Model(
        name="moe_unfused",
        kernel=moe_unfused,
        unit="matrix",
        slots={
            "x": ABSENT,
            "w": ABSENT,
            "out": ABSENT,
            "topk": ABSENT,
            "chosen": ABSENT,
            "is_down": 0,
        },
        labels=_LABELS,
        families={"moe_unfused": None},
        ops={
            "aiter::ck_moe_stage1": {"x": 0, "w": 1, "out": 6, "topk": 7},
            "aiter::ck_moe_stage2": {"x": 0, "w": 2, "out": 6, "topk": 7, "is_down": 1},
            "aiter::moe_cktile2stages_gemm1_ck": {"x": 0, "w": 1, "out": 2, "topk": 6},
            "aiter::moe_cktile2stages_gemm2_ck": {
                "x": 0,
                "w": 1,
                "out": 2,
                "topk": 6,
                "is_down": 1,
            },
            "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel": {
                "x": 0,
                "w": 1,
                "out": 3,
                "chosen": 8,
            },
        },
    ),
)
