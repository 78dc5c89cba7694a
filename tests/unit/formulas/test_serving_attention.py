"""Serving attention by the sums of the step, linear attention, writes to the KV cache."""

from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import MIB, work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.formulas_attention import serving_bytes, serving_flops

from tracehouse.analysis.attention_sizes import has_sizes, parts_of, sizes_of
from tracehouse.formulas.step_sums import UNCLEAR, Sums, part_of
from tracehouse.formulas.step_work import attention

BF16, FP8, BYTE = "c10::BFloat16", "c10::Float8_e4m3fn", "unsigned char"
VLLM = "vllm::unified_attention_with_output"
RAGGED = "sglang_profiler::attention_paged_attention_ragged"
NO_LENGTHS = "the lengths of the sequences are not in its inputs"
UNKNOWN = [math.nan] * 8


def sums(lengths, r_c=math.nan, r_g=math.nan):
    """The sums of one step: Σq, Σk, Σq², Σqk of context, then of generation."""
    context, generation = lengths[:4], lengths[4:]
    total = [c + g for c, g in zip(context, generation, strict=True)]
    return Sums(*(np.array([float(v)]) for v in (r_c, r_g, *context, *generation, *total)))


def call(op, tensors, lengths, scalars=None, total=None, requests=(math.nan, math.nan)):
    """One call of a step: FLOPs, bytes, reason, parameters; NaN where unknown."""
    total = total or max(tensors) + 1
    dims, types, values = [[]] * total, [""] * total, [""] * total
    for at, (shape, of) in tensors.items():
        dims[at], types[at] = shape, of
    for at, text in (scalars or {}).items():
        types[at], values[at] = "Scalar", text
    done = work_of(op, dims, types, values=values)
    if not has_sizes(done.parameters) or done.flops is not None:
        flops, moved = (math.nan if x is None else x for x in (done.flops, done.bytes))
        return flops, moved, done.why, done.parameters
    assert done.why == NO_LENGTHS
    place = np.zeros(1, dtype=np.int64)
    sizes, of_step = sizes_of([done.parameters], place), sums(lengths, *requests)
    part = part_of(parts_of([done.parameters], place), sizes.queries, of_step)
    work = attention(sizes, of_step.of_part(part))
    return work.flops[0], work.bytes[0], "unclear" if part[0] == UNCLEAR else None, done.parameters


def vllm(tokens, h_q, h_kv, d, lengths, kind=BF16):
    q, k = ([tokens, h_q, d], BF16), ([tokens, h_kv, d], kind)
    return call(VLLM, {0: q, 1: k, 2: k, 3: q, 7: ([0], BF16)}, lengths)


def test_golden_mixed_step():
    # inference/vllm_prefilldecode_piecewise: golden 65.010180096 GFLOP, 211.826171875 MiB.
    lengths = [8155, 8430, 7475785, 7671310, 37, 34489, 37, 34489]
    flops, moved, why, parameters = vllm(8192, 64, 8, 64, lengths)
    assert flops == 65010180096  # 64·128·(2·7671310 - 7475785 + 2·34489)
    assert moved == 211.826171875 * MIB
    assert why is None
    assert parameters["N_q"] == 8192  # padded
    assert (parameters["H_q"], parameters["H_kv"], parameters["k_bits"]) == (64, 8, 16)


def test_golden_decode_steps():
    # inference/vllm_decode_full: golden 0.902529024 GFLOP, 108.08984375 MiB.
    flops, moved, *_ = vllm(32, 64, 8, 64, [0, 0, 0, 0, 32, 55086, 32, 55086])
    assert (flops, moved) == (902529024, 108.08984375 * MIB)
    # inference/sglang_decode: golden 0.53714944 GFLOP, 128.56640625 MiB.
    q, cache = ([32, 32, 128], BF16), ([835874, 1, 8, 128], BF16)
    tensors = {0: q, 1: ([10905190400], BYTE), 2: q, 3: cache, 4: cache, 5: ([33], "int")}
    flops, moved, *_ = call(RAGGED, tensors, [0, 0, 0, 0, 32, 32785, 32, 32785])
    assert (flops, moved) == (537149440, 128.56640625 * MIB)


