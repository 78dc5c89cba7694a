"""Rendering Arrow tables on stdout: as a table for people, as CSV, as JSON.

Trace content is untrusted: in a table, control characters are shown by their escapes and never
reach the terminal.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import math
import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("table", "csv", "json")

_NS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def emit(table: pa.Table, fmt: str) -> None:
    """Write `table` on stdout in one of FORMATS.

    table: a ruled table on a terminal, aligned text otherwise; NULL is empty, thousands separated.
    csv: a header line, NULL empty, numbers as they are, lists as JSON.
    json: an array, one object a line; NULL, NaN and the infinities are null.
    """
    columns = [column.to_pylist() for column in table.columns]
    rows = list(zip(*columns, strict=True)) if columns else []
    if fmt == "csv":
        _emit_csv(table.column_names, rows)
    elif fmt == "json":
        _emit_json(table.column_names, rows)
    else:
        numeric = [_is_number(field.type) for field in table.schema]
        emit_rows(table.column_names, [[cell(v) for v in row] for row in rows], numeric)


def emit_rows(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str = ""
) -> None:
    """Write rows of finished texts on stdout, the columns marked `right` aligned to the right."""
    if sys.stdout.isatty():
        _emit_rich(names, rows, right, indent)
    else:
        _emit_plain(names, rows, right, indent)


def cell(value: Any) -> str:
    """Return `value` as a table shows it: NULL empty, thousands separated, three decimals."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, decimal.Decimal | datetime.datetime | datetime.date):
        return str(value)
    return printable(_as_json(value))


def duration(ns: int | float | None) -> str:
    """Return a time of `ns` nanoseconds in a fitting unit, e.g. `262.538 ms`; NULL is empty."""
    if ns is None:
        return ""
    for size, unit in _NS:
        if abs(ns) >= size:
            return f"{ns / size:,.3f} {unit}"
    return f"{ns:,.0f} ns"


def percentage(pct: float | None) -> str:
    """Return a percentage with two decimals, e.g. `97.71 %`; NULL is empty."""
    return "" if pct is None else f"{pct:.2f} %"


def check_words(name: str, value: float, expected: str, meaning: str) -> str:
    """Return a failing check as a line, e.g. `unlinked_pct is 29.8, expected at most 5: …`."""
    shown = f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
    return f"{name} is {shown}, expected {expected}: {printable(meaning)}"


def beside(path: str) -> str:
    """Return `path` relative to the working directory if it lies below it, else as it is."""
    return path.removeprefix(f"{Path.cwd()}{os.sep}")


def printable(text: str, *, lines: bool = False) -> str:
    """Return `text` safe to show on a terminal.

    Control, format and surrogate characters become escapes; `lines` keeps line breaks and tabs,
    for messages of several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        c if c in kept or unicodedata.category(c) not in _UNPRINTABLE else _escape(c) for c in text
    )


_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _is_number(type_: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _emit_rich(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    ruled = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, is_right in zip(names, right, strict=True):
        ruled.add_column(
            Text(printable(name)), justify="right" if is_right else "left", overflow="fold"
        )
    for row in rows:
        ruled.add_row(*(Text(text) for text in row))  # Text: a name is never taken for markup
    Console().print(Padding(ruled, (0, 0, 0, len(indent)), expand=False))


def _emit_plain(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str
) -> None:
    head = [printable(name) for name in names]
    widths = [max(len(text) for text in texts) for texts in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        texts = (
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip(row, widths, right, strict=True)
        )
        click.echo(f"{indent}{'  '.join(texts)}".rstrip())


def _emit_csv(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    on_terminal = sys.stdout.isatty()  # a file gets every character as it is
    for row in rows:
        cells = [_as_json(v) if isinstance(v, list | dict | tuple) else v for v in row]
        if on_terminal:
            cells = [printable(v) if isinstance(v, str) else v for v in cells]
        writer.writerow(cells)


def _emit_json(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    is_ascii = sys.stdout.isatty()  # so that no character of a trace steers a terminal
    lines = ",\n".join(_as_json(dict(zip(names, row, strict=True)), is_ascii) for row in rows)
    click.echo(f"[{lines}]")


def _as_json(value: Any, is_ascii: bool = False) -> str:
    return json.dumps(_finite(value), ensure_ascii=is_ascii, default=_plain, allow_nan=False)


def _finite(value: Any) -> Any:
    """Replace what JSON cannot say: NaN and the infinities become null, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
