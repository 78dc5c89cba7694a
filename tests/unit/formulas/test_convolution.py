from __future__ import annotations

import csv
import math

import pytest
from formula_cases import MIB, work_of
from formula_layouts import layouts, work_of_backward
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import formulas_convolution as slow
from reference.tensors import moved

BF16, F16, F32 = "c10::BFloat16", "c10::Half", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
TOO_LARGE = "the product of the shapes is out of range"
LISTS = ["ScalarList"] * 3
REST = [*LISTS, "Scalar", "ScalarList", "Scalar"]


def conv(x, w, bias=None, types=(BF16, BF16), strides=None, values=None, **named):
    """aten::convolution as a trace records it."""
    asked = {
        "stride": "[1, 1]",
        "padding": "[0, 0]",
        "dilation": "[1, 1]",
        "transposed": "False",
        "output_padding": "[0, 0]",
        "groups": "1",
        **named,
    }
    dims = [x, w, bias or [], [], [], [], [], [], []]
    spelled = [*types, types[0] if bias else "", *REST]
    return work_of("aten::convolution", dims, spelled, strides, ["", "", "", *asked.values()])


def conv_bwd(dy, x, w, mask, bias_sizes="[0]", types=(BF16,) * 3, strides=None, **named):
    """aten::convolution_backward as a trace records it."""
    asked = {
        "stride": "[1, 1]",
        "padding": "[1, 1]",
        "dilation": "[1, 1]",
        "transposed": "False",
        "output_padding": "[0, 0]",
        "groups": "1",
        **named,
    }
    return work_of(
        "aten::convolution_backward",
        [dy, x, w, *[[]] * 8],
        [*types, "ScalarList", *REST, "ScalarList"],
        strides,
        ["", "", "", bias_sizes, *asked.values(), mask],
    )


def test_convolution_of_a_trace():
    # h100 owlv2: the patch embedding; 1008 / 14 = 72 patches a side
    done = conv([1, 3, 1008, 1008], [1024, 3, 14, 14], stride="[14, 14]")
    assert done.flops == 2 * (1_024 * 72 * 72) * (3 * 14 * 14) == 6_242_697_216
    assert done.bytes == 2 * (3 * 1_008 * 1_008 + 1_024 * 588 + 1_024 * 5_184) == 17_917_440
    assert (done.dtype, done.why) == ("bf16", None)
    assert done.parameters == {
        "N": 1,
        "C_in": 3,
        "C_out": 1024,
        "inputs": 3_048_192,
        "outputs": 5_308_416,
        "kernel": 196,
        "groups": 1,
        "transposed": 0,
        "bias": 0,
    }


def test_the_leaf_in_it_has_its_own_positions():
    # h100 owlv2: aten::cudnn_convolution below it, padding before stride
    done = work_of(
        "aten::cudnn_convolution",
        [[1, 3, 1008, 1008], [1024, 3, 14, 14], *[[]] * 7],
        [BF16, BF16, *LISTS, *["Scalar"] * 4],
        None,
        ["", "", "[0, 0]", "[14, 14]", "[1, 1]", "1", "False", "False", "True"],
    )
    assert (done.flops, done.bytes) == (6_242_697_216, 17_917_440)


