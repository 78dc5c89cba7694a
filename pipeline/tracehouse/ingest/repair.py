"""The one place where a damaged event list is repaired, shared by both readers.

A reader stops at the first byte that JSON does not allow and calls `repair` with the text from the
start of the item on. The answer says what to read in its place and where to go on. Only the text
up to the next event is ever looked at, so that a file with thousands of damages still streams.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from tracehouse.findings import Findings
from tracehouse.ingest import oversize, scanner
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.mend import TOP_KEYS, Mended, mend

# An event that is damaged is looked for its end in as much text as this, and no further.
WINDOW_BYTES = 1 << 20
_LOOKS = (1 << 12, 1 << 16, 2 * WINDOW_BYTES)  # most events are short

_KEY = rf'"(?:{"|".join(TOP_KEYS)})"\s*:'.encode()
# The start of an event; what stands behind a key is an object inside one.
_EVENT = re.compile(rb"((?:\"\s*:)?)\s*(\{\s*" + _KEY + rb")")
# The end of the list: behind an event, with keys of the envelope, its end, or nothing to follow.
_LIST_END = re.compile(rb'\}[\s,]*\](?=\s*(?:,\s*"[^"\\]{0,80}"\s*:|,?\s*\}|\Z))|\](?=\s*\}\s*\Z)')
# The end of the document, or another one.
_DOCUMENT_END = re.compile(rb"\s*(?:\Z|\{\s*\"(?!(?:ph|cat)\"))")
# The head of another document: a second writer shares the file (field_cases F24).
_HEADER = re.compile(
    rb'\{\s*"(?:schemaVersion|traceEvents|deviceProperties|distributedInfo|displayTimeUnit'
    rb'|baseTimeNanoseconds)"\s*:'
)
# Text between events that holds nothing of an event: a comment, a mark, what a tool put there.
_NO_EVENT = re.compile(rb'[^{}\[\]"\x00]*')
# Many of one separator: all but some are passed over at once.
_RUN = re.compile(rb"(?:,\s*){64,}|(?:[\]}]\s*){64,}")
_RUN_LEFT = 32
_BEFORE_EVENT = (b",", b"}", b"]", b"[")
_SHOWN = 160
_LOOK_BEHIND = 128  # of text behind a bracket tells what it ends


class Expect(Enum):
    """What an event list goes on with; the values are the scanner's."""

    FIRST_OR_END = scanner.FIRST_OR_END
    COMMA_OR_END = scanner.COMMA_OR_END
    VALUE = scanner.VALUE


class Then(Enum):
    """What a reader does after a repair."""

    GO_ON = auto()  # read on at `end`, expecting `expect`
    READ_MORE = auto()  # the text ends before the damage does: repair again with more of it
    LIST_ENDED = auto()  # the list ends at `end`; the text behind it is the document's
    STOP = auto()  # nothing behind can be trusted, or nothing is there


@dataclass(frozen=True, slots=True)
class Repair:
    """What was found at a damage.

    event: the event that stood there, as valid JSON; None if there is none. dropped: whether an
    of the list was lost. codes: what was wrong, and how often. example: the text, shortened.
    """

    then: Then
    end: int
    expect: Expect = Expect.COMMA_OR_END
    event: bytes | None = None
    dropped: bool = False
    codes: Counter[str] = field(default_factory=Counter)
    example: str = ""


def repair_at(cursor: Cursor, at: int, expect: Expect) -> Repair:
    """Repair what stands at position `at` of a cursor's text, where the answer's `end` is one too.

    A cursor that is not complete is asked for more text by READ_MORE, never read here: its reader
    may still need the text at hand.
    """
    if (deep := _too_deep(cursor, at)) is not None:
        return deep
    for size in _LOOKS:
        end = min(at + size, cursor.end)
        is_all = cursor.complete and end == cursor.end
        found = repair(cursor.text[at:end].tobytes(), expect, is_all)
        if found.then is not Then.READ_MORE or end == cursor.end:
            break
    return replace(found, end=at + found.end)


