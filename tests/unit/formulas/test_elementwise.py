"""Pointwise ops: by hand, against the peer's golden rows, recorded calls and a plain twin."""

from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_elementwise as plain

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

BF16, FLOAT, DOUBLE, LONG, INT, SCALAR = (
    "c10::BFloat16",
    "float",
    "double",
    "long int",
    "int",
    "Scalar",
)


def test_a_product_of_two_types_by_hand():
    # h100 Wan: bf16 (1, 32256, 1536) × float (1, 32256, 1); golden 283.623 MiB.
    n = 32256 * 1536
    done = work_of("aten::mul", [[1, 32256, 1536], [1, 32256, 1]], [BF16, FLOAT])
    assert done.flops == n == 49_545_216
    assert done.bytes == n * 2 + 32256 * 4 + n * 4 == 297_400_320
    assert done.mib == pytest.approx(283.623, abs=5e-4)
    assert done.parameters == {"elements": n, "flops_each": 1}
    assert done.dtype == "bf16"


def test_what_is_broadcast_is_read_once_where_the_peer_reads_it_whole():
    # perf_models A7: the divisor has 262144 distinct elements; the peer says 144.0 MiB.
    n, few = 96 * 4 * 256 * 256, 4 * 256 * 256
    strides = [[25165824, 262144, 65536, 256, 1], [262144, 0, 65536, 256, 1]]
    done = work_of("aten::div", [[1, 96, 4, 256, 256]] * 2, [BF16] * 2, strides)
    assert done.bytes == (n + few + n) * 2
    assert done.mib == 96.5
    assert done.mib != 144.0


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "gflop", "mib"),
    [
        ("silu", [[1, 96, 4, 256, 256]], [BF16], [""], 0.025165824, 96.0),
        ("pow", [[1, 32256, 1536], []], [FLOAT, SCALAR], ["", "2"], 0.049545216, 378.0),
        ("add", [[1, 32256, 1536]] * 2 + [[]], [FLOAT, FLOAT, SCALAR], ["", "", "1"], None, 567.0),
        # mi300 and h100 Qwen: numbers are recorded as 0-dim tensors, which count 8 bytes.
        ("add", [[16, 559, 1], [], []], [FLOAT, DOUBLE, SCALAR], ["", "", "1"], 8.944e-06, None),
        ("mul", [[1, 559, 64], []], [FLOAT, DOUBLE], ["", ""], 3.5776e-05, 0.27295684814453125),
        ("mul", [[1, 5185, 4096], []], [BF16, DOUBLE], ["", ""], 0.02123776, 81.01563262939453),
        ("add", [[5], [], []], [LONG, LONG, SCALAR], ["", "", "1"], 5e-09, 8.392333984375e-05),
        ("neg", [[16, 16, 559, 32]], [BF16], [""], 0.004579328, 17.46875),
        ("rsqrt", [[16, 559, 1]], [FLOAT], [""], 8.944e-06, 0.0682373046875),
        ("sigmoid", [[1, 5185, 4096]], [BF16], [""], 0.02123776, 81.015625),
    ],
)
def test_golden(op, dims, types, values, gflop, mib):
    done = work_of(f"aten::{op}", dims, types, None, values)
    if gflop is not None:
        assert done.gflop == pytest.approx(gflop, rel=1e-12)
    if mib is not None:
        assert done.mib == pytest.approx(mib, rel=1e-12)


def test_in_place_keeps_the_type_where_the_peer_writes_the_wider():
    # owlv2, aten::add_: 20736 × (2 read + 4 read + 2 written); the peer writes 4, 0.19775 MiB.
    dims, types = [[1, 5184, 4], [5184, 4], []], [BF16, FLOAT, SCALAR]
    done = work_of("aten::add_", dims, types, None, ["", "", "1"])
    assert done.bytes == 20736 * 8
    assert done.mib == 0.158203125 != 0.19775390625


