"""Where a report takes its tables from: the queries of sql/report, run on one warehouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tracehouse.pages.model import Block, Column, Fact, Table, shown
from tracehouse.warehouse.queries import load_queries
from tracehouse.warehouse.query import Warehouse

FOLDER = "report"


class Source:
    """The queries of a report over one open warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._present = {table.name for table in warehouse.describe()}

    def rows(self, name: str, parameter: str | None) -> pa.Table | None:
        """Return the rows of query `name`; None if the warehouse lacks a table that it reads.

        parameter: what its one parameter is, a trace_id or a label (None: every label).
        """
        query = load_queries(FOLDER)[name]
        if not set(query.view.reads) <= self._present:
            return None  # a warehouse of an earlier version
        return self.warehouse.arrow(query.sql, dict.fromkeys(query.parameters, parameter))

    def row(self, name: str, parameter: str | None) -> dict[str, Any]:
        """Return the one row of a query."""
        rows = self.rows(name, parameter)
        assert rows is not None, name
        row: dict[str, Any]
        (row,) = rows.to_pylist()
        return row

    def table(
        self,
        name: str,
        parameter: str | None,
        title: str,
        *,
        note: str = "",
        details: Sequence[tuple[Block, ...]] = (),
    ) -> Table | None:
        """Return a query as a table of a page; None if it has no rows or cannot be asked."""
        rows = self.rows(name, parameter)
        if rows is None or not rows.num_rows:
            return None
        columns = tuple(
            Column(c.name, c.unit, c.meaning) for c in load_queries(FOLDER)[name].view.columns
        )
        words = name.split("_", 1)[1]
        return Table(words, title, columns, rows, note, tuple(details))


def quantity(name: str, value: Any, unit: str, tone: str = "") -> Fact | None:
    """Return a number of the headline: rounded, and exact on hover; None if it is unknown."""
    if value is None:
        return None
    exact = f"{value:,}" if isinstance(value, int) else str(value)
    words = {"ns": " ns", "pct": " %"}.get(unit, f" {unit}" if unit else "")
    return Fact(name, shown(value, unit), f"{exact}{words}", tone)


def known(*facts: Fact | None) -> list[Fact]:
    """Return the facts that are known."""
    return [fact for fact in facts if fact is not None]
