"""A page as Markdown, short enough for a comment on a pull request.

Names stand in code spans, where Markdown reads no markup, links or mentions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tracehouse.pages.model import Column, Page, Table, shown
from tracehouse.pages.words import printable

_NAME_WIDTH = 80
_WARNINGS = 8
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")


def render(page: Page) -> str:
    """Return the headline, the warnings, and the first rows of the tables in `page.summary`."""
    lines = [f"### {_escaped(page.title)}", "", _escaped(page.subtitle), ""]
    facts = [f"{_escaped(f.name)} **{_escaped(f.value)}**" for f in page.facts]
    lines += [" · ".join(facts), ""]
    lines += [f"- {_escaped(text)}" for text in page.warnings[:_WARNINGS]]
    if len(page.warnings) > _WARNINGS:
        lines.append(f"- {len(page.warnings) - _WARNINGS} more")
    if page.warnings:
        lines.append("")
    for table in page.tables:
        if table.name in page.summary:
            count, names = page.summary[table.name]
            lines += [*_table(table, count, names), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(table: Table, count: int, names: Sequence[str]) -> list[str]:
    columns = [column for column in table.columns if column.name in names]
    columns.sort(key=lambda column: names.index(column.name))
    rows = table.rows.slice(0, count).select([column.name for column in columns]).to_pylist()
    total = table.rows.num_rows
    more = f" (first {len(rows)} of {total:,})" if total > len(rows) else ""
    is_number = [not isinstance(_first(rows, column), str) for column in columns]
    return [
        f"**{_escaped(table.title)}**{more}",
        "",
        f"| {' | '.join(_escaped(_head(column)) for column in columns)} |",
        f"|{'|'.join('--:' if number else ':--' for number in is_number)}|",
        *(f"| {' | '.join(_cell(row[c.name], c) for c in columns)} |" for row in rows),
    ]


def _head(column: Column) -> str:
    """Name a column; times and percentages carry their unit themselves."""
    return column.words if column.unit in ("ns", "pct") else column.head


def _first(rows: list[dict[str, Any]], column: Column) -> Any:
    return next((row[column.name] for row in rows if row[column.name] is not None), None)


def _cell(value: Any, column: Column) -> str:
    if isinstance(value, str):
        return _code(value)
    return _escaped(shown(value, column.unit))


def _code(text: str) -> str:
    """Return a text as a code span; backticks and pipes would end it or the cell."""
    text = printable(text)
    if len(text) > _NAME_WIDTH:
        text = f"{text[: _NAME_WIDTH - 1]}…"
    text = text.replace("`", "'").replace("|", "\\|").strip()
    return f"`{text}`" if text else ""


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", printable(text))
