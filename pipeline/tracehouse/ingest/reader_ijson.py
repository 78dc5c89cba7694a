"""The reference reader.

Ijson's streaming parser, an object an event, and `row_of` for its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ijson
import numpy as np

from tracehouse.findings import Findings
from tracehouse.ingest.batches import Dictionary, EventBatch, batch_of_rows, new_dictionaries
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.fields import Row, row_of
from tracehouse.ingest.scanner import list_end

BATCH_ROWS = 1 << 14


class IjsonReader:
    """Reads the event list under a cursor with ijson.

    `batches` yields the events; afterwards `complete` says whether the list was whole.
    `dictionaries` grow meanwhile.
    """

    name = "ijson"

    def __init__(self, cursor: Cursor, findings: Findings) -> None:
        self.dictionaries: dict[str, Dictionary] = new_dictionaries()
        self.complete = False
        self.events_seen = 0
        self._cursor = cursor
        self._findings = findings

    def batches(self) -> Iterator[EventBatch]:
        """Yield the events of the list; the cursor ends behind the list."""
        parsed: list[Any] = ijson.sendable_list()
        parser = ijson.get_backend("yajl2_c").items_coro(parsed, "item")
        parser.send(b"[")
        damaged = False
        for piece in self._list_text():
            try:
                parser.send(piece)
            except ijson.JSONError:
                damaged = True
            if damaged or len(parsed) >= BATCH_ROWS:
                yield from self._take(parsed)
            if damaged:
                self._skip_damage(piece)
                return
        try:
            parser.close()
            self.complete = True
        except ijson.IncompleteJSONError:
            pass  # the list ends early: `complete` stays False
        yield from self._take(parsed)

    def _list_text(self) -> Iterator[bytes]:
        """The text of the list, its `]` with it, a block at a time."""
        cursor = self._cursor
        walk = np.zeros(3, np.int64)
        while True:
            end = list_end(cursor.text, cursor.at, cursor.end, walk)
            closed = end < cursor.end
            piece = cursor.text[cursor.at : end + closed].tobytes()
            cursor.at = end + closed
            if piece:  # to the parser, an empty one is the end
                yield piece
            if closed or not cursor.more():
                return

    def _take(self, parsed: list[Any]) -> Iterator[EventBatch]:
        if not parsed:
            return
        rows: list[Row] = []
        event_ids: list[int] = []
        for event_id, event in enumerate(parsed, self.events_seen):
            if not isinstance(event, dict):
                self._findings.add(
                    "DROPPED_EVENT",
                    event_id=event_id,
                    example=f"no object: {event!r}",
                )
                continue
            row = row_of(event)
            for word in row.findings:
                self._findings.add(word, event_id=event_id)
            rows.append(row)
            event_ids.append(event_id)
        self.events_seen += len(parsed)
        parsed.clear()
        if rows:
            yield batch_of_rows(rows, event_ids, self.dictionaries)

    def _skip_damage(self, piece: bytes) -> None:
        """Stop at text that is no JSON; what stands behind it is not read yet."""
        self._findings.add(
            "DROPPED_EVENT", event_id=self.events_seen, example=piece[:120].decode(errors="replace")
        )
        self._cursor.at = self._cursor.end
        while self._cursor.more():
            self._cursor.at = self._cursor.end
