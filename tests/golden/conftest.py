"""All real traces in one warehouse, and beside each what its file and the peer's report say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from reference import peer

import tracehouse


@dataclass(frozen=True)
class Activity:
    """A GPU activity: what Tracehouse makes of it, and its interval from the file."""

    name: str
    kind: str
    correlation: int
    link: str
    replayed: bool  # started by a graph launch
    op_id: int | None
    launch_id: int | None
    graft: str | None  # how it was tied to the capture of its graph
    span: peer.Span


@dataclass(frozen=True)
class Case:
    """A real trace: the rows Tracehouse has of it, what its file says, and the peer's report."""

    report: Path
    call_ids: set[int]  # correlation ids of all runtime and driver calls in the file
    activities: list[Activity]
    rows: Callable[[str], list[dict[str, Any]]]  # of a table


@pytest.fixture(scope="session")
def archive(shared_traces, tmp_path_factory):
    """Analyse all real traces once; returns the report of the run."""
    return tracehouse.analyze(shared_traces, tmp_path_factory.mktemp("real"), workers=1)


@pytest.fixture(scope="session")
def case_of(shared_traces, archive):
    """Return the Case of a trace by its name."""
    warehouse = tracehouse.open(archive.warehouse.parent)

    @cache
    def case(trace: str) -> Case:
        (trace_id,) = warehouse.sql(
            "SELECT trace_id FROM traces WHERE ends_with(path, $file)",
            {"file": f"/{trace}.json.gz"},
        )["trace_id"].to_pylist()

        def rows(table: str) -> list[dict[str, Any]]:
            query = f"SELECT * FROM {table} WHERE trace_id = $trace_id"
            return warehouse.sql(query, {"trace_id": trace_id}).to_pylist()

        events = peer.events(shared_traces / f"{trace}.json.gz")
        activities = [
            Activity(
                name=row["name"],
                kind=row["kind"],
                correlation=row["correlation"],
                link=row["link"],
                replayed=row["graph"],
                op_id=row["op_id"],
                launch_id=row["launch_id"],
                graft=row["graft"],
                span=peer.Span(*(events[row["event_id"]][key] for key in ("ts", "dur"))),
            )
            for row in rows("kernels")
        ]
        call_ids = {
            event["args"].get("correlation")
            for event in events
            if event.get("cat") in ("cuda_runtime", "cuda_driver")
        }
        report = peer.report_folder(shared_traces, trace)
        return Case(report, call_ids - {None, 0}, activities, rows)

    yield case
    warehouse.close()
