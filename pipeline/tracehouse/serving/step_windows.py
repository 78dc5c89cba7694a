"""The steps of a trace to look at: windows of its steady state that stand for the whole of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehouse.compute.regions import longest_run
from tracehouse.serving.steady_state import DECODE, FOUND, MIXED, PREFILL
from tracehouse.serving.window import Workload

MIXED_WINDOW, DECODE_WINDOW, PREFILL_WINDOW, RANGE = (
    "mixed",
    "decode_only",
    "prefilldecode",
    "steps",
)
WITH_PREFILL = ("prefill", "mixed")  # phases

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StepWindow:
    """Steps to look at together.

    kind: mixed, decode_only, prefilldecode, or steps for those the user named. steps: their
    numbers, ascending. wanted: how many were wanted. reference: share of steps with prefill that
    the window was to come close to; None where none mattered. fallback: whether they are of the
    middle third of a trace in which no run is steady.
    """

    kind: str
    steps: Ints
    wanted: int
    reference: Fraction | None = None
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """A steady run: its steps (n,), in order, and what they are; r is -1 where it is unknown."""

    fallback: bool
    steps: Ints
    has_prefill: Mask
    is_decode: Mask
    is_idle: Mask
    r: Ints


def chosen_windows(
    steps: pa.Table, regions: pa.Table, num_steps: int, load: Workload | None = None
) -> list[StepWindow]:
    """Return the windows of the largest steady run: mixed, decode-only, and with prefill.

    `steps` and `regions` are the rows of `steps` and of `steady_state` of one trace. The mixed
    window has `num_steps` steps, of which the share with a prefill is as close as can be to that of
    all steady steps, or to the one that `load` gives; more steps where so few could miss every
    prefill. The other two are the start of the longest run of their steps. There is no mixed
    window where the run only decodes, and no window without steps.

    Source: inference §4.2 to §4.4.
    """
    rows = [row for row in regions.to_pylist() if row["rule"] == FOUND]
    runs = [_run(steps, row) for row in _outermost(rows)]
    if not runs:
        return []
    run = max(runs, key=lambda run: len(run.steps))
    windows = []
    if run.has_prefill.any() or not run.is_decode.any():
        reference = load.ratio if load else _share(runs)
        wanted = max(num_steps, math.ceil(1 / reference)) if reference else num_steps
        first = _closest(run, wanted, reference)
        own = run.steps[first : first + wanted]
        windows.append(StepWindow(MIXED_WINDOW, own, wanted, reference, run.fallback))
    for kind, is_own in ((DECODE_WINDOW, run.is_decode), (PREFILL_WINDOW, run.has_prefill)):
        first, end = longest_run(is_own, 0, len(is_own))
        if end > first:
            own = run.steps[first : min(end, first + num_steps)]
            windows.append(StepWindow(kind, own, num_steps, None, run.fallback))
    return windows


def _outermost(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steady runs, without the ramps and the runs of one kind within a mixed one.

    A run's own come behind it.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        if row["kind"] not in (MIXED, DECODE, PREFILL):
            continue
        run = found[-1] if found else None
        if (
            run is None
            or run["kind"] != MIXED
            or run["process"] != row["process"]
            or row["last_step"] > run["last_step"]
        ):
            found.append(row)
    return found


def _run(steps: pa.Table, region: dict[str, Any]) -> _Run:
    number = steps["step_id"]
    inside = pc.and_(
        pc.greater_equal(number, region["first_step"]), pc.less_equal(number, region["last_step"])
    )
    own = steps.filter(inside).sort_by("step_id")
    process = own["process"].to_pylist()
    own = own.filter(pa.array([word == region["process"] for word in process], pa.bool_()))
    phase = np.array(own["phase"].to_pylist(), dtype=object)
    return _Run(
        fallback=region["fallback"],
        steps=own["step_id"].to_numpy(),
        has_prefill=np.isin(phase, WITH_PREFILL),
        is_decode=phase == "decode",
        is_idle=phase == "idle",
        r=own["r"].fill_null(-1).to_numpy(),
    )


def _share(runs: list[_Run]) -> Fraction:
    """Return the share of the steps with prefill; idle steps don't count."""
    busy = sum(int((~run.is_idle).sum()) for run in runs)
    return Fraction(sum(int(run.has_prefill.sum()) for run in runs), max(busy, 1))


def _closest(run: _Run, size: int, reference: Fraction) -> int:
    """Return the place of the first step of the best window of `size` steps.

    One with a prefill before one without, then the one whose share is closest to the reference,
    then the one in which most requests run on average, then the earliest. Shares are compared as
    fractions, once for each that occurs.
    """
    if len(run.steps) <= size:
        return 0
    known = run.r >= 0
    prefills, busy = _sums(run.has_prefill, size), _sums(~run.is_idle, size)
    requests = _sums(np.where(known & ~run.is_idle, run.r, 0), size)
    counted = _sums(known & ~run.is_idle, size)
    places = np.flatnonzero(prefills > 0) if prefills.any() else np.arange(len(prefills))
    places = _least(places, prefills, busy, lambda share: abs(share - reference))
    return int(_least(places, requests, counted, lambda mean: -mean)[0])


def _sums(values: Ints | Mask, size: int) -> Ints:
    """Return the sum of each `size` neighbours, by the place of the first."""
    upto = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return upto[size:] - upto[:-size]


def _least(places: Ints, above: Ints, below: Ints, cost: Callable[[Fraction], Fraction]) -> Ints:
    """Return those places whose fraction costs least; each distinct one is looked at once."""
    pairs = np.stack([above[places], np.maximum(below[places], 1)], axis=1)
    distinct, of_place = np.unique(pairs, axis=0, return_inverse=True)
    costs = [cost(Fraction(a, b)) for a, b in distinct.tolist()]
    least = min(costs)
    is_least = np.array([value == least for value in costs])
    return places[is_least[of_place.reshape(-1)]]
