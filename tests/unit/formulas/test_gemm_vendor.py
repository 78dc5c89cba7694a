from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_gemm as slow

BF16, F32, F8, I8, U8 = (
    "c10::BFloat16",
    "float",
    "c10::Float8_e4m3fn",
    "signed char",
    "unsigned char",
)
F4, E8 = "c10::Float4_e2m1fn_x2", "c10::Float8_e8m0fnu"
S = "Scalar"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
NO_SHAPE = "the shape of an input it depends on was not recorded"
NO_FORMULA = "no formula for this form of the op"
M, N, K = 64, 48, 32
MNK, MK, NK, MN = M * N * K, M * K, N * K, M * N


def call(op, *inputs):
    """Evaluate a call whose inputs are (shape, type), a value, or None for an absent one."""
    dims, types, values = [], [], []
    for given_input in inputs:
        if isinstance(given_input, tuple):
            dims.append(list(given_input[0]))
            types.append(given_input[1])
            values.append("")
        else:
            dims.append([])
            types.append("" if given_input is None else S)
            values.append("" if given_input is None else str(given_input))
    return work_of(op, dims, types, None, values)


def test_golden_gemm_a16w16():
    # sglang_decode: ((15360, 4096), (24576, 4096), (), ...), Concrete Inputs[3] = '15'
    x, w = ((15360, 4096), BF16), ((24576, 4096), BF16)
    done = call("aiter::gemm_a16w16", x, w, None, 15, None, None, None)
    assert done.flops == 2 * 15_360 * 24_576 * 4_096 == 3_092_376_453_120
    assert done.mib == 1032.0


def test_golden_rocm_unquantized_gemm():
    x, w, bias = ((8192, 2880), BF16), ((5120, 2880), BF16), ((5120,), BF16)
    done = call("vllm::rocm_unquantized_gemm", x, w, bias)
    assert done.flops == 2 * 8_192 * 5_120 * 2_880 + 8_192 * 5_120 == 241_633_853_440
    assert done.mib == 153.134765625


def test_peer_hipblaslt_gemm_fp8():
    # the peer leaves out the two scales of 4 bytes
    inputs = ((20480, 3072), F8), ((1,), F32), ((12288, 3072), F8), ((1,), F32)
    done = call("primus_turbo::hipblaslt_gemm_fp8", *inputs, 5, False, True, False, "TENSORWISE")
    assert done.flops == 2 * 20_480 * 3_072 * 12_288
    assert done.bytes == 20_480 * 3_072 + 12_288 * 3_072 + 2 * 20_480 * 12_288 + 8


