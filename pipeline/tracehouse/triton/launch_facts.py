"""What Triton's launcher says of a launch beside its inputs: block sizes, grid, Inductor's counts.

Every distinct text is read once, leniently: what cannot be read says nothing.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

DIMENSIONS = ("z", "y", "x", "r0", "r1")  # slowest first, the order of the launch's scalars
MOST_BLOCKS = 6  # of kernel_kwargs that are compared with the end of Concrete Inputs
_MOST = 2**31 - 1

_BLOCKS = {
    "ZBLOCK": "z",
    "YBLOCK": "y",
    "XBLOCK": "x",
    "RBLOCK": "r0",
    "R0_BLOCK": "r0",
    "R1_BLOCK": "r1",
}
_PAIR = re.compile(r"\s*(\w{1,64})\s*=\s*(\d{1,9})\s*", re.ASCII)
# 2.4 prints `grid((768, 512))`; a bare tuple is that of a template or of a kernel made by hand.
_SIZES = re.compile(r"grid\(+\s*(\d+(?:\s*,\s*\d+)*)\s*,?\s*\)+", re.ASCII)
_GPU_GRID = re.compile(r"\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]", re.ASCII)
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Blocks:
    """kernel_kwargs: sizes of blocks by dimension, as in DIMENSIONS, 0 where there is none.

    values: all block sizes in the order in which they stand. split: RSPLIT of a cooperative
    reduction, 1 elsewhere.
    """

    by_dimension: tuple[int, ...] = (0,) * len(DIMENSIONS)
    values: tuple[int, ...] = ()
    split: int = 1


@functools.lru_cache(4096)
def read_blocks(text: str) -> Blocks:
    """Read `XBLOCK=64,YBLOCK=64,waves_per_eu=2`; entries that are no numbers are passed over."""
    sizes = dict.fromkeys(DIMENSIONS, 0)
    values = []
    split = 1
    for entry in text[:_LONGEST].split(","):
        pair = _PAIR.fullmatch(entry)
        if pair is None:
            continue
        key, size = pair[1], int(pair[2])
        if key == "RSPLIT":
            split = max(size, 1)
        elif key in _BLOCKS and size > 0:
            sizes[_BLOCKS[key]] = size
            values.append(size)
    if len(values) > MOST_BLOCKS:
        values = []
    return Blocks(tuple(sizes.values()), tuple(values), split)


@functools.lru_cache(4096)
def read_sizes(text: str) -> tuple[int, ...]:
    """Read the launcher's grid up to 2.6, `grid(768, 512)`: the sizes that are kept, slowest first.

    () for any other text: `split_scan_grid(x, r)`, a bare tuple of blocks.
    """
    match = _SIZES.fullmatch(text.strip()[:_LONGEST])
    if match is None:
        return ()
    parts = [part.strip() for part in match[1].split(",")]
    if len(parts) > 3 or any(len(part) > 18 for part in parts):
        return ()
    return tuple(int(part) for part in parts)


@functools.lru_cache(4096)
def read_grid(text: str) -> tuple[int, ...]:
    """Read the grid of a kernel on the GPU, `[38,128,1]`; () if it is none."""
    match = _GPU_GRID.fullmatch(text.strip()[:_LONGEST])
    if match is None or any(len(part) > 10 for part in match.groups()):
        return ()
    grid = tuple(int(part) for part in match.groups())
    return grid if 0 < min(grid) and max(grid) <= _MOST else ()


@functools.lru_cache(4096)
def read_amount(text: str, power: int = 0) -> int | None:
    """Read a positive amount, times a power of ten, as a whole number; None if it is none.

    `0.125829120` of kernel_num_gb, with power 9, is 125,829,120.
    """
    if len(text) > 40 or "_" in text:
        return None
    try:
        amount = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not amount.is_finite() or amount <= 0 or amount.adjusted() + power > 17:
        return None
    return round(amount.scaleb(power)) or None


@functools.lru_cache(4096)
def read_count(text: str) -> int | None:
    """Read a small whole number, such as num_warps; None if it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
