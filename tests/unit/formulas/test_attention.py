"""Attention, forward: worked values, golden values of the peer, a slow twin, bad input."""

from __future__ import annotations

from itertools import pairwise

import pytest
from formula_cases import MIB, work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.formulas_attention import Attention, packed_pairs

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

BF16, FP32 = "c10::BFloat16", "float"
FLASH = "aten::_scaled_dot_product_flash_attention"
EFFICIENT = "aten::_scaled_dot_product_efficient_attention"
LEAF = "aten::_flash_attention_forward"
FLASH_ATTN = "flash_attn::_flash_attn_forward"
VARLEN = "flash_attn::_flash_attn_varlen_forward"


def call(op, tensors, scalars, total, kind=BF16):
    """Evaluate a call with tensors {position: shape or (shape, type)} and {position: scalar}."""
    dims, types, values = [[]] * total, [""] * total, [""] * total
    for at, what in tensors.items():
        shape, of = what if isinstance(what, tuple) else (what, kind)
        dims[at], types[at] = list(shape), of
    for at, text in scalars.items():
        types[at], values[at] = "Scalar", text
    return work_of(op, dims, types, None, values)


def flash(q, k, v, causal="False", kind=BF16, **scalars):
    given = {3: "0.", 4: causal, 5: "False", 6: "0.125"}
    return call(FLASH, {0: q, 1: k, 2: v}, given | scalars, 7, kind)


def flash_attn(q, k, v, causal="False", left="-1", right="-1", **more):
    scalars = {3: "0.", 4: "0.125", 5: causal, 6: left, 7: right, 8: "0.", 10: "False"}
    return call(FLASH_ATTN, {0: q, 1: k, 2: v}, scalars | more, 11)


def test_square_causal_is_half_and_row_sums_count():
    # h100/Qwen1.5-0.5B-Chat, golden: 10.239377408 GFLOP, 69.875 MiB (the row sums not counted).
    q = [16, 16, 559, 64]
    done = flash(q, q, q, "True")
    assert done.gflop == 10.239377408  # 2·16·16·(559²/2)·128
    assert done.bytes == 69.875 * MIB + 16 * 16 * 559 * 4
    assert done.mib == 70.4208984375
    assert done.dtype == "bf16"
    assert done.parameters == {
        **{"B": 16, "H_q": 16, "H_kv": 16, "N_q": 559, "N_k": 559, "d_qk": 64, "d_v": 64},
        "causal": 1,
    }


def test_leaf_of_the_same_call():
    # h100/Qwen1.5-0.5B-Chat: the op that launches, in B N H d; the peer has no model of it (C2).
    q = [16, 559, 16, 64]
    scalars = {5: "559", 6: "559", 7: "0.", 8: "True", 9: "False", 10: "0.125"}
    done = call(LEAF, {0: q, 1: q, 2: q}, scalars, 15)
    assert (done.gflop, done.mib) == (10.239377408, 70.4208984375)


@pytest.mark.parametrize(
    ("shape", "gflop", "mib"),
    [
        ([1, 8, 141, 64], 0.040716288, 0.55078125),  # h100/bert-small
        ([8, 16, 4096, 128], 1099.511627776, 512.0),  # torch_compile_triton
        ([1, 12, 32256, 128], 6392.521949184, 378.0),  # the reference's example
    ],
)
def test_golden_without_a_mask(shape, gflop, mib):
    done = flash(shape, shape, shape)
    assert done.gflop == gflop
    b, h, n, _ = shape
    assert done.bytes == mib * MIB + b * h * n * 4  # the peer leaves the row sums out (C13)


def test_golden_fmha_v3():
    q = [1, 7431, 24, 128]
    scalars = {3: "0.", 4: "0.088", 5: "False", 6: "-1", 7: "-1", 8: "False", 9: "False", 10: "1"}
    done = call("aiter::fmha_v3_fwd", {0: q, 1: q, 2: q}, scalars, 15)
    assert done.gflop == pytest.approx(678.540, abs=5e-4)
    assert done.mib == pytest.approx(174.164, abs=5e-4)  # no row sums asked for
    assert done.dtype == "bf16"  # the peer keeps no type: no roofline (C14)
    with_sums = call("aiter::fmha_v3_fwd", {0: q, 1: q, 2: q}, scalars | {8: "True"}, 15)
    assert with_sums.bytes - done.bytes == 24 * 7431 * 4


