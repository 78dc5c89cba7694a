from __future__ import annotations

import math

import pytest
from formula_cases import work_of
from formula_layouts import layouts, work_of_backward
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import formulas_pooling as slow
from reference.tensors import SIZES, moved

BF16, F32 = "c10::BFloat16", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
TOO_LARGE = "the product of the shapes is out of range"


def call(op, tensors, values, types=None, strides=None):
    """A call of an op whose tensors come first."""
    dims = [*tensors, *[[]] * len(values)]
    spelled = [*(types or [BF16] * len(tensors)), *[""] * len(values)]
    texts = [*[""] * len(tensors), *values]
    return work_of(op, dims, spelled, strides and [*strides, *[[]] * len(values)], texts)


def test_max_pool_of_resnet():
    # perf_models A14 by hand: (10, 64, 112, 112), windows of 3, stride 2, padding 1:
    # out (112 + 2 - 3) // 2 + 1 = 56 a side
    done = call(
        "aten::max_pool2d_with_indices",
        [[10, 64, 112, 112]],
        ["[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False"],
    )
    outputs = 10 * 64 * 56 * 56
    assert done.flops == outputs * 9 == 18_063_360
    assert done.bytes == 2 * 10 * 64 * 112 * 112 + outputs * (2 + 8) == 36_126_720
    assert (done.dtype, done.why) == ("bf16", None)
    assert done.parameters == {"inputs": 8_028_160, "outputs": outputs, "visits": 18_063_360}


def test_max_pool_backward_of_resnet():
    # reads a gradient and an index per output, writes the gradient of all inputs
    done = work_of(
        "aten::max_pool2d_with_indices_backward",
        [[10, 64, 56, 56], [10, 64, 112, 112], [], [], [], [], [], [10, 64, 56, 56]],
        [BF16, BF16, "", "", "", "", "", "long int"],
        None,
        ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False", ""],
    )
    outputs = 10 * 64 * 56 * 56
    assert done.flops == outputs
    assert done.bytes == outputs * (2 + 8) + 2 * 8_028_160


def test_max_pool2d_is_the_op_with_indices_inside():
    values = ["[2, 2]", "[]", "[0, 0]", "[1, 1]", "False"]
    inner = call("aten::max_pool2d_with_indices", [[1, 2, 4, 4]], values)
    assert call("aten::max_pool2d", [[1, 2, 4, 4]], values) == inner
    assert inner.parameters["outputs"] == 2 * 2 * 2


def test_average():
    # (3, 7): windows of 3, stride 2: 3 of them a row, 27 elements
    done = call("aten::avg_pool1d", [[3, 7]], ["[3]", "[2]", "[0]", "False", "True"], [F32])
    assert done.flops == 3 * 3 * 3
    assert done.bytes == 4 * (21 + 9)


@pytest.mark.parametrize(
    ("size", "ceil", "outputs"),
    [
        (7, "False", 3),
        (8, "False", 3),
        (8, "True", 4),  # the last window is cut off
        (5, "True", 2),
    ],
)
def test_ceil(size, ceil, outputs):
    done = call("aten::avg_pool1d", [[1, size]], ["[3]", "[2]", "[0]", ceil, "True"])
    assert done.parameters["outputs"] == outputs


def test_adaptive_average():
    # 7 to 3: windows [0,3) [2,5) [4,7) have 9 elements = 7 + 3 - 1; 6 to 3: 6 = 6 + 3 - 3
    done = call("aten::_adaptive_avg_pool2d", [[2, 5, 7, 6]], ["[3, 3]"], [F32])
    assert done.flops == 10 * 9 * 6
    assert done.bytes == 4 * (10 * 42 + 10 * 9)


def test_global_average_is_a_sum():
    done = call("aten::adaptive_avg_pool2d", [[10, 2048, 7, 7]], ["[1, 1]"])
    assert done.flops == 10 * 2048 * 49
    assert done.bytes == 2 * 10 * 2048 * (49 + 1)


