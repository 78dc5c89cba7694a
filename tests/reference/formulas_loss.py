"""Work of losses, sample by sample."""

from __future__ import annotations

import math

import numpy as np

# FLOPs of a pair of elements, forward and backward, as written out: each operation is one.
PAIRS = {
    "mse_loss": (len(["x - t", "d * d"]), len(["x - t", "2/n * d", "* g"])),
    "l1_loss": (len(["x - t", "|d|"]), None),
    "smooth_l1_loss": (
        len(["x - t", "|d|", "< beta", "0.5 * d", "* d", "/ beta"]),
        len(["x - t", "< -beta", "> beta", "1/n * d", "* g", "/ beta"]),
    ),
    "huber_loss": (
        len(["x - t", "|d|", "< delta", "0.5 * d", "* d"]),
        len(["x - t", "< -delta", "> delta", "1/n * d", "* g"]),
    ),
    "kl_div": (len(["log t", "- x", "* t"]), None),
}


def pairs(x, target):
    """Return the number of pairs of two tensors, None if they don't broadcast."""
    try:
        return math.prod(np.broadcast_shapes(tuple(x), tuple(target)))
    except ValueError:
        return None


def samples(x):
    """Return the shape of the classes' indices that belong to logits (C), (N, C) or (N, C, …)."""
    return x[:1][:0] if len(x) == 1 else [x[0], *x[2:]]
