"""Batches of events as columns: what both readers make, and what becomes Arrow tables.

Words (names, categories, process ids …) are codes into one growing dictionary a column
(`Dictionary`), shared by all batches of a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.ingest.fields import NUMBER_COLUMNS, WORD_COLUMNS, Row
from tracehouse.schema.nullable import coded, nullable
from tracehouse.schema.tables import EVENTS, FRAME_SCHEMA, FRAME_TEXTS, WORD
from tracehouse.spill import Spill
from tracehouse.vocab import canonical_category


class Dictionary:
    """The distinct words of one column, in order of first sight."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._code: dict[str, int] = {}
        self._array: pa.StringArray | None = None

    def code(self, word: str) -> int:
        """The code of a word; entered if it is new."""
        code = self._code.setdefault(word, len(self.words))
        if code == len(self.words):
            self.words.append(word)
        return code

    def find(self, word: str) -> int | None:
        """The code of a word; None if it has none."""
        return self._code.get(word)

    def encoded(self, codes: NDArray[np.int32]) -> pa.DictionaryArray:
        """An Arrow array of the codes; a negative code is NULL."""
        if self._array is None or len(self._array) != len(self.words):
            self._array = pa.array(self.words, pa.string())
        return coded(codes, self._array)


Dictionaries = Mapping[str, Dictionary]
Numbers = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""Values, and whether they are there."""


def new_dictionaries() -> dict[str, Dictionary]:
    """An empty dictionary for every word column."""
    return {column: Dictionary() for column in WORD_COLUMNS}


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events as columns; every array has one entry an event.

    event_id: position in the file's list. numbers: per column values and whether they are there.
    codes: per word column, -1 where absent. args, extra: JSON texts.
    """

    event_id: NDArray[np.int64]
    numbers: Mapping[str, Numbers]
    codes: Mapping[str, NDArray[np.int32]]
    args: pa.StringArray
    extra: pa.StringArray

    def __len__(self) -> int:
        return len(self.event_id)


def text_array(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], present: NDArray[np.bool_]
) -> pa.StringArray:
    """An Arrow array of the texts in `data` (valid UTF-8, below 2 GiB), NULL where not present."""
    validity = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string(),
        len(present),
        [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)],
    )


def batch_of_rows(
    rows: Sequence[Row], event_ids: Sequence[int], dictionaries: Dictionaries
) -> EventBatch:
    """Make a batch of rows."""
    numbers = {}
    for column in NUMBER_COLUMNS:
        present = np.fromiter((column in row.numbers for row in rows), np.bool_, len(rows))
        values = np.fromiter((row.numbers.get(column, 0) for row in rows), np.int64, len(rows))
        numbers[column] = values, present
    codes = {}
    for column, dictionary in dictionaries.items():
        words = (row.words.get(column) for row in rows)
        codes[column] = np.fromiter(
            (-1 if w is None else dictionary.code(w) for w in words), np.int32, len(rows)
        )
    return EventBatch(
        event_id=np.asarray(event_ids, np.int64),
        numbers=numbers,
        codes=codes,
        args=pa.array([row.args for row in rows], pa.string()),
        extra=pa.array([row.extra for row in rows], pa.string()),
    )


_EVENT_COLUMNS = tuple(name for name in EVENTS.names if name not in ("trace_id", "event_id"))


def event_table(
    batches: Iterable[EventBatch], dictionaries: Dictionaries, trace_id: str
) -> pa.Table:
    """The rows of table `events` of some batches of one trace."""
    fields = [EVENTS.schema.field(name) for name in EVENTS.names]
    schema = pa.schema(fields)
    tables = []
    for batch in batches:
        rows = len(batch)
        columns: list[pa.Array] = [
            pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([trace_id])),
            pa.array(batch.event_id),
        ]
        for name in _EVENT_COLUMNS:
            if name in batch.numbers:
                columns.append(nullable(pa.int64(), *batch.numbers[name]))
            elif name in batch.codes:
                columns.append(dictionaries[name].encoded(batch.codes[name]))
            else:
                columns.append(batch.args if name == "args" else batch.extra)
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


