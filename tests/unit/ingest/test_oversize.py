"""The rest of a text that is too long: where it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracehouse.ingest.oversize import _REST


def end_of(text: bytes) -> int:
    """Go letter by letter: to the quote that ends a text, or an escape that is cut off."""
    at = 0
    while at < len(text) and text[at : at + 1] != b'"':
        if text[at : at + 1] == b"\\":
            if at + 1 == len(text):
                return at
            at += 1
        at += 1
    return at


@given(st.lists(st.sampled_from([b"a", b'"', b"\\", b"\n", b"\xff"])).map(b"".join))
def test_the_rest_of_a_text_ends_at_its_quote(text):
    assert _REST.match(text).end() == end_of(text)
