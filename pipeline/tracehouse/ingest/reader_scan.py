"""The default reader: drives the compiled scanner over the blocks of a document."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehouse.findings import Findings
from tracehouse.ingest import scanner
from tracehouse.ingest.batches import (
    Dictionary,
    EventBatch,
    Numbers,
    new_dictionaries,
    text_array,
)
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.fields import ARG_TEXT_KEYS, NUMBER_COLUMNS, WORD_COLUMNS, plain_text
from tracehouse.ingest.odd_events import read_event
from tracehouse.ingest.repair import Expect, Then, is_endless, read_more, repair_at
from tracehouse.ingest.scan_memory import ScanMemory
from tracehouse.ingest.taking import take_codes, take_numbers

_TEXT_COLUMNS = frozenset(ARG_TEXT_KEYS.values())  # their words are JSON texts already
_FIRST_NUMBER = scanner.NUMBERS // scanner.CAPACITY
_FIRST_CODE = scanner.CODES // scanner.CAPACITY


class ScanReader:
    """Reads the event list under a cursor with the compiled scanner.

    `batches` yields the events; afterwards `complete` says whether the list was whole.
    `dictionaries` grow meanwhile.
    """

    name = "scan"

    def __init__(self, cursor: Cursor, findings: Findings) -> None:
        self.dictionaries: dict[str, Dictionary] = new_dictionaries()
        self.complete = False
        self.events_seen = 0
        self._cursor = cursor
        self._findings = findings
        self._memory = ScanMemory()
        self._decoded = 0
        # Per column the dictionary code of each scanner code, where two spellings of one word made
        # them differ.
        self._recoded: dict[str, list[int]] = {}
        self._lost: list[int] = []  # for each item lost since the last batch, the rows before it
        self._mended: dict[int, bytes] = {}  # texts of rows that were mended

    def go_on(self) -> None:
        """Read the events under the cursor as more of the same list."""
        self._memory.go_to(0, scanner.VALUE)
        self.complete = False

    def batches(self) -> Iterator[EventBatch]:
        """Yield the events of the list, in batches of up to a block.

        The cursor ends behind the list.
        """
        cursor, memory = self._cursor, self._memory
        while True:
            memory.look_at(cursor.text, cursor.at, cursor.end)
            then = self._scan()
            cursor.at = memory.position
            rows = memory.rows
            if rows:
                yield self._take(rows)
            self.events_seen += rows + len(self._lost)
            self._lost.clear()
            self._mended.clear()
            if then is Then.LIST_ENDED:
                self.complete = True
                return
            if then is Then.STOP or (then is Then.READ_MORE and cursor.complete):
                cursor.skip_all()
                return
            if then is Then.READ_MORE:
                read_more(cursor, self._findings, self.events_seen)
            elif rows < scanner.CAPACITY:
                memory.make_room()

    def _scan(self) -> Then:
        """Fill the records from the text at hand, through its damages.

        GO_ON: records or tables are full. READ_MORE: of the text, none of which is left if the
        cursor is complete.
        """
        memory = self._memory
        while True:
            result = memory.scan()
            endless = result == scanner.MORE and is_endless(self._cursor, memory.position)
            if result != scanner.BAD and not endless:
                break
            then = self._repair()
            if then is not None:
                return then
        return {
            scanner.MORE: Then.READ_MORE,
            scanner.FULL: Then.GO_ON,
            scanner.DONE: Then.LIST_ENDED,
        }[result]

    def _repair(self) -> Then | None:
        """Repair what stands at the memory's position; None if the scan can go on at once."""
        memory = self._memory
        found = repair_at(self._cursor, memory.position, Expect(memory.expect))
        if found.then is Then.READ_MORE:
            return found.then
        rows = memory.rows
        if found.event is not None:
            if not memory.scan_event(found.event):
                return Then.GO_ON  # no room: it is repaired again in an empty batch
            self._mended[rows] = found.event
        event_id = self.events_seen + rows + len(self._lost)
        for code, count in found.codes.items():
            self._findings.add(code, count, event_id, found.example)
        if found.dropped:
            self._lost.append(rows)
        memory.go_to(found.end, found.expect.value)
        return None if found.then is Then.GO_ON else found.then

    def _take(self, rows: int) -> EventBatch:
        """Take the rows out of the scanner's records, with odd events read again."""
        self._decode_words()
        column_of = self._memory.column
        has = column_of(scanner.HAS)
        anywhere = int(np.bitwise_or.reduce(has))
        numbers = self._numbers(rows, anywhere)
        codes = self._codes(rows, anywhere)
        taken = EventBatch(
            event_id=self._event_ids(rows),
            numbers=numbers,
            codes=codes,
            args=_texts(*self._memory.args(), (has & (1 << scanner.ARGS_BIT)) != 0),
            extra=_texts(*self._memory.extra(), (has & (1 << scanner.EXTRA_BIT)) != 0),
        )
        oddness = column_of(scanner.ODDNESS)
        untimed = ~numbers["ts_ns"][1]
        complete = self.dictionaries["ph"].find("X")
        untimed &= codes["ph"] == complete if complete is not None else False
        if not oddness.any() and not untimed.any():
            return taken
        taken = self._read_again(taken, np.flatnonzero((oddness == scanner.ODD) | untimed))
        return self._without_strangers(taken, np.flatnonzero(oddness == scanner.NOT_AN_EVENT))

    def _numbers(self, rows: int, anywhere: int) -> dict[str, Numbers]:
        """The number columns; `anywhere` has the bits of what any row has."""
        there = [i for i in range(len(NUMBER_COLUMNS)) if anywhere & (1 << i)]
        values = np.empty((len(there), rows), np.int64)
        present = np.empty((len(there), rows), np.bool_)
        columns = np.array(there, np.int64)
        take_numbers(self._memory.records, rows, _FIRST_NUMBER, columns, values, present)
        taken = {NUMBER_COLUMNS[c]: (values[i], present[i]) for i, c in enumerate(there)}
        return {
            name: taken.get(name) or (np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
            for name in NUMBER_COLUMNS
        }

    def _codes(self, rows: int, anywhere: int) -> dict[str, NDArray[np.int32]]:
        """The word columns, likewise."""
        bits = anywhere >> scanner.WORD_BIT
        there = [i for i in range(len(WORD_COLUMNS)) if bits & (1 << i)]
        codes = np.empty((len(there), rows), np.int32)
        columns = np.array(there, np.int64)
        take_codes(self._memory.records, rows, _FIRST_CODE, scanner.WORD_BIT, columns, codes)
        taken = {WORD_COLUMNS[c]: codes[i] for i, c in enumerate(there)}
        for name, recoded in self._recoded.items():
            if name in taken:
                taken[name] = np.array([*recoded, -1], np.int32)[taken[name]]
        return {
            name: taken[name] if name in taken else np.full(rows, -1, np.int32)
            for name in WORD_COLUMNS
        }

    def _event_ids(self, rows: int) -> NDArray[np.int64]:
        """Positions in the list: a lost item keeps its own."""
        ids = np.arange(self.events_seen, self.events_seen + rows, dtype=np.int64)
        if self._lost:
            ids += np.searchsorted(np.array(self._lost), np.arange(rows), side="right")
        return ids

    def texts(self, event_ids: NDArray[np.int64]) -> list[bytes]:
        """The texts of some events of the batch just yielded, as they stood.

        A damaged event comes as it was mended. Only until the next batch is asked for.
        """
        rows = np.searchsorted(self._event_ids(self._memory.rows), event_ids)
        if not self._mended:
            return self._memory.event_texts(rows)
        return [self._text_of(row) for row in rows.tolist()]

    def _text_of(self, row: int) -> bytes:
        return self._mended.get(row) or self._memory.event_text(row)

    def _decode_words(self) -> None:
        found = self._memory.words(self._decoded)
        self._decoded += len(found)
        for number, raw, code_there in found:
            column = WORD_COLUMNS[number]
            escaped = b"\\" in raw and column not in _TEXT_COLUMNS
            word = plain_text(json.loads(b'"' + raw + b'"')) if escaped else raw.decode()
            code = self.dictionaries[column].code(word)
            recoded = self._recoded.get(column)
            if recoded is None and code != code_there:
                recoded = self._recoded[column] = list(range(code_there))
            if recoded is not None:
                recoded.append(code)

    def _without_strangers(self, taken: EventBatch, strangers: NDArray[np.int64]) -> EventBatch:
        """Leave out the items of the list that are no objects."""
        if len(strangers) == 0:
            return taken
        self._findings.add(
            "DROPPED_EVENT",
            len(strangers),
            int(taken.event_id[strangers[0]]),
            f"no object: {self._text_of(int(strangers[0])).decode()}",
        )
        keep = np.ones(len(taken), np.bool_)
        keep[strangers] = False
        return _filtered(taken, keep)

    def _read_again(self, taken: EventBatch, odd: NDArray[np.int64]) -> EventBatch:
        """Replace odd rows by what `row_of` makes of their text."""
        if len(odd) == 0:
            return taken
        where = odd.tolist()
        rows = [read_event(self._text_of(i), int(taken.event_id[i]), self._findings) for i in where]
        for column, (values, present) in taken.numbers.items():
            for i, row in zip(where, rows, strict=True):
                present[i] = column in row.numbers
                values[i] = row.numbers.get(column, 0)
        for column, codes in taken.codes.items():
            for i, row in zip(where, rows, strict=True):
                word = row.words.get(column)
                codes[i] = -1 if word is None else self._code(column, word)
        mask = np.zeros(len(taken), np.bool_)
        mask[odd] = True
        args = pc.replace_with_mask(
            taken.args, pa.array(mask), pa.array([r.args for r in rows], pa.string())
        )
        extra = pc.replace_with_mask(
            taken.extra, pa.array(mask), pa.array([r.extra for r in rows], pa.string())
        )
        return EventBatch(taken.event_id, taken.numbers, taken.codes, args, extra)

    def _code(self, column: str, word: str) -> int:
        """The code of a word; if it is new, the scanner's own codes differ from now on."""
        dictionary = self.dictionaries[column]
        known = len(dictionary.words)
        code = dictionary.code(word)
        if code == known and column not in self._recoded:
            self._recoded[column] = list(range(known))
        return code


def _texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], present: NDArray[np.bool_]
) -> pa.StringArray:
    if not present.any():
        return pa.nulls(len(present), pa.string())
    return text_array(data.copy(), offsets, present)


def _filtered(batch: EventBatch, keep: NDArray[np.bool_]) -> EventBatch:
    mask = pa.array(keep)
    return EventBatch(
        event_id=batch.event_id[keep],
        numbers={
            name: (values[keep], present[keep]) for name, (values, present) in batch.numbers.items()
        },
        codes={name: codes[keep] for name, codes in batch.codes.items()},
        args=batch.args.filter(mask),
        extra=batch.extra.filter(mask),
    )