@pytest.mark.parametrize(("alpha", "each"), [("1", 1), ("1.", 1), ("2", 2), ("-1", 2), ("", 1)])
def test_a_factor_other_than_one_is_one_flop_more(alpha, each):
    done = work_of("aten::add", [[6], [6], []], [FLOAT, FLOAT, SCALAR], None, ["", "", alpha])
    assert done.flops == 6 * each


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "flops", "moved"),
    [
        ("gelu", [[8], []], [BF16, ""], ["", ""], 64, 8 * 2 * 2),
        ("lt", [[5], [5, 1]], [LONG, LONG], ["", ""], 25, 10 * 8 + 25),
        ("eq", [[16, 559], []], [LONG, SCALAR], ["", "1"], 8944, 8944 * 9),
        ("div", [[4], [4]], [LONG, LONG], ["", ""], 4, 4 * (8 + 8 + 4)),
        ("floor_divide", [[4], [4]], [LONG, LONG], ["", ""], 4, 4 * 24),
        ("exp", [[4]], [INT], [""], 4, 4 * 8),
        ("clamp", [[4], [], []], [FLOAT, SCALAR, ""], ["", "0.", ""], 8, 32),
        ("clamp", [[4], [], []], [LONG, SCALAR, ""], ["", "0.5", ""], 8, 4 * (8 + 4)),
        ("clamp", [[4], [4], [4]], [FLOAT] * 3, [""] * 3, 8, 64),
        ("pow", [[3, 4], [4]], [FLOAT, FLOAT], ["", ""], 12, 48 + 16 + 48),
        ("pow", [[], [3, 4]], [SCALAR, FLOAT], ["2.", ""], 12, 96),
        ("sub", [[], [5, 5], []], [DOUBLE, BF16, SCALAR], ["", "", "1"], 25, 8 + 100),
        ("where", [[1], [], [9]], ["bool", BF16, BF16], [""] * 3, 9, 1 + 2 + 18 + 18),
        ("addcmul", [[4]] * 3 + [[]], [FLOAT] * 3 + [SCALAR], ["", "", "", "1"], 12, 64),
        ("lerp", [[4], [4], []], [FLOAT, FLOAT, SCALAR], ["", "", "0.5"], 12, 48),
        ("masked_fill_", [[4], [4], []], [FLOAT, "bool", SCALAR], ["", "", "0"], 4, 4 * 9),
        ("complex", [[4], [4]], [FLOAT] * 2, ["", ""], 0, 4 * 16),
        ("mul", [[4], [4]], ["c10::complex<float>"] * 2, ["", ""], 24, 4 * 24),
        ("add", [[4], [4], []], ["c10::complex<float>"] * 2 + [SCALAR], ["", "", "1"], 8, 96),
        ("mul", [[4], []], ["c10::complex<float>", SCALAR], ["", "2"], 8, 64),
        ("mul", [[0, 5], [0, 5]], [FLOAT] * 2, ["", ""], 0, 0),
        ("sigmoid", [[]], [FLOAT], [""], 1, 8),
        # out= is no input; its type is that of the result
        ("add", [[4], [4], [], [4]], [BF16, BF16, SCALAR, FLOAT], ["", "", "1", ""], 4, 4 * 8),
        ("eq", [[4], [4], [4]], [FLOAT, FLOAT, "unsigned char"], [""] * 3, 4, 4 * 9),
        ("pow", [[], [4], [4]], [DOUBLE, FLOAT, FLOAT], [""] * 3, 4, 8 + 32),
        ("prelu", [[2, 3], [3]], [FLOAT] * 2, ["", ""], 6, 24 + 12 + 24),
    ],
)
def test_by_hand(op, dims, types, values, flops, moved):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert (done.flops, done.bytes) == (flops, moved)


def test_liger():
    done = work_of("LigerSiLUMulFunction", [[2, 8], [2, 8]], [BF16] * 2)
    assert (done.flops, done.bytes) == (16, 16 * 2 * 3)


