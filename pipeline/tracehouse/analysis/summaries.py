"""The analyses of one part beyond linking: the work of ops, and the SQL views.

Busy time, idle gaps, sums by op, by inputs and by kernel, distance from the roofline, and whether
they can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from tracehouse.analysis.op_perf import op_perf
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.formulas.arch import Arch
from tracehouse.serving.steady_state import steady_state
from tracehouse.stopwatch import Stopwatch
from tracehouse.vocab import Role
from tracehouse.warehouse.connection import open_session
from tracehouse.warehouse.views import View, evaluate_views, load_views

INPUTS = (
    *("traces", "issues", "kernels", "ops", "launches", "signatures", "annotations"),
    *("op_perf", "triton_kernels", "step_grammars", "steady_state"),
)

_SEQUENCES = "SELECT trace_id, step_id, process, phase, r FROM steps"

# Views without rows where no annotation is a step or part of one, or no kernel is compiled.
_OF_STEPS = (
    *("_step_forms", "_step_names", "_step_inner", "_step_gpu", "_step_gaps"),
    *("steps", "step_summary", "steady_steps"),
)
_OF_COMPILED = ("triton_summary",)
_STEP_ROLES = {role.value for role in Role} - {Role.OTHER.value}


def summarise(
    tables: dict[str, pa.Table],
    *,
    archs: Mapping[str, Arch | None] | None = None,
    settings: Settings = DEFAULT,
    watch: Stopwatch | None = None,
) -> dict[str, pa.Table]:
    """Make `op_perf`, `steady_state` and every public view of sql/trace over the tables of a part.

    Args:
        tables: the INPUTS but those two and step_grammars, in the schemas of
            `tracehouse.schema.tables`; more are ignored.
        archs: the device of each trace, by trace_id; one that is left out is not known.
        settings: the user's choices.
        watch: counts the time of the stages `formulas` and `views`.

    Returns:
        Table or view name to its rows, in a stated order (`View.order_by`): equal inputs give equal
        tables, whatever the order of their rows. Without rows, the columns are there all the same.

    Raises:
        KeyError: one of INPUTS is missing.
        UsageError: the user's categories or formulas cannot be used.
    """
    watch = Stopwatch() if watch is None else watch
    with watch.stage("formulas"):
        measured = {"op_perf": op_perf(tables, archs or {}, settings)}
    given = {**tables, **measured, "step_grammars": settings.grammars.table()}
    views = load_views("trace")
    first = _needed_by("steps", views)
    without_rows = _without_rows(given)
    with watch.stage("views"), _session(given) as session:
        evaluate_views(session, first, without_rows)
        steps = session.sql(_SEQUENCES).to_arrow_table()
        measured["steady_state"] = steady_state(steps, settings.workload)
        session.register("steady_state", measured["steady_state"])
        evaluate_views(session, [view for view in views if view not in first], without_rows)
        return measured | _public(session, views)


def evaluated(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Evaluate every public view of sql/trace over the INPUTS: its name to its rows."""
    views = load_views("trace")
    with _session(tables) as session:
        evaluate_views(session, views)
        return _public(session, views)


def _without_rows(tables: Mapping[str, pa.Table]) -> frozenset[str]:
    """Return the views that have no rows because the traces have no steps, or no such kernels."""
    roles = tables["annotations"]["role"].unique().cast(pa.string()).to_pylist()
    of_steps = () if set(roles) & _STEP_ROLES else _OF_STEPS
    of_kernels = () if tables["triton_kernels"].num_rows else _OF_COMPILED
    return frozenset((*of_steps, *of_kernels))


def _session(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Open a session that sees those of the INPUTS that are given."""
    session = open_session()
    for name in INPUTS:
        if name in tables:
            session.register(name, tables[name])
    return session


def _needed_by(name: str, views: Sequence[View]) -> list[View]:
    """Return the views that one reads, directly or not, and itself, in reading order."""
    needed = {name}
    for view in reversed(views):
        if view.name in needed:
            needed |= set(view.reads)
    return [view for view in views if view.name in needed]


def _public(session: duckdb.DuckDBPyConnection, views: Sequence[View]) -> dict[str, pa.Table]:
    return {view.name: _rows(session, view) for view in views if not view.is_private}


def _rows(session: duckdb.DuckDBPyConnection, view: View) -> pa.Table:
    return session.sql(f"SELECT * FROM {view.name} ORDER BY {view.order_by}").to_arrow_table()