def _too_deep(cursor: Cursor, at: int) -> Repair | None:
    """Pass over an event that is whole, but nested deeper than is read; None if that is not it."""
    window = cursor.text[at : min(at + _LOOKS[1], cursor.end)].tobytes()
    if window[:1] != b"{" or window.count(b"[") + window.count(b"{") <= scanner.MOST_DEPTH:
        return None
    end, depth = scanner.item_end(cursor.text, at, cursor.end)
    if depth <= scanner.MOST_DEPTH + 1:
        return None
    if end == 0:
        may_go_on = not cursor.complete and cursor.end - at <= 2 * cursor.limits.event_bytes
        return Repair(Then.READ_MORE, at, Expect.VALUE) if may_go_on else None
    behind = cursor.text[end : end + _LOOK_BEHIND].tobytes().lstrip(b" \t\r\n")
    if behind[:1] not in (b",", b"]", b""):
        return None
    return _dropped(window, end)


def read_more(cursor: Cursor, findings: Findings, event_id: int) -> None:
    """Bring the next block; an event that has outgrown the size limit is shortened instead."""
    if cursor.end - cursor.at > cursor.limits.event_bytes and oversize.shorten(cursor):
        findings.add("OVERSIZE_EVENT", event_id=event_id)
    else:
        cursor.more()


def is_endless(cursor: Cursor, at: int | None = None) -> bool:
    """Whether an item that starts at `at` (the cursor's place) has no end, yet events follow it.

    Its brackets are unbalanced: at the end of the text that is certain, and so it is taken to be
    after twice the size limit of an event.
    """
    at = cursor.at if at is None else at
    length = cursor.end - at
    if length > 2 * cursor.limits.event_bytes:
        return True
    if not cursor.complete or not length:
        return False
    return _next_event(cursor.text[at : min(at + WINDOW_BYTES, cursor.end)].tobytes(), 1) >= 0


def repair(text: bytes, expect: Expect, is_all: bool) -> Repair:
    """Repair what `text` begins with.

    `text` starts where the list can no longer be read: at a separator, or at the start of an item
    that is damaged somewhere. It is the rest of the file if `is_all`, else the part of it at hand.
    """
    start = len(text) - len(text.lstrip(b" \t\r\n"))
    first = text[start : start + 1]
    behind = text[start + 1 :].lstrip(b" \t\r\n")
    if not first or (len(behind) < _LOOK_BEHIND and not is_all):
        return Repair(Then.STOP if is_all else Then.READ_MORE, 0, expect)
    if expect is Expect.COMMA_OR_END:
        match = _EVENT.match(text, start)
        if match and not match[1]:
            return _syntax(text, start, Expect.VALUE)  # a missing comma
        if first == b"}" and _DOCUMENT_END.match(behind):
            return _syntax(text, start, expect, Then.LIST_ENDED)  # the list's own `]` is missing
        if first in (b"}", b"]"):
            return _too_many(text, start, expect)
    elif first == b",":
        return _too_many(text, start, Expect.VALUE)
    elif first == b"]":
        if _ends_list(behind):
            return _syntax(text, start + 1, expect, Then.LIST_ENDED)  # behind a comma
        return _syntax(text, start + 1, Expect.VALUE)
    if first == b"{" and expect is not Expect.COMMA_OR_END:
        return _item(text, start, is_all)
    if first == b"[" and not _ends_list(behind):
        return _syntax(text, start + 1, Expect.VALUE)  # a list in the list
    return _stranger(text, start, is_all)


def _ends_list(behind: bytes) -> bool:
    """Whether a bracket with `behind` behind it is not one too many: no event follows."""
    match = _EVENT.match(behind.lstrip(b", \t\r\n]"))
    return match is None or bool(match[1])


def _next_event(text: bytes, start: int) -> int:
    """The position of the next event in `text` from `start` on; -1 if there is none."""
    for match in _EVENT.finditer(text, start):
        if not match[1]:
            return match.start(2)
    return -1


