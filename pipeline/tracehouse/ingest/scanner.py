"""The compiled scanner: from the bytes of an event list straight to columns.

One routine, `scan`, walks the text of an event list and fills records: numbers from their digits,
words as dictionary codes, `args` as compact JSON text. It is strict: a byte that JSON does not
allow stops it, and the caller decides. Values that are valid but not ordinary (exponents, `\\u`
escapes, doubled keys, numbers in quotes …) mark their event as *odd*; the caller reads odd events
again with `tracehouse.ingest.fields.row_of`, which defines what an event means.

Three ideas make it fast. Strings are searched 32 bytes at a time. The keys of an event are compared
with the keys of the event before it (a trie of key sequences): a trace has some twenty different
sequences, so nearly every key costs one comparison and no look-up, and a key that stands twice is
found when its sequence is first seen. Distinct words are found by a hash table over the bytes and
decoded once each by the caller.

The routines work on addresses, as C does: arrays passed between numba routines cost a copy of their
descriptor and a reference count each time, four fifths of the whole when this was measured.
`Scanner` in `reader_scan` owns the memory. A buffer that is read is followed by at least PADDING
zero bytes: JSON allows no zero byte, so no loop needs a bound. All tables are of int64; a node, an
entry, a record is known by its address, 0 is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tracehouse.compiled import njit

PADDING = 64

# Results of `scan`.
MORE = 0  # the text ends inside the list: more bytes are needed from POSITION on
FULL = 1  # the records or one of the tables are full: take or grow them, then go on at POSITION
DONE = 2  # the list has ended; POSITION is behind its `]`
BAD = (
    3  # JSON does not allow the byte at FAILED_AT; POSITION is the start of the event it stands in
)

# Slots of the state: first what the caller sets, then what the scanner keeps.
(
    TEXT,  # address of the text
    END,  # address behind its last byte
    RECORDS,  # address of the records, CAPACITY of them
    ARGS_TEXT,  # address of the room for compact args; as large as the text, and PADDING
    EXTRA_TEXT,  # the same for extra
    KNOWN,  # address of the known keys: KNOWN_SIZE each
    KNOWN_COUNT,
    IDS,  # bit c is set if word column c is a pid or tid
    NODES,  # address of the trie's nodes
    NODES_END,
    KEY_TEXT,  # address of the room for the trie's keys
    KEY_TEXT_END,
    SLOTS,  # address of the hash table's slots
    SLOT_COUNT,  # a power of two
    ENTRIES,  # address of the words
    WORD_TEXT_END,  # address behind the room for the words' bytes
    WORD_COUNTS,  # address of the number of distinct words per column
    POSITION,  # address of the next byte
    ROWS,  # records filled
    EXPECT,
    FAILED_AT,
    NODE_COUNT,
    KEY_TEXT_USED,
    ENTRY_COUNT,
    WORD_TEXT_USED,
    ARGS_USED,  # address behind the last byte written
    EXTRA_USED,
    STATE_SIZE,
) = range(28)

# Values of EXPECT.
FIRST_OR_END, COMMA_OR_END, VALUE = range(3)

# A node of the trie of key sequences. FIRST, SIBLING: child list; HOT: the child met last; INNER:
# root of the keys inside an args object; START, LENGTH: the key with its quotes; KIND, COLUMN: what
# it fills; ODD: it makes its event odd. HOT_WORD: the word that its value was last. LEAD,
# LEAD_LENGTH: how the key stood when it was first met, from behind the comma or bracket before it
# to its value, with all white space; of no length if that was long.
FIRST, SIBLING, HOT, INNER, PARENT, START, LENGTH, KIND, COLUMN, ODD_KEY = range(10)
HOT_WORD, LEAD, LEAD_LENGTH, NODE_SIZE = range(10, 14)
_EMPTY = -2  # no node
_LONGEST_LEAD = PADDING - 8  # it is compared eight bytes at a time

# A known key: address and length of its text (keys of LEVEL 1, inside args, in lower case: they
# match in any), what it means and which column it fills.
KNOWN_START, KNOWN_LENGTH, KNOWN_LEVEL, KNOWN_KIND, KNOWN_COLUMN, KNOWN_SIZE = range(6)
UNKNOWN, WORD, TIME, ID, ARGS, ARG_INTEGER, ARG_TEXT = range(7)

# A distinct word: hash, address and length of its bytes, its column, its code there.
HASH, WORD_START, WORD_LENGTH, WORD_COLUMN, WORD_CODE, ENTRY_SIZE = range(6)

# A record: which fields are there (bits), how odd it is, where the event stood, where its args and
# extra end in their rooms; then the number columns and the word columns. The records stand in
# columns: a field's slot is a multiple of CAPACITY, and record `row` is at RECORDS + 8 * row.
# CAPACITY is no power of two, so that the columns don't fall on the same lines of the cache.
CAPACITY = 30_011
HAS, ODDNESS, EVENT_START, EVENT_END, ARGS_END, EXTRA_END, NUMBERS = (
    field * CAPACITY for field in range(7)
)
MOST_NUMBERS = 16
CODES = NUMBERS + MOST_NUMBERS * CAPACITY
MOST_WORDS = 24
RECORD_FIELDS = 7 + MOST_NUMBERS + MOST_WORDS - 1
DURATION = 1  # the number column that may not be negative (fields.NUMBER_COLUMNS)
# Bits of HAS: number column c is bit c, word column c is bit WORD_BIT + c.
WORD_BIT = MOST_NUMBERS
ARGS_BIT = WORD_BIT + MOST_WORDS
EXTRA_BIT = ARGS_BIT + 1
# Values of ODDNESS.
ORDINARY, ODD, NOT_AN_EVENT = range(3)

# How unusual a number is (bits): its text is not the canonical one; its value does not fit the
# column.
ODD_TEXT, ODD_VALUE = 1, 2
# What rounding to thousandths did: it is an integer and was not scaled; nothing; something.
INTEGER, EXACT, ROUNDED = range(3)
_MOST_WHOLE_US = 9_223_372_036_854_774  # the most microseconds that fit 63 bits of nanoseconds
MOST_DEPTH = 60  # of a value; deeper ones are not read
MOST_KEYS = 512  # of an object of the trie; what has more is odd
_LONGEST_NUMBER = 400  # longer ones are odd (fields.MAX_PLAIN_DIGITS)


def _pointer(builder: Any, address: Any, to: Any) -> Any:
    return builder.inttoptr(address, to.as_pointer())


@intrinsic
def special32(typing_context: Any, address: Any) -> Any:
    """Bit k is set where the byte at address + k is a quote, a backslash or a control character."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), 32)
        loaded = builder.load(_pointer(builder, args[0], vector), align=1)
        quote = builder.icmp_unsigned("==", loaded, ir.Constant(vector, [34] * 32))
        backslash = builder.icmp_unsigned("==", loaded, ir.Constant(vector, [92] * 32))
        control = builder.icmp_unsigned("<", loaded, ir.Constant(vector, [32] * 32))
        return builder.bitcast(builder.or_(builder.or_(quote, backslash), control), ir.IntType(32))

    return types.uint32(types.int64), build