@pytest.mark.parametrize(
    ("op", "dims", "types", "values", "flops", "why"),
    [
        ("add", None, None, None, None, "inputs were not recorded"),
        ("add", [[3], [4], []], [FLOAT, FLOAT, SCALAR], None, None, "do not fit"),
        ("add", [[3]], [FLOAT], None, None, "do not fit"),
        ("mul", [[3], []], [FLOAT, ""], ["", ""], None, "do not fit"),
        ("add_", [[3], [2, 3], []], [FLOAT, FLOAT, SCALAR], None, None, "do not fit"),
        ("neg", [[-3, -4]], [FLOAT], None, None, "do not fit"),
        ("where", [[3]], ["bool"], None, None, "no formula"),
        ("add", [[[3], [4]], [[3], [4]]], ["TensorList"] * 2, None, None, "no formula"),
        ("add", [[3], [3], []], None, None, 3, "type of an input"),
        ("add", [[], [], []], None, None, 1, "type of an input"),
        ("eq", [[3], []], ["nonsense", SCALAR], ["", "1"], 3, "type of an input"),
        ("eq", [[3], []], [FLOAT, "nonsense"], ["", ""], 3, "type of an input"),
        ("mul", [[3], []], [LONG, SCALAR], None, 3, "type of an input"),
        # `rounding_mode` is a text, which traces do not record: the quotients may be rounded
        ("div", [[3], [3], []], [LONG, LONG, ""], [""] * 3, 3, "type of an input"),
        ("mul", [[2**40, 2**40]] * 2, [FLOAT] * 2, None, None, "out of range"),
    ],
)
def test_what_cannot_be_known(op, dims, types, values, flops, why):
    done = work_of(f"aten::{op}", dims, types, None, values)
    assert (done.flops, done.bytes) == (flops, None)
    assert why in done.why


def test_a_number_that_was_not_recorded_does_not_matter_to_fractions():
    done = work_of("aten::mul", [[3], []], [BF16, SCALAR])
    assert done.bytes == 12


SHAPES = st.lists(st.sampled_from([1, 2, 3]), max_size=3)
TYPES = st.sampled_from(sorted(plain.KNOWN))


def _strides(shape, data):
    dense = plain.contiguous(shape)
    return [data.draw(st.sampled_from([0, stride])) for stride in dense]


@given(SHAPES.filter(len), SHAPES.filter(len), TYPES, TYPES, st.data())
def test_two_tensors_as_the_plain_twin(left, right, a, b, data):
    strides = [_strides(left, data), _strides(right, data)]
    op = data.draw(st.sampled_from(["mul", "div", "atan2", "lt", "maximum"]))
    done = work_of(f"aten::{op}", [left, right], [a, b], strides, ["", ""])
    n = plain.elements(left, right)
    if n is None:
        assert done.flops is done.bytes is None
        return
    result = plain.wider(a, b)
    if op in ("div", "atan2"):
        result = plain.as_float(result)
    written = n if op == "lt" else n * plain.size_of(result)
    read = plain.moved(left, a, strides[0]) + plain.moved(right, b, strides[1])
    assert (done.flops, done.bytes) == (n, read + written)


@given(SHAPES.filter(len), TYPES, st.sampled_from(sorted(plain.NUMBERS)))
def test_a_tensor_and_a_number_as_the_plain_twin(shape, a, number):
    done = work_of("aten::mul", [shape, []], [a, SCALAR], None, ["", number])
    n = plain.elements(shape)
    result = plain.with_number(a, number)
    assert done.bytes == plain.moved(shape, a) + n * plain.size_of(result)
    wrapped = work_of("aten::mul", [shape, []], [a, plain.NUMBERS[number]], None, ["", ""])
    assert wrapped.bytes == done.bytes + plain.size_of(plain.NUMBERS[number])


@given(
    st.sampled_from(["aten::add", "aten::where", "aten::clamp", "aten::addcmul", "aten::prelu"]),
    st.lists(st.lists(st.integers(-2, 2**62), max_size=4), max_size=5),
    st.lists(st.sampled_from(["float", "", "Scalar", "TensorList", "?", LONG]), max_size=5),
    st.lists(st.sampled_from(["", "1", "[1]", "x", "0.5", "1+2j"]), max_size=5),
)
def test_hostile_inputs_give_a_number_or_a_reason(op, dims, types, values):
    done = work_of(op, dims, types, None, values)
    assert (done.flops is None or done.bytes is None) == (done.why is not None)


def test_every_pointwise_op_of_the_table_has_a_formula_or_is_known_to_have_none():
    without = {
        *("aten::real", "aten::imag", "aten::positive", "aten::isclose", "aten::isfinite"),
        *("aten::isinf", "aten::ldexp", "aten::ldexp_"),
        *("aten::masked_scatter", "aten::masked_scatter_"),
    }
    families = ("unary", "binary", "ternary", "binary_bwd", "gated_act")
    found = {
        op
        for op, rule in op_categories.load().exact.items()
        if rule.family in families and model_of(rule.family).slots_of(op, rule.family) is None
    }
    assert found == without
