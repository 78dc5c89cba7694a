"""Bytes of collectives: what one rank sends and receives, buffer by buffer."""

from __future__ import annotations

from reference.formulas_copy import moved


def exchanged(sent, received):
    """Return the bytes of all buffers sent and received, each a shape and a spelling."""
    total = 0
    for shape, spelling in [*sent, *received]:
        total += moved(shape, spelling)
    return total
