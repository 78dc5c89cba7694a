"""Normalisation by rows, forward and backward."""

from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import MIB, table, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_norm as twin
from reference.formulas_norm import Tensor

from tracehouse.formulas import norm, norm_bwd
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs

BF16 = "c10::BFloat16"
FLOATS = (BF16, "c10::Half", "float", "double")


def layer_norm(shape, types=(BF16, BF16, BF16), affine=True, op="aten::native_layer_norm"):
    parameter = [shape[-1]] if affine else []
    x, w, b = types
    return work_of(
        op,
        [list(shape), [], parameter, parameter, []],
        [x, "ScalarList", w if affine else "", b if affine else "", "Scalar"],
        values=["", f"[{shape[-1]}]", "", "", "1e-05"],
    )


# The rows of the traces: h100/gaunernst_bert (first), h100/google_owlv2 (the others), and what
# the peer has for them in `Data Moved (MB)`. It counts 6·C·2 for the vectors: weight, bias and
# four of statistics as long as a row.
TRACES = [
    ((1, 141, 512), 0.000364032, 0.28125, 141),
    ((1, 5185, 1024), 0.026553344, 20.265625, 5185),
    ((1, 5184, 1024), 0.026548224, 20.26171875, 5184),
    ((1, 5, 768), 0.000023808, 0.0234375, 5),
    ((1, 1024), 0.000011264, 0.015625, 1),
]


@pytest.mark.parametrize(("shape", "gflop", "peer_mib", "rows"), TRACES)
def test_traces_layer_norm(shape, gflop, peer_mib, rows):
    done = layer_norm(shape)
    n, c = math.prod(shape), shape[-1]
    assert done.gflop == pytest.approx(gflop, rel=1e-12)
    assert peer_mib * MIB == n * 2 * 2 + 6 * c * 2
    # x read and y written, weight and bias, a mean and a deviation of every row as float
    assert done.bytes == n * 2 * 2 + 2 * c * 2 + 2 * rows * 4
    assert (done.dtype, done.why) == ("bf16", None)
    assert done.parameters == {"rows": rows, "C": c, "weight": 1, "bias": 1}


def test_bert_row_by_hand():
    # 72,192·2 read + 72,192·2 written + 512·2·2 + 141·2·4
    assert layer_norm((1, 141, 512)).bytes == 144_384 + 144_384 + 2_048 + 1_128 == 291_944


def test_golden_layer_norm_without_affine():
    done = layer_norm((1, 32256, 1536), ("float", "", ""), affine=False)
    assert done.gflop == pytest.approx(0.247735296, rel=1e-12)  # 5·49,545,216 + 6·1,536
    assert done.bytes == 2 * 49_545_216 * 4 + 2 * 32_256 * 4
    assert done.mib != pytest.approx(378.03515625, rel=1e-6)  # the peer: four vectors of 1,536


def test_outer_and_inner_layer_norm_agree():
    args = {
        "dims": [[4, 8], [], [8], [8], []],
        "types": ["float", "", "float", "float", "Scalar"],
        "values": ["", "[8]", "", "", "1e-05"],
    }
    inner = work_of("aten::native_layer_norm", **args)
    args["dims"].append([])
    args["types"].append("Scalar")
    args["values"].append("True")
    assert work_of("aten::layer_norm", **args) == inner


def test_golden_rms_norm():
    # (8, 16, 32, 32) over [32, 32]: 128 rows of 1,024
    dims, types = [[8, 16, 32, 32], [], [32, 32], []], ["float", "ScalarList", "float", "Scalar"]
    done = work_of("aten::_fused_rms_norm", dims, types, values=["", "[32, 32]", "", ""])
    assert done.flops == 128 * (2 * 1024 + 2) + 131_072 * 2 == 524_544
    assert done.bytes == 1.00390625 * MIB + 128 * 4  # the peer leaves out the deviation of each row
    dims, types = [[8, 16, 32, 32], [], [], []], ["float", "ScalarList", "", "Scalar"]
    done = work_of("aten::_fused_rms_norm", dims, types, values=["", "[32, 32]", "", ""])
    assert done.flops == 128 * 2050 + 131_072
    assert done.bytes == 2 * 131_072 * 4 + 128 * 4


