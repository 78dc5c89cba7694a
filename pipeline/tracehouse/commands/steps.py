"""`tracehouse steps`: the steps of a trace, or of the traces of a warehouse, and their summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.commands import show
from tracehouse.commands.read import read
from tracehouse.errors import UsageError
from tracehouse.serving.steady_state import steady_state
from tracehouse.warehouse.query import Warehouse, holds_warehouse

_STEPS = "SELECT * FROM steps WHERE trace_id = ? ORDER BY step_id"
_STEADY = "SELECT * FROM steady_state WHERE trace_id = ? ORDER BY region_id"
_SUMMARY = """
SELECT * FROM step_summary WHERE trace_id = ? ORDER BY phase NULLS LAST, r NULLS LAST
"""


_ATTENTION = """
SELECT * FROM attention_summary WHERE trace_id = ?
ORDER BY
    phase NULLS LAST, name NULLS LAST, part NULLS LAST, h_q NULLS LAST, h_kv NULLS LAST,
    d_qk NULLS LAST, d_v NULLS LAST, window_keys NULLS LAST, dtype NULLS LAST, kv_bits NULLS LAST
"""


@dataclass(frozen=True, slots=True)
class TraceSteps:
    """The steps of one trace.

    Rows of `steps`, `step_summary`, `steady_state` and `attention_summary`.
    """

    path: str
    trace_id: str
    steps: pa.Table
    summary: pa.Table
    steady: pa.Table
    attention: pa.Table


def trace_steps(
    path: str, *, trace: str | None = None, settings: Settings = DEFAULT
) -> list[TraceSteps]:
    """Return the steps of the trace at `path`, or of each trace of a warehouse that has some.

    `trace` as in show.trace_rows, for a warehouse. Of `settings`, the workload counts for both; the
    step patterns and the model's configuration count for a file, since a warehouse holds what
    `analyze` was told.

    Raises:
        UsageError: there is no such file or trace, or an option is of no use for `path`.
        RejectedFile: nothing of the file is usable.
    """
    out = Path(path)
    if not holds_warehouse(path):
        if trace is not None:
            raise UsageError("--trace is for a warehouse", hint="leave it out for a file")
        found = read(path, settings=settings)
        return [
            TraceSteps(
                found.path,
                found.trace_id,
                found.steps,
                found.step_summary,
                found.steady_state,
                found.attention_summary,
            )
        ]
    if settings.step_patterns or settings.model_config:
        raise UsageError(
            "a warehouse holds the steps that analyze found, and their attention",
            hint="give --step-pattern and --model-config to analyze, or the trace's file to steps",
        )
    traces = show.trace_rows(out, trace=trace).table
    with Warehouse(out) as warehouse:
        pages = [
            _stored(warehouse, trace_id, traced or "", settings)
            for trace_id, traced in zip(
                traces["trace_id"].to_pylist(), traces["path"].to_pylist(), strict=True
            )
        ]
    return [page for page in pages if page.steps.num_rows]


def _stored(warehouse: Warehouse, trace_id: str, path: str, settings: Settings) -> TraceSteps:
    steps = warehouse.arrow(_STEPS, [trace_id])
    if settings.workload:
        steady = steady_state(steps, settings.workload)
    else:
        steady = warehouse.arrow(_STEADY, [trace_id])
    summary, attention = (warehouse.arrow(query, [trace_id]) for query in (_SUMMARY, _ATTENTION))
    return TraceSteps(path, trace_id, steps, summary, steady, attention)
