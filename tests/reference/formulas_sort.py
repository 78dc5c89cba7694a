"""Bytes of sorts and searches, from numpy's results for arrays of the same shapes."""

from __future__ import annotations

import numpy as np

from reference.formulas_copy import SIZES, moved


def kept(shape, spelling, axis, k):
    """Return the bytes of keeping k elements along an axis, with their places."""
    values = np.take(np.empty(shape), np.arange(k), axis=axis)
    return moved(shape, spelling) + values.size * (SIZES[spelling] + 8)


def searched(shape, spelling, among, is_int32):
    """Return the bytes of the places of elements among sorted ones of the same type."""
    places = np.empty(shape, dtype=np.int32 if is_int32 else np.int64)
    return moved(shape, spelling) + moved(among, spelling) + places.nbytes