def test_golden_batch_prefill():
    # sglang_prefilldecode of the reference: golden 128.84901888 GFLOP, 300.0 MiB.
    q, cache = ([15360, 32, 128], BF16), ([1000, 8, 128], BF16)
    lengths = [15360, 15360, 15728640, 15728640, 0, 0, 0, 0]
    flops, moved, *_ = call("aiter::mha_batch_prefill", {0: q, 1: cache, 2: cache}, lengths)
    assert (flops, moved) == (128849018880, 300 * MIB)


@pytest.mark.parametrize(
    ("h_q", "h_kv", "lengths", "flops", "moved"),
    [  # the reference's table, inference §6
        (32, 8, [14721, 14721, 108745533, 108745533, 0, 0, 0, 0], 890843406336, 301486080),
        (32, 8, [2048, 6144, 4194304, 12582912, 0, 0, 0, 0], 171798691840, 58720256),
        (
            *(64, 8, [6144, 7144, 20971520, 23019520, 3, 6144, 3, 6144]),
            *(410907574272, 255852544),
        ),
        (32, 8, [0, 0, 0, 0, 128, 65536, 512, 262144], 4294967296, 270532608),
    ],
)
def test_worked_examples(h_q, h_kv, lengths, flops, moved):
    assert vllm(16384, h_q, h_kv, 128, lengths)[:2] == (flops, moved)


def test_cache_of_another_type():
    # The third example with keys and values in 8 bits: 6147·16384·2 + 13288·2048·1.
    lengths = [6144, 7144, 20971520, 23019520, 3, 6144, 3, 6144]
    _, moved, *_ = vllm(8192, 64, 8, 128, lengths, FP8)
    assert moved == 228638720


def test_width_of_the_values():
    # Latent attention: keys of 192, values of 128.
    q, k, v = ([64, 16, 192], BF16), ([64, 16, 192], BF16), ([64, 16, 128], BF16)
    lengths = [64, 64, 4096, 4096, 0, 0, 0, 0]
    flops, moved, *_ = call("aiter::fmha_v3_varlen_fwd", {0: q, 1: k, 2: v}, lengths)
    assert flops == 16 * 320 * 4096
    assert moved == 64 * 32 * 320 * 2


def test_window_caps_the_generation():
    q, cache = ([4, 8, 64], BF16), ([100, 1, 16, 64], FP8)
    tensors = {0: q, 1: q, 2: cache, 3: cache}
    # A step with a prefill beside it, whose lengths this op has no part in.
    lengths = [100, 100, 10000, 10000, 4, 4000, 4, 4000]
    op = "aiter::pa_decode_gluon"
    done = call(op, tensors, lengths, {19: "128"}, 20, (1, 4))
    assert done[0] == 2 * 8 * 128 * 512  # 4·128 keys for 4000
    assert done[1] == 4 * 8 * 128 * 2 + 512 * 128 * 1
    assert done[3]["window"] == 128
    full = call(op, tensors, lengths, {19: "-1"}, 20)
    assert full[0] == 2 * 8 * 128 * 4000
    short = [0, 0, 0, 0, 4, 40, 4, 40]
    assert call(op, tensors, short, {19: "128"}, 20)[0] == 2 * 8 * 128 * 40
    # two tokens each see 129 keys between them, at most
    pairs = [0, 0, 0, 0, 8, 4000, 16, 8000]
    done = call(op, tensors | {0: ([8, 8, 64], BF16)}, pairs, {19: "128"}, 20, (0, 4))
    assert done[0] == 2 * 8 * 128 * 8 * 128
    assert done[1] == 8 * 8 * 128 * 2 + 4 * 129 * 128 * 1


def test_window_caps_the_context():
    # FlashAttention of vLLM: 127 keys to the left and its own. One chunk of 1000, 500 cached.
    q, cache = ([1000, 8, 64], BF16), ([100, 16, 2, 64], BF16)
    lengths = [1000, 1500, 1000000, 1500000, 0, 0, 0, 0]
    done = call(
        *("_vllm_fa2_C::varlen_fwd", {0: q, 1: cache, 2: cache}, lengths),
        *({16: "127", 17: "0"}, 21, (1, 0)),
    )
    assert done[3]["window"] == 128
    assert done[0] == 2 * 8 * 128 * 1000 * 128  # below 2·1500000 - 1000000
    assert done[1] == 1000 * 8 * 128 * 2 + (1000 + 127) * 2 * 128 * 2
    plain = call("_vllm_fa2_C::varlen_fwd", {0: q, 1: cache, 2: cache}, lengths, {16: "-1"}, 21)
    assert plain[0] == 8 * 128 * 2000000
    assert "window" not in plain[3]


