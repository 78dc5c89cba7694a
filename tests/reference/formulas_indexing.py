"""Bytes of reads and writes by index, from numpy's own indexing of arrays of the same shapes."""

from __future__ import annotations

import numpy as np

from reference.formulas_copy import SIZES, distinct, moved


def _zeros(shape):
    return np.zeros(shape, dtype=np.int64)


def picked(table, index, axis):
    """Count the elements of the slices along axis that an index names."""
    return np.take(np.empty(table), _zeros(index), axis=axis).size


def picked_together(table, indices):
    """Count the elements that several indices name together."""
    return np.empty(table)[tuple(_zeros(shape) for shape in indices)].size


def read(table, spelling, strides, index_bytes, n):
    """Return the bytes of reading n elements of a table, and of writing them."""
    places = distinct(table, strides)
    fetched = n if n < places else places
    return index_bytes + (fetched + n) * SIZES[spelling]


def changed(table, spelling, index_bytes, source_bytes, n):
    """Return the bytes of changing n elements of a table where they are."""
    places = distinct(table)
    there = n if n < places else places
    return index_bytes + source_bytes + there * SIZES[spelling] + there * SIZES[spelling]


def changed_copy(table, spelling, index_bytes, source_bytes):
    """Return the bytes of a copy of a table with some elements changed."""
    return index_bytes + source_bytes + 2 * moved(table, spelling)


def gradient(grad, spelling, index_bytes, rows):
    """Return the bytes of the gradient of a table of so many rows."""
    return moved(grad, spelling) + index_bytes + moved((rows, grad[-1]), spelling)
