"""Work of interpolation and padding, from the places that each output is made of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def reached(size, out, taps):
    """Count the inputs along a row that its outputs are made of, with half-pixel centres."""
    seen = set()
    for i in range(out):
        if taps == 1:
            seen.add(i * size // out)
            continue
        centre = max(Fraction(2 * i + 1, 2) * Fraction(size, out) - Fraction(1, 2), Fraction(0))
        first = centre.numerator // centre.denominator - (taps // 2 - 1)
        seen |= {min(max(first + k, 0), size - 1) for k in range(taps)}
    return len(seen)


def padded(shape, pairs):
    """Return the shape of a padded array, and how many of its inputs are left."""
    marks = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
    for d in range(len(pairs) // 2):
        before, after = pairs[2 * d], pairs[2 * d + 1]
        axis = len(shape) - 1 - d
        end = marks.shape[axis] + min(after, 0)
        marks = np.take(marks, range(max(-before, 0), end), axis)
        widths = [(0, 0)] * len(shape)
        widths[axis] = max(before, 0), max(after, 0)
        marks = np.pad(marks, widths)
    return marks.shape, int((marks > 0).sum())
