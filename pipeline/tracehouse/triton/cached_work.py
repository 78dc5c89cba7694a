"""The work of compiled kernels by their files in the Inductor cache ("V1")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tracehouse.formulas.dtypes import CATEGORY, FLOATING, NONE
from tracehouse.triton.cache_bytes import role_bytes, seed_bytes
from tracehouse.triton.cache_source import DIMENSIONS, Missing
from tracehouse.triton.elements import ABSENT
from tracehouse.triton.inductor_cache import CachedKernel
from tracehouse.triton.kernel_work import (
    BASES,
    IN_PLACE,
    SIZES_FROM,
    SOURCES,
    Basis,
    Ops,
    SizesFrom,
    Source,
    Unit,
    Work,
)
from tracehouse.triton.operands import known_dtype
from tracehouse.triton.pointers import Role
from tracehouse.triton.vocabulary import flops_per_element

_MODELLED = ("poi", "red", "per")
_LARGEST = 2**62
# Ops of the graph whose result has fewer elements than they go through.
_REDUCING = frozenset(
    """
    sum mean prod amax amin max min argmax argmin any all var var_mean std std_mean nansum
    linalg_vector_norm norm logsumexp xor_sum
    """.split()
)


class Tensor(NamedTuple):
    """A tensor of a launch: its elements, and the bytes of one."""

    elements: int
    bytes: float


def take_cached(work: Work, at: int, kernel: CachedKernel, ops: Ops) -> None:
    """Fill in the work of launch `at` from its cached kernel, as far as that tells it."""
    if kernel.kind not in (*_MODELLED, "spl"):
        return
    x, r = kernel.xnumel, kernel.rnumel
    fused = kernel.ops
    if fused is None and work.ops[at] >= 0:
        fused = ops.known[work.ops[at]]
    elif fused is not None:
        work.ops[at] = ops.code(fused)
    bad = next((why for why in kernel.why if why != Missing.NO_SIGNATURE), None)
    if x is None or r is None or x * r >= _LARGEST:
        work.explain(np.array([at]), bad or Missing.NO_SIZES)
        return
    for place, dimension in enumerate(DIMENSIONS):
        size = kernel.source.sizes.get(dimension)
        work.size[at, place] = ABSENT if size is None else size
    work.x[at], work.r[at] = x, r
    basis = SizesFrom.CACHE if kernel.is_exact else SizesFrom.HINTS
    work.sizes[at] = SIZES_FROM.index(basis)
    work.source[at] = SOURCES.index(Source.CACHE)
    if kernel.kind not in _MODELLED:
        return
    work.why[at] = -1
    _take_flops(work, at, kernel, fused, x * r)
    seed = seed_bytes(kernel)
    by_role = role_bytes(kernel)
    work.seed_bytes[at] = np.nan if seed.value is None else seed.value
    best = seed if by_role.value is None else by_role
    if best.value is None:
        work.explain(np.array([at]), best.why or Missing.NO_SIGNATURE)
    else:
        work.bytes[at] = work.least[at] = best.value
        named = Basis.COMPAT if by_role.value is None else Basis.CACHE_ROLES
        work.basis[at] = BASES.index(named)
    if kernel.kind == "poi":
        work.in_place[at] = IN_PLACE.index("yes" if _writes_in_place(kernel) else "no")
    work.dtype[at] = _dtype(kernel)
    work.unit[at] = int(Unit.VECTOR)


def _take_flops(
    work: Work, at: int, kernel: CachedKernel, fused: Sequence[str] | None, elements: int
) -> None:
    weights = flops_per_element(fused or ())
    work.seed_flops[at] = weights.seed * elements
    work.flops[at] = weights.refined * elements
    work.partial[at] = weights.is_partial or not fused
    if kernel.nodes:  # every occurrence, each over the elements of its own
        work.flops[at] = sum(
            flops_per_element((node.op,)).refined
            * (
                elements
                if node.elements is None or node.op in _REDUCING
                else min(node.elements, elements)
            )
            for node in kernel.nodes
        )


def take_roles(work: Work, at: int, kernel: CachedKernel, tensors: Iterable[Tensor]) -> None:
    """Settle what launch `at` writes in place by the pointers of its cached kernel.

    Its own shapes and sizes stay. Nothing changes if the pointers are not just its tensors.
    """
    tensors, pointers = list(tensors), kernel.pointers or ()
    if [t.bytes for t in tensors] != [p.bytes for p in pointers]:
        return
    if any(p.role is Role.UNKNOWN for p in pointers):
        return
    total = 0.0
    for tensor, pointer in zip(tensors, pointers, strict=True):
        moved = min(tensor.elements, work.elements[at]) * tensor.bytes
        if pointer.role is not Role.WORKSPACE:
            total += moved * (2 if pointer.role is Role.IN_OUT else 1)
    work.bytes[at] = work.least[at] = total
    work.basis[at] = BASES.index(Basis.CACHE_ROLES)
    work.in_place[at] = IN_PLACE.index("yes" if _writes_in_place(kernel) else "no")


def take_ops(work: Work, at: int, kernel: CachedKernel, ops: Ops) -> None:
    """Give launch `at`, whose name tells no ops, those of its cached kernel."""
    if kernel.ops is None or kernel.kind not in _MODELLED or np.isnan(work.elements[at]):
        return
    weights = flops_per_element(kernel.ops)
    work.ops[at] = ops.code(kernel.ops)
    work.flops[at] = weights.refined * work.elements[at]
    work.partial[at] = weights.is_partial or not kernel.ops


def _writes_in_place(kernel: CachedKernel) -> bool:
    return any(p.role is Role.IN_OUT for p in kernel.pointers or ())


def _dtype(kernel: CachedKernel) -> int:
    """Return the type of the first pointer of known width, of the widest floats if that is none."""
    known = [(p.bytes, known_dtype(p.type)) for p in kernel.pointers or () if p.bytes is not None]
    floats = [(width, code) for width, code in known if CATEGORY[code] >= FLOATING]
    if not known:
        return NONE
    if CATEGORY[known[0][1]] >= FLOATING or not floats:
        return known[0][1]
    return max(floats, key=lambda pair: pair[0])[1]
