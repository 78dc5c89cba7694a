"""Reductions and scans: by hand, against the peer's golden rows and a plain twin."""

from __future__ import annotations

import pytest
from formula_cases import MIB, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_elementwise as plain

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

BF16, FLOAT, LONG, INT, SCALAR, LIST = (
    "c10::BFloat16",
    "float",
    "long int",
    "int",
    "Scalar",
    "ScalarList",
)
OVER = [FLOAT, LIST, SCALAR, ""]  # types of (self, dim, keepdim, dtype)


def test_a_mean_over_the_last_dim_writes_a_value_a_row_where_the_peer_writes_one():
    # perf_models A8: the peer says 189.0000038 MiB.
    dims, values = [[1, 32256, 1536], [], [], []], ["", "[-1]", "True", ""]
    done = work_of("aten::mean", dims, OVER, None, values)
    assert done.flops == 32256 * 1536
    assert done.bytes == (32256 * 1536 + 32256) * 4
    assert done.mib == pytest.approx(189.123, abs=1e-3)
    assert done.mib != pytest.approx(189.0000038, abs=1e-3)
    assert done.parameters == {"elements": 32256 * 1536, "results": 32256}


def test_a_norm_of_rows_where_the_peer_writes_one_value():
    # owlv2, aten::linalg_norm bf16 (1, 5184, 768) over [-1]: the peer says 7.593751907 MiB.
    dims, types = [[1, 5184, 768], [], [], [], []], [BF16, "", LIST, SCALAR, ""]
    done = work_of("aten::linalg_norm", dims, types, None, ["", "", "[-1]", "True", ""])
    assert done.gflop == 0.003981312
    assert done.bytes == (5184 * 768 + 5184) * 2
    # the row (1, 768) gives one value, where both agree: 0.0014667510986328125 MiB
    dims[0] = [1, 768]
    done = work_of("aten::linalg_norm", dims, types, None, ["", "2", "[-1]", "True", ""])
    assert done.mib == 0.0014667510986328125


def test_a_running_sum_of_integers_is_int64_where_the_peer_keeps_them():
    # sglang_decode, aten::cumsum int (32): 32 × (4 + 8); the peer says 256 B.
    done = work_of("aten::cumsum", [[32], [], []], [INT, SCALAR, ""], None, ["", "0", ""])
    assert done.flops == 32
    assert done.bytes == 384 != 0.000244140625 * MIB


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "moved"),
    [
        ("sum", [[3, 4], []], [FLOAT, ""], ["", ""], 48 + 4),
        ("sum", [[3, 4], []], [FLOAT, SCALAR], ["", "7"], 48 + 8),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[]", "False", ""], 48 + 4),
        ("sum", [[3, 4], [], [], []], [FLOAT, "", SCALAR, ""], ["", "", "False", ""], 48 + 4),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[0]", "False", ""], 48 + 16),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[0, -1]", "False", ""], 48 + 4),
        ("sum", [[3, 4], [], [], []], [INT, *OVER[1:]], ["", "[1]", "False", ""], 48 + 3 * 8),
        ("sum", [[3, 4], [], [], []], [*OVER[:3], SCALAR], ["", "[1]", "False", "5"], 48 + 3 * 2),
        ("sum", [[3, 4], [], [], [], [3]], [*OVER, FLOAT], ["", "[1]", "False", "", ""], 48 + 12),
        ("sum", [[], []], [FLOAT, ""], ["", ""], 8),
        ("prod", [[3, 4], [], [], []], ["bool", SCALAR, SCALAR, ""], ["", "1", "False", ""], 36),
        ("max", [[3, 4]], [FLOAT], [""], 48 + 4),
        ("max", [[3, 4], [], []], [FLOAT, SCALAR, SCALAR], ["", "1", "False"], 48 + 3 * 12),
        ("max", [[3, 4], [4]], [FLOAT, FLOAT], ["", ""], 48 + 16 + 48),
        ("min", [[3], [3], [3]], [FLOAT] * 3, [""] * 3, 36),
        ("argmax", [[3, 4], [], []], [FLOAT, "", SCALAR], ["", "", "False"], 48 + 8),
        ("argmax", [[3, 4], [], []], [FLOAT, SCALAR, SCALAR], ["", "-1", "False"], 48 + 24),
        ("any", [[3, 4], [], []], [FLOAT, SCALAR, SCALAR], ["", "1", "False"], 48 + 3),
        ("all", [[16, 559]], ["bool"], [""], 16 * 559 + 1),
        ("std", [[3, 4], [], [], []], [FLOAT, LIST, SCALAR, SCALAR], ["", "[1]", "1", "False"], 60),
        ("std", [[3, 4], []], [FLOAT, SCALAR], ["", "True"], 52),
        ("var_mean", [[3, 4], [], [], []], [FLOAT, "", "", SCALAR], ["", "", "", "False"], 56),
        ("norm", [[3, 4], []], [FLOAT, SCALAR], ["", "2"], 52),
        ("norm", [[3, 4], [], []], [BF16, SCALAR, SCALAR], ["", "2", "6"], 24 + 4),
        ("norm", [[3, 4], [], [], []], [FLOAT, SCALAR, LIST, SCALAR], ["", "2", "[1]", "0"], 60),
        ("cummax", [[3, 4], [], []], [FLOAT, SCALAR], ["", "1"], 48 + 12 * 12),
        ("amax", [[2, 0], [], []], [FLOAT, LIST, SCALAR], ["", "[1]", "False"], 8),
    ],
)
def test_by_hand(op, dims, types, values, moved):
    assert work_of(f"aten::{op}", dims, types, None, values).bytes == moved


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "flops", "why"),
    [
        ("sum", None, None, None, None, "inputs were not recorded"),
        ("sum", [[3, 4], [], [], []], OVER, None, 12, "a value that"),
        ("sum", [[3, 4], [], [], []], None, ["", "[1]", "False", ""], 12, "type of an input"),
        ("sum", [[3, 4], []], [FLOAT, SCALAR], ["", "99"], 12, "a value that"),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[2]", "False", ""], None, "do not fit"),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[0, 0]", "False", ""], None, "do not fit"),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[0, -2]", "False", ""], None, "do not fit"),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[0.5]", "False", ""], None, "do not fit"),
        ("sum", [[3, 4], [], [], []], OVER, ["", "[1, x]", "False", ""], 12, "a value that"),
        ("sum", [[-3, -4], []], [FLOAT, ""], ["", ""], None, "do not fit"),
        ("max", [[3, 4], [5]], [FLOAT] * 2, ["", ""], None, "do not fit"),
        ("sum", [[2**40, 2**40], []], [FLOAT, ""], ["", ""], None, "out of range"),
        # the norm of a matrix is one of its singular values
        (
            "linalg_norm",
            [[3, 4], [], [], [], []],
            [FLOAT, SCALAR, "", SCALAR, ""],
            ["", "2", "", "False", ""],
            None,
            "no formula",
        ),
    ],
)
def test_what_cannot_be_known(op, dims, types, values, flops, why):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert (done.flops, done.bytes) == (flops, None)
    assert why in done.why