def test_bias_counts():
    # The reference: golden 17.578 MiB, the bias alone is 38.6 MiB (C13).
    q, bias = [1, 1, 4500, 512], [1, 1, 4500, 4500]
    scalars = {4: "False", 5: "0.", 6: "False", 7: "0.044"}
    done = call(EFFICIENT, {0: q, 1: q, 2: q, 3: bias}, scalars, 8)
    assert done.gflop == 41.472
    assert done.bytes == 4 * 4500 * 512 * 2 + 4500 * 4500 * 2
    assert done.mib == pytest.approx(56.2, abs=0.01)
    with_sums = call(EFFICIENT, {0: q, 1: q, 2: q, 3: bias}, scalars | {4: "True"}, 8)
    assert with_sums.bytes - done.bytes == 4500 * 4


def test_every_element_by_its_own_type():
    # The peer takes 2 bytes an element whatever the type (C13).
    done = flash([1, 1, 10, 8], [1, 1, 10, 8], [1, 1, 10, 8], kind=FP32)
    assert done.bytes == 4 * 80 * 4 + 10 * 4


def test_expanded_keys_are_read_once():
    q = [2, 8, 16, 64]
    strides = [[8192, 1024, 64, 1], [2048, 0, 64, 1], [2048, 0, 64, 1], [], [], [], []]
    values = ["", "", "", "0.", "False", "False", ""]
    done = work_of(FLASH, [q, q, q, [], [], [], []], [BF16] * 3 + ["Scalar"] * 4, strides, values)
    # k and v: 2·16·64 of the 2·8·16·64 elements lie in memory.
    assert done.bytes == (2 * 16384 + 2 * 2048) * 2 + 2 * 8 * 16 * 4


def test_dropout_changes_nothing():
    q = [2, 4, 16, 8]
    assert flash(q, q, q, **{}) == call(
        FLASH, {0: q, 1: q, 2: q}, {3: "0.1", 4: "False", 5: "False", 6: "1."}, 7
    )


def test_probabilities_that_are_written_are_not_counted_wrong():
    q = [2, 4, 16, 8]
    done = call(FLASH, {0: q, 1: q, 2: q}, {3: "0.1", 4: "False", 5: "True", 6: "1."}, 7)
    assert done.flops == 2 * 2 * 4 * 16 * 16 * 16
    assert (done.bytes, done.why) == (None, "no formula for this form of the op")


def test_causal_with_unequal_lengths_is_exact_bottom_right():
    # The peer raises (C11). 3 queries, 5 keys: rows see 3, 4, 5 keys: 12 = 3·5 - 3·2/2.
    done = flash_attn([1, 3, 2, 4], [1, 5, 2, 4], [1, 5, 2, 4], "True")
    assert done.flops == 2 * 2 * 12 * (4 + 4)
    # 5 queries, 3 keys: the first two see nothing, then 1, 2, 3.
    done = flash_attn([1, 5, 2, 4], [1, 3, 2, 4], [1, 3, 2, 4], "True")
    assert done.flops == 2 * 2 * 6 * (4 + 4)


def test_causal_of_the_other_kernels_starts_top_left():
    # 3 queries, 5 keys: rows see 1, 2, 3 keys; keys 4 and 5 are never read.
    scalars = {4: "False", 5: "0.", 6: "True", 7: ""}
    done = call(EFFICIENT, {0: [1, 2, 3, 4], 1: [1, 2, 5, 4], 2: [1, 2, 5, 4]}, scalars, 8)
    assert done.flops == 2 * 2 * 6 * (4 + 4)
    assert done.bytes == (24 + 2 * 2 * 3 * 4 + 24) * 2


