"""The envelope: every key of a trace file beside its event list, wherever it stands.

The text of a document is taken apart into head, event list and tail, without looking into the list;
head and tail together, with an empty list between them, are the envelope.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.cursor import Cursor

EVENT_LIST = b"traceEvents"
LIMIT_BYTES = 64 << 20  # of the text before or behind the event list

# A string; an opening; a closing; a separator. All else (numbers, literals, space) lies between.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]|[:,]', re.DOTALL)
_NOT_A_TRACE = "it holds no list of trace events (`traceEvents`, or a list of objects with `ph`)"


def take_head(cursor: Cursor) -> bytes:
    """Move the cursor behind the `[` of the event list and return the text before and with it.

    Raises RejectedFile NOT_A_TRACE if the document has no event list at depth 1 and is no list
    itself.
    """
    if bytes(cursor.text[cursor.at : cursor.at + 1]) == b"[":
        cursor.at += 1
        return b"["
    walk = _Walk(cursor)
    key = b""
    for token in walk:
        if token == b"[" and walk.depth == 2 and key == EVENT_LIST:
            return walk.take()
        if token[:1] == b'"' and walk.depth == 1 and not walk.behind_colon:
            key = token[1:-1]
        if walk.depth == 0:
            break
    raise RejectedFile(
        f"not a trace: {_NOT_A_TRACE}",
        code="NOT_A_TRACE",
        hint="pass the .json that torch.profiler exported",
    )


def take_tail(cursor: Cursor, head: bytes) -> tuple[bytes, bool]:
    """Move the cursor from behind the event list to behind the document.

    Returns the text between. The second value says whether the document was complete.
    """
    if head == b"[":
        return b"", True
    walk = _Walk(cursor, depth=1)
    for _ in walk:
        if walk.depth == 0:
            return walk.take(), True
    return walk.take(), False


class _Walk:
    """The tokens of the text under a cursor, with the depth behind each."""

    def __init__(self, cursor: Cursor, depth: int = 0) -> None:
        self._cursor = cursor
        self._taken = cursor.at
        self.depth = depth
        self.behind_colon = False

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
            if cursor.end - cursor.at > LIMIT_BYTES:
                raise RejectedFile(
                    f"not a trace: more than {LIMIT_BYTES >> 20} MiB stand beside the event list",
                    code="NOT_A_TRACE",
                    hint="look at the file's first bytes",
                )
            self._taken -= cursor.at
            grown = cursor.more()
            if not grown:
                self._taken += cursor.at
                raise StopIteration
        self._taken = match.end()
        self.behind_colon = token == b":" or (self.behind_colon and token not in (b",", b"{", b"["))
        if token in (b"{", b"["):
            self.depth += 1
        elif token in (b"}", b"]"):
            self.depth -= 1
        return token

    def take(self) -> bytes:
        """The text walked over.

        The cursor goes behind it (all of it, if the tokens have ended early).
        """
        cursor = self._cursor
        end = self._taken
        text = cursor.text[cursor.at : end].tobytes()
        cursor.at = end
        return text


def parse_envelope(head: bytes, tail: bytes, findings: Findings) -> dict[str, Any]:
    """Parse head and tail, with an empty event list between them, and leave the event list out.

    Numbers come as int and Decimal. A text that is no JSON gives {} and REPAIRED_METADATA; a tail
    that is cut off is closed first.
    """
    if head == b"[":
        return {}
    text = (head + b"]" + (tail or b"}")).decode()
    try:
        parsed = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        findings.add("REPAIRED_METADATA", example="the keys beside the event list are no JSON")
        return {}
    del parsed[EVENT_LIST.decode()]
    return dict(parsed)
