from __future__ import annotations

import pytest
from formula_cases import table, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_copy as places
from reference import formulas_indexing as slow

from tracehouse.formulas.registry import model_of

BF16, F32, I64 = "c10::BFloat16", "float", "long int"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"


def test_embedding_of_a_trace_reads_rows_not_the_table():
    # h100 Qwen: weight (151936, 1024) bf16, indices (16, 559) long int
    dims, types = [[151936, 1024], [16, 559], [], [], []], [BF16, I64, *["Scalar"] * 3]
    done = work_of("aten::embedding", dims, types, None, ["", "", "-1", "False", "False"])
    n = 16 * 559 * 1024
    assert (done.flops, done.bytes) == (0, n * 2 + 16 * 559 * 8 + n * 2) == (0, 36_706_176)
    assert done.bytes < 151_936 * 1024 * 2
    inside = work_of("aten::index_select", [[151936, 1024], [], [8944]], [BF16, "Scalar", I64])
    assert inside.why == NO_VALUE
    args = ([[151936, 1024], [], [8944]], [BF16, "Scalar", I64], None, ["", "0", ""])
    assert work_of("aten::index_select", *args).bytes == done.bytes


def test_a_small_table_is_read_once():
    # h100 bert: token types, 141 rows from a table of 2: 2·512 numbers are read, 141·512 written
    dims, types = [[2, 512], [1, 141], [], [], []], [BF16, I64, *["Scalar"] * 3]
    done = work_of("aten::embedding", dims, types)
    assert done.parameters == {"bytes_read": 1024 * 2 + 141 * 8, "bytes_written": 141 * 512 * 2}


def test_gather_of_traces():
    # sglang: index (32, 4096) of strides (1, 0) holds 32 numbers
    dims = [[151936, 4096], [], [32, 4096], [], [32, 4096]]
    types = [BF16, "Scalar", I64, "Scalar", BF16]
    strides = [[4096, 1], [], [1, 0], [], [4096, 1]]
    done = work_of("aten::gather", dims, types, strides, ["", "0", "", "False", ""])
    assert done.bytes == 2 * 32 * 4096 * 2 + 32 * 8
    # hta sampled_rank-0: 8,856,548 picks from a table of 50
    done = work_of("aten::gather", [[50], [], [8856548], []], [F32, "Scalar", "long", "Scalar"])
    assert done.bytes == 50 * 4 + 8_856_548 * 8 + 8_856_548 * 4


def test_index_select_along_a_dimension():
    dims, types = [[4, 5, 6], [], [3]], [F32, "Scalar", I64]
    for axis, rest in (("0", 30), ("1", 24), ("-1", 20), ("-3", 30)):
        done = work_of("aten::index_select", dims, types, None, ["", axis, ""])
        assert done.bytes == 2 * 3 * rest * 4 + 24
    for axis in ("3", "-4", "1e300"):
        done = work_of("aten::index_select", dims, types, None, ["", axis, ""])
        assert (done.flops, done.bytes, done.why) == (0, None, MISFIT)


def test_index_without_its_indices():
    # h100 owlv2: aten::index ((5184, 4), ()), ('c10::BFloat16', ''): the list is not recorded
    done = work_of("aten::index", [[5184, 4], []], [BF16, ""], [[4, 1], []], ["", ""])
    assert (done.flops, done.bytes, done.why) == (0, None, NO_SHAPE)


def test_index_with_a_list():
    done = work_of("aten::index", [[100, 64], [[10]]], [F32, "TensorList"])
    assert done.bytes == 2 * 10 * 64 * 4 + 10 * 8
    done = work_of("aten::index", [[100, 64, 3], [[10, 1], [7]]], [F32, "TensorList"])
    assert done.bytes == 2 * 70 * 3 * 4 + 17 * 8


@pytest.mark.parametrize("members", [[[6]], [[6, 20]], [[]], [[3], [20]]])
def test_what_may_be_a_mask_has_no_size(members):
    done = work_of("aten::index", [[6, 20], members], [F32, "TensorList"])
    assert (done.flops, done.bytes, done.why) == (0, None, NO_VALUE)


@pytest.mark.parametrize("members", [[[3], [4]], [[3], [3], [3]], [[-3]], [[2, 3], [2, 2]]])
def test_indices_must_fit(members):
    done = work_of("aten::index", [[50, 60], members], [F32, "TensorList"])
    assert (done.bytes, done.why) == (None, MISFIT)


def test_scatter_add_of_a_trace():
    # hta sampled_rank-0: self (50,), index and src (8856548,); 50 places are changed
    n = 8_856_548
    dims, types = [[50], [], [n], [n]], [F32, "Scalar", "long", F32]
    done = work_of("aten::scatter_add_", dims, types)
    assert (done.flops, done.bytes) == (0, n * 8 + n * 4 + 2 * 50 * 4)


