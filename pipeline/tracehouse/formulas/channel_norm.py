"""Normalisation by channels, forward: batch, instance and group norm.

n elements in C channels. FLOPs are those of perf_models A10; bytes are what the call reads and
writes: statistics of every channel or group in their own type, weight and bias where there are any.
Source: perf_models A10, C7 to C9.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, FP32
from tracehouse.formulas.inputs import (
    A_BOOL,
    Inputs,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    numel,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Slots, Why, Work
from tracehouse.formulas.norm import elements, reported, statistic_type

# What a batch norm op does of the whole.
WHOLE, STATISTICS, ELEMENTWISE = 0, 1, 2


@njit
def is_training(x: Inputs, r: int, training: int, always: int, running_mean: int) -> float:
    """Tell whether a batch norm takes its statistics from the batch: 1, 0, NaN if not known.

    training: position of the flag; always: the answer of ops without a flag. The overload without
    running statistics has the flag in their place.
    """
    if always != ABSENT:
        return float(always)
    position = running_mean if kind(x, r, running_mean) == A_BOOL else training
    return number(x, r, position) if kind(x, r, position) == A_BOOL else math.nan


@njit
def batch_norm(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate batch norms and instance norms, and the parts of the synchronised one.

    Slots:  x (N, C, …); w, b, running_mean, running_var (C,); training: flag; training_is: the
            flag of ops that have none; per_sample: 1 if every sample has its own statistics;
            part: the whole, the statistics, or what follows them; mean, invstd: statistics given.
    Units:  FLOPs, bytes.
    Needs:  the training flag as a value.
    Cost:   O(rank) a call.
    Source: perf_models A10: 2n + 6C, 3n more in training. In training the running statistics are
            read and written if there are any, and those of the batch are kept; else they are read.
    """
    for i in range(calls.row.shape[0]):
        _batch_norm(x, calls, work, i)


