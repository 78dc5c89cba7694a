"""Losses and their backwards.

Of pairs of elements (mse_loss), of the class of each sample (nll_loss), and of logits
(cross_entropy_loss). Source: perf_models A14.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, CATEGORY, COMPLEX, FP32, promote, promote_weakly
from tracehouse.formulas.inputs import (
    Inputs,
    dim,
    dtype,
    is_tensor,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.windows import missing, well_formed

PAIRS, CLASSES, LOGITS, FUSED = 0, 1, 2, 3
_NONE, _MEAN, _SUM = 0.0, 1.0, 2.0  # reductions
_SLOTS = {
    "x": ABSENT,
    "target": ABSENT,
    "weight": ABSENT,
    "pos_weight": ABSENT,
    "reduction": ABSENT,
    "smoothing": ABSENT,
    "grad": ABSENT,
    "form": PAIRS,
    "per_pair": 0,
    "per_pair_bwd": 0,
}
_X, _TARGET, _WEIGHT, _POS_WEIGHT, _REDUCTION, _SMOOTHING, _GRAD = range(7)
_FORM, _PER_PAIR, _PER_PAIR_BWD = 7, 8, 9
_LABELS = ("samples", "classes", "reduction")
_PER_POS_WEIGHT = 4.0  # 1 + (pos_weight - 1)·target, and the product with it
_PER_LOGIT = 5.0  # maximum, difference, exponential, sum, logarithm's share


@njit
def loss(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate losses.

    Slots:  x; target; weight, pos_weight: optional tensors; reduction: 0 none, 1 mean, 2 sum;
            smoothing: of labels; form: PAIRS, CLASSES, LOGITS or FUSED; per_pair, per_pair_bwd:
            FLOPs of a sample.
    Units:  FLOPs, bytes. Label samples: elements of the loss before its reduction.
    Needs:  Real numbers. PAIRS: shapes that broadcast. Others: x (N, C, …) and target (N, …), or,
            for LOGITS, target like x. FUSED: classes last.
    Cost:   O(dimensions) a call.
    Source: perf_models A14. PAIRS: per_pair a sample and one for the reduction. CLASSES: of x, one
            element a sample is read. LOGITS: 5 an element of x, then as CLASSES. FUSED: 5 an
            element, 4 bytes a sample are written.
    """
    for i in range(calls.row.shape[0]):
        _loss(x, calls, work, i)


