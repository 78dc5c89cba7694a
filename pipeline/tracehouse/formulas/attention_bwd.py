"""Attention, backward: the gradients of q, k, v and of the bias.

FLOPs = 2·H_q·pairs·(2·d_v + 3·d_qk): dV, dP, then the scores again (none of these ops has kept
them), dQ and dK: 5/2 of the forward at d_qk = d_v. Shared key heads add (H_q - H_kv)·B·N_k·(d_qk +
d_v), the sum over the query heads. Source: perf_models A5.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.attention_call import (
    BIAS,
    BIAS_GRAD,
    DBIAS,
    DOUT,
    LABELS,
    LSE,
    SLOTS,
    Q,
    lse_bytes,
    out_type,
    read_bytes,
    read_sizes,
)
from tracehouse.formulas.attention_mask import read_seen
from tracehouse.formulas.dtypes import BF16, BYTES
from tracehouse.formulas.inputs import Inputs, dtype, is_tensor, item, items, number, tensor_bytes
from tracehouse.formulas.model import Calls, Model, Why, Work


@njit
def attention_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the backward of attention, from its own inputs or from those of the forward call.

    Slots:  those of attention_call.SLOTS; dout like the output, taken in its type where absent;
            bias_grad: whether the gradient of the bias is asked for.
    Units:  FLOPs, bytes: q, k, v, bias, dout, output and lse read, the gradients written.
    Needs:  as the forward does.
    Cost:   O(1) a call.
    Source: perf_models A5, C10, C13. The peer does not count output and lse, and sums the query
            heads of one key head only, B·N_k·(H_q/H_kv - 1)·(d_qk + d_v).
    """
    for i in range(calls.row.shape[0]):
        _attention_bwd(x, calls, work, i)


@njit
def _attention_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, q, dout = calls.row[i], calls.slot[i, Q], calls.slot[i, DOUT]
    sizes = read_sizes(x, calls, i)
    work.dtype[i] = dtype(x, r, q)
    if sizes.why != Why.KNOWN:
        work.why[i] = sizes.why
        return
    seen = read_seen(x, calls, work, i, sizes)
    if seen.why != Why.KNOWN:
        work.why[i] = seen.why
        return
    keys = sizes.batch * sizes.n_k * (sizes.d_qk + sizes.d_v)
    products = 2.0 * sizes.h_q * seen.pairs * (3.0 * sizes.d_qk + 2.0 * sizes.d_v)
    work.flops[i] = products + (sizes.h_q - sizes.h_kv) * keys
    bias_grad = _bias_grad(x, calls, i)
    if math.isnan(bias_grad):
        work.why[i] = Why.NO_VALUE
        return
    rows = sizes.batch * sizes.n_q * sizes.h_q
    out = rows * sizes.d_v * BYTES[out_type(x, calls, i)]
    read = read_bytes(x, calls, i, sizes, seen.share) + out
    read += tensor_bytes(x, r, dout) if is_tensor(x, r, dout) else out
    if calls.slot[i, LSE] != 0:
        read += lse_bytes(x, calls, i, sizes)
    gradients = (rows * sizes.d_qk + sizes.h_kv * keys) * _gradient_bytes(x, r, q)
    work.bytes[i] = read + gradients + bias_grad + tensor_bytes(x, r, calls.slot[i, DBIAS])
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


@njit
def _gradient_bytes(x: Inputs, r: int, q: int) -> float:
    """Return the bytes of an element of a gradient; it is unknown how wide that of 8 bits is."""
    size = float(BYTES[dtype(x, r, q)])
    return math.nan if size == 1 else size


@njit
def _bias_grad(x: Inputs, calls: Calls, i: int) -> float:
    """Return the bytes of the gradient of the bias; NaN if nothing says whether it is asked for."""
    r, bias, asked = calls.row[i], calls.slot[i, BIAS], calls.slot[i, BIAS_GRAD]
    if not is_tensor(x, r, bias):
        return 0.0
    flag = item(x, r, asked, -1) if items(x, r, asked) > 0 else number(x, r, asked)
    return 0.0 if flag == 0 else flag * tensor_bytes(x, r, bias)