def test_peer_hipblaslt_gemm_fp4():
    m, k, n = 16_384, 3_072, 12_288
    inputs = ((m, k // 2), F4), ((m, k // 32), E8), ((n, k // 2), F4), ((n, k // 32), E8)
    done = call("primus_turbo::hipblaslt_gemm_fp4", *inputs, 15, False, True, False, "MX")
    assert done.flops == 2 * m * n * k
    assert done.bytes == (m * k + n * k) / 2 + 2 * m * n + m * k / 32 + n * k / 32
    assert done.dtype == "fp4_e2m1x2"


A, W = ((M, K), BF16), ((N, K), BF16)
A8, W8 = ((M, K), F8), ((N, K), F8)
SA, SW = ((M, 1), F32), ((1, N), F32)
OUT, BIAS = ((M, N), BF16), ((N,), BF16)
SCALES = 4 * (M + N)
EIGHT = MK + NK + SCALES


@pytest.mark.parametrize(
    ("op", "inputs", "flops", "moved"),
    [
        ("vllm::default_unquantized_gemm", (A, W, None), 0, 2 * (MK + NK + MN)),
        ("vllm::default_unquantized_gemm", (A, W, BIAS), MN, 2 * (MK + NK + MN + N)),
        ("aiter::gemm_a16w16_atomic_", (A, W, 6, None, None), 0, 2 * (MK + NK) + 4 * MN),
        (
            "aiter::_gemm_a16w16_asm",
            (A, W, ((M, N), F32), ((16, 64), "unsigned int"), BIAS, None, None, False),
            MN,
            2 * (MK + NK + N) + 4 * MN,
        ),
        ("sglang_profiler::gemm_kernels_flydsl_hgemm", (A, W, BIAS), MN, 2 * (MK + NK + MN + N)),
        ("sglang_profiler::gemm_kernels_flydsl_hgemm", (A, W, OUT), 0, 2 * (MK + NK + MN)),
        ("_rocm_C::LLMM1", (W, A, 4), 0, 2 * (MK + NK + MN)),
        ("_rocm_C::LLMM1", (W, A, OUT, 4), 0, 2 * (MK + NK + MN)),
        ("_rocm_C::wvSplitK", (W, A, 304), 0, 2 * (MK + NK + MN)),
        ("_rocm_C::wvSplitK", (W, A, BIAS, 304), MN, 2 * (MK + NK + MN + N)),
        ("aiter::wvSpltK", (W, A, OUT, 64, 304), 0, 2 * (MK + NK + MN)),
        (
            "_rocm_C::wvSplitKQ",
            (W8, A8, OUT, ((1,), F32), ((1,), F32), 304),
            0,
            MK + NK + 2 * MN + 8,
        ),
        (
            "_rocm_C::wvSplitKQ",
            (W8, A8, BIAS, OUT, ((1,), F32), ((1,), F32), 304),
            MN,
            MK + NK + 2 * MN + 8 + 2 * N,
        ),
        ("hipb_mm", (A, ((K, N), BF16), -1, None, None), 0, 2 * (MK + NK + MN)),
        ("hipb_mm", (A, W, -1, BIAS, 6), MN, 2 * (MK + NK + N) + 4 * MN),
        ("aiter::gemm_a8w8_ck", (A8, W8, SA, SW, OUT, None, 0), 0, EIGHT + 2 * MN),
        ("aiter::gemm_a8w8_ck", (A8, W8, SA, SW, OUT, BIAS, 0), MN, EIGHT + 2 * MN + 2 * N),
        ("aiter::gemm_a8w8_asm", (A8, W8, SA, SW, OUT, "k", BIAS), MN, EIGHT + 2 * MN + 2 * N),
        ("aiter::gemm_a8w8_bpreshuffle_ck", (A8, W8, SA, SW, ((M, N), F32)), 0, EIGHT + 4 * MN),
        ("aiter::gemm_a8w8_bpreshuffle", (A8, W8, SA, SW, None, 5, False), 0, EIGHT + 2 * MN),
        ("aiter::flatmm_a8w8_blockscale_asm", (A8, W8, SA, SW, OUT), 0, EIGHT + 2 * MN),
        (
            "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm",
            (A8, W8, OUT, SA, SW, BIAS),
            MN,
            EIGHT + 2 * MN + 2 * N,
        ),
        ("vllm::rocm_aiter_gemm_a8w8_blockscale", (A8, W8, SA, SW, 6), 0, EIGHT + 4 * MN),
        (
            "vllm::w8a8_triton_block_scaled_mm_func",
            (A8, W8, SA, SW, "[128, 128]", 15),
            0,
            EIGHT + 2 * MN,
        ),
        ("sglang_profiler::fp8_utils_gemm_a8w8_blockscale", (A8, W8, SA, SW), 0, EIGHT + 2 * MN),
        (
            "bitsandbytes::int8_linear_matmul",
            (((M, K), I8), ((N, K), I8)),
            0,
            MK + NK + 4 * MN,
        ),
        (
            "bitsandbytes::int8_scaled_mm",
            (((M, K), I8), ((N, K), I8), ((M,), F32), ((N,), F32), None, None),
            0,
            MK + NK + SCALES + 2 * MN,
        ),
        (
            "bitsandbytes::gemv_4bit",
            (((1, 1, K), BF16), ((NK // 2, 1), U8), f"[{N}, {K}]", ((24,), F32), ((16,), F32), 64),
            None,
            2 * K + NK // 2 + 4 * 24 + 4 * 16 + 2 * N,
        ),
        ("aten::_int_mm", (((M, K), I8), ((K, N), I8)), 0, MK + NK + 4 * MN),
        (
            "aten::_weight_int8pack_mm",
            (A, ((N, K), I8), ((N,), BF16)),
            0,
            2 * MK + NK + 2 * N + 2 * MN,
        ),
        (
            "aten::_weight_int4pack_mm",
            (A, ((N // 8, K // 32, 32, 1), "int"), 32, ((K // 32, N, 2), BF16)),
            0,
            2 * MK + NK // 2 + 2 * (K // 32) * N * 2 + 2 * MN,
        ),
        (
            "_C::awq_gemm",
            (A, ((K, N // 8), "int"), ((1, N), BF16), ((1, N // 8), "int"), 8),
            0,
            2 * MK + NK // 2 + 2 * N + N // 2 + 2 * MN,
        ),
        (
            "_C::gptq_gemm",
            (A, ((K // 8, N), "int"), ((1, N // 8), "int"), ((1, N), BF16), ((K,), "int"), True, 4),
            0,
            2 * MK + NK // 2 + N // 2 + 2 * N + 4 * K + 2 * MN,
        ),
        (
            "_C::ggml_mul_mat_a8",
            (((N, 18), U8), A, 2, N),
            0,
            18 * N + 2 * MK + 2 * MN,
        ),
        (
            "_C::cutlass_scaled_mm",
            (OUT, A8, ((K, N), F8), SA, SW, BIAS),
            MN,
            EIGHT + 2 * MN + 2 * N,
        ),
        (
            "_C::cutlass_scaled_mm_azp",
            (OUT, ((M, K), I8), ((K, N), I8), SA, SW, ((N,), "int"), None, BIAS),
            MN,
            EIGHT + 2 * MN + 4 * N + 2 * N,
        ),
        (
            "_C::cutlass_scaled_fp4_mm",
            (OUT, ((M, K // 2), U8), ((N, K // 2), U8), ((M, 2), F8), ((N, 2), F8), ((1,), F32)),
            0,
            (MK + NK) // 2 + 2 * M + 2 * N + 4 + 2 * MN,
        ),
        ("trtllm::cublas_scaled_mm", (A8, ((K, N), F8), SA, SW, None, 5), 0, EIGHT + 2 * MN),
        (
            "sgl_kernel::fp8_scaled_mm",
            (A8, ((K, N), F8), SA, SW, 15, BIAS),
            MN,
            EIGHT + 2 * MN + 2 * N,
        ),
        ("sgl_kernel::dsv3_router_gemm", (((M, N), F32), A, W), 0, 2 * (MK + NK) + 4 * MN),
        ("sgl_kernel::dsv3_fused_a_gemm", (OUT, A, ((K, N), BF16)), 0, 2 * (MK + NK + MN)),
        ("fbgemm::f8f8bf16", (A8, W8, ((1,), F32), True), 0, MK + NK + 4 + 2 * MN),
        ("fbgemm::f8f8bf16_rowwise", (A8, W8, SA, SW, None, True), 0, EIGHT + 2 * MN),
        ("_Linear_yfwd_mm", (A8, ((K, N), F8)), 0, MK + NK + 2 * MN),
    ],
)
def test_declarations(op, inputs, flops, moved):
    done = call(op, *inputs)
    products = 2 * NK if flops is None else 2 * MNK + flops
    assert (done.flops, done.bytes, done.why) == (products, moved, None)


FP4_A, FP4_W = ((M, K // 2), F4), ((N, K // 2), F4)
FP4_SA, FP4_SW = ((256, 1), E8), ((N, 1), E8)  # the scales of a are padded to 256 rows
FOUR = (MK + NK) // 2 + M + N


@pytest.mark.parametrize(
    ("op", "inputs", "flops", "moved"),
    [
        ("aiter::gemm_a4w4", (FP4_A, FP4_W, FP4_SA, FP4_SW, OUT, None), 0, FOUR + 2 * MN),
        (
            "aiter::gemm_a4w4",
            (FP4_A, FP4_W, FP4_SA, FP4_SW, ((1, N), F32), 6, 1.0, 0.0, True),
            MN,
            FOUR + 4 * MN + 4 * N,
        ),
        ("aiter::_gemm_a4w4_asm", (FP4_A, FP4_W, FP4_SA, FP4_SW, OUT, "k"), 0, FOUR + 2 * MN),
        ("aiter::gemm_a4w4_blockscale", (FP4_A, FP4_W, FP4_SA, FP4_SW, OUT, 0), 0, FOUR + 2 * MN),
        ("aiter::gemm_afp4wfp4_", (FP4_A, FP4_W, FP4_SA, FP4_SW, 15, None), 0, FOUR + 2 * MN),
    ],
)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_four_bit_values(op, inputs, flops, moved, as_bytes):
    if as_bytes:
        inputs = tuple((i[0], U8) if isinstance(i, tuple) and i[1] == F4 else i for i in inputs)
    done = call(op, *inputs)
    assert (done.flops, done.bytes, done.why) == (2 * MNK + flops, moved, None)
    assert done.parameters["K"] == K
    assert done.dtype == "fp4_e2m1x2"


def test_dynamic_quantisation_where_the_peer_counts_k_bytes_of_packed_weights():
    # its weights: N·K at the type of x; they are N·K/2 bytes
    x, w = ((M, K), BF16), ((N, K // 2), U8)
    done = call("vllm::gemm_with_dynamic_quant", x, w, ((N, 1), E8), False, 15, None)
    assert (done.flops, done.bytes) == (2 * MNK, 2 * MK + NK // 2 + N + 2 * MN)
    x = ((M, K // 2), U8)
    done = call("vllm::gemm_with_dynamic_quant", x, w, ((N, 1), E8), False, 15, ((M, 1), E8))
    assert (done.flops, done.bytes) == (2 * MNK, MK // 2 + NK // 2 + N + M + 2 * MN)


SCALED = A8, ((K, N), F8), ((1,), F32), ((1,), F32)


@pytest.mark.parametrize(("number", "each"), [(15, 2), (5, 2), (6, 4), (24, 1)])
def test_scaled_mm_writes_the_type_asked_for(number, each):
    done = call("aten::_scaled_mm", *SCALED, None, None, number, False)
    assert (done.flops, done.bytes) == (2 * MNK, MK + NK + 8 + each * MN)


def test_scaled_mm_adds_its_bias_which_the_peer_never_sees():
    done = call("aten::_scaled_mm", *SCALED, BIAS, None, 15, False)
    assert (done.flops, done.bytes) == (2 * MNK + MN, MK + NK + 8 + 2 * N + 2 * MN)


def test_scaled_mm_without_a_type_writes_that_of_its_input():
    done = call("aten::_scaled_mm", *SCALED, None, ((1,), F32), None, False)
    assert done.bytes == MK + NK + 12 + MN
    dims, types = [[M, K], [K, N], [1], [1], [], [], [], []], [F8, F8, F32, F32, "", "", "", S]
    done = work_of("aten::_scaled_mm", dims, types)
    assert (done.flops, done.bytes, done.why) == (2 * MNK, None, NO_TYPE)


def test_scaled_mm_as_older_versions_declare_it():
    scale = ((1,), F32)
    done = call("aten::_scaled_mm", *SCALED[:2], BIAS, 15, scale, scale, None, False)
    assert (done.flops, done.bytes) == (2 * MNK + MN, MK + NK + 8 + 2 * N + 2 * MN)


def test_scaled_mm_of_packed_values():
    done = call("aten::_scaled_mm", ((M, K // 2), F4), ((K // 2, N), F4), SA, SW, None, None, 15)
    assert done.flops == 2 * MNK
    assert done.bytes == (MK + NK) // 2 + SCALES + 2 * MN


def test_lists_of_scales_have_no_type():
    dims = [[M, K], [K, N], [[1]], [], [], [[1]], [], [], [], []]
    types = [F8, F8, "TensorList", "ScalarList", "", "TensorList", "ScalarList", "", "", S]
    values = ["", "", "", "[0]", "", "", "[0]", "", "", "15"]
    done = work_of("aten::_scaled_mm_v2", dims, types, None, values)
    assert (done.flops, done.bytes, done.why) == (2 * MNK, None, NO_TYPE)


@pytest.mark.parametrize(
    ("trans_a", "trans_b"), [(False, True), (False, False), (True, False), (True, True)]
)
@pytest.mark.parametrize("trans_c", [False, True])
def test_flags(trans_a, trans_b, trans_c):
    a = ((K, M) if trans_a else (M, K), F8)
    b = ((N, K) if trans_b else (K, N), F8)
    op = "primus_turbo_cpp_extension::hipblaslt_gemm_fp8"
    done = call(op, a, ((1,), F32), b, ((1,), F32), 15, trans_a, trans_b, trans_c, "ROWWISE")
    assert (done.flops, done.bytes) == (2 * MNK, MK + NK + 8 + 2 * MN)
    m, n = (N, M) if trans_c else (M, N)
    assert done.parameters == {"B": 1, "M": m, "N": n, "K": K, "bias": 0}


def test_flags_must_be_recorded():
    dims, types = [[M, K], [1], [N, K], [1], [], [], [], []], [F8, F32, F8, F32, S, S, S, S]
    done = work_of("primus_turbo::hipblaslt_gemm_fp8", dims, types)
    assert (done.flops, done.bytes, done.why) == (None, None, NO_VALUE)


def transformer_engine(a, b, trans_a, trans_b, *, bias=None, gelu=None, grad=0, into=0):
    """A call of te_gemm_ts: D (N, M) of columns-first operands."""
    none = ((0,), F32)
    d = ((M, N), BF16)
    scale = ((1,), F32)
    return call(
        "tex_ts::te_gemm_ts",
        *(a, scale, 0, 6, trans_a, b, scale, 0, 6, trans_b, d, none, 5, none),
        *(bias or none, 5, gelu or none, grad, ((1024,), U8), 1024, into, 0),
    )


@pytest.mark.parametrize(("trans_a", "trans_b"), [(1, 0), (0, 0), (0, 1), (1, 1)])
def test_transformer_engine(trans_a, trans_b):
    weight = ((N, K) if trans_a else (K, N), U8)
    x = ((K, M) if trans_b else (M, K), U8)
    done = transformer_engine(weight, x, trans_a, trans_b)
    assert (done.flops, done.bytes, done.dtype) == (2 * MNK, MK + NK + 2 * MN, "fp8_e4m3fn")
    assert done.parameters == {"B": 1, "M": M, "N": N, "K": K, "bias": 0}


def test_transformer_engine_epilogues():
    weight, x = ((N, K), U8), ((M, K), U8)
    done = transformer_engine(weight, x, 1, 0, bias=BIAS)
    assert (done.flops, done.bytes) == (2 * MNK + MN, MK + NK + 2 * MN + 2 * N)
    done = transformer_engine(weight, x, 1, 0, gelu=OUT)
    assert (done.flops, done.bytes) == (2 * MNK + 8 * MN, MK + NK + 4 * MN)
    done = transformer_engine(weight, x, 1, 0, gelu=OUT, grad=1)
    assert (done.flops, done.bytes, done.why) == (None, MK + NK + 4 * MN, NO_FORMULA)
    done = transformer_engine(weight, x, 1, 0, into=1)
    assert (done.flops, done.bytes) == (2 * MNK + MN, MK + NK + 4 * MN)


@pytest.mark.parametrize("batch_first", [True, False])
def test_batches(batch_first):
    x = ((3, M, K) if batch_first else (M, 3, K), BF16)
    w = ((3, N, K // 2), U8)
    done = call("aiter::batched_gemm_a16wfp4_", x, w, ((3, N, 1), U8), 15, None, None, False)
    assert done.flops == 3 * 2 * MNK
    assert done.bytes == 3 * (2 * MK + NK // 2 + N + 2 * MN)
    assert done.parameters == {"B": 3, "M": M, "N": N, "K": K, "bias": 0}
    w, out = ((3, N, K), F8), ((3, M, N), F32)
    scales = ((3, M, 1), F32), ((3, 1, N), F32)
    done = call("aiter::batched_gemm_a8w8", (x[0], F8), w, *scales, out, None, 0)
    assert done.bytes == 3 * (MK + NK + 4 * (M + N) + 4 * MN)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(0, 5), st.integers(0, 5))
def test_linear_as_slow(rows, n, k):
    result, flops = slow.multiplied((*rows, k), (k, n))
    done = call("vllm::rocm_unquantized_gemm", ((*rows, k), BF16), ((n, k), BF16), ((n,), F32))
    assert done.flops == flops + (slow.added(result, (n,)) if n else 0)
    moved = slow.moved((*rows, k), BF16) + slow.moved((n, k), BF16) + slow.moved(result, BF16)
    assert done.bytes == moved + slow.moved((n,), F32)


@given(
    st.sampled_from(
        [
            "aten::_scaled_mm",
            "aiter::gemm_a4w4",
            "aiter::gemm_a8w8_ck",
            "primus_turbo::hipblaslt_gemm_fp8",
            "tex_ts::te_gemm_ts",
            "bitsandbytes::gemv_4bit",
            "aten::_weight_int4pack_mm",
            "aiter::batched_gemm_a8w8",
        ]
    ),
    st.lists(st.lists(st.integers(-2, 4), max_size=4), max_size=12),
    st.lists(st.sampled_from(["float", F8, F4, U8, "", S, "wrong", "TensorList"]), max_size=12),
    st.lists(st.sampled_from(["", "1", "True", "-7", "1e300", "nan", "[1, 2]", "x"]), max_size=12),
)
def test_any_inputs_are_valued_or_explained(op, dims, types, values):
    done = work_of(op, dims, types, None, values)
    assert (done.why is None) == (done.flops is not None and done.bytes is not None)


@pytest.mark.parametrize(
    ("op", "dims", "why"),
    [
        ("vllm::rocm_unquantized_gemm", [[M, K]], NO_SHAPE),
        ("vllm::rocm_unquantized_gemm", [[M, K], [K, N]], MISFIT),
        ("vllm::rocm_unquantized_gemm", [[M, K], [N, K], [N + 1]], MISFIT),
        ("vllm::rocm_unquantized_gemm", [[-M, -1, K], [N, K]], MISFIT),
        ("vllm::rocm_unquantized_gemm", [[M, K], [-N, K]], MISFIT),
        ("aiter::batched_gemm_bf16", [[2, M, K], [3, N, K]], MISFIT),
        ("tex_ts::te_gemm_ts", [[M, K], [1]], NO_SHAPE),
        ("aiter::gemm_a4w4_blockscale", [[2, M, K], [N, K]], MISFIT),
    ],
)
def test_unknown_with_a_reason(op, dims, why):
    done = work_of(op, dims, [BF16] * len(dims))
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_flops_are_known_without_types():
    done = work_of("vllm::rocm_unquantized_gemm", [[M, K], [N, K], []])
    assert (done.flops, done.bytes, done.why) == (2 * MNK, None, NO_TYPE)