def test_a_call_of_some_requests():
    """A mixed step of 100 tokens of context and 4 of generation, in two calls."""
    lengths = [100, 300, 10000, 30000, 4, 4000, 4, 4000]
    first, *_ = vllm(100, 8, 2, 64, lengths)
    second, *_ = vllm(4, 8, 2, 64, lengths)
    both, *_ = vllm(104, 8, 2, 64, lengths)
    assert first == 8 * 128 * (2 * 30000 - 10000)
    assert second == 8 * 128 * 2 * 4000
    assert both == first + second
    flops, moved, why, _ = vllm(50, 8, 2, 64, lengths)  # of which requests?
    assert math.isnan(flops)
    assert math.isnan(moved)
    assert why == "unclear"


def test_latent_decode_reads_keys_and_values_once():
    # DeepSeek on 16 heads: keys of 576 whose first 512 columns are the values; 8 bits in the cache.
    q, cache = ([64, 16, 576], BF16), ([1000, 1, 1, 576], FP8)
    lengths = [0, 0, 0, 0, 64, 65536, 64, 65536]
    flops, moved, _, parameters = call(
        "aiter::mla_decode_stage1_asm_fwd", {0: q, 1: cache}, lengths
    )
    assert (parameters["d_qk"], parameters["d_v"], parameters["H_kv"]) == (576, 512, 1)
    assert flops == 16 * (576 + 512) * 2 * 65536
    assert moved == 64 * 16 * 1088 * 2 + 65536 * 576 * 1
    sizes = sizes_of([parameters], np.zeros(1, dtype=np.int64))
    seed = attention(sizes, sums(lengths)).bytes_seed[0]
    assert seed == (64 * 16 * 1088 + 65536 * 1088) * 2  # values apart, in the type of q
    other = call(
        *("aiter::mla_decode_stage1_asm_fwd", {0: ([64, 16, 320], BF16), 1: cache}, lengths)
    )
    assert other[2] == "the shapes do not fit the op's declaration"


def test_latent_decode_with_the_query_in_two_tensors():
    nope, rope = ([64, 16, 512], BF16), ([64, 16, 64], BF16)
    tensors = {0: nope, 1: nope, 2: rope, 3: ([1000, 64, 576], BF16)}
    lengths = [0, 0, 0, 0, 64, 65536, 64, 65536]
    flops, moved, *_ = call("sgl_kernel::cutlass_mla_decode", tensors, lengths)
    assert flops == 16 * 1088 * 2 * 65536
    assert moved == 64 * 16 * 1088 * 2 + 65536 * 576 * 2


def test_latent_attention_of_vllm():
    """Context on plain heads of 192 and 128, generation on the latent."""
    tensors = {
        **{0: ([104, 16, 192], BF16), 1: ([104, 512], BF16), 2: ([104, 1, 64], BF16)},
        3: ([104, 2048], BF16),
    }
    op = "vllm::unified_mla_attention_with_output"
    lengths = [100, 300, 10000, 30000, 4, 4000, 4, 4000]
    flops, moved, _, parameters = call(op, tensors, lengths)
    assert (parameters["c_qk"], parameters["c_v"], parameters["d_qk"]) == (192, 128, 576)
    assert flops == 16 * (320 * (2 * 30000 - 10000) + 1088 * 2 * 4000)
    assert moved == 16 * (100 * 320 + 4 * 1088) * 2 + 4300 * 576 * 2
    del tensors[3]  # without the output, the width of a value in context is unknown
    assert math.isnan(call(op, tensors, lengths, total=4)[0])
    decode = [0, 0, 0, 0, 4, 4000, 4, 4000]
    assert call(op, tensors, decode, total=4)[0] == 16 * 1088 * 2 * 4000


