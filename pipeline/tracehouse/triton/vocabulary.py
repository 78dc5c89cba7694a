"""The op names that fused kernels' names are made of, and the FLOPs of each per element.

data/triton/known_ops.csv: the packet names registered in PyTorch 2.13 (aten, prims, collectives,
higher-order and others) and those of common custom ops. data/triton/flops_per_element.csv: `seed`,
the weights of the published model (empty: the op is not in it, which means 0), and `refined`, the
longer table beside it.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from tracehouse import resources

CUSTOM_NAMESPACES = frozenset(
    {"vllm", "_C", "_moe_C", "_C_cache_ops", "aiter", "sgl_kernel", "flash_attn", "trtllm"}
)
HIGHER_ORDER = "higher_order"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Known op names with their namespaces; `longest`: tokens of the longest name."""

    namespaces: dict[str, str]
    longest: int

    def __contains__(self, name: object) -> bool:
        return name in self.namespaces

    def is_opaque(self, name: str) -> bool:
        """Whether the work of `name` is its own affair: not known, custom or of higher order."""
        namespace = self.namespaces.get(name)
        return namespace is None or namespace == HIGHER_ORDER or namespace in CUSTOM_NAMESPACES


@dataclass(frozen=True, slots=True)
class Weights:
    """FLOPs per element of a list of ops.

    seed: by the published table. refined: by the longer one. is_partial: an op does work that no
    table can know, a custom one for instance; both sums are then lower bounds. unweighted: the ops
    that the longer table has no weight for.
    """

    seed: int
    refined: int
    is_partial: bool
    unweighted: tuple[str, ...]


@functools.cache
def vocabulary() -> Vocabulary:
    """Return the known op names of data/triton/known_ops.csv."""
    lines = resources.data_text("triton/known_ops.csv").splitlines()[1:]
    namespaces = dict(line.split(",", 1) for line in lines)
    return Vocabulary(namespaces, max(name.count("_") for name in namespaces) + 1)


@functools.cache
def _weights() -> dict[str, tuple[int, int]]:
    rows = csv.DictReader(resources.data_text("triton/flops_per_element.csv").splitlines())
    return {row["op"]: (int(row["seed"] or 0), int(row["refined"])) for row in rows}


def flops_per_element(ops: Iterable[str], unknown: Iterable[str] = ()) -> Weights:
    """Add up the FLOPs that each element of a kernel takes.

    An in-place op has the weight of its base: `add_` that of `add`.

    Args:
        ops: the fused ops, one entry an occurrence.
        unknown: what else the kernel's name holds; its work is not known.
    """
    table = _weights()
    known = vocabulary()
    seed = refined = 0
    opaque = any(True for _ in unknown)
    unweighted = []
    for op in ops:
        found = table.get(op) or table.get(op.removesuffix("_"))
        if found is None:
            unweighted.append(op)
            opaque = opaque or known.is_opaque(op)
        else:
            seed += found[0]
            refined += found[1]
    return Weights(seed, refined, opaque, tuple(unweighted))
