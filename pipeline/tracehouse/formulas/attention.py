"""Attention, forward: softmax(q·kᵀ + bias)·v.

FLOPs = 2·H_q·pairs·(d_qk + d_v), pairs over all batches (see attention_mask); the softmax and the
dropout are not counted. Bytes = q, k, v, biases read, output and row sums (lse) written.
Source: perf_models A5.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.attention_call import (
    LABELS,
    LSE,
    LSE_FLAG,
    SLOTS,
    Q,
    flag_from,
    lse_bytes,
    out_type,
    read_bytes,
    read_sizes,
    returns_p,
)
from tracehouse.formulas.attention_mask import read_seen
from tracehouse.formulas.dtypes import BF16, BYTES
from tracehouse.formulas.inputs import Inputs, dtype, number
from tracehouse.formulas.model import Calls, Model, Why, Work


@njit
def attention(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate attention.

    Slots:  those of attention_call.SLOTS: q (B, N_q, H_q, d_qk), k (B, N_k, H_kv, d_qk), v (B, N_k,
            H_kv, d_v), other layouts by heads_first, dims and parts; (T, H, d) with cu_q and cu_k;
            bias; causal or mask_type; windows.
    Units:  FLOPs, bytes.
    Needs:  H_q a multiple of H_kv; the value of the causal flag, where the op has one.
    Cost:   O(1) a call.
    Source: perf_models A5, C11-C14. Beyond the peer, each tensor counts by its own type, bias and
            lse count, and windows and N_q ≠ N_k are masked; seeds of the dropout are not counted.
    """
    for i in range(calls.row.shape[0]):
        _attention(x, calls, work, i)


@njit
def _attention(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    sizes = read_sizes(x, calls, i)
    work.dtype[i] = dtype(x, calls.row[i], calls.slot[i, Q])
    if sizes.why != Why.KNOWN:
        work.why[i] = sizes.why
        return
    seen = read_seen(x, calls, work, i, sizes)
    if seen.why != Why.KNOWN:
        work.why[i] = seen.why
        return
    work.flops[i] = 2.0 * sizes.h_q * seen.pairs * (sizes.d_qk + sizes.d_v)
    lse = _writes_lse(x, calls, i)
    if math.isnan(lse):
        work.why[i] = Why.NO_VALUE
        return
    if returns_p(x, calls, i):
        work.why[i] = Why.NO_FORMULA
        return
    written = sizes.batch * sizes.n_q * sizes.h_q * sizes.d_v * BYTES[out_type(x, calls, i)]
    if lse == 1:
        written += lse_bytes(x, calls, i, sizes)
    work.bytes[i] = read_bytes(x, calls, i, sizes, seen.share) + written
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


@njit
def _writes_lse(x: Inputs, calls: Calls, i: int) -> float:
    r, lse, flag = calls.row[i], calls.slot[i, LSE], calls.slot[i, LSE_FLAG]
    if lse < 2:
        return float(lse)
    return number(x, r, flag) if lse == 2 else flag_from(x, r, flag)


_QKV = {"q": 0, "k": 1, "v": 2}
_ATEN = {**_QKV, "heads_first": 1, "top_left": 1}
_WITH_BIAS = {**_ATEN, "bias": 3, "lse": 2, "lse_flag": 4, "dropout": 5, "causal": 6}
_FLASH = {
    **_QKV,
    **{"dropout": 3, "causal": 5, "window_left": 6, "window_right": 7},
    **{"other_bias": 9, "returns_p": 10},
}
_FUNCTION = {**_QKV, "dropout": 3, "causal": 5, "window": 6}
_PACKED = {**_QKV, "cu_q": 3, "cu_k": 4, "max_q": 5, "max_k": 6, "dropout": 7, "causal": 9}
_AITER = {**_QKV, "dropout": 3, "causal": 5, "window_left": 6, "window_right": 7, "extra": 8}
_AITER |= {"lse": 3, "lse_flag": 8}
_FA3 = {
    **_QKV,
    **{"out": 6, "out_of_8_bits": BF16, "cu_q": 7, "cu_k": 8, "max_q": 12, "max_k": 13},
    **{"causal": 24, "window_left": 25, "window_right": 26},
    **{"odd": 3, "odd_end": 19, "odd_number": 27},
}

MODELS = (
    Model(
        name="attention",
        kernel=attention,
        unit="matrix",
        slots=SLOTS,
        labels=LABELS,
        families={
            "sdpa_aten": None,
            "sdpa_leaf": None,
            "sdpa_flash": _FUNCTION,
            "sdpa_varlen": {**_PACKED, "window": 10},
            "sdpa_fa3": _FA3,
            "sdpa_aiter": _AITER,
            "sdpa_aiter_wrap": {
                **{"q": 1, "k": 2, "v": 3, "dropout": 4, "causal": 6, "window_left": 7},
                **{"window_right": 8, "extra": 9, "lse": 3, "lse_flag": 9},
            },
            "sdpa_evoformer": {**_QKV, "dims": 5, "bias": 4, "other_bias": 3, "lse": 0},
            "sdpa_sage": None,
            "sdpa_te": None,
        },
        ops={
            "aten::_scaled_dot_product_flash_attention": {
                **_QKV,
                **{"heads_first": 1, "dropout": 3, "causal": 4, "returns_p": 5},
            },
            "aten::_scaled_dot_product_efficient_attention": _WITH_BIAS,
            "aten::_scaled_dot_product_cudnn_attention": {**_WITH_BIAS, "returns_p": 7},
            "aten::_scaled_dot_product_flash_attention_for_cpu": {
                **_ATEN,
                **{"dropout": 3, "causal": 4, "bias": 5},
            },
            "aten::_scaled_dot_product_fused_attention_overrideable": {
                **_ATEN,
                **{"bias": 3, "dropout": 4, "causal": 5, "returns_p": 6},
            },
            "aten::_flash_attention_forward": {
                **_QKV,
                **{"cu_q": 3, "cu_k": 4, "max_q": 5, "max_k": 6, "dropout": 7, "causal": 8},
                **{"returns_p": 9, "window_left": 11, "window_right": 12, "other_bias": 14},
                **{"odd": 13, "odd_end": 13},
            },
            "aten::_efficient_attention_forward": {
                **_QKV,
                **{"bias": 3, "cu_q": 4, "cu_k": 5, "max_q": 6, "max_k": 7, "dropout": 8},
                **{"mask_type": 9, "lse": 2, "lse_flag": 10, "odd": 12, "odd_end": 12},
                "odd_number": 13,
            },
            "aten::_cudnn_attention_forward": {
                **_ATEN,
                **{"bias": 3, "lse": 2, "lse_flag": 8, "dropout": 9, "causal": 10},
                **{"returns_p": 11, "odd": 4, "odd_end": 5},
            },
            "flash_attn::_flash_attn_forward": _FLASH,
            "flash_attn::_flash_attn_varlen_forward": {
                **_PACKED,
                **{"window_left": 10, "window_right": 11, "other_bias": 13, "returns_p": 14},
                **{"odd": 15, "odd_end": 17},
            },
            "FlashAttnQKVPackedFunc": {
                **{"q": 0, "parts": 3, "dropout": 1, "causal": 3, "window": 4},
            },
            "FlashAttnKVPackedFunc": {
                **{"q": 0, "k": 1, "parts": 2, "dropout": 2, "causal": 4, "window": 5},
            },
        },
    ),
)
