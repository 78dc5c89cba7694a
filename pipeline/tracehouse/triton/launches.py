"""The work of compiled kernels by what their launches say themselves ("V2")."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracehouse.triton import elements, traffic
from tracehouse.triton.elements import ABSENT, FACTS, Family, Sizes, find_sizes, product_of
from tracehouse.triton.kernel_work import (
    BASES,
    SIZES_FROM,
    SOURCES,
    Basis,
    Ops,
    SizesFrom,
    Source,
    Unit,
    Why,
    Work,
    unknown_work,
)
from tracehouse.triton.launch_facts import (
    MOST_BLOCKS,
    Blocks,
    read_amount,
    read_blocks,
    read_grid,
    read_sizes,
)
from tracehouse.triton.names import parse_name, segment
from tracehouse.triton.operands import Operands
from tracehouse.triton.traffic import InPlace, Moved, move_bytes
from tracehouse.triton.vocabulary import flops_per_element

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Mask = NDArray[np.bool_]

USER = "user"
_FAMILIES = {
    "poi": Family.POINTWISE,
    "red": Family.REDUCTION,
    "per": Family.REDUCTION,
    "spl": Family.SCAN,
    "unk": Family.UNKNOWN,
}
_NO_FLOPS = {
    "tem": Why.TEMPLATE,
    "for": Why.FOREACH,
    "spl": Why.SCAN,
    USER: Why.USER,
}
_NO_SIZES = {
    Sizes.NO_INPUTS: Why.NO_INPUTS,
    Sizes.TOO_FEW: Why.TOO_FEW,
    Sizes.NEGATIVE: Why.NEGATIVE,
    Sizes.TOO_LARGE: Why.TOO_LARGE,
    Sizes.NO_RULE: Why.UNKNOWN,
}
_WITH_FLOPS = frozenset({Family.POINTWISE, Family.REDUCTION, Family.UNNAMED, Family.UNKNOWN})
_NO_BYTES = {Moved.NO_TENSORS: Why.NO_TENSORS, Moved.NO_TYPE: Why.NO_TYPE}
_CREATORS = ("zeros", "ones", "full", "empty", "arange", "rand", "new_zeros", "new_ones", "iota")
_LARGEST = 2.0**62


@dataclass(frozen=True, slots=True)
class Named:
    """What a name tells: kind as in the table, ops, FLOPs per element; ops is None without any."""

    kind: str
    family: Family
    is_named: bool
    ops: tuple[str, ...] | None
    unknown: tuple[str, ...]
    seed: int
    refined: int
    is_partial: bool
    is_creator: bool


@functools.lru_cache(16_384)
def read_name(name: str) -> Named:
    """Read the name of a kernel; one that torch.compile did not give is that of a user's kernel."""
    parsed = parse_name(name)
    if parsed is None:
        return Named(USER, Family.NONE, True, None, (), 0, 0, True, False)
    if not parsed.is_unique:
        return Named(parsed.kind, Family.UNNAMED, False, None, (), 0, 0, True, False)
    cut = segment(parsed.fused)
    weights = flops_per_element(cut.ops, cut.unknown)
    return Named(
        parsed.kind,
        _FAMILIES.get(parsed.kind, Family.NONE),
        True,
        cut.ops,
        cut.unknown,
        weights.seed,
        weights.refined,
        weights.is_partial or not cut.ops,
        any(op.startswith(_CREATORS) for op in cut.ops),
    )


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts of n launches: code of each, -1 for none, and the distinct texts."""

    codes: NDArray[np.int32]
    values: Sequence[str]

    def table(self, of: Callable[[str], Sequence[int]], absent: Sequence[int]) -> Ints:
        """Return what each launch's text says (n, k); `of` is asked once a text that occurs."""
        width = len(absent)
        table = np.zeros((len(self.values) + 1, width), dtype=np.int64)
        table[-1] = absent
        for code in np.unique(self.codes[self.codes >= 0]).tolist():
            table[code] = of(self.values[code])
        return table[self.codes]

    def real(self, of: Callable[[str], float | None]) -> Reals:
        """Return what each launch's text says (n,), NaN for nothing."""
        table = np.full(len(self.values) + 1, np.nan)
        for code in np.unique(self.codes[self.codes >= 0]).tolist():
            value = of(self.values[code])
            table[code] = np.nan if value is None else value
        return table[self.codes]


