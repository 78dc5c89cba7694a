"""Looking at files that `split` wrote: their steps as measured again, and their events as text."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracehouse.analysis.link import link
from tracehouse.analysis.summaries import steps_alone
from tracehouse.findings import Findings
from tracehouse.ingest.read import read_file

MEASURES = (
    *("annotation", "ts_ns", "cpu_dur_ns", "kernels", "gpu_busy_ns", "gpu_span_ns", "graph"),
    *("phase", "r", "tokens", "process"),
)
_BETWEEN = re.compile(r"[\s,]*")
_decode = json.JSONDecoder().raw_decode


def linked(path: Path) -> dict[str, pa.Table]:
    """Return the linked tables of the one trace in a file."""
    (trace,) = read_file(
        str(path), reader="scan", sink=lambda _: None, wanted=lambda _: True, findings=Findings()
    )
    return link(trace.frame, trace.trace_id, findings=trace.findings)


def measures(path: Path) -> list[dict[str, Any]]:
    """Return the steps of a file in order, with what was measured of each."""
    steps, _ = steps_alone(linked(path))
    return [{name: row[name] for name in MEASURES} for row in steps.to_pylist()]


def text_of(path: Path) -> str:
    """Return the text of a plain or gzip file."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def event_texts(path: Path) -> list[str]:
    """Return each event of a trace as it stands in the file."""
    text = text_of(path)
    at = text.index("[", text.index('"traceEvents"')) + 1
    found = []
    while text[start := _BETWEEN.match(text, at).end()] != "]":
        _, at = _decode(text, start)
        found.append(text[start:at])
    return found


def are_in_order(some: list[str], everything: list[str]) -> bool:
    """Return whether `some` are of `everything`, byte for byte and in their order."""
    remaining = iter(everything)
    return all(text in remaining for text in some)
