"""The analyses of one part beyond linking: the work of ops, and the SQL views.

Busy time, idle gaps, sums by op, by inputs and by kernel, distance from the roofline, and whether
they can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tracehouse.analysis.attention_kernels import attention_kernels
from tracehouse.analysis.attention_roofline import attention_roofline
from tracehouse.analysis.op_perf import op_perf
from tracehouse.analysis.serving_work import ranks_of
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.formulas.arch import Arch
from tracehouse.schema.tables import ATTENTION_ROOFLINE, STEP_GRAMMARS, TABLES
from tracehouse.serving.steady_state import steady_state
from tracehouse.spill import Spill
from tracehouse.stopwatch import Stopwatch
from tracehouse.vocab import Role
from tracehouse.warehouse.evaluation import Evaluation, evaluation
from tracehouse.warehouse.views import View, load_views

INPUTS = (
    *("traces", "issues", "kernels", "ops", "launches", "signatures", "annotations"),
    *("op_perf", "attention_roofline", "triton_kernels", "step_grammars", "steady_state"),
)

_MADE = ("op_perf", "attention_roofline", "step_grammars", "steady_state")  # here
_SCHEMAS = {name: (TABLES | {STEP_GRAMMARS.name: STEP_GRAMMARS})[name].schema for name in INPUTS}

# Of a step, what the work of ops and the steady state depend on.
_STEP_COLUMNS = (
    *("trace_id", "step_id", "process", "phase", "r", "framework", "violated", "r_c", "r_g"),
    *("c_sq", "c_sk", "c_sqsq", "c_sqsk", "g_sq", "g_sk", "g_sqsq", "g_sqsk", "tokens"),
    *("t_sk", "t_sqsq", "t_sqsk"),
)

# Views without rows where no annotation is a step or part of one, or no kernel is compiled.
_OF_STEPS = (
    *("_step_forms", "_step_names", "_step_inner", "_step_gpu", "_step_gaps"),
    *("steps", "step_summary", "steady_steps"),
)
_OF_COMPILED = ("triton_summary",)
_OF_ATTENTION = ("attention_summary",)
_STEP_ROLES = {role.value for role in Role} - {Role.OTHER.value}


def summarise(
    tables: dict[str, pa.Table],
    *,
    archs: Mapping[str, Arch | None] | None = None,
    settings: Settings = DEFAULT,
    watch: Stopwatch | None = None,
    spill: Spill | None = None,
) -> dict[str, pa.Table]:
    """Make what steps and ops tell, and every public view of sql/trace, over the tables of a part.

    Args:
        tables: the INPUTS but `op_perf`, `attention_roofline`, `steady_state` and step_grammars, in
            the schemas of `tracehouse.schema.tables`; more are ignored.
        archs: the device of each trace, by trace_id; one that is left out is not known.
        settings: the user's choices.
        watch: counts the time of the stages `formulas` and `views`.
        spill: where columns go, if not into memory.

    Returns:
        Table or view name to its rows, in a stated order (`View.order_by`): equal inputs give equal
        tables, whatever the order of their rows. Without rows, the columns are there all the same.

    Raises:
        KeyError: one of INPUTS is missing.
        UsageError: the user's categories or formulas cannot be used.
    """
    given = {name: tables[name] for name in INPUTS if name not in _MADE}
    given["step_grammars"] = settings.grammars.table()
    views = load_views("trace")
    first = _needed_by("steps", views)
    watch = Stopwatch() if watch is None else watch
    spill = Spill() if spill is None else spill
    with evaluation("trace", _SCHEMAS) as part:
        with watch.stage("views"):
            part.give(given)
            part.evaluate(first, _without_steps(given), spill.settle)
            steps = coded_steps(part.rows(first[-1]))
        with watch.stage("formulas"):
            work = op_perf({**tables, "steps": steps}, archs or {}, settings, spill)
            measured = {
                "op_perf": work,
                "attention_roofline": _attention(tables, work, steps, archs or {}, settings),
            }
        with watch.stage("views"):
            measured["steady_state"] = steady_state(steps, settings.workload)
            part.give(measured)
            rest = [view for view in views if view not in first]
            part.evaluate(rest, _without_rows({**given, **measured}), spill.settle)
            return measured | _public(part, views, spill)


def steps_alone(
    linked: Mapping[str, pa.Table], settings: Settings = DEFAULT
) -> tuple[pa.Table, pa.Table]:
    """Make `steps`, in order, and `steady_state` of one linked trace, and nothing else."""
    needed = _needed_by("steps", load_views("trace"))
    with evaluation("trace", _SCHEMAS) as part:
        part.give({name: linked[name] for name in INPUTS if name in linked})
        part.give({"step_grammars": settings.grammars.table()})
        part.evaluate(needed)
        steps = part.rows(needed[-1])
    return steps, steady_state(steps, settings.workload)


def evaluated(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Evaluate every public view of sql/trace over the INPUTS: its name to its rows."""
    views = load_views("trace")
    with evaluation("trace", _SCHEMAS) as part:
        part.give({name: tables[name] for name in INPUTS})
        part.evaluate(views)
        return _public(part, views, Spill())


def _attention(
    tables: Mapping[str, pa.Table],
    work: pa.Table,
    steps: pa.Table,
    archs: Mapping[str, Arch | None],
    settings: Settings,
) -> pa.Table:
    if not steps.num_rows:
        return ATTENTION_ROOFLINE.schema.empty_table()
    words = tables["traces"]["trace_id"].to_pylist()
    devices = {word: settings.arch or archs.get(word) for word in words}
    ranks, config = ranks_of(tables["traces"]), settings.model_config
    kernels = attention_kernels(tables["kernels"], steps, devices, ranks, config)
    return attention_roofline(work, kernels, steps, config)


def _without_steps(tables: Mapping[str, pa.Table]) -> frozenset[str]:
    """Return the views that have no rows because the traces have no steps."""
    roles = tables["annotations"]["role"].unique().cast(pa.string()).to_pylist()
    return frozenset(() if set(roles) & _STEP_ROLES else _OF_STEPS)


def _without_rows(tables: Mapping[str, pa.Table]) -> frozenset[str]:
    """Return the views without rows: the traces have no steps, or no such calls or kernels."""
    of_kernels = () if tables["triton_kernels"].num_rows else _OF_COMPILED
    of_attention = () if tables["attention_roofline"].num_rows else _OF_ATTENTION
    return _without_steps(tables) | {*of_kernels, *of_attention}


def coded_steps(rows: pa.Table) -> pa.Table:
    """Take of `steps` what is needed here, words dictionary-encoded as those of stored tables."""
    steps = rows.select(_STEP_COLUMNS)
    for place, field in enumerate(steps.schema):
        if pa.types.is_string(field.type):
            steps = steps.set_column(place, field.name, steps[field.name].dictionary_encode())
    return steps


def _needed_by(name: str, views: Sequence[View]) -> list[View]:
    """Return the views that one reads, directly or not, and itself, in reading order."""
    needed = {name}
    for view in reversed(views):
        if view.name in needed:
            needed |= set(view.reads)
    return [view for view in views if view.name in needed]


def _public(part: Evaluation, views: Sequence[View], spill: Spill) -> dict[str, pa.Table]:
    return {view.name: part.rows(view, spill) for view in views if not view.is_private}
