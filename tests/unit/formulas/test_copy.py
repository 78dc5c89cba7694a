from __future__ import annotations

import ast
import csv
import math

import pytest
from formula_cases import work_of
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import formulas_copy as slow
from reference import peer

BF16, F32, I64 = "c10::BFloat16", "float", "long int"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
TOO_LARGE = "the product of the shapes is out of range"


def copied(dst, src, types, strides=None):
    strides = None if strides is None else [*strides, []]
    return work_of("aten::copy_", [dst, src, []], [*types, "Scalar"], strides, ["", "", "False"])


def test_copy_of_a_trace_moves_and_computes_nothing():
    # h100 Qwen: the peer says 0.009158656 GFLOP; a copy computes nothing (perf_models C17)
    shape = [16, 559, 1024]
    done = copied(shape, shape, [F32, BF16], [[572416, 1024, 1]] * 2)
    n = 16 * 559 * 1024
    assert n == 9_158_656
    assert (done.flops, done.bytes) == (0, n * 4 + n * 2)
    assert done.mib == 52.40625  # as the peer
    assert done.parameters == {"bytes_read": 2 * n, "bytes_written": 4 * n}
    assert (done.dtype, done.why) == ("fp32", None)


def test_example_of_the_reference():
    done = copied([1, 32256, 1536], [1, 32256, 1536], [F32, BF16])
    assert (done.flops, done.mib) == (0, 283.5)


def test_expanded_source_counts_once():
    # h100 owlv2: (1, 1, 5, 5) long int of strides (5, 5, 0, 1) holds 5 numbers, the peer says 25
    done = copied([1, 1, 5, 5], [1, 1, 5, 5], [BF16, I64], [[25, 25, 5, 1], [5, 5, 0, 1]])
    assert done.bytes == 25 * 2 + 5 * 8 == 90
    assert done.bytes < 25 * 2 + 25 * 8 == 250


def test_bool_copies_have_bytes_where_the_peer_has_none():
    # h100 owlv2: (1, 1, 5, 5) bool from bf16, Data Moved empty
    assert copied([1, 1, 5, 5], [1, 1, 5, 5], ["bool", BF16]).bytes == 25 + 50


def test_source_that_broadcasts():
    assert copied([8, 6], [6], [F32, F32]).bytes == 4 * (48 + 6)
    assert copied([8, 6], [], [F32, I64]).bytes == 4 * 48 + 8


@pytest.mark.parametrize("trace", peer.TRACES)
def test_golden_copies(shared_traces, trace):
    report = peer.report_folder(shared_traces, trace) / "unified_perf_summary.csv"
    with report.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] == "aten::copy_"]
    for row in rows:
        columns = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
        args = [_lists(ast.literal_eval(row[column])) for column in columns]
        done = work_of("aten::copy_", *args)
        assert (done.flops, done.why) == (0, None)
        assert float(row["GFLOPS"]) == pytest.approx(math.prod(args[0][0]) / 1e9)
        is_expanded = any(0 in strides for strides in args[2])
        if row["Data Moved (MB)"] and not is_expanded:
            assert done.mib == pytest.approx(float(row["Data Moved (MB)"]), rel=1e-12)
        else:
            assert is_expanded or "bool" in args[1]
    assert rows or "bert" in trace or "compile" in trace


def _lists(value):
    return [_lists(item) for item in value] if isinstance(value, tuple | list) else value


def test_cat_of_a_trace():
    # h100 Qwen: CatArrayBatchedCopy<OpaqueType<2u>, …>, no model in the peer
    shape = [16, 16, 559, 32]
    args = ([[shape, shape], []], ["TensorList", "Scalar"], [[], []], ["", "-1"])
    done = work_of("aten::cat", *args, element=2)
    n = 2 * 16 * 16 * 559 * 32
    assert (done.flops, done.bytes) == (0, n * 2 + n * 2) == (0, 36_634_624)
    unknown = work_of("aten::cat", *args)
    assert (unknown.flops, unknown.bytes, unknown.why) == (0, None, NO_TYPE)


