"""Reading texts with either reader, as plain tables that can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tracehouse.findings import Findings
from tracehouse.ingest.batches import FrameBuilder, event_table
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.envelope import Tail, parse_envelope, take_head
from tracehouse.ingest.read import READERS, end_of_list


@dataclass(frozen=True)
class Reading:
    """What a reader makes of a document."""

    events: pa.Table
    frame: pa.Table
    envelope: dict[str, Any]
    findings: dict[str, tuple[int, int | None]]
    is_complete: bool

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The events without their NULLs."""
        return [{k: v for k, v in row.items() if v is not None} for row in self.events.to_pylist()]


def plain(table: pa.Table) -> pa.Table:
    """The table with dictionaries decoded and chunks joined."""
    fields = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


def read_text(text: bytes, reader: str, block: int = 1 << 20) -> Reading:
    """Read one document, fed in blocks of `block` bytes."""
    findings = Findings()
    cursor = Cursor(text[i : i + block] for i in range(0, len(text), block))
    cursor.skip_blank()
    head = take_head(cursor)
    events = READERS[reader](cursor, findings)
    frame = FrameBuilder(events.dictionaries)
    batches = []
    tail = Tail(b"", is_complete=False, has_events=True)
    while tail.has_events:
        for batch in events.batches():
            frame.add(batch)
            batches.append(batch)
        tail = end_of_list(cursor, head, events, findings)
    envelope = parse_envelope(head, tail.text, findings)
    return Reading(
        events=plain(event_table(batches, events.dictionaries, "t")),
        frame=plain(frame.table()),
        envelope=envelope,
        findings={f.code.word: (f.count, f.first_event_id) for f in findings},
        is_complete=tail.is_complete,
    )


def assert_same(one: Reading, other: Reading) -> None:
    """Both readings are equal in everything but what only one reader can notice."""
    for name in one.events.column_names:
        assert one.events[name].equals(other.events[name]), name
    for name in one.frame.column_names:
        assert one.frame[name].equals(other.frame[name]), name
    assert one.envelope == other.envelope
    assert one.is_complete == other.is_complete
    # ijson hands over objects whose doubled keys are merged already.
    assert {k: v for k, v in one.findings.items() if k != "DUPLICATE_KEY"} == {
        k: v for k, v in other.findings.items() if k != "DUPLICATE_KEY"
    }
