"""The tables of a warehouse in words: what a row is, and each column's type, unit and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tracehouse.errors import UsageError
from tracehouse.warehouse.catalogue import relations
from tracehouse.warehouse.query import Warehouse


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """A column: its name, DuckDB type, unit (`-` for none) and meaning."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TableWords:
    """A table or view: what a row is, and its columns in order."""

    name: str
    meaning: str
    columns: tuple[ColumnWords, ...]


def describe(out: Path | None, table: str | None = None) -> tuple[TableWords, ...]:
    """Describe the tables of the warehouse in `out`; None describes those that this version writes.

    `table`: only this one. UsageError where there is no warehouse or no such table.
    """
    tables = _written() if out is None else _stored(out)
    if table is None:
        return tables
    found = tuple(t for t in tables if t.name == table)
    if not found:
        names = ", ".join(t.name for t in tables)
        raise UsageError(f"There is no table {table!r}.", hint=f"There are: {names}")
    return found


def _written() -> tuple[TableWords, ...]:
    return tuple(
        TableWords(
            relation.name,
            relation.comment,
            tuple(ColumnWords(c.name, c.type, c.unit, c.meaning) for c in relation.columns),
        )
        for relation in relations()
    )


def _stored(out: Path) -> tuple[TableWords, ...]:
    with Warehouse(out) as warehouse:
        return tuple(
            TableWords(
                table.name,
                table.meaning,
                tuple(ColumnWords(c.name, c.type, c.unit, c.meaning) for c in table.columns),
            )
            for table in warehouse.describe()
        )


def column_rows(tables: Sequence[TableWords]) -> pa.Table:
    """Return a row per column: table, column, type, unit (`-` for none), meaning."""
    pairs = [(t, c) for t in tables for c in t.columns]
    return pa.table(
        {
            "table": pa.array([t.name for t, _ in pairs], pa.string()),
            "column": pa.array([c.name for _, c in pairs], pa.string()),
            "type": pa.array([c.type for _, c in pairs], pa.string()),
            "unit": pa.array([c.unit for _, c in pairs], pa.string()),
            "meaning": pa.array([c.meaning for _, c in pairs], pa.string()),
        }
    )
