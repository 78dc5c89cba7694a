from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_inputs as slow

from tracehouse.formulas import inputs as fast
from tracehouse.formulas.dtypes import CODE, NONE, UNKNOWN
from tracehouse.formulas.inputs import (
    A_BOOL,
    A_LIST,
    A_REAL,
    A_TEXT,
    AN_INT,
    NO_VALUE,
    parse_value,
    read_inputs,
)
from tracehouse.schema import tables

COLUMNS = ("input_dims", "member_dims", "input_types", "input_strides", "concrete_inputs")
TYPES = {name: tables.SIGNATURES.schema.field(name).type for name in COLUMNS}


def table(rows):
    return pa.table({c: pa.array([row.get(c) for row in rows], TYPES[c]) for c in COLUMNS})


def maybe(strategy):
    return st.none() | strategy


def lists(of, most=4):
    return st.lists(of, max_size=most)


size = st.integers(-2, 5)
texts = st.sampled_from(
    [
        "",
        "None",
        "True",
        "False",
        "3",
        "-1",
        "0.5",
        "1e5",
        "nan",
        "inf",
        "[]",
        "[1, 2]",
        "[True]",
        "x",
    ]
)
signature = st.fixed_dictionaries(
    {
        "input_dims": maybe(lists(maybe(lists(maybe(size))))),
        "member_dims": maybe(lists(maybe(lists(maybe(lists(maybe(size))))))),
        "input_types": maybe(lists(maybe(st.sampled_from([*slow.names(), "wrong"])))),
        "input_strides": maybe(lists(maybe(lists(maybe(st.integers(-3, 30)))))),
        "concrete_inputs": maybe(lists(maybe(texts))),
    }
)
signatures = st.lists(signature, max_size=6)
places = range(-2, 6)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def compare(read, rows):
    for r, row in enumerate(rows):
        assert fast.count(read, r) == slow.count(row)
        for i in places:
            assert fast.rank(read, r, i) == slow.rank(row, i)
            assert fast.dtype(read, r, i) == slow.dtype(row, i)
            assert fast.is_tensor(read, r, i) == slow.is_tensor(row, i)
            assert same(fast.numel(read, r, i), slow.numel(row, i))
            assert same(fast.touched(read, r, i), slow.touched(row, i))
            assert same(fast.tensor_bytes(read, r, i), slow.tensor_bytes(row, i))
            for d in places:
                assert fast.dim(read, r, i, d) == (slow.dim(row, i, d) if i >= 0 else -1)
            compare_members(read, r, i, slow.member_shapes(row, i))
            compare_values(read, r, i, slow.text(row, i))


def compare_members(read, r, i, shapes):
    assert fast.members(read, r, i) == len(shapes)
    total = 0
    for m in places:
        shape = (shapes[m] or []) if 0 <= m < len(shapes) else None
        dims = None if shape is None else [-1 if s is None else s for s in shape]
        assert fast.member_rank(read, r, i, m) == (-1 if dims is None else len(dims))
        elements = math.nan if dims is None else math.prod(dims)
        assert same(fast.member_numel(read, r, i, m), elements)
        total += 0 if dims is None else elements
        for d in places:
            known = dims is not None and -len(dims) <= d < len(dims)
            assert fast.member_dim(read, r, i, m, d) == (dims[d] if known else -1)
    assert fast.members_numel(read, r, i) == total


def compare_values(read, r, i, text):
    kind, number, items = parse_value(text)
    assert fast.kind(read, r, i) == kind
    assert same(fast.number(read, r, i), number)
    assert fast.items(read, r, i) == (len(items) if kind == A_LIST else -1)
    for k in places:
        known = -len(items) <= k < len(items)
        assert same(fast.item(read, r, i, k), items[k] if known else math.nan)


@given(signatures)
def test_accessors_read_what_the_table_holds(rows):
    compare(read_inputs(table(rows)), rows)


@given(signatures, st.data())
def test_slices_and_chunks(rows, data):
    begin = data.draw(st.integers(0, len(rows)))
    cut = data.draw(st.integers(0, len(rows)))
    chunked = pa.concat_tables([table(rows[:cut]), table(rows[cut:])])
    compare(read_inputs(chunked), rows)
    compare(read_inputs(chunked.slice(begin)), rows[begin:])
    compare(read_inputs(table(rows).slice(begin, 2)), rows[begin : begin + 2])


def test_no_rows():
    read = read_inputs(table([]))
    sections = range(fast.ITEMS)
    assert all(read.section(section).tolist() in ([], [0]) for section in sections)
    assert read.reals.tolist() == []


def test_null_lists_with_values_under_them():
    # Arrow may keep values under a NULL; they are no inputs.
    offsets = pa.array([0, 1, 3], pa.int32())
    inner = pa.array([[7], [8], [9]], pa.list_(pa.int64()))
    hidden = pa.ListArray.from_arrays(offsets, inner, mask=pa.array([True, False]))
    rows = table([{}, {}]).set_column(0, "input_dims", hidden)
    read = read_inputs(rows)
    assert (fast.count(read, 0), fast.count(read, 1)) == (0, 2)
    assert (fast.dim(read, 1, 0, 0), fast.dim(read, 1, 1, 0)) == (8, 9)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_touched_is_exact_unless_windows_overlap(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d] = step
        step *= shape[d] + data.draw(st.integers(0, 2))
    if data.draw(st.booleans()):
        strides[data.draw(st.integers(0, len(shape) - 1))] = 0
    negative = [-s if data.draw(st.booleans()) else s for s in strides]
    spots = itertools.product(*(range(n) for n in shape))
    distinct = {sum(i * s for i, s in zip(at, strides, strict=True)) for at in spots}
    row = {"input_dims": [shape], "input_strides": [negative]}
    assert fast.touched(read_inputs(table([row])), 0, 0) == len(distinct)