def test_adaptive_maximum_has_indices():
    done = call("aten::adaptive_max_pool1d", [[2, 3, 8]], ["[4]"], [F32])
    assert done.flops == 6 * 8
    assert done.bytes == 4 * 48 + 24 * (4 + 8)


def test_fractional():
    # the samples (N, C, 2) are read too
    done = work_of(
        "aten::fractional_max_pool2d", [[1, 2, 8, 8], [], [], [1, 2, 2]],
        [F32, "", "", F32], None, ["", "[2, 2]", "[5, 5]", ""],
    )  # fmt: skip
    assert done.flops == 2 * 25 * 4
    assert done.bytes == 4 * (128 + 4) + 50 * (4 + 8)


def test_adaptive_backward():
    done = call("aten::_adaptive_avg_pool2d_backward", [[2, 5, 3, 3], [2, 5, 7, 6]], [], [F32] * 2)
    assert done.flops == 10 * 9 * 6
    assert done.bytes == 4 * (90 + 420)


def test_average_backward_of_an_expanded_gradient():
    done = call(
        "aten::avg_pool2d_backward", [[1, 2, 2, 2], [1, 2, 4, 4]],
        ["[2, 2]", "[2, 2]", "[0, 0]", "False", "True", ""],
        [F32] * 2, [[0, 0, 0, 0], [32, 16, 4, 1]],
    )  # fmt: skip
    assert done.flops == 8 * 4
    assert done.bytes == 4 * (1 + 32)


@st.composite
def poolings(draw):
    dims = draw(st.integers(2, 3))

    def each(numbers):
        return draw(st.lists(numbers, min_size=dims, max_size=dims))

    lead = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    return {
        "dims": dims,
        "lead": lead,
        "size": each(st.integers(1, 9)),
        "window": each(st.integers(1, 3)),
        "stride": draw(st.sampled_from([[], each(st.integers(1, 4))])),
        "padding": each(st.integers(0, 1)),
        "dilation": each(st.integers(1, 2)),
        "ceil": draw(st.booleans()),
        "type": draw(st.sampled_from([BF16, F32, "double"])),
    }


def outputs_of(c, dilated=True):
    """The output's spatial sizes; None where PyTorch refuses the call."""
    out = []
    for d in range(c["dims"]):
        if 2 * c["padding"][d] > c["window"][d]:
            return None
        stride = (c["stride"] or c["window"])[d]
        dilation = c["dilation"][d] if dilated else 1
        if c["size"][d] + 2 * c["padding"][d] < dilation * (c["window"][d] - 1) + 1:
            return None
        out.append(
            slow.window_count(
                c["size"][d], c["window"][d], stride, c["padding"][d], dilation, c["ceil"]
            )
        )
    return out


@given(c=poolings(), data=st.data())
def test_maximum_equals_the_slow_count(c, data):
    out = outputs_of(c)
    assume(out is not None)
    x, laid = c["lead"] + c["size"], data.draw(layouts(c["lead"] + c["size"]))
    values = [str(c[k]) for k in ("window", "stride", "padding", "dilation", "ceil")]
    name = f"aten::max_pool{c['dims']}d_with_indices"
    done = call(name, [x], values, [c["type"]], [laid])
    y = c["lead"] + out
    assert done.flops == math.prod(y) * math.prod(c["window"])
    assert done.bytes == moved(x, c["type"], laid) + moved(y, c["type"]) + moved(y, "long int")
    types, row = [c["type"], *[""] * 5], ["", *values]
    back = work_of_backward(f"{name}_backward", name, [x, *[[]] * 5], types, None, row)
    assert back.flops == math.prod(y)
    assert back.bytes == moved(y, c["type"]) + moved(y, "long int") + moved(x, c["type"])
    own = work_of(
        f"{name}_backward", [y, x, *[[]] * 5, y], [c["type"], *types, "long int"], None,
        ["", *row, ""],
    )  # fmt: skip
    assert (own.flops, own.bytes) == (back.flops, back.bytes)


