from __future__ import annotations

import math

import pytest
from formula_cases import work_of
from formula_layouts import layouts, work_of_backward
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_loss as slow
from reference.tensors import SIZES, moved

BF16, F32, I64 = "c10::BFloat16", "float", "long int"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
NO_FORMULA = "no formula for this form of the op"
TOO_LARGE = "the product of the shapes is out of range"
NONE, MEAN, SUM = "0", "1", "2"


def call(op, tensors, types, values, strides=None):
    """A call of an op whose tensors come first; a tensor that is None is absent."""
    dims = [*(shape or [] for shape in tensors), *[[]] * len(values)]
    spelled = [*types, *["Scalar"] * len(values)]
    texts = [*[""] * len(tensors), *values]
    return work_of(op, dims, spelled, strides and [*strides, *[[]] * len(values)], texts)


def test_mse_loss_of_a_trace():
    # hta mi250_minitoy: Input Dims [[5, 128], [5, 128], []], Concrete Inputs ["", "", "1"]
    done = work_of(
        "aten::mse_loss", [[5, 128], [5, 128], []], [F32, F32, "Scalar"],
        [[128, 1], [128, 1], []], ["", "", "1"],
    )  # fmt: skip
    assert done.flops == 3 * 640  # difference, square, sum
    assert done.bytes == 4 * (640 + 640 + 1)
    assert (done.dtype, done.why) == ("fp32", None)
    assert done.parameters == {"samples": 640, "reduction": 1}


def test_mse_loss_backward_of_a_trace():
    # hta mi250_minitoy: [[], [5, 128], [5, 128], []], and once more with the output appended
    dims, types = [[], [5, 128], [5, 128], []], [F32, F32, F32, "Scalar"]
    done = work_of("aten::mse_loss_backward", dims, types, None, ["", "", "", "1"])
    assert done.flops == 3 * 640
    assert done.bytes == 4 * (1 + 640 + 640 + 640)
    appended = work_of(
        "aten::mse_loss_backward", [*dims, [5, 128]], [*types, F32], None, ["", "", "", "1", ""]
    )
    assert appended == done


def test_without_the_reduction_the_output_is_not_known():
    # hta trace_filter, an old trace without Concrete Inputs
    done = work_of(
        "aten::binary_cross_entropy_with_logits",
        [[2048], [2048], [], [], []],
        [F32, F32, "", "", "Scalar"],
    )
    assert (done.flops, done.bytes, done.why) == (None, None, NO_VALUE)


@pytest.mark.parametrize(
    ("reduction", "flops", "written"), [(NONE, 2 * 640, 640), (MEAN, 1920, 1), (SUM, 1920, 1)]
)
def test_the_reduction_decides_the_output(reduction, flops, written):
    done = call("aten::mse_loss", [[5, 128], [5, 128]], [F32] * 2, [reduction])
    assert done.flops == flops
    assert done.bytes == 4 * (1280 + written)


def test_nll_loss_reads_an_element_a_sample():
    # perf_models A14: read B·(b + 8); the output and the total weight are written
    done = call("aten::nll_loss_forward", [[32, 1000], [32], None], [F32, I64, ""], [MEAN, "-100"])
    assert done.flops == 32
    assert done.bytes == 32 * (4 + 8) + 4 + 4
    assert done.parameters == {"samples": 32, "classes": 1000, "reduction": 1}


def test_nll_loss_with_weights():
    weighted = call(
        "aten::nll_loss_forward", [[32, 10], [32], [10]], [F32, I64, F32], [NONE, "-100"]
    )
    assert weighted.flops == 32 * 3
    assert weighted.bytes == 32 * (4 + 8) + 10 * 4 + 32 * 4 + 4


def test_nll_loss2d():
    done = call(
        "aten::nll_loss2d_forward", [[2, 5, 3, 3], [2, 3, 3], None], [BF16, I64, ""], [SUM, "-100"]
    )
    assert done.flops == 18
    assert done.bytes == 18 * (2 + 8) + 2 + 2


def test_nll_loss_backward_writes_all_of_the_gradient():
    done = work_of(
        "aten::nll_loss_backward", [[], [32, 1000], [32], [], [], [], []],
        [F32, F32, I64, "", "Scalar", "Scalar", F32], None, ["", "", "", "", "1", "-100", ""],
    )  # fmt: skip
    assert done.flops == 32
    assert done.bytes == 4 + 32 * 8 + 4 + 4 * 32_000


