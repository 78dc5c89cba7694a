from __future__ import annotations

import ast
import csv
import math

import pytest
from formula_cases import MIB, work_of
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import formulas_gemm as slow
from reference import peer

BF16, F32 = "c10::BFloat16", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
TOO_LARGE = "the product of the shapes is out of range"
SCALARS = ["Scalar", "Scalar"]


def test_mm_of_a_trace():
    # h100 Qwen: Input Dims ((8944, 1024), (1024, 2816)), Input Strides ((1024, 1), (1, 1024))
    done = work_of("aten::mm", [[8944, 1024], [1024, 2816]], [BF16] * 2, [[1024, 1], [1, 1024]])
    assert done.flops == 2 * 8_944 * 1_024 * 2_816 == 51_581_550_592
    assert done.bytes == 2 * (8_944 * 1_024 + 1_024 * 2_816 + 8_944 * 2_816) == 74_457_088
    assert done.parameters == {"B": 1, "M": 8944, "N": 2816, "K": 1024, "bias": 0}
    assert (done.dtype, done.why) == ("bf16", None)


def test_addmm_of_a_trace():
    # h100 Qwen: ((1024,), (8944, 1024), (1024, 1024), (), ()), Concrete Inputs (..., '1', '1')
    done = work_of(
        "aten::addmm",
        [[1024], [8944, 1024], [1024, 1024], [], []],
        [BF16] * 3 + SCALARS,
        [[1], [1024, 1], [1, 1024], [], []],
        ["", "", "", "1", "1"],
    )
    assert done.flops == 2 * 8_944 * 1_024 * 1_024 + 8_944 * 1_024 == 18_766_086_144
    assert done.bytes == 2 * (1_024 + 8_944 * 1_024 + 1_024 * 1_024 + 8_944 * 1_024) == 38_733_824
    assert done.parameters["bias"] == 1


def test_bmm_of_a_trace_with_inner_size_1():
    # h100 Qwen: ((1, 32, 1), (1, 1, 559)), float
    done = work_of("aten::bmm", [[1, 32, 1], [1, 1, 559]], [F32] * 2, [[32, 1, 1], [559, 559, 1]])
    assert done.flops == 2 * 32 * 559 == 35_776
    assert done.bytes == 4 * (32 + 559 + 32 * 559) == 73_916


@pytest.mark.parametrize(
    ("op", "dims", "values", "gflop", "mib"),
    [
        ("aten::mm", [[7431, 15360], [15360, 3072]], None, 701.27714304, 351.24609375),
        (
            "aten::addmm",
            [[1536], [32256, 1536], [1536, 1536], [], []],
            ["", "", "", "1", "1"],
            152.252448768,
            193.5029296875,
        ),
        ("aten::bmm", [[16, 5185, 64], [16, 64, 5185]], None, 55.0588928, 840.695343017578),
    ],
)
def test_golden_examples(op, dims, values, gflop, mib):
    types = [BF16 if shape else "Scalar" for shape in dims]
    done = work_of(op, dims, types, None, values)
    assert done.gflop == pytest.approx(gflop, rel=1e-12)
    assert done.mib == pytest.approx(mib, rel=1e-12)


FAMILIES = ("aten::mm", "aten::addmm", "aten::bmm", "aiter::gemm", "vllm::rocm_unquantized_gemm")


@pytest.mark.parametrize("trace", peer.TRACES)
def test_golden_rows(shared_traces, trace):
    report = peer.report_folder(shared_traces, trace) / "unified_perf_summary.csv"
    seen = 0
    with report.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row["name"].startswith(FAMILIES):
                continue
            columns = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
            dims, types, strides, values = (_lists(ast.literal_eval(row[c])) for c in columns)
            done = work_of(row["name"], dims, types, strides, values)
            assert done.gflop == pytest.approx(float(row["GFLOPS"]), rel=1e-9), row["name"]
            assert done.mib == pytest.approx(float(row["Data Moved (MB)"]), rel=1e-9), row["name"]
            params = ast.literal_eval(row["perf_params"])
            for name in ("B", "M", "N", "K", "bias"):
                assert done.parameters[name] == params[name]
            seen += 1
    assert seen > 0 or "torch_compile" in trace


def _lists(value):
    return [_lists(item) for item in value] if isinstance(value, tuple | list) else value


