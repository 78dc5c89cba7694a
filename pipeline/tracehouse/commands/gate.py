"""`tracehouse gate`: has the newest run of a label become slower than the runs before it?

The numbers are those of the view `regressions`; here the runs are chosen and the verdict is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from tracehouse.commands.show import restriction
from tracehouse.errors import UsageError
from tracehouse.warehouse.compose import composed
from tracehouse.warehouse.queries import load_queries
from tracehouse.warehouse.query import Warehouse

# One view of each thing that can get slower: other metrics of trends say the same differently.
DEFAULT_METRICS = ("busy_ns", "total_ns", "step_ns", "tokens_per_s", "op_ns", "kernel_ns")
METRICS = (
    *DEFAULT_METRICS,
    "idle_ns",
    "busy_pct",
    "step_host_ns",
    "step_span_ns",
    "op_call_ns",
    "op_roofline_pct",
    "kernel_call_ns",
)
_LAST = re.compile(r"last:(\d+)")
_REGRESSIONS = """
SELECT * FROM regressions
ORDER BY list_position($metrics, metric), change * if(worse = 'up', 1, -1) DESC NULLS LAST, subject
"""
_EXPLAINED_OPS = 20


class Outcome(StrEnum):
    """What a gate says."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"  # there was too little to judge by, or nothing to judge


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What to judge, and how; None is the default of sql/warehouse/_gate_settings.sql.

    max_slowdown_pct, min_share_pct: 0..100, percent of time. metrics: names of METRICS. max_age: an
    older newest run is none to judge by: the one that should be there is missing.
    """

    newest_runs: int | None = None
    min_runs: int | None = None
    max_slowdown_pct: float | None = None
    min_share_pct: float | None = None
    metrics: tuple[str, ...] = DEFAULT_METRICS
    max_age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict on a label, and the numbers behind it.

    reason: why it is undecided, else empty. runs: rows of sql/gate/judged_runs.sql. settings: the
    row of _gate_settings that was used. rows: rows of `regressions`, of the metrics asked for.
    op_kernels: by the subject of an op that got slower, rows of sql/gate/op_kernels.sql.
    """

    label: str
    against: str
    outcome: Outcome
    reason: str
    runs: list[dict[str, Any]]
    settings: dict[str, Any]
    rows: list[dict[str, Any]]
    op_kernels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def regressions(self) -> list[dict[str, Any]]:
        """The rows that are regressions."""
        return self.having("regression")

    @property
    def judged(self) -> list[dict[str, Any]]:
        """The rows that were compared with their baseline."""
        return self.having("regression", "improvement", "steady")

    def having(self, *verdicts: str) -> list[dict[str, Any]]:
        """The rows of one of these verdicts, in order."""
        return [row for row in self.rows if row["verdict"] in verdicts]

    def explained_pct(self, row: dict[str, Any]) -> float | None:
        """Say how much of what busy time gained is the gain of a row; None if it gained nothing.

        Of ops or kernels that overlap others it can be more than 100.
        """
        busy = [r for r in self.rows if r["metric"] == "busy_ns" and r["change"] is not None]
        is_part = row["metric"] in ("op_ns", "kernel_ns") and row["change"] is not None
        if not is_part or not busy or busy[0]["change"] <= 0 or busy[0]["per"] != row["per"]:
            return None
        return float(100 * row["change"] / busy[0]["change"])

    def side(self, side: str) -> list[dict[str, Any]]:
        """The runs of a side, newest first."""
        return [run for run in self.runs if run["side"] == side]


@dataclass(frozen=True, slots=True)
class _Baseline:
    """What a label is compared with: its own last runs, those of another label, or one run."""

    runs: int | None = None
    label: str | None = None
    run: str | None = None


def gate(out: Path, label: str | None, against: str, options: GateOptions) -> GateReport:
    """Judge the newest run of `label` in the warehouse `out`; None is the only label there is.

    `against`: `last:N`, the good runs before it; `label:NAME` or a label; `trace:ID`, or the id,
    path or file name of a trace. Against one trace the noise between runs is not known: the assumed
    floor counts.

    Raises UsageError for a label, trace or metric that does not exist.
    """
    unknown = [metric for metric in options.metrics if metric not in METRICS]
    if unknown:
        raise UsageError(
            f"There is no metric {unknown[0]!r}.", hint=f"There are: {', '.join(METRICS)}"
        )
    with Warehouse(out) as warehouse:
        label = _the_label(warehouse, label)
        baseline = _baseline(warehouse, against)
        query = _Query(warehouse, label, baseline, options)
        settings = query.rows("SELECT * FROM _gate_settings")[0]
        runs = query.rows(load_queries("gate")["judged_runs"].sql)
        rows = [
            row
            for row in query.rows(_REGRESSIONS, metrics=list(options.metrics))
            if row["metric"] in (*options.metrics, "run")
        ]
        reason = _too_old(runs, options.max_age) or _unjudgeable(rows, runs, settings, against)
        is_slower = any(row["verdict"] == "regression" for row in rows)
        outcome = Outcome.FAILED if is_slower else Outcome.PASSED
        slower = [r for r in rows if r["verdict"] == "regression" and r["metric"] == "op_ns"]
        kernels = query.op_kernels(slower[:_EXPLAINED_OPS])
    if reason:
        outcome = Outcome.UNDECIDED
    return GateReport(label, against, outcome, reason, runs, settings, rows, kernels)


