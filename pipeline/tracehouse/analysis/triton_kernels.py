"""The table `triton_kernels`: the work of compiled kernels, launch by launch.

Each distinct combination of a name, its inputs and what the launcher says is evaluated once: by the
arguments of the launch, then, where they do not tell, by the Inductor cache.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import (
    Ints,
    Words,
    combination,
    places,
    read_integers,
    read_words,
)
from tracehouse.analysis.kernel_cache import NO_CACHE, kernel_cache
from tracehouse.analysis.settings import Settings
from tracehouse.analysis.signatures import rows_of_ids
from tracehouse.analysis.template_work import Templates
from tracehouse.analysis.triton_table import Calls, kernels_table
from tracehouse.findings import Findings
from tracehouse.formulas.arch import Arch
from tracehouse.formulas.inputs import read_inputs, unusable_rows
from tracehouse.schema.tables import LAUNCHER_TEXTS, TRITON_KERNELS
from tracehouse.triton.cache_source import Missing
from tracehouse.triton.cached_work import Tensor, take_cached, take_ops, take_roles
from tracehouse.triton.inductor_cache import CachedKernel, InductorCache, Lookup
from tracehouse.triton.kernel_work import IN_PLACE, Ops, Work
from tracehouse.triton.launches import Texts, evaluate, read_name
from tracehouse.triton.names import parse_name
from tracehouse.triton.operands import is_tensor, read_operands
from tracehouse.triton.pointers import element_bytes

_TEXTS = (*LAUNCHER_TEXTS, "gpu_grid")
_CACHED = ("poi", "red", "per", "spl", "unk")  # kinds whose files tell their work
_UNDECIDED = IN_PLACE.index("unknown")
_ODD_IN_CACHE = frozenset({Missing.BAD_SIGNATURE, Missing.BAD_SIZE_HINTS})


def triton_kernels(
    linked: Mapping[str, pa.Table], arch: Arch | None, settings: Settings, *, findings: Findings
) -> pa.Table:
    """Make the table TRITON_KERNELS of one trace, in the order of its op calls.

    Args:
        linked: what `link` gives.
        arch: the device, None if it is not known.
        settings: the user's choices.
        findings: gets NO_UNIQUE_KERNEL_NAMES and KERNEL_ARGS_ODD.

    Cost: a few steps a call over arrays; parsing, once a distinct combination.
    """
    calls = linked["compiled_calls"]
    if not calls.num_rows:
        return TRITON_KERNELS.schema.empty_table()
    ops, signatures = linked["ops"], linked["signatures"]
    at = places(read_integers(ops, "event_id").values, read_integers(calls, "event_id").values)
    name = read_words(ops, "name").take(at)
    row = rows_of_ids(signatures, read_integers(ops, "signature_id").take(at))
    texts = {column: read_words(calls, column) for column in _TEXTS}
    inputs = Words(row.astype(np.int32), [""] * signatures.num_rows)
    number, first = combination([name, inputs, *texts.values()])
    distinct = _Distinct(
        name.take(first),
        {column: words.take(first) for column, words in texts.items()},
        row[first],
        signatures,
        settings,
    )
    distinct.improve()
    _note(findings, name, read_integers(calls, "event_id").values, number, distinct)
    return kernels_table(Calls(linked, at, number, name, texts), distinct.work, distinct.ops, arch)


class _Distinct:
    """The distinct launches of a trace."""

    def __init__(
        self,
        name: Words,
        texts: Mapping[str, Words],
        row: Ints,
        signatures: pa.Table,
        settings: Settings,
    ) -> None:
        inputs = read_inputs(signatures)
        unusable = np.append(unusable_rows(signatures, inputs), False)
        self.name, self.texts, self.row, self.signatures = name, texts, row, signatures
        self.ops = Ops()
        operands = read_operands(signatures, inputs)
        self.work: Work = evaluate(
            Texts(name.codes, name.values),
            {column: Texts(words.codes, words.values) for column, words in texts.items()},
            row,
            operands,
            unusable,
            self.ops,
        )
        self.odd: dict[int, str] = {}  # launches of which something cannot be read, with its text
        for at in np.flatnonzero(np.isin(row, list(operands.odd))).tolist():
            if parse_name(self._name(at)) is not None:
                self.odd[at] = operands.odd[int(row[at])]
        self._settings = settings
        self._templates = Templates(signatures, settings.rules)

    def _name(self, at: int) -> str:
        return self.name.values[self.name.codes[at]]

    @functools.cached_property
    def _cache(self) -> InductorCache | None:
        return kernel_cache(self._settings.inductor_cache)

    def improve(self) -> None:
        """Ask the formulas and the Inductor cache where the launch does not tell all."""
        work = self.work
        unknown = np.isnan(work.bytes) | np.isnan(work.flops)
        for at in np.flatnonzero(unknown).tolist():
            named = read_name(self._name(at))
            if named.kind == "tem" and np.isnan(work.flops[at]):
                self._templates.take(work, at, named.ops or (), int(self.row[at]))
            elif named.kind in _CACHED and not (named.kind == "spl" and work.x[at] >= 0):
                self._fill_in(at)
        undecided = ~unknown & (work.in_place == _UNDECIDED) & (work.bytes > work.least)
        nameless = ~unknown & (work.ops < 0)
        with_file = (self.texts["kernel_hash"].codes >= 0) | (self.texts["kernel_file"].codes >= 0)
        asking = np.flatnonzero((undecided | nameless) & with_file)
        # A name alone may be another job's: where the launch tells all but this, it must be a hash.
        for at in asking.tolist() if len(asking) and self._cache is not None else []:
            kernel = self._looked_up(at, "").kernel
            if kernel is None:
                continue
            self._note_odd(at, kernel)
            if nameless[at]:
                take_ops(work, at, kernel, self.ops)
            if undecided[at]:
                take_roles(work, at, kernel, self._tensors(int(self.row[at])))

    def _fill_in(self, at: int) -> None:
        """Take the work of a launch from the cache, or say why it is not there either."""
        found = self._looked_up(at, self._name(at))
        if found.kernel is not None:
            self._note_odd(at, found.kernel)
            take_cached(self.work, at, found.kernel, self.ops)
            return
        work = self.work
        before = f"{work.words[work.why[at]]}; " if work.why[at] >= 0 else ""
        work.explain(np.array([at]), f"{before}{found.why or NO_CACHE}")

    def _looked_up(self, at: int, name: str) -> Lookup:
        if self._cache is None:
            return Lookup(None, None)
        return self._cache.lookup(
            self._text("kernel_hash", at), self._text("kernel_file", at), name
        )

    def _note_odd(self, at: int, kernel: CachedKernel) -> None:
        for why in kernel.why:
            if why in _ODD_IN_CACHE:
                self.odd[at] = f"{why.value}: {kernel.file}"

    def _text(self, column: str, at: int) -> str | None:
        code = self.texts[column].codes[at]
        return self.texts[column].values[code] if code >= 0 else None

    def _tensors(self, row: int) -> list[Tensor]:
        dims = self.signatures["input_dims"][row].as_py() or []
        types = self.signatures["input_types"][row].as_py() or []
        return [
            Tensor(int(np.prod(shape or [], dtype=np.float64)), element_bytes(type_) or np.nan)
            for shape, type_ in zip(dims, types, strict=False)
            if is_tensor(type_)
        ]


def _note(findings: Findings, name: Words, events: Ints, number: Ints, distinct: _Distinct) -> None:
    nameless = np.array([*(not read_name(n).is_named for n in name.values), False])[name.codes]
    for event in events[np.flatnonzero(nameless)[:1]].tolist():
        first = name.values[name.codes[np.flatnonzero(nameless)[0]]]
        findings.add("NO_UNIQUE_KERNEL_NAMES", int(nameless.sum()), event, first)
    for at, text in distinct.odd.items():
        rows = np.flatnonzero(number == at)
        findings.add("KERNEL_ARGS_ODD", len(rows), int(events[rows[0]]), text)
