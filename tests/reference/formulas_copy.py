"""Bytes of copies, from sets of places in memory and arrays of the recorded shapes."""

from __future__ import annotations

import itertools
import math

import numpy as np

SIZES = {
    "bool": 1,
    "unsigned char": 1,
    "c10::Float8_e4m3fn": 1,
    "short int": 2,
    "c10::BFloat16": 2,
    "int": 4,
    "float": 4,
    "long int": 8,
    "double": 8,
    "c10::complex<double>": 16,
}


def distinct(shape, strides=None):
    """Count the places in memory that a tensor has."""
    if strides is None:
        return math.prod(shape)
    places = itertools.product(*(range(size) for size in shape))
    return len({sum(i * s for i, s in zip(at, strides, strict=True)) for at in places})


def moved(shape, spelling, strides=None):
    """Return the bytes of a tensor's distinct elements."""
    return distinct(shape, strides) * SIZES[spelling]


def joined(shapes, axis):
    """Count the elements of tensors put one behind the other."""
    return np.concatenate([np.empty(shape) for shape in shapes], axis).size


def joined_in_chunks(shapes, axis, chunks):
    """Count the elements of tensors that are each padded along axis to a multiple of chunks."""
    total = 0
    for shape in shapes:
        padded = list(shape)
        while padded[axis] % chunks:
            padded[axis] += 1
        total += np.empty(padded).size
    return total


def repeated(shape, times):
    """Count the elements of a tensor that is repeated so many times along each dimension."""
    return np.tile(np.empty(shape), times).size


def broadcasts(src, dst):
    """Whether a tensor of shape src can be copied into one of shape dst."""
    try:
        return np.broadcast_shapes(src, dst) == tuple(dst) and len(src) <= len(dst)
    except ValueError:
        return False