def test_golden_rms_norm_backward():
    x = [8, 16, 32, 32]
    dims = [x, x, [], [8, 16, 1, 1], [32, 32], []]
    types = ["float", "float", "ScalarList", "float", "float", ""]
    values = ["", "", "[32, 32]", "", "", "[True, True]"]
    done = work_of("aten::_fused_rms_norm_backward", dims, types, values=values)
    assert done.flops == 10 * 131_072 == 1_310_720
    assert done.bytes == 1.5078125 * MIB + 128 * 4  # the peer leaves out the deviation of each row
    values[-1] = "[False, True]"
    done = work_of("aten::_fused_rms_norm_backward", dims, types, values=values)
    assert done.flops == 4 * 131_072
    assert done.bytes == 2 * 131_072 * 4 + 128 * 4 + 1_024 * 4


def test_layer_norm_backward():
    # 9n; dy, x, weight, mean and deviation read, three gradients written
    dims = [[2, 4], [2, 4], [], [2, 1], [2, 1], [4], [4], []]
    types = [BF16, BF16, "ScalarList", "float", "float", "float", "float", ""]
    values = ["", "", "[4]", "", "", "", "", "[True, True, True]"]
    done = work_of("aten::native_layer_norm_backward", dims, types, values=values)
    assert done.flops == 9 * 8
    assert done.bytes == 8 * 2 + 8 * 2 + 2 * 4 + 2 * 4 + 4 * 4 + 8 * 2 + 4 * 4 + 4 * 4
    values[-1] = "[False, False, True]"
    done = work_of("aten::native_layer_norm_backward", dims, types, values=values)
    assert (done.flops, done.bytes) == (6 * 8, 8 * 2 + 4 * 4)


def test_ln_modulate():
    # 12n; 2nb + 2BHb + 8TB, then 15n; 3nb + 8TB + 3BHb (perf_models A10), T, B, H = 4, 3, 8
    x, scale = [4, 3, 8], [3, 8]
    done = work_of("primus::fused_ln_modulate", [x, scale, scale, []], [BF16, BF16, BF16, "Scalar"])
    assert (done.flops, done.bytes) == (12 * 96, 2 * 96 * 2 + 2 * 24 * 2 + 8 * 12)
    dims, types = [x, x, [12], [12], scale], [BF16, BF16, "float", "float", BF16]
    done = work_of("primus::fused_ln_modulate_backward", dims, types)
    assert (done.flops, done.bytes) == (15 * 96, 3 * 96 * 2 + 8 * 12 + 3 * 24 * 2)


@pytest.mark.parametrize(
    ("op", "dims", "flops", "kept"),
    [
        ("FusedRMSNormAffineFunction", [[2, 4], [4]], 2 * (8 + 2) + 16, 1),
        ("LigerRMSNormFunction", [[2, 4], [4], [], []], 2 * (8 + 2) + 16, 1),
        ("FusedLayerNormAffineFunction", [[2, 4], [4], [4]], 5 * 8 + 6 * 4, 2),
    ],
)
def test_autograd_functions(op, dims, flops, kept):
    vectors = len([d for d in dims[1:] if d])
    done = work_of(op, dims, [BF16 if d else "Scalar" for d in dims])
    assert done.flops == flops
    assert done.bytes == 2 * 8 * 2 + vectors * 4 * 2 + kept * 2 * 4


def test_liger_without_weight_takes_the_last_dimension():
    done = work_of("LigerRMSNormFunction", [[2, 4], [], []], [BF16, "Scalar", "Scalar"])
    assert done.flops == 2 * (8 + 2) + 8


def test_expanded_input_is_read_once():
    dims, types = [[8, 4], [], [], []], ["float", "", "", "Scalar"]
    values = ["", "[4]", "", ""]
    done = work_of("aten::rms_norm", dims, types, [[0, 1], [], [], []], values)
    assert done.bytes == 4 * 4 + 32 * 4 + 8 * 4


