"""Fills: fill_, zero_, arange, linspace, random numbers, dropout and its backward.

Fills write each element once and compute nothing; a random number is taken as 10 FLOPs.
Source: perf_models A11, A14. `zeros`, `ones`, `full`, `rand` and `dropout` have no formula: the
`fill_`, `uniform_` or `native_dropout` inside them does the work.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.copy import MOVED, settle, stored, unusable
from tracehouse.formulas.dtypes import BYTES, FP32, INT64, dtype_of_enum
from tracehouse.formulas.inputs import (
    A_BOOL,
    A_REAL,
    AN_INT,
    Inputs,
    count,
    dtype,
    is_tensor,
    kind,
    number,
    numel,
    rank,
    touched,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

RANDOM_FLOPS = 10  # of an element, A14

_X, _READS, _FLOPS, _SEQUENCE = range(4)
_ARANGE, _LINSPACE = 1, 2
_D_X, _D_P, _D_TRAIN = range(3)
_B_GRAD, _B_MASK, _B_X, _B_P, _B_IS_FORWARD = range(5)


@njit
def fill(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate writes of all elements of a tensor: one value, random numbers, or a sequence.

    Slots:  x; reads: a tensor that is read, as the probabilities of `bernoulli_`; flops: of an
            element; sequence: 1 for `arange`, 2 for `linspace`, whose output is no input.
    Units:  FLOPs, bytes.
    Needs:  shape and type of x; for sequences concrete values, by the number of inputs: (end, out),
            (start, end, step, out), or one to three numbers with dtype, layout, device and
            pin_memory behind. Without a type whole numbers of `arange` are int64, others fp32.
    Cost:   O(dimensions) a call.
    Source: perf_models A11: write only; A14: random numbers. The forms of `arange` are as traces
            show them; of the out tensor only the type counts, as its shape is that before it grows.
    """
    for i in range(calls.row.shape[0]):
        if calls.slot[i, _SEQUENCE] == 0:
            _fill(x, calls, work, i)
        else:
            _sequence(x, calls, work, i)


