from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_moe as slow

BF16, F32, FP8, FP4 = "c10::BFloat16", "float", "c10::Float8_e4m3fn", "c10::Float4_e2m1fn_x2"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"


def stage1(tokens, k, width, inner, experts, types=(BF16, FP4, BF16), pack=1, gate=2):
    """aiter::ck_moe_stage1(x, w1, w2, sorted ids, sorted experts, number of ids, out, top-k, …)"""
    x, w, out = types
    up, down = [experts, gate * inner, width // pack], [experts, width, inner // pack]
    dims = [[tokens, width], up, down, [1], [1], [1], [tokens, k, inner], []]
    return work_of(
        "aiter::ck_moe_stage1",
        dims,
        [x, w, w, "int", "int", "int", out, "Scalar"],
        None,
        [""] * 7 + [str(k)],
    )


def stage2(tokens, k, width, inner, experts, types=(BF16, FP4, BF16), pack=1):
    """aiter::ck_moe_stage2, whose x are the inner values of each choice"""
    x, w, out = types
    up, down = [experts, 2 * inner, width // pack], [experts, width, inner // pack]
    dims = [[tokens, k, inner], up, down, [1], [1], [1], [tokens, width], []]
    return work_of(
        "aiter::ck_moe_stage2",
        dims,
        [x, w, w, "int", "int", "int", out, "Scalar"],
        None,
        [""] * 7 + [str(k)],
    )


def test_golden_examples():
    # perf_models A12: K = N = 3072, E = 32, k = 4, gated, bf16 × FP4 (two values a byte)
    done = stage1(8192, 4, 3072, 3072, 32, pack=2)
    assert done.flops == 2 * 8192 * 3072 * 3072 * 4 * 2
    assert done.gflop == pytest.approx(1236.950581248, rel=1e-12)
    assert done.mib == pytest.approx(528.0, rel=1e-12)  # 48 + 288 + 192
    assert done.dtype == "fp4_e2m1x2"
    assert done.parameters == {"T": 8192, "K": 3072, "N": 3072, "E": 32, "k": 4, "gated": 1}
    done = stage1(32, 4, 3072, 3072, 32, pack=2)
    assert done.gflop == pytest.approx(4.831838208, rel=1e-12)
    assert done.mib == pytest.approx(284.9228269331473, rel=1e-12)
    done = stage2(8192, 4, 3072, 3072, 32, pack=2)
    assert done.gflop == pytest.approx(618.475290624, rel=1e-12)
    assert done.mib == pytest.approx(384.0, rel=1e-12)
    assert done.parameters == {"T": 8192, "K": 3072, "N": 3072, "E": 32, "k": 4, "gated": 0}
    done = stage2(32, 4, 3072, 3072, 32, pack=2)
    assert done.gflop == pytest.approx(2.415919104, rel=1e-12)
    assert done.mib == pytest.approx(142.93016346657365, rel=1e-12)


def test_inner_size_is_not_the_width():
    # perf_models C17: the peer takes N to be K
    done = stage1(8, 2, 64, 16, 4, (BF16, BF16, BF16))
    assert done.flops == 2 * 8 * 64 * 16 * 2 * 2
    done = stage2(8, 2, 64, 16, 4, (BF16, BF16, BF16))
    assert done.flops == 2 * 8 * 64 * 16 * 2


def test_cktile_stages():
    dims = [[8, 64], [4, 32, 64], [8, 2, 16], [1], [1], [1], []]
    types, values = [BF16, BF16, BF16, "int", "int", "int", "Scalar"], [""] * 6 + ["2"]
    done = work_of("aiter::moe_cktile2stages_gemm1_ck", dims, types, None, values)
    assert done.flops == stage1(8, 2, 64, 16, 4, (BF16, BF16, BF16)).flops
    dims = [[8, 2, 16], [4, 64, 16], [8, 64], [1], [1], [1], []]
    done = work_of("aiter::moe_cktile2stages_gemm2_ck", dims, types, None, values)
    assert done.bytes == stage2(8, 2, 64, 16, 4, (BF16, BF16, BF16)).bytes


def test_kernel_that_gathers_its_rows():
    # 2·T·k·N·K, and T·k·K read
    dims = [[8, 64], [4, 32, 64], [], [8, 2, 32], [], [], [], [], [8, 2]]
    types = [BF16, BF16, "", BF16, "", "", "", "", "int"]
    op = "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel"
    done = work_of(op, dims, types)
    assert done.flops == 2 * 8 * 2 * 32 * 64
    touched = 4 * (1 - (2 / 4) ** 8)
    assert done.bytes == pytest.approx(2 * (8 * 2 * 64 + touched * 32 * 64 + 8 * 2 * 32))


def fused(op, tokens, k, width, inner, experts, gate, types, pack=1):
    x, w, out = types
    up, down = [experts, gate * inner, width // pack], [experts, width, inner // pack]
    if op.startswith("aiter::fmoe"):
        dims = [[tokens, width], [tokens, width], up, down, [1], [1], [1], [1], []]
        names = [out, x, w, w, "int", F32, "int", "int", "Scalar"]
        return work_of(op, dims, names, None, [""] * 8 + [str(k)])
    return work_of(op, [[tokens, width], up, down, [tokens, k]], [x, w, w, F32])


def test_fused_experts():
    # FLOPs = 2TKNk·(1 + g) + 2TKNk + TK(2k − 1): T = 8, K = 16, N = 12, k = 2, g = 1
    done = fused("vllm::rocm_aiter_fused_moe", 8, 2, 16, 12, 4, 2, (BF16, BF16, BF16))
    assert done.flops == 3 * 2 * 8 * 16 * 12 * 2 + 8 * 16 * 3 == 18_816
    touched = 4 * (1 - (2 / 4) ** 8)
    assert done.bytes == pytest.approx(8 * 16 * 2 + touched * 12 * 16 * 2 * 3 + 8 * 16 * 2)
    assert done.parameters == {"T": 8, "K": 16, "N": 12, "E": 4, "k": 2, "gated": 1}
    done = fused("aiter::fmoe_fp8_blockscale_g1u1", 8, 2, 16, 12, 4, 2, (FP8, FP8, BF16))
    assert done.bytes == pytest.approx(8 * 16 + touched * 12 * 16 * 3 + 8 * 16 * 2)
    assert done.dtype == "fp8_e4m3fn"


def test_packed_int4_weights():
    # eight values an int32: w1 (E, 2N, K/8), w2 (E, K, N/8)
    done = fused("aiter::fmoe_g1u1", 8, 2, 32, 16, 4, 2, (BF16, "int", BF16), pack=8)
    assert done.parameters["N"] == 16
    touched = 4 * (1 - (2 / 4) ** 8)
    assert done.bytes == pytest.approx(8 * 32 * 2 + touched * 16 * 32 * 3 / 2 + 8 * 32 * 2)


sizes = st.integers(1, 4)


@given(st.data(), st.integers(0, 4), sizes, sizes, sizes, st.integers(1, 2))
def test_fused_as_slow(data, tokens, width, inner, experts, gate):
    k = data.draw(st.integers(1, experts))
    op = data.draw(st.sampled_from(["aiter::fmoe_g1u1", "vllm::inplace_fused_experts"]))
    done = fused(op, tokens, k, width, inner, experts, gate, (BF16, FP8, BF16))
    assert done.flops == (
        slow.product(tokens, k, width, gate * inner)
        + slow.product(tokens, k, inner, width)
        + slow.combined(tokens, width, k)
    )
    weights = slow.weights(experts, k, tokens, (gate * inner, width, 1), (width, inner, 1))
    assert done.bytes == pytest.approx(2 * tokens * width * 2 + weights)


@given(st.data(), st.integers(0, 4), sizes, sizes, sizes)
def test_stages_as_slow(data, tokens, width, inner, experts):
    k = data.draw(st.integers(1, experts))
    done = stage1(tokens, k, width, inner, experts, (BF16, FP8, F32))
    assert done.flops == slow.product(tokens, k, width, 2 * inner)
    weights = slow.weights(experts, k, tokens, (2 * inner, width, 1))
    moved = tokens * width * 2 + weights + tokens * k * inner * 4
    assert done.bytes == pytest.approx(moved)
    done = stage2(tokens, k, width, inner, experts, (BF16, FP8, F32))
    assert done.flops == slow.product(tokens, k, inner, width)
    weights = slow.weights(experts, k, tokens, (width, inner, 1))
    moved = tokens * k * inner * 2 + weights + tokens * width * 4
    assert done.bytes == pytest.approx(moved)


OPS = ["vllm::rocm_aiter_fused_moe", "aiter::fmoe_g1u1", "aiter::ck_moe_stage1"]
OPS += ["aiter::moe_cktile2stages_gemm2_ck"]


@given(
    st.sampled_from(OPS),
    st.lists(st.lists(st.integers(-2, 4), max_size=3), max_size=9),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", FP4]), max_size=9),
    st.lists(st.sampled_from(["", "0", "1", "-7", "1e300", "nan"]), max_size=9),
)
def test_any_inputs_are_valued_or_explained(op, dims, types, values):
    done = work_of(op, dims, types, None, values)
    assert (done.why is None) == (done.flops is not None and done.bytes is not None)
    assert done.flops is None or done.flops >= 0


X, UP, DOWN, CHOICE = [8, 16], [4, 24, 16], [4, 16, 12], [8, 2]
TYPES = [BF16, BF16, BF16, F32]


@pytest.mark.parametrize(
    ("dims", "types", "why"),
    [
        ([], [], NO_INPUTS),
        ([X, UP, DOWN], TYPES[:3], NO_SHAPE),
        ([X, UP, DOWN, []], [*TYPES[:3], ""], NO_SHAPE),
        ([X, UP, DOWN, [9, 2]], TYPES, MISFIT),
        ([X, UP, DOWN, [8, 5]], TYPES, MISFIT),
        ([X, UP, DOWN, [8, 0]], TYPES, MISFIT),
        ([X, [4, 25, 16], DOWN, CHOICE], TYPES, MISFIT),
        ([X, [5, 24, 16], DOWN, CHOICE], TYPES, MISFIT),
        ([X, [4, 24, 0], DOWN, CHOICE], TYPES, MISFIT),
        ([X, [0, 24, 16], [0, 16, 12], CHOICE], TYPES, MISFIT),
        ([X, UP, [4, 16, 0], CHOICE], TYPES, MISFIT),
        ([[-8, 16], UP, DOWN, CHOICE], TYPES, MISFIT),
    ],
)
def test_unknown_with_a_reason(dims, types, why):
    done = work_of("vllm::rocm_aiter_fused_moe", dims, types, None, None if dims else [""])
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_without_types_flops_are_known():
    done = work_of("vllm::rocm_aiter_fused_moe", [X, UP, DOWN, CHOICE])
    assert (done.flops, done.bytes, done.why) == (18_816, None, NO_TYPE)


def test_without_the_number_of_choices():
    dims = [X, X, UP, DOWN, [1], [1], [1], [1], []]
    types = [BF16] * 4 + ["int", F32, "int", "int", "Scalar"]
    assert work_of("aiter::fmoe_g1u1", dims, types).why == NO_VALUE