@njit
def loss_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the backwards of losses.

    Slots:  those of the forward; grad of the loss.
    Units:  FLOPs, bytes.
    Needs:  as in the forward; the reduction only where grad is not among the inputs.
    Cost:   O(dimensions) a call.
    Source: perf_models A14. PAIRS: read grad, x and target, write the gradient of x. CLASSES: write
            all of it; x is not read, the total weight is. FUSED: the stored gradient times grad.
    """
    for i in range(calls.row.shape[0]):
        _loss_bwd(x, calls, work, i)


@njit
def _loss(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, first, target = calls.row[i], calls.slot[i, _X], calls.slot[i, _TARGET]
    form, weight = calls.slot[i, _FORM], calls.slot[i, _WEIGHT]
    why, samples, classes, alike = _samples(x, calls, i)
    reduction = _SUM if form == FUSED else number(x, r, calls.slot[i, _REDUCTION])
    if why == Why.KNOWN and form != FUSED:
        why = _reduction(reduction)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    weighted = is_tensor(x, r, weight)
    n, size = numel(x, r, first), BYTES[dtype(x, r, first)]
    written = samples if reduction == _NONE else 1.0
    moved = tensor_bytes(x, r, target)
    if form == PAIRS:
        per_pair = calls.slot[i, _PER_PAIR] + (reduction != _NONE) + weighted
        if is_tensor(x, r, calls.slot[i, _POS_WEIGHT]):
            per_pair += _PER_POS_WEIGHT
        work.flops[i] = samples * per_pair
        moved += tensor_bytes(x, r, first) + tensor_bytes(x, r, weight)
        moved += tensor_bytes(x, r, calls.slot[i, _POS_WEIGHT])
        moved += written * BYTES[_of_pairs(x, r, first, target)]
    elif form == FUSED:
        work.flops[i] = _PER_LOGIT * n
        moved += tensor_bytes(x, r, first) + samples * BYTES[FP32]
    else:
        of_classes = 1.0 + 2.0 * weighted
        moved += _class_weights(x, r, weight, samples) + written * size
        if form == CLASSES:
            work.flops[i] = samples * of_classes
            moved += samples * size + size
        else:
            work.flops[i] = _PER_LOGIT * n + (2.0 * n if alike else samples * of_classes)
            if not alike and number(x, r, calls.slot[i, _SMOOTHING]) != 0.0:
                work.flops[i] += n
            moved += tensor_bytes(x, r, first)
    work.bytes[i] = moved
    _finish(x, calls, work, i, samples, classes)
    if form != FUSED:
        work.parameters[i, 2] = int(reduction)


@njit
def _loss_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, first, target = calls.row[i], calls.slot[i, _X], calls.slot[i, _TARGET]
    form, weight = calls.slot[i, _FORM], calls.slot[i, _WEIGHT]
    why, samples, classes, _ = _samples(x, calls, i)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    n, size = numel(x, r, first), BYTES[dtype(x, r, first)]
    if form == FUSED:
        work.flops[i] = n
        work.bytes[i] = tensor_bytes(x, r, first) + n * size + samples * BYTES[FP32]
        _finish(x, calls, work, i, samples, classes)
        return
    if form == LOGITS:
        work.why[i] = Why.NO_FORMULA
        return
    why, of_grad = _grad(x, calls, i, samples)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    weighted = is_tensor(x, r, weight)
    moved = of_grad + tensor_bytes(x, r, target)
    if form == PAIRS:
        work.flops[i] = samples * (calls.slot[i, _PER_PAIR_BWD] + weighted)
        moved += tensor_bytes(x, r, first) + tensor_bytes(x, r, weight)
        moved += samples * BYTES[_of_pairs(x, r, first, target)]
    else:
        work.flops[i] = samples * (1.0 + weighted)
        moved += _class_weights(x, r, weight, samples) + size + n * size
    work.bytes[i] = moved
    _finish(x, calls, work, i, samples, classes)


@njit
def _finish(x: Inputs, calls: Calls, work: Work, i: int, samples: float, classes: float) -> None:
    work.dtype[i] = dtype(x, calls.row[i], calls.slot[i, _X])
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE
    if CATEGORY[work.dtype[i]] == COMPLEX:
        work.flops[i], work.bytes[i] = math.nan, math.nan
        work.why[i] = Why.NO_FORMULA
    work.parameters[i, 0] = int(samples)
    if calls.slot[i, _FORM] != PAIRS:
        work.parameters[i, 1] = int(classes)


@njit
def _of_pairs(x: Inputs, r: int, a: int, b: int) -> int:
    """Return the type of what inputs a and b give together."""
    if rank(x, r, a) > 0 and rank(x, r, b) == 0:
        return promote_weakly(dtype(x, r, a), dtype(x, r, b))
    if rank(x, r, a) == 0 and rank(x, r, b) > 0:
        return promote_weakly(dtype(x, r, b), dtype(x, r, a))
    return promote(dtype(x, r, a), dtype(x, r, b))


@njit
def _reduction(reduction: float) -> int:
    """Return the Why of a reduction that is not known."""
    if math.isnan(reduction):
        return Why.NO_VALUE
    fits = reduction == _NONE or reduction == _MEAN or reduction == _SUM
    return Why.KNOWN if fits else Why.MISFIT


@njit
def _class_weights(x: Inputs, r: int, weight: int, samples: float) -> float:
    """Return the bytes of the weights of classes that the samples can reach."""
    if not is_tensor(x, r, weight):
        return 0.0
    return min(samples, numel(x, r, weight)) * BYTES[dtype(x, r, weight)]


@njit
def _grad(x: Inputs, calls: Calls, i: int, samples: float) -> tuple[int, float]:
    """Return a Why and the bytes of the gradient of the loss."""
    r, grad = calls.row[i], calls.slot[i, _GRAD]
    if grad >= 0:
        if not is_tensor(x, r, grad) and rank(x, r, grad) != 0:
            return missing(x, r), 0.0
        whole = numel(x, r, grad)
        fits = well_formed(x, r, grad) and (whole == 1.0 or whole == samples)
        return (Why.KNOWN if fits else Why.MISFIT), tensor_bytes(x, r, grad)
    reduction = number(x, r, calls.slot[i, _REDUCTION])
    code = dtype(x, r, calls.slot[i, _X])
    if calls.slot[i, _FORM] == PAIRS:
        code = _of_pairs(x, r, calls.slot[i, _X], calls.slot[i, _TARGET])
    return _reduction(reduction), (samples if reduction == _NONE else 1.0) * BYTES[code]


@njit
def _samples(x: Inputs, calls: Calls, i: int) -> tuple[int, float, float, bool]:
    """Return a Why, the samples, the classes, and whether the target is shaped like x."""
    r, first, target = calls.row[i], calls.slot[i, _X], calls.slot[i, _TARGET]
    form, ranks, others = calls.slot[i, _FORM], rank(x, r, first), rank(x, r, target)
    if ranks < 0 or others < 0 or (ranks == 0 and not is_tensor(x, r, first)):
        return missing(x, r), 0.0, 0.0, False
    if others == 0 and not is_tensor(x, r, target):
        return missing(x, r), 0.0, 0.0, False
    if not (well_formed(x, r, first) and well_formed(x, r, target)):
        return Why.MISFIT, 0.0, 0.0, False
    if form == PAIRS:
        pairs = _pairs(x, r, first, target)
        return (Why.KNOWN if pairs >= 0.0 else Why.MISFIT), pairs, 1.0, False
    if ranks == 0:
        return Why.MISFIT, 0.0, 0.0, False
    n, samples = numel(x, r, first), numel(x, r, target)
    classes = float(dim(x, r, first, -1 if form == FUSED or ranks == 1 else 1))
    if form == LOGITS and ranks == others:
        for d in range(ranks):
            if dim(x, r, first, d) != dim(x, r, target, d):
                return Why.MISFIT, 0.0, 0.0, False
        return Why.KNOWN, n / classes if classes > 0.0 else 0.0, classes, True
    return (Why.KNOWN if samples * classes == n else Why.MISFIT), samples, classes, False


@njit
def _pairs(x: Inputs, r: int, a: int, b: int) -> float:
    """Return the elements of what inputs a and b broadcast to, -1 if they don't."""
    pairs = 1.0
    for d in range(1, max(rank(x, r, a), rank(x, r, b)) + 1):
        of_a = dim(x, r, a, -d) if d <= rank(x, r, a) else 1
        of_b = dim(x, r, b, -d) if d <= rank(x, r, b) else 1
        if of_a != of_b and of_a != 1 and of_b != 1:
            return -1.0
        pairs *= of_b if of_a == 1 else of_a
    return pairs


