"""Softmax and lists of tensors in plain Python, element by element."""

from __future__ import annotations

import itertools


def softmax(shape, width_in, width_out, mask_bytes=0):
    """Return FLOPs and bytes: max, difference, exp, sum and quotient of each element."""
    flops = moved = 0
    for _ in itertools.product(*map(range, shape)):
        flops += 5
        moved += width_in + width_out
    return flops, moved + mask_bytes


def causal_softmax(batches, length, width):
    """Return FLOPs and bytes of scaled rows of which row i has i + 1 elements to read."""
    flops = moved = 0
    for _, row, column in itertools.product(range(batches), range(length), range(length)):
        moved += width
        if column <= row:
            flops += 6
            moved += width
    return flops, moved


def adam(shapes, width, has_max):
    """Return FLOPs and bytes of a step: p, g and the states read, p and the states written."""
    flops = moved = 0
    for shape in shapes:
        for _ in itertools.product(*map(range, shape)):
            read = ["p", "g", "m", "v"] + ["max"] * has_max
            written = ["p", "m", "v"] + ["max"] * has_max
            flops += 12
            moved += (len(read) + len(written)) * width
    return flops, moved