def test_shape_without_values_is_that_of_the_weight():
    # hta/timeline_analysis: shapes and types, no concrete inputs
    dims, types = [[2048, 1, 742], [], [1, 742], [1, 742], []], ["float", "", "float", "float", ""]
    done = work_of("aten::native_layer_norm", dims, types)
    assert done.flops == 5 * 2048 * 742 + 6 * 742
    assert done.parameters["rows"] == 2048


@pytest.mark.parametrize(
    ("dims", "values", "why"),
    [
        (None, None, "shape"),
        ([[]], None, "shape"),
        ([[2, 4], [], [], [], []], None, "value"),  # neither a shape nor a weight
        ([[2, 4], [], [3], [], []], ["", "[4]", "", "", ""], "fit"),
        ([[2, 4], [], [4], [], []], ["", "[5]", "", "", ""], "fit"),
        ([[2, 4], [], [], [], []], ["", "[2, 4, 4]", "", "", ""], "fit"),
        ([[2, 4], [], [], [], []], ["", "[]", "", "", ""], "fit"),
        ([[-2, -4], [], [-4], [], []], ["", "[-4]", "", "", ""], "shape"),
        ([[2**40, 2**40], [], [], [], []], ["", f"[{2**40}]", "", "", ""], "out of range"),
    ],
)
def test_unknown(dims, values, why):
    types = None if dims is None else ["float" if d else "" for d in dims]
    done = work_of("aten::layer_norm", dims, types, values=values)
    assert (done.flops, done.bytes) == (None, None)
    assert why in done.why


def test_no_types_leave_flops():
    done = work_of("aten::layer_norm", [[2, 4], [], [4], [4], [], []])
    assert (done.flops, done.bytes) == (5 * 8 + 6 * 4, None)
    assert "type" in done.why


def test_no_mask_is_unknown():
    # hta/timeline_analysis has no concrete inputs: which gradients were asked for is not known
    dims = [[2, 4], [2, 4], [], [2, 1], [2, 1], [4], [4], []]
    types = ["float", "float", "", "float", "float", "float", "float", ""]
    done = work_of("aten::native_layer_norm_backward", dims, types)
    assert (done.flops, done.bytes) == (None, None)
    assert "value" in done.why


def test_no_elements():
    dims, types = [[0, 4], [], [], [], []], ["float", "", "", "", ""]
    done = work_of("aten::layer_norm", dims, types, values=["", "[4]", "", "", ""])
    assert (done.flops, done.bytes, done.why) == (24, 0, None)


@pytest.mark.parametrize(
    "op",
    ["aten::cudnn_layer_norm", "aten::miopen_layer_norm", "apex::fused_rms_norm"],
)
def test_ops_of_no_known_declaration(op):
    with pytest.raises(AssertionError, match="no slots"):
        work_of(op, [[2, 4]], ["float"])


def backward_of(forward_op, family, backward, dims, types, values):
    """The work of a backward call from the inputs of its forward call."""
    forward = next(m for m in norm.MODELS if family in m.families)
    found, (row,) = table([{"dims": dims, "types": types, "values": values}])
    slots = backward.slots_of_forward(forward, forward_op, family)
    work = evaluate(
        backward,
        read_inputs(found),
        np.array([row]),
        np.array([slots], dtype=np.int64),
        np.array([math.nan]),
    )
    return work.flops[0], work.bytes[0]


def test_backward_from_forward():
    dims, types = [[2, 4], [], [4], [4], []], ["float", "", "float", "float", "Scalar"]
    args = (dims, types, ["", "[4]", "", "", ""])
    own = twin.layer_norm_backward(
        Tensor((2, 4), "float"),
        Tensor((2, 4), "float"),
        Tensor((2, 1), "float"),
        Tensor((2, 1), "float"),
        Tensor((4,), "float"),
        Tensor((4,), "float"),
        (True, True, True),
    )
    found = backward_of("aten::layer_norm", "layer_norm", norm_bwd.MODELS[0], *args)
    assert found == own
    rms = norm_bwd.MODELS[1]
    liger = backward_of(
        "LigerRMSNormFunction", "rms_norm", rms, [[2, 4], [4]], ["float", "float"], None
    )
    assert liger == (10 * 8, 3 * 32 + 2 * 4 + 2 * 16)
    apex = backward_of(
        "FusedLayerNormAffineFunction", "rms_norm", rms, [[2, 4], [4], [4]], ["float"] * 3, None
    )
    assert apex == own


