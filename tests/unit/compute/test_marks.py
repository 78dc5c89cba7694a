from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.compute.marks import Marks, before_plain_value, find

MARKS = Marks.of([[b"a", b"b"], [b"xX", b"y", b"0123456789"], [b"/"]])
TWIN = re.compile(rb"(?=(ab|[xX]y[0-9]|/))")


def found(text: bytes) -> list[int]:
    return find(np.frombuffer(text, np.uint8), MARKS).tolist()


def ends(text: bytes) -> list[int]:
    """Ask the regular expression engine instead: the index of the last byte of each match."""
    return [match.start() + len(match[1]) - 1 for match in TWIN.finditer(text)]


def test_worked_example():
    #      0123456789
    text = b"ab xy7/Xy."
    assert found(text) == [1, 5, 6]


def test_nothing_to_find():
    assert found(b"") == []
    assert found(b"b" * 5000) == []


# A round reads four lanes of 512 bytes; what lies across a border is found once.
@pytest.mark.parametrize("at", [*range(508, 516), *range(1532, 1540), *range(2044, 2052), 4999])
def test_across_the_lanes(at):
    text = bytearray(b"." * 5002)
    text[at : at + 3] = b"xy5"
    assert found(bytes(text)) == [at + 2]


def test_more_than_there_was_room_for():
    assert found(b"/" * 5000) == list(range(5000))


@given(st.lists(st.sampled_from([b"a", b"b", b"x", b"y5", b"/", b".", b"." * 509]), max_size=60))
def test_equals_the_regular_expression(pieces):
    text = b"".join(pieces)
    assert found(text) == ends(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (b'{"num_tokens":5}', True),
        (b'{"num_tokens":-5}', True),
        (b'{"token":null}', True),
        (b'{"token":true}', True),
        (b'{"token":"5"}', False),
        (b'{"tokens":["5"]}', False),
        (b'{"a":"token"}', False),
        (b'{"a":"token', False),
        (b'{"token\\"":5}', False),
        (b'{"token' + b"x" * 80 + b'":5}', False),
    ],
)
def test_keys_of_plain_values(text, plain):
    at = np.array([text.index(b"token") + 4])
    assert before_plain_value(np.frombuffer(text, np.uint8), at).tolist() == [plain]