def test_decode_sees_all_keys_or_its_window():
    # One query of 32 heads against 4096 keys of 8 heads.
    q, k = [1, 1, 32, 128], [1, 4096, 8, 128]
    done = flash_attn(q, k, k, "True")
    assert done.flops == 2 * 32 * 4096 * 256
    assert done.bytes == (4096 + 2 * 4096 * 1024 + 4096) * 2 + 32 * 4
    done = flash_attn(q, k, k, "True", "127", "0")
    assert done.flops == 2 * 32 * 128 * 256
    assert done.bytes == (4096 + 2 * 128 * 1024 + 4096) * 2 + 32 * 4
    assert done.parameters["window_left"] == 127


def test_window_of_a_square():
    # 4 rows see themselves and one before: 1 + 2 + 2 + 2 = 7 pairs; the diagonal counts in full.
    q = [1, 4, 1, 8]
    assert flash_attn(q, q, q, "True", "1", "0").flops == 2 * 7 * 16
    assert flash_attn(q, q, q, "False", "1", "1").flops == 2 * 10 * 16
    assert flash_attn(q, q, q, "True", "3", "0").flops == 2 * 8 * 16  # cuts nothing: the half


def test_window_of_an_autograd_function_is_a_pair():
    q = [1, 4, 1, 8]
    scalars = {3: "0.", 4: "", 5: "True", 6: "[1, 0]"}
    assert call("FlashAttnFunc", {0: q, 1: q, 2: q}, scalars, 12).flops == 2 * 7 * 16


def test_packed_tensors():
    plain = flash_attn([2, 8, 4, 16], [2, 8, 4, 16], [2, 8, 4, 16], "True")
    qkv = call("FlashAttnQKVPackedFunc", {0: [2, 8, 3, 4, 16]}, {1: "0.", 2: "", 3: "True"}, 10)
    assert (qkv.flops, qkv.bytes) == (plain.flops, plain.bytes)
    scalars = {2: "0.", 3: "", 4: "True"}
    kv = call("FlashAttnKVPackedFunc", {0: [2, 8, 4, 16], 1: [2, 8, 2, 4, 16]}, scalars, 11)
    assert (kv.flops, kv.bytes) == (plain.flops, plain.bytes)


def test_flash_attention_3():
    q = [1, 64, 8, 128]
    scalars = {23: "0.088", 24: "True", 25: "-1", 26: "-1", 27: "0", 28: "0."}
    done = call("flash_attn_3::fwd", {0: q, 1: q, 2: q}, scalars, 34, "c10::Float8_e4m3fn")
    assert done.flops == 2 * 8 * (64 * 64 / 2) * 256
    assert done.bytes == 3 * 65536 + 65536 * 2 + 8 * 64 * 4  # 8 bits in, bfloat16 out
    assert done.dtype == "fp8_e4m3fn"
    paged = {0: [1, 1, 8, 128], 1: [99, 16, 8, 128], 2: [99, 16, 8, 128], 14: ([1, 4], "int")}
    assert call("flash_attn_3::fwd", paged, scalars, 34).why == "no formula for this form of the op"


def test_evoformer_batches_over_sequences():
    q = [1, 129, 256, 4, 16]
    tensors = {0: q, 1: q, 2: q, 3: [1, 129, 1, 1, 256], 4: [1, 1, 4, 256, 256]}
    done = call("EvoformerAttention", tensors, {}, 5, "c10::Half")
    assert done.flops == 2 * 129 * 4 * 256 * 256 * 32
    assert done.bytes == (4 * 129 * 256 * 64 + 129 * 256 + 4 * 256 * 256) * 2
    assert done.parameters["B"] == 129


def test_wrapper_begins_one_later():
    q = [1, 8, 2, 16]
    scalars = {4: "0.", 5: "0.25", 6: "True", 7: "-1", 8: "-1", 9: "True", 10: "False"}
    done = call("aiter::wrapper_fmha_v3_fwd", {0: [1], 1: q, 2: q, 3: q}, scalars, 14)
    assert done.flops == 2 * 2 * 32 * 32
    assert done.bytes == 4 * 256 * 2 + 2 * 8 * 4