@njit
def _fill(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a, p = calls.row[i], calls.slot[i, _X], calls.slot[i, _READS]
    per_element = float(calls.slot[i, _FLOPS])
    if per_element == 0.0:
        work.flops[i] = 0.0
    why = unusable(x, r, a)
    has_p = rank(x, r, p) > 0 or is_tensor(x, r, p)
    if why == Why.KNOWN and has_p:
        why = unusable(x, r, p)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    work.flops[i] = per_element * touched(x, r, a)
    settle(work, i, dtype(x, r, a), stored(x, r, p) if has_p else 0.0, stored(x, r, a))


@njit
def _sequence(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, n = calls.row[i], count(x, calls.row[i])
    work.flops[i] = 0.0
    is_linspace = calls.slot[i, _SEQUENCE] == _LINSPACE
    has_out = n > 0 and is_tensor(x, r, n - 1)
    values = n - 1 if has_out else n - 4
    if values < 1 or values > 3 or (is_linspace and values != 3):
        work.why[i] = Why.NO_INPUTS if n == 0 else Why.NO_FORMULA
        return
    is_whole = not is_linspace
    for k in range(values):
        what = kind(x, r, k)
        if what not in (A_BOOL, AN_INT, A_REAL):
            work.why[i] = Why.NO_VALUE
            return
        is_whole = is_whole and what != A_REAL
    start, end = (0.0 if values == 1 else number(x, r, 0)), number(x, r, min(values - 1, 1))
    last = number(x, r, 2) if values == 3 else 1.0
    elements = last if is_linspace else _steps(start, end, last)
    if not elements >= 0:
        work.why[i] = Why.MISFIT
        return
    asked = number(x, r, values)
    if has_out:
        code = dtype(x, r, n - 1)
    elif math.isnan(asked):
        code = INT64 if is_whole else FP32
    else:
        code = dtype_of_enum(asked)
    settle(work, i, code, 0.0, elements * BYTES[code])


@njit
def _steps(start: float, end: float, step: float) -> float:
    """Return how many numbers lie from start to before end, NaN if they never get there."""
    if step == 0 or (end - start) * step < 0:
        return math.nan
    return np.ceil((end - start) / step)


@njit
def dropout(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate dropout that also returns its mask.

    Slots:  x; p and train: positions of the probability and of whether it drops anything.
    Units:  FLOPs, bytes.
    Needs:  shape and type of x. An unknown p or train is taken to drop.
    Cost:   O(dimensions) a call.
    Source: perf_models A14: read n, write n and a mask of n bytes, 10 FLOPs an element. Without
            training x is copied; with p = 1 zeros are written.
    """
    for i in range(calls.row.shape[0]):
        is_training = number(x, calls.row[i], calls.slot[i, _D_TRAIN]) != 0
        _dropout(x, calls, work, i, calls.slot[i, _D_X], calls.slot[i, _D_P], is_training)


@njit
def _dropout(
    x: Inputs, calls: Calls, work: Work, i: int, a: int, p: int, is_training: bool
) -> None:
    r = calls.row[i]
    why = unusable(x, r, a)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    n, code = numel(x, r, a), dtype(x, r, a)
    drops_all = is_training and number(x, r, p) == 1
    work.flops[i] = RANDOM_FLOPS * n if is_training and not drops_all else 0.0
    settle(work, i, code, 0.0 if drops_all else stored(x, r, a), n * BYTES[code] + n)


@njit
def dropout_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the product of a gradient with a mask and a scale.

    Slots:  grad; mask; or, of the forward call, x; is_forward: 1 for an op of this family that
            drops, with p.
    Units:  FLOPs, bytes.
    Needs:  shape and type of grad, and of the mask if it is an input; else it is one byte each.
    Cost:   O(dimensions) a call.
    Source: perf_models A7: read grad and what was saved, write grad; two products an element.
    """
    for i in range(calls.row.shape[0]):
        if calls.slot[i, _B_IS_FORWARD] == 1:
            _dropout(x, calls, work, i, calls.slot[i, _B_X], calls.slot[i, _B_P], True)
        else:
            _dropout_bwd(x, calls, work, i)


@njit
def _dropout_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a, mask = calls.row[i], calls.slot[i, _B_GRAD], calls.slot[i, _B_MASK]
    of_forward = a == ABSENT
    if of_forward:
        a = calls.slot[i, _B_X]
    why = unusable(x, r, a)
    if why == Why.KNOWN and not of_forward:
        why = unusable(x, r, mask)
        if why == Why.KNOWN and numel(x, r, mask) != numel(x, r, a):
            why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    n, code = numel(x, r, a), dtype(x, r, a)
    work.flops[i] = 2.0 * n
    read = n * BYTES[code] + n if of_forward else stored(x, r, a) + stored(x, r, mask)
    settle(work, i, code, read, n * BYTES[code])


_TO_X = {"x": 0}
_RANDOM = {"x": 0, "flops": RANDOM_FLOPS}
_SLOTS = {"x": ABSENT, "reads": ABSENT, "flops": 0, "sequence": 0}

MODELS = (
    Model(
        name="fill",
        kernel=fill,
        unit="",
        slots=_SLOTS,
        labels=MOVED,
        families={"fill": None},
        ops={
            "aten::arange": {"sequence": _ARANGE},
            "aten::fill_": _TO_X,
            "aten::linspace": {"sequence": _LINSPACE},
            "aten::zero_": _TO_X,
        },
    ),
    Model(
        name="random",
        kernel=fill,
        unit="vector",
        slots=_SLOTS,
        labels=MOVED,
        families={"random": None},
        ops={
            "aten::bernoulli_": _RANDOM | {"reads": 1},
            "aten::cauchy_": _RANDOM,
            "aten::exponential_": _RANDOM,
            "aten::geometric_": _RANDOM,
            "aten::log_normal_": _RANDOM,
            "aten::normal_": _RANDOM,
            "aten::poisson": _RANDOM | {"reads": 0},
            "aten::random_": _RANDOM,
            "aten::uniform_": _RANDOM,
        },
    ),
    Model(
        name="dropout",
        kernel=dropout,
        unit="vector",
        slots={"x": ABSENT, "p": ABSENT, "train": ABSENT},
        labels=MOVED,
        families={"dropout": None},
        ops={"aten::native_dropout": {"x": 0, "p": 1, "train": 2}},
    ),
    Model(
        name="dropout_bwd",
        kernel=dropout_bwd,
        unit="vector",
        slots={"grad": ABSENT, "mask": ABSENT, "x": ABSENT, "p": ABSENT, "is_forward": 0},
        labels=MOVED,
        families={"dropout_bwd": None},
        ops={
            "aten::_fused_dropout": {"x": 0, "p": 1, "is_forward": 1},
            "aten::masked_scale": {"grad": 0, "mask": 1},
            "aten::native_dropout_backward": {"grad": 0, "mask": 1},
        },
    ),
)
