"""The sums of a comparison: the views of sql/compare over what the sides have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.warehouse.connection import open_session
from tracehouse.warehouse.views import evaluate_views, load_views

LEVELS = ("op", "kernel", "category", "phase")
TABLES = ("traces", "activities", "calls", "phases")

_PARTS = "SELECT * FROM compare_parts ORDER BY list_position(?, level), side, place"
_TOTALS = """
SELECT * FROM compare_totals WHERE base_ns IS NOT NULL OR side_ns IS NOT NULL ORDER BY side, place
"""


def compared(
    sides: Sequence[Mapping[str, pa.Table]], *, per: str = "trace"
) -> tuple[pa.Table, pa.Table]:
    """Compare every side but the first with the first.

    Args:
        sides: of each side the TABLES, with the columns of the queries of sql/compare_side; it has
            a trace and, per step, a step in each.
        per: trace or step.

    Returns:
        The rows of compare_totals whose time is known on a side, and those of compare_parts, by
        level, side and place.

    Raises:
        duckdb.Error: a sum does not fit 64 bits.
    """
    with open_session() as session:
        for name, table in registered(sides, per).items():
            session.register(name, table)
        evaluate_views(session, load_views("compare"))
        parts = session.sql(_PARTS, params=[list(LEVELS)]).to_arrow_table()
        return session.sql(_TOTALS).to_arrow_table(), parts


def divisor(traces: pa.Table, per: str) -> int:
    """Return what the sums of a side are divided by: its traces, or the steps of them."""
    return int(pc.sum(traces["steps"]).as_py()) if per == "step" else int(traces.num_rows)


def registered(sides: Sequence[Mapping[str, pa.Table]], per: str) -> dict[str, pa.Table]:
    """Return the tables that the views of sql/compare read, by name; `sides` as in `compared`."""
    stacked = {f"compared_{name}": _stacked(side[name] for side in sides) for name in TABLES}
    traces = stacked["compared_traces"]
    own = traces["steps"] if per == "step" else pa.array([1] * traces.num_rows, pa.int64())
    stacked["compared_traces"] = traces.append_column("divisor", own)
    stacked["compared_sides"] = pa.table(
        {
            "side": pa.array(range(len(sides)), pa.int32()),
            "divisor": pa.array([divisor(side["traces"], per) for side in sides], pa.int64()),
        }
    )
    return stacked


def _stacked(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of all sides, with the number of the side in front."""
    return pa.concat_tables(
        table.add_column(0, "side", pa.array([number] * table.num_rows, pa.int32()))
        for number, table in enumerate(tables)
    )