def test_beta_0_leaves_out_what_is_added():
    dims = [[8, 5], [8, 3], [3, 5], [], []]
    types = [F32] * 3 + SCALARS
    with_it = work_of("aten::addmm", dims, types, None, ["", "", "", "0.5", "1"])
    without = work_of("aten::addmm", dims, types, None, ["", "", "", "0", "1"])
    assert (with_it.flops, with_it.bytes) == (2 * 120 + 40, 4 * (24 + 15 + 40 + 40))
    assert (without.flops, without.bytes) == (2 * 120, 4 * (24 + 15 + 40))
    assert (with_it.parameters["bias"], without.parameters["bias"]) == (1, 0)


def test_baddbmm_adds_a_whole_batch_where_the_peer_counts_a_row_of_it():
    # 2·B·M·N·K + B·M·N; bytes of the input: B·M·N, the peer's: B·N
    dims = [[2, 3, 5], [2, 3, 4], [2, 4, 5], [], []]
    done = work_of("aten::baddbmm", dims, [F32] * 3 + SCALARS, None, ["", "", "", "1", "1"])
    assert done.flops == 2 * 2 * 3 * 5 * 4 + 30
    assert done.bytes == 4 * (30 + 24 + 40 + 30)


def test_expanded_input_counts_once():
    # a (5185, 8) bias of stride 0 is 8 numbers
    dims = [[64, 8], [64, 4], [4, 8], [], []]
    strides = [[0, 1], [4, 1], [8, 1], [], []]
    done = work_of("aten::addmm", dims, [F32] * 3 + SCALARS, strides, ["", "", "", "1", "1"])
    assert done.flops == 2 * 64 * 4 * 8 + 64 * 8
    assert done.bytes == 4 * (8 + 256 + 32 + 512)


def test_addbmm_sums_its_batch():
    dims = [[3, 5], [2, 3, 4], [2, 4, 5], [], []]
    done = work_of("aten::addbmm", dims, [F32] * 3 + SCALARS, None, ["", "", "", "1", "1"])
    assert done.flops == 2 * 2 * 3 * 5 * 4 + 15
    assert done.bytes == 4 * (15 + 24 + 40 + 15)


@pytest.mark.parametrize(
    ("op", "dims", "flops", "elements"),
    [
        ("aten::mv", [[3, 4], [4]], 2 * 3 * 4, 12 + 4 + 3),
        ("aten::dot", [[7], [7]], 2 * 7, 7 + 7 + 1),
        ("aten::vdot", [[7], [7]], 2 * 7, 7 + 7 + 1),
        ("aten::ger", [[3], [5]], 2 * 15, 3 + 5 + 15),
        ("aten::addmv", [[3], [3, 4], [4], [], []], 2 * 12 + 3, 3 + 12 + 4 + 3),
        ("aten::addmv", [[1], [3, 4], [4], [], []], 2 * 12 + 3, 1 + 12 + 4 + 3),
        ("aten::addr", [[3, 5], [3], [5], [], []], 2 * 15 + 15, 15 + 3 + 5 + 15),
        ("aten::addr", [[5], [3], [5], [], []], 2 * 15 + 15, 5 + 3 + 5 + 15),
    ],
)
def test_products_with_vectors(op, dims, flops, elements):
    values = ["1" if not shape else "" for shape in dims]
    done = work_of(op, dims, [F32 if s else "Scalar" for s in dims], None, values)
    assert (done.flops, done.bytes, done.why) == (flops, 4 * elements, None)


def test_complex_numbers_cost_4_real_products():
    done = work_of("aten::mm", [[3, 4], [4, 5]], ["c10::complex<float>"] * 2)
    assert done.flops == 8 * 60
    assert done.bytes == 8 * (12 + 20 + 15)
    dims = [[3, 5], [3, 4], [4, 5], [], []]
    done = work_of("aten::addmm", dims, ["c10::complex<double>"] * 3 + SCALARS)
    assert done.flops == 8 * 60 + 2 * 15


