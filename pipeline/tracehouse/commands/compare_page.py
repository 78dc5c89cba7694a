"""A comparison as a page: HTML, a workbook or Markdown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracehouse import __version__
from tracehouse.commands.compare import Comparison
from tracehouse.pages.model import Column, Fact, Page, Section, Table
from tracehouse.pages.words import duration, percentage
from tracehouse.warehouse.views import View, load_views

_TITLES = {
    "op": "By op and shapes",
    "kernel": "By kernel",
    "category": "By category",
    "phase": "By step phase",
}
# What a part is called, in front, and what else is known of it, behind the numbers.
_NAMES = {
    "op": ("name", "shapes", "dtype"),
    "kernel": ("base_kernel", "side_kernel", "ops"),
    "category": ("name",),
    "phase": ("name",),
}
_WORDS = {
    "op": ("category", "base_kernel", "side_kernel", "types"),
    "kernel": ("kind", "name"),
    "category": (),
    "phase": (),
}
_BRIEF = ("base_ns", "side_ns", "diff_ns", "diff_pct", "explains_pct", "cause")
_MEASURES = (*_BRIEF, "status", "base_calls", "side_calls", "base_call_ns", "side_call_ns")
_ROOFLINE = ("base_roofline_pct", "side_roofline_pct", "roofline_diff_pct")
_DETAILS = (
    *("from_calls_ns", "from_per_call_ns", "base_median_ns", "base_mad_ns", "base_min_ns"),
    *("base_max_ns", "side_median_ns", "side_mad_ns", "side_min_ns", "side_max_ns", "is_apart"),
    *("base_sum_ns", "side_sum_ns", "untimed"),
)
_TOTALS = ("part", "base_ns", "side_ns", "diff_ns", "diff_pct")


def page(
    found: Comparison, levels: Sequence[str], per: str, phase: str | None, *, limit: int, fmt: str
) -> Page:
    """Make the page of a comparison.

    `levels`, `per` and `phase` as it was asked for; `limit`: rows of each table of Markdown, 0 for
    all. A workbook (`fmt` xlsx) has every column, the others those that fit.
    """
    sides = found.sides.to_pylist()
    totals = found.totals.to_pylist()
    base = sides[0]["side"]
    others = [side["side"] for side in sides[1:]]
    of = f" in steps of phase {phase}" if phase else ""
    summary = {}
    whole = []
    parts = []
    for other in others:
        table = _totals(found, base, other, fmt)
        whole.append(table)
        summary[table.name] = (table.rows.num_rows, _named(_TOTALS, base, other))
    for level in levels:
        tables = [_parts(found, level, base, other, totals, fmt) for other in others]
        parts.append(Section(level, _TITLES[level], parts=tables))
        for table, other in zip(tables, others, strict=True):
            columns = _named((*_NAMES[level], *_BRIEF), base, other)
            summary[table.name] = (limit or table.rows.num_rows, columns)
    return Page(
        title=f"{', '.join(others)} against {base}",
        subtitle=f"GPU time{of}, per {per}; what differs most comes first",
        facts=[*map(_side_fact, sides), *(_difference(row) for row in totals if _is_whole(row))],
        warnings=[text for side in sides for text in _warnings(side)],
        sections=[Section("totals", "The whole", parts=whole), *parts],
        footer=f"Tracehouse {__version__}",
        summary=summary,
    )


def write_page(made: Page, fmt: str, output: Path | None) -> str | None:
    """Write a page as html, md or xlsx to the file `output`, whole or not at all.

    Returns:
        The text instead where there is no `output`; there must be one for xlsx.

    Raises:
        OSError: the file cannot be written.
    """
    if output is None:
        return _text(made, fmt)
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        if fmt == "xlsx":
            from tracehouse.pages import xlsx

            xlsx.write(made, temporary)
        else:
            temporary.write_text(_text(made, fmt), encoding="utf-8")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    return None


def _text(made: Page, fmt: str) -> str:
    if fmt == "html":
        from tracehouse.pages import html

        return html.render(made)
    from tracehouse.pages import markdown

    return markdown.render(made)


def _totals(found: Comparison, base: str, other: str, fmt: str) -> Table:
    rows = _of_side(found.totals, other)
    names = [*_TOTALS]
    if fmt == "xlsx":
        names += [name for name in _DETAILS if name in rows.column_names]
    title = f"The whole, {other} against {base}"
    note = "Kernel time and overlap are busy time; busy and idle time are the window."
    return _table(f"totals-{other}", title, "compare_totals", rows, names, base, other, note)


def _parts(
    found: Comparison,
    level: str,
    base: str,
    other: str,
    totals: Sequence[dict[str, Any]],
    fmt: str,
) -> Table:
    rows = found.of_level(level, other)
    names = [*_NAMES[level], *_MEASURES]
    names += () if level == "kernel" else _ROOFLINE
    names += _DETAILS if fmt == "xlsx" else ()
    names += _WORDS[level]
    whole = next(row for row in totals if row["side"] == other and _is_whole(row))
    note = (
        f"The rows add up to the kernel time: {whole['base_ns']:,} ns of {base}, "
        f"{whole['side_ns']:,} ns of {other}, {whole['diff_ns']:+,} ns between them."
    )
    title = f"{_TITLES[level]}, {other} against {base}"
    return _table(f"{level}-{other}", title, "compare_parts", rows, names, base, other, note)


def _table(
    name: str,
    title: str,
    view: str,
    rows: pa.Table,
    names: Sequence[str],
    base: str,
    other: str,
    note: str,
) -> Table:
    """Make a table of some columns of a view, with the names of the sides in their heads."""
    columns = {column.name: column for column in _view(view).columns}
    docs = tuple(
        Column(new, columns[old].unit, columns[old].meaning)
        for old, new in zip(names, _named(names, base, other), strict=True)
    )
    values = [_joined(rows[old]) for old in names]
    shown = pa.table(values, names=[column.name for column in docs])
    return Table(name, title, docs, shown, note)


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return lists of names as texts, other columns as they are."""
    return pc.binary_join(column, ", ") if pa.types.is_list(column.type) else column