def _syntax(text: bytes, end: int, expect: Expect, then: Then = Then.GO_ON) -> Repair:
    return Repair(
        then,
        end,
        expect,
        codes=Counter(REPAIRED_SYNTAX=1),
        example=_shown(text[max(end - 20, 0) :]),
    )


def _too_many(text: bytes, start: int, expect: Expect) -> Repair:
    """Leave out a separator, or most of many."""
    run = _RUN.match(text, start)
    if run is None:
        return _syntax(text, start + 1, expect)
    run_end = run.end() - _RUN_LEFT
    count = len(text[start:run_end].translate(None, b" \t\r\n\v\f"))
    return replace(_syntax(text, run_end, expect), codes=Counter(REPAIRED_SYNTAX=count))


def _item(text: bytes, start: int, is_all: bool) -> Repair:
    """Repair an event that is damaged somewhere."""
    window = text[start : start + WINDOW_BYTES]
    following = _next_event(window, 1)
    own = window if following < 0 else window[:following]
    header = _HEADER.search(own, 1)
    if header:
        return _interleaved(start, own[header.start() :])
    is_whole = is_all or len(text) - start >= WINDOW_BYTES
    if following < 0 and not is_whole:
        return Repair(Then.READ_MORE, start)
    mended = _mended(own, following, strict=False)
    if mended is None and own.rstrip(b" \t\r\n")[-1:] not in _BEFORE_EVENT and following >= 0:
        # What looks like the next event may stand in a text of this one.
        behind = _next_event(window, following + 1)
        longer = window if behind < 0 else window[:behind]
        mended = _mended(longer, behind, strict=True)
        own = own if mended is None else longer
    if mended is not None:
        event, event_end = mended
        return Repair(
            Then.GO_ON,
            start + event_end,
            event=event.text.encode(),
            codes=+event.codes,
            example=_shown(own),
        )
    if following >= 0:
        return _dropped(own, start + following, Expect.VALUE)
    end = _LIST_END.search(window)
    if end:
        return _dropped(own, start + end.end() - 1)
    if is_all and len(text) - start < WINDOW_BYTES:
        # Nothing tells a damaged last event from one that was cut off.
        return Repair(Then.STOP, start)
    return _dropped(own, start + len(window))


def _mended(own: bytes, following: int, strict: bool) -> tuple[Mended, int] | None:
    """Mend the event that is all of `own` (or its start, if none follows): it and its end."""
    text = own.decode(errors="replace")
    mended = mend(text, strict)
    if mended is None:
        return None
    end = len(text[: mended.end].encode())
    return None if following >= 0 and own[end:].strip(b" \t\r\n,") else (mended, end)


def _stranger(text: bytes, start: int, is_all: bool) -> Repair:
    """Go past text that is neither separator nor event, to an event or the end of the list."""
    window = text[start : start + WINDOW_BYTES]
    following = _next_event(window, 0)
    own = window if following < 0 else window[:following]
    header = _HEADER.search(own)
    if header:
        return _interleaved(start, own[header.start() :])
    if following >= 0:
        if _NO_EVENT.fullmatch(own):
            return _syntax(text, start + following, Expect.VALUE)
        return _dropped(own, start + following, Expect.VALUE)
    if not is_all and len(text) - start < WINDOW_BYTES:
        return Repair(Then.READ_MORE, start)
    end = _LIST_END.search(window)
    if end:
        return _dropped(own, start + end.end() - 1)
    if is_all and len(text) - start <= WINDOW_BYTES:
        return Repair(Then.STOP, start)
    return Repair(Then.GO_ON, start + len(window), Expect.COMMA_OR_END)


def _interleaved(start: int, text: bytes) -> Repair:
    codes = Counter(INTERLEAVED_WRITERS=1)
    return Repair(Then.STOP, start, codes=codes, example=_shown(text))


def _dropped(own: bytes, end: int, expect: Expect = Expect.COMMA_OR_END) -> Repair:
    return Repair(
        Then.GO_ON, end, expect, dropped=True, codes=Counter(DROPPED_EVENT=1), example=_shown(own)
    )


def _shown(text: bytes) -> str:
    return text[:_SHOWN].decode(errors="replace")
