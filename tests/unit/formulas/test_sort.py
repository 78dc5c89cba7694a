from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_copy as places
from reference import formulas_sort as slow

BF16, F32 = "c10::BFloat16", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
NO_FORMULA = "no formula for this form of the op"


def test_sort_moves_values_and_places_but_its_flops_are_unknown():
    done = work_of("aten::sort", [[8, 100], [], []], [BF16, "Scalar", "Scalar"])
    assert (done.flops, done.bytes) == (None, 800 * 2 + 800 * (2 + 8))
    assert done.why == NO_FORMULA


def test_topk():
    dims, types = [[32, 128], [], [], [], []], [F32] + ["Scalar"] * 4
    done = work_of("aten::topk", dims, types, None, ["", "4", "-1", "True", "True"])
    assert (done.flops, done.bytes) == (None, 32 * 128 * 4 + 32 * 4 * (4 + 8))
    assert work_of("aten::topk", dims, types).why == NO_VALUE
    for k, axis in (("129", "-1"), ("-1", "-1"), ("4", "2"), ("4", "-3")):
        done = work_of("aten::topk", dims, types, None, ["", k, axis, "True", "True"])
        assert (done.bytes, done.why) == (None, MISFIT)


def test_topk_of_a_number():
    done = work_of("aten::topk", [[], [], []], [F32, "Scalar", "Scalar"], None, ["", "1", "0"])
    assert done.bytes == 4 + 4 + 8


def test_kthvalue():
    dims, types = [[3, 5], [], [], []], [F32] + ["Scalar"] * 3
    done = work_of("aten::kthvalue", dims, types, None, ["", "2", "0", "False"])
    assert done.bytes == 15 * 4 + 5 * 12


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3)
spellings = st.sampled_from(sorted(places.SIZES))


@given(st.data(), shapes, spellings)
def test_topk_as_slow(data, shape, spelling):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    values = ["", str(k), str(axis)]
    done = work_of("aten::topk", [shape, [], []], [spelling, "Scalar", "Scalar"], None, values)
    assert done.bytes == slow.kept(shape, spelling, axis, k)
    done = work_of("aten::sort", [shape, [], []], [spelling, "Scalar", "Scalar"])
    assert done.bytes == slow.kept(shape, spelling, axis, shape[axis])


@given(shapes, shapes, spellings, st.booleans())
def test_searches_as_slow(shape, among, spelling, is_int32):
    types, flag = [spelling, spelling, "Scalar"], ["", "", str(is_int32)]
    expected = slow.searched(shape, spelling, among, is_int32)
    assert work_of("aten::bucketize", [shape, among, []], types, None, flag).bytes == expected
    assert work_of("aten::searchsorted", [among, shape, []], types, None, flag).bytes == expected
    assert work_of("aten::bucketize", [shape, among, []], types).why == NO_VALUE


@given(
    st.sampled_from(["sort", "topk", "kthvalue", "bucketize", "searchsorted"]),
    st.lists(st.lists(st.integers(-3, 4), max_size=3), max_size=5),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", "TensorList"]), max_size=5),
    st.lists(st.sampled_from(["", "0", "1", "-7", "1e300", "nan", "True", "x"]), max_size=5),
)
def test_any_inputs_are_explained(op, dims, types, values):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert done.flops is None
    assert done.why is not None
    assert done.bytes is None or done.bytes >= 0


@pytest.mark.parametrize(
    ("dims", "types", "why"),
    [([], [], NO_INPUTS), ([[-3, -2]], [F32], MISFIT), ([[3]], None, NO_TYPE)],
)
def test_unknown_with_a_reason(dims, types, why):
    done = work_of("aten::sort", dims, types, None, None if dims else [""])
    assert (done.bytes, done.why) == (None, why)