def test_cross_entropy_loss():
    # 5 a logit for the logarithm of the softmax, then as nll_loss
    x, values = [[32, 1000], [32], None], [MEAN, "-100", "0."]
    done = call("aten::cross_entropy_loss", x, [F32, I64, ""], values)
    assert done.flops == 5 * 32_000 + 32
    assert done.bytes == 4 * 32_000 + 8 * 32 + 4
    smoothed = call("aten::cross_entropy_loss", x, [F32, I64, ""], [*values[:2], "0.1"])
    assert smoothed.flops == done.flops + 32_000


def test_cross_entropy_loss_of_probabilities():
    done = call(
        "aten::cross_entropy_loss", [[32, 10], [32, 10], None], [F32, F32, ""], [NONE, "-100", "0."]
    )
    assert done.flops == 5 * 320 + 2 * 320
    assert done.bytes == 4 * (320 + 320 + 32)


@pytest.mark.parametrize("op", ["CrossEntropyFunction", "LigerCrossEntropyFunction"])
def test_fused_cross_entropy(op):
    # perf_models A14: 5·B·V; n·b + 8·B + 4·B. B = 4096, V = 32000, bf16
    done = call(op, [[4096, 1, 32_000], [4096, 1]], [BF16, I64], [])
    assert done.flops == 5 * 4096 * 32_000
    assert done.bytes == 2 * 4096 * 32_000 + 8 * 4096 + 4 * 4096


def test_fused_cross_entropy_backward_scales_the_stored_gradient():
    done = work_of_backward(
        "CrossEntropyFunctionBackward", "CrossEntropyFunction",
        [[8, 2, 100], [8, 2]], [BF16, I64], None, ["", ""],
    )  # fmt: skip
    assert done.flops == 1600
    assert done.bytes == 2 * 1600 * 2 + 16 * 4


def test_binary_cross_entropy():
    done = call("aten::binary_cross_entropy", [[8], [8], None], [F32, F32, ""], [MEAN])
    assert (done.flops, done.bytes) == (8 * (8 + 1), 4 * 17)
    weighted = call("aten::binary_cross_entropy", [[8], [8], [8]], [F32] * 3, [NONE])
    assert (weighted.flops, weighted.bytes) == (8 * (8 + 1), 4 * 32)
    backward = call("aten::binary_cross_entropy_backward", [[8], [8], [8], [8]], [F32] * 4, [NONE])
    assert (backward.flops, backward.bytes) == (8 * (6 + 1), 4 * 40)


def test_binary_cross_entropy_with_logits():
    done = call(
        "aten::binary_cross_entropy_with_logits",
        [[4, 3], [4, 3], None, [3]],
        [F32, F32, "", F32],
        [SUM],
    )
    assert done.flops == 12 * (9 + 4 + 1)
    assert done.bytes == 4 * (12 + 12 + 3 + 1)


SHAPES = st.lists(st.integers(0, 4), max_size=3)


@given(
    op=st.sampled_from(sorted(slow.PAIRS)),
    x=SHAPES,
    target=SHAPES,
    types=st.sampled_from([(F32, F32, F32), (BF16, F32, F32), (BF16, BF16, BF16)]),
    reduction=st.sampled_from([NONE, MEAN, SUM]),
    data=st.data(),
)
def test_pairs_equal_the_slow_count(op, x, target, types, reduction, data):
    strides = [data.draw(layouts(x)), data.draw(layouts(target)), [], []]
    done = work_of(
        f"aten::{op}", [x, target, [], []], [*types[:2], "Scalar", "Scalar"], strides,
        ["", "", reduction, "1."],
    )  # fmt: skip
    n = slow.pairs(x, target)
    if n is None:
        assert (done.flops, done.bytes, done.why) == (None, None, MISFIT)
        return
    forward, backward = slow.PAIRS[op]
    out = types[0] if x and not target else types[1] if target and not x else types[2]
    read = moved(x, types[0], strides[0]) + moved(target, types[1], strides[1])
    assert done.flops == n * (forward + (reduction != NONE))
    assert done.bytes == read + (n if reduction == NONE else 1) * SIZES[out]
    if backward is None:
        return
    of_loss = n if reduction == NONE else 1
    back = work_of_backward(
        f"aten::{op}_backward", f"aten::{op}", [x, target, [], []],
        [*types[:2], "Scalar", "Scalar"], strides, ["", "", reduction, "1."],
    )  # fmt: skip
    assert back.flops == n * backward
    assert back.bytes == read + (of_loss + n) * SIZES[out]
    own = work_of(
        f"aten::{op}_backward", [[of_loss], x, target, [], []],
        [out, *types[:2], "Scalar", "Scalar"], [[1], *strides], ["", "", "", reduction, "1."],
    )  # fmt: skip
    assert (own.flops, own.bytes) == (back.flops, back.bytes)


