"""Reading one event from its text, by the definition of what an event means (`fields.row_of`)."""

from __future__ import annotations

from typing import Any

from tracehouse.findings import Findings
from tracehouse.ingest.fields import Row, parsed_json, row_of


def read_event(text: bytes, event_id: int, findings: Findings) -> Row:
    """Read the valid JSON text of one event by its definition, and count what is odd in it."""
    doubled = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal doubled
        found = dict(pairs)
        doubled = doubled or len(found) != len(pairs)
        return found

    row = row_of(parsed_json(text, object_pairs_hook=collect))
    if doubled:
        findings.add("DUPLICATE_KEY", event_id=event_id)
    for word in row.findings:
        findings.add(word, event_id=event_id, example=text[:200].decode(errors="replace"))
    return row
