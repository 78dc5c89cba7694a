"""Rotary embeddings, one element after the other."""

from __future__ import annotations


def turn(tokens: int, heads: int, width: int, turned: int, size: int) -> tuple[int, int]:
    """FLOPs and bytes of turning the first `turned` elements of every head, in place."""
    flops, moved = 0, 0
    for _ in range(tokens * heads):
        for place in range(width):
            if place < turned:
                flops += 2 + 1  # x·cos ± y·sin
                moved += size + size
    return flops, moved
