"""Batch, instance and group norm, forward and backward."""

from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import MIB, table, work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_channel_norm as twin
from reference.formulas_norm import Tensor, kept

from tracehouse.formulas import channel_norm, channel_norm_bwd
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs

BF16 = "c10::BFloat16"
FLOATS = (BF16, "c10::Half", "float", "double")


def batch_norm(training, op="aten::batch_norm", running=True, affine=True):
    c = [64]
    dims = [[10, 64, 56, 56], *[c if affine else []] * 2, *[c if running else []] * 2]
    types = [BF16, *[BF16 if affine else ""] * 2, *[BF16 if running else ""] * 2]
    dims += [[]] * 4
    types += ["Scalar"] * 4
    return work_of(op, dims, types, values=["", "", "", "", "", training, "0.1", "1e-05", "True"])


def test_golden_batch_norm():
    n = 2_007_040
    done = batch_norm("True")
    assert done.gflop == pytest.approx(0.010035584, rel=1e-12)  # 5n + 6·64
    # the peer: n·2 read and written, and 6 vectors: weight, bias, running ones read and written
    assert 4 * n + 6 * 64 * 2 == pytest.approx(7.656982 * MIB, rel=1e-6)
    # the mean and the deviation that the backward call needs are outputs too, as float
    assert done.bytes == 4 * n + 6 * 64 * 2 + 2 * 64 * 4
    assert done.parameters == {"elements": n, "C": 64, "weight": 1, "training": 1}


def test_inference_is_not_training():
    # bool("False") is True for the peer: 5n + 6C and 6 vectors (perf_models C7)
    done = batch_norm("False")
    assert done.flops == 2 * 2_007_040 + 6 * 64
    assert done.bytes == 4 * 2_007_040 + 4 * 64 * 2


def test_batch_norm_without_vectors():
    done = batch_norm("True", running=False, affine=False)
    assert done.bytes == 4 * 2_007_040 + 2 * 64 * 4


@pytest.mark.parametrize(
    "op", ["aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::_batch_norm_impl_index"]
)
def test_inner_batch_norms_agree_with_the_outer(op):
    assert batch_norm("True", op) == batch_norm("True")


def test_batch_norm_legit_has_two_declarations():
    with_running = work_of(
        "aten::_native_batch_norm_legit",
        [[2, 3], [3], [3], [3], [3], [], [], []],
        ["float"] * 5 + ["Scalar"] * 3,
        values=["", "", "", "", "", "False", "0.1", "1e-05"],
    )
    assert (with_running.flops, with_running.bytes) == (2 * 6 + 18, 2 * 24 + 4 * 12)
    without = work_of(
        "aten::_native_batch_norm_legit",
        [[2, 3], [3], [3], [], [], []],
        ["float"] * 3 + ["Scalar"] * 3,
        values=["", "", "", "True", "0.1", "1e-05"],
    )
    assert (without.flops, without.bytes) == (5 * 6 + 18, 2 * 24 + 2 * 12 + 2 * 12)


def test_synchronised_parts_add_up():
    x, c = [2, 3, 4], [3]
    stats = work_of("aten::batch_norm_stats", [x, []], ["float", "Scalar"])
    assert (stats.flops, stats.bytes) == (3 * 24, 24 * 4 + 2 * 12)
    elemt = work_of("aten::batch_norm_elemt", [x, c, c, c, c, []], ["float"] * 5 + ["Scalar"])
    assert (elemt.flops, elemt.bytes) == (2 * 24 + 18, 2 * 96 + 4 * 12)
    update = work_of("aten::batch_norm_update_stats", [x, c, c, []], ["float"] * 3 + ["Scalar"])
    assert (update.flops, update.bytes) == (3 * 24, 96 + 4 * 12 + 2 * 12)
    reduce = work_of(
        "aten::batch_norm_backward_reduce",
        [x, x, c, c, c, [], [], []],
        ["float"] * 5 + ["Scalar"] * 3,
        values=["", "", "", "", "", "True", "True", "False"],
    )
    assert (reduce.flops, reduce.bytes) == (4 * 24, 2 * 96 + 2 * 12 + 2 * 12 + 12)
    back = work_of(
        "aten::batch_norm_backward_elemt",
        [x, x, c, c, c, c, c, [1]],
        ["float"] * 7 + ["int"],
    )
    assert (back.flops, back.bytes) == (5 * 24, 3 * 96 + 5 * 12 + 4)


def batch_norm_backward(training, mask="[True, True, True]"):
    x, c = [10, 64, 112, 112], [64]
    return work_of(
        "aten::native_batch_norm_backward",
        [x, x, c, c, c, c, c, [], [], []],
        [BF16, BF16, BF16, BF16, BF16, "float", "float", "Scalar", "Scalar", ""],
        values=["", "", "", "", "", "", "", training, "1e-05", mask],
    )


