"""The result of a run: what `tracehouse analyze` prints."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tracehouse.commands.analyze import RunReport
from tracehouse.stopwatch import STAGES
from tracehouse.warehouse.query import Warehouse

_BUSY = "SELECT trace_id, busy_pct FROM trace_timeline"

_FAILING = """
SELECT
    checks.name,
    count(*) AS traces,
    max(checks.value) AS worst,
    first(traces.path ORDER BY checks.value DESC, traces.path) AS path,
    any_value(checks.expected) AS expected,
    any_value(checks.meaning) AS meaning
FROM checks JOIN traces USING (trace_id)
WHERE NOT checks.ok AND traces.path = ANY(?)
GROUP BY checks.name
ORDER BY traces DESC, checks.name
"""


@dataclass(frozen=True, slots=True)
class FailingCheck:
    """A check that some traces of a run fail: how many, and the one that fails it worst."""

    name: str
    traces: int
    worst: float
    path: str
    expected: str
    meaning: str


def failing_checks(report: RunReport) -> list[FailingCheck]:
    """Return the checks that traces read in this run fail, what most of them fail first.

    Traces whose files did not change are left out: the run that read them has told.
    """
    paths = [r.path for r in report.results if not r.skipped]
    if not paths:
        return []
    with Warehouse(report.warehouse.parent) as warehouse:
        rows = warehouse.arrow(_FAILING, [paths]).to_pylist()
    return [FailingCheck(**row) for row in rows]


def profile_rows(report: RunReport) -> pa.Table:
    """Return the rows of `result_rows` with the CPU seconds of each stage.

    Those of files that this run did not read are NULL: table `traces` keeps them.
    """
    rows = result_rows(report)
    for stage in STAGES:
        seconds = [result.stages.get(stage) for result in report.results]
        rows = rows.append_column(f"{stage}_seconds", pa.array(seconds, pa.float64()))
    return rows


def stage_seconds(report: RunReport) -> dict[str, float]:
    """Return the CPU seconds of all traces of the run by stage, and of publishing them."""
    seconds = {
        stage: sum(result.stages.get(stage, 0.0) for result in report.results) for stage in STAGES
    }
    return seconds | {"publish": report.record.publish_seconds or 0.0}


def result_rows(report: RunReport) -> pa.Table:
    """Return a row per trace of the run: path, status, events, kernels and busy_pct.

    busy_pct is over all devices together, NULL where a trace has no GPU activity or was rejected.
    """
    with Warehouse(report.warehouse.parent) as warehouse:
        timelines = warehouse.arrow(_BUSY)
    columns = (timelines[name].to_pylist() for name in ("trace_id", "busy_pct"))
    busy = dict(zip(*columns, strict=True))
    results = report.results
    return pa.table(
        {
            "path": pa.array([r.path for r in results], pa.string()),
            "status": pa.array([r.status for r in results], pa.string()),
            "events": pa.array([r.events for r in results], pa.int64()),
            "kernels": pa.array([r.kernels for r in results], pa.int64()),
            "busy_pct": pa.array([busy.get(r.trace_id) for r in results], pa.float64()),
        }
    )