@intrinsic
def not_space32(typing_context: Any, address: Any) -> Any:
    """Bit k is set where the byte at address + k is no JSON white space."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), 32)
        loaded = builder.load(_pointer(builder, args[0], vector), align=1)
        is_space = builder.icmp_unsigned("==", loaded, ir.Constant(vector, [32] * 32))
        for space in (10, 13, 9):
            same = builder.icmp_unsigned("==", loaded, ir.Constant(vector, [space] * 32))
            is_space = builder.or_(is_space, same)
        return builder.bitcast(builder.not_(is_space), ir.IntType(32))

    return types.uint32(types.int64), build


@intrinsic
def first_bit(typing_context: Any, mask: Any) -> Any:
    """Position of the lowest set bit of a 32-bit mask that is not 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.zext(zeros, ir.IntType(64))

    return types.int64(types.uint32), build


@intrinsic
def byte_at(typing_context: Any, address: Any) -> Any:
    """The byte at an address, as int64."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = builder.load(_pointer(builder, args[0], ir.IntType(8)))
        return builder.zext(loaded, ir.IntType(64))

    return types.int64(types.int64), build


@intrinsic
def put_byte(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the low 8 bits of `value` to an address."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(
            builder.trunc(args[1], ir.IntType(8)), _pointer(builder, args[0], ir.IntType(8))
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


@intrinsic
def eight_at(typing_context: Any, address: Any) -> Any:
    """The 8 bytes at an address of any alignment, as one number."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, args[0], ir.IntType(64)), align=1)

    return types.uint64(types.int64), build


@intrinsic
def copy16(typing_context: Any, to: Any, source: Any) -> Any:
    """Copy 16 bytes from one address to another."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), 16)
        loaded = builder.load(_pointer(builder, args[1], vector), align=1)
        builder.store(loaded, _pointer(builder, args[0], vector), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


@intrinsic
def get(typing_context: Any, table: Any, slot: Any) -> Any:
    """Slot `slot` of the int64 table at an address."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = _pointer(builder, args[0], ir.IntType(64))
        return builder.load(builder.gep(base, [args[1]]))

    return types.int64(types.int64, types.int64), build


