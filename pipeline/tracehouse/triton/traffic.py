"""Bytes that a compiled kernel moved, from the shapes and types of its tensors."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import CATEGORY, FLOATING, NONE
from tracehouse.formulas.inputs import DIMS_ROW, TYPES_ROW, Inputs, numel

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


class InPlace(IntEnum):
    """Whether the first tensor is also written."""

    NO = 0
    YES = 1
    WRITTEN_ONLY = 2
    UNDECIDED = 3


class Moved(IntEnum):
    """Why the bytes are not known."""

    KNOWN = 0
    NO_SIZES = 1
    NO_TENSORS = 2
    NO_TYPE = 3


# Columns of `amount`: bytes of all tensors, each up to x · r elements; bytes that the first tensor
# adds if it is written too; bytes by the published rule. Of `found`: an InPlace, a Moved, the type
# that the peak is taken of.
CAPPED, WRITE, SEED, AMOUNTS = range(4)
IN_PLACE, WHY, DTYPE, FOUND = range(4)


@njit
def _begin(x: Inputs, section: int, row: int) -> tuple[int, int]:
    at = x.integers[section] + row
    return x.integers[at], x.integers[at + 1] - x.integers[at]


@njit
def move_bytes(
    x: Inputs,
    width: Reals,
    dtype: Ints,
    row: Ints,
    elements: Reals,
    seed_x: Reals,
    is_pointwise: NDArray[np.bool_],
    seed_writes: NDArray[np.bool_],
    is_creator: NDArray[np.bool_],
    amount: Reals,
    found: Ints,
) -> None:
    """Add up the bytes of n launches.

    Shapes: width, dtype: as in Operands; row (n,): row of `signatures`, -1 for none; elements (n,):
    x · r, NaN if not known; seed_x (n,): x by the published rule, NaN if it gives none;
    is_pointwise, seed_writes, is_creator (n,): whether the kernel reduces nothing, whether the
    published rule takes it so, whether one of its ops makes a tensor out of nothing; amount
    (n, AMOUNTS), found (n, FOUND): filled, NaN where not known.
    Units: bytes.
    Needs: a tensor that is read and written in place comes first, as in Inductor's signatures.
    Cost: a step for each dimension of each input.
    Source: triton 2, "Bytes", and 4.
    """
    for i in range(len(row)):
        amount[i, :] = math.nan
        found[i, IN_PLACE], found[i, WHY], found[i, DTYPE] = InPlace.NO, Moved.NO_SIZES, NONE
        if row[i] < 0:
            continue
        _, shapes = _begin(x, DIMS_ROW, row[i])
        first_type, types = _begin(x, TYPES_ROW, row[i])
        tensors, of_size, later_of_size = 0, 0, 0
        capped, plain, first_bytes, first_width = 0.0, 0.0, 0.0, math.nan
        kind, widest, float_kind = NONE, 0.0, NONE
        for k in range(min(shapes, types)):
            bytes_ = width[first_type + k]
            if bytes_ < 0:
                continue
            n = numel(x, row[i], k)
            touched = min(n, elements[i])
            plain += n * bytes_
            capped += touched * bytes_
            if n == elements[i]:
                of_size += 1 if tensors == 0 else 0
                later_of_size += 1 if tensors > 0 else 0
            if tensors == 0:
                first_width, first_bytes = bytes_, touched * bytes_
            tensors += 1
            code = dtype[first_type + k]
            if not math.isnan(bytes_):
                if kind == NONE:
                    kind = code
                if CATEGORY[code] >= FLOATING and bytes_ > widest:
                    widest, float_kind = bytes_, code
        is_float = kind != NONE and CATEGORY[kind] >= FLOATING
        found[i, DTYPE] = kind if is_float or float_kind == NONE else float_kind
        if tensors == 0:
            found[i, WHY] = Moved.NO_TENSORS
            continue
        found[i, WHY] = Moved.KNOWN if not math.isnan(plain) else Moved.NO_TYPE
        if not math.isnan(seed_x[i]):
            amount[i, SEED] = plain + (first_width * seed_x[i] if seed_writes[i] else 0.0)
        if math.isnan(elements[i]):
            if found[i, WHY] == Moved.KNOWN:
                found[i, WHY] = Moved.NO_SIZES
            continue
        amount[i, WRITE] = 0.0
        if is_pointwise[i] and of_size == 1:
            if later_of_size > 0:
                found[i, IN_PLACE] = InPlace.UNDECIDED
                amount[i, WRITE] = first_width * elements[i]
            elif tensors == 1 and is_creator[i]:
                found[i, IN_PLACE] = InPlace.WRITTEN_ONLY
            else:
                found[i, IN_PLACE] = InPlace.YES
                capped += first_bytes
        amount[i, CAPPED] = capped
