"""`tracehouse.read`: one trace as Arrow tables, with nothing stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tracehouse.analysis.link import link
from tracehouse.analysis.summaries import summarise
from tracehouse.errors import RejectedFile, UsageError
from tracehouse.findings import Findings
from tracehouse.ingest.discover import discover
from tracehouse.ingest.read import ReadTrace, RejectedMember, check_reader, read_file
from tracehouse.schema.tables import EVENTS, TRACES


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


def read(path: str, *, reader: str = "scan") -> Trace:
    """Read the one trace that a file holds.

    RejectedFile if nothing of it is usable; UsageError if the path does not exist, or holds several
    traces.
    """
    check_reader(reader)
    discover([path])
    rows: list[pa.Table] = []
    findings = Findings()
    found: list[ReadTrace] = []
    for trace in read_file(
        path, reader=reader, sink=rows.append, wanted=lambda _: True, findings=findings
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
    trace = found[0]
    trace.findings.merge(findings)
    linked = link(trace.frame, trace.trace_id, findings=trace.findings)
    only = pa.Table.from_pylist(
        [{name: None for name in TRACES.names} | {"trace_id": trace.trace_id}], TRACES.schema
    )
    tables = linked | summarise(linked | {"traces": only})
    tables["events"] = pa.concat_tables(rows) if rows else EVENTS.schema.empty_table()
    return Trace(trace.trace_id, trace.path, trace.envelope, trace.findings, tables)