def test_cat_into_a_tensor_of_another_type():
    dims = [[[3, 4], [5, 4]], [], [0]]
    done = work_of("aten::cat", dims, ["TensorList", "Scalar", F32], None, ["", "0", ""], element=2)
    assert done.bytes == 32 * 2 + 32 * 4


def test_cat_without_the_shapes_of_its_list():
    # hta sampled_rank-0: an old form with the output in front
    dims, types = [[2048, 160, 606], [], []], [F32, "TensorList", "Scalar"]
    done = work_of("aten::cat", dims, types, element=4)
    assert (done.flops, done.bytes, done.why) == (0, None, NO_SHAPE)
    done = work_of("aten::cat", [[], []], ["TensorList", "Scalar"], element=4)
    assert done.why == NO_SHAPE


def test_chunk_cat_pads():
    # (5, 4) to (8, 4), (3,) to (4,)
    dims, types = [[[5, 4], [3]], [], []], ["TensorList", "Scalar", "Scalar"]
    done = work_of("aten::_chunk_cat", dims, types, None, ["", "0", "4"], element=2)
    assert done.parameters == {"bytes_read": 2 * 23, "bytes_written": 2 * 36}
    assert work_of("aten::_chunk_cat", dims, types, element=2).why == NO_VALUE
    done = work_of("aten::_chunk_cat", dims, types, None, ["", "1", "4"], element=2)
    assert (done.bytes, done.why) == (None, MISFIT)


@pytest.mark.parametrize("op", ["roll", "flip", "tril", "triu_", "pixel_shuffle", "rot90"])
def test_rearranged(op):
    done = work_of(f"aten::{op}", [[6, 8], []], [F32, "Scalar"])
    assert (done.flops, done.bytes) == (0, 2 * 48 * 4)


def test_repeat():
    dims, types = [[3, 4], []], [F32, "ScalarList"]
    done = work_of("aten::repeat", dims, types, None, ["", "[2, 1, 5]"])
    assert done.bytes == 4 * (12 + 120)
    assert work_of("aten::tile", dims, types, None, ["", "[3]"]).bytes == 4 * (12 + 36)
    assert work_of("aten::repeat", dims, types, None, ["", "[0, 1]"]).bytes == 0
    for values in (None, ["", ""], ["", "[-2, 1]"], ["", "x"]):
        done = work_of("aten::repeat", dims, types, None, values)
        assert (done.flops, done.bytes, done.why) == (0, None, NO_VALUE)


def test_split_copy_and_unfold_backward():
    done = work_of("aten::split_with_sizes_copy", [[10, 4], [], []], [BF16, "ScalarList", "Scalar"])
    assert done.bytes == 2 * 40 * 2
    dims, types = [[3, 4], [], [], [], []], [F32, "ScalarList", "Scalar", "Scalar", "Scalar"]
    values = ["", "[9]", "0", "4", "2"]
    assert work_of("aten::unfold_backward", dims, types, None, values).bytes == 4 * (12 + 9)


def test_reading_a_value_on_the_host():
    # h100 Qwen: aten::is_nonzero > aten::item > aten::_local_scalar_dense, one bool
    for op in ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"):
        done = work_of(op, [[]], ["bool"], [[]], [""])
        assert (done.flops, done.bytes) == (0, 1)
    assert work_of("aten::item", [[1, 1]], [I64]).bytes == 8
    assert work_of("aten::item", [[2]], [I64]).why == MISFIT
    assert work_of("aten::item", [[]]).why == NO_TYPE


shapes = st.lists(st.integers(0, 4), max_size=4)
spellings = st.sampled_from(sorted(slow.SIZES))


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


@given(st.data(), shapes, spellings, spellings)
def test_copies_as_slow(data, dst, to, of):
    src = [1 if data.draw(st.booleans()) else size for size in dst]
    src = src[data.draw(st.integers(0, len(src))) :]
    strides = [data.draw(laid_out(dst)), data.draw(laid_out(src))]
    done = copied(dst, src, [to, of], strides)
    assert done.flops == 0
    assert done.bytes == slow.moved(dst, to, strides[0]) + slow.moved(src, of, strides[1])