def test_scatter_of_a_trace():
    # hta sampled_rank-1: self (2, 2048, 1), index and src (1, 2048, 1)
    dims = [[2, 2048, 1], [], [1, 2048, 1], [1, 2048, 1]]
    done = work_of("aten::scatter_", dims, [F32, "Scalar", "long", F32])
    assert done.bytes == 2048 * (8 + 4 + 2 * 4)
    done = work_of("aten::scatter_", [*dims[:3], []], [F32, "Scalar", "long", "Scalar"])
    assert done.bytes == 2048 * (8 + 2 * 4)
    done = work_of("aten::scatter", dims, [F32, "Scalar", "long", F32])
    assert done.bytes == 2048 * (8 + 4) + 2 * 4096 * 4


def test_index_add_and_copy_write_what_the_source_holds():
    dims, types = [[10, 8], [], [3], [3, 8], []], [F32, "Scalar", I64, F32, "Scalar"]
    for op in ("aten::index_add_", "aten::index_copy_", "aten::index_reduce_"):
        assert work_of(op, dims, types).bytes == 3 * 8 + 24 * 4 + 2 * 24 * 4
    for op in ("aten::index_add", "aten::index_copy"):
        assert work_of(op, dims, types).bytes == 3 * 8 + 24 * 4 + 2 * 80 * 4


def test_index_put():
    dims, types = [[100, 8], [[10]], [8], []], [F32, "TensorList", F32, "Scalar"]
    for op in ("aten::index_put_", "aten::_index_put_impl_"):
        assert work_of(op, dims, types).bytes == 10 * 8 + 8 * 4 + 2 * 80 * 4
    # hta sampled_rank-1: the indices are not recorded
    done = work_of("aten::index_put_", [[6, 2048], [], [6744], []], [F32, "", F32, "Scalar"])
    assert (done.flops, done.bytes, done.why) == (0, None, NO_SHAPE)


def test_take_put_and_index_fill():
    assert work_of("aten::take", [[50], [7]], [F32, I64]).bytes == 7 * (8 + 4 + 4)
    dims, types = [[50], [7], [7], []], [F32, I64, F32, "Scalar"]
    assert work_of("aten::put_", dims, types).bytes == 7 * (8 + 4 + 2 * 4)
    dims, types = [[5, 6], [], [2], []], [F32, "Scalar", I64, "Scalar"]
    done = work_of("aten::index_fill_", dims, types, None, ["", "1", "", "0"])
    assert done.bytes == 2 * 8 + 10 * 4


def test_embedding_backward():
    dims, types = [[16, 559, 1024], [16, 559], [], [], []], [BF16, I64, *["Scalar"] * 3]
    values = ["", "", "151936", "-1", "False"]
    done = work_of("aten::embedding_dense_backward", dims, types, None, values)
    assert done.flops == 0
    assert done.bytes == 8944 * 1024 * 2 + 8944 * 8 + 151_936 * 1024 * 2
    done = work_of("aten::embedding_dense_backward", dims, types)
    assert (done.flops, done.bytes, done.why) == (0, None, NO_VALUE)
    done = work_of("aten::embedding_dense_backward", [[3, 4], [5], [], [], []], types, None, values)
    assert done.why == MISFIT


def test_embedding_backward_from_its_forward_call():
    backward, forward = model_of("embedding_bwd"), model_of("embedding")
    slots = backward.slots_of_forward(forward, "aten::embedding", "embedding")
    assert dict(zip(backward.slots, slots, strict=True)) == {
        "grad": -1,
        "index": 1,
        "rows": -1,
        "x": 0,
    }
    assert _evaluated(backward, slots, [[50, 6], [3, 4]], [F32, I64]) == 72 * 4 + 12 * 8 + 300 * 4


def _evaluated(model, slots, dims, types):
    import numpy as np

    from tracehouse.formulas.evaluate import evaluate
    from tracehouse.formulas.inputs import read_inputs

    found, rows = table([{"dims": dims, "types": types}])
    work = evaluate(
        model, read_inputs(found), np.array(rows), np.array([slots]), np.array([np.nan])
    )
    return work.bytes[0]


sizes = st.integers(0, 4)
shapes = st.lists(sizes, min_size=1, max_size=3)
spellings = st.sampled_from(sorted(places.SIZES))
index_types = st.sampled_from(["long int", "int"])


@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 6))
def test_index_select_as_slow(data, shape, picks):
    spelling, index_type = data.draw(spellings), data.draw(index_types)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    strides = [places_of(shape), [], [data.draw(st.integers(0, 2))]]
    if data.draw(st.booleans()):
        strides[0][data.draw(st.integers(0, len(shape) - 1))] = 0
    args = ([shape, [], [picks]], [spelling, "Scalar", index_type], strides, ["", str(axis), ""])
    done = work_of("aten::index_select", *args)
    index = places.moved([picks], index_type, strides[2])
    n = slow.picked(shape, [picks], axis)
    assert done.bytes == slow.read(shape, spelling, strides[0], index, n)


