"""Batches of events as columns: what both readers make, and what becomes Arrow tables.

Words (names, categories, process ids …) are codes into one growing dictionary a column
(`Dictionary`), shared by all batches of a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.ingest.fields import NUMBER_COLUMNS, WORD_COLUMNS, Row
from tracehouse.schema.nullable import coded, nullable
from tracehouse.schema.tables import EVENTS, FRAME_SCHEMA, FRAME_TEXTS, WORD
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


@dataclass(slots=True)
class FrameBuilder:
    """Collects of each batch what the linker needs: complete events of the analysed categories.

    And the begin and end events of all categories, which pair up to spans.

    A few dozen bytes an event, and none for Python frames, flows and memory marks, which are most
    of a trace.
    """

    dictionaries: Dictionaries
    _parts: list[dict[str, NDArray[np.int64] | NDArray[np.int32] | NDArray[np.bool_]]] = field(
        default_factory=list
    )
    _wanted: list[bool] = field(default_factory=list)

    def add(self, batch: EventBatch) -> None:
        """Take the rows of a batch that matter."""
        words = self.dictionaries["cat"].words
        self._wanted.extend(
            canonical_category(word) is not None for word in words[len(self._wanted) :]
        )
        phases = self.dictionaries["ph"].words
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
        part: dict[str, NDArray[np.int64] | NDArray[np.int32] | NDArray[np.bool_]] = {
            "event_id": batch.event_id.take(rows)
        }
        for name in FRAME_SCHEMA.names:
            if name in batch.codes:
                part[name] = batch.codes[name].take(rows)
            elif name in batch.numbers:
                values, present = batch.numbers[name]
                part[name] = values.take(rows)
                part[f"has {name}"] = present.take(rows)
        self._parts.append(part)

    def table(self) -> pa.Table:
        """The frame, in schema FRAME_SCHEMA. What was collected goes column by column with it."""
        parts, self._parts = self._parts, []
        if not parts:
            return FRAME_SCHEMA.empty_table()
        columns = []
        for schema_field in FRAME_SCHEMA:
            name = schema_field.name
            joined = np.concatenate([part.pop(name) for part in parts])
            if schema_field.type == WORD:
                columns.append(self.dictionaries[name].encoded(joined.astype(np.int32, copy=False)))
            elif name == "event_id":
                columns.append(pa.array(joined))
            else:
                present = np.concatenate([part.pop(f"has {name}") for part in parts])
                columns.append(
                    nullable(
                        pa.int64(),
                        joined.astype(np.int64, copy=False),
                        present.astype(np.bool_, copy=False),
                    )
                )
        return pa.Table.from_arrays(columns, schema=FRAME_SCHEMA)


assert set(FRAME_TEXTS) <= set(WORD_COLUMNS)
