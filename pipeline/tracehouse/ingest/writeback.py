"""Writing events back as JSON: the inverse of `fields.row_of`, for whole batches of rows.

Text is made by Arrow's kernels, and by Python once for each distinct word; no Python object an
event.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.ingest.fields import (
    ARGS_KEY,
    ID_COLUMNS,
    TIME_KEYS,
    TOP_INT_KEYS,
    WORD_KEYS,
    json_text,
    parsed_json,
)

EVENT_COLUMNS = (
    *WORD_KEYS.values(),
    *TIME_KEYS.values(),
    *TOP_INT_KEYS.values(),
    "args",
    "extra",
)
"""The columns of table `events` that an event is made of."""

Change = Callable[[str], str]

_BYTES = pa.large_binary()
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
# The digits of a microsecond that stand behind the point, with it.
_FRACTIONS = pa.array(
    ["", *(f".{ns:03d}".rstrip("0") for ns in range(1, 1000))], pa.large_string()
).cast(_BYTES)
_SIGNS = pa.array([b"", b"-"], _BYTES)


class EventWriter:
    """Makes the texts of a trace's events; `change` is applied to every word."""

    def __init__(self, change: Change | None = None) -> None:
        self._change = change
        # Per column the last dictionary and the JSON members of its words.
        self._members: dict[str, tuple[pa.Array, pa.LargeBinaryArray]] = {}

    def texts(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """Return for each row (columns EVENT_COLUMNS, as in table `events`) a comma and its event.

        `extra` wins over a column: a key that is in it is written as it stands there.
        """
        extra = rows["extra"]
        pieces = []
        for key, column in WORD_KEYS.items():
            pieces.append(_unless_in(extra, key, self._words(key, column, rows[column])))
        for key, column in TIME_KEYS.items():
            pieces.append(_unless_in(extra, key, _times(key, rows[column])))
        for key, column in TOP_INT_KEYS.items():
            text = rows[column].cast(pa.large_string()).cast(_BYTES)
            pieces.append(_unless_in(extra, key, _joined(_bytes(f'"{key}":'), text)))
        pieces.append(_joined(_bytes(f'"{ARGS_KEY}":'), _binary(rows["args"])))
        pieces.append(_binary(pc.utf8_slice_codeunits(extra, 1, -1)))
        members = pc.binary_join_element_wise(
            *_none_all_null(pieces), _bytes(","), null_handling="skip"
        )
        return _joined(_bytes(",\n{"), members, _bytes("}"))

    def _words(self, key: str, column: str, codes: pa.DictionaryArray) -> pa.LargeBinaryArray:
        """Return `"key":"word"` for each code; NULL for none."""
        known = self._members.get(column)
        if known is None or not known[0].equals(codes.dictionary):
            words = codes.dictionary.to_pylist()
            texts = [f'"{key}":{self._word(column, word)}' for word in words]
            known = codes.dictionary, pa.array(texts, pa.large_string()).cast(_BYTES)
            self._members[column] = known
        return known[1].take(codes.indices)

    def _word(self, column: str, word: str) -> str:
        if column in ID_COLUMNS and _INTEGER.fullmatch(word):
            return word
        return json_text(word if self._change is None else self._change(word))


def _none_all_null(pieces: list[pa.LargeBinaryArray]) -> list[pa.LargeBinaryArray]:
    """Give an event without keys an empty piece: Arrow 26 leaves a row of nothing but NULLs out."""
    any_there = reduce(pc.or_, (piece.is_valid() for piece in pieces))
    if pc.all(any_there).as_py():
        return pieces
    return [pc.if_else(any_there, pieces[0], _bytes("")), *pieces[1:]]


def _times(key: str, column: pa.Int64Array) -> pa.LargeBinaryArray:
    """Return `"key":` and the nanoseconds as µs, with up to three decimals; NULL where absent."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    size = np.abs(values).view(np.uint64)  # of the smallest int64 too
    text = _joined(
        _bytes(f'"{key}":'),
        _SIGNS.take(pa.array((values < 0).astype(np.int8))),
        pa.array(size // 1000).cast(pa.large_string()).cast(_BYTES),
        _FRACTIONS.take(pa.array(size % 1000)),
    )
    return pc.if_else(column.is_valid(), text, pa.scalar(None, _BYTES))


def _unless_in(extra: pa.StringArray, key: str, texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return the texts, NULL where the JSON object `extra` has `key`."""
    if extra.null_count == len(extra):
        return texts
    # In compact JSON only a key stands so; a backslash would precede the quotes of a string's.
    found = pc.match_substring_regex(extra, f'[{{,]"{re.escape(key)}":').fill_null(False)
    rows = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    if len(rows) == 0:
        return texts
    shadowed = np.zeros(len(extra), np.bool_)
    shadowed[rows] = True
    # It may be a key of an object further in.
    nested = pc.greater(pc.count_substring(extra.take(pa.array(rows)), "{"), 1)
    for row in rows[nested.to_numpy(zero_copy_only=False)].tolist():
        shadowed[row] = key in parsed_json(extra[row].as_py())
    return pc.if_else(pa.array(shadowed), pa.scalar(None, _BYTES), texts)


def _joined(*pieces: pa.LargeBinaryArray | pa.Scalar) -> pa.LargeBinaryArray:
    """Join the pieces of each row; NULL where one is."""
    return pc.binary_join_element_wise(*pieces, _bytes(""))


def _bytes(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(), _BYTES)


def _binary(texts: pa.StringArray) -> pa.LargeBinaryArray:
    return texts.cast(pa.large_string()).cast(_BYTES)
