"""Taking columns out of the scanner's records.

The records hold every field of every event, whether it is there or not; a batch wants values where
they are, and something certain (0, or the code -1) where they are not.
"""

from __future__ import annotations

from typing import Any

from tracehouse.compiled import njit


@njit
def take_numbers(
    records: Any, rows: int, first: int, columns: Any, values: Any, present: Any
) -> None:
    """Copy the number columns `columns` of the first `rows` records, 0 where a record has none.

    Shapes: records (fields, capacity) int64, of which row 0 holds the bits of what is there and row
            `first` + c number column c; columns (k,) int64; values (k, rows) int64 and present
            (k, rows) bool are written.
    Needs:  bit c of row 0 for number column c.
    Cost:   O(k · rows), one pass over each column.
    """
    has = records[0]
    for k in range(columns.shape[0]):
        c = columns[k]
        found = records[first + c]
        for row in range(rows):
            there = (has[row] >> c) & 1
            present[k, row] = there != 0
            values[k, row] = found[row] & -there


@njit
def take_codes(
    records: Any, rows: int, first: int, first_bit: int, columns: Any, codes: Any
) -> None:
    """Copy the word columns `columns` of the first `rows` records, -1 where a record has none.

    Shapes: records as for `take_numbers`, row `first` + c holding the codes of word column c;
            columns (k,) int64; codes (k, rows) int32 is written.
    Needs:  bit `first_bit` + c of row 0 for word column c.
    Cost:   O(k · rows), one pass over each column.
    """
    has = records[0]
    for k in range(columns.shape[0]):
        c = columns[k]
        bit = first_bit + c
        found = records[first + c]
        for row in range(rows):
            there = (has[row] >> bit) & 1
            codes[k, row] = found[row] | (there - 1)