def test_paged_attention_has_its_heads_in_the_caches_second_dimension():
    q, k, v = ([4, 8, 128], BF16), ([100, 2, 16, 16, 8], BYTE), ([100, 2, 128, 16], BYTE)
    lengths = [0, 0, 0, 0, 4, 4000, 4, 4000]
    flops, moved, _, parameters = call("_C::paged_attention_v1", {1: q, 2: k, 3: v}, lengths)
    assert (parameters["H_kv"], parameters["kv_bits"]) == (2, 8)
    assert flops == 8 * 256 * 2 * 4000
    assert moved == 4 * 8 * 256 * 2 + 4000 * 2 * 256 * 1


def test_heads_side_by_side_are_not_known():
    flat = ([64, 2048], BF16)
    op = "aiter::unified_attention_with_output_base"
    *_, why, parameters = call(op, {0: flat, 2: flat, 3: flat}, UNKNOWN)
    assert why == "heads and widths are not in its inputs: pass --model-config"
    assert parameters == {"N_q": 64}


def test_sparse_prefill_has_its_pairs_in_its_inputs():
    tensors = {0: ([16, 8, 64], BF16), 1: ([999, 64], BF16), 2: ([300], "int"), 5: ([20], "int")}
    flops, moved, why, _ = call("aiter::pa_sparse_prefill_opus_fwd", tensors, UNKNOWN)
    assert flops == 320 * 8 * 2 * 128
    assert moved == 2 * 16 * 8 * 64 * 2 + 320 * 64 * 2
    assert why is None


@pytest.mark.parametrize("missing", range(8))
def test_lengths_that_the_step_does_not_say(missing):
    lengths = [8155, 8430, 7475785, 7671310, 37, 34489, 37, 34489]
    lengths[missing] = math.nan
    flops, moved, _, parameters = vllm(8192, 64, 8, 64, lengths)
    assert math.isnan(flops) == (missing in (2, 3, 7))  # c_sqsq, c_sqsk, g_sqsk
    assert math.isnan(moved) == (missing in (0, 1, 4, 5))
    assert parameters["H_q"] == 64


def test_totals_suffice():
    """ATOM's mixed step says Σqk and Σk of all requests together: 5,368,709,120 FLOPs."""
    done = work_of(VLLM, [[1056, 32, 128], [1056, 8, 128], [1056, 8, 128]], [BF16] * 3)
    of_step = sums([1024, math.nan, 524288, math.nan, 32, math.nan, 32, math.nan])
    of_step = of_step._replace(t_sk=np.array([66560.0]), t_sqsk=np.array([589824.0]))
    work = attention(sizes_of([done.parameters], np.zeros(1, dtype=np.int64)), of_step)
    assert (work.flops[0], work.bytes[0]) == (5368709120, 289931264)


def test_without_a_step():
    dims = [[32, 64, 64], [32, 8, 64], [32, 8, 64], [32, 64, 64], [], [], [], [0]]
    done = work_of(VLLM, dims, [BF16] * 4 + ["", "", "", BF16])
    assert (done.flops, done.bytes) == (None, None)
    assert done.why == NO_LENGTHS


REQUESTS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), max_size=3)


@given(REQUESTS, REQUESTS, st.integers(1, 3), st.integers(1, 3), st.sampled_from([BF16, FP8]))
@settings(deadline=None)
def test_equals_the_twin(chunks, decodes, h_kv, group, kind):
    chunks = [(new, new + old) for new, old in chunks]
    decodes = [(new, new + old) for new, old in decodes]
    lengths = []
    for requests in (chunks, decodes):
        lengths += [sum(q for q, _ in requests), sum(k for _, k in requests)]
        lengths += [sum(q * q for q, _ in requests), sum(q * k for q, k in requests)]
    flops, moved, *_ = vllm(64, h_kv * group, h_kv, 4, lengths, kind)
    assert flops == serving_flops(chunks, decodes, h_kv * group, 8)
    there = 1 if kind == FP8 else 2
    assert moved == serving_bytes(chunks + decodes, h_kv * group, h_kv, 8, 2, there)