def test_the_peers_golden_row(shared_traces):
    folder = shared_traces / "h100/google_owlv2-large-patch14-ensemble__1016001_perf_report_csvs"
    with (folder / "CONV_fwd.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    done = conv([1, 3, 1008, 1008], [1024, 3, 14, 14], stride="[14, 14]")
    assert done.gflop == float(row["GFLOPS_first"])
    assert done.mib == float(row["Data Moved (MB)_first"])


def test_a_bias_counts_where_the_peer_misses_it():
    # perf_models A4: golden 130.459631616 GFLOP, 121.604 MiB; true +25 165 824 FLOP, +192 B
    spatial = {"stride": "[1, 1, 1]", "padding": "[0, 0, 0]", "dilation": "[1, 1, 1]"}
    x, w = [1, 96, 6, 258, 258], [96, 96, 3, 3, 3]
    without = conv(x, w, output_padding="[0, 0, 0]", **spatial)
    assert without.gflop == 130.459631616
    assert round(without.mib, 3) == 121.604
    done = conv(x, w, [96], output_padding="[0, 0, 0]", **spatial)
    assert done.flops - without.flops == 96 * 4 * 256 * 256 == 25_165_824
    assert done.bytes - without.bytes == 2 * 96


def test_backward_golden():
    # perf_models A4: 4.62422016 GFLOP, 15.453125 MiB
    done = conv_bwd(
        [10, 64, 56, 56], [10, 64, 56, 56], [64, 64, 3, 3], "[True, True, False]", "[0]"
    )
    n, w = 10 * 64 * 56 * 56, 64 * 64 * 3 * 3
    assert done.flops == 2 * 2 * n * 64 * 9 == 4_624_220_160
    assert done.bytes == 2 * ((n + w + n) + (n + n + w)) == 15.453125 * MIB
    assert [done.parameters[k] for k in ("dx", "dw", "db")] == [1, 1, 0]


@pytest.mark.parametrize(
    ("mask", "bias_sizes", "flops", "moved"),
    [
        # dy (2, 8, 4, 4) = 256, x (2, 3, 4, 4) = 96, w (8, 3, 3, 3) = 216; a pass is 2·256·27
        ("[True, True, False]", "[0]", 2 * 13_824, 2 * 256 + 216 + 96 + 96 + 216),
        ("[False, True, False]", "[0]", 13_824, 256 + 96 + 216),  # the peer counts both (C5)
        ("[True, False, False]", "[0]", 13_824, 256 + 216 + 96),
        ("[False, True, True]", "[8]", 13_824 + 256, 256 + 96 + 216 + 8),
        ("[True, True, True]", "[0]", 2 * 13_824, 2 * 256 + 216 + 96 + 96 + 216),
        ("[False, False, True]", "[8]", 256, 256 + 8),
        ("[False, False, True]", "", 256, 256 + 8),
        ("[False, False, False]", "[8]", 0, 0),
    ],
)
def test_backward_counts_what_its_mask_asks_for(mask, bias_sizes, flops, moved):
    done = conv_bwd([2, 8, 4, 4], [2, 3, 4, 4], [8, 3, 3, 3], mask, bias_sizes)
    assert (done.flops, done.bytes) == (flops, 2 * moved)


def test_bias_gradient_is_counted_in_bytes():
    # the peer adds C_out elements as if they were bytes (C5)
    with_bias = conv_bwd(
        [1, 4, 2, 2], [1, 4, 2, 2], [4, 4, 3, 3], "[True, True, True]", "[4]", (F32,) * 3
    )
    without = conv_bwd(
        [1, 4, 2, 2], [1, 4, 2, 2], [4, 4, 3, 3], "[True, True, False]", "[4]", (F32,) * 3
    )
    assert with_bias.bytes - without.bytes == 4 * 4


def test_transposed():
    # x (1, 4, 5, 5) = 100, w (4, 3, 3, 3): out (5-1)·2 - 2·1 + 1·(3-1) + 1 + 1 = 10 a side
    done = conv(
        [1, 4, 5, 5],
        [4, 3, 3, 3],
        [6],
        stride="[2, 2]",
        padding="[1, 1]",
        transposed="True",
        output_padding="[1, 1]",
        groups="2",
    )
    outputs = 6 * 10 * 10
    assert done.flops == 2 * 100 * 3 * 9 + outputs
    assert done.bytes == 2 * (100 + 4 * 3 * 9 + 6 + outputs)
    assert done.parameters["C_out"] == 6  # the peer has 3, w's second dimension


def test_a_single_number_is_for_all_dimensions():
    spread = conv([1, 8, 9, 9], [8, 8, 3, 3], stride="[2]", padding="[1]", dilation="[1]")
    assert spread == conv([1, 8, 9, 9], [8, 8, 3, 3], stride="[2, 2]", padding="[1, 1]")


def test_what_is_empty_is_the_default():
    # perf_models A4: "" is a stride of 1, no padding, a dilation of 1
    empty = conv([1, 8, 9, 9], [8, 8, 3, 3], stride="", padding="", dilation="")
    assert empty == conv([1, 8, 9, 9], [8, 8, 3, 3])


def test_without_a_batch():
    done = conv([3, 8, 8], [4, 3, 3, 3])
    assert done.flops == 2 * (4 * 6 * 6) * 27
    assert done.parameters["N"] == 1


def test_depthwise():
    # each of 64 outputs has one channel to read: w (64, 1, 3, 3)
    done = conv([1, 64, 8, 8], [64, 1, 3, 3], padding="[1, 1]", groups="64")
    assert done.flops == 2 * (64 * 64) * 9
    assert done.parameters["groups"] == 64


def test_empty_batch_is_no_work():
    done = conv([0, 3, 8, 8], [4, 3, 3, 3])
    assert done.flops == 0
    assert done.bytes == 2 * 4 * 27


def test_complex_numbers_are_eight_flops_a_multiply_add():
    types = ("c10::complex<float>",) * 2
    assert conv([1, 1, 3, 3], [1, 1, 3, 3], [1], types=types).flops == 8 * 9 + 2


def test_expanded_inputs_are_read_once():
    strides = [[192, 0, 8, 1], [27, 9, 3, 1], *[[]] * 7]
    done = conv([1, 3, 8, 8], [4, 3, 3, 3], strides=strides)
    assert done.bytes == 2 * (64 + 4 * 27 + 4 * 36)


GEOMETRY = ["[1, 1]", "[2, 2]", "[1, 1]"]  # padding, stride, dilation


@pytest.mark.parametrize(
    ("op", "tensors", "values"),
    [
        ("aten::_convolution", "xwb", [*"___", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0]", "1"]),
        ("aten::convolution_overrideable", "xwb", [*"___", "2", "1", "1", "False", "[0]", "1"]),
        ("aten::cudnn_convolution_relu", "xwb", [*"___", "[2, 2]", "[1, 1]", "[1, 1]", "1"]),
        ("aten::miopen_convolution_relu", "xwb", [*"___", "[2, 2]", "[1, 1]", "[1, 1]", "1"]),
        ("aten::miopen_convolution", "xwb", [*"___", *GEOMETRY, "1", "False", "False"]),
        ("aten::mkldnn_convolution", "xwb", [*"___", *GEOMETRY, "1"]),
        ("aten::thnn_conv2d", "xw_b", [*"__", "[3, 3]", "", "[2, 2]", "[1, 1]"]),
        ("aten::_slow_conv2d_forward", "xw_b", [*"__", "[3, 3]", "", "[2, 2]", "[1, 1]"]),
        ("aten::slow_conv_dilated2d", "xw_b", [*"__", "[3, 3]", "", "[2, 2]", "[1, 1]", "[1, 1]"]),
        ("ConvBias_", "xwb", [*"___", "1", "2"]),
        ("ConvBiasReLU_", "xwb", [*"___", "1", "2"]),
    ],
)
def test_other_positions_same_work(op, tensors, values):
    # x (1, 3, 9, 9), w (4, 3, 3, 3), bias: out (9 + 2 - 2 - 1) / 2 + 1 = 5 a side
    shapes = {"x": [1, 3, 9, 9], "w": [4, 3, 3, 3], "b": [4], "_": []}
    dims = [shapes[letter] for letter in tensors]
    dims += [[]] * (len(values) - len(dims))
    types = [F16 if dims_of else "Scalar" for dims_of in dims]
    done = work_of(op, dims, types, None, ["" if v == "_" else v for v in values])
    assert done.flops == 2 * 100 * 27 + 100
    assert done.bytes == 2 * (243 + 108 + 4 + 100)


@pytest.mark.parametrize(
    ("kernel", "values", "side"),
    [
        # Apex's source passes padding, stride; perf_models A4 has stride, padding. x is 9 a side.
        (3, ("0", "1"), 7),  # no stride is 0: padding 0, stride 1
        (3, ("1", "0"), 7),
        (1, ("0", "2"), 5),  # 9 / 2 rounded up
        (1, ("2", "0"), 5),
        (3, ("1", "2"), 5),  # a padding of 1 keeps the size of a kernel of 3: stride 2
        (3, ("2", "1"), 5),
        (7, ("3", "2"), 5),  # (9 + 6 - 7) / 2 + 1
        (7, ("2", "3"), 5),
        (3, ("1", "1"), 9),
    ],
)
def test_apex_in_either_order(kernel, values, side):
    done = work_of(
        "ConvBias_",
        [[1, 1, 9, 9], [1, 1, kernel, kernel], [1], [], []],
        [F16] * 3 + ["Scalar"] * 2,
        None,
        ["", "", "", *values],
    )
    assert done.parameters["outputs"] == side * side


@pytest.mark.parametrize(
    ("op", "dims", "values"),
    [
        (
            "aten::cudnn_convolution_add_relu",
            [[1, 3, 9, 9], [4, 3, 3, 3], [1, 4, 7, 7], [], [4], [], [], [], []],
            ["", "", "", "1", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"],
        ),
        (
            "ConvBiasMaskReLU_",
            [[1, 3, 9, 9], [4, 3, 3, 3], [4], [1, 4, 7, 7], [], []],
            ["", "", "", "", "0", "1"],
        ),
    ],
)
def test_epilogue_with_a_tensor(op, dims, values):
    types = [F16 if d else "Scalar" for d in dims]
    done = work_of(op, dims, types, None, values)
    assert done.flops == 2 * 196 * 27 + 2 * 196
    assert done.bytes == 2 * (243 + 108 + 4 + 196 + 196)


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("aten::cudnn_convolution_transpose", ["[1]", "[1]", "[2]", "[1]", "1"]),
        ("aten::slow_conv_transpose2d", ["[3, 3]", "", "[2]", "[1]", "[1]", "[1]"]),
    ],
)
def test_transposed_leafs(op, values):
    dims = [[1, 4, 5, 5], [4, 3, 3, 3], *[[]] * len(values)]
    done = work_of(op, dims, [F32] * 2 + [""] * len(values), None, ["", "", *values])
    assert done.flops == 2 * 100 * 3 * 9
    assert done.parameters["outputs"] == 3 * 10 * 10


def test_backward_of_apex_takes_its_forward():
    # the peer has the bytes of the forward here
    done = work_of_backward(
        "ConvBiasReLU_Backward",
        "ConvBiasReLU_",
        [[1, 3, 9, 9], [4, 3, 3, 3], [4], [], []],
        [F16] * 3 + ["Scalar"] * 2,
        None,
        ["", "", "", "1", "2"],
    )
    assert done.flops == 2 * (2 * 100 * 27) + 100
    assert done.bytes == 2 * ((100 + 108 + 243) + (100 + 243 + 108) + 4)


def test_backward_leafs():
    dims = [[2, 8, 4, 4], [2, 3, 4, 4], [8, 3, 3, 3]]
    slow_bwd = work_of(
        "aten::_slow_conv2d_backward", [*dims, *[[]] * 4], [F32] * 3 + [""] * 4, None,
        ["", "", "", "[3, 3]", "[1, 1]", "[1, 1]", "[True, True, True]"],
    )  # fmt: skip
    assert slow_bwd.flops == 2 * 13_824 + 256
    miopen = work_of(
        "aten::miopen_convolution_backward",
        [dims[1], dims[0], dims[2], *[[]] * 7],
        [F32] * 3 + [""] * 7,
        None,
        ["", "", "", "[1]", "[1]", "[1]", "1", "False", "False", "[True, True, True]"],
    )
    assert (miopen.flops, miopen.bytes) == (slow_bwd.flops, slow_bwd.bytes)


@st.composite
def convolutions(draw):
    dims = draw(st.integers(1, 3))
    small = st.integers(1, 3)

    def each(numbers):
        return draw(st.lists(numbers, min_size=dims, max_size=dims))

    groups, transposed = draw(small), draw(st.booleans())
    c_in, c_out = groups * draw(small), groups * draw(small)
    kernel = each(st.integers(1, 3))
    x = [draw(st.integers(0, 3)), c_in, *each(st.integers(1, 7))]
    w = [c_in, c_out // groups] if transposed else [c_out, c_in // groups]
    return {
        "x": x,
        "w": [*w, *kernel],
        "bias": draw(st.sampled_from([None, [c_out]])),
        "stride": each(st.integers(1, 3)),
        "padding": each(st.integers(0, 2)),
        "dilation": each(st.integers(1, 2)),
        "beyond": each(st.integers(0, 1)),
        "transposed": transposed,
        "groups": groups,
        "types": draw(st.sampled_from([(BF16, BF16), (F32, F32), (F32, BF16)])),
    }


def expected_shape(call):
    return slow.out_shape(
        *(
            call[k]
            for k in ("x", "w", "stride", "padding", "dilation", "beyond", "transposed", "groups")
        )
    )


def options(call):
    return {
        "stride": str(call["stride"]),
        "padding": str(call["padding"]),
        "dilation": str(call["dilation"]),
        "transposed": str(call["transposed"]),
        "output_padding": str(call["beyond"]),
        "groups": str(call["groups"]),
    }


@given(call=convolutions(), data=st.data())
def test_forward_equals_the_slow_count(call, data):
    out = expected_shape(call)
    x, w, bias, types = call["x"], call["w"], call["bias"], call["types"]
    laid = data.draw(layouts(x))
    strides = [laid, data.draw(layouts(w)), [1] if bias else [], *[[]] * 6]
    done = conv(x, w, bias, types, strides, **options(call))
    if min(out[2:]) < 1:
        assert (done.flops, done.bytes, done.why) == (None, None, MISFIT)
        return
    adds = slow.multiply_adds(x, w, out, call["transposed"], call["groups"])
    assert done.flops == 2 * adds + (math.prod(out) if bias else 0)
    assert done.bytes == (
        moved(x, types[0], laid)
        + moved(w, types[1], strides[1])
        + moved(bias, types[0])
        + moved(out, types[0])
    )


@given(call=convolutions(), mask=st.lists(st.booleans(), min_size=3, max_size=3), data=st.data())
def test_backward_equals_the_slow_count(call, mask, data):
    out = expected_shape(call)
    assume(min(out[2:]) >= 1)
    x, w, bias, types = call["x"], call["w"], call["bias"], call["types"]
    strides = [data.draw(layouts(out)), data.draw(layouts(x)), data.draw(layouts(w)), *[[]] * 8]
    sizes = str(bias or [0])
    done = conv_bwd(out, x, w, str(mask), sizes, (types[0], *types), strides, **options(call))
    adds = slow.multiply_adds(x, w, out, call["transposed"], call["groups"])
    of_dy = moved(out, types[0], strides[0])
    flops, total = 0, 0
    if mask[0]:
        flops += 2 * adds
        total += of_dy + moved(w, types[1], strides[2]) + moved(x, types[0])
    if mask[1]:
        flops += 2 * adds
        total += of_dy + moved(x, types[0], strides[1]) + moved(w, types[1])
    if mask[2] and bias:
        flops += math.prod(out)
        total += moved(bias, types[1]) + (0 if mask[0] or mask[1] else of_dy)
    assert (done.flops, done.bytes) == (flops, total)


@given(call=convolutions())
def test_backward_by_the_forward_equals_backward(call):
    out = expected_shape(call)
    assume(min(out[2:]) >= 1)
    x, w, bias = call["x"], call["w"], call["bias"]
    named = options(call)
    values = ["", "", "", *named.values()]
    types = [F32, F32, F32 if bias else "", *REST]
    done = work_of_backward(
        "aten::convolution_backward", "aten::convolution",
        [x, w, bias or [], *[[]] * 6], types, None, values,
    )  # fmt: skip
    own = conv_bwd(out, x, w, "[True, True, True]", str(bias or [0]), (F32,) * 3, **named)
    assert (done.flops, done.bytes) == (own.flops, own.bytes)


@pytest.mark.parametrize("op", ["aten::convolution", "aten::cudnn_convolution", "ConvBias_"])
def test_no_inputs(op):
    # hta nccl_data: ops without shapes
    done = work_of(op)
    assert (done.flops, done.bytes, done.why) == (None, None, NO_INPUTS)


X, W = [1, 3, 8, 8], [4, 3, 3, 3]


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (conv([], W), NO_SHAPE),
        (conv(X, []), NO_SHAPE),
        (work_of("aten::convolution", [X], [F32]), NO_SHAPE),
        (work_of("aten::convolution", [X, W], [F32, F32]), NO_VALUE),
        (conv(X, W, transposed=""), NO_VALUE),
        (conv(X, W, stride="[0, 0]"), MISFIT),
        (conv(X, W, stride="[-1, 1]"), MISFIT),
        (conv(X, W, stride="[1.5, 1]"), MISFIT),
        (conv(X, W, stride="[1, 1, 1]"), MISFIT),
        (conv(X, W, padding="same"), MISFIT),
        (conv(X, W, groups="3"), MISFIT),
        (conv(X, W, groups="[1, 1]"), MISFIT),
        (conv(X, W, groups="0"), MISFIT),
        (conv([1, 5, 8, 8], W), MISFIT),
        (conv([1, 3, 2, 2], W), MISFIT),
        (conv([8, 8], W), MISFIT),
        (conv([1, 3, 8, 8, 8, 8], [4, 3, 3, 3, 3, 3]), MISFIT),
        (conv([-1, 3, -8, 8], W), MISFIT),
        (conv([2**40, 3, 2**20, 8], W), TOO_LARGE),
        (conv_bwd([1, 4, 9, 9], X, W, "[True, True, True]"), MISFIT),
        (conv_bwd([1, 5, 8, 8], X, W, "[True, True, True]"), MISFIT),
        (conv_bwd([], X, W, "[True, True, True]"), NO_SHAPE),
        (conv_bwd([1, 4, 8, 8], X, W, ""), NO_VALUE),
        (conv_bwd([1, 4, 8, 8], X, W, "[True]"), MISFIT),
    ],
)
def test_bad_input_is_unknown_with_a_reason(done, why):
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_old_overload_with_a_bias_is_not_misread():
    # cudnn_convolution.deprecated(self, weight, bias, padding, stride, dilation, groups, …)
    done = work_of(
        "aten::cudnn_convolution",
        [X, W, *[[]] * 7],
        [F32, F32, "", *LISTS, *["Scalar"] * 3],
        None,
        ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False"],
    )
    assert (done.flops, done.bytes, done.why) == (None, None, MISFIT)


def test_without_types_the_flops_are_known():
    done = work_of(
        "aten::convolution", [X, W, *[[]] * 7], None, None,
        ["", "", "", "[1]", "[0]", "[1]", "False", "[0]", "1"],
    )  # fmt: skip
    assert (done.flops, done.bytes, done.why) == (2 * 144 * 27, None, NO_TYPE)
