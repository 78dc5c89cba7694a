"""The reference reader: ijson's parser, an object an event, and `row_of` for its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ijson

from tracehouse.findings import Findings
from tracehouse.ingest import scanner
from tracehouse.ingest.batches import Dictionary, EventBatch, batch_of_rows, new_dictionaries
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.fields import LONGEST_INTEGER, Row, parsed_json, row_of
from tracehouse.ingest.odd_events import read_event
from tracehouse.ingest.repair import Expect, Then, is_endless, read_more, repair_at
from tracehouse.ingest.scan_memory import ScanMemory

_PARSER = ijson.get_backend("yajl2_c")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % LONGEST_INTEGER)


def _items(text: bytes) -> list[Any]:
    """Parse the items of a list; JSONError or ValueError for text that is no JSON."""
    # ijson would crash on an integer longer than Python reads, and makes `?` of a lone surrogate.
    if _LONG_NUMBER.search(text) or _SURROGATE.search(text):
        return list(parsed_json(b"[" + text + b"]", parse_constant=_refuse))
    return list(_PARSER.items(b"[" + text + b"]", "item"))


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


class IjsonReader:
    """Reads the event list under a cursor with ijson, the whole events of a block at a time.

    `batches` yields the events; afterwards `complete` says whether the list was whole.
    `dictionaries` grow meanwhile. Where ijson meets a damage, the scanner tells where the damaged
    item starts, and the repair is the same as for every reader.
    """

    name = "ijson"

    def __init__(self, cursor: Cursor, findings: Findings) -> None:
        self.dictionaries: dict[str, Dictionary] = new_dictionaries()
        self.complete = False
        self.events_seen = 0
        self._cursor = cursor
        self._findings = findings
        self._expect = Expect.FIRST_OR_END
        self._rows: list[Row] = []
        self._event_ids: list[int] = []

    def go_on(self) -> None:
        """Read the events under the cursor as more of the same list."""
        self._expect = Expect.VALUE
        self.complete = False

    def batches(self) -> Iterator[EventBatch]:
        """Yield the events of the list; the cursor ends behind the list."""
        cursor = self._cursor
        while True:
            then = self._read_window()
            if self._rows:
                yield batch_of_rows(self._rows, self._event_ids, self.dictionaries)
                self._rows.clear()
                self._event_ids.clear()
            if then is Then.LIST_ENDED:
                self.complete = True
                return
            if then is Then.STOP or (then is Then.READ_MORE and cursor.complete):
                cursor.skip_all()
                return
            if then is Then.READ_MORE:
                read_more(cursor, self._findings, self.events_seen)

    def _read_window(self) -> Then:
        """Read the whole items of the text at hand, or repair the first damage in it."""
        cursor = self._cursor
        end, is_closed, depth = scanner.whole_items(cursor.text, cursor.at, cursor.end)
        if depth > scanner.MOST_DEPTH:  # ijson keeps all that is open
            return self._read_to_damage()
        parsed = self._parsed(cursor.text[cursor.at : end].tobytes())
        if parsed is None:
            return self._read_to_damage()
        self._take(parsed)
        cursor.at = end
        if is_closed and self._expect is not Expect.VALUE:
            cursor.at = scanner.skip_blank(cursor.text, cursor.at) + 1
            return Then.LIST_ENDED
        if is_closed or cursor.complete or is_endless(cursor):
            return self._read_to_damage()
        return Then.READ_MORE

    def _parsed(self, items: bytes) -> list[Any] | None:
        """Parse whole items, the separator before them with them; None if they are damaged."""
        if b"\x0b" in items or b"\x0c" in items:
            return None  # to ijson they are white space
        items = items.strip(b" \t\r\n")
        if not items:
            return []
        if self._expect is Expect.COMMA_OR_END:
            if items[:1] != b"," or len(items) == 1:  # a comma with nothing behind it
                return None
            items = items[1:]
        try:
            parsed = _items(items)
        except (ijson.JSONError, ValueError):
            return None
        # Events may stand in a list inside the list: the repair looks.
        return None if any(isinstance(item, list) for item in parsed) else parsed

    def _read_to_damage(self) -> Then:
        """Read the text at hand by the damages that the scanner finds in it, and repair each."""
        cursor = self._cursor
        memory = ScanMemory()
        memory.look_at(cursor.text, cursor.at, cursor.end)
        while True:
            memory.forget_rows()
            memory.go_to(cursor.at, self._expect.value)
            while (result := memory.scan()) == scanner.FULL:
                if memory.rows < scanner.CAPACITY:
                    memory.make_room()
                memory.forget_rows()
            self._take_valid(cursor.text[cursor.at : memory.position].tobytes())
            cursor.at = memory.position
            self._expect = Expect(memory.expect)
            if result == scanner.DONE:
                return Then.LIST_ENDED
            if result == scanner.MORE and not is_endless(cursor):
                return Then.READ_MORE
            found = repair_at(cursor, cursor.at, self._expect)
            if found.then is Then.READ_MORE:
                return found.then
            for code, count in found.codes.items():
                self._findings.add(code, count, self.events_seen, found.example)
            if found.event is not None:
                self._add(read_event(found.event, self.events_seen, self._findings))
            self.events_seen += found.dropped
            cursor.at = found.end
            self._expect = found.expect
            if found.then is not Then.GO_ON:
                return found.then

    def _take_valid(self, items: bytes) -> None:
        """Take items that the scanner has found valid; a separator may stand at either end."""
        items = items.strip(b" \t\r\n")
        if items.endswith(b"]"):
            items = items[:-1]  # of the list
        items = items.strip(b" \t\r\n,")
        try:
            parsed = _items(items)
        except (ijson.JSONError, ValueError):
            parsed = parsed_json(b"[" + items + b"]")
        self._take(parsed)

    def _take(self, parsed: list[Any]) -> None:
        for event in parsed:
            if isinstance(event, dict):
                row = row_of(event)
                for word in row.findings:
                    self._findings.add(word, event_id=self.events_seen)
                self._add(row)
            else:
                example = f"no object: {event!r}"
                self._findings.add("DROPPED_EVENT", event_id=self.events_seen, example=example)
                self.events_seen += 1
        if parsed:
            self._expect = Expect.COMMA_OR_END

    def _add(self, row: Row) -> None:
        self._rows.append(row)
        self._event_ids.append(self.events_seen)
        self.events_seen += 1