@given(shapes, shapes)
def test_what_does_not_broadcast_is_no_copy(dst, src):
    done = copied(dst, src, [F32, F32])
    assert (done.why is None) == slow.broadcasts(src, dst)
    assert (done.why is None) or (done.bytes, done.why) == (None, MISFIT)


@given(st.data(), st.integers(1, 3), st.sampled_from([1, 2, 4, 8, 16]))
def test_cat_as_slow(data, dims, element):
    axis = data.draw(st.integers(-dims, dims - 1))
    base = data.draw(st.lists(st.integers(0, 4), min_size=dims, max_size=dims))
    parts = []
    for _ in range(data.draw(st.integers(1, 4))):
        part = list(base)
        part[axis] = data.draw(st.integers(0, 5))
        parts.append(part)
    args = (["TensorList", "Scalar"], None, ["", str(axis)])
    done = work_of("aten::cat", [parts, []], *args, element=element)
    assert done.bytes == 2 * slow.joined(parts, axis) * element


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=2, max_size=3), min_size=1, max_size=3),
    st.integers(0, 1),
    st.integers(1, 7),
)
def test_chunk_cat_as_slow(parts, axis, chunks):
    values = ["", str(axis), str(chunks)]
    types = ["TensorList", "Scalar", "Scalar"]
    done = work_of("aten::_chunk_cat", [parts, [], []], types, None, values, element=2)
    assert done.parameters["bytes_written"] == 2 * slow.joined_in_chunks(parts, axis, chunks)


@given(shapes, st.lists(st.integers(1, 3), max_size=2), spellings)
def test_repeat_as_slow(shape, more, spelling):
    times = [*more, *(1 + n % 2 for n in range(len(shape)))]
    values = ["", str(times)]
    done = work_of("aten::repeat", [shape, []], [spelling, "ScalarList"], None, values)
    out = slow.repeated(shape, times)
    assert done.bytes == slow.moved(shape, spelling) + out * slow.SIZES[spelling]


@given(
    st.sampled_from(["copy_", "cat", "repeat", "roll", "item", "split_copy", "_chunk_cat"]),
    st.lists(
        st.one_of(
            st.lists(st.integers(-3, 4), max_size=4),
            st.lists(st.lists(st.integers(-3, 4), max_size=3), max_size=3),
        ),
        max_size=4,
    ),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", "TensorList"]), max_size=4),
    st.lists(st.sampled_from(["", "0", "-7", "1e300", "[2]", "[-1, 2]", "x"]), max_size=4),
)
def test_any_inputs_are_valued_or_explained(op, dims, types, values):
    done = work_of(f"aten::{op}", dims, types, None, values, element=2)
    assert (done.why is None) == (done.bytes is not None)
    assert done.flops == 0
    assert done.bytes is None or done.bytes >= 0


@pytest.mark.parametrize(
    ("dims", "types", "why"),
    [
        ([], [], NO_INPUTS),
        ([[3, 4]], [F32], NO_SHAPE),
        ([[3, 4], []], [F32, ""], NO_SHAPE),
        ([[3, 4], []], [F32, "Scalar"], MISFIT),
        ([[-3, -4], [-3, -4]], [F32, F32], MISFIT),
        ([[3, 4], [3, 4]], None, NO_TYPE),
        ([[3, 4], [3, 4]], [F32, "wrong"], NO_TYPE),
        ([[2**40, 2**40], [1]], [F32, F32], TOO_LARGE),
    ],
)
def test_unknown_with_a_reason(dims, types, why):
    done = work_of("aten::copy_", dims, types, None, None if dims else [""])
    assert (done.flops, done.bytes, done.why) == (0, None, why)


@given(st.integers(2, 9), st.integers(2, 9))
def test_sizes_must_agree(a, b):
    assume(a != b)
    assert copied([a], [b], [F32, F32]).why == MISFIT
