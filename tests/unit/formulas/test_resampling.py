from __future__ import annotations

import math

import pytest
from formula_cases import MIB, work_of
from formula_layouts import layouts, work_of_backward
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_resampling as slow
from reference.tensors import SIZES, distinct, moved

BF16, F32 = "c10::BFloat16", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
NO_FORMULA = "no formula for this form of the op"
TOO_LARGE = "the product of the shapes is out of range"


def call(op, tensors, values, types=None, strides=None):
    """A call of an op whose tensors come first."""
    dims = [*tensors, *[[]] * len(values)]
    spelled = [*(types or [BF16] * len(tensors)), *[""] * len(values)]
    texts = [*[""] * len(tensors), *values]
    return work_of(op, dims, spelled, strides and [*strides, *[[]] * len(values)], texts)


def test_replication_pad_golden():
    # perf_models A7: (1,128,17,240,240), pairs innermost first -> 510.722 MiB; FLOPs n_out
    done = call("aten::replication_pad3d", [[1, 128, 17, 240, 240]], ["[1, 1, 1, 1, 2, 0]"])
    inputs, outputs = 128 * 17 * 240 * 240, 128 * 19 * 242 * 242
    assert done.flops == outputs == 142_427_648
    assert done.bytes == 2 * (inputs + outputs) == 535_530_496
    assert round(done.mib, 3) == 510.722
    assert (done.dtype, done.why) == ("bf16", None)


def test_upsample_nearest_golden():
    # perf_models A7: (1,768,8) -> 128: 0.19921875 MiB
    done = call("aten::upsample_nearest1d", [[1, 768, 8]], ["[128]", ""])
    assert done.flops == 0
    assert done.bytes == 2 * 768 * (8 + 128) == 0.19921875 * MIB
    assert done.parameters == {"inputs": 6144, "outputs": 98304, "taps": 1}


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("aten::_upsample_nearest_exact2d", ["", "[2., 2.]"]),
        ("aten::_upsample_nearest_exact2d", ["[14, 10]", ""]),
        ("aten::upsample_nearest2d", ["[14, 10]", "2.", "2."]),
    ],
)
def test_scales_of_the_vec_overload_where_the_peer_has_nan(op, values):
    # C15: 21 of 21 golden rows of the .vec overload are NaN; the size is in the scale factors
    done = call(op, [[2, 3, 7, 5]], values, [F32])
    assert done.flops == 0
    assert done.bytes == 4 * 6 * (35 + 140)


def test_scaled_sizes_are_cut_off():
    done = call("aten::upsample_nearest1d", [[1, 1, 5]], ["", "[1.5]"])
    assert done.parameters["outputs"] == 7  # 7.5


def test_nearest_reads_only_what_it_keeps():
    done = call("aten::upsample_nearest1d", [[1, 4, 100]], ["[10]", ""])
    assert done.bytes == 2 * 4 * (10 + 10)


@pytest.mark.parametrize(
    ("op", "x", "size", "taps"),
    [
        ("aten::upsample_linear1d", [2, 3, 4], [8], 2),
        ("aten::upsample_bilinear2d", [2, 3, 4, 4], [8, 8], 4),
        ("aten::upsample_trilinear3d", [2, 3, 4, 4, 4], [8, 8, 8], 8),
        ("aten::upsample_bicubic2d", [2, 3, 4, 4], [8, 8], 16),
    ],
)
def test_taps(op, x, size, taps):
    for values in ([str(size), "False", ""], ["", "False", str([2.0] * len(size))]):
        done = call(op, [x], values, [F32])
        assert done.flops == 2 * taps * 6 * math.prod(size)
        assert done.bytes == 4 * (math.prod(x) + 6 * math.prod(size))
        assert done.parameters["taps"] == taps


def test_antialiased_has_bytes_only():
    # how many inputs make an output depends on the scale and the filter
    done = call("aten::_upsample_bilinear2d_aa", [[1, 3, 64, 64]], ["[16, 16]", "False", ""], [F32])
    assert (done.flops, done.why) == (None, NO_FORMULA)
    assert done.bytes == 4 * 3 * (4096 + 256)


def test_grid_sampler():
    # out (1, 2, 3, 4); 4 taps each; 2·12·4 inputs at most, there are 2·8·8
    done = call(
        "aten::grid_sampler_2d", [[1, 2, 8, 8], [1, 3, 4, 2]], ["0", "0", "False"], [F32, F32]
    )
    assert done.flops == 2 * 4 * 24
    assert done.bytes == 4 * (96 + 24 + 24)
    nearest = call(
        "aten::grid_sampler_3d", [[1, 2, 2, 2, 2], [1, 3, 3, 3, 3]], ["1", "0", "False"], [F32, F32]
    )
    assert nearest.flops == 0
    assert nearest.bytes == 4 * (16 + 81 + 54)