@intrinsic
def put(typing_context: Any, table: Any, slot: Any, value: Any) -> Any:
    """Set slot `slot` of the int64 table at an address."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = _pointer(builder, args[0], ir.IntType(64))
        builder.store(args[2], builder.gep(base, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@njit
def _copy(to: int, source: int, length: int) -> None:
    """Copy `length` bytes, and up to 15 more that the next copy overwrites."""
    done = 0
    while done < length:
        copy16(to + done, source + done)
        done += 16


@njit
def _same(a: int, b: int, length: int) -> bool:
    """Whether two texts of one length are equal."""
    done = 0
    while done + 8 <= length:
        if eight_at(a + done) != eight_at(b + done):
            return False
        done += 8
    rest = length - done
    if rest == 0:
        return True
    unwanted = np.uint64(64 - 8 * rest)
    return ((eight_at(a + done) ^ eight_at(b + done)) << unwanted) == np.uint64(0)


@njit
def _skip_space(at: int) -> int:
    """The first position from `at` on that is no JSON white space."""
    if byte_at(at) > 32:
        return at
    while True:
        mask = not_space32(at)
        if mask != 0:
            return at + first_bit(mask)
        at += 32


@njit
def _string(state: int, at: int) -> tuple[int, int]:
    """Walk a string from behind its opening quote.

    Returns the position of the closing quote (0: invalid, see FAILED_AT) and what it held: 1 any
    escape, 2 an escape that the canonical text does not use.
    """
    seen = 0
    while True:
        mask = special32(at)
        if mask == 0:
            at += 32
            continue
        at += first_bit(mask)
        c = byte_at(at)
        if c == 34:
            return at, seen
        if c != 92:
            put(state, FAILED_AT, at)
            return 0, seen
        seen |= 1
        c = byte_at(at + 1)
        if c == 117:  # \uXXXX
            seen |= 2
            for k in range(2, 6):
                c = byte_at(at + k)
                if not (48 <= c <= 57 or 97 <= c <= 102 or 65 <= c <= 70):
                    put(state, FAILED_AT, at + k)
                    return 0, seen
            at += 6
        elif c == 34 or c == 92 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116:
            at += 2
        elif c == 47:  # \/
            seen |= 2
            at += 2
        else:
            put(state, FAILED_AT, at + 1)
            return 0, seen


@njit
def _number(state: int, at: int) -> tuple[int, int, int, int]:
    """Read a number.

    Returns the position behind it (0: invalid); its value: of an integer the value itself, else
    thousandths, rounded half up; INTEGER, EXACT or ROUNDED; and how odd it is.
    """
    start = at
    negative = byte_at(at) == 45
    if negative:
        at += 1
    c = byte_at(at)
    if c < 48 or c > 57:
        put(state, FAILED_AT, at)
        return 0, 0, 0, 0
    value = 0
    first = at
    while 48 <= c <= 57:
        value = value * 10 + (c - 48)
        at += 1
        c = byte_at(at)
    digits = at - first
    if digits > 1 and byte_at(first) == 48:
        put(state, FAILED_AT, first + 1)
        return 0, 0, 0, 0
    odd = ODD_VALUE if digits > 18 else 0
    if c != 46 and c != 101 and c != 69:
        if (negative and value == 0) or digits > _LONGEST_NUMBER:
            odd |= ODD_TEXT
        return at, (-value if negative else value), INTEGER, odd
    if value > _MOST_WHOLE_US:
        odd |= ODD_VALUE
    rounding = EXACT
    kept = 0
    half_up = 0
    if c == 46:
        at += 1
        first = at
        c = byte_at(at)
        while 48 <= c <= 57:
            if kept < 3:
                value = value * 10 + (c - 48)
            else:
                if kept == 3 and c >= 53:
                    half_up = 1
                if c != 48:
                    rounding = ROUNDED
            kept += 1
            at += 1
            c = byte_at(at)
        if at == first:
            put(state, FAILED_AT, at)
            return 0, 0, 0, 0
    while kept < 3:
        value *= 10
        kept += 1
    value += half_up
    if negative and rounding == ROUNDED:
        odd |= ODD_VALUE
    if at - start > _LONGEST_NUMBER:
        odd |= ODD_TEXT
    if c == 101 or c == 69:
        odd = ODD_TEXT | ODD_VALUE
        at += 1
        if byte_at(at) == 43 or byte_at(at) == 45:
            at += 1
        c = byte_at(at)
        if c < 48 or c > 57:
            put(state, FAILED_AT, at)
            return 0, 0, 0, 0
        while 48 <= c <= 57:
            at += 1
            c = byte_at(at)
    return at, (-value if negative else value), rounding, odd


@njit
def _literal(state: int, at: int) -> int:
    """Walk `true`, `false` or `null`; returns the position behind it, 0 if invalid."""
    c = byte_at(at)
    if c == 116:
        expected = 0x65757274  # "true", last letter first
        length = 4
    elif c == 110:
        expected = 0x6C6C756E
        length = 4
    elif c == 102:
        expected = 0x65736C6166
        length = 5
    else:
        put(state, FAILED_AT, at)
        return 0
    for k in range(length):
        if byte_at(at + k) != (expected >> (8 * k)) & 255:
            put(state, FAILED_AT, at + k)
            return 0
    return at + length


@njit
def _container(state: int, at: int, out: int) -> tuple[int, int, bool]:
    """Walk an array or object of depth up to MOST_DEPTH and write it compactly to `out`.

    Returns the position behind it (0: invalid), the address behind what was written, and whether it
    is odd: it holds an object, whose keys may be doubled, or an unusual escape or number.
    """
    stack = 0  # one bit a level: 1 an object
    depth = 0
    odd = False
    want = 0  # 0 value or end, 1 value, 2 key or end, 3 key, 4 comma or end
    while True:
        c = byte_at(at)
        if c == 32 or c == 10 or c == 13 or c == 9:
            at = _skip_space(at)
            continue
        in_object = depth > 0 and (stack & 1) == 1
        if want == 4:
            if c == 44:
                put_byte(out, 44)
                out += 1
                at += 1
                want = 3 if in_object else 1
                continue
            if (c == 93 and not in_object) or (c == 125 and in_object):
                put_byte(out, c)
                out += 1
                at += 1
                depth -= 1
                stack >>= 1
                if depth == 0:
                    return at, out, odd
                continue
            put(state, FAILED_AT, at)
            return 0, out, odd
        if want == 2 or want == 3:
            if c == 125 and want == 2:
                want = 4
                continue
            if c != 34:
                put(state, FAILED_AT, at)
                return 0, out, odd
            end, seen = _string(state, at + 1)
            if end == 0:
                return 0, out, odd
            odd = odd or (seen & 2) != 0
            _copy(out, at, end + 1 - at)
            out += end + 1 - at
            at = _skip_space(end + 1)
            if byte_at(at) != 58:
                put(state, FAILED_AT, at)
                return 0, out, odd
            put_byte(out, 58)
            out += 1
            at += 1
            want = 1
            continue
        if c == 93 and want == 0 and depth > 0:
            want = 4
            continue
        if c == 91 or c == 123:
            if depth == MOST_DEPTH:
                put(state, FAILED_AT, at)
                return 0, out, True
            put_byte(out, c)
            out += 1
            at += 1
            depth += 1
            stack <<= 1
            want = 0
            if c == 123:
                stack |= 1
                odd = True
                want = 2
            continue
        if c == 34:
            end, seen = _string(state, at + 1)
            if end == 0:
                return 0, out, odd
            odd = odd or (seen & 2) != 0
            end += 1
        elif c == 45 or 48 <= c <= 57:
            end, _, _, oddness = _number(state, at)
            odd = odd or (oddness & ODD_TEXT) != 0
        else:
            end = _literal(state, at)
        if end == 0:
            return 0, out, odd
        _copy(out, at, end - at)
        out += end - at
        at = end
        want = 4


@njit
def _plain_list(at: int, out: int) -> tuple[int, int]:
    """Walk an array of nothing but plain integers and plain texts, nested at will, from its `[`.

    Most arrays in args are such: shapes, types, values as text.
    Returns the position behind it and the address behind what was written; 0 if it holds anything
    else or is invalid, which `_container` will tell.
    """
    depth = 0
    value_next = True
    end_next = False
    while True:
        c = byte_at(at)
        if c <= 32:
            at = _skip_space(at)
            c = byte_at(at)
        if c == 44 and not value_next:
            value_next = True
            end_next = False
        elif c == 91 and value_next and depth < MOST_DEPTH:
            depth += 1
            end_next = True
        elif c == 93 and (end_next or not value_next):
            depth -= 1
            value_next = False
            end_next = False
            if depth == 0:
                put_byte(out, c)
                return at + 1, out + 1
        elif value_next and depth > 0 and c == 34:
            start = at
            at += 1
            mask = special32(at)
            while mask == 0:
                at += 32
                mask = special32(at)
            at += first_bit(mask)
            if byte_at(at) != 34:
                return 0, out
            at += 1
            _copy(out, start, at - start)
            out += at - start
            value_next = end_next = False
            continue
        elif value_next and depth > 0 and 48 <= c <= 57:
            if c == 48 and 48 <= byte_at(at + 1) <= 57:
                return 0, out
            while 48 <= c <= 57:
                put_byte(out, c)
                out += 1
                at += 1
                c = byte_at(at)
            value_next = end_next = False
            continue
        else:
            return 0, out
        put_byte(out, c)
        out += 1
        at += 1


@njit
def _value(state: int, at: int, out: int) -> tuple[int, int, bool]:
    """Walk any value and write it compactly to `out`.

    Position behind it (0: invalid), address behind, odd.
    """
    c = byte_at(at)
    odd = False
    if c == 34:
        end, seen = _string(state, at + 1)
        if end == 0:
            return 0, out, odd
        odd = (seen & 2) != 0
        end += 1
    elif c == 45 or 48 <= c <= 57:
        end, _, _, oddness = _number(state, at)
        odd = (oddness & ODD_TEXT) != 0
    elif c == 91 or c == 123:
        if c == 91:
            end, behind = _plain_list(at, out)
            if end != 0:
                return end, behind, odd
        return _container(state, at, out)
    else:
        end = _literal(state, at)
    if end == 0:
        return 0, out, odd
    _copy(out, at, end - at)
    return end, out + end - at, odd


@njit
def _hash(at: int, length: int, column: int) -> int:
    """A 64-bit hash of the bytes."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    other = np.uint64(0xD6E8FEB86659FD93)
    shift = np.uint64(32)
    h = (np.uint64(length) ^ (np.uint64(column + 1) << np.uint64(48))) * prime
    done = 0
    while done + 8 <= length:
        h = (h ^ eight_at(at + done)) * prime
        h ^= h >> shift
        done += 8
    rest = length - done
    if rest > 0:
        unwanted = np.uint64(64 - 8 * rest)
        h = (h ^ ((eight_at(at + done) << unwanted) >> unwanted)) * other
        h ^= h >> shift
    h *= other
    return np.int64(h ^ (h >> shift))  # type: ignore[return-value]