def test_golden_batch_norm_backward():
    n = 8_028_160
    done = batch_norm_backward("True")
    assert done.gflop == pytest.approx(0.07225344, rel=1e-12)  # 9n
    assert 6 * n + 4 * 64 * 2 == pytest.approx(45.937988 * MIB, rel=1e-6)  # the peer: 4 vectors
    # weight read, its gradient and the bias's written, the two saved statistics as float
    assert done.bytes == 6 * n + 3 * 64 * 2 + 2 * 64 * 4


def test_backward_of_inference():
    n = 8_028_160
    done = batch_norm_backward("False")
    assert done.flops == 4 * n + 3 * 64
    assert done.bytes == 6 * n + 3 * 64 * 2 + 2 * 64 * 2  # the running statistics
    assert batch_norm_backward("False", "[True, False, False]").bytes == 4 * n + 3 * 64 * 2


@pytest.mark.parametrize(
    "op", ["aten::cudnn_batch_norm_backward", "aten::miopen_batch_norm_backward"]
)
def test_vendor_backward_trains(op):
    # the peer assumes inference: 4n FLOPs and 2n·b (perf_models C9)
    x, c = [2, 3, 4], [3]
    dims, types = [x, x, c, c, c, c, c, []], ["float"] * 7 + ["Scalar"]
    done = work_of(op, dims, types)
    assert (done.flops, done.bytes) == (9 * 24, 3 * 96 + 5 * 12)


def test_instance_norm_keeps_statistics_of_every_sample():
    dims, types = [[2, 3, 4], [3], [3], [], [], [], [], [], []], ["float"] * 3 + [""] * 6
    values = ["", "", "", "", "", "True", "0.1", "1e-05", "True"]
    done = work_of("aten::instance_norm", dims, types, values=values)
    assert (done.flops, done.bytes) == (5 * 24 + 18, 2 * 96 + 2 * 12 + 2 * 2 * 12)


def test_group_norm():
    x = [2, 6, 4]
    outer = work_of(
        "aten::group_norm",
        [x, [], [6], [6], [], []],
        [BF16, "Scalar", BF16, BF16, "Scalar", "Scalar"],
        values=["", "3", "", "", "1e-05", "True"],
    )
    # 5n + 6C; x, y, weight, bias and a mean and a deviation for each of 2·3 groups
    assert (outer.flops, outer.bytes) == (5 * 48 + 36, 2 * 96 + 2 * 12 + 2 * 6 * 2)
    inner = work_of(
        "aten::native_group_norm",
        [x, [6], [6], [], [], [], [], []],
        [BF16, BF16, BF16] + ["Scalar"] * 5,
        values=["", "", "", "2", "6", "4", "3", "1e-05"],
    )
    assert inner == outer


def test_group_norm_backward():
    # the peer takes C/G and looks for the weight in slot 5, a number (perf_models C9)
    x = [2, 6, 4]
    done = work_of(
        "aten::native_group_norm_backward",
        [x, x, [2, 3], [2, 3], [6], [], [], [], [], []],
        ["float"] * 5 + ["Scalar"] * 4 + [""],
        values=["", "", "", "", "", "2", "6", "4", "3", "[True, True, True]"],
    )
    assert (done.flops, done.bytes) == (9 * 48, 3 * 192 + 2 * 24 + 3 * 24)


@pytest.mark.parametrize(
    ("dims", "values", "why"),
    [
        (None, None, "shape"),
        ([[4]], None, "shape"),
        ([[2, 3], [4], [4], [], [], []], ["", "", "", "", "", "True"], "fit"),
        ([[2, 3], [3], [3], [], [], []], None, "value"),
        ([[2, 3], [3], [3], [], [], []], ["", "", "", "", "", "maybe"], "value"),
        ([[-2, -3], [], [], [], [], []], ["", "", "", "", "", "True"], "shape"),
        ([[2**40, 2**40], [], [], [], [], []], ["", "", "", "", "", "True"], "out of range"),
    ],
)
def test_unknown(dims, values, why):
    # hta/nccl_parser_config has batch norms without any input
    types = None if dims is None else ["float" if d else "" for d in dims]
    done = work_of("aten::batch_norm", dims, types, values=values)
    assert (done.flops, done.bytes) == (None, None)
    assert why in done.why


def test_group_norm_without_number_of_groups():
    done = work_of("aten::group_norm", [[2, 6, 4], [], [6], [6]], ["float", "", "float", "float"])
    assert (done.flops, done.bytes) == (5 * 48 + 36, None)
    assert "value" in done.why
    dims, types = [[2, 6, 4], [], [], []], ["float", "Scalar", "", ""]
    for groups in ("4", "0", "-3"):
        done = work_of("aten::group_norm", dims, types, values=["", groups, "", ""])
        assert (done.flops, done.bytes) == (None, None)
        assert "fit" in done.why


