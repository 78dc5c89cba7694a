"""What becomes of a trace that was read: its linked tables, its row of `traces`, its issues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracehouse import __version__
from tracehouse.analysis.graft import graft
from tracehouse.analysis.link import link
from tracehouse.analysis.settings import Settings
from tracehouse.analysis.triton_kernels import triton_kernels
from tracehouse.commands.captures import ReadCaptures
from tracehouse.commands.statuses import status_of
from tracehouse.findings import Findings
from tracehouse.formulas.arch import Arch
from tracehouse.ingest.read import ReadTrace, envelope_text
from tracehouse.schema.tables import TRACES
from tracehouse.stopwatch import Stopwatch
from tracehouse.vocab import Category

LINKED = (
    *("ops", "signatures", "launches", "annotations", "kernels", "spans"),
    "triton_kernels",
)


def empty_row(trace_id: str, reader: str) -> dict[str, Any]:
    """Return a row of table `traces` of which nothing is known but who made it, and when."""
    return dict.fromkeys(TRACES.names) | {
        "trace_id": trace_id,
        "analysed_at": datetime.now(UTC),
        "pipeline_version": __version__,
        "reader": reader,
    }


def issue_rows(trace_id: str, findings: Findings) -> list[dict[str, Any]]:
    """Return the rows of table `issues` that the findings of a trace make."""
    return [
        {
            "trace_id": trace_id,
            "code": f.code.word,
            "severity": f.code.severity.value,
            "count": f.count,
            "first_event_id": f.first_event_id,
            "example": f.example,
            "action": f.code.action,
        }
        for f in findings
    ]


def note_device(
    findings: Findings, linked: dict[str, pa.Table], arch: Arch | None, devices: Sequence[str]
) -> None:
    """Add UNKNOWN_DEVICE where there is GPU work of known inputs and no peaks to measure it by."""
    if arch is None and linked["kernels"].num_rows and linked["signatures"].num_rows:
        findings.add("UNKNOWN_DEVICE", example=", ".join(sorted(set(devices))) or None)


def linked_tables(
    trace: ReadTrace,
    arch: Arch | None,
    settings: Settings,
    captures: ReadCaptures | None = None,
    watch: Stopwatch | None = None,
) -> dict[str, pa.Table]:
    """Make the tables LINKED of a trace; what is odd is added to its findings.

    `captures`: of the graphs that it replays, None if there are none. `watch`: counts the time of
    the stages `link` and `formulas`.
    """
    findings = trace.findings
    watch = Stopwatch() if watch is None else watch
    rules, grammars = settings.rules, settings.grammars
    with watch.stage("link"):
        linked = link(
            trace.frame,
            trace.trace_id,
            findings=findings,
            rules=rules,
            grammars=grammars,
            spill=trace.spill,
        )
        if captures is not None:
            captures.note(findings)
            rank = trace.about.rank
            linked = graft(linked, captures.captures, rank, rules, findings=findings)
            linked = {name: trace.spill.table(table) for name, table in linked.items()}
    with watch.stage("formulas"):
        calls = triton_kernels(linked, arch, settings, findings=findings)
        linked["triton_kernels"] = trace.spill.table(calls)
    note_device(findings, linked, arch, trace.about.devices)
    return {name: linked[name] for name in LINKED}


def trace_row(
    trace: ReadTrace, linked: dict[str, pa.Table], reader: str, seconds: float
) -> dict[str, Any]:
    """Return the row of table `traces`; `linked` is empty where the trace was linked before."""
    status, reason = status_of(trace.findings)
    row = empty_row(trace.trace_id, reader) | {
        "status": status.value,
        "reason": reason,
        "bytes": trace.bytes,
        "events": trace.events,
        "framework": trace.about.framework,
        "torch_version": trace.about.torch_version,
        "world_size": trace.about.world_size,
        "rank": trace.about.rank,
        "devices": list(trace.about.devices),
        "arch": trace.about.arch,
        "base_time_ns": trace.about.base_time_ns,
        "start_ns": trace.span_ns[0],
        "end_ns": trace.span_ns[1],
        "seconds": seconds,
        "envelope": envelope_text(trace),
    }
    if linked:
        kernels = linked["kernels"]
        is_kernel = pc.equal(kernels["category"].cast(pa.string()), Category.KERNEL.value)
        row["kernels"] = pc.sum(is_kernel, min_count=0).as_py()
        row["gpu_events"] = kernels.num_rows
        row["ops"] = linked["ops"].num_rows
        row["start_ns"], row["end_ns"] = _span(trace.span_ns, kernels)
    return row


def _span(host: tuple[int | None, int | None], kernels: pa.Table) -> tuple[int | None, int | None]:
    """Widen the span of the host's events by the GPU activities that count."""
    ends = pc.add(kernels["ts_ns"], kernels["dur_ns"])
    timed = kernels["ts_ns"].filter(pc.is_valid(ends))
    starts = [host[0], pc.min(timed).as_py()]
    lasts = [host[1], pc.max(ends).as_py()]
    return (
        min((t for t in starts if t is not None), default=None),
        max((t for t in lasts if t is not None), default=None),
    )