@given(
    st.sampled_from(["sum", "mean", "amax", "max"]),
    st.lists(st.integers(1, 3), max_size=3),
    st.sampled_from(sorted(plain.KNOWN)),
    st.lists(st.integers(-4, 3), max_size=3),
)
def test_as_the_plain_twin(op, shape, spelling, dims):
    dims = dims[:1] or [0] if op == "max" else dims
    shapes, values = [shape, [], []], ["", str(dims[0] if op == "max" else dims), "False"]
    types = [spelling, SCALAR if op == "max" else LIST, SCALAR]
    if op in ("sum", "mean"):
        shapes, values, types = [*shapes, []], [*values, ""], [*types, ""]
    done = work_of(f"aten::{op}", shapes, types, None, values)
    results = plain.kept(shape, dims)
    if results is None:
        assert done.flops is done.bytes is None
        return
    width = plain.size_of(spelling)
    if op == "sum" and plain.KNOWN[spelling][0] < 2:
        width = 8
    indices = 8 if op == "max" else 0
    assert done.flops == plain.elements(shape)
    assert done.bytes == plain.moved(shape, spelling) + results * (width + indices)


@given(
    st.sampled_from(["aten::sum", "aten::max", "aten::linalg_norm", "aten::cumsum", "aten::any"]),
    st.lists(st.lists(st.integers(-2, 2**62), max_size=4), max_size=5),
    st.lists(st.sampled_from(["float", "", "Scalar", "TensorList", "?", LONG]), max_size=5),
    st.lists(st.sampled_from(["", "1", "[1]", "x", "[1e400]", "[nan]", "-9e99"]), max_size=5),
)
def test_hostile_inputs_give_a_number_or_a_reason(op, dims, types, values):
    done = work_of(op, dims, types, None, values)
    assert (done.flops is None or done.bytes is None) == (done.why is not None)


def test_every_reduction_of_the_table_has_a_formula_or_is_known_to_have_none():
    without = {"allclose", "count_nonzero", "diff", "dist", "equal", "trace"}
    found = {
        op
        for op, rule in op_categories.load().exact.items()
        if rule.family in ("reduce", "scan")
        and model_of(rule.family).slots_of(op, rule.family) is None
    }
    assert found == {f"aten::{op}" for op in without}
