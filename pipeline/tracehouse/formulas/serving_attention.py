"""Attention of serving engines, and writes to the KV cache: what their inputs say.

An op's tensors are padded and say nothing of the keys in the cache. Heads, widths and types are
inputs; the lengths are sums over the requests of the step, and `step_work` joins the two: what
reads them has no FLOPs here, but the parameters that it needs. Source: perf_models A6.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
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

CONTEXT, GENERATION = 1, 2  # the requests of the step that a call is for; without, all
_LARGEST = 2.0**62
_MLA_KEYS, _MLA_VALUES = 576, 512  # DeepSeek's latent: 512 for both, and 64 of position in the key

_Q, _Q_REST, _K, _V, _HEADS, _WINDOW, _LEFT, _PART, _CACHED, _SHARED, _SOME, _MORE = range(12)
_N_Q, _H_Q, _H_KV, _D_QK, _D_V, _WIDE, _Q_BITS, _K_BITS, _KV_BITS, _ONE, _OF = range(11)


@njit
def serving_attention(x: Inputs, calls: Calls, work: Work) -> None:
    """Read heads, widths and types of attention over the KV cache.

    Slots:  q (…, H_q, d_qk); q_rest: more of its width, in a tensor of its own; k (…, H_kv, d_qk),
            new keys or the cache; v (…, d_v), like k where absent; heads: the dimension of k that
            is H_kv; window: keys that a token sees; left: keys before its own that it sees; part:
            CONTEXT or GENERATION where the op is for these only; cached: 1 if k is the cache, which
            it is too if of 4 dimensions; shared: 1 if the values are the first d_v columns of the
            keys; pairs, more_pairs: indices with one element a pair of a query and a key.
    Units:  FLOPs, bytes: by the pairs, if it has such; else of the step (step_work).
    Needs:  nothing.
    Cost:   O(1) a call.
    Source: perf_models A6.
    """
    for i in range(calls.row.shape[0]):
        _serving_attention(x, calls, work, i)


@njit
def _serving_attention(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, slot = calls.row[i], calls.slot[i]
    q, k, v = slot[_Q], slot[_K], slot[_V]
    work.dtype[i] = dtype(x, r, q)
    if rank(x, r, q) < 0 or rank(x, r, k) < 0:
        work.why[i] = Why.NO_SHAPE
        return
    if rank(x, r, q) == 2:
        work.why[i] = Why.NO_HEADS  # side by side in one dimension
        work.parameters[i, _N_Q] = dim(x, r, q, 0)
        return
    by_pairs, is_shared = slot[_SOME] >= 0, slot[_SHARED] == 1
    if rank(x, r, q) < 3 or rank(x, r, k) < 2 + (slot[_HEADS] >= 0):
        work.why[i] = Why.MISFIT
        return
    h_q, d_qk = dim(x, r, q, -2), dim(x, r, q, -1) * VALUES[dtype(x, r, q)]
    if is_tensor(x, r, slot[_Q_REST]):
        d_qk += dim(x, r, slot[_Q_REST], -1)
    h_kv = 1 if by_pairs or is_shared else dim(x, r, k, slot[_HEADS])
    d_v = dim(x, r, v, -1) * VALUES[dtype(x, r, v)] if rank(x, r, v) > 0 else d_qk
    if is_shared and rank(x, r, v) <= 0:
        d_v = _MLA_VALUES if d_qk == _MLA_KEYS else -1
    if h_q < 0 or d_qk < 0 or d_v < 0 or h_kv <= 0 or h_q % h_kv != 0:
        work.why[i] = Why.MISFIT
        return
    parameters = work.parameters[i]
    queries = numel(x, r, q) / max(h_q * dim(x, r, q, -1), 1)
    if queries < _LARGEST:
        parameters[_N_Q] = int(queries)
    parameters[_H_Q], parameters[_H_KV] = h_q, h_kv
    parameters[_D_QK], parameters[_D_V] = d_qk, d_v
    here = BYTES[dtype(x, r, q)] / VALUES[dtype(x, r, q)]
    there = BYTES[dtype(x, r, k)] / VALUES[dtype(x, r, k)]
    if by_pairs:
        pairs = numel(x, r, slot[_SOME]) + numel(x, r, slot[_MORE])
        if math.isnan(pairs):
            work.why[i] = Why.NO_SHAPE
            return
        work.flops[i] = pairs * h_q * 2.0 * (d_qk + d_v)
        work.bytes[i] = queries * h_q * (d_qk + d_v) * here + pairs * d_qk * there
        if math.isnan(work.bytes[i]):
            work.why[i] = Why.NO_TYPE
        return
    if not math.isnan(here):
        parameters[_Q_BITS] = int(8.0 * here)
    if not math.isnan(there):
        is_cache = slot[_CACHED] == 1 or rank(x, r, k) == 4
        parameters[_KV_BITS if is_cache else _K_BITS] = int(8.0 * there)
    keys = number(x, r, slot[_WINDOW])
    if kind(x, r, slot[_WINDOW]) != AN_INT or keys <= 0:
        keys = number(x, r, slot[_LEFT]) + 1.0
        if kind(x, r, slot[_LEFT]) != AN_INT or keys <= 0:
            keys = math.nan
    if keys < _LARGEST:
        parameters[_WIDE] = int(keys)
    if is_shared:
        parameters[_ONE] = 1
    if slot[_PART] > 0:
        parameters[_OF] = slot[_PART]
    work.why[i] = Why.NO_LENGTHS


@njit
def latent_attention(x: Inputs, calls: Calls, work: Work) -> None:
    """Read heads and widths of vLLM's latent attention (MLA).

    Slots:  q (tokens, H_q, d), as it is before absorption; latent (…, d_v): keys and values in one;
            position (…, more of the key's width); out (tokens, H_q·d_v) or (tokens, H_q, d_v).
    Units:  FLOPs, bytes: of the step (step_work).
    Needs:  nothing.
    Cost:   O(1) a call.
    Source: inference §6. Generation works on the latent, with the query absorbed: d_qk 576, d_v
            512, one head of keys. Context works on the plain heads: c_qk 192, c_v 128.
    """
    for i in range(calls.row.shape[0]):
        r, slot = calls.row[i], calls.slot[i]
        q, latent, position, out = slot[0], slot[1], slot[2], slot[3]
        work.dtype[i] = dtype(x, r, q)
        if rank(x, r, q) < 0 or rank(x, r, latent) < 0 or rank(x, r, position) < 0:
            work.why[i] = Why.NO_SHAPE
            continue
        if rank(x, r, q) != 3 or rank(x, r, latent) < 2 or rank(x, r, position) < 2:
            work.why[i] = Why.MISFIT
            continue
        parameters = work.parameters[i]
        parameters[0], parameters[1], parameters[2] = dim(x, r, q, 0), dim(x, r, q, 1), 1
        parameters[3] = dim(x, r, latent, -1) + dim(x, r, position, -1)
        parameters[4] = dim(x, r, latent, -1)
        if not math.isnan(BYTES[dtype(x, r, q)]):
            parameters[5] = int(8 * BYTES[dtype(x, r, q)])
        if not math.isnan(BYTES[dtype(x, r, latent)]):
            parameters[6] = int(8 * BYTES[dtype(x, r, latent)])
        parameters[7], parameters[8] = 1, dim(x, r, q, 2)
        heads = dim(x, r, q, 1)
        if rank(x, r, out) == 3:
            parameters[9] = dim(x, r, out, 2)
        elif rank(x, r, out) == 2 and heads > 0 and dim(x, r, out, 1) % heads == 0:
            parameters[9] = dim(x, r, out, 1) // heads
        work.why[i] = Why.NO_LENGTHS


@njit
def linear_attention(x: Inputs, calls: Calls, work: Work) -> None:
    """Read the sizes of gated delta networks: a state of d_v × d_k a head.

    Slots:  qkv (tokens, 2·H_k·d_k + H_v·d_v); gate (tokens, H_v); out (tokens, H_v, d_v).
    Units:  FLOPs, bytes: of the step (step_work).
    Needs:  H_k = H_v / 2, which gives d_k.
    Cost:   O(1) a call.
    Source: perf_models A6.
    """
    for i in range(calls.row.shape[0]):
        _linear_attention(x, calls, work, i)


@njit
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
    if not math.isnan(BYTES[dtype(x, r, qkv)]):
        work.parameters[i, 4] = int(8 * BYTES[dtype(x, r, qkv)])
    work.why[i] = Why.NO_LENGTHS


@njit
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


@njit
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
_FA3 = {"q": 0, "q_rest": 5, "k": 1, "v": 2, "left": 25}
_DECODE = {"heads": 1, "part": GENERATION, "cached": 1}  # cache (pages, heads, …)
_WRITE = {"a": 0, "b": 1, "cache_a": 2, "cache_b": 3, "places": 4}
_WRITE_JOINED = {"a": 0, "b": 1, "cache_a": 2, "cache_b": 2, "places": 3, "joined": 1}
_LATENT = {"q": 0, "latent": 1, "position": 2}
_LINEAR = {"qkv": 0, "gate": 1, "out": 3}

MODELS = (
    Model(
        name="serving_attention",
        kernel=serving_attention,
        unit="matrix",
        slots={
            "q": ABSENT,
            "q_rest": ABSENT,
            "k": ABSENT,
            "v": ABSENT,
            "heads": -2,
            "window": ABSENT,
            "left": ABSENT,
            "part": 0,
            "cached": 0,
            "shared": 0,
            "pairs": ABSENT,
            "more_pairs": ABSENT,
        },
        labels=(
            *("N_q", "H_q", "H_kv", "d_qk", "d_v", "window"),
            *("q_bits", "k_bits", "kv_bits", "shared", "part"),
        ),
        families={"infer_attention": None},
        ops={
            "vllm::unified_attention": _ATTENTION,
            "vllm::unified_attention_with_output": _ATTENTION,
            "aiter::unified_attention_with_output_base": {"q": 0, "k": 2, "v": 3},
            "_vllm_fa2_C::varlen_fwd": _ATTENTION | {"left": 16},
            "_vllm_fa3_C::fwd": _FA3,
            "sgl_kernel::fwd": _FA3,
            "aiter::mha_varlen_fwd": _ATTENTION,
            "aiter::fmha_v3_varlen_fwd": _ATTENTION,
            "aiter::mha_batch_prefill": _ATTENTION | {"cached": 1},
            "pseudo_mla_prefill_fwd": _ATTENTION,
            "sglang_profiler::attention_paged_attention_ragged": (
                {"q": 2, "k": 3, "v": 4, "cached": 1}
            ),
            "_C::paged_attention_v1": _DECODE | {"q": 1, "k": 2},
            "_C::paged_attention_v2": _DECODE | {"q": 4, "k": 5},
            "_rocm_C::paged_attention": _DECODE | {"q": 4, "k": 5},
            "aiter::paged_attention_rocm": _DECODE | {"q": 4, "k": 5},
            "aiter::pa_fwd_asm": _DECODE | {"q": 0, "k": 1},
            "aiter::pa_decode_gluon": _DECODE | {"q": 0, "k": 2, "window": 19},
            "aiter::mla_decode_stage1_asm_fwd": (
                {"q": 0, "k": 1, "part": GENERATION, "cached": 1, "shared": 1}
            ),
            "sgl_kernel::cutlass_mla_decode": {
                **{"q": 1, "q_rest": 2, "k": 3, "v": 0},
                **{"part": GENERATION, "cached": 1, "shared": 1},
            },
            "aiter::pa_sparse_prefill_opus_fwd": {"q": 0, "k": 1, "pairs": 2, "more_pairs": 5},
        },
    ),
    Model(
        name="latent_attention",
        kernel=latent_attention,
        unit="matrix",
        slots={"q": ABSENT, "latent": ABSENT, "position": ABSENT, "out": ABSENT},
        labels=(
            *("N_q", "H_q", "H_kv", "d_qk", "d_v"),
            *("q_bits", "k_bits", "shared", "c_qk", "c_v"),
        ),
        families={"infer_latent_attention": None},
        ops={
            "vllm::unified_mla_attention": _LATENT,
            "vllm::unified_mla_attention_with_output": _LATENT | {"out": 3},
        },
    ),
    Model(
        name="linear_attention",
        kernel=linear_attention,
        unit="matrix",
        slots={"qkv": ABSENT, "gate": ABSENT, "out": ABSENT},
        labels=("N_q", "H_v", "d_k", "d_v", "q_bits"),
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
