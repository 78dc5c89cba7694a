"""Rotary embeddings: worked values, golden values of the peer, a slow twin, bad input."""

from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.formulas_rope import turn

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

BF16 = "c10::BFloat16"
SGL = "sgl_kernel::rotary_embedding"
FITS = "the shapes do not fit the op's declaration"


def in_place(op, q, k, head, table, kind=BF16):
    dims = [[q[0]], q, k, [], table, []]
    types = ["long int", kind, kind if k else "", "Scalar", kind, "Scalar"]
    return work_of(op, dims, types, None, ["", "", "", head, "", "True"])


def test_golden():
    # inference/sglang_decode: golden 0.00049152 GFLOP, 0.625 MiB; 32·(32 + 8)·128 elements.
    done = in_place(SGL, [32, 4096], [32, 1024], "128", [41216, 128])
    assert (done.gflop, done.mib, done.dtype) == (0.00049152, 0.625, "bf16")
    assert done.parameters == {"elements": 163840}
    # The reference's example: 0.23593 GFLOP, 300.0 MiB.
    done = in_place(SGL, [15360, 4096], [15360, 1024], "128", [41216, 128])
    assert done.gflop == pytest.approx(0.23593, abs=5e-6)
    assert done.mib == 300.0


def test_the_op_of_vllm():
    # inference/vllm_decode_full: the same arguments; the peer has no model of it.
    done = in_place("_C::rotary_embedding", [32, 4096], [32, 512], "64", [131072, 64])
    assert (done.flops, done.bytes) == (3 * 32 * 4608, 2 * 32 * 4608 * 2)
    alone = in_place("_C::rotary_embedding", [32, 4096], [], "64", [131072, 64])
    assert alone.flops == 3 * 32 * 4096


def test_a_part_of_each_head():
    done = in_place(SGL, [4, 64], [4, 32], "32", [10, 8])
    assert (done.flops, done.bytes) == (3 * 4 * 3 * 8, 2 * 4 * 3 * 8 * 2)
    dims = [[4], [4, 64], [4, 32], [], [10, 32], [], [], [4]]
    types = ["long int", BF16, BF16, "Scalar", BF16, "Scalar", "Scalar", "long int"]
    values = ["", "", "", "32", "", "True", "8", ""]
    batched = work_of("_C::batched_rotary_embedding", dims, types, None, values)
    assert (batched.flops, batched.bytes) == (done.flops, done.bytes)


def test_tensors_of_heads():
    done = work_of("FusedRoPEFunc", [[8, 2, 4, 16], [8, 1, 1, 16]], [BF16, "float"])
    assert (done.flops, done.bytes) == (3 * 1024, 2 * 1024 * 2)
    done = work_of("LigerRopeFunction", [[1, 8, 4, 16], [1, 2, 4, 16], [1, 4, 16]], [BF16] * 3)
    assert done.flops == 3 * (512 + 128)
    x, y, table = [2, 128, 8, 64], [2, 128, 1, 64], [2048, 1, 1, 32]
    dims = [x, y, x, y, table, table, [2, 128], [], [], []]
    types = [BF16] * 6 + ["long int", "Scalar", "Scalar", "Scalar"]
    done = work_of("aiter::rope_cached_positions_2c_fwd_impl", dims, types)
    assert done.flops == 3 * 2 * 128 * 9 * 64
    assert work_of("aiter::rope_fwd_impl", [x, x, [2, 1, 1, 64]], [BF16] * 3).flops == 3 * 131072


def test_backward_turns_the_gradients_back():
    done = work_of("LigerRopeFunctionBackward", [[1, 8, 4, 16], [1, 2, 4, 16]], [BF16] * 2)
    assert (done.flops, done.bytes) == (3 * 640, 2 * 640 * 2)
    model, forward = model_of("rope_bwd"), model_of("rope")
    assert model is not None
    assert forward is not None
    family = op_categories.load().family("LigerRopeFunction")
    slots = model.slots_of_forward(forward, "LigerRopeFunction", family)
    assert slots == model.slots_of("LigerRopeFunctionBackward", "rope_bwd")


def test_latent_with_the_cache():
    # 3 tokens, 4 heads of 8 + 2, one latent; the cache in 8 bits.
    dims = [[3, 4, 8], [3, 4, 2], [3, 1, 8], [3, 1, 2], [100, 1, 10]]
    types = [BF16] * 4 + ["c10::Float8_e4m3fn"]
    done = work_of("aiter::fused_qk_rope_cat_and_cache_mla", dims, types)
    assert done.flops == 3 * (24 + 6)
    assert done.bytes == (120 + 30) * 2 + 120 * 2 + 30
    dims = [[3, 4, 8], [3, 4, 2], [3, 8], [3, 2], [100, 1, 10], [3, 4, 10]]
    types += ["c10::Float8_e4m3fn"]
    done = work_of("aiter::fused_qk_rope_concat_and_cache_mla", dims, types)
    assert (done.flops, done.bytes) == (90, (120 + 30) * 2 + 120 + 30)


@given(*[st.integers(1, 4)] * 3, st.integers(1, 6), st.integers(0, 6), st.booleans())
@settings(deadline=None)
def test_equals_the_twin(tokens, h_q, h_kv, width, turned, wide):
    turned = min(turned, width)
    q, k = [tokens, h_q * width], [tokens, h_kv * width]
    kind, size = ("float", 4) if wide else (BF16, 2)
    done = in_place(SGL, q, k, str(width), [10, turned], kind)
    flops, moved = turn(tokens, h_q + h_kv, width, turned, size)
    assert (done.flops, done.bytes) == (flops, moved)


def test_bad_input():
    assert work_of(SGL).why == "the shape of an input it depends on was not recorded"
    assert in_place(SGL, [4, 64], [4, 32], "", [10, 8]).why == (
        "a value that the formula depends on was not recorded"
    )
    assert in_place(SGL, [4, 64], [4, 32], "32", []).why == (
        "the shape of an input it depends on was not recorded"
    )
    for head, table in (("0", [10, 8]), ("-32", [10, 8]), ("7", [10, 4]), ("32", [10, 64])):
        done = in_place(SGL, [4, 64], [4, 32], head, table)
        assert (done.flops, done.bytes, done.why) == (None, None, FITS)
    done = in_place(SGL, [4, 64], [4, 32], "32", [10, 8], "Mystery")
    assert (done.flops, done.bytes) == (288, None)
    assert done.why == "the type of an input was not recorded, or is not known"
    assert in_place(SGL, [-4, 64], [4, 32], "32", [10, 8]).why == FITS
    huge = work_of("FusedRoPEFunc", [[2**40, 2**40]], [BF16])
    assert huge.why == "the product of the shapes is out of range"
    none = in_place(SGL, [0, 64], [0, 32], "32", [10, 8])
    assert (none.flops, none.bytes) == (0, 0)
