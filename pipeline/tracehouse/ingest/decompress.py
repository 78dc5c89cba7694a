"""Decompressing gzip, zstd and raw deflate streams, keeping all that decodes.

Each decoder takes an opener of the compressed bytes and yields decompressed pieces of at most
4 MiB. It raises nothing for damaged data: what decodes is yielded, and TRUNCATED says where and why
it ended. Sizes and positions are in bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import zstandard
from isal import igzip_lib, isal_zlib

from tracehouse.findings import Findings
from tracehouse.ingest.recognise import HEAD_LENGTH, is_skippable_frame, looks_like_trace

Opener = Callable[[Findings], Iterator[bytes]]
"""Opens a stream of bytes from its start, adding what it finds odd to the findings."""

BLOCK_LENGTH = 4 << 20
_FIRST_LENGTH = 1 << 16  # of the first piece, which may be all that is read: it tells what it is
_FEED_LENGTH = 1 << 18  # of compressed bytes to a decoder at once
_EXACT_LENGTH = 1 << 14  # of compressed bytes to the decoder that salvages a damaged stream

_GZIP_MAGIC = b"\x1f\x8b\x08"  # deflate is the only method there is
_GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT, _GZIP_HEADER_CRC = 4, 8, 16, 2

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_COMPRESSED = 0, 1, 2


class _Broken(Exception):
    """A stream cannot be decoded further; the message says how it ends."""


_WRONG_ZIP_CHECKSUM = "zip member has a wrong checksum"
_EARLY = "ends early"
_DAMAGED = "is damaged"


class _Intake:
    """Compressed bytes, read in the amounts that a decoder asks for."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._data = b""
        self._at = 0  # bytes of _data that are taken

    def feed(self) -> bytes:
        """Take some bytes; empty only at the end."""
        while self._at == len(self._data):
            more = next(self._chunks, None)
            if more is None:
                return b""
            self._data, self._at = more, 0
        data = self._data[self._at : self._at + _FEED_LENGTH]
        self._at += len(data)
        return data

    def give_back(self, count: int) -> None:
        """Undo the taking of the last `count` of the bytes just fed."""
        self._at -= count

    def peek(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end, without taking them."""
        while len(self._data) - self._at < count and (more := next(self._chunks, None)) is not None:
            self._data, self._at = self._data[self._at :] + more, 0
        return self._data[self._at : self._at + count]

    def take(self, count: int) -> bytes:
        """Take the next `count` bytes; raises _Broken if there are fewer."""
        data = self.peek(count)
        if len(data) < count:
            raise _Broken(_EARLY)
        self._at += count
        return data

    def skip(self, count: int) -> None:
        """Take `count` bytes without keeping them; raises _Broken if there are fewer."""
        while count > 0:
            data = self.feed()
            if not data:
                raise _Broken(_EARLY)
            self.give_back(max(len(data) - count, 0))
            count -= len(data)

    def at_padding(self) -> bool:
        """Whether nothing but zeros is left; zeros before other bytes are taken."""
        while data := self.feed():
            if rest := data.lstrip(b"\0"):
                self.give_back(len(rest))
                return False
        return True


def gunzip(source: Opener, findings: Findings) -> Iterator[bytes]:
    """Decompress a gzip file (RFC 1952) of any number of members.

    Zeros behind a member are padding. A wrong checksum, an early end and bytes behind a member that
    look like a trace give TRUNCATED; other bytes there are dropped, REPAIRED_SYNTAX. Members behind
    a wrong checksum are still read. More than one member gives MULTI_MEMBER.
    """
    yield from _salvaging("gzip", source, findings, _gzip_members)


def inflate(source: Opener, checksum: int | None, findings: Findings) -> Iterator[bytes]:
    """Decompress the raw deflate data of a zip member; its CRC-32 must be `checksum`, if known."""

    def decode(intake: _Intake, inflater: _Inflater, notes: Findings) -> Iterator[bytes]:
        yield from inflater(intake)
        if checksum is not None and checksum != inflater.checksum:
            notes.add("TRUNCATED", example=_WRONG_ZIP_CHECKSUM)

    yield from _salvaging("zip", source, findings, decode)


def stored(
    source: Opener, length: int, checksum: int | None, findings: Findings
) -> Iterator[bytes]:
    """Pass on the bytes of an uncompressed zip member; its CRC-32 must be `checksum`, if known."""
    done = seen = 0
    for piece in source(findings):
        done += len(piece)
        seen = isal_zlib.crc32(piece, seen)
        yield piece
    if done < length:
        findings.add("TRUNCATED", example=f"zip stream {_EARLY} after {done:,} bytes")
    elif checksum is not None and checksum != seen:
        findings.add("TRUNCATED", example=_WRONG_ZIP_CHECKSUM)


class _Inflater:
    """Decodes one deflate stream after another from an intake."""

    def __init__(self, exact: bool) -> None:
        self._pieces = _exact_pieces if exact else _fast_pieces
        self.checksum = 0  # of the last stream
        self.length = 0

    def __call__(self, intake: _Intake) -> Iterator[bytes]:
        self.checksum = self.length = 0
        for piece in self._pieces(intake):
            self.checksum = isal_zlib.crc32(piece, self.checksum)
            self.length += len(piece)
            yield piece


def _fast_pieces(intake: _Intake) -> Iterator[bytes]:
    """Decode with isal. It reads ahead, so that some bytes before a damage are lost with it."""
    stream = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
    length = _FIRST_LENGTH
    while not stream.eof:
        data = intake.feed() if stream.needs_input else b""
        if stream.needs_input and not data:
            raise _Broken(_EARLY)
        try:
            piece = stream.decompress(data, length)
        except igzip_lib.IsalError as error:  # type: ignore[misc]  # its stub has an instance
            raise _Broken(_DAMAGED) from error
        if piece:
            yield piece
            length = BLOCK_LENGTH
    intake.give_back(len(stream.unused_data))


def _exact_pieces(intake: _Intake) -> Iterator[bytes]:
    """Decode with zlib up to the very byte at which a damage shows: halve what it is fed."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    size = _EXACT_LENGTH
    data = b""
    while not stream.eof:
        data = data or intake.feed()
        if not data:
            yield stream.flush()
            raise _Broken(_EARLY)
        before = stream.copy()
        try:
            piece = stream.decompress(data[:size], BLOCK_LENGTH)
        except zlib.error as error:
            stream, size = before, size // 2
            if not size:
                raise _Broken(_DAMAGED) from error
        else:
            data = stream.unconsumed_tail + data[size:]
            if piece:
                yield piece
    intake.give_back(len(stream.unused_data) + len(data))


def _salvaging(
    word: str,
    source: Opener,
    findings: Findings,
    decode: Callable[[_Intake, _Inflater, Findings], Iterator[bytes]],
) -> Iterator[bytes]:
    """Decode fast; at damage decode again from the start, exactly, and yield the rest of it."""
    done = 0
    notes = Findings()
    try:
        for piece in decode(_Intake(source(findings)), _Inflater(exact=False), notes):
            done += len(piece)
            yield piece
    except _Broken as end:
        if str(end) == _EARLY:
            findings.add("TRUNCATED", example=f"{word} stream {end} after {done:,} bytes")
        else:
            notes = Findings()
            pieces = decode(_Intake(source(Findings())), _Inflater(exact=True), notes)
            yield from _continued(word, pieces, done, findings)
    findings.merge(notes)


def _continued(
    word: str, pieces: Iterator[bytes], done: int, findings: Findings
) -> Iterator[bytes]:
    """Yield what `pieces` hold beyond the first `done` bytes."""
    position = 0
    try:
        for piece in pieces:
            fresh = piece[max(done - position, 0) :]
            position += len(piece)
            if fresh:
                yield fresh
    except _Broken as end:
        position = max(position, done)
        findings.add("TRUNCATED", example=f"{word} stream {end} after {position:,} bytes")


def _gzip_members(intake: _Intake, inflater: _Inflater, findings: Findings) -> Iterator[bytes]:
    count = 0
    try:
        while intake.peek(1) and not (count and intake.at_padding()):
            if not _GZIP_MAGIC.startswith(intake.peek(len(_GZIP_MAGIC))):
                if count:
                    _drop_rest(intake, findings)
                else:
                    findings.add("TRUNCATED", example="no gzip header")
                return
            _skip_gzip_header(intake)
            count += 1
            yield from inflater(intake)
            length = (inflater.length % 2**32).to_bytes(4, "little")
            if intake.take(8) != inflater.checksum.to_bytes(4, "little") + length:
                findings.add("TRUNCATED", example="gzip member has a wrong checksum or length")
    finally:
        if count > 1:
            findings.add("MULTI_MEMBER", example=f"{count:,} gzip members")


def _drop_rest(intake: _Intake, findings: Findings) -> None:
    """Say what is behind the last gzip member: it may be all that is left of a trace."""
    where = "bytes behind the last gzip member"
    if looks_like_trace(intake.peek(HEAD_LENGTH)):
        findings.add("TRUNCATED", example=f"{where} look like another trace, but do not decode")
    else:
        findings.add("REPAIRED_SYNTAX", example=f"{where} are no trace")


def _skip_gzip_header(intake: _Intake) -> None:
    flags = intake.take(10)[3]
    if flags & _GZIP_EXTRA:
        intake.take(int.from_bytes(intake.take(2), "little"))
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            _skip_word(intake)
    if flags & _GZIP_HEADER_CRC:
        intake.take(2)


def _skip_word(intake: _Intake) -> None:
    """Take all bytes up to the next zero, and the zero."""
    while data := intake.feed():
        _, zero, rest = data.partition(b"\0")
        if zero:
            intake.give_back(len(rest))
            return
    raise _Broken(_EARLY)


def unzstd(source: Opener, findings: Findings) -> Iterator[bytes]:
    """Decompress a zstd file (RFC 8878) of any number of frames, skippable ones among them.

    The decoder is fed block by block, so that memory stays bounded whatever the ratio, and a
    damaged block costs nothing before it. Zeros behind a frame are padding; other bytes, damage, a
    wrong checksum and an early end give TRUNCATED: a frame need have no checksum, and then they may
    be all that tells of a damage. More than one frame gives MULTI_MEMBER.
    """
    intake = _Intake(source(findings))
    done = frames = 0
    try:
        while intake.peek(1):
            if frames and intake.at_padding():
                break
            head = intake.peek(4)
            if frames and not (_ZSTD_MAGIC.startswith(head) or is_skippable_frame(head)):
                raise _Broken("is followed by other bytes")
            magic = intake.take(4)
            if is_skippable_frame(magic):
                intake.skip(int.from_bytes(intake.take(4), "little"))
                continue
            if magic != _ZSTD_MAGIC:
                raise _Broken(_DAMAGED)
            frames += 1
            for piece in _frame(magic, intake):
                done += len(piece)
                yield piece
    except _Broken as end:
        findings.add("TRUNCATED", example=f"zstd stream {end} after {done:,} bytes")
    if frames > 1:
        findings.add("MULTI_MEMBER", example=f"{frames:,} zstd frames")


def _frame(magic: bytes, intake: _Intake) -> Iterator[bytes]:
    """Decode one frame whose magic number has been taken."""
    descriptor = intake.take(1)
    flags = descriptor[0]
    single_segment, has_checksum = flags >> 5 & 1, flags >> 2 & 1
    size_length = (single_segment, 2, 4, 8)[flags >> 6]
    if flags & 3:
        raise _Broken("needs a dictionary that is not here, and ends")
    header = intake.take((not single_segment) + (0, 1, 2, 4)[flags & 3] + size_length)
    decoder = zstandard.ZstdDecompressor().decompressobj()
    try:
        decoder.decompress(magic + descriptor + header)
        is_last = False
        while not is_last:
            head = intake.take(3)
            fields = int.from_bytes(head, "little")
            is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
            piece = decoder.decompress(head + intake.take(1 if kind == _ZSTD_RLE else size))
            if piece:
                yield piece
        if has_checksum:
            decoder.decompress(intake.take(4))
    except zstandard.ZstdError as error:
        raise _Broken(_DAMAGED) from error
