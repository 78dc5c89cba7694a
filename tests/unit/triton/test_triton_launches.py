"""Sizes and bytes of launches against their plain twins, and the texts of the launcher."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.triton_launches import bytes_of, sizes_of

from tracehouse.analysis.columns import Words
from tracehouse.analysis.signatures import signatures
from tracehouse.formulas.inputs import read_inputs
from tracehouse.schema.tables import LAUNCHER_TEXTS
from tracehouse.triton.kernel_work import BASES, CHECKS, IN_PLACE, Ops
from tracehouse.triton.launch_facts import (
    Blocks,
    read_amount,
    read_blocks,
    read_count,
    read_grid,
    read_sizes,
)
from tracehouse.triton.launches import Texts, evaluate, read_name
from tracehouse.triton.operands import integer, read_operands

WIDTHS = {"c10::BFloat16": 2, "float": 4, "long int": 8, "bool": 1, "c10::Byte": 1, "c10::Long": 8}


def words(text):
    return Words(np.array([-1 if text is None else 0], np.int32), [text or ""])


def evaluated(name, tensors, values, **texts):
    """Evaluate one launch; tensors are pairs of type and shape."""
    types = [type_ for type_, _ in tensors] + ["Scalar"] * len(values)
    dims = [shape for _, shape in tensors] + [[]] * len(values)
    concrete = [""] * len(tensors) + list(map(str, values))
    recorded = [json.dumps(part) for part in (dims, types, None, concrete)]
    _, table = signatures([words(text) for text in recorded], "t")
    given = {name: Texts(*_pair(texts.get(name))) for name in (*LAUNCHER_TEXTS, "gpu_grid")}
    return evaluate(
        Texts(*_pair(name)),
        given,
        np.array([0]),
        read_operands(table, read_inputs(table)),
        np.array([False, False]),
        Ops(),
    )


def _pair(text):
    column = words(text)
    return column.codes, column.values


SMALL = st.integers(0, 5)
KWARGS = st.sampled_from(
    ["", "XBLOCK=1", "XBLOCK=2", "XBLOCK=2,YBLOCK=3", "XBLOCK=4,YBLOCK=1,ZBLOCK=1"]
)
REDUCING = st.sampled_from(
    ["", "XBLOCK=1", "XBLOCK=2", "XBLOCK=1,R0_BLOCK=2", "XBLOCK=2,YBLOCK=1,R0_BLOCK=1,R1_BLOCK=2"]
)
GRIDS = st.none() | st.tuples(*[st.integers(1, 4)] * 3)
HOST = st.lists(SMALL, max_size=3).map(tuple)


@given(
    kind=st.sampled_from(["poi", "red", "per"]),
    data=st.data(),
    ints=st.lists(st.integers(-1, 5), max_size=7),
    has_name=st.booleans(),
    host_grid=HOST,
    grid=GRIDS,
)
def test_sizes_equal_the_plain_twin(kind, data, ints, has_name, host_grid, grid):
    kwargs = data.draw(KWARGS if kind == "poi" else REDUCING)
    name = f"triton_{kind}_fused_add_0"
    work = evaluated(
        name,
        (),
        ints,
        kernel_kwargs=kwargs,
        kernel_name=name if has_name else None,
        grid=f"grid({', '.join(map(str, host_grid))},)" if host_grid else None,
        gpu_grid=None if grid is None else str(list(grid)),
    )
    sizes, speaks = sizes_of(kind, ints, kwargs, has_name, host_grid, grid)
    if sizes is None:
        assert math.isnan(work.x[0])
        assert CHECKS[work.check[0]] == "none"
        return
    found = dict(zip(("z", "y", "x", "r0", "r1"), work.size[0].tolist(), strict=True))
    assert {d: n for d, n in found.items() if n >= 0} == sizes
    assert CHECKS[work.check[0]] == {None: "none", True: "grid_ok", False: "grid_mismatch"}[speaks]
    assert work.x[0] == math.prod(sizes.get(d, 1) for d in "zyx")
    assert work.r[0] == sizes.get("r0", 1) * sizes.get("r1", 1)


SHAPES = st.lists(st.integers(0, 4), max_size=3)


@given(
    tensors=st.lists(st.tuples(st.sampled_from(list(WIDTHS)), SHAPES), min_size=1, max_size=4),
    x=st.integers(0, 16),
    r=st.integers(1, 3) | st.none(),
    creates=st.booleans(),
)
def test_bytes_equal_the_plain_twin(tensors, x, r, creates):
    kind = "poi" if r is None else "red"
    name = f"triton_{kind}_fused_{'add_zeros' if creates else 'add'}_0"
    values = [x] if r is None else [x, r]
    work = evaluated(name, tensors, values)
    plain = [(math.prod(shape), WIDTHS[type_]) for type_, shape in tensors]
    moved, least, in_place = bytes_of(plain, x * (r or 1), r is None, creates)
    assert (work.bytes[0], work.least[0]) == (moved, least)
    if r is None:
        assert IN_PLACE[work.in_place[0]] == in_place
        assert BASES[work.basis[0]] == ("compat" if in_place == "unknown" else "trace_capped")
    seed = sum(n * width for n, width in plain) + (plain[0][1] * x if r is None else 0)
    assert work.seed_bytes[0] == seed


@pytest.mark.parametrize("spelling", ["my::Type", "FLOAT", "__import__('os')"])
def test_an_unknown_type_has_no_bytes(spelling):
    work = evaluated("triton_poi_fused_add_0", [(spelling, [8]), ("float", [8])], [8])
    assert math.isnan(work.bytes[0])
    assert math.isnan(work.seed_bytes[0])
    assert work.flops[0] == 8


def test_lists_and_absent_inputs_are_skipped():
    work = evaluated("triton_poi_fused_add_0", [("float", [8]), ("", []), ("TensorList", [])], [16])
    assert work.bytes[0] == 32


# The launcher's texts


def test_blocks():
    read = read_blocks("YBLOCK=32,XBLOCK=256,waves_per_eu=2,RSPLIT=8,num_stages=None,EVEN_K=True")
    assert read == Blocks((0, 32, 256, 0, 0), (32, 256), 8)
    assert read_blocks("XBLOCK=8,R0_BLOCK=16,R1_BLOCK=4").by_dimension == (0, 0, 8, 16, 4)
    assert read_blocks("XBLOCK=8,RBLOCK=16").by_dimension == (0, 0, 8, 16, 0)


@pytest.mark.parametrize(
    "text",
    ["", ",,,", "XBLOCK", "XBLOCK=", "XBLOCK=-4", "XBLOCK=0", "XBLOCK=9999999999", "BLOCK_M=4"],
)
def test_what_is_no_block(text):
    assert read_blocks(text) == Blocks()


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("grid(262144,)", (262144,)),
        ("grid(768, 512)", (768, 512)),
        ("grid((768, 512))", (768, 512)),
        ("grid(2, 3, 4)", (2, 3, 4)),
        ("split_scan_grid(4, 100)", ()),
        ("(128, 1, 1)", ()),  # of a template: blocks, no sizes
        ("grid(1, 2, 3, 4)", ()),
        ("grid(lambda x: 1)", ()),
        ("grid()", ()),
        ("", ()),
    ],
)
def test_grids_of_the_launcher(text, sizes):
    assert read_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        ("[38,128,1]", (38, 128, 1)),
        ("[ 38, 128, 1 ]", (38, 128, 1)),
        ("[0,1,1]", ()),
        ("[1,1]", ()),
        ("[99999999999,1,1]", ()),
        ("grid(1, 2, 3)", ()),
    ],
)
def test_grids_of_kernels(text, grid):
    assert read_grid(text) == grid


@pytest.mark.parametrize(
    ("text", "power", "amount"),
    [
        ("0.12582912", 9, 125_829_120),
        ("2.5", 0, 2),
        ("1e3", 0, 1000),
        ("0", 9, None),
        ("-1", 9, None),
        ("NaN", 9, None),
        ("Infinity", 9, None),
        ("1e30", 0, None),
        ("1_000", 0, None),
        ("", 0, None),
    ],
)
def test_amounts(text, power, amount):
    assert read_amount(text, power) == amount


def test_counts():
    assert [read_count(text) for text in ("4", "-4", "4.0", "٤", "")] == [4, *[None] * 4]


def test_integers_among_values():
    texts = ["12", "-3", "+7", "1.5", "True", "", "[1]", "1_0", "٣", None, "9" * 30]
    assert [integer(text) for text in texts] == [12, -3, 7, *[None] * 8]


def test_names():
    named = read_name("triton_poi_fused_new_zeros_scatter_add_0")
    assert (named.kind, named.is_creator, named.ops) == ("poi", True, ("new_zeros", "scatter_add"))
    assert read_name("my_kernel").kind == "user"
    assert not read_name("triton_3").is_named
