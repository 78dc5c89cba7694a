"""How many elements a compiled kernel ran over, from the scalars of its launch.

The last integers among the concrete inputs are its sizes, slowest first: those that are kept, then
those that are reduced. How many of each there are, the names of its block sizes tell.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit
from tracehouse.triton.launch_facts import MOST_BLOCKS

Ints = NDArray[np.int64]

# What a launch says (columns of `facts`): KIND a Family; STRIP whether block sizes may stand behind
# the sizes; BLOCK of each dimension, 0 for none; TAIL the block sizes in their order; KEPT the
# sizes that the launcher's grid states; GPU the grid of the kernel, 0 if not known.
KIND, STRIP, SPLIT, TAILS, KEPTS = range(5)
BLOCK = 5
TAIL = BLOCK + 5
KEPT = TAIL + MOST_BLOCKS
GPU = KEPT + 3
FACTS = GPU + 3
_Z, _Y, _X, _R0, _R1 = range(5)

# What is found (columns of the result): SIZE of each dimension, ABSENT if there is none; CHECK;
# ASSUMED whether the number of dimensions is a guess; WHY a Sizes; SEED_X and SEED_R the counts by
# the published rule, ABSENT if it gives none.
SIZE, CHECK, ASSUMED, WHY, SEED_X, SEED_R, FOUND = 0, 5, 6, 7, 8, 9, 10
ABSENT = -(2**62)
NO_CHECK, GRID_OK, GRID_MISMATCH = range(3)
_LARGEST = 2.0**62


class Family(IntEnum):
    """Which rule finds the sizes."""

    POINTWISE = 0
    REDUCTION = 1
    SCAN = 2  # one dimension that is scanned
    UNNAMED = 3  # the name does not tell: a block of a reduction or the grid has to
    UNKNOWN = 4  # a reduction, if it has a block of one
    NONE = 5  # its sizes are not among its scalars


class Sizes(IntEnum):
    """Why the sizes are not known."""

    KNOWN = 0
    NO_INPUTS = 1
    TOO_FEW = 2
    NEGATIVE = 3
    TOO_LARGE = 4
    NO_RULE = 5


@njit
def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@njit
def _check(facts: Ints, size: Ints, kept: int) -> int:
    """Compare sizes with the grid: with the launcher's, or with the kernel's in blocks."""
    if facts[KEPTS] > 0:
        if facts[KEPTS] != kept:
            return GRID_MISMATCH
        for k in range(kept):
            if facts[KEPT + k] != size[_X + 1 - kept + k]:
                return GRID_MISMATCH
        return GRID_OK
    if facts[GPU] <= 0 or facts[BLOCK + _X] <= 0:
        return NO_CHECK
    blocks = _ceil_div(size[_X], facts[BLOCK + _X])
    if facts[GPU] != blocks and facts[GPU] != blocks * facts[SPLIT]:
        return GRID_MISMATCH
    others = facts[GPU + 1] * facts[GPU + 2]
    needed = 1
    for d in (_Y, _Z):
        if size[d] >= 0:
            needed *= _ceil_div(size[d], max(facts[BLOCK + d], 1))
    # Blocks of y beyond the limit of its grid spill into that of z.
    is_enough = others == needed or (facts[GPU + 2] > 1 and others > needed)
    return GRID_OK if is_enough else GRID_MISMATCH


@njit
def _read(ints: Ints, end: int, kept: int, reduced: int, size: Ints) -> None:
    """Take the sizes that end before `end`."""
    size[:] = ABSENT
    first = end - kept - reduced
    for k in range(kept):
        size[_X + 1 - kept + k] = ints[first + k]
    for k in range(reduced):
        size[_R0 + k] = ints[first + kept + k]


@njit
def _ends_in_blocks(facts: Ints, ints: Ints, end: int) -> bool:
    blocks = facts[TAILS]
    for k in range(blocks):
        if ints[end - blocks + k] != facts[TAIL + k]:
            return False
    return blocks > 0


@njit
def _why(size: Ints) -> int:
    product = 1.0
    has_none = False
    for d in range(5):
        if size[d] != ABSENT:
            if size[d] < 0:
                return Sizes.NEGATIVE
            product *= size[d]
            has_none = has_none or size[d] == 0
    return Sizes.TOO_LARGE if product >= _LARGEST and not has_none else Sizes.KNOWN


@njit
def _sizes(facts: Ints, ints: Ints, begin: int, end: int, found: Ints) -> None:
    """Find the sizes of one launch: of all readings the first that the grid bears out."""
    family = facts[KIND]
    has_r = facts[BLOCK + _R0] > 0 or facts[BLOCK + _R1] > 0
    if family == Family.UNKNOWN:
        family = Family.REDUCTION if has_r else Family.NONE
    if family == Family.NONE:
        found[WHY] = Sizes.NO_RULE
        return
    kept, is_assumed = 1, 0
    if facts[TAILS] > 0:
        for d in (_Y, _Z):
            kept += 1 if facts[BLOCK + d] > 0 else 0
    elif facts[KEPTS] > 0:
        kept = facts[KEPTS]
    else:
        is_assumed = 1
    # How many dimensions are reduced, and how many at most.
    least = 0 if family in (Family.POINTWISE, Family.UNNAMED) else 1
    most = least
    if family == Family.REDUCTION or family == Family.UNNAMED:
        if facts[BLOCK + _R1] > 0:
            least = most = 2
        elif facts[BLOCK + _R0] > 0:
            least = most = 1
        else:  # a persistent reduction lists none
            most = least + 1
    size = np.empty(5, dtype=np.int64)
    is_found = False
    fewest, highest = most, least  # dimensions reduced, of the readings there are numbers for
    for reduced in range(least, most + 1):
        may_strip = (
            facts[STRIP] > 0
            and end - begin - facts[TAILS] >= kept + reduced
            and _ends_in_blocks(facts, ints, end)
        )
        for stripped in range(1 if may_strip else 0, -1, -1):
            stop = end - stripped * facts[TAILS]
            if stop - begin < kept + reduced:
                continue
            fewest, highest = min(fewest, reduced), reduced
            _read(ints, stop, kept, reduced, size)
            check = _check(facts, size, kept)
            if not is_found or (check == GRID_OK and found[CHECK] == GRID_MISMATCH):
                is_found = True
                found[SIZE : SIZE + 5] = size
                found[CHECK] = check
    found[ASSUMED] = is_assumed
    found[WHY] = _why(found[SIZE : SIZE + 5]) if is_found else Sizes.TOO_FEW
    if is_found and family == Family.UNNAMED and highest > fewest and found[CHECK] != GRID_OK:
        found[WHY] = Sizes.NO_RULE  # nothing tells a reduction from a pointwise kernel
    if found[WHY] != Sizes.KNOWN:
        found[SIZE : SIZE + 5] = ABSENT
        found[CHECK] = NO_CHECK


@njit
def _seed(family: int, ints: Ints, begin: int, end: int, found: Ints) -> None:
    """Count by the published rule: the last integer, or the last two of a reduction."""
    if family == Family.REDUCTION and end - begin >= 2:
        found[SEED_X], found[SEED_R] = ints[end - 2], ints[end - 1]
    elif family in (Family.POINTWISE, Family.UNNAMED) and end > begin:
        found[SEED_X], found[SEED_R] = ints[end - 1], 1
    product = float(found[SEED_X]) * found[SEED_R]
    if found[SEED_X] < 0 or found[SEED_R] < 0 or product >= _LARGEST:
        found[SEED_X] = found[SEED_R] = ABSENT


@njit
def find_sizes(facts: Ints, row: Ints, ints_row: Ints, ints: Ints, found: Ints) -> None:
    """Find the sizes of n launches.

    Shapes: facts (n, FACTS); row (n,): row of `signatures`, -1 for none; ints_row (rows + 1,):
    where the integers of each row begin in `ints`; found (n, FOUND): filled.
    Needs: the integers among all concrete inputs of a row in their order, those beyond the declared
    inputs included.
    Cost: a few readings of at most five integers a launch.
    Source: triton 2, "Element-count algorithm".
    """
    for i in range(len(row)):
        found[i, :] = ABSENT
        found[i, CHECK] = NO_CHECK
        found[i, ASSUMED] = 0
        found[i, WHY] = Sizes.NO_INPUTS
        if row[i] < 0:
            continue
        begin, end = ints_row[row[i]], ints_row[row[i] + 1]
        _sizes(facts[i], ints, begin, end, found[i])
        _seed(facts[i, KIND], ints, begin, end, found[i])


def product_of(size: Ints, first: int, last: int) -> NDArray[np.float64]:
    """Return the product of dimensions first to last (n,) of sizes (n, 5).

    NaN where none of them is there, 1 of reduced ones that are not there.
    """
    part = size[:, first : last + 1]
    product = np.where(part < 0, 1, part).astype(np.float64).prod(axis=1)
    return np.where(size[:, _X] < 0, math.nan, product)
