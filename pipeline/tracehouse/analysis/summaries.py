"""The analyses of one part beyond linking: the work of ops, and the SQL views.

Busy time, idle gaps, sums by op, by inputs and by kernel, distance from the roofline, and whether
they can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from tracehouse.analysis.op_perf import op_perf
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.formulas.arch import Arch
from tracehouse.warehouse.connection import open_session
from tracehouse.warehouse.views import View, evaluate_views, load_views

INPUTS = ("traces", "issues", "kernels", "ops", "launches", "signatures", "op_perf")


def summarise(
    tables: dict[str, pa.Table],
    *,
    archs: Mapping[str, Arch | None] | None = None,
    settings: Settings = DEFAULT,
) -> dict[str, pa.Table]:
    """Make `op_perf` and evaluate every public view of sql/trace over the tables of one part.

    Args:
        tables: the INPUTS but op_perf, in the schemas of `tracehouse.schema.tables`; more are
            ignored.
        archs: the device of each trace, by trace_id; one that is left out is not known.
        settings: the user's choices.

    Returns:
        Table or view name to its rows, in a stated order (`View.order_by`): equal inputs give equal
        tables, whatever the order of their rows. Without rows, the columns are there all the same.

    Raises:
        KeyError: one of INPUTS is missing.
        UsageError: the user's categories or formulas cannot be used.
    """
    measured = {"op_perf": op_perf(tables, archs or {}, settings)}
    return measured | evaluated({**tables, **measured})


def evaluated(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Evaluate every public view of sql/trace over the INPUTS: its name to its rows."""
    views = load_views("trace")
    with open_session() as session:
        for name in INPUTS:
            session.register(name, tables[name])
        evaluate_views(session, views)
        return {view.name: _rows(session, view) for view in views if not view.is_private}


def _rows(session: duckdb.DuckDBPyConnection, view: View) -> pa.Table:
    return session.sql(f"SELECT * FROM {view.name} ORDER BY {view.order_by}").to_arrow_table()
