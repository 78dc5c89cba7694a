"""Work of state-space models, product by product."""

from __future__ import annotations


def convolution(batch, channels, length, taps):
    """FLOPs of a causal convolution: a multiply-add for each tap of each element."""
    return sum(2 * length for _ in range(batch) for _ in range(channels) for _ in range(taps))


def chunked_scan(batch, length, heads, size, groups, states, chunk):
    """FLOPs of the four products of each chunk of each sequence."""
    flops = 0
    for _ in range(batch):
        for _ in range(0, length, chunk):
            flops += groups * product(chunk, states, chunk)  # C with B
            flops += heads * product(chunk, chunk, size)  # what is masked, with x
            flops += heads * product(states, chunk, size)  # the state of the chunk
            flops += heads * product(chunk, states, size)  # the output of the state
    return flops


def product(m, k, n):
    """FLOPs of (m, k) x (k, n)."""
    return 2 * m * k * n
