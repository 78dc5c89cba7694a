"""Rendering Arrow tables on stdout: as a table for people, as CSV, as JSON.

Trace content is untrusted: in a table, control characters are shown by their escapes and never
reach the terminal.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.terminal import is_terminal, write_rows
from tracehouse.pages.words import as_json, cell, duration, percentage, printable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FORMATS",
    "beside",
    "cell",
    "check_words",
    "duration",
    "emit",
    "emit_rows",
    "percentage",
    "printable",
]

FORMATS = ("table", "csv", "json")


def emit(table: pa.Table, fmt: str) -> None:
    """Write `table` on stdout in one of FORMATS.

    table: in the width of a terminal, aligned text otherwise; NULL is empty, thousands separated.
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
    if is_terminal():
        write_rows([printable(name) for name in names], rows, right, indent)
    else:
        _emit_plain(names, rows, right, indent)


def check_words(name: str, value: float, expected: str, meaning: str) -> str:
    """Return a failing check as a line, e.g. `unlinked_pct is 29.8, expected at most 5: …`."""
    shown = f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
    return f"{name} is {shown}, expected {expected}: {printable(meaning)}"


def beside(path: str) -> str:
    """Return `path` relative to the working directory if it lies below it, else as it is."""
    return path.removeprefix(f"{Path.cwd()}{os.sep}")


def _is_number(type_: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


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
        cells = [as_json(v) if isinstance(v, list | dict | tuple) else v for v in row]
        if on_terminal:
            cells = [printable(v) if isinstance(v, str) else v for v in cells]
        writer.writerow(cells)


def _emit_json(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    is_ascii = sys.stdout.isatty()  # so that no character of a trace steers a terminal
    lines = ",\n".join(as_json(dict(zip(names, row, strict=True)), is_ascii) for row in rows)
    click.echo(f"[{lines}]")