def test_out_is_no_input_and_gives_the_type():
    plain = work_of("aten::mm", [[3, 4], [4, 5]], [BF16] * 2)
    out = work_of("aten::mm", [[3, 4], [4, 5], [3, 5]], [BF16, BF16, BF16])
    wide = work_of("aten::mm", [[3, 4], [4, 5], [3, 5]], [BF16, BF16, F32])
    assert out == plain
    assert wide.bytes == plain.bytes + 2 * 15
    dims = [[5], [3, 4], [4, 5], [], [], [3, 5]]
    values = ["", "", "", "1", "1", ""]
    done = work_of("aten::addmm", dims, [F32] * 3 + SCALARS + [F32], None, values)
    assert done.bytes == 4 * (5 + 12 + 20 + 15)


def test_type_of_the_output_as_an_argument():
    done = work_of("aten::mm", [[3, 4], [4, 5], []], [BF16, BF16, "Scalar"], None, ["", "", "6"])
    assert done.bytes == 2 * (12 + 20) + 4 * 15
    values = ["", "", "", "6", "0", "1"]  # beta comes after it
    dims = [[3, 5], [3, 4], [4, 5], [], [], []]
    done = work_of("aten::addmm", dims, [BF16] * 3 + ["Scalar"] * 3, None, values)
    assert (done.flops, done.bytes) == (2 * 60, 2 * (12 + 20) + 4 * 15)
    done = work_of("aten::mm", [[3, 4], [4, 5], []], [BF16, BF16, "Scalar"])
    assert (done.flops, done.bytes, done.why) == (2 * 60, None, NO_VALUE)


@pytest.mark.parametrize(("flag", "each"), [("False", 1), ("True", 8)])
def test_addmm_with_an_activation(flag, each):
    dims, types = [[5], [3, 4], [4, 5], [], [], []], [F32] * 3 + ["Scalar"] * 2 + [""]
    values = ["", "", "", "1", "1", flag]
    done = work_of("aten::_addmm_activation", dims, types, None, values)
    assert done.flops == 2 * 60 + 15 + each * 15
    unknown = work_of("aten::_addmm_activation", dims, types)
    assert (unknown.flops, unknown.bytes, unknown.why) == (None, done.bytes, NO_VALUE)


def test_int8_matrices_stay_int8():
    done = work_of("aten::mm", [[3, 4], [4, 5]], ["signed char"] * 2)
    assert (done.bytes, done.dtype) == (12 + 20 + 15, "int8")


@pytest.mark.parametrize("dims", [[[0, 4], [4, 5]], [[3, 4], [4, 0]], [[0, 0], [0, 0]]])
def test_empty_matrices(dims):
    done = work_of("aten::mm", dims, [F32] * 2)
    assert done.flops == 0
    assert done.why is None


def test_empty_inner_size_writes_zeros():
    done = work_of("aten::mm", [[3, 0], [0, 5]], [F32] * 2)
    assert (done.flops, done.bytes) == (0, 60)


sizes = st.integers(0, 6)
spellings = st.sampled_from(["float", "c10::BFloat16", "double", "c10::complex<float>"])


@st.composite
def laid_out(draw, shape):
    """Strides of a tensor: contiguous, transposed, padded, or repeated along a dimension."""
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1) + draw(st.integers(0, 1))
    if shape and draw(st.booleans()):
        strides[draw(st.integers(0, len(shape) - 1))] = 0
    return strides


@given(st.data(), sizes, sizes, sizes, sizes, spellings)
def test_operands_as_slow(data, batch, m, n, k, spelling):
    op, a, b = data.draw(
        st.sampled_from(
            [
                ("aten::mm", (m, k), (k, n)),
                ("aten::bmm", (batch, m, k), (batch, k, n)),
                ("aten::mv", (m, k), (k,)),
                ("aten::dot", (k,), (k,)),
            ]
        )
    )
    strides = [data.draw(laid_out(a)), data.draw(laid_out(b))]
    done = work_of(op, [list(a), list(b)], [spelling] * 2, strides)
    result, flops = slow.multiplied(a, b, "complex" in spelling)
    assert done.flops == flops
    operands = zip((a, b), strides, strict=True)
    moved = sum(slow.moved(shape, spelling, stride) for shape, stride in operands)
    assert done.bytes == moved + slow.moved(result, spelling)


