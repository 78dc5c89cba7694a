"""Tables and lines that fit the width of a terminal, and colour where it is wanted.

Numbers are never broken. Where not even the narrowest columns fit side by side, each row becomes a
block of its own, a line a column.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence

import click

_GAP = 2  # spaces between columns
_NARROWEST = 12  # letters of a column of texts, if one of its texts has as many


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def columns() -> int:
    """Return how many letters a line of the terminal has; COLUMNS says it if it is set."""
    return shutil.get_terminal_size().columns


def coloured(text: str, *, fg: str | None = None, bold: bool = False) -> str:
    """Return `text` in colour or bold: on a terminal, unless NO_COLOR is set or TERM is dumb."""
    if not is_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    if fg is None and not bold:
        return text
    return click.style(text, fg=fg, bold=bold or None)


def write_line(text: str, *, indent: str = "", hanging: str = "  ", fg: str | None = None) -> None:
    """Write a line on stdout; on a terminal broken at its words, later lines hanging."""
    if not is_terminal():
        click.echo(f"{indent}{text}")
        return
    lines = textwrap.wrap(
        text,
        max(columns(), 20),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
    )
    for line in lines or [indent]:
        click.echo(coloured(line, fg=fg))


def write_rows(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str = ""
) -> None:
    """Write rows of finished texts on stdout in the width of the terminal.

    names: heads, broken at their words. right: columns that are aligned to the right, and whole.
    """
    available = max(columns() - letters(indent), 1)
    widths = fitting_widths(names, rows, right, available)
    if widths is None:
        _write_blocks(names, rows, indent, available)
        return
    heads = [_folded(name, width) for name, width in zip(names, widths, strict=True)]
    height = max(len(head) for head in heads)
    for i in range(height):  # heads stand on the rule
        texts = [head[i - height] if i >= height - len(head) else "" for head in heads]
        click.echo(coloured(_line(texts, widths, right, indent), bold=True))
    click.echo(f"{indent}{'─' * (sum(widths) + _GAP * (len(widths) - 1))}")
    for row in rows:
        cells = [_folded(text, width) for text, width in zip(row, widths, strict=True)]
        for i in range(max((len(cell) for cell in cells), default=0)):
            texts = [cell[i] if i < len(cell) else "" for cell in cells]
            click.echo(_line(texts, widths, right, indent))


def fitting_widths(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], available: int
) -> list[int] | None:
    """Return the width of each column so that a line has at most `available` letters.

    Numbers get what they need, texts share the rest: the widest give first. None if they do not
    fit however narrow the texts are.
    """
    widths = []
    least = []
    for place, (name, is_right) in enumerate(zip(names, right, strict=True)):
        word = max((letters(word) for word in name.split()), default=1)
        widest = max((letters(row[place]) for row in rows), default=0)
        widths.append(max(widest, word, 1))
        least.append(widths[-1] if is_right else max(min(widths[-1], _NARROWEST), word))
    room = available - _GAP * (len(widths) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        slack = [width - low for width, low in zip(widths, least, strict=True)]
        widest = max(range(len(widths)), key=lambda i: (slack[i] > 0, widths[i]))
        others = [w for i, w in enumerate(widths) if i != widest and slack[i] > 0]
        floor = max([least[widest], *(w for w in others if w < widths[widest])])
        widths[widest] -= max(min(widths[widest] - floor, sum(widths) - room), 1)
    return widths


def letters(text: str) -> int:
    """Return how many columns of a terminal a text takes; East Asian letters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool], indent: str) -> str:
    parts = []
    for text, width, is_right in zip(texts, widths, right, strict=True):
        blank = " " * (width - letters(text))
        parts.append(blank + text if is_right else text + blank)
    return f"{indent}{(' ' * _GAP).join(parts)}".rstrip()


def _folded(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` letters, at blanks where there are some."""
    lines = []
    rest = text
    while letters(rest) > width:
        cut = 0
        taken = 0
        while cut < len(rest) and taken + letters(rest[cut]) <= width:
            taken += letters(rest[cut])
            cut += 1
        cut = max(cut, 1)
        blank = rest.rfind(" ", 1, cut + 1)
        if blank > 0:
            lines.append(rest[:blank])
            rest = rest[blank + 1 :]
        else:
            lines.append(rest[:cut])
            rest = rest[cut:]
    return [*lines, rest]


def _write_blocks(
    names: Sequence[str], rows: Sequence[Sequence[str]], indent: str, available: int
) -> None:
    """Write each row as a block: its first text, then a line for each other that is not empty."""
    widest = max((letters(name) for name in names[1:]), default=0)
    width = max(min(widest, available // 2), 1)
    for row in rows:
        for line in _folded(row[0], available):
            click.echo(f"{indent}{coloured(line, bold=True)}".rstrip())
        for name, text in zip(names[1:], row[1:], strict=True):
            if not text:
                continue
            room = max(available - width - 4, 1)
            for i, line in enumerate(_folded(text, room)):
                head = _folded(name, width)[0] if i == 0 else ""
                click.echo(f"{indent}  {head}{' ' * (width - letters(head))}  {line}".rstrip())