@njit
def _word(state: int, at: int, length: int, column: int) -> int:
    """The entry of a word in its column, made if it is new; 0 if a table must grow first."""
    h = _hash(at, length, column)
    slots = get(state, SLOTS)
    slot_count = get(state, SLOT_COUNT)
    place = h & (slot_count - 1)
    while True:
        entry = get(slots, place)
        if entry == 0:
            break
        if (
            get(entry, HASH) == h
            and get(entry, WORD_LENGTH) == length
            and get(entry, WORD_COLUMN) == column
            and _same(at, get(entry, WORD_START), length)
        ):
            return entry
        place = (place + 1) & (slot_count - 1)
    count = get(state, ENTRY_COUNT)
    used = get(state, WORD_TEXT_USED)
    if 2 * count >= slot_count or used + length + PADDING > get(state, WORD_TEXT_END):
        return 0
    entry = get(state, ENTRIES) + 8 * ENTRY_SIZE * count
    code = get(get(state, WORD_COUNTS), column)
    put(entry, HASH, h)
    put(entry, WORD_START, used)
    put(entry, WORD_LENGTH, length)
    put(entry, WORD_COLUMN, column)
    put(entry, WORD_CODE, code)
    put(slots, place, entry)
    _copy(used, at, length)
    put(get(state, WORD_COUNTS), column, code + 1)
    put(state, ENTRY_COUNT, count + 1)
    put(state, WORD_TEXT_USED, used + length)
    return entry


