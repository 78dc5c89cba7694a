"""Work of fills, sequences and dropout, by writing the arrays out."""

from __future__ import annotations

import numpy as np

from reference.formulas_copy import SIZES, moved


def counted(start, end, step):
    """Count the numbers of a sequence, one at a time."""
    n = 0
    while (start + n * step < end) if step > 0 else (start + n * step > end):
        n += 1
    return n


def dropped(shape, spelling, p, is_training):
    """Return FLOPs and bytes of dropout: a random number decides for each element."""
    flops, read, written = 0, 0, 0
    for _ in np.ndindex(*shape):
        flops += 10 if is_training and p < 1 else 0
        read += 0 if is_training and p == 1 else SIZES[spelling]
        written += SIZES[spelling] + 1
    return flops, read + written


def undropped(shape, spelling, mask_spelling):
    """Return FLOPs and bytes of the backward: grad times mask times scale, for each element."""
    flops = sum(2 for _ in np.ndindex(*shape))
    return flops, 2 * moved(shape, spelling) + moved(shape, mask_spelling)