def test_backward_of_upsample():
    nearest = call(
        "aten::upsample_nearest2d_backward", [[2, 3, 8, 8]], ["[8, 8]", "[2, 3, 4, 4]", "", ""]
    )
    assert nearest.flops == 6 * 64
    assert nearest.bytes == 2 * 6 * (64 + 16)
    linear = call(
        "aten::upsample_bilinear2d_backward",
        [[2, 3, 8, 8]],
        ["[8, 8]", "[2, 3, 4, 4]", "False", "", ""],
    )
    assert linear.flops == 2 * 4 * 6 * 64
    assert linear.bytes == nearest.bytes


def test_backward_of_pad():
    done = call("aten::reflection_pad2d_backward", [[1, 3, 6, 7], [1, 3, 4, 4]], ["[1, 2, 1, 1]"])
    assert done.flops == 3 * 42
    assert done.bytes == 2 * 3 * (42 + 16)


def test_backward_of_grid_sampler_is_not_guessed_from_its_forward():
    done = work_of_backward(
        "aten::grid_sampler_2d_backward", "aten::grid_sampler_2d",
        [[1, 2, 8, 8], [1, 3, 4, 2], [], [], []], [F32, F32, "", "", ""], None,
        ["", "", "0", "0", "False"],
    )  # fmt: skip
    assert (done.flops, done.bytes, done.why) == (None, None, NO_FORMULA)