@njit
def _meaning(state: int, at: int, length: int, level: int) -> int:
    """The known key that the key at `at` (without quotes) is; 0 if it has no meaning."""
    known = get(state, KNOWN)
    for _ in range(get(state, KNOWN_COUNT)):
        if get(known, KNOWN_LENGTH) == length and get(known, KNOWN_LEVEL) == level:
            start = get(known, KNOWN_START)
            k = 0
            while k < length:
                c = byte_at(at + k)
                if level == 1 and 65 <= c <= 90:
                    c += 32
                if c != byte_at(start + k):
                    break
                k += 1
            if k == length:
                return known
        known += 8 * KNOWN_SIZE
    return 0


@njit
def _new_node(state: int, parent: int) -> int:
    """A node without key or children; 0 if the trie is full."""
    count = get(state, NODE_COUNT)
    node = get(state, NODES) + 8 * NODE_SIZE * count
    if node + 8 * NODE_SIZE > get(state, NODES_END):
        return 0
    put(state, NODE_COUNT, count + 1)
    for slot in range(NODE_SIZE):
        put(node, slot, 0)
    put(node, PARENT, parent)
    return node


@njit
def _new_key(state: int, at: int, length: int, escapes: int, parent: int, level: int) -> int:
    """Enter the key at `at` (with quotes) below `parent`; 0 if the trie is full."""
    used = get(state, KEY_TEXT_USED)
    if used + length + 2 * PADDING > get(state, KEY_TEXT_END):
        return 0
    node = _new_node(state, parent)
    if node == 0:
        return 0
    _copy(used, at, length)
    put_byte(used + length, 58)  # so that key and colon are written at once
    put(state, KEY_TEXT_USED, used + length + 1)
    put(node, START, used)
    put(node, LENGTH, length)
    put(node, SIBLING, get(parent, FIRST))
    put(parent, FIRST, node)
    known = _meaning(state, at + 1, length - 2, level)
    if known != 0:
        put(node, KIND, get(known, KNOWN_KIND))
        put(node, COLUMN, get(known, KNOWN_COLUMN))
    odd = escapes
    above = parent
    while get(above, LENGTH) != 0:
        if get(above, LENGTH) == length and _same(at, get(above, START), length):
            odd = 1
        above = get(above, PARENT)
    put(node, ODD_KEY, odd)
    return node


@njit
def _other_key(state: int, at: int, parent: int, level: int) -> int:
    """Match a key that is not the one met last below `parent`.

    Its node; 0 if invalid, -1 if the trie is full.
    """
    if byte_at(at) != 34:
        put(state, FAILED_AT, at)
        return 0
    end, escapes = _string(state, at + 1)
    if end == 0:
        return 0
    length = end + 1 - at
    node = get(parent, FIRST)
    while node != 0:
        if get(node, LENGTH) == length and _same(at, get(node, START), length):
            break
        node = get(node, SIBLING)
    if node == 0:
        node = _new_key(state, at, length, escapes, parent, level)
        if node == 0:
            return -1
    put(parent, HOT, node)
    return node


@njit
def _key(state: int, at: int, parent: int, level: int) -> int:
    """Match the key at `at` below `parent`.

    Its node; 0 if it is invalid, -1 if the trie is full.
    """
    node = get(parent, HOT)
    if node != 0 and _same(at, get(node, START), get(node, LENGTH)):
        return node
    return _other_key(state, at, parent, level)


@njit
def _colon(state: int, at: int) -> int:
    """Walk the colon behind a key and the space around it: position of the value, 0 if invalid."""
    if byte_at(at) != 58:
        at = _skip_space(at)
        if byte_at(at) != 58:
            put(state, FAILED_AT, at)
            return 0
    at += 1
    return _skip_space(at) if byte_at(at) <= 32 else at


@njit
def _as_before(at: int, parent: int) -> int:
    """The key met last below `parent` if it stands at `at` as it did when it was new; else 0."""
    node = get(parent, HOT)
    if node == 0:
        return 0
    length = get(node, LEAD_LENGTH)
    return node if length != 0 and _same(at, get(node, LEAD), length) else 0


@njit
def _keep_lead(state: int, node: int, start: int, at: int) -> None:
    """Keep what stands from behind a comma to the value of the key `node`, if there is room."""
    used = get(state, KEY_TEXT_USED)
    length = at - start
    if length > _LONGEST_LEAD or used + length + PADDING > get(state, KEY_TEXT_END):
        return
    _copy(used, start, length)
    put(state, KEY_TEXT_USED, used + length)
    put(node, LEAD, used)
    put(node, LEAD_LENGTH, length)


