"""Work of convolutions, counted window by window."""

from __future__ import annotations

import math


def windows(size, kernel, stride, padding, dilation):
    """Count the places at which a kernel lies inside a padded row."""
    padded = size + 2 * padding
    starts = range(0, padded, stride)
    return sum(start + dilation * (kernel - 1) < padded for start in starts)


def spread(size, kernel, stride, padding, dilation, beyond):
    """Return the length that the kernels of a transposed convolution reach, cut by the padding."""
    reached = {start * stride + k * dilation for start in range(size) for k in range(kernel)}
    return max(reached) + 1 + beyond - 2 * padding


def out_shape(x, w, stride, padding, dilation, beyond, transposed, groups):
    """Return the shape of the output, of x (N, C, …) and w."""
    out = []
    for d in range(len(w) - 2):
        args = x[d + 2], w[d + 2], stride[d], padding[d], dilation[d]
        out.append(spread(*args, beyond[d]) if transposed else windows(*args))
    return [x[0], w[1] * groups if transposed else w[0], *out]


def multiply_adds(x, w, out, transposed, groups):
    """Count multiply-adds: each output takes its group's channels at each place of the kernel.

    Transposed, each input gives to its group's channels.
    """
    total = 0
    for channel in range(x[1] if transposed else out[1]):
        group = channel // ((x[1] if transposed else out[1]) // groups)
        all_others = out[1] if transposed else x[1]
        others = [c for c in range(all_others) if c // (all_others // groups) == group]
        places = x[0] * math.prod((x if transposed else out)[2:])
        total += places * len(others) * math.prod(w[2:])
    return total
