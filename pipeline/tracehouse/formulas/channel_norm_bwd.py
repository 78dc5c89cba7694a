"""Normalisation by channels, backward: batch, instance and group norm.

A gradient that output_mask does not ask for is not written. The models can be evaluated from the
inputs of the forward call: then every gradient is asked for, and the incoming one is like x.
Source: perf_models A10, C7 to C9.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.channel_norm import (
    ELEMENTWISE,
    STATISTICS,
    WHOLE,
    group_type,
    is_training,
)
from tracehouse.formulas.dtypes import BYTES
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
from tracehouse.formulas.norm import elements, reported, statistic_type, why_unknown
from tracehouse.formulas.norm_bwd import asked, fits, given, gradient, incoming, normalised_flops


@njit
def batch_norm_backward(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the gradients of batch norms and instance norms, and parts of the synchronised one.

    Slots:  x (N, C, …) and the others of the forward model; dy; mean, invstd: saved statistics;
            mask: output_mask; flags: the first of three flags instead; reserve: workspace of the
            forward call; sums, products, count: what the parts hand on.
    Units:  FLOPs, bytes.
    Needs:  the training flag and the mask as values, where the op has them.
    Cost:   O(rank) a call.
    Source: perf_models A10: 4n + (5n if training and m0) + 3C·(not training) + (2n if not m0); the
            sums of the synchronised one are 4n of it, what follows 5n. cudnn_ and miopen_ always
            train (C9). In training the saved statistics are read, else the running ones.
    """
    for i in range(calls.row.shape[0]):
        _batch_norm_backward(x, calls, work, i)