def places_of(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


@given(st.integers(1, 9), sizes, shapes, spellings, index_types)
def test_embedding_as_slow(rows, width, index, spelling, index_type):
    done = work_of("aten::embedding", [[rows, width], index], [spelling, index_type])
    n = slow.picked((rows, width), index, 0)
    assert done.bytes == slow.read(
        (rows, width), spelling, None, places.moved(index, index_type), n
    )
    grad = [*index, width]
    types = [spelling, index_type, "Scalar"]
    values = ["", "", str(rows)]
    done = work_of("aten::embedding_dense_backward", [grad, index, []], types, None, values)
    assert done.bytes == slow.gradient(grad, spelling, places.moved(index, index_type), rows)


@given(st.data(), shapes, spellings)
def test_indices_as_slow(data, result, spelling):
    table_shape = [7, 8, 9]
    indices = []
    for _ in range(data.draw(st.integers(1, 3))):
        shape = [1 if data.draw(st.booleans()) else size for size in result]
        indices.append(shape[data.draw(st.integers(0, len(shape) - 1)) :])
    done = work_of("aten::index", [table_shape, indices], [spelling, "TensorList"])
    n = slow.picked_together(table_shape, indices)
    index = sum(places.moved(shape, "long int") for shape in indices)
    assert done.bytes == slow.read(table_shape, spelling, None, index, n)
    values = [1] if data.draw(st.booleans()) else []
    dims, types = [table_shape, indices, values, []], [spelling, "TensorList", spelling, "Scalar"]
    done = work_of("aten::index_put_", dims, types)
    assert done.bytes == slow.changed(
        table_shape, spelling, index, min(n, 1) * places.SIZES[spelling], n
    )


@given(st.data(), shapes, shapes, spellings)
def test_scatter_as_slow(data, table_shape, index, spelling):
    op = data.draw(st.sampled_from(["scatter_", "scatter_add_", "scatter_reduce_"]))
    dims, types = [table_shape, [], index, index], [spelling, "Scalar", "long int", spelling]
    index_bytes, source = places.moved(index, "long int"), places.moved(index, spelling)
    done = work_of(f"aten::{op}", dims, types)
    assert done.bytes == slow.changed(
        table_shape, spelling, index_bytes, source, places.distinct(index)
    )
    done = work_of(f"aten::{op.removesuffix('_')}", dims, types)
    assert done.bytes == slow.changed_copy(table_shape, spelling, index_bytes, source)


OPS = ["gather", "index", "index_select", "embedding", "take", "index_fill_", "scatter_", "put_"]
OPS += ["index_add", "index_put_", "embedding_dense_backward"]


@given(
    st.sampled_from(OPS),
    st.lists(
        st.one_of(
            st.lists(st.integers(-3, 4), max_size=4),
            st.lists(st.lists(st.integers(-3, 4), max_size=3), max_size=3),
        ),
        max_size=5,
    ),
    st.lists(
        st.sampled_from(["float", "long int", "", "Scalar", "wrong", "TensorList"]), max_size=5
    ),
    st.lists(st.sampled_from(["", "0", "-7", "1e300", "[2]", "nan", "x"]), max_size=5),
)
def test_any_inputs_are_valued_or_explained(op, dims, types, values):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert (done.why is None) == (done.bytes is not None)
    assert done.flops == 0
    assert done.bytes is None or done.bytes >= 0


@pytest.mark.parametrize(
    ("op", "dims", "types", "why"),
    [
        ("aten::embedding", [], [], NO_INPUTS),
        ("aten::embedding", [[9, 4]], [F32], NO_SHAPE),
        ("aten::embedding", [[9, 4], []], [F32, ""], NO_SHAPE),
        ("aten::embedding", [[9], [3]], [F32, I64], MISFIT),
        ("aten::embedding", [[9, 4], [-3]], [F32, I64], MISFIT),
        ("aten::embedding", [[9, 4], [3]], None, NO_TYPE),
        ("aten::embedding", [[9, 4], [3]], [F32, "wrong"], NO_TYPE),
        ("aten::gather", [[9], [], []], [F32, "Scalar", ""], NO_SHAPE),
        ("aten::scatter_", [[9], [], [3]], [F32, "Scalar", I64], NO_SHAPE),
        ("aten::scatter_", [[9], [], [3], [-3]], [F32, "Scalar", I64, F32], MISFIT),
        ("aten::index_add_", [[9], [], [3], []], [F32, "Scalar", I64, ""], NO_SHAPE),
    ],
)
def test_unknown_with_a_reason(op, dims, types, why):
    done = work_of(op, dims, types, None, None if dims else [""])
    assert (done.flops, done.bytes, done.why) == (0, None, why)


@pytest.mark.parametrize(
    "op", ["aten::masked_select", "aten::repeat_interleave", "aten::index_put"]
)
def test_without_a_formula(op):
    from tracehouse.analysis import op_categories

    family = op_categories.load().family(op)
    assert model_of(family).slots_of(op, family) is None
