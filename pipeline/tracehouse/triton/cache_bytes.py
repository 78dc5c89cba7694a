"""Bytes of a compiled kernel from its cache file: the published formula, and by what each does."""

from __future__ import annotations

from typing import NamedTuple

from tracehouse.triton.cache_origin import Buffer
from tracehouse.triton.cache_source import Missing
from tracehouse.triton.inductor_cache import CachedKernel
from tracehouse.triton.pointers import READS, WRITES, Pointer, Role

_LARGEST = 2**63 - 1


class Bytes(NamedTuple):
    """Bytes moved, or why they are not known."""

    value: int | None
    why: Missing | None


def seed_bytes(kernel: CachedKernel, xnumel: int | None = None, rnumel: int | None = None) -> Bytes:
    """Return the bytes of a kernel by the published formula for cache files.

    With r > 1: Σ bytes of all pointers but the last · x · r + bytes of the last · x. Otherwise
    (Σ bytes of all + Σ bytes of those that are both read and written) · x.

    Args:
        kernel: of the cache.
        xnumel: x, where it is known better than from the cache.
        rnumel: r, likewise.
    """
    x = kernel.xnumel if xnumel is None else xnumel
    r = kernel.rnumel if rnumel is None else rnumel
    pointers, why = _data_pointers(kernel)
    if why is not None:
        return Bytes(None, why)
    if x is None or r is None:
        return Bytes(None, _why_no_size(kernel))
    widths = [pointer.bytes for pointer in pointers if pointer.bytes is not None]
    if len(widths) < len(pointers):
        return Bytes(None, Missing.NO_TYPE)
    if r > 1:
        return _bounded(sum(widths[:-1]) * x * r + widths[-1] * x)
    twice = sum(pointer.bytes or 0 for pointer in pointers if pointer.role is Role.IN_OUT)
    return _bounded((sum(widths) + twice) * x)


def role_bytes(kernel: CachedKernel, xnumel: int | None = None, rnumel: int | None = None) -> Bytes:
    """Return the bytes of a kernel by what it does with each pointer.

    What it reads counts x · r elements; what it writes as many where the kernel stores at every
    step of its reduction, and x elsewhere. Where the comment above the kernel gives the shapes of
    all buffers read, or of all written, those count instead, up to x · r elements of each.

    Args:
        kernel: of the cache.
        xnumel: x, where it is known better than from the cache.
        rnumel: r, likewise.
    """
    x = kernel.xnumel if xnumel is None else xnumel
    r = kernel.rnumel if rnumel is None else rnumel
    pointers, why = _data_pointers(kernel)
    if why is not None:
        return Bytes(None, why)
    if any(pointer.role is Role.UNKNOWN for pointer in pointers):
        return Bytes(None, Missing.NO_ROLE)
    elements = x * r if x is not None and r is not None else None
    written = {buffer.name for buffer in kernel.origin.writes}
    from_outside = [buffer for buffer in kernel.origin.reads if buffer.name not in written]
    reads = [pointer for pointer in pointers if pointer.role in READS]
    read = _by_shapes(reads, from_outside, elements)
    if read is None:
        read = _by_shapes(reads, list(kernel.origin.reads), elements)
    writes = [pointer for pointer in pointers if pointer.role in WRITES]
    wrote = _by_shapes(writes, list(kernel.origin.writes), elements)
    if read is None or wrote is None:
        if x is None or elements is None:
            return Bytes(None, _why_no_size(kernel))
        if any(pointer.bytes is None for pointer in pointers):
            return Bytes(None, Missing.NO_TYPE)
        if read is None:
            read = sum(pointer.bytes or 0 for pointer in reads) * elements
        if wrote is None:
            wrote = sum(
                (pointer.bytes or 0) * (elements if pointer.is_full else x) for pointer in writes
            )
    return _bounded(read + wrote)


def _data_pointers(kernel: CachedKernel) -> tuple[list[Pointer], Missing | None]:
    if kernel.pointers is None:
        unread = (why for why in kernel.why if why in (Missing.NO_SIGNATURE, Missing.BAD_SIGNATURE))
        return [], next(unread, Missing.NO_SIGNATURE)
    pointers = [pointer for pointer in kernel.pointers if pointer.role is not Role.WORKSPACE]
    return pointers, None if pointers else Missing.NO_POINTERS


def _why_no_size(kernel: CachedKernel) -> Missing:
    told = (why for why in kernel.why if why in (Missing.COMBO, Missing.BAD_SIZE_HINTS))
    return next(told, Missing.NO_SIZES)


def _by_shapes(pointers: list[Pointer], buffers: list[Buffer], elements: int | None) -> int | None:
    """Add up the buffers behind `pointers`; None if they are not just these."""
    known = [(b.bytes, b.elements) for b in buffers if b.bytes is not None]
    widths = sorted(width for width, _ in known)
    if len(known) < len(buffers) or widths != sorted(p.bytes or 0 for p in pointers):
        return None
    total = 0
    for width, size in known:
        if size is None:
            return None
        total += width * (size if elements is None else min(size, elements))
    return total


def _bounded(value: int) -> Bytes:
    return Bytes(value, None) if value <= _LARGEST else Bytes(None, Missing.TOO_LARGE)
