"""Finding where short byte patterns stand in a text, many patterns in one pass.

A pattern is a word of byte sets; all patterns together have at most 64 of them. The search is
bit-parallel (shift-and: Baeza-Yates and Gonnet, 1992): a bit per place of a pattern, one shift,
one table look-up and two logical operations a byte, whatever the number of patterns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

_LANE = 512  # bytes that each of the four lanes reads in a round
_OVERLAP = 7  # the longest pattern, less one


class Marks(NamedTuple):
    """Patterns, ready to be searched for.

    places (256,) uint64: per byte value the places where it fits. first, last: the patterns' first
    and last places.
    """

    places: NDArray[np.uint64]
    first: np.uint64
    last: np.uint64

    @classmethod
    def of(cls, patterns: list[list[bytes]]) -> Marks:
        """Prepare patterns; each item of a pattern is the set of bytes allowed there.

        Needs: 1 to 8 items a pattern, at most 64 in all.
        """
        assert all(0 < len(pattern) <= _OVERLAP + 1 for pattern in patterns)
        assert sum(map(len, patterns)) <= 64
        places = [0] * 256
        first = last = bit = 0
        for pattern in patterns:
            first |= 1 << bit
            for allowed in pattern:
                for byte in allowed:
                    places[byte] |= 1 << bit
                bit += 1
            last |= 1 << (bit - 1)
        return cls(np.array(places, np.uint64), np.uint64(first), np.uint64(last))


def find(text: NDArray[np.uint8], marks: Marks) -> NDArray[np.int64]:
    """Return, ascending, where in `text` (n,) a pattern ends: the index of its last byte."""
    found = np.empty(1024, np.int64)
    count = find_marks(text, marks.places, marks.first, marks.last, found)
    if count > len(found):
        found = np.empty(count, np.int64)
        find_marks(text, marks.places, marks.first, marks.last, found)
    return found[:count]


@njit
def find_marks(
    text: NDArray[np.uint8],
    places: NDArray[np.uint64],
    first: np.uint64,
    last: np.uint64,
    found: NDArray[np.int64],
) -> int:
    """Write into `found` where a pattern ends, as far as it reaches, and return how many do.

    Shapes: text (n,) uint8, places (256,) uint64, found (m,) int64; contiguous.
    Needs:  first, last and places of `Marks`.
    Cost:   O(n) time, O(1) memory. Four lanes hide the latency of the look-ups; only a round with a
            hit is read again to say where it was.
    """
    one = np.uint64(1)
    n = text.shape[0]
    count = 0
    at = 0
    start = 0  # what ends before it has been found
    while at + 4 * _LANE + _OVERLAP <= n:
        window = text[at : at + 4 * _LANE + _OVERLAP]
        a = b = c = d = np.uint64(0)
        any_a = any_b = any_c = any_d = np.uint64(0)
        for i in range(_LANE + _OVERLAP):
            a = ((a << one) | first) & places[window[i]]
            b = ((b << one) | first) & places[window[i + _LANE]]
            c = ((c << one) | first) & places[window[i + 2 * _LANE]]
            d = ((d << one) | first) & places[window[i + 3 * _LANE]]
            any_a |= a
            any_b |= b
            any_c |= c
            any_d |= d
        if (any_a | any_b | any_c | any_d) & last != 0:
            end = at + 4 * _LANE + _OVERLAP
            count = _locate(text, start, end, places, first, last, found, count)
        at += 4 * _LANE
        start = at + _OVERLAP
    return _locate(text, start, n, places, first, last, found, count)


@njit
def _locate(
    text: NDArray[np.uint8],
    start: int,
    end: int,
    places: NDArray[np.uint64],
    first: np.uint64,
    last: np.uint64,
    found: NDArray[np.int64],
    count: int,
) -> int:
    """Add the patterns that end in [start, end) to the `count` found before."""
    one = np.uint64(1)
    state = np.uint64(0)
    for i in range(max(start - _OVERLAP, 0), end):
        state = ((state << one) | first) & places[text[i]]
        if i >= start and state & last != 0:
            if count < found.shape[0]:
                found[count] = i
            count += 1
    return count


@njit
def before_plain_value(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    r"""Whether each place of `ends` is in a JSON key whose value is a number, true, false or null.

    Shapes: text (n,) uint8, ends (k,) int64 → (k,) bool. Needs: compact JSON, `"key":5`; a key of
    more than 64 further bytes, or with a backslash, counts as no such key.
    """
    n = text.shape[0]
    plain = np.zeros(ends.shape[0], np.bool_)
    for k in range(ends.shape[0]):
        i = ends[k] + 1
        stop = min(n - 2, i + 64)
        while i < stop and text[i] != 34 and text[i] != 92:  # quote, backslash
            i += 1
        if i < stop and text[i] == 34 and text[i + 1] == 58:  # colon
            v = text[i + 2]
            plain[k] = 48 <= v <= 57 or v == 45 or v == 116 or v == 102 or v == 110  # 0-9 - t f n
    return plain