@st.composite
def tensors(draw, rank=None):
    shape = draw(st.lists(st.integers(0, 5), min_size=rank or 1, max_size=rank or 4))
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, draw(st.sampled_from((step, step, step, 0))))
        step *= max(size, 1)
    kind = draw(st.sampled_from(FLOATS))
    return Tensor(tuple(shape), kind, draw(st.sampled_from((None, tuple(strides)))))


def as_args(*tensors_):
    """Shapes, types and strides as a trace has them; None is an absent tensor."""
    dims = [[] if t is None else list(t.shape) for t in tensors_]
    types = ["" if t is None else t.type for t in tensors_]
    strides = []
    for t in tensors_:
        shape = () if t is None else t.shape
        if t is not None and t.strides is not None:
            strides.append(list(t.strides))
        else:
            strides.append([math.prod(shape[d + 1 :]) for d in range(len(shape))])
    return dims, types, strides


def parameters(draw, shape):
    return draw(st.none() | st.builds(Tensor, st.just(shape), st.sampled_from(FLOATS)))


@given(st.data())
def test_forward_equals_reference(data):
    x = data.draw(tensors())
    normalised = data.draw(st.integers(1, len(x.shape)))
    row = x.shape[-normalised:]
    w, b = parameters(data.draw, row), parameters(data.draw, row)
    value = "[" + ", ".join(map(str, row)) + "]"
    done = work_of("aten::layer_norm", *as_args(x, None, w, b), values=["", value, "", ""])
    assert (done.flops, done.bytes) == twin.layer_norm(x, w, b, normalised)
    done = work_of("aten::_fused_rms_norm", *as_args(x, None, w), values=["", value, ""])
    assert (done.flops, done.bytes) == twin.rms_norm(x, w, normalised)


@given(st.data())
def test_backward_equals_reference(data):
    x = data.draw(tensors())
    dy = Tensor(x.shape, x.type)
    normalised = data.draw(st.integers(1, len(x.shape)))
    row, rows = x.shape[-normalised:], x.shape[:-normalised]
    w, b = parameters(data.draw, row), parameters(data.draw, row)
    mean = Tensor((*rows, *(1 for _ in row)), twin.kept(x.type))
    mask = data.draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    value = "[" + ", ".join(map(str, row)) + "]"
    done = work_of(
        "aten::native_layer_norm_backward",
        *as_args(dy, x, None, mean, mean, w, b, None),
        values=["", "", value, "", "", "", "", str(list(mask))],
    )
    expected = twin.layer_norm_backward(dy, x, mean, mean, w, b, mask)
    assert (done.flops, done.bytes) == expected
    done = work_of(
        "aten::_fused_rms_norm_backward",
        *as_args(dy, x, None, mean, w, None),
        values=["", "", value, "", "", str(list(mask[:2]))],
    )
    assert (done.flops, done.bytes) == twin.rms_norm_backward(dy, x, mean, w, mask)


@given(tensors(rank=3), st.sampled_from(FLOATS))
def test_ln_modulate_equals_reference(x, kind):
    scale = Tensor(x.shape[1:], kind)
    mean = Tensor((x.shape[0] * x.shape[1],), "float")
    done = work_of("primus::fused_ln_modulate", *as_args(x, scale, scale))
    assert (done.flops, done.bytes) == twin.ln_modulate(x, scale, scale)
    done = work_of("primus::fused_ln_modulate_backward", *as_args(x, x, mean, mean, scale))
    assert (done.flops, done.bytes) == twin.ln_modulate_backward(x, x, mean, mean, scale)
