"""An event above the size limit: its longest text is cut, so that the rest of it can be kept."""

from __future__ import annotations

import re

from tracehouse.ingest.cursor import Cursor

CUT_ABOVE = 1 << 20  # a text longer than this
KEEP = 1 << 10  # is cut to this

# Of a text, up to its quote or the end of the block; a letter at a time it took 30 s a gigabyte.
_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_PARTIAL_ESCAPE = re.compile(rb"(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")


def shorten(cursor: Cursor) -> bool:
    """Cut the first text of more than CUT_ABOVE bytes in the event under the cursor.

    The rest of that text is read past, block by block, without being kept. False if the event has
    no such text, or the file ends inside it. Source: field_cases F68.
    """
    long_text = re.compile(rb'"((?:[^"\\]|\\.){%d})' % CUT_ABOVE, re.DOTALL)
    found = long_text.search(cursor.text.data, cursor.at, cursor.end)
    if found is None:
        return False
    kept = _whole(cursor.text[found.start(1) : found.start(1) + KEEP].tobytes())
    head = cursor.text[cursor.at : found.start(1)].tobytes() + kept
    cursor.at = found.end()
    while True:
        match = _REST.match(cursor.text.data, cursor.at, cursor.end)
        cursor.at = match.end() if match else cursor.at
        if cursor.at < cursor.end and cursor.text[cursor.at] == ord('"'):
            cursor.put_before(head)
            return True
        if not cursor.more():
            cursor.put_before(head)
            return False


def _whole(text: bytes) -> bytes:
    """The text without a sequence or escape that was cut at its end."""
    text = text.decode(errors="ignore").encode()
    partial = _PARTIAL_ESCAPE.search(text)
    return text[: partial.start(1)] if partial else text