@njit
def _batch_norm(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, w, b, running_mean, running_var, training, always, per_sample, part = calls.slot[i, :9]
    mean, invstd = calls.slot[i, 9], calls.slot[i, 10]
    n = elements(x, r, a)
    if rank(x, r, a) < 2 or math.isnan(n):
        work.why[i] = Why.NO_SHAPE
        return
    c = float(dim(x, r, a, 1))
    if is_tensor(x, r, w) and numel(x, r, w) != c:
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    work.dtype[i] = code
    work.parameters[i, 0] = reported(n)
    work.parameters[i, 1] = reported(c)
    work.parameters[i, 2] = is_tensor(x, r, w)
    trains = is_training(x, r, training, always, running_mean)
    if math.isnan(trains):
        work.why[i] = Why.NO_VALUE
        return
    work.parameters[i, 3] = int(trains)
    groups = c * dim(x, r, a, 0) if per_sample == 1 else c
    running = tensor_bytes(x, r, running_mean) + tensor_bytes(x, r, running_var)
    moved = tensor_bytes(x, r, a)
    if part == ELEMENTWISE:
        work.flops[i] = 2 * n + 6 * c
        moved += tensor_bytes(x, r, mean) + tensor_bytes(x, r, invstd)
    elif part == STATISTICS:
        work.flops[i] = 3 * n
    else:
        work.flops[i] = 2 * n + 6 * c + 3 * n * trains
    if part != ELEMENTWISE:
        moved += running
        if trains == 1:
            moved += running + 2 * groups * BYTES[statistic_type(code)]
    if part != STATISTICS:
        moved += tensor_bytes(x, r, w) + tensor_bytes(x, r, b) + n * BYTES[code]
    work.bytes[i] = moved
    if math.isnan(moved):
        work.why[i] = Why.NO_TYPE


@njit
def group_type(x: Inputs, r: int, a: int, w: int) -> int:
    """Return the type of the statistics of a group norm: that of x, float if the weight differs."""
    code = dtype(x, r, a)
    return code if not is_tensor(x, r, w) or dtype(x, r, w) == code else FP32


@njit
def group_norm(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate group norms.

    Slots:  x (N, C, …); w, b (C,); groups, batch, channels: values; without the last two the
            first two dimensions of x.
    Units:  FLOPs, bytes.
    Needs:  the number of groups as a value, for bytes.
    Cost:   O(rank) a call.
    Source: perf_models A10: 5n + 6C; each of the N·G groups keeps its mean and deviation (C9).
    """
    for i in range(calls.row.shape[0]):
        _group_norm(x, calls, work, i)


@njit
def _group_norm(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    a, w, b, groups, batch, channels = calls.slot[i]
    n = elements(x, r, a)
    if rank(x, r, a) < 2 or math.isnan(n):
        work.why[i] = Why.NO_SHAPE
        return
    samples, c = number(x, r, batch), number(x, r, channels)
    if math.isnan(samples) or math.isnan(c):
        samples, c = float(dim(x, r, a, 0)), float(dim(x, r, a, 1))
    g = number(x, r, groups)
    fits = (samples * c > 0 and n % (samples * c) == 0) or (samples * c == 0 and n == 0)
    weight_fits = not is_tensor(x, r, w) or numel(x, r, w) == c
    if not fits or not weight_fits or g <= 0 or (g > 0 and c % g != 0):
        work.why[i] = Why.MISFIT
        return
    code = dtype(x, r, a)
    work.flops[i] = 5 * n + 6 * c
    work.dtype[i] = code
    work.parameters[i, 0] = reported(samples)
    work.parameters[i, 1] = reported(c)
    work.parameters[i, 2] = reported(g)
    work.parameters[i, 3] = is_tensor(x, r, w)
    if math.isnan(g):
        work.why[i] = Why.NO_VALUE
        return
    work.bytes[i] = (
        tensor_bytes(x, r, a)
        + tensor_bytes(x, r, w)
        + tensor_bytes(x, r, b)
        + n * BYTES[code]
        + 2 * samples * g * BYTES[group_type(x, r, a, w)]
    )
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


_CHANNELS: Slots = {
    "x": 0,
    "w": 1,
    "b": 2,
    "running_mean": 3,
    "running_var": 4,
    "training": 5,
}
_CHANNELS_WITHOUT_FLAG = {slot: at for slot, at in _CHANNELS.items() if slot != "training"}

MODELS = (
    Model(
        name="batch norm",
        kernel=batch_norm,
        unit="vector",
        slots={
            **dict.fromkeys(_CHANNELS, ABSENT),
            "training_is": ABSENT,
            "per_sample": 0,
            "part": WHOLE,
            "mean": ABSENT,
            "invstd": ABSENT,
        },
        labels=("elements", "C", "weight", "training"),
        families={"batch_norm": None, "instance_norm": None},
        ops={
            "aten::batch_norm": _CHANNELS,
            "aten::_batch_norm_impl_index": _CHANNELS,
            "aten::native_batch_norm": _CHANNELS,
            "aten::cudnn_batch_norm": _CHANNELS,
            "aten::miopen_batch_norm": _CHANNELS,
            "aten::_native_batch_norm_legit": _CHANNELS,
            "aten::_native_batch_norm_legit_no_training": {
                **_CHANNELS_WITHOUT_FLAG,
                "training_is": 0,
            },
            "aten::_batch_norm_no_update": {**_CHANNELS_WITHOUT_FLAG, "training_is": 0},
            "aten::_batch_norm_with_update": {**_CHANNELS_WITHOUT_FLAG, "training_is": 1},
            "aten::batch_norm_stats": {"x": 0, "training_is": 1, "part": STATISTICS},
            "aten::batch_norm_update_stats": {
                "x": 0,
                "running_mean": 1,
                "running_var": 2,
                "training_is": 1,
                "part": STATISTICS,
            },
            "aten::batch_norm_elemt": {
                "x": 0,
                "w": 1,
                "b": 2,
                "mean": 3,
                "invstd": 4,
                "training_is": 0,
                "part": ELEMENTWISE,
            },
            "aten::instance_norm": {**_CHANNELS, "per_sample": 1},
        },
    ),
    Model(
        name="group norm",
        kernel=group_norm,
        unit="vector",
        slots=dict.fromkeys(("x", "w", "b", "groups", "batch", "channels"), ABSENT),
        labels=("N", "C", "groups", "weight"),
        families={"group_norm": None},
        ops={
            "aten::group_norm": {"x": 0, "groups": 1, "w": 2, "b": 3},
            "aten::native_group_norm": {
                "x": 0,
                "w": 1,
                "b": 2,
                "batch": 3,
                "channels": 4,
                "groups": 6,
            },
            "aiter::_groupnorm_run": {"x": 0, "groups": 1, "w": 2, "b": 3},
        },
    ),
)
