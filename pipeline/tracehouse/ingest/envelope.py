"""The envelope: every key of a trace file beside its event list, wherever it stands.

The text of a document is taken apart into head, event list and tail, without looking into the list;
head and tail together, with an empty list between them, are the envelope.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.scanner import find_list

EVENT_LIST = b"traceEvents"
_EVENT_LIST = np.frombuffer(EVENT_LIST, np.uint8)

# A string; an opening; a closing; a separator. All else (numbers, literals, space) lies between.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]|[:,]', re.DOTALL)
# An event, told from other objects by its phase.
_EVENT = re.compile(rb'\s*\{[^{}]{0,400}?"ph"\s*:\s*"[A-Za-z]"')
_EVENT_HEAD = 512  # of text tells whether it is an event
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_NOT_A_TRACE = "it holds no list of trace events (`traceEvents`, or a list of objects with `ph`)"


def take_head(cursor: Cursor, findings: Findings | None = None) -> bytes:
    """Move the cursor behind the `[` of the event list and return the text before and with it.

    JSON lines, an event a line without a list, are read as one. A document without events that
    stands before the trace is passed over. Where the keys before the list are so broken that their
    ends cannot be told, the first thing that looks like the list is taken for it. Raises
    RejectedFile NOT_A_TRACE if there is no event list at depth 1 and the document is no list.
    """
    findings = Findings() if findings is None else findings
    while True:
        if bytes(cursor.text[cursor.at : cursor.at + 1]) == b"[":
            cursor.at += 1
            return b"["
        if _starts_with_event(cursor):
            cursor.append(b"]")
            findings.add("REPAIRED_SYNTAX", example="events without a list around them")
            return b"["
        while (found := find_list(cursor.text, cursor.at, cursor.end, _EVENT_LIST)) == -1:
            _check_size(cursor)
            if not cursor.more():
                break
        if found >= 0:
            break
        # Not there, or hidden by a key that is broken, or in another document.
        while (match := _LIST.search(cursor.text.data, cursor.at, cursor.end)) is None:
            if cursor.end - cursor.at > cursor.limits.metadata_bytes or not cursor.more():
                break
        if match is None:
            raise _not_a_trace()
        length = _json_length(cursor.text[cursor.at : match.start()].tobytes())
        if length == 0:
            if _is_json(cursor.rest()):
                raise _not_a_trace()
            found = match.end()
            break
        findings.add("REPAIRED_SYNTAX", example="a document that is no trace stands before it")
        cursor.at += length
        cursor.skip_blank()
    head = cursor.text[cursor.at : found].tobytes()
    cursor.at = found
    return head


def _not_a_trace() -> RejectedFile:
    return RejectedFile(
        f"not a trace: {_NOT_A_TRACE}",
        code="NOT_A_TRACE",
        hint="pass the .json that torch.profiler exported",
    )


def _starts_with_event(cursor: Cursor) -> bool:
    while cursor.end - cursor.at < _EVENT_HEAD and cursor.more():
        pass
    return _EVENT.match(cursor.text.data, cursor.at, cursor.end) is not None


def _json_length(text: bytes) -> int:
    """How many bytes the JSON object at the start of `text` has; 0 if none ends there."""
    whole = text.decode(errors="replace")
    try:
        _, end = json.JSONDecoder().raw_decode(whole)
    except (ValueError, RecursionError):
        return 0
    return len(whole[:end].encode())


@dataclass(frozen=True, slots=True)
class Tail:
    """The text behind an event list: is_complete, whether the document ends with it.

    has_events: the cursor stands at an event, so that the list has not ended where it seemed to.
    """

    text: bytes
    is_complete: bool
    has_events: bool = False


def holds_event(text: bytes) -> bool:
    """Whether an event stands anywhere in a text."""
    return _EVENT.search(text) is not None


def _check_size(cursor: Cursor) -> None:
    limit = cursor.limits.metadata_bytes
    if cursor.end - cursor.at > limit:
        raise RejectedFile(
            f"more than {limit:,} bytes stand beside the event list",
            code="TOO_LARGE",
            hint="look at the file's first bytes; --max-metadata raises the limit",
        )


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def take_tail(cursor: Cursor, head: bytes) -> Tail:
    """Move the cursor from behind the event list to behind the document, or to further events."""
    if head == b"[":
        has_events = _skip_to_event(cursor)
        return Tail(b"", is_complete=not has_events, has_events=has_events)
    walk = _Walk(cursor, depth=1)
    for token in walk:
        if walk.depth == 0:
            return Tail(walk.take(), is_complete=True)
        at_object = token == b"{" and walk.depth == 2 and not walk.was_behind_colon
        if (at_object or (token == b"[" and walk.depth == 2)) and walk.is_at_event(at_object):
            walk.take()
            cursor.at -= at_object
            return Tail(b"", is_complete=False, has_events=True)
    return Tail(walk.take(), is_complete=False)


def _skip_to_event(cursor: Cursor) -> bool:
    """Go to the event that stands behind a bare list, past commas; False if none does."""
    while cursor.skip_blank():
        window = cursor.rest()
        at = len(window) - len(window.lstrip(b", \t\r\n"))
        if at + _EVENT_HEAD <= len(window) or (at < len(window) and not cursor.more()):
            is_event = _EVENT.match(window, at) is not None
            cursor.at += at if is_event else 0
            return is_event
        if at == len(window) and not cursor.more():
            return False
    return False


class _Walk:
    """The tokens of the text under a cursor, with the depth behind each."""

    def __init__(self, cursor: Cursor, depth: int = 0) -> None:
        self._cursor = cursor
        self._taken = cursor.at
        self.depth = depth
        self.behind_colon = False
        self.was_behind_colon = False  # before the last token

    def __iter__(self) -> _Walk:
        return self

    def __next__(self) -> bytes:
        cursor = self._cursor
        while True:
            match = _TOKEN.search(cursor.text.data, self._taken, cursor.end)
            token = match.group() if match else b""
            # A quote that the search passed over opens a string that is not whole yet.
            start = match.start() if match else cursor.end
            if match and cursor.text[self._taken : start].tobytes().find(b'"') < 0:
                break
            # Twice as much each time: else a long string would be searched block by block.
            wanted = max(2 * (cursor.end - cursor.at), 1)
            grown = False
            while cursor.end - cursor.at < wanted:
                _check_size(cursor)
                self._taken -= cursor.at
                if not cursor.more():
                    self._taken += cursor.at
                    break
                grown = True
            if not grown:
                raise StopIteration
        self._taken = match.end()
        self.was_behind_colon = self.behind_colon
        self.behind_colon = token == b":" or (self.behind_colon and token not in (b",", b"{", b"["))
        if token in (b"{", b"["):
            self.depth += 1
        elif token in (b"}", b"]"):
            self.depth -= 1
        return token

    def is_at_event(self, inside: bool) -> bool:
        """Whether an event starts behind the last token; `inside`: its `{` was that token."""
        cursor = self._cursor
        while cursor.end - self._taken < _EVENT_HEAD:
            self._taken -= cursor.at
            grown = cursor.more()
            self._taken += 0 if grown else cursor.at
            if not grown:
                break
        window = cursor.text[self._taken - inside : self._taken + _EVENT_HEAD].tobytes()
        return _EVENT.match(window) is not None

    @property
    def position(self) -> int:
        """Behind the last token."""
        return self._taken

    def take(self) -> bytes:
        """The text walked over.

        The cursor goes behind it (all of it, if the tokens have ended early).
        """
        text = self.text()
        self._cursor.at = self._taken
        return text

    def text(self) -> bytes:
        """The text walked over."""
        return self._cursor.text[self._cursor.at : self._taken].tobytes()


def parse_envelope(head: bytes, tail: bytes, findings: Findings) -> dict[str, Any]:
    """Parse head and tail, with an empty event list between them, and leave the event list out.

    Numbers come as int and Decimal. A key whose value is no JSON is dropped (REPAIRED_METADATA, one
    each); NaN and Infinity are NULL (REPAIRED_NUMBER). A tail that is cut off gives its whole keys.
    """
    if head == b"[":
        return {}
    before, brace, head = head.partition(b"{")
    if before.strip():
        findings.add("REPAIRED_SYNTAX", example="text that is no trace stands before the document")
    text = brace + head + b"]" + (tail or b"}")
    try:
        parsed = _parsed(text, findings)
    except (ValueError, RecursionError):
        parsed = _members(text, findings)
    parsed.pop(EVENT_LIST.decode(), None)
    return parsed


def _parsed(text: bytes, findings: Findings) -> Any:
    constants: list[str] = []
    value = json.loads(text, parse_float=Decimal, parse_constant=constants.append)
    findings.add("REPAIRED_NUMBER", len(constants), example="beside the event list")
    return value


def _members(text: bytes, findings: Findings) -> dict[str, Any]:
    """Parse the keys of an object one by one, as far as each can be."""
    cursor = Cursor([text])
    cursor.more()
    walk = _Walk(cursor)
    found: dict[str, Any] = {}
    key: bytes | None = None
    start = 0
    for token in walk:
        if walk.depth == 1 and token == b":" and key is not None and start == 0:
            start = walk.position
        elif walk.depth == 1 and token[:1] == b'"' and start == 0:
            key = token
        elif (walk.depth == 1 and token == b",") or walk.depth == 0:
            if key is None:
                findings.add("REPAIRED_SYNTAX", example="a comma too many beside the event list")
            else:
                _member(key, text[start : walk.position - 1], found, findings)
            key, start = None, 0
        if walk.depth == 0:
            break
    return found


def _member(key: bytes, value: bytes, found: dict[str, Any], findings: Findings) -> None:
    try:
        found[json.loads(key)] = _parsed(value, findings)
    except (ValueError, RecursionError):
        findings.add("REPAIRED_METADATA", example=key.decode(errors="replace"))