class _Query:
    """Queries on the live views, over the traces and with the settings of one gate."""

    def __init__(
        self, warehouse: Warehouse, label: str, baseline: _Baseline, options: GateOptions
    ) -> None:
        self._warehouse = warehouse
        files = load_queries("gate")
        self._replaced = {
            "_trace_runs": files["traces"].sql,
            "_gate_settings": files["settings"].sql,
            "_gate_runs": files["sides"].sql,
        }
        self._parameters: dict[str, object] = {
            "label": label,
            "other_label": baseline.label,
            "other_run": baseline.run,
            "baseline_runs": baseline.runs,
            "newest_runs": options.newest_runs,
            "min_runs": 1 if baseline.run and options.min_runs is None else options.min_runs,
            "max_slowdown_pct": options.max_slowdown_pct,
            "min_share_pct": options.min_share_pct,
        }

    def rows(self, query: str, **parameters: object) -> list[dict[str, Any]]:
        statement = composed(query, self._replaced)
        return self._warehouse.arrow(statement, self._parameters | parameters).to_pylist()

    def op_kernels(self, slower: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        if not slower:
            return {}
        traces = self.rows("SELECT trace_id FROM _trace_runs SEMI JOIN _gate_runs USING (run_id)")
        found = self.rows(
            load_queries("gate")["op_kernels"].sql,
            traces=[row["trace_id"] for row in traces],
            names=sorted({row["name"] for row in slower}),
            subjects=[row["subject"] for row in slower],
        )
        kernels: dict[str, list[dict[str, Any]]] = {}
        for row in found:
            kernels.setdefault(row["subject"], []).append(row)
        return kernels


def _too_old(runs: Sequence[dict[str, Any]], max_age: timedelta | None) -> str:
    """Say that the newest run is too old, else nothing."""
    newest = next(run for run in runs if run["side"] != "baseline")
    recorded = datetime.fromisoformat(newest["recorded_at"]).replace(tzinfo=UTC)
    age = datetime.now(UTC) - recorded
    if max_age is None or age <= max_age:
        return ""
    hours = age / timedelta(hours=1)
    return f"the newest run is missing: the last there is, {newest['path']}, is {hours:,.1f} h old"


def _unjudgeable(
    rows: Sequence[dict[str, Any]],
    runs: Sequence[dict[str, Any]],
    settings: dict[str, Any],
    against: str,
) -> str:
    """Say why there is no verdict, else nothing."""
    unusable = [row for row in rows if row["verdict"] == "unusable"]
    if unusable:
        row = unusable[0]
        return f"the newest run was not read whole: {row['subject']}: {row['why']}"
    count = sum(run["side"] == "baseline" for run in runs)
    if count < settings["min_runs"]:
        newest = next(run for run in runs if run["side"] == "newest")
        return (
            f"{count} runs of {against} can be compared with the newest, "
            f"{settings['min_runs']} are needed ({_likeness(newest, against)}); "
            "--min-runs asks for fewer"
        )
    if any(row["metric"] == "busy_ns" and row["verdict"] == "gone" for row in rows):
        return "the newest run has no GPU activity, the runs before it have"
    if not any(row["verdict"] in ("regression", "steady", "improvement") for row in rows):
        whys = "; ".join(sorted({row["why"] for row in rows if row["why"]})[:3])
        return f"no number could be judged: {whys or 'there is none'}"
    return ""


def _likeness(newest: dict[str, Any], against: str) -> str:
    """Say which runs can be compared with the newest."""
    steps = "with steps" if newest["per"] == "step" else "without steps"
    if not _LAST.fullmatch(against):
        return f"read whole, and {steps} as the newest"
    count = "1 trace" if newest["traces"] == 1 else f"{newest['traces']} traces"
    device = newest["arch"] or "unknown"
    return f"read whole, and like the newest of device {device}, {count}, {steps}"


def _the_label(warehouse: Warehouse, label: str | None) -> str:
    known = _labels(warehouse)
    if label is None and len(known) == 1:
        return known[0]
    if label is None:
        raise UsageError(
            f"The warehouse has {len(known)} labels: say which.",
            hint=f"--label {' | '.join(known[:10]) or 'NAME'}",
        )
    if label not in known:
        raise UsageError(
            f"There is no label {label!r}.", hint=f"There are: {', '.join(known[:20]) or 'none'}"
        )
    return label


def _labels(warehouse: Warehouse) -> list[str]:
    query = "SELECT DISTINCT label FROM traces WHERE label IS NOT NULL ORDER BY label"
    return [str(label) for label in warehouse.arrow(query)["label"].to_pylist()]


def _baseline(warehouse: Warehouse, against: str) -> _Baseline:
    last = _LAST.fullmatch(against)
    if last and int(last[1]) > 0:
        return _Baseline(runs=int(last[1]))
    kind, _, rest = against.partition(":")
    if kind == "label" or against in _labels(warehouse):
        return _Baseline(label=_the_label(warehouse, rest if kind == "label" else against))
    if kind == "last":
        raise UsageError(f"{against!r} names no runs.", hint="Say last:N, N at least 1.")
    return _Baseline(run=_the_run(warehouse, rest if kind == "trace" else against))


def _the_run(warehouse: Warehouse, trace: str) -> str:
    """Return the id of the run that the trace named `trace` belongs to."""
    try:
        where, parameters = restriction(warehouse, trace)
    except UsageError as error:
        raise UsageError(
            f"{trace!r} is no label, and no trace starts with it.",
            hint="--against takes last:N, label:NAME or trace:ID; tracehouse show OUT names them",
        ) from error
    query = composed(f"SELECT DISTINCT run_id, label FROM _trace_runs {where}", {})
    runs = warehouse.arrow(query, parameters).to_pylist()
    if len(runs) > 1:
        raise UsageError(
            f"{len(runs)} runs have traces that start with {trace!r}.", hint="Name one of them."
        )
    return str(runs[0]["run_id"])