def varlen(q, k, cu, max_q, max_k, causal="True"):
    tensors = {0: q, 1: k, 2: k, 3: ([cu], "int"), 4: ([cu], "int")}
    scalars = {5: str(max_q), 6: str(max_k), 7: "0.", 8: "0.125", 9: causal, 10: "-1", 11: "-1"}
    return call(VARLEN, tensors, scalars, 18)


def test_packed_sequences():
    # 3 sequences, 10 tokens, the longest 4: 4² + 2·3² = 34 pairs, as the peer counts them.
    done = varlen([10, 2, 8], [10, 2, 8], 4, 4, 4, "False")
    assert done.flops == 2 * 2 * 34 * 16
    assert done.bytes == 4 * 10 * 16 * 2 + 2 * 4 * 4 + 2 * 10 * 4
    assert done.parameters["estimate"] == 1
    assert (done.parameters["sequences"], done.parameters["max_q"]) == (3, 4)
    assert varlen([10, 2, 8], [10, 2, 8], 4, 4, 4).flops == 2 * 2 * 17 * 16
    assert varlen([12, 2, 8], [12, 2, 8], 4, 4, 4).parameters["estimate"] == 0
    # One sequence, decoding: 1 query, 100 keys.
    done = varlen([1, 2, 8], [100, 1, 8], 2, 1, 100)
    assert (done.flops, done.parameters["estimate"]) == (2 * 2 * 100 * 16, 0)


def test_padded_longest_length_does_not_go_negative():
    # 2 sequences, 6 tokens, a limit of 100: the least that they can do is 2·3².
    assert varlen([6, 1, 8], [6, 1, 8], 3, 100, 100, "False").flops == 2 * 18 * 16


def test_packed_sequences_that_cannot_be():
    fits = "the shapes do not fit the op's declaration"
    assert varlen([10, 2, 8], [10, 2, 8], 4, 3, 4).why == fits  # 3·3 < 10
    assert varlen([10, 2, 8], [10, 2, 8], 1, 10, 10).why == fits  # no sequence
    assert varlen([10, 2, 8], [10, 2, 8], 4, "", "").why == (
        "a value that the formula depends on was not recorded"
    )


SMALL = st.integers(1, 7)


