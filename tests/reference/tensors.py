"""Tensors as traces record them, element by element."""

from __future__ import annotations

import itertools
import math

SIZES = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8}


def distinct(shape, strides=None):
    """Count the places in memory that a tensor has."""
    if strides is None:
        return math.prod(shape)
    places = itertools.product(*(range(size) for size in shape))
    return len({sum(i * s for i, s in zip(at, strides, strict=True)) for at in places})


def moved(shape, spelling, strides=None):
    """Return the bytes of a tensor's distinct elements; an absent one, None, has none."""
    return 0 if shape is None else distinct(shape, strides) * SIZES[spelling]