@njit
def _key_anew(state: int, at: int, parent: int, level: int, is_first: bool) -> tuple[int, int]:
    """Walk from behind a comma or bracket to the value of the key that stands there.

    Its node below `parent` (0 invalid, -1 the trie is full, _EMPTY: the object ends before its
    first key), and the position of the value, or behind the object.
    """
    lead = at
    at = _skip_space(at)
    if is_first and byte_at(at) == 125:
        return _EMPTY, at + 1
    node = _key(state, at, parent, level)
    if node <= 0:
        return node, at
    at = _colon(state, at + get(node, LENGTH))
    if at == 0:
        return 0, at
    if get(node, LEAD_LENGTH) == 0:
        _keep_lead(state, node, lead, at)
    return node, at


@njit
def _args(state: int, at: int, node: int, record: int) -> tuple[int, bool]:
    """Walk an args object from its `{`: position behind it (0 invalid, -1 a table is full), odd."""
    out = start_out = get(state, ARGS_USED)
    start = at
    keys = 0
    odd = False
    here = get(node, INNER)
    if here == 0:
        here = _new_node(state, 0)
        if here == 0:
            return -1, odd
        put(node, INNER, here)
    put_byte(out, 123)
    out += 1
    at += 1
    while True:
        keys += 1
        if keys > MOST_KEYS:
            at, out, _ = _container(state, start, start_out)
            if at != 0:
                put(state, ARGS_USED, out)
            return at, True
        known = _as_before(at, here)
        if known != 0:
            here = known
            at += get(here, LEAD_LENGTH)
            if byte_at(at) <= 32:
                at = _skip_space(at)
        else:
            here, at = _key_anew(state, at, here, 1, keys == 1)
            if here == _EMPTY:
                put_byte(out, 125)
                put(state, ARGS_USED, out + 1)
                return at, odd
            if here <= 0:
                return here, odd
        length = get(here, LENGTH) + 1
        odd = odd or get(here, ODD_KEY) != 0
        _copy(out, get(here, START), length)
        out += length
        value_at = out
        kind = get(here, KIND)
        c = byte_at(at)
        if kind == ARG_INTEGER and (c == 45 or 48 <= c <= 57):
            end, value, rounding, oddness = _number(state, at)
            if end == 0:
                return 0, odd
            odd = odd or oddness != 0 or rounding != INTEGER
            _copy(out, at, end - at)
            out += end - at
            at = end
            column = get(here, COLUMN)
            put(record, NUMBERS + column * CAPACITY, value)
            put(record, HAS, get(record, HAS) | (1 << column))
        else:
            at, out, unusual = _value(state, at, out)
            if at == 0:
                return 0, odd
            odd = odd or unusual or kind == ARG_INTEGER
            if kind == ARG_TEXT:
                column = get(here, COLUMN)
                entry = get(here, HOT_WORD)
                if (
                    entry == 0
                    or get(entry, WORD_LENGTH) != out - value_at
                    or not _same(value_at, get(entry, WORD_START), out - value_at)
                ):
                    entry = _word(state, value_at, out - value_at, column)
                    if entry == 0:
                        return -1, odd
                    put(here, HOT_WORD, entry)
                put(record, CODES + column * CAPACITY, get(entry, WORD_CODE))
                put(record, HAS, get(record, HAS) | (1 << (WORD_BIT + column)))
        c = byte_at(at)
        if c != 44 and c != 125:
            at = _skip_space(at)
            c = byte_at(at)
        put_byte(out, c)
        out += 1
        at += 1
        if c == 125:
            put(state, ARGS_USED, out)
            return at, odd
        if c != 44:
            put(state, FAILED_AT, at - 1)
            return 0, odd


@njit
def _to_extra(state: int, node: int, at: int, record: int) -> tuple[int, bool]:
    """Write the key `node` and its value to the record's extra.

    Position behind the value (0: invalid), odd.
    """
    out = get(state, EXTRA_USED)
    has = get(record, HAS)
    if has & (1 << EXTRA_BIT):
        put_byte(out - 1, 44)
    else:
        put_byte(out, 123)
        out += 1
        put(record, HAS, has | (1 << EXTRA_BIT))
    length = get(node, LENGTH) + 1
    _copy(out, get(node, START), length)
    end, out, odd = _value(state, at, out + length)
    put_byte(out, 125)
    put(state, EXTRA_USED, out + 1)
    return end, odd


@njit
def _is_integer(at: int, end: int) -> bool:
    """Whether the text from `at` to `end` is an integer as JSON writes it."""
    if at < end and byte_at(at) == 45:
        at += 1
    if at >= end or (byte_at(at) == 48 and end - at > 1):
        return False
    while at < end:
        c = byte_at(at)
        if c < 48 or c > 57:
            return False
        at += 1
    return True


@njit
def _hot_word(start: int, is_text: bool, node: int) -> int:
    """Where the value at `start` (behind its quote) ends if it is the word met last at `node`.

    Else 0.
    """
    entry = get(node, HOT_WORD)
    if entry == 0 or not _same(start, get(entry, WORD_START), get(entry, WORD_LENGTH)):
        return 0
    end = start + get(entry, WORD_LENGTH)
    c = byte_at(end)
    if is_text:
        return end if c == 34 else 0
    return end if c == 44 or c == 125 or c == 10 or c == 32 else 0


