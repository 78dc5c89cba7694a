"""What a page is made of, whatever it is written as: facts, tables, charts, in sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tracehouse.pages.words import cell, duration, percentage

_SUFFIXES = ("_ns", "_pct", "_bytes", "_flops", "_mib")
_SPELLED = {
    **{"gpu": "GPU", "cpu": "CPU", "id": "id", "r": "requests", "why": "why", "mad": "MAD"},
    **{"tflops": "TFLOPS", "flops": "FLOPs", "gflops": "GFLOP", "tb": "TB", "aten": "ATen"},
}
_UNITS = {"pct": "%", "-": ""}


@dataclass(frozen=True, slots=True)
class Column:
    """One column in words: its name in the data, unit (`-` for none), and what it means."""

    name: str
    unit: str
    meaning: str

    @property
    def words(self) -> str:
        """Its head without the unit, e.g. `mean time` of mean_time_ns."""
        name = self.name
        if self.unit != "-":
            if _letters(name) in (_letters(self.unit), _letters(self.unit.replace("/", "per"))):
                return self.unit  # tflops_s in TFLOPS/s, flops_per_byte in flops/byte
            for suffix in _SUFFIXES:
                name = name.removesuffix(suffix)
        return " ".join(_SPELLED.get(word, word) for word in name.split("_"))

    @property
    def unit_words(self) -> str:
        """Its unit as a head shows it: `%` of pct, empty if it has none or is named by it."""
        return "" if self.words == self.unit else _UNITS.get(self.unit, self.unit)

    @property
    def head(self) -> str:
        """Its head with the unit, e.g. `mean time [ns]`."""
        return f"{self.words} [{self.unit_words}]" if self.unit_words else self.words


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page.

    name: a word, unique on the page. columns: those of `rows`, in order. details: for the first
    rows what a click on each shows, as blocks.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: pa.Table
    note: str = ""
    details: tuple[tuple[Block, ...], ...] = ()

    def __post_init__(self) -> None:
        """Hold the columns to the data."""
        names = [column.name for column in self.columns]
        assert names == self.rows.column_names, (self.name, names, self.rows.column_names)


@dataclass(frozen=True, slots=True)
class Block:
    """A titled piece of text: lines, and rows of finished texts under a head, if any."""

    title: str
    lines: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart over tables of the page; `kind` and `options` are those of assets/charts.js.

    options: names of tables of the page and of their columns, as JSON can say it. alt: what it
    shows, in a sentence, for those who cannot see it.
    """

    kind: str
    title: str
    alt: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """One number or word of the headline. exact: it in full, shown on hover; tone: ok or bad."""

    name: str
    value: str
    exact: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under one heading. parts: charts and tables, in order.

    Tables in `data` are for charts only: a page has them, but shows no rows.
    """

    name: str
    title: str
    note: str = ""
    parts: Sequence[Chart | Table] = ()
    data: Sequence[Table] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page. summary: what Markdown shows of the tables, each with so many first rows."""

    title: str
    subtitle: str
    facts: Sequence[Fact]
    warnings: Sequence[str]
    sections: Sequence[Section]
    footer: str
    summary: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def tables(self) -> list[Table]:
        """The tables that it shows, in order."""
        return [part for s in self.sections for part in s.parts if isinstance(part, Table)]


def shown(value: Any, unit: str) -> str:
    """Return a value of `unit` rounded for people, e.g. `262.538 ms`; NULL is empty."""
    if value is None:
        return ""
    if unit == "ns":
        return duration(value)
    if unit == "pct":
        return percentage(value)
    if isinstance(value, list):
        return ", ".join(cell(v) for v in value)
    return cell(value)


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