def _view(name: str) -> View:
    return next(view for view in load_views("compare") if view.name == name)


def _named(names: Sequence[str], base: str, other: str) -> tuple[str, ...]:
    """Name columns by the sides: base_ns and side_ns are A_ns and B_ns."""
    letters = {"base": base, "side": other}
    heads = [name.partition("_") for name in names]
    return tuple(f"{letters.get(first, first)}{bar}{rest}" for first, bar, rest in heads)


def _of_side(rows: pa.Table, side: str) -> pa.Table:
    return rows.filter([name == side for name in rows["side"].to_pylist()])


def _is_whole(row: dict[str, Any]) -> bool:
    return bool(row["part"] == "kernel_time")


def _side_fact(side: dict[str, Any]) -> Fact:
    traces = f"{side['traces']:,} trace{'' if side['traces'] == 1 else 's'}"
    value = ", ".join([traces, *(side["devices"] or ())])
    return Fact(side["side"], f"{side['given']} ({value})")


def _difference(row: dict[str, Any]) -> Fact:
    change = "" if row["diff_pct"] is None else f" ({percentage(row['diff_pct'])})"
    return Fact(
        f"kernel time, {row['side']} − {row['base']}",
        f"{duration(row['diff_ns'])}{change}",
        exact=f"{row['diff_ns']:+,} ns",
        tone="bad" if row["diff_ns"] > 0 else "ok",
    )


def _warnings(side: dict[str, Any]) -> list[str]:
    found = []
    if not side["activities"]:
        found.append(f"{side['side']} has no GPU activity.")
    for key, words in (
        ("partial", "partial: a part of the trace is missing"),
        ("rejected", "left out: nothing of the trace can be read"),
        ("without_steps", "left out: without such steps"),
    ):
        if side[key]:
            found.append(f"{side['side']}: {side[key]:,} {words}.")
    return found
