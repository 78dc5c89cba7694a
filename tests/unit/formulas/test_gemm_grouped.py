from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_gemm as slow

BF16, F32, F8 = "c10::BFloat16", "float", "c10::Float8_e4m3fn"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_SHAPE = "the shape of an input it depends on was not recorded"
LISTS = ["TensorList", "TensorList"]
G, M, K, N = 4, 64, 32, 16


@pytest.mark.parametrize("weight", [[G, K, N], [G, N, K]])
@pytest.mark.parametrize("op", ["primus_turbo::grouped_gemm", "grouped_gemm::gmm"])
def test_all_rows_against_the_weights_of_their_group(op, weight):
    done = work_of(op, [[M, K], weight, [G]], [BF16, BF16, "long int"])
    assert done.flops == 2 * M * N * K == 65_536
    assert done.bytes == 2 * (M * K + G * K * N + M * N) == 10_240
    assert done.parameters == {"G": G, "M": M, "N": N, "K": K}


def test_output_has_the_type_of_the_rows_where_the_peer_takes_the_weights():
    done = work_of("primus_turbo::grouped_gemm_impl", [[M, K], [G, K, N], [G]], [BF16, F8, "long"])
    assert done.bytes == 2 * M * K + G * K * N + 2 * M * N  # the peer: M·N bytes of output


@pytest.mark.parametrize(
    ("a", "b", "flops", "elements", "g"),
    [
        ([M, K], [G, K, N], 2 * M * N * K, M * K + G * K * N + M * N, G),
        ([G, M, K], [K, N], 2 * M * N * K, G * M * K + K * N + M * N, G),
        ([M, K], [K, N], 2 * M * N * K, M * K + K * N + G * M * N, G),
        ([G, M, K], [G, K, N], G * 2 * M * N * K, G * (M * K + K * N + M * N), G),
    ],
)
def test_forms_of_grouped_mm(a, b, flops, elements, g):
    done = work_of("aten::_grouped_mm", [a, b, [G], [], []], [BF16, BF16, "int", "", ""])
    assert (done.flops, done.bytes) == (flops, 2 * elements)
    assert done.parameters["G"] == g


def test_grouped_mm_of_another_type():
    dims, types = [[M, K], [G, K, N], [G], [], []], [BF16, BF16, "int", "", "Scalar"]
    done = work_of("aten::_grouped_mm", dims, types, None, ["", "", "", "", "6"])
    assert done.bytes == 2 * (M * K + G * K * N) + 4 * M * N


def test_scaled_grouped_mm_writes_bfloat16():
    dims = [[M, K], [G, K, N], [M], [G, N], [G], [], [], [], []]
    types = [F8, F8, F32, F32, "int", "", "", "Scalar", "Scalar"]
    values = [""] * 7 + ["15", "True"]
    done = work_of("aten::_scaled_grouped_mm", dims, types, None, values)
    assert done.flops == 2 * M * N * K
    assert done.bytes == M * K + G * K * N + 4 * (M + G * N) + 2 * M * N


@pytest.mark.parametrize(
    "op",
    [
        "primus_turbo::grouped_gemm_variable_k",
        "primus_turbo_cpp_extension::ck_grouped_gemm_variable_k",
    ],
)
def test_gradients_of_weights(op):
    done = work_of(op, [[M, K], [M, N], [G], [G + 1]], [BF16, BF16, "long int", "long int"])
    assert done.flops == 2 * M * N * K
    assert done.bytes == 2 * (M * K + M * N + G * K * N)
    unknown = work_of(op, [[M, K], [M, N]], [BF16, BF16])
    assert (unknown.flops, unknown.bytes, unknown.why) == (2 * M * N * K, None, NO_SHAPE)


def test_gradients_of_weights_by_a_flag():
    dims, types = [[M, K], [M, N], [G], [], []], [BF16, BF16, "long int", "Scalar", "Scalar"]
    done = work_of("grouped_gemm::gmm", dims, types, None, ["", "", "", "True", "False"])
    assert done.bytes == 2 * (M * K + M * N + G * K * N)


groups = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5
)


@given(groups, st.booleans())
def test_pairs_as_slow(sizes, transposed):
    a = [[m, k] for m, k, _ in sizes]
    b = [[n, k] if transposed and n != k else [k, n] for _, k, n in sizes]
    done = work_of("primus_turbo::grouped_gemm", [a, b], LISTS, element=2)
    assert done.flops == slow.grouped([m for m, _, _ in sizes], [(k, n) for _, k, n in sizes])
    assert done.bytes == sum(2 * (m * k + k * n + m * n) for m, k, n in sizes)
    unknown = work_of("primus_turbo::grouped_gemm", [a, b], LISTS)
    assert (unknown.flops, unknown.bytes, unknown.why) == (done.flops, None, NO_TYPE)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 5), st.integers(0, 5))
def test_rows_as_slow(rows, k, n):
    dims = [[sum(rows), k], [len(rows), k, n], [len(rows)]]
    done = work_of("aten::_grouped_mm", dims, [BF16, BF16, "int"])
    assert done.flops == slow.grouped(rows, [(k, n)] * len(rows))
    moved = slow.moved((sum(rows), k), BF16) + slow.moved((len(rows), k, n), BF16)
    assert done.bytes == moved + slow.moved((sum(rows), n), BF16)


@pytest.mark.parametrize(
    ("dims", "types", "why"),
    [
        ([], [], "its inputs were not recorded: record_shapes was off, or the op states none"),
        ([[M, K]], [BF16], NO_SHAPE),
        ([[M, K], [G, K + 1, N + 100]], [BF16] * 2, MISFIT),
        ([[M, K], [K, N, 2, 2]], [BF16] * 2, MISFIT),
        ([[M, -K], [G, -K, N]], [BF16] * 2, MISFIT),
        ([[-1, K], [G, K, N]], [BF16] * 2, MISFIT),
        ([[[M, K]], [[K, N], [K, N]]], LISTS, MISFIT),
        ([[[M, K]], [[K + 1, N + 9]]], LISTS, MISFIT),
        ([[[M, -K]], [[-K, N]]], LISTS, MISFIT),
        ([[[M, K]], [K, N]], ["TensorList", BF16], NO_SHAPE),
        ([[], []], LISTS, NO_SHAPE),
    ],
)
def test_unknown_with_a_reason(dims, types, why):
    done = work_of("primus_turbo::grouped_gemm", dims, types, None, ["1"])
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_flops_are_known_without_types():
    done = work_of("aten::_grouped_mm", [[M, K], [G, K, N], [G]])
    assert (done.flops, done.bytes, done.why) == (2 * M * N * K, None, NO_TYPE)