class _Numbers:
    """A column of integers of the frame under construction; nothing is kept before its first."""

    def __init__(self, spill: Spill) -> None:
        self._values, self._present = spill.growing(), spill.growing()
        self._blank: int | None = 0  # rows without one so far, None once there is one

    def add(self, values: NDArray[np.int64], present: NDArray[np.bool_]) -> None:
        if self._blank is not None:
            if not present.any():
                self._blank += len(present)
                return
            self._values.append(np.zeros(self._blank, np.int64))
            self._present.append(np.zeros(self._blank, np.bool_))
            self._blank = None
        self._values.append(values)
        self._present.append(present)

    def array(self) -> pa.Array | None:
        """The column, None if no row has one."""
        if self._blank is not None:
            return None
        return nullable(pa.int64(), self._values.take(np.int64), self._present.take(np.bool_))


class _Codes:
    """A column of words of the frame under construction; nothing is kept before its first."""

    def __init__(self, spill: Spill, dictionary: Dictionary) -> None:
        self._spill, self._dictionary = spill, dictionary
        self._codes = spill.growing()
        self._blank: int | None = 0

    def add(self, codes: NDArray[np.int32]) -> None:
        if self._blank is not None:
            if codes.max() < 0:
                self._blank += len(codes)
                return
            self._codes.append(np.full(self._blank, -1, np.int32))
            self._blank = None
        self._codes.append(codes)

    def array(self) -> pa.Array | None:
        """The column, None if no row has a word."""
        if self._blank is not None:
            return None
        encoded = self._dictionary.encoded(self._codes.take(np.int32))
        return self._spill.column(encoded)


class FrameBuilder:
    """Collects of each batch what the linker needs: complete events of the analysed categories.

    And the begin and end events of all categories, which pair up to spans.

    Some 170 bytes an event, in memory or in files as `spill` says, and none for Python frames,
    flows and memory marks, which are most of a trace.
    """

    def __init__(self, dictionaries: Dictionaries, spill: Spill | None = None) -> None:
        self._dictionaries = dictionaries
        self._wanted: list[bool] = []
        self._rows = 0
        self._spill = spill = Spill() if spill is None else spill
        self._event_id = spill.growing()
        self._words = {n: _Codes(spill, dictionaries[n]) for n in _FRAME_WORDS}
        self._numbers = {n: _Numbers(spill) for n in _FRAME_NUMBERS}

    def add(self, batch: EventBatch) -> None:
        """Take the rows of a batch that matter."""
        words = self._dictionaries["cat"].words
        self._wanted.extend(
            canonical_category(word) is not None for word in words[len(self._wanted) :]
        )
        phases = self._dictionaries["ph"].words
        wanted = np.array([*self._wanted, False])[
            batch.codes["cat"]
        ]  # the code -1 of no category finds the last
        keep = np.zeros(len(batch), np.bool_)
        for phase in {"X", "B", "E"}.intersection(phases):
            of_phase = batch.codes["ph"] == phases.index(phase)
            # An end without a time still closes its begin.
            keep |= of_phase & wanted & batch.numbers["ts_ns"][1] if phase == "X" else of_phase
        rows = np.flatnonzero(keep)
        if len(rows) == 0:
            return
        self._rows += len(rows)
        self._spill.reached(self._rows)
        self._event_id.append(batch.event_id.take(rows))
        for name, codes in self._words.items():
            codes.add(batch.codes[name].take(rows))
        for name, numbers in self._numbers.items():
            values, present = batch.numbers[name]
            numbers.add(values.take(rows), present.take(rows))

    def table(self) -> pa.Table:
        """The frame, in schema FRAME_SCHEMA. What was collected goes column by column with it."""
        if not self._rows:
            return FRAME_SCHEMA.empty_table()
        no_word, no_number = (
            self._spill.column(pa.nulls(self._rows, kind)) for kind in (pa.int32(), pa.int64())
        )
        columns = []
        for name in FRAME_SCHEMA.names:
            if name in self._words:
                column = self._words.pop(name).array()
                if column is None:
                    column = pa.DictionaryArray.from_arrays(no_word, pa.array([], pa.string()))
            elif name in self._numbers:
                column = self._numbers.pop(name).array()
                column = no_number if column is None else column
            else:
                column = pa.array(self._event_id.take(np.int64))
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=FRAME_SCHEMA)


_FRAME_WORDS = tuple(field.name for field in FRAME_SCHEMA if field.type == WORD)
_FRAME_NUMBERS = tuple(n for n in FRAME_SCHEMA.names if n not in (*_FRAME_WORDS, "event_id"))

assert set(FRAME_TEXTS) <= set(WORD_COLUMNS)
