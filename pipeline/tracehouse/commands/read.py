"""`tracehouse.read`: one trace as Arrow tables, with nothing stored."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tracehouse.analysis.devices import device_of
from tracehouse.analysis.kernel_cache import forget
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.analysis.summaries import summarise
from tracehouse.commands.captures import ReadCaptures, forget_captures, read_captures
from tracehouse.commands.linked_trace import issue_rows, linked_tables, trace_row
from tracehouse.errors import RejectedFile, UsageError
from tracehouse.findings import Findings
from tracehouse.ingest.capture_folders import divide
from tracehouse.ingest.discover import discover
from tracehouse.ingest.read import ReadTrace, RejectedMember, check_reader, read_file
from tracehouse.schema.tables import EVENTS, ISSUES, TRACES


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace, with every table of docs/reference as an attribute.

    `events`, `ops`, `kernels`, `op_summary` … envelope: the keys beside the event list. findings:
    what was odd.
    """

    trace_id: str
    path: str
    envelope: dict[str, Any]
    findings: Findings
    tables: Mapping[str, pa.Table]

    def __getattr__(self, name: str) -> pa.Table:
        if name in self.tables:
            return self.tables[name]
        raise AttributeError(
            f"a trace has no {name!r}; its tables are {', '.join(sorted(self.tables))}"
        )


def read(
    path: str,
    *,
    reader: str = "scan",
    keep_secrets: bool = False,
    capture: str | None = None,
    settings: Settings = DEFAULT,
) -> Trace:
    """Read the one trace that a file holds; `keep_secrets`, `capture` as in tracehouse.analyze.

    RejectedFile if nothing of it is usable; UsageError if the path does not exist, or holds several
    traces.
    """
    check_reader(reader)
    forget()
    forget_captures()
    divided = divide(discover([path]).files, capture)
    captures = read_captures(divided.shared, reader, settings)
    rows: list[pa.Table] = []
    findings = Findings()
    found: list[ReadTrace] = []
    for trace in read_file(
        path,
        reader=reader,
        sink=rows.append,
        wanted=lambda _: True,
        findings=findings,
        keep_secrets=keep_secrets,
    ):
        if isinstance(trace, RejectedMember):
            raise trace.error
        found.append(trace)
        if len(found) > 1:
            raise UsageError(
                f"{path} holds several traces", hint="use tracehouse.analyze, which keeps them all"
            )
    if not found:
        raise RejectedFile(f"{path} holds no trace", code="NOT_A_TRACE", hint="pass a trace file")
    found[0].findings.merge(findings)
    events = pa.concat_tables(rows) if rows else EVENTS.schema.empty_table()
    return analysed(found[0], events, settings, captures)


def analysed(
    trace: ReadTrace,
    events: pa.Table,
    settings: Settings = DEFAULT,
    captures: ReadCaptures | None = None,
) -> Trace:
    """Link and summarise a trace that was read; `events` becomes its table of that name.

    `captures`: of the graphs that it replays, None if there are none.
    """
    started = time.process_time()
    arch = settings.arch or device_of(trace.envelope)
    linked = linked_tables(trace, arch, settings, captures)
    row = trace_row(trace, linked, trace.reader, time.process_time() - started)
    own = {
        "traces": pa.Table.from_pylist([row], TRACES.schema),
        "issues": pa.Table.from_pylist(issue_rows(trace.trace_id, trace.findings), ISSUES.schema),
    }
    archs = {trace.trace_id: arch}
    summaries = summarise(own | linked, archs=archs, settings=settings, spill=trace.spill)
    tables = own | linked | summaries | {"events": events}
    return Trace(trace.trace_id, trace.path, trace.envelope, trace.findings, tables)
