"""Pointwise ops and reductions in plain Python: numpy's shapes, types by rank and category."""

from __future__ import annotations

import itertools
import math

import numpy as np

# Category (bool, integral, floating) and width of the types that the twins draw.
KNOWN = {
    "bool": (0, 1),
    "unsigned char": (1, 1),
    "short int": (1, 2),
    "int": (1, 4),
    "long int": (1, 8),
    "c10::BFloat16": (2, 2),
    "c10::Half": (2, 2),
    "float": (2, 4),
    "double": (2, 8),
}
NUMBERS = {"True": "bool", "3": "long int", "0.5": "double"}


def size_of(spelling):
    return KNOWN[spelling][1]


def distinct(shape, strides):
    """Count the places in memory that a tensor has."""
    places = itertools.product(*(range(size) for size in shape))
    return len({sum(i * s for i, s in zip(at, strides, strict=True)) for at in places})


def contiguous(shape):
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def moved(shape, spelling, strides=None):
    """Return the bytes of a tensor's distinct elements."""
    return distinct(shape, contiguous(shape) if strides is None else strides) * size_of(spelling)


def elements(*shapes):
    """Return the elements of the broadcast shape, None if there is none."""
    try:
        return math.prod(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        return None


def wider(a, b):
    """Promote two types of tensors with dimensions."""
    if a == b:
        return a
    (category_a, width_a), (category_b, width_b) = KNOWN[a], KNOWN[b]
    if category_a != category_b:
        return a if category_a > category_b else b
    if width_a == width_b:
        return "float"  # half with bfloat16
    return a if width_a > width_b else b


def with_number(a, number):
    """Promote a tensor with a Python number."""
    kind = NUMBERS[number]
    if KNOWN[kind][0] <= KNOWN[a][0]:
        return a
    return "float" if kind == "double" else kind


def as_float(a):
    return a if KNOWN[a][0] == 2 else "float"


def kept(shape, dims):
    """Return the elements that are left of a shape whose dims are reduced, all if none are given.

    None if a dim is not there or is there twice.
    """
    deep = max(len(shape), 1)
    places = [d + deep if d < 0 else d for d in (dims or range(deep))]
    if any(not 0 <= d < deep for d in places) or len(set(places)) < len(places):
        return None
    return math.prod(size for d, size in enumerate(shape) if d not in places)