@st.composite
def attentions(draw):
    h_kv = draw(st.integers(1, 3))
    n_q = draw(SMALL)
    return Attention(
        draw(st.integers(1, 2)),
        h_kv * draw(st.integers(1, 3)),
        h_kv,
        n_q,
        draw(st.one_of(st.just(n_q), SMALL)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        type=draw(st.sampled_from([BF16, "c10::Half", FP32, "double"])),
        causal=draw(st.booleans()),
        left=draw(st.integers(-1, 8)),
        right=draw(st.integers(-1, 8)),
    )


def shapes(a, heads_first=False):
    q, k, v = (a.n_q, a.h_q, a.d_qk), (a.n_k, a.h_kv, a.d_qk), (a.n_k, a.h_kv, a.d_v)
    if heads_first:
        q, k, v = ((h, n, d) for n, h, d in (q, k, v))
    return [a.b, *q], [a.b, *k], [a.b, *v]


@given(attentions())
@settings(deadline=None)
def test_windows_equal_the_twin(a):
    q, k, v = shapes(a)
    scalars = {3: "0.", 5: str(a.causal), 6: str(a.left), 7: str(a.right), 10: "False"}
    done = call(FLASH_ATTN, {0: q, 1: k, 2: v}, scalars, 11, a.type)
    assert (done.flops, done.bytes) == (a.flops(), pytest.approx(a.bytes(), rel=1e-12))


@given(attentions(), st.booleans(), st.booleans())
@settings(deadline=None)
def test_top_left_with_a_bias_equals_the_twin(a, with_bias, lse):
    bias = (a.b, a.h_q, a.n_q, a.n_k) if with_bias else ()
    a = Attention(
        *(a.b, a.h_q, a.h_kv, a.n_q, a.n_k, a.d_qk, a.d_v),
        **{"type": a.type, "causal": a.causal, "top_left": True, "bias": bias, "lse": lse},
    )
    q, k, v = shapes(a, heads_first=True)
    tensors = {0: q, 1: k, 2: v} | ({3: list(bias)} if bias else {})
    done = call(EFFICIENT, tensors, {4: str(lse), 5: "0.", 6: str(a.causal)}, 8, a.type)
    assert (done.flops, done.bytes) == (a.flops(), pytest.approx(a.bytes(), rel=1e-12))


@given(st.lists(SMALL, min_size=1, max_size=4), st.booleans())
@settings(deadline=None)
def test_packed_sequences_are_a_lower_bound(lengths, causal):
    total, longest = sum(lengths), max(lengths)
    done = varlen([total, 1, 1], [total, 1, 1], len(lengths) + 1, longest, longest, str(causal))
    truth = packed_pairs(lengths, lengths, causal=causal) * 4
    assert done.flops <= truth
    if done.parameters["estimate"] == 0:
        assert done.flops == truth
    assert all(a == b for a, b in pairwise(lengths)) == (done.parameters["estimate"] == 0)


def test_unknown_mask():
    q = [2, 4, 16, 8]
    for causal in ("", "0.125", "maybe"):
        done = call(FLASH, {0: q, 1: q, 2: q}, {3: "0.", 4: causal, 5: "False"}, 7)
        assert (done.flops, done.bytes) == (None, None)
        assert done.why == "a value that the formula depends on was not recorded"
        assert done.parameters["N_q"] == 16


def test_missing_shapes_and_types():
    q = [2, 4, 16, 8]
    values = ["", "", "", "0.", "True", "False", ""]
    assert work_of(FLASH).flops is None
    assert work_of(FLASH, [q, q], [BF16, BF16], None, values).why == (
        "the shape of an input it depends on was not recorded"
    )
    done = work_of(FLASH, [q, q, q, [], [], [], []], None, None, values)
    assert done.flops == 2 * 2 * 4 * 128 * 16
    assert done.bytes is None
    assert done.why == "the type of an input was not recorded, or is not known"


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ([2, 4, 16, 8], [2, 4, 16, 9], [2, 4, 16, 8]),
        ([2, 4, 16, 8], [3, 4, 16, 8], [3, 4, 16, 8]),
        ([2, 4, 16, 8], [2, 3, 16, 8], [2, 3, 16, 8]),
        ([2, 4, 16, 8], [2, 4, 16, 8], [2, 4, 15, 8]),
        ([2, 4, 16, 8], [2, 0, 16, 8], [2, 0, 16, 8]),
        ([4, 16, 8], [4, 16, 8], [4, 16, 8]),
        ([-2, -4, 16, 8], [-2, -4, 16, 8], [-2, -4, 16, 8]),
    ],
)
def test_shapes_that_do_not_fit(q, k, v):
    done = flash(q, k, v)
    assert (done.flops, done.bytes) == (None, None)
    assert done.why == "the shapes do not fit the op's declaration"


def test_hostile_sizes():
    huge = [2**40, 2**20, 2**40, 2**40]
    done = flash(huge, huge, huge, "True")
    assert (done.flops, done.bytes) == (None, None)
    assert done.why == "the product of the shapes is out of range"
    largest = [2**63 - 1] * 4
    assert flash(largest, largest, largest).flops is None
    q = [1, 4, 1, 8]
    assert flash_attn(q, q, q, "True", "1e300", "nan").flops is None
    assert varlen([10, 2, 8], [10, 2, 8], 4, "inf", "1e39").flops is not None


def test_nothing_to_do():
    done = flash([0, 4, 16, 8], [0, 4, 16, 8], [0, 4, 16, 8])
    assert (done.flops, done.bytes) == (0, 0)
    done = flash([1, 4, 0, 8], [1, 4, 16, 8], [1, 4, 16, 8], "True")
    assert (done.flops, done.bytes) == (0, 0)


def test_ops_without_a_formula():
    math, choice = "aten::_scaled_dot_product_attention_math", "aten::_fused_sdp_choice"
    for op in (math, choice, "FusedAttnFunc", "natten::na2d_forward"):
        family = op_categories.load().family(op)
        model = model_of(family)
        assert model is not None
        assert model.slots_of(op, family) is None, op