def test_bad_shapes():
    fits = "the shapes do not fit the op's declaration"
    assert vllm(8, 64, 0, 64, UNKNOWN)[2] == fits
    assert vllm(8, 64, 7, 64, UNKNOWN)[2] == fits
    assert call(VLLM, {0: ([8, 64, 8], BF16), 1: ([8], BF16)}, UNKNOWN)[2] == fits
    assert work_of(VLLM).why == "the shape of an input it depends on was not recorded"
    whole = [64, 64, 64, 64, 0, 0, 0, 0]
    q = ([64, 4, 8], BF16)
    flops, moved, *_ = call(VLLM, {0: q, 1: ([64, 4, 8], "Mystery"), 2: q}, whole)
    assert flops == 4 * 16 * 64
    assert math.isnan(moved)  # of a key no size is known
    enormous = vllm(2**62, 2**62, 1, 2**62, [1e300] * 8)
    assert not (enormous[0] < 2**62)  # too large for op_perf, which calls it unknown


def test_linear_attention():
    # 4 heads of 16 on 2 key heads of 8: 2·2·8 + 4·16 = 96 columns.
    dims, types = [[32, 96], [32, 4], [32, 4], [32, 4, 16]], [BF16] * 4
    done = work_of("vllm::gdn_attention_core", dims, types)
    assert (done.flops, done.bytes, done.why) == (None, None, NO_LENGTHS)
    assert done.parameters == {"N_q": 32, "H_v": 4, "d_k": 8, "d_v": 16, "q_bits": 16}
    dims[0] = [32, 63]
    done = work_of("vllm::gdn_attention_core", dims, types)
    assert done.why == "the shapes do not fit the op's declaration"


def test_golden_store_cache():
    # inference/sglang_decode: golden 0 GFLOP, 0.25 MiB = 4·32·1024·2 bytes.
    dims = [[32, 1024], [32, 1024], [835874, 1024], [835874, 1024], [32], [], []]
    types = [BF16] * 4 + ["long int", "Scalar", "Scalar"]
    strides = [[1024, 1], [6144, 1], [1024, 1], [1024, 1], [1], [], []]
    done = work_of("sglang::store_cache", dims, types, strides, [""] * 5 + ["2048", "0"])
    assert (done.flops, done.mib, done.parameters) == (0, 0.25, {"tokens": 32})


def test_cache_writes():
    # inference/vllm_decode_full, which the peer has no model of; the places count here.
    dims = [[32, 8, 64]] * 2 + [[224304, 32, 8, 64]] * 2 + [[32], [], [], []]
    types = [BF16] * 4 + ["long int", "", "float", "float"]
    op = "_C_cache_ops::reshape_and_cache_flash"
    done = work_of(op, dims, types)
    assert (done.flops, done.bytes) == (0, 4 * 32 * 512 * 2 + 32 * 8)
    # 8 bits in the cache; only 24 of the 32 tokens have a place.
    dims[4], types[2], types[3] = [24], BYTE, BYTE
    done = work_of(op, dims, types)
    assert done.bytes == 2 * 24 * 512 * 2 + 2 * 24 * 512 * 1 + 24 * 8


def test_latent_cache_writes():
    dims = [[16, 512], [16, 64], [100, 1, 576], [16], [], []]
    types = [BF16, BF16, BF16, "long int", "", "float"]
    op = "_C_cache_ops::concat_and_cache_mla"
    assert work_of(op, dims, types).bytes == 2 * 16 * 576 * 2 + 16 * 8
    dims[2], types[2] = [100, 64, 656], BYTE  # entries with scales beside quantised values
    done = work_of(op, dims, types)
    assert (done.flops, done.why) == (None, "no formula for this form of the op")


def test_bad_cache_writes():
    op = "sglang::store_cache"
    assert work_of(op).why == "the shape of an input it depends on was not recorded"
    done = work_of(op, [[8, 4], [7, 4], [9, 4], [9, 4], [8]], [BF16] * 4 + ["int"])
    assert done.why == "the shapes do not fit the op's declaration"
    done = work_of(op, [[8, 4], [8, 4], [9, 4], [9, 4], [8]])
    assert (done.flops, done.bytes) == (0, None)
    assert done.why == "the type of an input was not recorded, or is not known"
    none = work_of(op, [[0, 4], [0, 4], [9, 4], [9, 4], [0]], [BF16] * 4 + ["int"])
    assert (none.flops, none.bytes) == (0, 0)
