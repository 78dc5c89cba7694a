"""Attention of serving engines, whose lengths are those of the step, and writes to the KV cache.

An op's tensors are padded and say nothing of the keys in the cache: heads and widths are inputs,
lengths are sums over the requests of the step. FLOPs = H_q·(d_qk + d_v)·(2·c_sqsk - c_sqsq +
2·g_sqsk): causal inside a chunk, by half on the diagonal as in attention_mask, full against what
came before. Source: perf_models A6, inference §6.
"""

from __future__ import annotations

import math

from numba import njit

from tracehouse.formulas.dtypes import BYTES, VALUES
from tracehouse.formulas.inputs import (
    AN_INT,
    Inputs,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

C_SQ, C_SK, C_SQSQ, C_SQSK, G_SQ, G_SK, G_SQSQ, G_SQSK = range(8)
_LENGTHS = ("c_sq", "c_sk", "c_sqsq", "c_sqsk", "g_sq", "g_sk", "g_sqsq", "g_sqsk")
_LARGEST = 2.0**62

_Q, _K, _V, _HEADS, _WINDOW, _DECODES, _SOME, _MORE = range(8)


@njit(cache=True, nogil=True)
def serving_attention(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate attention over the KV cache.

    Slots:  q (tokens, H_q, d_qk); k (…, H_kv, d_qk), new keys or the cache; v (…, d_v), like k
            where absent; heads: the dimension of k that is H_kv; window: keys that a generated
            token sees; decodes: 1 if the op does generation only; pairs, more_pairs: indices with
            one element a pair, which stand in for the step's lengths.
    Units:  FLOPs, bytes: current tokens in the type of q, cached ones in that of k.
    Needs:  the lengths of the step, or the pairs.
    Cost:   O(1) a call.
    Source: perf_models A6, C12. A window caps the sums of the generation at g_sq·window, an upper
            bound where some requests are shorter.
    """
    for i in range(calls.row.shape[0]):
        _serving_attention(x, calls, work, i)


@njit(cache=True, nogil=True)
def _serving_attention(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, slot = calls.row[i], calls.slot[i]
    q, k, v = slot[_Q], slot[_K], slot[_V]
    work.dtype[i] = dtype(x, r, q)
    if rank(x, r, q) < 0 or rank(x, r, k) < 0:
        work.why[i] = Why.NO_SHAPE
        return
    if rank(x, r, q) != 3 or rank(x, r, k) < 2 + (slot[_HEADS] != -2):
        work.why[i] = Why.MISFIT
        return
    h_q, d_qk = float(dim(x, r, q, 1)), float(dim(x, r, q, 2) * VALUES[dtype(x, r, q)])
    by_pairs = slot[_SOME] >= 0
    h_kv = 1.0 if by_pairs else float(dim(x, r, k, slot[_HEADS]))
    d_v = float(dim(x, r, v, -1)) if rank(x, r, v) > 0 else d_qk
    if h_q < 0 or d_qk < 0 or d_v < 0 or h_kv <= 0 or h_q % h_kv != 0:
        work.why[i] = Why.MISFIT
        return
    parameters = work.parameters[i]
    parameters[0] = dim(x, r, q, 0)
    parameters[1], parameters[2] = int(h_q), int(h_kv)
    parameters[3], parameters[4] = int(d_qk), int(d_v)
    width = d_qk + d_v
    here, there = BYTES[dtype(x, r, q)], BYTES[dtype(x, r, k)]
    if by_pairs:
        pairs = numel(x, r, slot[_SOME]) + numel(x, r, slot[_MORE])
        if math.isnan(pairs):
            work.why[i] = Why.NO_SHAPE
            return
        work.flops[i] = pairs * h_q * 2.0 * width
        work.bytes[i] = dim(x, r, q, 0) * h_q * width * here + pairs * d_qk * there
    else:
        sums = calls.lengths[i].copy()
        if slot[_DECODES] == 1:
            sums[:G_SQ] = 0.0
        window = number(x, r, slot[_WINDOW])
        if kind(x, r, slot[_WINDOW]) == AN_INT and window > 0:
            parameters[5] = int(min(window, _LARGEST))
            sums[G_SK] = min(sums[G_SK], sums[G_SQ] * window)
            sums[G_SQSK] = min(sums[G_SQSK], sums[G_SQ] * window)
        for at in range(8):
            if 0 <= sums[at] < _LARGEST:
                parameters[6 + at] = int(sums[at])
        work.flops[i] = h_q * width * (2.0 * sums[C_SQSK] - sums[C_SQSQ] + 2.0 * sums[G_SQSK])
        tokens = sums[C_SQ] + sums[G_SQ]
        cached = sums[C_SK] + sums[G_SK] - tokens
        work.bytes[i] = tokens * (h_q + h_kv) * width * here + cached * h_kv * width * there
        if math.isnan(work.flops[i]) or math.isnan(tokens + cached):
            work.why[i] = Why.NO_LENGTHS
            return
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


@njit(cache=True, nogil=True)
def linear_attention(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate gated delta networks: a state of d_v × d_k a head, decayed, updated and queried.

    Slots:  qkv (tokens, 2·H_k·d_k + H_v·d_v); gate (tokens, H_v); out (tokens, H_v, d_v).
    Units:  FLOPs = tokens·H_v·7·d_v·d_k; bytes of q, k, v, the two gates and the output.
    Needs:  the tokens of the step; H_k = H_v / 2, which gives d_k.
    Cost:   O(1) a call.
    Source: perf_models A6; the state is not counted.
    """
    for i in range(calls.row.shape[0]):
        _linear_attention(x, calls, work, i)


@njit(cache=True, nogil=True)
def _linear_attention(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    qkv, gate, out = calls.slot[i, 0], calls.slot[i, 1], calls.slot[i, 2]
    work.dtype[i] = dtype(x, r, qkv)
    if rank(x, r, qkv) < 0 or rank(x, r, gate) < 0 or rank(x, r, out) < 0:
        work.why[i] = Why.NO_SHAPE
        return
    if rank(x, r, qkv) != 2 or rank(x, r, gate) != 2 or rank(x, r, out) != 3:
        work.why[i] = Why.MISFIT
        return
    h_v, d_v, wide = dim(x, r, gate, 1), dim(x, r, out, 2), dim(x, r, qkv, 1)
    keys = wide - h_v * d_v  # 2·H_k·d_k, that is H_v·d_k
    if h_v <= 0 or d_v < 0 or keys < 0 or keys % h_v != 0 or dim(x, r, out, 1) != h_v:
        work.why[i] = Why.MISFIT
        return
    work.parameters[i, 0], work.parameters[i, 1] = dim(x, r, qkv, 0), h_v
    work.parameters[i, 2], work.parameters[i, 3] = keys // h_v, d_v
    tokens = calls.lengths[i, C_SQ] + calls.lengths[i, G_SQ]
    work.flops[i] = tokens * 7.0 * d_v * keys
    work.bytes[i] = tokens * h_v * (keys // h_v + 2.0 * d_v + 2.0) * BYTES[dtype(x, r, qkv)]
    if math.isnan(tokens):
        work.why[i] = Why.NO_LENGTHS
    elif math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    elif tokens < _LARGEST:
        work.parameters[i, 4] = int(tokens)


@njit(cache=True, nogil=True)
def kv_cache(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate writes of new keys and values to their places in the KV cache.

    Slots:  a, b: what is written, (tokens, …); cache_a, cache_b: where to; places: index of a
            token's place; joined: 1 if a and b lie side by side in the cache's last dimension.
    Units:  no FLOPs; bytes read, and written in the type of the cache.
    Needs:  nothing.
    Cost:   O(1) a call.
    Source: perf_models A6. Tokens beyond the places are padding; padding among the places is not
            known. The places of `sglang::store_cache` are not counted, as in the reference.
    """
    for i in range(calls.row.shape[0]):
        _kv_cache(x, calls, work, i)


@njit(cache=True, nogil=True)
def _kv_cache(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, slot = calls.row[i], calls.slot[i]
    a, b, cache_a, cache_b, places = slot[0], slot[1], slot[2], slot[3], slot[4]
    work.dtype[i] = dtype(x, r, a)
    if rank(x, r, a) < 1 or rank(x, r, b) < 1:
        work.why[i] = Why.NO_SHAPE
        return
    tokens = dim(x, r, a, 0)
    if tokens < 0 or tokens != dim(x, r, b, 0):
        work.why[i] = Why.MISFIT
        return
    if rank(x, r, cache_a) < 2 or rank(x, r, cache_b) < 2:
        work.why[i] = Why.MISFIT
        return
    if slot[5] == 1 and dim(x, r, cache_a, -1) != dim(x, r, a, -1) + dim(x, r, b, -1):
        work.why[i] = Why.NO_FORMULA  # entries are quantised blocks with their scales
        return
    share = 1.0
    if is_tensor(x, r, places) and dim(x, r, places, 0) < tokens:
        share = dim(x, r, places, 0) / tokens
    read = (tensor_bytes(x, r, a) + tensor_bytes(x, r, b)) * share + tensor_bytes(x, r, places)
    written = numel(x, r, a) * BYTES[dtype(x, r, cache_a)]
    written += numel(x, r, b) * BYTES[dtype(x, r, cache_b)]
    work.flops[i] = 0.0
    work.bytes[i] = read + written * share
    work.parameters[i, 0] = int(tokens * share)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


_ATTENTION = {"q": 0, "k": 1, "v": 2}
_WRITE = {"a": 0, "b": 1, "cache_a": 2, "cache_b": 3, "places": 4}
_WRITE_JOINED = {"a": 0, "b": 1, "cache_a": 2, "cache_b": 2, "places": 3, "joined": 1}
_LINEAR = {"qkv": 0, "gate": 1, "out": 3}

MODELS = (
    Model(
        name="serving_attention",
        kernel=serving_attention,
        unit="matrix",
        slots={
            "q": ABSENT,
            "k": ABSENT,
            "v": ABSENT,
            "heads": -2,
            "window": ABSENT,
            "decodes": 0,
            "pairs": ABSENT,
            "more_pairs": ABSENT,
        },
        labels=("N_q", "H_q", "H_kv", "d_qk", "d_v", "window", *_LENGTHS),
        families={"infer_attention": None},
        ops={
            "vllm::unified_attention": _ATTENTION,
            "vllm::unified_attention_with_output": _ATTENTION,
            "aiter::mha_varlen_fwd": _ATTENTION,
            "aiter::fmha_v3_varlen_fwd": _ATTENTION,
            "aiter::mha_batch_prefill": _ATTENTION,
            "pseudo_mla_prefill_fwd": _ATTENTION,
            "sglang_profiler::attention_paged_attention_ragged": {"q": 2, "k": 3, "v": 4},
            "aiter::pa_decode_gluon": {"q": 0, "k": 2, "heads": 1, "window": 19, "decodes": 1},
            "aiter::pa_sparse_prefill_opus_fwd": {"q": 0, "k": 1, "pairs": 2, "more_pairs": 5},
        },
    ),
    Model(
        name="linear_attention",
        kernel=linear_attention,
        unit="matrix",
        slots={"qkv": ABSENT, "gate": ABSENT, "out": ABSENT},
        labels=("N_q", "H_v", "d_k", "d_v", "tokens"),
        families={"infer_linear_attention": None},
        ops={
            "vllm::gdn_attention_core": _LINEAR,
            "aiter::linear_attention_with_output_base": _LINEAR,
        },
    ),
    Model(
        name="kv_cache",
        kernel=kv_cache,
        unit="",
        slots={
            "a": ABSENT,
            "b": ABSENT,
            "cache_a": ABSENT,
            "cache_b": ABSENT,
            "places": ABSENT,
            "joined": 0,
        },
        labels=("tokens",),
        families={"kv_cache": None},
        ops={
            "sglang::store_cache": {"a": 0, "b": 1, "cache_a": 2, "cache_b": 3},
            "_C_cache_ops::reshape_and_cache": _WRITE,
            "_C_cache_ops::reshape_and_cache_flash": _WRITE,
            "aiter::reshape_and_cache": _WRITE,
            "aiter::reshape_and_cache_flash": _WRITE,
            "_C_cache_ops::concat_and_cache_mla": _WRITE_JOINED,
            "aiter::concat_and_cache_mla": _WRITE_JOINED,
        },
    ),
)
