"""The SQL views: their headers, parsed once for all who evaluate, store or describe them.

A file of sql/ holds one view under a header:

    -- Summary.
    --
    -- grain:   one row per (key, …)
    -- reads:   tables and views
    -- columns:
    --   name  TYPE  unit  meaning
    -- notes:
    --   text
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import duckdb

from tracehouse.errors import TracehouseError
from tracehouse.resources import sql_texts

_GRAIN = re.compile(r"one row per \((?P<key>[^)]+)\)")
_SECTION = re.compile(r"(?P<name>grain|reads|columns|notes):\s*(?P<rest>.*)")
_LONG_TYPES = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}  # a header's type is one word


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """One column as DuckDB has it: name, type, unit (`-` for none), meaning."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class View:
    """One SQL view, as its file states it."""

    name: str
    summary: str
    grain: tuple[str, ...]
    reads: tuple[str, ...]
    columns: tuple[ViewColumn, ...]
    notes: str
    query: str

    @property
    def is_private(self) -> bool:
        """Whether only other views read it (its name begins with `_`)."""
        return self.name.startswith("_")

    @property
    def order_by(self) -> str:
        """The order its rows are stored in: by trace, if ranked longest time first, by key."""
        first, *others = (f"{_quoted(key)} NULLS LAST" for key in self.grain)
        ranked = (c.name for c in self.columns if c.name.endswith("time_ns"))
        if any(c.name == "cumulative_pct" for c in self.columns):
            return ", ".join([first, f"{_quoted(next(ranked))} DESC NULLS LAST", *others])
        return ", ".join([first, *others])


@cache
def load_views(folder: str) -> tuple[View, ...]:
    """Parse every view of a folder of sql/, each after the views that it reads.

    Raises:
        TracehouseError: BAD_VIEW if a header is malformed or views read each other in a circle;
            RESOURCE_MISSING if there is no such folder.
    """
    return in_reading_order(parse_view(name, text) for name, text in sql_texts(folder).items())


def parse_view(name: str, text: str, *, is_query: bool = False) -> View:
    """Parse one SQL file named `name`; with `is_query`, one that holds a bare SELECT.

    Raises:
        TracehouseError: BAD_VIEW if the header lacks a section, a column line lacks a field, or
            what follows is not one CREATE OR REPLACE VIEW of that name, or one SELECT.
    """
    lines = text.splitlines()
    header = [line[2:].removeprefix(" ") for line in _leading_comment(lines)]
    sections = _sections(header)
    grain = _GRAIN.fullmatch(" ".join(sections["grain"]))
    if grain is None or not sections["summary"] or not sections["columns"]:
        raise _malformed(name, "needs a summary, `grain: one row per (…)` and `columns:`")
    statement = "\n".join(lines[len(header) :]).strip()
    start = "" if is_query else f"CREATE OR REPLACE VIEW {name} AS\n"
    if not statement.startswith(start) or statement.find(";") != len(statement) - 1:
        raise _malformed(name, f"needs one statement, `{start.strip() or 'SELECT'} …;`")
    return View(
        name=name,
        summary=" ".join(sections["summary"]),
        grain=_words(grain["key"]),
        reads=_words(" ".join(sections["reads"])),
        columns=tuple(_column(name, line) for line in sections["columns"]),
        notes=" ".join(sections["notes"]),
        query=statement.removeprefix(start).removesuffix(";"),
    )


def in_reading_order(views: Iterable[View]) -> tuple[View, ...]:
    """Order views so that each follows those it reads; otherwise by name.

    Raises:
        TracehouseError: BAD_VIEW if views read each other in a circle.
    """
    waiting = {view.name: view for view in sorted(views, key=lambda v: v.name)}
    ordered: list[View] = []
    while waiting:
        ready = [view for view in waiting.values() if not waiting.keys() & set(view.reads)]
        if not ready:
            raise _malformed(", ".join(waiting), "read each other in a circle")
        ordered += ready
        for view in ready:
            del waiting[view.name]
    return tuple(ordered)


def evaluate_views(connection: duckdb.DuckDBPyConnection, views: Iterable[View]) -> None:
    """Put the rows of `views`, given in reading order, into temporary tables of their names.

    What they read must exist. Each is evaluated once, whatever reads it: to plan a stack of views
    anew for each of its readers costs more. For views that one process evaluates again and again
    there is `warehouse.evaluation`.
    """
    for view in views:
        connection.execute(f"CREATE TEMP TABLE {view.name} AS {view.query}")


def comment(meaning: str, unit: str) -> str:
    """Word the COMMENT of a column: its meaning, and the unit in brackets if it has one."""
    return meaning if unit == "-" else f"{meaning} [{unit}]"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _leading_comment(lines: list[str]) -> list[str]:
    for i, line in enumerate(lines):
        if not line.startswith("--"):
            return lines[:i]
    return lines


def _sections(header: list[str]) -> dict[str, list[str]]:
    names = ("summary", "grain", "reads", "columns", "notes")
    sections: dict[str, list[str]] = {name: [] for name in names}
    current = "summary"
    for line in header:
        started = _SECTION.match(line)
        if started:
            current, line = started["name"], started["rest"]
        if line.strip():
            sections[current].append(line.strip())
    return sections


def _column(view: str, line: str) -> ViewColumn:
    fields = line.split(maxsplit=3)
    if len(fields) < 4:
        raise _malformed(view, f"column line without name, type, unit and meaning: {line!r}")
    field, type_, unit, meaning = fields
    return ViewColumn(field, _LONG_TYPES.get(type_, type_), unit, meaning)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _malformed(name: str, what: str) -> TracehouseError:
    return TracehouseError(
        f"SQL view {name}: {what}", code="BAD_VIEW", hint="see the header format in CONTRIBUTING.md"
    )