def evaluate(
    name: Texts,
    texts: Mapping[str, Texts],
    row: Ints,
    operands: Operands,
    unusable: Mask,
    ops: Ops,
) -> Work:
    """Return the work of n launches.

    Args:
        name: of the op calls.
        texts: the columns of COMPILED_CALLS.
        row: row of `signatures` of each, -1 for none.
        operands: of all rows of `signatures`.
        unusable: whether the shapes of each row of `signatures` cannot be.
        ops: gets the lists of ops.
    """
    n = len(row)
    work = unknown_work(n)
    named = _names(name, ops)
    facts = launch_facts(texts, named["family"])
    found = np.empty((n, elements.FOUND), dtype=np.int64)
    find_sizes(facts, row, operands.ints_row, operands.ints, found)
    work.size[:] = found[:, elements.SIZE : elements.SIZE + 5]
    work.x[:], work.r[:] = product_of(work.size, 0, 2), product_of(work.size, 3, 4)
    work.check[:] = found[:, elements.CHECK]
    known = ~np.isnan(work.x)
    assumed = SIZES_FROM.index(SizesFrom.ASSUMED)
    args = SIZES_FROM.index(SizesFrom.ARGS)
    work.sizes[known] = np.where(found[:, elements.ASSUMED] > 0, assumed, args)[known]
    work.ops[:] = named["ops"]

    has_rule = named["flops"] > 0
    work.partial[:] = named["partial"] > 0
    work.flops[:] = np.where(has_rule, named["refined"] * work.elements, np.nan)
    seed_x, seed_r = (_real(found[:, column]) for column in (elements.SEED_X, elements.SEED_R))
    work.seed_flops[:] = np.where(has_rule, named["seed"] * seed_x * seed_r, np.nan)

    is_pointwise = (work.size[:, 3] == ABSENT) & (work.size[:, 4] == ABSENT)
    usable = np.where((row >= 0) & unusable[row], -1, row)
    moved = _bytes(work, named, usable, seed_x, is_pointwise, operands)
    work.unit[known & has_rule] = int(Unit.VECTOR)
    _note_why(work, named, found, moved, has_rule, (row >= 0) & (usable < 0))
    _use_inductors_counts(work, texts, named)
    _forget_absurd(work)
    return work


def _names(name: Texts, ops: Ops) -> dict[str, Ints]:
    """Return columns (n,) of what the names tell."""

    def told(word: str) -> list[int]:
        named = read_name(word)
        return [
            int(named.family),
            list(_NO_FLOPS).index(named.kind) if named.kind in _NO_FLOPS else -1,
            int(named.family in _WITH_FLOPS),
            named.seed,
            named.refined,
            int(named.is_partial),
            int(named.is_creator),
            -1 if named.ops is None else ops.code(named.ops, named.unknown),
        ]

    columns = ("family", "no_flops", "flops", "seed", "refined", "partial", "creator", "ops")
    table = name.table(told, [int(Family.NONE), -1, 0, 0, 0, 1, 0, -1])
    return dict(zip(columns, table.T, strict=True))


def launch_facts(texts: Mapping[str, Texts], family: Ints) -> Ints:
    """Return what the launches say (n, FACTS), in the columns of `elements`."""
    facts = np.zeros((len(family), FACTS), dtype=np.int64)
    facts[:, elements.KIND] = family

    def blocks(text: str) -> list[int]:
        read: Blocks = read_blocks(text)
        tail = [*read.values, *(0,) * (MOST_BLOCKS - len(read.values))]
        return [read.split, len(read.values), *read.by_dimension, *tail]

    nothing = [1, 0, *(0,) * (5 + MOST_BLOCKS)]
    kwargs = texts["kernel_kwargs"].table(blocks, nothing)
    facts[:, elements.SPLIT] = kwargs[:, 0]
    facts[:, elements.TAILS] = kwargs[:, 1]
    facts[:, elements.BLOCK : elements.BLOCK + 5 + MOST_BLOCKS] = kwargs[:, 2:]
    facts[:, elements.STRIP] = (kwargs[:, 1] > 0) & (texts["kernel_name"].codes < 0)

    def sizes(text: str) -> list[int]:
        read = read_sizes(text)
        return [len(read), *read, *(0,) * (3 - len(read))]

    stated = texts["grid"].table(sizes, (0, 0, 0, 0))
    facts[:, elements.KEPTS] = stated[:, 0]
    facts[:, elements.KEPT : elements.KEPT + 3] = stated[:, 1:]
    grids = texts["gpu_grid"].table(lambda text: read_grid(text) or (0, 0, 0), (0, 0, 0))
    facts[:, elements.GPU : elements.GPU + 3] = grids
    return facts


