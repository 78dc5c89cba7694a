"""The result of a run as a table: what `tracehouse analyze` prints."""

from __future__ import annotations

import pyarrow as pa

from tracehouse.commands.analyze import RunReport
from tracehouse.warehouse.query import Warehouse

# A file whose content another file had first is named by `files` only.
_BUSY = """
SELECT traces.path, trace_timeline.busy_pct
FROM traces JOIN trace_timeline USING (trace_id)
UNION
SELECT files.path, trace_timeline.busy_pct
FROM files JOIN trace_timeline ON files.traces = [trace_timeline.trace_id]
"""


def result_rows(report: RunReport) -> pa.Table:
    """Return a row per trace of the run: path, status, events, kernels and busy_pct.

    busy_pct is over all devices together, NULL where a trace has no GPU activity or was rejected.
    """
    with Warehouse(report.warehouse.parent) as warehouse:
        timelines = warehouse.sql(_BUSY)
    busy = dict(zip(timelines["path"].to_pylist(), timelines["busy_pct"].to_pylist(), strict=True))
    results = report.results
    return pa.table(
        {
            "path": pa.array([r.path for r in results], pa.string()),
            "status": pa.array([r.status for r in results], pa.string()),
            "events": pa.array([r.events for r in results], pa.int64()),
            "kernels": pa.array([r.kernels for r in results], pa.int64()),
            "busy_pct": pa.array([busy.get(r.path) for r in results], pa.float64()),
        }
    )