@given(st.data(), sizes, sizes, sizes, sizes, spellings, st.sampled_from(["0", "1", "-2.5"]))
def test_sums_as_slow(data, batch, m, n, k, spelling, beta):
    op, a, b = data.draw(
        st.sampled_from(
            [
                ("aten::addmm", (m, k), (k, n)),
                ("aten::addmm_", (m, k), (k, n)),
                ("aten::baddbmm", (batch, m, k), (batch, k, n)),
                ("aten::addmv", (m, k), (k,)),
            ]
        )
    )
    is_complex = "complex" in spelling
    result, flops = slow.multiplied(a, b, is_complex)
    kept = data.draw(st.integers(0, len(result)))
    addend = tuple(1 if data.draw(st.booleans()) else size for size in result[len(result) - kept :])
    dims = [list(addend), list(a), list(b), [], []]
    types = [spelling] * 3 + ["Scalar"] * 2
    done = work_of(op, dims, types, None, ["", "", "", beta, "1"])
    moved = slow.moved(a, spelling) + slow.moved(b, spelling) + slow.moved(result, spelling)
    if beta != "0":
        flops += slow.added(result, addend, is_complex)
        moved += slow.moved(addend, spelling)
    assert (done.flops, done.bytes) == (flops, moved)


@given(
    st.sampled_from(["aten::mm", "aten::bmm", "aten::addmm", "aten::addbmm", "aten::dot"]),
    st.lists(st.lists(st.integers(-3, 4), max_size=4), max_size=6),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", "TensorList"]), max_size=6),
)
def test_any_inputs_are_valued_or_explained(op, dims, types):
    done = work_of(op, dims, types)
    assert (done.why is None) == (done.flops is not None and done.bytes is not None)
    assert done.flops is None or done.flops >= 0


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_inner_sizes_must_agree(m, k, inner, n):
    assume(k != inner)
    done = work_of("aten::mm", [[m, k], [inner, n]], [F32] * 2)
    assert (done.flops, done.bytes, done.why) == (None, None, MISFIT)


@pytest.mark.parametrize(
    ("op", "dims", "types", "why"),
    [
        ("aten::mm", [], [], NO_INPUTS),
        ("aten::mm", None, None, NO_INPUTS),
        ("aten::mm", [[3, 4]], [F32], NO_SHAPE),
        ("aten::mm", [[3, 4], []], [F32, F32], NO_SHAPE),
        ("aten::mm", [[3, 4], None], [F32, F32], NO_SHAPE),
        ("aten::mm", [[2, 3, 4], [4, 5]], [F32] * 2, MISFIT),
        ("aten::bmm", [[2, 3, 4], [3, 4, 5]], [F32] * 2, MISFIT),
        ("aten::mm", [[-3, 4], [4, -5]], [F32] * 2, MISFIT),
        ("aten::mm", [[3, -4], [-4, 5]], [F32] * 2, MISFIT),
        ("aten::mm", [[2**40, 2**40], [2**40, 2**40]], [F32] * 2, TOO_LARGE),
        ("aten::mm", [[2**62, 2**62], [2**62, 2**62]], [F32] * 2, TOO_LARGE),
        ("aten::addmm", [[4], [3, 4], [4, 5], [], []], [F32] * 3 + SCALARS, MISFIT),
        ("aten::addmm", [[2, 3, 5], [3, 4], [4, 5], [], []], [F32] * 3 + SCALARS, MISFIT),
        ("aten::mm", [[3, 4], [4, 5], [], []], [F32, F32, *SCALARS], MISFIT),
    ],
)
def test_unknown_with_a_reason(op, dims, types, why):
    if dims is None:
        done = work_of(op, [], [], None, ["1"])
    else:
        done = work_of(op, dims, types)
    assert (done.flops, done.bytes, done.why) == (None, None, why)


@pytest.mark.parametrize(
    "types", [None, ["", F32], [F32, ""], [F32], ["wrong", F32], ["Scalar", F32]]
)
def test_flops_are_known_without_types(types):
    done = work_of("aten::mm", [[3, 4], [4, 5]], types)
    assert (done.flops, done.bytes, done.why) == (2 * 60, None, NO_TYPE)


def test_without_values_beta_is_its_default():
    dims = [[5], [3, 4], [4, 5], [], []]
    done = work_of("aten::addmm", dims, [F32] * 3 + SCALARS)
    assert done.flops == 2 * 60 + 15
    assert not math.isnan(done.bytes)


def test_mib():
    assert work_of("aten::mm", [[512, 512], [512, 512]], [F32] * 2).mib == 3 * 512 * 512 * 4 / MIB