def _bytes(
    work: Work,
    named: Mapping[str, Ints],
    row: Ints,
    seed_x: Reals,
    is_pointwise: Mask,
    operands: Operands,
) -> Ints:
    """Fill in the bytes; return the Moved of each launch."""
    n = len(row)
    amount = np.empty((n, traffic.AMOUNTS))
    found = np.empty((n, traffic.FOUND), dtype=np.int64)
    has_rule = named["flops"] > 0
    may_be_pointwise = np.isin(named["family"], (Family.POINTWISE, Family.UNNAMED))
    move_bytes(
        operands.inputs,
        operands.width,
        operands.dtype,
        row,
        np.where(has_rule, work.elements, np.nan),
        np.where(has_rule, seed_x, np.nan),
        is_pointwise & may_be_pointwise,
        may_be_pointwise,
        named["creator"] > 0,
        amount,
        found,
    )
    work.dtype[:] = found[:, traffic.DTYPE]
    capped, write = amount[:, traffic.CAPPED], amount[:, traffic.WRITE]
    undecided = found[:, traffic.IN_PLACE] == InPlace.UNDECIDED
    known = ~np.isnan(capped)
    work.least[:] = capped
    work.bytes[:] = capped + write
    work.seed_bytes[:] = amount[:, traffic.SEED]
    compat, trace_capped = BASES.index(Basis.COMPAT), BASES.index(Basis.TRACE_CAPPED)
    work.basis[known] = np.where(undecided, compat, trace_capped)[known]
    pointwise_known = known & is_pointwise
    work.in_place[pointwise_known] = found[pointwise_known, traffic.IN_PLACE]
    work.source[known] = SOURCES.index(Source.ARGS)
    return found[:, traffic.WHY]


def _note_why(
    work: Work,
    named: Mapping[str, Ints],
    found: Ints,
    moved: Ints,
    has_rule: Mask,
    is_unusable: Mask,
) -> None:
    kinds = list(_NO_FLOPS)
    for place, kind in enumerate(kinds):
        work.explain(~has_rule & (named["no_flops"] == place), _NO_FLOPS[kind].value)
    for code, text in _NO_BYTES.items():
        work.explain(has_rule & (moved == code), text.value)
    work.explain(has_rule & is_unusable, Why.NO_SHAPE.value)
    for reason, text in _NO_SIZES.items():
        work.explain(has_rule & (found[:, elements.WHY] == reason), text.value)


def _use_inductors_counts(
    work: Work, texts: Mapping[str, Texts], named: Mapping[str, Ints]
) -> None:
    """Take what Inductor counted itself, where it did: kernel_num_gb, and kernel_flop above 0."""
    flop = texts["kernel_flop"].real(read_amount)
    has_flop = ~np.isnan(flop)
    work.flops[has_flop] = flop[has_flop]
    work.partial[has_flop] = False
    work.unit[has_flop & (named["flops"] == 0)] = int(Unit.MATRIX)  # of a template's product
    work.source[has_flop & (work.source < 0)] = SOURCES.index(Source.ARGS)
    gb = texts["kernel_num_gb"].real(functools.partial(read_amount, power=9))
    has_gb = ~np.isnan(gb)
    work.bytes[has_gb] = work.least[has_gb] = gb[has_gb]
    work.basis[has_gb] = BASES.index(Basis.NUM_GB)
    work.source[has_gb] = SOURCES.index(Source.NUM_GB)


def _forget_absurd(work: Work) -> None:
    for amount in (work.flops, work.bytes, work.least, work.seed_flops, work.seed_bytes):
        with np.errstate(invalid="ignore"):
            absurd = ~np.isnan(amount) & ~((amount >= 0) & (amount < _LARGEST))
        amount[absurd] = np.nan
        if amount is work.flops or amount is work.bytes:
            work.explain(absurd, Why.TOO_LARGE.value)


def _real(counts: Ints) -> Reals:
    return np.where(counts == ABSENT, np.nan, counts.astype(np.float64))