_PAIR = {"x": 0, "target": 1, "reduction": 2}
_NLL = {"x": 0, "target": 1, "weight": 2, "reduction": 3, "form": CLASSES}
_PAIR_BWD = {"grad": 0, "x": 1, "target": 2, "reduction": 3}
_NLL_BWD = {
    "grad": 0,
    "x": 1,
    "target": 2,
    "weight": 3,
    "reduction": 4,
    "form": CLASSES,
}

MODELS = (
    Model(
        name="loss",
        kernel=loss,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"loss": None, "cross_entropy": None},
        ops={
            "aten::mse_loss": {**_PAIR, "per_pair": 2, "per_pair_bwd": 3},
            "aten::l1_loss": {**_PAIR, "per_pair": 2},
            "aten::smooth_l1_loss": {**_PAIR, "per_pair": 6, "per_pair_bwd": 6},
            "aten::huber_loss": {**_PAIR, "per_pair": 5, "per_pair_bwd": 5},
            "aten::kl_div": {**_PAIR, "per_pair": 3},
            "aten::binary_cross_entropy": {
                **_PAIR,
                "weight": 2,
                "reduction": 3,
                "per_pair": 8,
                "per_pair_bwd": 6,
            },
            "aten::binary_cross_entropy_with_logits": {
                **_PAIR,
                "weight": 2,
                "pos_weight": 3,
                "reduction": 4,
                "per_pair": 9,
            },
            "aten::nll_loss_forward": _NLL,
            "aten::nll_loss2d_forward": _NLL,
            "aten::cross_entropy_loss": {**_NLL, "smoothing": 5, "form": LOGITS},
            "CrossEntropyFunction": {"x": 0, "target": 1, "form": FUSED},
            "LigerCrossEntropyFunction": {"x": 0, "target": 1, "form": FUSED},
        },
    ),
    Model(
        name="loss_bwd",
        kernel=loss_bwd,
        unit="vector",
        slots=_SLOTS,
        labels=_LABELS,
        families={"loss_bwd": None, "cross_entropy_bwd": None},
        ops={
            "aten::mse_loss_backward": {**_PAIR_BWD, "per_pair_bwd": 3},
            "aten::smooth_l1_loss_backward": {**_PAIR_BWD, "per_pair_bwd": 6},
            "aten::huber_loss_backward": {**_PAIR_BWD, "per_pair_bwd": 5},
            "aten::binary_cross_entropy_backward": {
                **_PAIR_BWD,
                "weight": 3,
                "reduction": 4,
                "per_pair_bwd": 6,
            },
            "aten::nll_loss_backward": _NLL_BWD,
            "aten::nll_loss2d_backward": _NLL_BWD,
        },
    ),
)