@pytest.mark.parametrize(
    "op",
    [
        "aten::batch_norm_gather_stats_with_counts",
        "aten::native_instance_norm",
        "aten::cudnn_group_norm",
        "aten::instance_norm_backward",
        "aten::group_norm_backward",
    ],
)
def test_ops_of_no_known_declaration(op):
    with pytest.raises(AssertionError, match="no slots"):
        work_of(op, [[2, 4]], ["float"])


def shape(draw):
    return (
        draw(st.integers(0, 3)),
        draw(st.integers(1, 4)),
        *draw(st.lists(st.integers(0, 4), max_size=2)),
    )


def vector(draw, length):
    return draw(st.none() | st.builds(Tensor, st.just((length,)), st.sampled_from(FLOATS)))


def as_args(*tensors):
    return (
        [[] if t is None else list(t.shape) for t in tensors],
        ["" if t is None else t.type for t in tensors],
    )


@given(st.data())
def test_forward_equals_reference(data):
    x = Tensor(shape(data.draw), data.draw(st.sampled_from(FLOATS)))
    channels = x.shape[1]
    w, b, mean, var = (vector(data.draw, channels) for _ in range(4))
    training = data.draw(st.booleans())
    for op, per_sample in (("aten::batch_norm", False), ("aten::instance_norm", True)):
        done = work_of(
            op, *as_args(x, w, b, mean, var, None), values=["", "", "", "", "", str(training)]
        )
        expected = twin.batch_norm(x, w, b, mean, var, training, per_sample)
        assert (done.flops, done.bytes) == expected
    groups = data.draw(st.sampled_from([g for g in range(1, 5) if channels % g == 0]))
    done = work_of("aten::group_norm", *as_args(x, None, w, b), values=["", str(groups), "", ""])
    assert (done.flops, done.bytes) == twin.group_norm(x, w, b, groups)


@given(st.data())
def test_backward_equals_reference(data):
    x = Tensor(shape(data.draw), data.draw(st.sampled_from(FLOATS)))
    samples, channels = x.shape[:2]
    w = vector(data.draw, channels)
    running = [Tensor((channels,), "float")] * 2
    training = data.draw(st.booleans())
    saved = [Tensor((channels if training else 0,), kept(x.type))] * 2
    mask = data.draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    done = work_of(
        "aten::native_batch_norm_backward",
        *as_args(x, x, w, *running, *saved, None, None, None),
        values=["", "", "", "", "", "", "", str(training), "1e-05", str(list(mask))],
    )
    expected = twin.batch_norm_backward(x, x, w, running, saved, training, mask)
    assert (done.flops, done.bytes) == expected
    groups = data.draw(st.sampled_from([g for g in range(1, 5) if channels % g == 0]))
    mean = Tensor((samples, groups), twin.group_kept(x, w))
    numbers = map(str, (samples, channels, math.prod(x.shape[2:]), groups, list(mask)))
    done = work_of(
        "aten::native_group_norm_backward",
        *as_args(x, x, mean, mean, w, None, None, None, None, None),
        values=["", "", "", "", "", *numbers],
    )
    assert (done.flops, done.bytes) == twin.group_norm_backward(x, x, mean, mean, w, mask)


def backward_of(op, family, dims, types, values):
    """The work of a backward call from the inputs of its forward call."""
    forward = next(m for m in channel_norm.MODELS if family in m.families)
    backward = next(m for m in channel_norm_bwd.MODELS if f"{family}_bwd" in m.families)
    found, (row,) = table([{"dims": dims, "types": types, "values": values}])
    slots = np.array([backward.slots_of_forward(forward, op, family)], dtype=np.int64)
    work = evaluate(backward, read_inputs(found), np.array([row]), slots, np.array([math.nan]))
    return work.flops[0], work.bytes[0]


def test_backward_from_forward():
    x, w = Tensor((2, 4, 3), BF16), Tensor((4,), "float")
    all_three = (True, True, True)
    for training in (True, False):
        args = as_args(x, w, w, w, w, None)
        values = ["", "", "", "", "", str(training)]
        kept_each = [Tensor((4,), "float")] * 2
        expected = twin.batch_norm_backward(x, x, w, [w, w], kept_each, training, all_three)
        assert backward_of("aten::batch_norm", "batch_norm", *args, values) == expected
    kept_each = [Tensor((2, 4), "float")] * 2
    values[-1] = "True"
    expected = twin.batch_norm_backward(x, x, w, [w, w], kept_each, True, all_three)
    assert backward_of("aten::instance_norm", "instance_norm", *args, values) == expected
    mean = Tensor((2, 2), "float")
    expected = twin.group_norm_backward(x, x, mean, mean, w, all_three)
    args = as_args(x, None, w, w)
    assert backward_of("aten::group_norm", "group_norm", *args, ["", "2", "", ""]) == expected
