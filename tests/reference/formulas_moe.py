"""Work of mixtures of experts, token by token."""

from __future__ import annotations

from fractions import Fraction


def active(experts, k, tokens):
    """Return the expected number of experts that at least one token goes to."""
    untouched = Fraction(1)
    for _ in range(tokens):
        untouched *= Fraction(experts - k, experts)
    return experts * (1 - untouched)


def product(tokens, k, depth, width):
    """Return the FLOPs of a row of depth values times a (width, depth) matrix per choice."""
    flops = 0
    for _token in range(tokens):
        for _choice in range(k):
            flops += width * depth * 2
    return flops


def combined(tokens, width, k):
    """Return the FLOPs of weighting k rows and adding them up."""
    flops = 0
    for _token in range(tokens):
        flops += k * width + (k - 1) * width
    return flops


def weights(experts, k, tokens, *matrices):
    """Return the bytes of the touched experts' matrices, each (width, depth, bytes a value)."""
    each = sum(width * depth * size for width, depth, size in matrices)
    return float(active(experts, k, tokens) * Fraction(each))
