"""Work of matrix products, from arrays of the recorded shapes."""

from __future__ import annotations

import itertools
import math

import numpy as np

SIZES = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "signed char": 1,
    "unsigned char": 1,
    "int": 4,
    "long int": 8,
    "c10::Float8_e4m3fn": 1,
    "c10::complex<float>": 8,
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


def multiplied(a, b, complex_numbers=False):
    """Return the shape of a @ b, and its FLOPs: a multiply-add for each element and each k."""
    result = np.matmul(np.zeros(a), np.zeros(b)).shape
    return result, math.prod(result) * a[-1] * (8 if complex_numbers else 2)


def added(result, other, complex_numbers=False):
    """Return the FLOPs of adding something that broadcasts to a result."""
    if np.broadcast_shapes(result, other) != tuple(result):
        raise ValueError(f"{other} does not broadcast to {result}")
    return math.prod(result) * (2 if complex_numbers else 1)


def grouped(rows, weights):
    """Return the FLOPs of products of each group's rows with its own (K, N)."""
    total = 0
    for count, (k, n) in zip(rows, weights, strict=True):
        total += multiplied((count, k), (k, n))[1]
    return total
