"""The memory that the compiled scanner works in.

Allocated, grown and kept alive here, addressed there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.ingest import scanner as s
from tracehouse.ingest.fields import (
    ARG_INT_KEYS,
    ARG_TEXT_KEYS,
    ARGS_KEY,
    ID_COLUMNS,
    NUMBER_COLUMNS,
    TIME_KEYS,
    TOP_INT_KEYS,
    WORD_COLUMNS,
    WORD_KEYS,
)

_NODES = 4096
_KEY_BYTES = 1 << 18
_WORDS = 1 << 14
_WORD_BYTES = 1 << 20
_LEAST_ROOM = 8 << 20  # a mended event may be several times as long as it was

assert len(NUMBER_COLUMNS) <= s.MOST_NUMBERS
assert len(WORD_COLUMNS) <= s.MOST_WORDS
assert NUMBER_COLUMNS[s.DURATION] == "dur_ns"


def _address(array: NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])


class ScanMemory:
    """The state of one scan over one event list, with all the tables it names."""

    def __init__(self) -> None:
        self.state = np.zeros(s.STATE_SIZE, np.int64)
        self.records = np.empty((s.RECORD_FIELDS, s.CAPACITY), np.int64)
        self._rooms: tuple[NDArray[np.uint8], NDArray[np.uint8]] = (
            np.empty(0, np.uint8),
            np.empty(0, np.uint8),
        )
        self._text: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.state[s.RECORDS] = _address(self.records)
        self._set_known()
        self._new_keys(_NODES, _KEY_BYTES)
        self._counts = np.zeros(len(WORD_COLUMNS), np.int64)
        self.state[s.WORD_COUNTS] = _address(self._counts)
        self._new_words(_WORDS, _WORD_BYTES)

    def look_at(self, text: NDArray[np.uint8], at: int, end: int) -> None:
        """Let the next scan read text[at:end] into empty records."""
        needed = max(end - at, _LEAST_ROOM) + s.PADDING
        if len(self._rooms[0]) < needed:
            size = needed * 5 // 4
            self._rooms = np.empty(size, np.uint8), np.empty(size, np.uint8)
        self._text = text
        state = self.state
        state[s.TEXT] = _address(text)
        state[s.POSITION] = _address(text) + at
        state[s.END] = _address(text) + end
        state[s.ROWS] = 0
        state[s.ARGS_TEXT] = state[s.ARGS_USED] = _address(self._rooms[0])
        state[s.EXTRA_TEXT] = state[s.EXTRA_USED] = _address(self._rooms[1])

    def scan(self) -> int:
        """Scan on; the result of `scanner.scan`."""
        return int(s.scan(_address(self.state)))

    def scan_event(self, text: bytes) -> bool:
        """Read one event, valid JSON, from a text of its own; False if there is no room for it."""
        state = self.state
        room = len(self._rooms[0])
        used = max(
            int(state[s.ARGS_USED] - state[s.ARGS_TEXT]),
            int(state[s.EXTRA_USED] - state[s.EXTRA_TEXT]),
        )
        if room - used < len(text) + s.PADDING:
            return False
        buffer = np.frombuffer(text + bytes(s.PADDING), np.uint8)
        before = state[[s.TEXT, s.POSITION, s.END, s.EXPECT]]
        rows = self.rows
        state[s.POSITION] = _address(buffer)
        state[s.END] = _address(buffer) + len(text)
        state[s.EXPECT] = s.VALUE
        self.scan()
        state[[s.TEXT, s.POSITION, s.END, s.EXPECT]] = before
        return self.rows == rows + 1

    def forget_rows(self) -> None:
        """Empty the records; the scan goes on where it stands."""
        self.state[s.ROWS] = 0
        self.state[s.ARGS_USED] = self.state[s.ARGS_TEXT]
        self.state[s.EXTRA_USED] = self.state[s.EXTRA_TEXT]

    def go_to(self, position: int, expect: int) -> None:
        """Let the scan go on at a position of the text, expecting a separator or an item."""
        self.state[s.POSITION] = self.state[s.TEXT] + position
        self.state[s.EXPECT] = expect

    @property
    def expect(self) -> int:
        """What the list goes on with: FIRST_OR_END, COMMA_OR_END or VALUE."""
        return int(self.state[s.EXPECT])

    @property
    def position(self) -> int:
        """Where in the text the scan stands."""
        return int(self.state[s.POSITION] - self.state[s.TEXT])

    @property
    def rows(self) -> int:
        """Records filled."""
        return int(self.state[s.ROWS])

    def column(self, slot: int, number: int = 0) -> NDArray[np.int64]:
        """A field of the records filled: one at a slot, or number `number` of those from it on."""
        return self.records[slot // s.CAPACITY + number, : self.rows]

    def args(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The args texts of the records, and where each begins and ends in them."""
        return self._room(0, s.ARGS_TEXT, s.ARGS_END)

    def extra(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The extra texts of the records, and where each begins and ends in them."""
        return self._room(1, s.EXTRA_TEXT, s.EXTRA_END)

    def _room(self, room: int, text: int, ends: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        offsets = np.zeros(self.rows + 1, np.int64)
        offsets[1:] = self.column(ends) - self.state[text]
        return self._rooms[room][: offsets[-1]], offsets

    def event_text(self, row: int) -> bytes:
        """The text of a record's event."""
        start, end = (
            int(self.column(slot)[row] - self.state[s.TEXT])
            for slot in (s.EVENT_START, s.EVENT_END)
        )
        return self._text[start:end].tobytes()

    def event_texts(self, rows: NDArray[np.int64]) -> list[bytes]:
        """The texts of some records' events, all of them of the text that is looked at."""
        base, text = int(self.state[s.TEXT]), self._text.data
        starts, ends = (self.column(slot)[rows] - base for slot in (s.EVENT_START, s.EVENT_END))
        return [bytes(text[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]

    def words(self, known: int) -> list[tuple[int, bytes, int]]:
        """The words entered since there were `known`: word column, bytes as they stood, code."""
        entries = self._entries[known : int(self.state[s.ENTRY_COUNT])].tolist()
        if not entries:
            return []
        base = entries[0][s.WORD_START]
        offset = base - _address(self._word_text)
        text = self._word_text[
            offset : int(self.state[s.WORD_TEXT_USED]) - _address(self._word_text)
        ].tobytes()
        return [
            (
                entry[s.WORD_COLUMN],
                text[
                    entry[s.WORD_START] - base : entry[s.WORD_START] - base + entry[s.WORD_LENGTH]
                ],
                entry[s.WORD_CODE],
            )
            for entry in entries
        ]

    def make_room(self) -> None:
        """After FULL with room in the records.

        Grow the words, or begin the trie of keys anew and larger.
        """
        state = self.state
        if 2 * state[s.ENTRY_COUNT] >= state[s.SLOT_COUNT] or state[s.WORD_TEXT_USED] * 2 > state[
            s.WORD_TEXT_END
        ] + _address(self._word_text):
            self._grow_words()
        elif state[s.NODE_COUNT] + 2 > len(self._nodes):
            self._new_keys(_NODES, len(self._key_text))
        else:
            # One word or one key is larger than what is left.
            self._grow_words()
            self._new_keys(_NODES, 2 * len(self._key_text))

    def _set_known(self) -> None:
        number = {name: i for i, name in enumerate(NUMBER_COLUMNS)}
        word = {name: i for i, name in enumerate(WORD_COLUMNS)}
        keys = [(key, 0, s.WORD, word[column]) for key, column in WORD_KEYS.items()]
        keys += [(key, 0, s.TIME, number[column]) for key, column in TIME_KEYS.items()]
        keys += [(key, 0, s.ID, number[column]) for key, column in TOP_INT_KEYS.items()]
        keys += [(ARGS_KEY, 0, s.ARGS, 0)]
        keys += [(key, 1, s.ARG_INTEGER, number[column]) for key, column in ARG_INT_KEYS.items()]
        keys += [(key, 1, s.ARG_TEXT, word[column]) for key, column in ARG_TEXT_KEYS.items()]
        self._known_text = np.frombuffer("".join(key for key, *_ in keys).encode(), np.uint8)
        self._known = np.empty((len(keys), s.KNOWN_SIZE), np.int64)
        start = _address(self._known_text)
        for i, (key, *rest) in enumerate(keys):
            self._known[i] = (start, len(key), *rest)
            start += len(key)
        self.state[s.KNOWN] = _address(self._known)
        self.state[s.KNOWN_COUNT] = len(keys)
        self.state[s.IDS] = sum(1 << word[column] for column in ID_COLUMNS)

    def _new_keys(self, nodes: int, text_bytes: int) -> None:
        self._nodes = np.zeros((nodes, s.NODE_SIZE), np.int64)
        self._key_text = np.zeros(text_bytes + s.PADDING, np.uint8)
        state = self.state
        state[s.NODES] = _address(self._nodes)
        state[s.NODES_END] = _address(self._nodes) + self._nodes.nbytes
        state[s.NODE_COUNT] = 1  # the root
        state[s.KEY_TEXT] = state[s.KEY_TEXT_USED] = _address(self._key_text)
        state[s.KEY_TEXT_END] = _address(self._key_text) + len(self._key_text)

    def _new_words(self, words: int, text_bytes: int) -> None:
        self._slots = np.zeros(2 * words, np.int64)
        self._entries = np.empty((words, s.ENTRY_SIZE), np.int64)
        self._word_text = np.zeros(text_bytes + s.PADDING, np.uint8)
        state = self.state
        state[s.SLOTS] = _address(self._slots)
        state[s.SLOT_COUNT] = len(self._slots)
        state[s.ENTRIES] = _address(self._entries)
        state[s.WORD_TEXT_USED] = _address(self._word_text)
        state[s.WORD_TEXT_END] = _address(self._word_text) + len(self._word_text)

    def _grow_words(self) -> None:
        count = int(self.state[s.ENTRY_COUNT])
        entries, text = self._entries, self._word_text
        used = int(self.state[s.WORD_TEXT_USED]) - _address(text)
        self._new_words(2 * len(entries), 2 * len(text))
        self._entries[:count] = entries[:count]
        self._entries[:count, s.WORD_START] += _address(self._word_text) - _address(text)
        self._word_text[:used] = text[:used]
        self.state[s.WORD_TEXT_USED] = _address(self._word_text) + used
        self._nodes[:, s.HOT_WORD] = 0  # the entries have moved
        s.place_words(_address(self.state))
