"""A case of field_cases.md as a file: its events' text as it stands there, read by one reader."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracehouse

both_readers = pytest.mark.parametrize("reader", ["scan", "ijson"])


def read_events(folder: Path, events: str, reader: str, name: str = "case.json"):
    """Read a trace whose event list holds the text `events`."""
    return read_document(folder, '{"traceEvents":[\n' + events + "\n]}", reader, name)


def read_document(folder: Path, text: str, reader: str, name: str = "case.json"):
    """Read a trace whose whole text is `text`."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return tracehouse.read(path, reader=reader)


def analyzed(folder: Path, texts: dict[str, str], reader: str):
    """Analyse files of these texts, by name, and open the warehouse."""
    archive = folder / "archive"
    for name, text in texts.items():
        path = archive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tracehouse.analyze(archive, folder / "warehouse", workers=1, reader=reader)
    return tracehouse.open(folder / "warehouse")


def column(table, name):
    """Return a column as a list."""
    return table[name].to_pylist()


def busy_ns(trace):
    """Return the busy time: the sum over the devices."""
    return sum(column(trace.gpu_timeline, "busy_ns"))


def codes(trace):
    """Return the findings: code to count."""
    return {finding.code.word: finding.count for finding in trace.findings}