@njit
def _top_word(state: int, at: int, node: int, record: int) -> tuple[int, bool]:
    """Read a word or, for a pid or tid, an integer.

    Position behind it (0 invalid, -1 a table is full), odd.
    """
    column = get(node, COLUMN)
    is_text = byte_at(at) == 34
    start = at + 1 if is_text else at
    odd = False
    end = _hot_word(start, is_text, node)
    entry = get(node, HOT_WORD)
    if end == 0:
        if is_text:
            end, seen = _string(state, start)
            # Its escapes may hide an integer.
            odd = (seen & 2) != 0 and (get(state, IDS) >> column) & 1 != 0
        else:
            end, _, rounding, oddness = _number(state, at)
            odd = (oddness & ODD_TEXT) != 0 or rounding != INTEGER
        if end == 0:
            return 0, odd
        entry = _word(state, start, end - start, column)
        if entry == 0:
            return -1, odd
        if not odd:
            put(node, HOT_WORD, entry)
    if is_text and (get(state, IDS) >> column) & 1 != 0 and _is_integer(start, end):
        _to_extra(state, node, at, record)
    put(record, CODES + column * CAPACITY, get(entry, WORD_CODE))
    put(record, HAS, get(record, HAS) | (1 << (WORD_BIT + column)))
    return end + 1 if is_text else end, odd


@njit
def _top_number(state: int, at: int, node: int, record: int) -> tuple[int, bool]:
    """Read a time or a flow id: position behind it (0 invalid), odd."""
    end, value, rounding, oddness = _number(state, at)
    if end == 0:
        return 0, False
    column = get(node, COLUMN)
    odd = oddness != 0
    if get(node, KIND) == ID:
        odd = odd or rounding != INTEGER
    elif rounding == INTEGER:
        odd = odd or value > _MOST_WHOLE_US or value < -_MOST_WHOLE_US
        value *= 1000
    elif rounding == ROUNDED:
        _to_extra(state, node, at, record)
    if column == DURATION and value < 0:
        odd = True
    put(record, NUMBERS + column * CAPACITY, value)
    put(record, HAS, get(record, HAS) | (1 << column))
    return end, odd


@njit
def _event(state: int, at: int, record: int) -> tuple[int, bool]:
    """Walk an event from its `{` into `record`.

    Position behind it (0 invalid, -1 a table is full), odd.
    """
    odd = False
    keys = 0
    start = at
    args_used = get(state, ARGS_USED)
    at += 1
    here = get(state, NODES)
    while True:
        keys += 1
        if keys > MOST_KEYS:
            put(state, ARGS_USED, args_used)
            at, _, _ = _container(state, start, args_used)
            return at, True
        known = _as_before(at, here)
        if known != 0:
            here = known
            at += get(here, LEAD_LENGTH)
            if byte_at(at) <= 32:
                at = _skip_space(at)
        else:
            here, at = _key_anew(state, at, here, 0, keys == 1)
            if here == _EMPTY:
                return at, odd
            if here <= 0:
                return here, odd
        odd = odd or get(here, ODD_KEY) != 0
        kind = get(here, KIND)
        c = byte_at(at)
        digit = c == 45 or 48 <= c <= 57
        if kind == WORD and (
            c == 34 or (digit and (get(state, IDS) >> get(here, COLUMN)) & 1 != 0)
        ):
            at, unusual = _top_word(state, at, here, record)
        elif (kind == TIME or kind == ID) and digit:
            at, unusual = _top_number(state, at, here, record)
        elif kind == ARGS:
            put(record, HAS, get(record, HAS) | (1 << ARGS_BIT))
            if c == 123:
                at, unusual = _args(state, at, here, record)
            else:
                at, out, unusual = _value(state, at, get(state, ARGS_USED))
                put(state, ARGS_USED, out)
        else:
            # A key without a column, or a value that its column cannot hold.
            at, unusual = _to_extra(state, here, at, record)
            unusual = unusual or kind != UNKNOWN
        if at <= 0:
            return at, odd
        odd = odd or unusual
        c = byte_at(at)
        if c != 44 and c != 125:
            at = _skip_space(at)
            c = byte_at(at)
        at += 1
        if c == 125:
            return at, odd
        if c != 44:
            put(state, FAILED_AT, at - 1)
            return 0, odd


@njit
def _item(state: int, at: int, record: int) -> int:
    """Walk an item of the list into `record`.

    Position behind it (0 invalid, -1 a table is full).
    """
    args_used = get(state, ARGS_USED)
    extra_used = get(state, EXTRA_USED)
    put(record, HAS, 0)
    if byte_at(at) == 123:
        behind, odd = _event(state, at, record)
        put(record, ODDNESS, ODD if odd else ORDINARY)
    elif byte_at(at) == 91:
        put(state, FAILED_AT, at)  # events may stand in it: the repair looks
        behind = 0
    else:
        behind, _, _ = _value(state, at, args_used)
        put(record, ODDNESS, NOT_AN_EVENT)
        # A number may go on in the text to come: only a byte behind it proves its end.
        if behind >= get(state, END) and byte_at(at) != 34:
            put(state, FAILED_AT, behind)
            behind = 0
    if behind <= 0:
        put(state, ARGS_USED, args_used)
        put(state, EXTRA_USED, extra_used)
        return behind
    put(record, EVENT_START, at)
    put(record, EVENT_END, behind)
    put(record, ARGS_END, get(state, ARGS_USED))
    put(record, EXTRA_END, get(state, EXTRA_USED))
    return behind