OPS = {
    1: {1: "upsample_nearest1d", 2: "upsample_nearest2d", 3: "upsample_nearest3d"},
    2: {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"},
    4: {2: "upsample_bicubic2d"},
}


@given(data=st.data(), taps=st.sampled_from([1, 2, 4]), spelling=st.sampled_from([BF16, "double"]))
def test_interpolation_equals_the_slow_count(data, taps, spelling):
    dims = data.draw(st.sampled_from(sorted(OPS[taps])))
    sizes = st.lists(st.integers(1, 12 if dims == 1 else 7), min_size=dims, max_size=dims)
    lead, size, out = (
        data.draw(st.lists(st.integers(0, 2), min_size=2, max_size=2)),
        *(data.draw(sizes) for _ in range(2)),
    )
    x, y = lead + size, lead + out
    values = [str(out), *([] if taps == 1 else ["False"]), *[""] * dims]
    name = f"aten::{OPS[taps][dims]}"
    done = call(name, [x], values, [spelling])
    read = [slow.reached(n, m, taps) for n, m in zip(size, out, strict=True)]
    assert done.flops == (0 if taps == 1 else 2 * taps**dims * math.prod(y))
    assert done.bytes == (math.prod(lead) * math.prod(read) + math.prod(y)) * SIZES[spelling]
    if dims == 2:
        row = [x, *[[]] * len(values)], [spelling, *[""] * len(values)], None, ["", *values]
        back = work_of_backward(f"{name}_backward", name, *row)
        assert back.flops == (1 if taps == 1 else 2 * taps**dims) * math.prod(y)
        assert back.bytes == (math.prod(y) + math.prod(x)) * SIZES[spelling]
        sized = [str(out), str(x), *values[1:]]
        own = call(f"{name}_backward", [y], sized, [spelling])
        assert (own.flops, own.bytes) == (back.flops, back.bytes)


@given(data=st.data(), op=st.sampled_from(["constant_pad_nd", "pad", "reflection_pad2d"]))
def test_padding_equals_the_slow_count(data, op):
    x = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    few = st.integers(-2, 3)
    pairs = data.draw(st.lists(st.tuples(few, few), max_size=len(x)))
    pairs = [number for pair in pairs for number in pair]
    laid = data.draw(layouts(x))
    done = call(f"aten::{op}", [x], [str(pairs), "0"], [F32], [laid])
    sizes = [n + b + a for n, b, a in _per_dimension(x, pairs)]
    left = [n + min(b, 0) + min(a, 0) for n, b, a in _per_dimension(x, pairs)]
    if min(*sizes, *left) < 0:
        assert (done.flops, done.bytes, done.why) == (None, None, MISFIT)
        return
    out, kept = slow.padded(x, pairs)
    assert list(out) == sizes[::-1]
    assert done.flops == 0
    assert done.bytes == 4 * (min(kept, distinct(x, laid)) + math.prod(out))


def _per_dimension(x, pairs):
    pairs = pairs + [0] * (2 * len(x) - len(pairs))
    return [(n, pairs[2 * d], pairs[2 * d + 1]) for d, n in enumerate(reversed(x))]


def test_backward_of_pad_by_its_forward():
    done = work_of_backward(
        "aten::replication_pad2d_backward", "aten::replication_pad2d",
        [[1, 3, 4, 4], []], [F32, ""], None, ["", "[1, 2, 1, 1]"],
    )  # fmt: skip
    assert done.flops == 3 * 42
    assert done.bytes == moved([1, 3, 6, 7], F32) + moved([1, 3, 4, 4], F32)


X = [1, 2, 8, 8]


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (work_of("aten::upsample_nearest2d"), NO_INPUTS),
        (work_of("aten::constant_pad_nd"), NO_INPUTS),
        (work_of("aten::upsample_nearest2d_backward"), NO_INPUTS),
        (call("aten::upsample_nearest2d", [[]], ["[2, 2]", ""]), NO_SHAPE),
        (work_of("aten::upsample_nearest2d", [X], [F32]), NO_VALUE),
        (call("aten::upsample_nearest2d", [X], ["", ""]), NO_VALUE),
        (call("aten::upsample_nearest2d", [X], ["", "[2.]"]), NO_VALUE),
        (call("aten::upsample_nearest2d", [X], ["", "[-2., 2.]"]), MISFIT),
        (call("aten::upsample_nearest2d", [X], ["[-2, 2]", ""]), MISFIT),
        (call("aten::upsample_nearest2d", [X], ["[2, 2, 2]", ""]), MISFIT),
        (call("aten::upsample_nearest2d", [[8, 8]], ["[2, 2]", ""]), MISFIT),
        (call("aten::upsample_nearest2d", [[-1, -2, 8, 8]], ["[2, 2]", ""]), MISFIT),
        (call("aten::upsample_bilinear2d", [[2**40, 2, 8, 8]], ["[2147483648, 2]"]), TOO_LARGE),
        (call("aten::upsample_nearest2d_backward", [X], ["[8, 8]", ""]), NO_VALUE),
        (call("aten::upsample_nearest2d_backward", [X], ["[8, 8]", "[1, 3, 4, 4]"]), MISFIT),
        (call("aten::upsample_nearest2d_backward", [X], ["[8, 8]", "[1, 2, 4]"]), MISFIT),
        (call("aten::replication_pad2d", [[]], ["[1, 1]"]), NO_SHAPE),
        (work_of("aten::replication_pad2d", [X, []], [F32, ""]), NO_VALUE),
        (call("aten::replication_pad2d", [X], [""]), NO_VALUE),
        (call("aten::replication_pad2d", [X], ["[1, 1, 1]"]), MISFIT),
        (call("aten::replication_pad2d", [X], ["1"]), MISFIT),
        (call("aten::replication_pad2d", [X], ["[0.5, 1]"]), MISFIT),
        (call("aten::replication_pad2d", [X], ["[1e300, 1]"]), MISFIT),
        (call("aten::replication_pad2d", [X], [str([1] * 10)]), MISFIT),
        (call("aten::replication_pad2d", [X], ["[-5, -5]"]), MISFIT),
        (call("aten::grid_sampler_2d", [X, [1, 3, 4, 3]], ["0"]), MISFIT),
        (call("aten::grid_sampler_2d", [X, [2, 3, 4, 2]], ["0"]), MISFIT),
        (call("aten::grid_sampler_2d", [X, [1, 3, 4, 2]], ["7"]), MISFIT),
        (call("aten::grid_sampler_2d", [X, [1, 3, 4, 2]], [""]), NO_VALUE),
        (call("aten::grid_sampler_2d", [X, []], ["0"]), NO_SHAPE),
        (call("aten::reflection_pad2d_backward", [X, []], ["[1, 1]"]), NO_SHAPE),
        (call("aten::reflection_pad2d_backward", [X, [2, 8, 8]], ["[1, 1]"]), MISFIT),
    ],
)
def test_bad_input_is_unknown_with_a_reason(done, why):
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_without_types_the_flops_are_known():
    done = work_of("aten::replication_pad1d", [[2, 3], []], None, None, ["", "[1, 1]"])
    assert (done.flops, done.bytes, done.why) == (10, None, NO_TYPE)