@njit
def _batch_norm_backward(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, w, running_mean, running_var, training, always, per_sample, part = calls.slot[i, :8]
    dy, mean, invstd, mask, flags, reserve, sums, products, counts = calls.slot[i, 8:]
    n = elements(x, r, a)
    if rank(x, r, a) < 2 or not fits(x, r, a, dy, n):
        work.why[i] = Why.NO_SHAPE
        return
    c = float(dim(x, r, a, 1))
    if is_tensor(x, r, w) and numel(x, r, w) != c:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    work.dtype[i] = code
    work.parameters[i, 0] = reported(n)
    work.parameters[i, 1] = is_tensor(x, r, w)
    trains = is_training(x, r, training, always, running_mean)
    dx, dw = asked(x, r, mask, flags, 0), asked(x, r, mask, flags, 1)
    db = asked(x, r, mask, flags, 2)
    if math.isnan(trains + dx + dw + db):
        work.why[i] = Why.NO_VALUE
        return
    work.parameters[i, 2] = int(trains)
    groups = c * dim(x, r, a, 0) if per_sample == 1 else c
    kept = statistic_type(code)
    moved = incoming(x, r, dy, n, code)
    reads_x = part != WHOLE or dw == 1 or (dx == 1 and trains == 1)
    if reads_x:
        moved += tensor_bytes(x, r, a)
    if trains == 1 and reads_x:
        moved += given(x, r, mean, groups, kept) + given(x, r, invstd, groups, kept)
        moved += tensor_bytes(x, r, reserve)
    elif dx == 1 or dw == 1:
        moved += tensor_bytes(x, r, running_mean) + tensor_bytes(x, r, running_var)
    if part == STATISTICS:
        work.flops[i] = 4 * n
        moved += 2 * c * BYTES[kept] * dx
    elif part == ELEMENTWISE:
        work.flops[i] = 5 * n
        moved += tensor_bytes(x, r, sums) + tensor_bytes(x, r, products)
        moved += tensor_bytes(x, r, counts)
    elif trains == 1:
        work.flops[i] = normalised_flops(n, dx)
    else:
        work.flops[i] = 4 * n + 3 * c + (0 if dx == 1 else 2 * n)
    if part != STATISTICS and dx == 1:
        moved += tensor_bytes(x, r, w) + n * BYTES[code]
    if part != ELEMENTWISE:
        moved += gradient(x, r, w, ABSENT) * (dw + db)
    work.bytes[i] = moved
    if math.isnan(moved):
        work.why[i] = Why.NO_TYPE


@njit
def group_norm_backward(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the gradients of group norms.

    Slots:  x (N, C, …), w, b, groups, batch, channels: as in the forward model; dy; mean, rstd:
            one of every group; mask: output_mask.
    Units:  FLOPs, bytes.
    Needs:  the mask as a value.
    Cost:   O(rank) a call.
    Source: perf_models A10: 9n, 6n if x needs no gradient; C, not C/G, and the weight's slot (C9).
    """
    for i in range(calls.row.shape[0]):
        _group_norm_backward(x, calls, work, i)


@njit
def _group_norm_backward(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, w, b, groups, batch, channels, dy, mean, rstd, mask = calls.slot[i]
    n = elements(x, r, a)
    if rank(x, r, a) < 2 or not fits(x, r, a, dy, n):
        work.why[i] = Why.NO_SHAPE
        return
    samples, c = number(x, r, batch), number(x, r, channels)
    if math.isnan(samples) or math.isnan(c):
        samples, c = float(dim(x, r, a, 0)), float(dim(x, r, a, 1))
    if is_tensor(x, r, w) and numel(x, r, w) != c:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    work.dtype[i] = code
    work.parameters[i, 0] = reported(n)
    work.parameters[i, 1] = is_tensor(x, r, w)
    dx, dw = asked(x, r, mask, ABSENT, 0), asked(x, r, mask, ABSENT, 1)
    db = asked(x, r, mask, ABSENT, 2)
    if math.isnan(dx + dw + db):
        work.why[i] = Why.NO_VALUE
        return
    work.flops[i] = normalised_flops(n, dx)
    statistics = samples * number(x, r, groups)
    kept = group_type(x, r, a, w)
    moved = incoming(x, r, dy, n, code)
    if dx == 1 or dw == 1:
        moved += tensor_bytes(x, r, a)
        moved += given(x, r, mean, statistics, kept) + given(x, r, rstd, statistics, kept)
    if dx == 1:
        moved += tensor_bytes(x, r, w) + n * BYTES[code]
    if dw == 1:
        moved += gradient(x, r, w, ABSENT)
    if db == 1:
        moved += gradient(x, r, b, w)
    work.bytes[i] = moved
    if math.isnan(moved):
        work.why[i] = why_unknown(x, r)


_VENDOR = {
    "x": 0,
    "dy": 1,
    "w": 2,
    "running_mean": 3,
    "running_var": 4,
    "mean": 5,
    "invstd": 6,
    "training_is": 1,
}
_OWN_FLAG = {
    "dy": 0,
    "x": 1,
    "w": 2,
    "running_mean": 3,
    "running_var": 4,
    "mean": 5,
    "invstd": 6,
    "training": 7,
    "mask": 9,
}

MODELS = (
    Model(
        name="batch norm backward",
        kernel=batch_norm_backward,
        unit="vector",
        slots={
            **dict.fromkeys(("x", "w", "running_mean", "running_var", "training"), ABSENT),
            "training_is": ABSENT,
            "per_sample": 0,
            "part": WHOLE,
            **dict.fromkeys(("dy", "mean", "invstd", "mask", "flags", "reserve"), ABSENT),
            **dict.fromkeys(("sums", "products", "counts"), ABSENT),
        },
        labels=("elements", "weight", "training"),
        families={"batch_norm_bwd": None, "instance_norm_bwd": None},
        ops={
            "aten::native_batch_norm_backward": _OWN_FLAG,
            "aten::batch_norm_backward": {**_OWN_FLAG, "reserve": 10},
            "aten::cudnn_batch_norm_backward": {**_VENDOR, "reserve": 8},
            "aten::miopen_batch_norm_backward": _VENDOR,
            "aten::batch_norm_backward_reduce": {
                "dy": 0,
                "x": 1,
                "mean": 2,
                "invstd": 3,
                "w": 4,
                "flags": 5,
                "training_is": 1,
                "part": STATISTICS,
            },
            "aten::batch_norm_backward_elemt": {
                "dy": 0,
                "x": 1,
                "mean": 2,
                "invstd": 3,
                "w": 4,
                "sums": 5,
                "products": 6,
                "counts": 7,
                "training_is": 1,
                "part": ELEMENTWISE,
            },
        },
    ),
    Model(
        name="group norm backward",
        kernel=group_norm_backward,
        unit="vector",
        slots=dict.fromkeys(
            ("x", "w", "b", "groups", "batch", "channels", "dy", "mean", "rstd", "mask"), ABSENT
        ),
        labels=("elements", "weight"),
        families={"group_norm_bwd": None},
        ops={
            "aten::native_group_norm_backward": {
                "dy": 0,
                "x": 1,
                "mean": 2,
                "rstd": 3,
                "w": 4,
                "batch": 5,
                "channels": 6,
                "groups": 8,
                "mask": 9,
            },
        },
    ),
)