_ATEN = {"dout": 0, "q": 1, "k": 2, "v": 3, "heads_first": 1, "top_left": 1}
_DENSE = {"dout": 0, "q": 1, "k": 2, "v": 3}
_AITER = {**_DENSE, "causal": 8, "window_left": 9, "window_right": 10}
_FA3 = {
    **_DENSE,
    **{"out_of_8_bits": BF16, "causal": 16, "window_left": 17, "window_right": 18},
}

MODELS = (
    Model(
        name="attention_bwd",
        kernel=attention_bwd,
        unit="matrix",
        slots=SLOTS,
        labels=LABELS,
        families={
            "sdpa_aten_bwd": None,
            "sdpa_leaf_bwd": None,
            "sdpa_flash_bwd": None,
            "sdpa_varlen_bwd": None,
            "sdpa_fa3_bwd": None,
            "sdpa_aiter_bwd": _AITER,
            "sdpa_aiter_wrap_bwd": {
                **{"dout": 1, "q": 2, "k": 3, "v": 4, "causal": 9},
                **{"window_left": 10, "window_right": 11},
            },
            "sdpa_evoformer_bwd": None,
        },
        ops={
            "aten::_scaled_dot_product_flash_attention_backward": {
                **_DENSE,
                **{"heads_first": 1, "causal": 11, "odd": 6, "odd_end": 7},
            },
            "aten::_scaled_dot_product_efficient_attention_backward": {
                **_ATEN,
                **{"bias": 4, "bias_grad": 10, "causal": 11},
            },
            "aten::_scaled_dot_product_cudnn_attention_backward": {
                **_ATEN,
                **{"other_bias": 8, "causal": 14, "odd": 9, "odd_end": 10},
            },
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward": {
                **_ATEN,
                **{"causal": 7, "other_bias": 8},
            },
            "aten::_scaled_dot_product_fused_attention_overrideable_backward": {
                **_ATEN,
                **{"bias": 4, "bias_grad": 5, "causal": 13, "odd": 8, "odd_end": 9},
            },
            "aten::_flash_attention_backward": {
                **_DENSE,
                **{"cu_q": 6, "cu_k": 7, "max_q": 8, "max_k": 9, "causal": 11},
                **{"window_left": 15, "window_right": 16},
            },
            "aten::_efficient_attention_backward": {
                **_DENSE,
                **{"bias": 4, "cu_q": 6, "cu_k": 7, "max_q": 8, "max_k": 9, "mask_type": 14},
                **{"bias_grad": 15, "odd_number": 18},
            },
            "aten::_cudnn_attention_backward": {
                **_ATEN,
                **{"other_bias": 8, "causal": 14, "odd": 9, "odd_end": 10},
            },
            "flash_attn::_flash_attn_backward": {
                **_DENSE,
                **{"causal": 11, "window_left": 12, "window_right": 13, "other_bias": 15},
            },
            "flash_attn::_flash_attn_varlen_backward": {
                **_DENSE,
                **{"cu_q": 9, "cu_k": 10, "max_q": 11, "max_k": 12, "causal": 15},
                **{"window_left": 16, "window_right": 17, "other_bias": 19},
            },
            "aiter::_flash_attn_backward": {
                **_DENSE,
                **{"dbias": 9, "other_bias": 15, "causal": 12},
                **{"window_left": 13, "window_right": 14},
            },
            "aiter::mha_varlen_bwd": {
                **_DENSE,
                **{"cu_q": 6, "cu_k": 7, "max_q": 8, "max_k": 9, "causal": 13},
                **{"window_left": 14, "window_right": 15},
            },
            "aiter::fmha_v3_varlen_bwd": {
                **_DENSE,
                **{"cu_q": 6, "cu_k": 7, "max_q": 8, "max_k": 9, "causal": 13},
                **{"window_left": 14, "window_right": 15},
            },
            "flash_attn_3::bwd": {
                **_FA3,
                **{"cu_q": 9, "cu_k": 10, "max_q": 13, "max_k": 14, "odd": 11, "odd_end": 12},
            },
            "flash_attn_3::_flash_attn_backward": {
                **_FA3,
                **{"cu_q": 6, "cu_k": 7, "max_q": 10, "max_k": 11, "odd": 8, "odd_end": 9},
            },
        },
    ),
)
