"""Making the text of a trace valid UTF-8, block by block."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from tracehouse.findings import Findings

_UTF8_MARK = b"\xef\xbb\xbf"
# How a text begins that is not UTF-8: with a mark, or with a character below 128 among zeros.
_WIDE = (
    (re.compile(rb"\xff\xfe\0\0"), 4, "utf-32-le"),
    (re.compile(rb"\0\0\xfe\xff"), 4, "utf-32-be"),
    (re.compile(rb"\xff\xfe"), 2, "utf-16-le"),
    (re.compile(rb"\xfe\xff"), 2, "utf-16-be"),
    (re.compile(rb"[{\[\s]\0\0\0"), 0, "utf-32-le"),
    (re.compile(rb"\0\0\0[{\[\s]"), 0, "utf-32-be"),
    (re.compile(rb"[{\[\s]\0[^\0]\0"), 0, "utf-16-le"),
    (re.compile(rb"\0[{\[\s]\0[^\0]"), 0, "utf-16-be"),
)
_LONGEST_MARK = 4
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REPLACEMENT_LENGTH = 3  # bytes of U+FFFD in UTF-8


def utf8_blocks(blocks: Iterable[bytes], findings: Findings) -> Iterator[bytes]:
    """Yield the same text as valid UTF-8; blocks that are valid already pass untouched.

    A UTF-8 byte-order mark is dropped (ENCODING_BOM). UTF-16 and UTF-32 are transcoded
    (ENCODING_FIXED, once). Bytes that are no UTF-8 become U+FFFD, one for each maximal invalid
    subpart as in `errors="replace"` (ENCODING_FIXED, counted in bytes replaced). A sequence cut by
    a border between blocks stays whole. Nothing is raised.
    """
    rest = iter(blocks)
    first = b""
    for block in rest:
        first += block
        if len(first) >= _LONGEST_MARK:
            break
    for mark, length, encoding in _WIDE:
        if mark.match(first):
            yield from _transcoded(first[length:], rest, encoding, findings)
            return
    if first.startswith(_UTF8_MARK):
        findings.add("ENCODING_BOM")
        first = first[len(_UTF8_MARK) :]
    yield from _repaired(first, rest, findings)


def _transcoded(
    first: bytes, rest: Iterator[bytes], encoding: str, findings: Findings
) -> Iterator[bytes]:
    findings.add("ENCODING_FIXED", example=f"{encoding.upper()} text")
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first).encode()
    for block in rest:
        yield decoder.decode(block).encode()
    if last := decoder.decode(b"", final=True):
        yield last.encode()


def _repaired(first: bytes, rest: Iterator[bytes], findings: Findings) -> Iterator[bytes]:
    carry = b""  # start of a sequence whose end is in the next block
    offset = 0
    block: bytes | None = first
    while block is not None:
        if carry:
            block = carry + block
        if block.isascii():
            done = len(block)
            if block:
                yield block
        else:
            valid, done = _valid(block, offset, False, findings)
            if valid:
                yield valid
        carry = block[done:]
        offset += done
        block = next(rest, None)
    if carry:
        yield _valid(carry, offset, True, findings)[0]


def _valid(block: bytes, offset: int, final: bool, findings: Findings) -> tuple[bytes, int]:
    """Return the block as valid UTF-8 and how many of its bytes that accounts for.

    Up to 3 bytes at the end are left over if they may begin a sequence and `final` is false.
    """
    try:
        _, done = codecs.utf_8_decode(block, "strict", final)
    except UnicodeDecodeError as error:
        text, done = codecs.utf_8_decode(block, "replace", final)
        fixed = text.encode()
        inserted = text.count(_REPLACEMENT) - block.count(_REPLACEMENT.encode(), 0, done)
        # Valid sequences keep their length: what is missing beside the marks was replaced.
        replaced = done + _REPLACEMENT_LENGTH * inserted - len(fixed)
        example = f"byte 0x{block[error.start]:02X} at {offset + error.start:,}"
        findings.add("ENCODING_FIXED", replaced, example=example)
        return fixed, done
    return (block if done == len(block) else block[:done]), done
