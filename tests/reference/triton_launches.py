"""Sizes and bytes of compiled kernels' launches in plain Python, reading by reading."""

from __future__ import annotations

import math
from itertools import product


def parsed_blocks(kwargs):
    pairs = [entry.split("=") for entry in kwargs.split(",") if entry]
    return {key: int(value) for key, value in pairs if key.endswith("BLOCK")}


def grid_speaks(sizes, blocks, host_grid, grid):
    """None where there is nothing to compare with, else whether it agrees; sizes by dimension."""
    kept = [sizes[d] for d in "zyx" if d in sizes]
    if host_grid:
        return list(host_grid) == kept
    if grid is None or "XBLOCK" not in blocks:
        return None
    needed = math.prod(
        math.ceil(sizes[d] / blocks.get(f"{d.upper()}BLOCK", 1)) for d in "zy" if d in sizes
    )
    others = grid[1] * grid[2]
    enough = others == needed or (grid[2] > 1 and others >= needed)
    return grid[0] == math.ceil(sizes["x"] / blocks["XBLOCK"]) and enough


def sizes_of(kind, ints, kwargs, has_name, host_grid, grid):
    """The sizes by dimension, and whether the grid agrees; None where they are not known."""
    blocks = parsed_blocks(kwargs)
    if blocks:
        kept = "zyx" if {"YBLOCK", "ZBLOCK"} <= set(blocks) else "yx"
        if not {"YBLOCK", "ZBLOCK"} & set(blocks):
            kept = "x"
    else:
        kept = "zyx"[-(len(host_grid) or 1) :]
    if "R1_BLOCK" in blocks:
        reduced = [2]
    elif "R0_BLOCK" in blocks:
        reduced = [1]
    else:
        reduced = [1, 2]
    if kind == "poi":
        reduced = [0]
    values = list(blocks.values())
    readings = []
    for count, is_stripped in product(reduced, (True, False)):
        left = list(ints)
        if is_stripped:
            if not values or has_name or left[-len(values) :] != values:
                continue
            left = left[: -len(values)]
        names = [*kept, *["r0", "r1"][:count]]
        if len(left) >= len(names):
            readings.append(dict(zip(names, left[-len(names) :], strict=True)))
    spoken = [grid_speaks(reading, blocks, host_grid, grid) for reading in readings]
    if not readings:
        return None, None
    best = 0 if spoken[0] is not False or True not in spoken else spoken.index(True)
    if min(readings[best].values()) < 0:
        return None, None
    return readings[best], spoken[best]


def bytes_of(tensors, elements, is_pointwise, is_creator):
    """Bytes, the least they can be, and how it stands with writing in place.

    tensors: pairs of elements and bytes of one.
    """
    touched = [min(n, elements) * width for n, width in tensors]
    least = sum(touched)
    if not is_pointwise or not tensors or tensors[0][0] != elements:
        return least, least, "no"
    if any(n == elements for n, _ in tensors[1:]):
        return least + tensors[0][1] * elements, least, "unknown"
    if len(tensors) == 1 and is_creator:
        return least, least, "written_only"
    return least + touched[0], least + touched[0], "yes"