def test_overlapping_windows_reach_no_further_than_their_last_element():
    # 100 windows of 10, each a step of 1 further: 109 elements, where the shape says 1000
    row = {"input_dims": [[100, 10]], "input_strides": [[1, 1]]}
    assert fast.touched(read_inputs(table([row])), 0, 0) == 109


def test_absent_and_scalar_inputs():
    row = {
        "input_dims": [[], [], [], [2]],
        "input_types": ["", "Scalar", "float", "float"],
    }
    read = read_inputs(table([row]))
    assert [bool(fast.is_tensor(read, 0, i)) for i in range(5)] == [False, False, True, True, False]
    assert [fast.tensor_bytes(read, 0, i) for i in range(5)] == [0, 0, 4, 8, 0]
    assert fast.dtype(read, 0, 9) == NONE
    assert fast.dtype(read_inputs(table([{"input_dims": [[2]]}])), 0, 0) == UNKNOWN


def test_huge_sizes_do_not_wrap_around():
    row = {"input_dims": [[2**62, 2**62]], "input_types": ["float"], "input_strides": [[2**62, 1]]}
    read = read_inputs(table([row]))
    assert fast.numel(read, 0, 0) == 2.0**124
    assert 0 < fast.tensor_bytes(read, 0, 0) <= 4 * 2.0**124


@pytest.mark.parametrize(
    ("text", "kind", "number", "items"),
    [
        (None, NO_VALUE, math.nan, ()),
        ("", NO_VALUE, math.nan, ()),
        ("None", NO_VALUE, math.nan, ()),
        ("True", A_BOOL, 1, ()),
        ("False", A_BOOL, 0, ()),
        ("0", AN_INT, 0, ()),
        ("-1", AN_INT, -1, ()),
        ("+7", AN_INT, 7, ()),
        ("0.", A_REAL, 0, ()),
        ("0.088388347648318433", A_REAL, 0.08838834764831843, ()),
        ("1e5", A_REAL, 1e5, ()),
        ("nan", A_REAL, math.nan, ()),
        ("inf", A_REAL, math.inf, ()),
        ("-inf", A_REAL, -math.inf, ()),
        ("[]", A_LIST, math.nan, ()),
        ("[ ]", A_LIST, math.nan, ()),
        ("[1, 1]", A_LIST, math.nan, (1, 1)),
        ("[True, False]", A_LIST, math.nan, (1, 0)),
        ("[-1]", A_LIST, math.nan, (-1,)),
        ("[0.5,2.]", A_LIST, math.nan, (0.5, 2)),
        ("[1, None]", A_TEXT, math.nan, ()),
        ("[1,, 2]", A_TEXT, math.nan, ()),
        ("[[1, 2], [3]]", A_TEXT, math.nan, ()),
        ("[", A_TEXT, math.nan, ()),
        ("]", A_TEXT, math.nan, ()),
        ("true", A_TEXT, math.nan, ()),
        ("none", A_TEXT, math.nan, ()),
        ("1_000", A_TEXT, math.nan, ()),
        ("0x10", A_TEXT, math.nan, ()),
        ("(1, 2)", A_TEXT, math.nan, ()),
        ("cuda:0", A_TEXT, math.nan, ()),
        ("9" * 400, A_TEXT, math.nan, ()),
        ("__import__('os').system('x')", A_TEXT, math.nan, ()),
        ("[__import__('os')]", A_TEXT, math.nan, ()),
        ("\ud800", A_TEXT, math.nan, ()),
        (" ", A_TEXT, math.nan, ()),
        ("--1", A_TEXT, math.nan, ()),
        ("\u0663", A_TEXT, math.nan, ()),  # Arabic-Indic digit three
        ("[\u0663]", A_TEXT, math.nan, ()),
        ("\u00b2", A_TEXT, math.nan, ()),  # superscript two, a digit to str.isdigit
        (" 1", A_TEXT, math.nan, ()),
        ("1\n", A_TEXT, math.nan, ()),
    ],
)
def test_parse_value(text, kind, number, items):
    parsed = parse_value(text)
    assert (parsed[0], parsed[2]) == (kind, items)
    assert same(parsed[1], number)


def test_long_lists_are_texts():
    assert parse_value(str([1] * 64))[0] == A_LIST
    assert parse_value(str([1] * 65))[0] == A_TEXT


@given(st.text())
def test_any_text_parses(text):
    kind, number, items = parse_value(text)
    assert kind in (NO_VALUE, A_BOOL, AN_INT, A_REAL, A_LIST, A_TEXT)
    assert math.isnan(number) or kind in (A_BOOL, AN_INT, A_REAL)
    assert not items or kind == A_LIST


@given(st.integers(-(2**62), 2**62), st.floats(allow_nan=False))
def test_numbers_parse_as_written(whole, real):
    assert parse_value(str(whole)) == (AN_INT, float(whole), ())
    assert parse_value(repr(real)) == (A_REAL, real, ())


def test_types_are_looked_up_once_per_spelling():
    rows = [{"input_types": ["float", None, "c10::BFloat16"]}, {"input_types": ["float"]}]
    read = read_inputs(table(rows))
    expected = [CODE["fp32"], NONE, CODE["bf16"], CODE["fp32"]]
    assert np.array_equal(read.section(fast.TYPES), expected)
