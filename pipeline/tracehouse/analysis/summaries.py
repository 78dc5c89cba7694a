"""The SQL analyses of one part.

Busy time, idle gaps, sums by op, by inputs and by kernel, and whether they can be trusted.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from tracehouse.warehouse.connection import open_session
from tracehouse.warehouse.views import View, evaluate_views, load_views

INPUTS = ("traces", "issues", "kernels", "ops", "launches", "signatures")


def summarise(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Evaluate every public view of sql/trace over the tables of one part.

    Args:
        tables: the INPUTS, in the schemas of `tracehouse.schema.tables`; more are ignored.

    Returns:
        View name to its rows, in a stated order (`View.order_by`): equal inputs give equal tables,
        whatever the order of their rows. Without rows, the columns are there all the same.

    Raises:
        KeyError: one of INPUTS is missing.
    """
    views = load_views("trace")
    with open_session() as session:
        for name in INPUTS:
            session.register(name, tables[name])
        evaluate_views(session, views)
        return {view.name: _rows(session, view) for view in views if not view.is_private}


def _rows(session: duckdb.DuckDBPyConnection, view: View) -> pa.Table:
    return session.sql(f"SELECT * FROM {view.name} ORDER BY {view.order_by}").to_arrow_table()