@njit
def scan(state: int) -> int:
    """Read events of an event list from POSITION on into the records, from record ROWS on.

    Shapes: state: the address of STATE_SIZE int64; see the slots above.
    Units:  times in ns.
    Needs:  the memory that the slots name, alive and large enough. Unchecked.
    Cost:   one pass, a fraction of a nanosecond a byte.
    Result: MORE, FULL, DONE or BAD; see their comments. Records and state hold all that was read
        before.
    """
    at = get(state, POSITION)
    end = get(state, END)
    row = get(state, ROWS)
    while True:
        at = _skip_space(at)
        put(state, POSITION, at)
        put(state, ROWS, row)
        if at >= end:
            return MORE
        c = byte_at(at)
        expect = get(state, EXPECT)
        if c == 93 and expect != VALUE:
            put(state, POSITION, at + 1)
            return DONE
        if expect == COMMA_OR_END:
            if c != 44:
                put(state, FAILED_AT, at)
                return BAD
            put(state, EXPECT, VALUE)
            at += 1
            continue
        if row >= CAPACITY:
            return FULL
        at = _item(state, at, get(state, RECORDS) + 8 * row)
        if at == -1:
            return FULL
        if at == 0:
            return MORE if get(state, FAILED_AT) >= end else BAD
        row += 1
        put(state, EXPECT, COMMA_OR_END)


@njit
def place_words(state: int) -> None:
    """Enter every word into the empty hash table, after it has grown. Cost: O(words)."""
    slots = get(state, SLOTS)
    slot_count = get(state, SLOT_COUNT)
    entry = get(state, ENTRIES)
    for _ in range(get(state, ENTRY_COUNT)):
        place = get(entry, HASH) & (slot_count - 1)
        while get(slots, place) != 0:
            place = (place + 1) & (slot_count - 1)
        put(slots, place, entry)
        entry += 8 * ENTRY_SIZE


@njit
def whole_items(text: Any, at: int, end: int) -> tuple[int, bool, int]:
    """Find the end of the last whole item of a list, looking at nothing but strings and brackets.

    Shapes: text: uint8; `at` between two items of the list.
    Cost:   about 1 ns a byte.
    Result: the position behind the last item that ends in text[at:end] (`at` if none does), and
        whether the list's `]` is the next thing behind it; and how deep brackets are nested.
    """
    depth = 0
    deepest = 0
    inside = False
    last = at
    while at < end:
        c = text[at]
        if inside:
            if c == 92:
                at += 1
            elif c == 34:
                inside = False
        elif c == 34:
            inside = True
        elif c == 91 or c == 123:
            depth += 1
            deepest = max(deepest, depth)
        elif c == 93 or c == 125:
            if depth == 0:
                return at, c == 93, deepest
            depth -= 1
            if depth == 0:
                last = at + 1
        elif c == 44 and depth == 0:
            last = max(last, at)
        at += 1
    return last, False, deepest


@njit
def item_end(text: Any, at: int, end: int) -> tuple[int, int]:
    """Find the end of the item at `at`, looking at nothing but strings and brackets.

    Shapes: text: uint8; text[at] is a `{` or `[`.
    Cost:   about 1 ns a byte.
    Result: the position behind its last bracket (0: not in text[at:end]), and how deep it is.
    """
    depth = 0
    deepest = 0
    inside = False
    while at < end:
        c = text[at]
        if inside:
            if c == 92:
                at += 1
            elif c == 34:
                inside = False
        elif c == 34:
            inside = True
        elif c == 91 or c == 123:
            depth += 1
            deepest = max(deepest, depth)
        elif c == 93 or c == 125:
            depth -= 1
            if depth == 0:
                return at + 1, deepest
        at += 1
    return 0, deepest


@njit
def skip_blank(text: Any, at: int) -> int:
    """The first position from `at` on that is no white space. Needs: there is one."""
    while text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9:
        at += 1
    return at


@njit
def find_list(text: Any, at: int, end: int, key: Any) -> int:
    """Find the array that stands under a key of the object at `at`, at depth 1.

    Shapes: text, key: uint8, the key without quotes.
    Cost:   about 1 ns a byte.
    Result: the position behind its `[`; -1 if text[at:end] ends before it is clear, -2 if the
        object ends without it.
    """
    depth = 0
    while at < end:
        c = text[at]
        if c == 34:
            start = at + 1
            at += 1
            while at < end and text[at] != 34:
                at += 2 if text[at] == 92 else 1
            if depth == 1 and at - start == len(key):
                same = True
                for k in range(len(key)):
                    same = same and text[start + k] == key[k]
                behind = at + 1
                for wanted in (58, 91):
                    while behind < end and (text[behind] == 32 or 9 <= text[behind] <= 13):
                        behind += 1
                    if same and behind >= end:
                        return -1
                    same = same and text[behind] == wanted
                    behind += 1
                if same:
                    return behind
        elif c == 91 or c == 123:
            depth += 1
        elif c == 93 or c == 125:
            depth -= 1
            if depth == 0:
                return -2
        at += 1
    return -1
