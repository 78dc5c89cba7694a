"""Evaluate the formulas of calls, all calls of a model at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.formulas.dtypes import NONE
from tracehouse.formulas.inputs import Inputs
from tracehouse.formulas.model import NO_PARAMETER, Calls, Model, Why, Work

_LARGEST = float(2**62)


def evaluate(
    model: Model,
    inputs: Inputs,
    row: NDArray[np.int64],
    slot: NDArray[np.int64],
    element: NDArray[np.float64],
) -> Work:
    """Return the work of n calls of one model: row, element (n,), slot (n, slots) as in Calls.

    What is negative or beyond 2**62 becomes unknown, with Why.TOO_LARGE.
    """
    n = len(row)
    work = Work(
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.full(n, NONE, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.full((n, len(model.labels)), NO_PARAMETER, dtype=np.int64),
    )
    model.kernel(inputs, Calls(row, slot, element), work)
    for amount in (work.flops, work.bytes):
        with np.errstate(invalid="ignore"):
            out_of_range = ~((amount >= 0) & (amount < _LARGEST)) & ~np.isnan(amount)
        amount[out_of_range] = np.nan
        work.why[out_of_range] = Why.TOO_LARGE
    unexplained = (np.isnan(work.flops) | np.isnan(work.bytes)) & (work.why == Why.KNOWN)
    work.why[unexplained] = Why.NO_FORMULA
    return work
