"""Arguments that hold one number per spatial dimension: strides, paddings, output sizes."""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.inputs import (
    A_LIST,
    AN_INT,
    NO_VALUE,
    Inputs,
    count,
    dim,
    item,
    items,
    kind,
    number,
    rank,
    values,
)
from tracehouse.formulas.model import Why

UNFIT = -1.0  # what stands for a number that the argument can't have


@njit
def missing(x: Inputs, r: int) -> int:
    """Return the Why of a call that lacks the shape of an input it must have."""
    return Why.NO_INPUTS if count(x, r) <= 0 else Why.NO_SHAPE


@njit
def well_formed(x: Inputs, r: int, i: int) -> bool:
    """Tell whether no dimension of input i is negative."""
    for d in range(rank(x, r, i)):
        if dim(x, r, i, d) < 0:
            return False
    return True


@njit
def per_dimension(x: Inputs, r: int, i: int, d: int, dims: int, default: float) -> float:
    """Return the whole number that argument i has for spatial dimension d of `dims`.

    A single number stands for all dimensions; an op without the argument, an empty list and a text
    of "" mean the default. NaN if no values were recorded, UNFIT if it is something else or
    negative.
    """
    if i < 0:
        return default
    if i >= values(x, r):
        return math.nan
    what = kind(x, r, i)
    if what == NO_VALUE:
        return default
    if what == A_LIST:
        length = items(x, r, i)
        if length == 0:
            return default
        if length != 1 and length != dims:
            return UNFIT
        found = item(x, r, i, 0 if length == 1 else d)
    elif what == AN_INT:
        found = number(x, r, i)
    else:
        return UNFIT
    if not (found >= 0.0 and found < 2.0**53 and found == found // 1.0):
        return UNFIT
    return found


@njit
def unfit(found: float, least: float) -> int:
    """Return the Why of a number of `per_dimension` that must be `least` or more."""
    if math.isnan(found):
        return Why.NO_VALUE
    return Why.MISFIT if found < least else Why.KNOWN
