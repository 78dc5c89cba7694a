from __future__ import annotations

import csv

import pytest

from tracehouse import resources
from tracehouse.analysis.op_categories import extended, load, parse
from tracehouse.errors import UsageError


@pytest.fixture(scope="module")
def rows():
    return list(csv.DictReader(resources.data_text("op_categories.csv").splitlines()))


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aten::mm", "GEMM"),
        ("aten::convolution", "CONV_fwd"),
        ("aten::view", "view"),
        ("triton_poi_fused_add_0", "triton"),
        ("aten::_foreach_lerp_", "multi_tensor_apply"),
        ("record_param_comms", "record_param_comms"),
        ("nccl:all_reduce", "collective"),
        ("autograd::engine::evaluate_function: MmBackward0", "autograd"),
        ("AddmmBackward0", "autograd"),
        ("my_project::op", "other"),
        ("", "other"),
    ],
)
def test_category(name, category):
    assert load().category(name) == category


def test_exact_before_prefix_before_regex_and_the_first_hit():
    rules = parse(
        "pattern,match,category,family\n"
        "^my::,regex,last,-\nmy::op,exact,first,-\nmy::o,prefix,second,-\nmy::op_,prefix,never,-\n"
    )
    found = [rules.category(name) for name in ("my::op", "my::op_2", "my::x", "x")]
    assert found == ["first", "second", "last", "other"]


def test_exact_rows_are_sorted_and_distinct(rows):
    exact = [row["pattern"] for row in rows if row["match"] == "exact"]
    assert exact == sorted(set(exact))
    assert len(exact) > 1_000


def test_every_row_is_whole(rows):
    assert {row["match"] for row in rows} == {"exact", "prefix", "regex"}
    assert all(row["pattern"] and row["category"] and row["family"] for row in rows)


def test_a_new_category_alone_keeps_the_family():
    rows = (
        "aten::mm,exact,mine,\naten::bm,prefix,mine,\nmy::op,exact,mine,\naten::mv,exact,mine,x\n"
    )
    rules = extended(f"pattern,match,category,family\n{rows}", "my.csv")
    names = ("aten::mm", "aten::bmm", "my::op", "aten::mv", "aten::addmm")
    assert [rules.category(name) for name in names] == ["mine"] * 4 + ["GEMM"]
    assert [rules.family(name) for name in names] == ["gemm", "gemm_batched", "none", "x", "gemm"]


def test_the_first_of_two_rows_for_a_name():
    rows = "my::op,exact,first,\nmy::op,exact,second,\n"
    rules = extended(f"pattern,match,category,family\n{rows}", "my.csv")
    assert rules.category("my::op") == "first"


def test_a_field_beyond_the_limit_is_told():
    with pytest.raises(UsageError, match=r"my\.csv is no CSV file"):
        extended(f"pattern,match,category,family\n{'a' * 200_000},exact,x,\n", "my.csv")
