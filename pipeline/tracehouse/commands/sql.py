"""Run a query that the user wrote."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from tracehouse.errors import UsageError
from tracehouse.storage.address import shown
from tracehouse.warehouse.query import Warehouse


def run_query(out: Path, query: str) -> pa.Table:
    """Return the rows of `query` over the warehouse in `out`.

    UsageError where there is no warehouse, and with DuckDB's own words where the query is wrong.
    """
    with Warehouse(out) as warehouse:
        try:
            return warehouse.arrow(query)
        except duckdb.Error as error:
            raise UsageError(
                str(error), hint=f"\nTables and columns: tracehouse schema {shown(out)}"
            ) from error