@given(c=poolings(), data=st.data())
def test_average_equals_the_slow_count(c, data):
    out = outputs_of(c, dilated=False)
    assume(out is not None)
    x, laid = c["lead"] + c["size"], data.draw(layouts(c["lead"] + c["size"]))
    values = [str(c[k]) for k in ("window", "stride", "padding", "ceil")] + ["True", ""]
    name = f"aten::avg_pool{c['dims']}d"
    done = call(name, [x], values, [c["type"]], [laid])
    y = c["lead"] + out
    assert done.flops == math.prod(y) * math.prod(c["window"])
    assert done.bytes == moved(x, c["type"], laid) + moved(y, c["type"])
    back = call(f"{name}_backward", [y, x], values, [c["type"]] * 2)
    assert back.flops == done.flops
    assert back.bytes == (math.prod(x) + math.prod(y)) * SIZES[c["type"]]


@given(
    lead=st.lists(st.integers(0, 3), min_size=1, max_size=2),
    size=st.lists(st.integers(1, 12), min_size=2, max_size=2),
    out=st.lists(st.integers(0, 12), min_size=2, max_size=2),
)
def test_adaptive_equals_the_slow_count(lead, size, out):
    done = call("aten::adaptive_max_pool2d", [lead + size], [str(out)], [F32])
    visits = [slow.adaptive_visits(n, m) for n, m in zip(size, out, strict=True)]
    assert done.flops == math.prod(lead) * math.prod(visits)
    assert done.bytes == moved(lead + size, F32) + math.prod(lead + out) * 12


X = [1, 2, 8, 8]
VALUES = ["[2, 2]", "[]", "[0, 0]", "[1, 1]", "False"]


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (work_of("aten::max_pool2d_with_indices"), NO_INPUTS),
        (call("aten::max_pool2d_with_indices", [[]], VALUES), NO_SHAPE),
        (work_of("aten::max_pool2d_with_indices", [X], [F32]), NO_VALUE),
        (work_of("aten::adaptive_avg_pool2d", [X], [F32]), NO_VALUE),
        (call("aten::max_pool2d_with_indices", [X], ["", *VALUES[1:]]), NO_VALUE),
        (call("aten::max_pool2d_with_indices", [X], ["[0, 0]", *VALUES[1:]]), MISFIT),
        (call("aten::max_pool2d_with_indices", [X], ["[9, 9]", *VALUES[1:]]), MISFIT),
        (call("aten::max_pool2d_with_indices", [X], ["big", *VALUES[1:]]), MISFIT),
        (call("aten::max_pool2d_with_indices", [X], ["[2, 2]", "[0]", *VALUES[2:]]), MISFIT),
        (call("aten::max_pool2d_with_indices", [[8]], VALUES), MISFIT),
        (call("aten::max_pool2d_with_indices", [[1, 2, -8, -8]], VALUES), MISFIT),
        (call("aten::max_pool2d_with_indices", [[2**40, 2**40, 8, 8]], VALUES), TOO_LARGE),
        (call("aten::adaptive_avg_pool2d", [X], ["[-1, 2]"]), MISFIT),
        (call("aten::adaptive_avg_pool2d", [X], ["[1e300, 2]"]), MISFIT),
        (call("aten::_adaptive_avg_pool2d_backward", [[1, 3, 2, 2], X], []), MISFIT),
        (call("aten::_adaptive_avg_pool2d_backward", [[2, 2, 2], X], []), MISFIT),
        (call("aten::_adaptive_avg_pool2d_backward", [[], X], []), NO_SHAPE),
    ],
)
def test_bad_input_is_unknown_with_a_reason(done, why):
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_without_types_the_flops_are_known():
    done = work_of("aten::max_pool2d", [X, *[[]] * 5], None, None, ["", *VALUES])
    assert (done.flops, done.bytes, done.why) == (2 * 16 * 4, None, NO_TYPE)
