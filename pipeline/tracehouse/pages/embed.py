"""The data of a page as JSON by column, to stand within a script element."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.pages.model import Block, Chart, Column, Page, Table
from tracehouse.pages.words import as_json, printable

_EXACT = 2**53  # integers up to here are exact in JavaScript
_UNSAFE = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_data(page: Page, charts: list[Chart]) -> str:
    """Return the tables and charts of a page as JSON that cannot end a script element."""
    tables = [*page.tables, *(table for section in page.sections for table in section.data)]
    value = {
        "tables": {table.name: _table(table) for table in tables},
        "charts": [{"kind": chart.kind, "options": chart.options} for chart in charts],
    }
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "count": table.rows.num_rows,
        "columns": [
            _column(column, table.rows.column(i)) for i, column in enumerate(table.columns)
        ],
        "details": [[_block(block) for block in blocks] for blocks in table.details],
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "title": block.title,
        "lines": block.lines,
        "head": block.head,
        "rows": block.rows,
        "right": block.right,
    }


def _column(column: Column, data: pa.ChunkedArray) -> dict[str, Any]:
    """Encode one column: numbers as they are, texts as places in a list of the distinct ones."""
    about = {
        "name": column.name,
        "head": column.words,
        "unit": column.unit,
        "unitWords": column.unit_words,
        "meaning": column.meaning,
    }
    type_ = data.type
    if pa.types.is_boolean(type_):
        return {**about, "kind": "bool", "data": data.to_pylist()}
    if pa.types.is_integer(type_):
        if _is_exact(data):
            return {**about, "kind": "int", "data": data.to_pylist()}
        numbers = [None if v is None else str(v) for v in data.to_pylist()]
        return {**about, "kind": "big", "data": numbers}
    if pa.types.is_floating(type_):
        floats = [v if v is not None and math.isfinite(v) else None for v in data.to_pylist()]
        return {**about, "kind": "float", "data": floats}
    words = _texts(data).combine_chunks().dictionary_encode()
    places = pc.fill_null(words.indices, -1).to_pylist()
    return {
        **about,
        "kind": "text",
        "data": places,
        "words": [printable(word) for word in words.dictionary.to_pylist()],
    }


def _is_exact(data: pa.ChunkedArray) -> bool:
    ends = pc.min_max(data).as_py()
    return ends["min"] is None or (-_EXACT < ends["min"] and ends["max"] < _EXACT)


def _texts(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text; what is no text already as JSON."""
    if pa.types.is_dictionary(data.type):
        return data.cast(data.type.value_type)
    if pa.types.is_string(data.type) or pa.types.is_large_string(data.type):
        return data
    values = [None if v is None else as_json(v) for v in data.to_pylist()]
    return pa.chunked_array([pa.array(values, pa.string())])
