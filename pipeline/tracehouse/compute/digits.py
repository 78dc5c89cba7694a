"""The numbers in texts, and which texts differ in nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

_ZERO, _NINE = 48, 57
_LONGEST = 18  # digits of the longest number that is read: all of them fit into int64


@njit
def read_numbers(
    text: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.bool_],
    NDArray[np.int64],
    NDArray[np.int64],
]:
    """Read the runs of digits of each text, and number the distinct forms of texts without them.

    Text i is text[offsets[i]:offsets[i + 1]]. A run of more than 18 digits is not known. Two texts
    are of one form if they differ in nothing but the digits of their runs.

    Shapes: text (b,) uint8; offsets (n + 1,) int64. Out: first (n + 1,) int64, where the runs of
            each text begin; value (k,) int64, 0 where not known; known (k,) bool; form (n,) int64,
            in order of occurrence; example (m,) int64, the first text of each form.
    Needs:  offsets ascending, within text.
    Cost:   O(b) time as a rule (an open hash table, half full at most), O(n + k) memory.
    Source: inference §1: all that differs between annotations of one form is their numbers.
    """
    n = offsets.shape[0] - 1
    first = np.zeros(n + 1, dtype=np.int64)
    value = np.empty(16 * n + 16, dtype=np.int64)
    known = np.empty(16 * n + 16, dtype=np.bool_)
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)  # form in each
    hashes = np.empty(n, dtype=np.uint64)  # by form
    example = np.empty(n, dtype=np.int64)
    form = np.empty(n, dtype=np.int64)
    runs = 0
    forms = 0
    for i in range(n):
        start, end = offsets[i], offsets[i + 1]
        if runs + end - start > value.shape[0]:
            value = _grown(value, runs, end - start)
            known = _grown(known, runs, end - start)
        first[i] = runs
        hash_ = np.uint64(14695981039346656037)  # FNV-1a
        digits = 0
        number = np.int64(0)
        for at in range(start, end):
            byte = text[at]
            if _ZERO <= byte <= _NINE:
                digits += 1
                if digits <= _LONGEST:
                    number = number * 10 + (byte - _ZERO)
                if digits > 1:
                    continue
                byte = np.uint8(_ZERO)
            elif digits:
                value[runs] = number if digits <= _LONGEST else 0
                known[runs] = digits <= _LONGEST
                runs += 1
                digits = 0
                number = np.int64(0)
            hash_ = (hash_ ^ np.uint64(byte)) * np.uint64(1099511628211)
        if digits:
            value[runs] = number if digits <= _LONGEST else 0
            known[runs] = digits <= _LONGEST
            runs += 1
        slot = np.int64((hash_ ^ (hash_ >> np.uint64(32))) & np.uint64(size - 1))
        while slots[slot] >= 0:
            found = slots[slot]
            if hashes[found] == hash_ and _is_alike(text, offsets, example[found], i):
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = forms
            hashes[forms] = hash_
            example[forms] = i
            forms += 1
        form[i] = slots[slot]
    first[n] = runs
    return first, value[:runs].copy(), known[:runs].copy(), form, example[:forms].copy()


@njit
def _grown(values: NDArray[np.int64], used: int, more: int) -> NDArray[np.int64]:
    larger = np.empty(2 * values.shape[0] + more, dtype=values.dtype)
    larger[:used] = values[:used]
    return larger


@njit
def _is_alike(text: NDArray[np.uint8], offsets: NDArray[np.int64], i: int, j: int) -> bool:
    """Whether two texts are equal, any run of digits for any other."""
    at, stop = offsets[i], offsets[i + 1]
    other, other_stop = offsets[j], offsets[j + 1]
    while at < stop and other < other_stop:
        if _ZERO <= text[at] <= _NINE:
            if not _ZERO <= text[other] <= _NINE:
                return False
            while at < stop and _ZERO <= text[at] <= _NINE:
                at += 1
            while other < other_stop and _ZERO <= text[other] <= _NINE:
                other += 1
        elif text[at] != text[other]:
            return False
        else:
            at += 1
            other += 1
    return at == stop and other == other_stop
