"""Between Arrow columns and numpy arrays: words as codes, integers with a mask.

A word column becomes int32 codes, -1 for NULL, and the list of distinct words; work on words is
done once per distinct word. An integer column becomes int64 values, 0 for NULL, and a mask of the
known ones. Inside the linker -1 stands for "no row"; it becomes NULL again on the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.schema.nullable import coded, nullable
from tracehouse.schema.tables import Table
from tracehouse.spill import Spill

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Reals = NDArray[np.float64]
Columns = Iterator[tuple[str, pa.Array]]


@dataclass(frozen=True, slots=True)
class Words:
    """A column of words: codes (n,), -1 for NULL, into `values`."""

    codes: Codes
    values: list[str]

    def take(self, rows: Ints) -> Words:
        """Return the words of some rows."""
        return Words(self.codes[rows], self.values)

    def kept(self, spill: Spill) -> Words:
        """Return the words with their codes put away."""
        return Words(spill.array(self.codes), self.values)

    def used(self) -> tuple[Ints, Codes]:
        """Return the codes that occur, ascending, and each row's place among them, -1 for NULL."""
        position = np.full(len(self.values) + 1, -1, dtype=np.int32)
        present = np.zeros(len(self.values) + 1, dtype=np.bool_)
        present[self.codes] = True  # -1 marks the last place, which stands for NULL
        used = np.flatnonzero(present[:-1])
        position[used] = np.arange(len(used), dtype=np.int32)
        return used, position[self.codes]

    def each(self, function: Callable[[str], str | None]) -> Words:
        """Return `function` of each word, called once per distinct word that occurs."""
        used, codes = self.used()
        return spread(codes, [function(self.values[code]) for code in used.tolist()])

    def arrow(self) -> pa.DictionaryArray:
        """Return the Arrow column; its dictionary holds the words that occur."""
        if not self.values:
            nulls = pa.nulls(len(self.codes), pa.int32())
            return pa.DictionaryArray.from_arrays(nulls, pa.array([], pa.string()))
        used, codes = self.used()
        return coded(codes, pa.array([self.values[code] for code in used.tolist()], pa.string()))


@dataclass(frozen=True, slots=True)
class Integers:
    """A column of integers: values (n,), 0 for NULL, and whether each is known."""

    values: Ints
    known: Mask

    def take(self, rows: Ints) -> Integers:
        """Return the integers of some rows."""
        return Integers(self.values[rows], self.known[rows])

    def kept(self, spill: Spill) -> Integers:
        """Return the integers put away."""
        return Integers(spill.array(self.values), spill.array(self.known))

    def where(self, condition: Mask) -> Integers:
        """Return the integers with NULL where the condition fails."""
        return Integers(self.values, self.known & condition)

    def arrow(self) -> pa.Array:
        """Return the Arrow column."""
        return nullable(pa.int64(), self.values, self.known)


def table_of(table: Table, columns: Columns, spill: Spill) -> pa.Table:
    """Put named columns, each away once it is made, into the order of the table's definition."""
    made = {}
    for name, column in columns:
        made[name] = spill.column(column)
        del column  # before the next is made
    return pa.table([made[name] for name in table.names], schema=table.schema)


def read_words(table: pa.Table, name: str) -> Words:
    """Read a dictionary-encoded column, whatever its chunks and their dictionaries."""
    column = table.column(name)
    if column.null_count == len(column):
        return Words(np.full(len(column), -1, np.int32), [])
    one = column.num_chunks == 1
    array = column.chunk(0) if one else column.unify_dictionaries().combine_chunks()
    indices = array.indices if array.indices.null_count == 0 else array.indices.fill_null(-1)
    codes = indices.to_numpy(zero_copy_only=False).astype(np.int32)
    values = array.dictionary.to_pylist()
    if None in values:
        codes[codes == values.index(None)] = -1
    return Words(codes, ["" if value is None else value for value in values])


def read_integers(table: pa.Table, name: str) -> Integers:
    """Read an int64 column."""
    return integers_of(table.column(name))


def integers_of(column: pa.ChunkedArray) -> Integers:
    """Read an int64 column that is given as such."""
    if column.null_count == len(column):
        return Integers(np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_))
    if column.null_count == 0:
        known = np.ones(len(column), np.bool_)
        return Integers(np.ascontiguousarray(column.to_numpy(), dtype=np.int64), known)
    known = column.is_valid().to_numpy()
    return Integers(np.ascontiguousarray(column.fill_null(0).to_numpy(), dtype=np.int64), known)


def constant(word: str, size: int) -> Words:
    """Return a column of one word."""
    return Words(np.zeros(size, np.int32), [word])


def spread(codes: Codes, words: Sequence[str | None]) -> Words:
    """Return the word of each code (n,), NULL for code -1; `words` may repeat and hold None."""
    distinct = list(dict.fromkeys(word for word in words if word is not None))
    place: dict[str | None, int] = {word: i for i, word in enumerate(distinct)}
    table = np.array([*(place.get(word, -1) for word in words), -1], dtype=np.int32)
    return Words(table[codes], distinct)


def numbered(values: Ints) -> tuple[Ints, Ints]:
    """Number the distinct values in order of occurrence: each value's number, and the values."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_numpy()


def combination(columns: Sequence[Words]) -> tuple[Ints, Ints]:
    """Number the distinct combinations of the codes of columns of equal length.

    Returns each row's number (n,), and the first row of each number.
    """
    key = np.zeros(len(columns[0].codes), dtype=np.int64)
    bound = 1
    for column in columns:
        size = len(column.values) + 1
        if bound * size > 2**62:
            key, distinct = numbered(key)
            bound = len(distinct)
        key = key * size + column.codes + 1
        bound *= size
    numbers, distinct = numbered(key)
    first = np.empty(len(distinct), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(key), dtype=np.int64)[::-1]
    return numbers, first


def places(keys: Ints, wanted: Ints) -> Ints:
    """Return the place of each wanted value in ascending distinct `keys`, -1 where it is not."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def distinct_rows(rows: Ints) -> Ints:
    """Return the distinct rows, ascending; -1 is none."""
    present = np.zeros(rows.max(initial=-1) + 1, dtype=np.bool_)
    present[rows[rows >= 0]] = True
    return np.flatnonzero(present)


def pick(values: Ints, where: Ints) -> Ints:
    """Return `values[where]`, -1 where a place is -1."""
    if not len(values):
        return np.full(len(where), -1, dtype=np.int64)
    return np.where(where >= 0, values[where], -1)


def first_of(first: Words, second: Words) -> Words:
    """Return the first words, the second where there is none."""
    codes = np.where(first.codes >= 0, first.codes, second.codes + len(first.values))
    codes = np.where((first.codes < 0) & (second.codes < 0), -1, codes)
    return spread(codes.astype(np.int32), [*first.values, *second.values])


def whole(values: Reals) -> pa.Array:
    """Return real numbers as integers, NULL for NaN."""
    unknown = np.isnan(values)
    return nullable(pa.int64(), np.where(unknown, 0, values).astype(np.int64), ~unknown)


def real(values: Reals) -> pa.Array:
    """Return real numbers, NULL for NaN."""
    return nullable(pa.float64(), values, ~np.isnan(values))
