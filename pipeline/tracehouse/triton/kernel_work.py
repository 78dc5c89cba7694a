"""What is known of the work of compiled kernels' launches, and by which evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from tracehouse.triton.elements import ABSENT

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Mask = NDArray[np.bool_]

CHECKS = ("none", "grid_ok", "grid_mismatch")  # by the codes of elements
IN_PLACE = ("no", "yes", "written_only", "unknown")  # by the codes of traffic.InPlace


class Basis(StrEnum):
    """What the bytes rest on."""

    NUM_GB = "num_gb"
    CACHE_ROLES = "cache_roles"
    TRACE_CAPPED = "trace_capped"
    COMPAT = "compat"
    MODEL = "model"


class Source(StrEnum):
    """What the numbers come from."""

    ARGS = "v2"
    CACHE = "v1"
    NUM_GB = "kernel_num_gb"
    MODEL = "model"


class SizesFrom(StrEnum):
    """Where the dimensions come from."""

    ARGS = "args"
    ASSUMED = "assumed"
    CACHE = "cache"
    HINTS = "hints"


class Why(StrEnum):
    """Why the work of a kernel is not known."""

    NO_INPUTS = "its inputs were not recorded: record_shapes was off"
    TOO_FEW = "its sizes are not among its arguments: they are compiled in, or it has several parts"
    NEGATIVE = "a size among its arguments is negative"
    TOO_LARGE = "the product of its sizes is out of range"
    NO_TENSORS = "none of its inputs is a tensor"
    NO_TYPE = "the type of a tensor was not recorded, or is not known"
    NO_SHAPE = "the shape of a tensor was not recorded, or cannot be"
    TEMPLATE = "a template: the formula of its op does not fit its inputs"
    FOREACH = "a kernel over lists of tensors: its sizes are compiled in"
    SCAN = "a split scan: no formula"
    UNKNOWN = "the kind of the kernel is not known"
    USER = "a kernel written by hand: what it computes is not known"


class Unit(IntEnum):
    """Which units do the work: the codes of UNITS."""

    NONE = 0
    VECTOR = 1
    MATRIX = 2


UNITS = ("", "vector", "matrix")


@dataclass(frozen=True, slots=True)
class Work:
    """The work of n launches; NaN, ABSENT and -1 are unknown.

    size (n, 5): dimensions by launch_facts.DIMENSIONS. x, r (n,): products of those kept and
    reduced. flops, bytes, least, seed_flops, seed_bytes (n,). partial (n,): flops is a lower bound.
    Codes into the words above: check, in_place, basis, source, sizes, unit. dtype: code of the type
    that the peak is taken of. ops (n,): code of the list of ops, see Ops. why (n,): code into
    `words`.
    """

    size: Ints
    x: Reals
    r: Reals
    flops: Reals
    bytes: Reals
    least: Reals
    seed_flops: Reals
    seed_bytes: Reals
    partial: Mask
    check: Ints
    in_place: Ints
    basis: Ints
    source: Ints
    sizes: Ints
    unit: Ints
    dtype: Ints
    ops: Ints
    why: Ints
    words: list[str]

    @property
    def elements(self) -> Reals:
        """Elements that the kernel ran over."""
        return self.x * self.r

    def explain(self, rows: Ints | Mask, text: str) -> None:
        """Say of some launches why something of them is not known."""
        if text not in self.words:
            self.words.append(text)
        self.why[rows] = self.words.index(text)


BASES, SOURCES, SIZES_FROM = tuple(Basis), tuple(Source), tuple(SizesFrom)


def unknown_work(n: int) -> Work:
    """Return the work of n launches of which nothing is known."""

    def reals() -> Reals:
        return np.full(n, np.nan)

    def codes(code: int = -1) -> Ints:
        return np.full(n, code, dtype=np.int64)

    return Work(
        size=np.full((n, 5), ABSENT, dtype=np.int64),
        x=reals(),
        r=reals(),
        flops=reals(),
        bytes=reals(),
        least=reals(),
        seed_flops=reals(),
        seed_bytes=reals(),
        partial=np.zeros(n, dtype=np.bool_),
        check=codes(0),
        in_place=codes(),
        basis=codes(),
        source=codes(),
        sizes=codes(),
        unit=codes(int(Unit.NONE)),
        dtype=codes(0),
        ops=codes(),
        why=codes(),
        words=[],
    )


class Ops:
    """Distinct lists of fused ops, each with the parts of the name that are none, by code."""

    def __init__(self) -> None:
        self._codes: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}

    def code(self, ops: tuple[str, ...], unknown: tuple[str, ...] = ()) -> int:
        """Return the code of a list of ops."""
        return self._codes.setdefault((ops, unknown), len(self._codes))

    @property
    def known(self) -> list[tuple[str, ...]]:
        """The lists of ops, by code."""
        return [ops for ops, _ in self._codes]

    @property
    def unknown(self) -> list[tuple[str, ...]]:
        """The other parts of each name, by code."""
        return [unknown for _, unknown in self._codes]
