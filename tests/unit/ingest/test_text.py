from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.findings import Findings
from tracehouse.ingest.text import utf8_blocks


def through(*blocks: bytes) -> tuple[bytes, Findings]:
    findings = Findings()
    return b"".join(utf8_blocks(blocks, findings)), findings


def cut(data: bytes, *at: int) -> list[bytes]:
    edges = [0, *sorted(at), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def test_valid_blocks_pass_as_the_same_objects():
    blocks = [b'{"name": "a",', '"é"}'.encode()]
    passed = list(utf8_blocks(blocks, Findings()))
    assert passed[0] is blocks[0]
    assert passed[1] is blocks[1]


def test_nothing_gives_nothing():
    text, findings = through()
    assert text == b""
    assert list(findings) == []


def test_utf8_mark_is_dropped():
    text, findings = through(b"\xef\xbb\xbf[]")
    assert text == b"[]"
    assert [f.code.word for f in findings] == ["ENCODING_BOM"]


def test_mark_split_over_blocks():
    text, findings = through(b"\xef", b"\xbb", b"\xbf", b"[]")
    assert text == b"[]"
    assert findings.count("ENCODING_BOM") == 1


@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]
)
def test_utf16_is_transcoded(mark, encoding):
    original = '{"name": "λ \N{GRINNING FACE}"}'  # the face is two UTF-16 units
    data = mark + original.encode(encoding)
    text, findings = through(*cut(data, *range(3, len(data))))  # odd borders split every unit
    assert text.decode() == original
    assert findings.count("ENCODING_FIXED") == 1


def test_utf16_of_odd_length_keeps_the_rest():
    text, _ = through(b"\xff\xfe" + "[]".encode("utf-16-le") + b"x")
    assert text.decode() == "[]\N{REPLACEMENT CHARACTER}"


def test_bad_bytes_are_replaced_and_counted():
    # F09: two raw bytes, E9 and FF, each no part of a sequence: 2 bytes, 2 marks.
    text, findings = through(b'"load \xe9\xff.bin"')
    assert text.decode() == '"load \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}.bin"'
    (finding,) = findings
    assert (finding.code.word, finding.count) == ("ENCODING_FIXED", 2)
    assert finding.example == "byte 0xE9 at 6"  # after the quote and `load `


def test_a_subpart_is_one_mark_but_all_its_bytes_count():
    # F0 9F 98 is the start of a 4-byte sequence: one maximal subpart of 3 bytes.
    text, findings = through(b"a\xf0\x9f\x98b")
    assert text.decode() == "a\N{REPLACEMENT CHARACTER}b"
    assert findings.count("ENCODING_FIXED") == 3


def test_marks_that_stood_there_are_not_counted():
    text, findings = through("\N{REPLACEMENT CHARACTER}".encode() + b"\xff")
    assert text.decode() == "\N{REPLACEMENT CHARACTER}" * 2
    assert findings.count("ENCODING_FIXED") == 1


def test_offset_counts_earlier_blocks():
    _, findings = through(b"abcde", b"fg\xffh")
    assert next(iter(findings)).example == "byte 0xFF at 7"


def test_text_ending_inside_a_sequence():
    text, findings = through(b"ab\xe2\x82")  # two of the three bytes of a euro sign
    assert text.decode() == "ab\N{REPLACEMENT CHARACTER}"
    assert findings.count("ENCODING_FIXED") == 2


pieces = st.lists(
    st.one_of(
        st.text(max_size=5).map(lambda s: s.encode("utf-8", "replace")),
        st.binary(max_size=4),
        st.sampled_from([b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0\x80", b"\xef\xbf\xbd", b"\xf4\x90"]),
    ),
    max_size=8,
).map(b"".join)


@given(pieces, st.lists(st.integers(0, 40), max_size=6))
def test_equals_pythons_own_replacement(data, borders):
    data = b"{" + data  # no byte-order mark
    text, findings = through(*cut(data, *(min(b, len(data)) for b in borders)))
    assert text == data.decode("utf-8", "replace").encode()
    # Evident count: bytes that Python drops when told to ignore what is invalid.
    assert findings.count("ENCODING_FIXED") == len(data) - len(
        data.decode("utf-8", "ignore").encode()
    )
