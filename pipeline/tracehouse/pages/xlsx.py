"""A page as a workbook: one sheet a table, with frozen heads, filters, formats and units.

Values are exact, as stored: a time is in ns. A text is always a text, never a formula or a link.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import xlsxwriter

from tracehouse.pages.model import Column, Page, Table
from tracehouse.pages.words import as_json, printable

_EXACT = 2**53  # integers up to here are exact in a cell, which holds a double
_MOST_ROWS = 1_048_576 - 1
_MOST_LETTERS = 32_767
_WIDTHS = (9, 48)
_LOOKED_AT = 200  # rows that the width of a column is taken from
_OPTIONS = {
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "constant_memory": False,
}


def write(page: Page, path: Path) -> None:
    """Write the workbook of a page: a sheet of its headline, one a table, one of its columns."""
    with xlsxwriter.Workbook(str(path), _OPTIONS) as workbook:
        workbook.set_properties({"title": printable(page.title), "comments": "by Tracehouse"})
        formats = {
            "head": workbook.add_format(
                {
                    "bold": True,
                    "bottom": 1,
                    "text_wrap": True,
                    "valign": "top",
                    "bg_color": "EEF1F5",
                }
            ),
            "title": workbook.add_format({"bold": True, "font_size": 14}),
            "int": workbook.add_format({"num_format": "#,##0"}),
            "float": workbook.add_format({"num_format": "#,##0.000"}),
            "pct": workbook.add_format({"num_format": "0.00"}),
            "wrap": workbook.add_format({"text_wrap": True, "valign": "top"}),
        }
        taken = {"headline", "columns"}
        _headline(workbook.add_worksheet("headline"), page, formats)
        for table in page.tables:
            _sheet(workbook.add_worksheet(_sheet_name(table.name, taken)), table, formats)
        _columns(workbook.add_worksheet("columns"), page, formats)


def _headline(sheet: Any, page: Page, formats: dict[str, Any]) -> None:
    sheet.set_column(0, 0, 30)
    sheet.set_column(1, 1, 34)
    sheet.set_column(2, 2, 48)
    sheet.write_string(0, 0, printable(page.title), formats["title"])
    sheet.write_string(1, 0, printable(page.subtitle))
    row = 3
    for fact in page.facts:
        for column, text in enumerate((fact.name, fact.value, fact.exact)):
            sheet.write_string(row, column, printable(text))
        row += 1
    for text in page.warnings:
        row += 1
        sheet.write_string(row, 0, printable(text))


def _sheet(sheet: Any, table: Table, formats: dict[str, Any]) -> None:
    count = min(table.rows.num_rows, _MOST_ROWS)
    for place, column in enumerate(table.columns):
        values = table.rows.column(place).slice(0, count)
        sheet.write_string(0, place, column.head, formats["head"])
        texts = _column(sheet, place, column, values, formats)
        longest = max([len(column.words), *(len(text) for text in texts[:_LOOKED_AT])])
        sheet.set_column(place, place, min(max(longest + 2, _WIDTHS[0]), _WIDTHS[1]))
    sheet.freeze_panes(1, 1)
    sheet.autofilter(0, 0, count, len(table.columns) - 1)


def _column(
    sheet: Any, place: int, column: Column, values: pa.ChunkedArray, formats: dict[str, Any]
) -> list[str]:
    """Write the values of a column below its head, and return them as rough texts."""
    style = formats[_format_name(column, values.type)]
    texts = []
    for row, value in enumerate(values.to_pylist(), 1):
        if value is None:
            continue
        if isinstance(value, bool):
            sheet.write_boolean(row, place, value)
        elif isinstance(value, int) and abs(value) < _EXACT:
            sheet.write_number(row, place, value, style)
        elif isinstance(value, float) and math.isfinite(value):
            sheet.write_number(row, place, value, style)
        else:
            text = value if isinstance(value, str) else as_json(value)
            sheet.write_string(row, place, printable(text)[:_MOST_LETTERS])
            texts.append(text)
            continue
        texts.append(f"{value:,.0f}    ")
    return texts


def _format_name(column: Column, type_: pa.DataType) -> str:
    if column.unit == "pct":
        return "pct"
    return "float" if pa.types.is_floating(type_) else "int"


def _columns(sheet: Any, page: Page, formats: dict[str, Any]) -> None:
    for place, (head, width) in enumerate(
        (("table", 18), ("column", 26), ("unit", 12), ("meaning", 90))
    ):
        sheet.write_string(0, place, head, formats["head"])
        sheet.set_column(place, place, width)
    row = 1
    for table in page.tables:
        for column in table.columns:
            texts = (table.title, column.words, column.unit_words, column.meaning)
            for place, text in enumerate(texts):
                sheet.write_string(row, place, text)
            row += 1
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, row - 1, 3)


def _sheet_name(name: str, taken: set[str]) -> str:
    """Name a sheet: at most 31 letters, none that Excel forbids, each name once."""
    kept = "".join("_" if c in "[]:*?/\\'" else c for c in name)[:31] or "table"
    number = 2
    found = kept
    while found.lower() in taken:
        found = f"{kept[:28]}_{number}"
        number += 1
    taken.add(found.lower())
    return found