@given(
    x=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    weighted=st.booleans(),
    reduction=st.sampled_from([NONE, MEAN, SUM]),
    spelling=st.sampled_from([F32, BF16]),
)
def test_classes_equal_the_slow_count(x, weighted, reduction, spelling):
    target = slow.samples(x)
    rows, classes = math.prod(target), x[0] if len(x) == 1 else x[1]
    weight = [classes] if weighted else None
    types = [spelling, I64, spelling if weighted else ""]
    size, written = SIZES[spelling], rows if reduction == NONE else 1
    done = call("aten::nll_loss_forward", [x, target, weight], types, [reduction, "-100"])
    gathered = min(rows, classes) * size if weighted else 0
    assert done.flops == sum(3 if weighted else 1 for _ in range(rows))
    assert done.bytes == rows * (size + 8) + gathered + written * size + size
    whole = call("aten::cross_entropy_loss", [x, target, weight], types, [reduction, "-100", "0."])
    assert whole.flops == 5 * math.prod(x) + done.flops
    assert whole.bytes == math.prod(x) * size + rows * 8 + gathered + written * size
    back = work_of_backward(
        "aten::nll_loss_backward", "aten::nll_loss_forward",
        [x, target, weight or [], [], []], [*types, "Scalar", "Scalar"], None,
        ["", "", "", reduction, "-100"],
    )  # fmt: skip
    assert back.flops == sum(2 if weighted else 1 for _ in range(rows))
    assert back.bytes == (written + math.prod(x) + 1) * size + rows * 8 + gathered


PAIR = [[4, 3], [4, 3]]


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (work_of("aten::mse_loss"), NO_INPUTS),
        (work_of("aten::nll_loss_forward"), NO_INPUTS),
        (work_of("CrossEntropyFunction"), NO_INPUTS),
        (work_of("aten::mse_loss", [[4, 3]], [F32]), NO_SHAPE),
        (call("aten::mse_loss", [[4, 3], None], [F32, ""], [MEAN]), NO_SHAPE),
        (work_of("aten::mse_loss", PAIR, [F32] * 2), NO_VALUE),
        (call("aten::mse_loss", PAIR, [F32] * 2, [""]), NO_VALUE),
        (call("aten::mse_loss", PAIR, [F32] * 2, ["3"]), MISFIT),
        (call("aten::mse_loss", PAIR, [F32] * 2, ["mean"]), NO_VALUE),
        (call("aten::mse_loss", [[4, 3], [4, 2]], [F32] * 2, [MEAN]), MISFIT),
        (call("aten::mse_loss", [[-4, -3], [-4, -3]], [F32] * 2, [MEAN]), MISFIT),
        (call("aten::mse_loss", [[2**40, 2**40]] * 2, [F32] * 2, [MEAN]), TOO_LARGE),
        (call("aten::mse_loss_backward", [[7], *PAIR], [F32] * 3, [MEAN]), MISFIT),
        (call("aten::nll_loss_forward", [[4, 3], [3], None], [F32, I64, ""], [MEAN]), MISFIT),
        (call("aten::cross_entropy_loss", [[4, 3], [4, 2], None], [F32] * 3, [MEAN]), MISFIT),
        (call("CrossEntropyFunction", [[4, 3], [3]], [F32, I64], []), MISFIT),
        (call("CrossEntropyFunction", [[4, 3], None], [F32, ""], []), NO_SHAPE),
    ],
)
def test_bad_input_is_unknown_with_a_reason(done, why):
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_complex_numbers_are_not_guessed():
    done = call("aten::l1_loss", PAIR, ["c10::complex<float>"] * 2, [NONE])
    assert (done.flops, done.bytes, done.why) == (None, None, NO_FORMULA)


def test_without_types_the_flops_are_known():
    done = work_of("aten::mse_loss", [*PAIR, []], None, None, ["", "", MEAN])
    assert (done.flops, done.bytes, done.why) == (36, None, NO_TYPE)
