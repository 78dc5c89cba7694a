"""Opening files as streams of text, whatever they are packed in.

What a file is, its first bytes say (gzip, zstd, zip, else text); its name only earns a finding
where it disagrees. Containers may hold containers, three deep. Memory is bounded by blocks of a few
MiB; an archive inside another container is spooled to a temporary file.

What cannot be decoded never costs what can: see `tracehouse.ingest.decompress` for how streams end.
"""

from __future__ import annotations

import posixpath
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest import archive, recognise
from tracehouse.ingest.archive import Entry
from tracehouse.ingest.decompress import BLOCK_LENGTH, Opener, gunzip, inflate, stored, unzstd
from tracehouse.ingest.limits import DEFAULT_LIMITS, Budget, Limits
from tracehouse.ingest.recognise import (
    HEAD_LENGTH,
    Container,
    claimed_container,
    container_of,
    foreign_container,
    is_url,
    without_compression,
)

MAX_DEPTH = 3
_DECODERS = {Container.GZIP: gunzip, Container.ZSTD: unzstd}
_SHORTEST_BLOCK = BLOCK_LENGTH // 2
_ARCHIVE_SHARE = 4  # times what a single text may have
_SPOOL_LENGTH = 16 << 20  # of an inner archive, before it goes to disk
_COPY_AGAIN = "copy or download the file again from where it was written"


@dataclass(slots=True)
class Member:
    """One text: a file itself (name "") or a member of an archive (its path there).

    `findings` holds what is odd about this text: its suffix, and its stream once `blocks` has been
    read to the end.
    """

    name: str
    findings: Findings
    _open: Opener
    _is_counted: bool = field(default=False, init=False)

    def blocks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in blocks of about 4 MiB, from the start at each call.

        Findings are counted once, by the first call that reaches the end. RejectedFile: EMPTY_FILE
        for no bytes or only blanks, BAD_CONTAINER if nothing decodes, READ_FAILED with the system's
        words. Messages leave the file's name to the caller.
        """
        found = Findings()
        has_bytes = has_text = False
        for block in _regrouped(self._open(found)):
            has_bytes = True
            has_text = has_text or not block.isspace()
            yield block
        if not has_bytes and "TRUNCATED" in found:
            why = next(f.example for f in found if f.code.word == "TRUNCATED")
            raise RejectedFile(
                f"nothing can be decoded: {why}", code="BAD_CONTAINER", hint=_COPY_AGAIN
            )
        if not has_text:
            what = "only blanks" if has_bytes else "no bytes"
            raise RejectedFile(
                f"the file holds {what}", code="EMPTY_FILE", hint="record the trace again"
            )
        if not self._is_counted:
            self._is_counted = True
            self.findings.merge(found)


class _Bounded:
    """A stream whose bytes are charged to budgets, once each however often it is read."""

    def __init__(self, stream: Opener, budgets: Sequence[Budget]) -> None:
        self._stream = stream
        self._budgets = budgets
        self._charged = 0

    def __call__(self, findings: Findings) -> Iterator[bytes]:
        position = 0
        for piece in self._stream(findings):
            position += len(piece)
            fresh = position - self._charged
            if fresh > 0:
                self._charged = position
                for budget in self._budgets:
                    budget.spend(fresh)
            yield piece


def members(
    source: str | BinaryIO, name: str, findings: Findings, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Member]:
    """Yield the texts in a file: one, or each member of an archive that may be a trace.

    `source` is a path, a URL, or a seekable file that stays open as long as the members are used.
    Its suffix is judged by `name`. `findings` receives what concerns an archive as a whole
    (MEMBER_SKIPPED, WRONG_SUFFIX, TRUNCATED for a lost directory); all else goes to the member's
    own. Members come in the archive's order, nested ones as "inner.zip/x.json".

    RejectedFile: READ_FAILED, BAD_CONTAINER for an archive of which no member can be found,
    NOT_A_TRACE for one that holds nothing like a trace, EMPTY_FILE for one that holds nothing,
    TOO_LARGE for one that unpacks to more than `limits` allow.
    """
    file = _file_opener(source)
    whole = _File(file, partial(_chunks, file, 0, None), limits)
    yield from _unpacked(whole, "", name, findings, 0)


FileOpener = Callable[[], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True, slots=True)
class _File:
    """Bytes to unpack: as a stream, and as a seekable file where they are one already.

    `budgets`: what it may unpack to, once that is known.
    """

    file: FileOpener | None
    stream: Opener
    limits: Limits
    budgets: tuple[Budget, ...] = ()

    def decoded(self, stream: Opener) -> _File:
        """What it holds, read by `stream`; charged to its budgets."""
        budgets = self.budgets or (Budget(self.limits, self.size()),)
        return _File(None, _Bounded(stream, budgets), self.limits, budgets)

    def size(self) -> int | None:
        """Its length in bytes; None where only reading it would tell."""
        if self.file is None:
            return None
        with _reading(), self.file() as file:
            return file.seek(0, 2)


def _file_opener(source: str | BinaryIO) -> FileOpener:
    if not isinstance(source, str):
        return lambda: nullcontext(source)
    if is_url(source):
        from tracehouse.ingest.remote import open_remote

        return partial(open_remote, source)
    return lambda: Path(source).open("rb", buffering=0)


def _chunks(opener: FileOpener, start: int, length: int | None, _: Findings) -> Iterator[bytes]:
    """Yield `length` bytes of a file from `start`, or all; fewer if the file ends before."""
    position = start
    end = sys.maxsize if length is None else start + length
    with _reading(), opener() as file:
        while position < end:
            file.seek(position)  # members that share a file may be read in turns
            data = file.read(min(BLOCK_LENGTH, end - position))
            if not data:
                return
            position += len(data)
            yield data


@contextmanager
def _reading() -> Iterator[None]:
    """Turn the system's errors into READ_FAILED."""
    try:
        yield
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        raise RejectedFile(
            message, code="READ_FAILED", hint="check the file and its permissions"
        ) from error


def _regrouped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small neighbours, so that no block but the last is short."""
    waiting: list[bytes] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= _SHORTEST_BLOCK:
            yield b"".join(waiting) if len(waiting) > 1 else piece
            waiting, length = [], 0
    if length:
        yield b"".join(waiting)


def _head_of(packed: _File) -> bytes:
    if packed.file is None:
        return _head(packed.stream)
    return b"".join(_chunks(packed.file, 0, HEAD_LENGTH, Findings()))


def _head(stream: Opener) -> bytes:
    head = b""
    for piece in stream(Findings()):
        head += piece[:HEAD_LENGTH]
        if len(head) >= HEAD_LENGTH:
            break
    return head


def _unpacked(
    packed: _File, path: str, label: str, findings: Findings, depth: int
) -> Iterator[Member]:
    """Yield the texts in a file or member called `label`, which lies `depth` containers deep."""
    own = Findings()
    while True:
        head = _head_of(packed)
        kind = container_of(head)
        claimed = claimed_container(label)
        if claimed not in (None, kind):
            own.add("WRONG_SUFFIX", example=f"{posixpath.basename(label)} is {kind}")
        if kind not in _DECODERS or depth == MAX_DEPTH:
            break
        packed = packed.decoded(partial(_DECODERS[kind], packed.stream))
        label = without_compression(label) if claimed is kind else ""
        depth += 1
    if foreign := foreign_container(head):
        error = RejectedFile(
            f"a {foreign} file, which is not read", code="BAD_CONTAINER", hint="unpack it"
        )
        yield Member(path, own, partial(_failing, error))
    elif kind is Container.TEXT:
        yield Member(path, own, packed.stream)
    elif depth == MAX_DEPTH:
        message = f"more than {MAX_DEPTH} containers inside each other"
        error = RejectedFile(message, code="BAD_CONTAINER", hint="unpack the outer ones")
        yield Member(path, own, partial(_failing, error))
    else:
        findings.merge(own)
        yield from _archived(kind, packed, path, findings, depth)


def _failing(error: RejectedFile, _: Findings) -> Iterator[bytes]:
    raise error
    yield


def _archived(
    kind: Container, packed: _File, path: str, findings: Findings, depth: int
) -> Iterator[Member]:
    """Yield the texts in a zip or tar archive."""
    with _reading():
        file = packed.file or _spooled(packed.stream, findings)
        with file() as handle:
            size = handle.seek(0, 2)
            read = archive.tar_entries if kind is Container.TAR else archive.entries
            entries, has_directory = read(handle, packed.limits.members)
    # Members may share their bytes: what all of them give is bounded too.
    shared = packed.budgets or (Budget(packed.limits, size, share=_ARCHIVE_SHARE),)
    if not has_directory:
        if not entries:
            message = f"a {kind} archive without directory or members"
            raise RejectedFile(message, code="BAD_CONTAINER", hint=_COPY_AGAIN)
        example = "tar archive ends early"
        if kind is Container.ZIP:
            example = "zip directory is missing; members found one by one"
        findings.add("TRUNCATED", example=example)
    elif not entries:
        raise RejectedFile("the archive is empty", code="EMPTY_FILE", hint="record the trace again")
    found_any = False
    for entry in entries:
        own = Budget(packed.limits, entry.length)
        stream = _Bounded(_entry_stream(file, entry), (*shared, own))
        member = _File(None, stream, packed.limits, (*shared, own))
        inner = f"{path}/{entry.name}".lstrip("/")
        try:
            if not _is_wanted(entry, stream):
                findings.add("MEMBER_SKIPPED", example=inner)
                continue
            found_any = True
            yield from _unpacked(member, inner, entry.name, findings, depth + 1)
        except RejectedFile as error:  # one bad member never costs the others
            found_any = True
            yield Member(inner, Findings(), partial(_failing, error))
    if not found_any:
        raise RejectedFile("the archive holds no trace", code="NOT_A_TRACE", hint="check the path")


def _spooled(stream: Opener, findings: Findings) -> FileOpener:
    """Copy a stream to a temporary file, which lives as long as a member refers to it."""
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_LENGTH)
    for piece in stream(findings):
        spool.write(piece)
    return lambda: nullcontext(cast(BinaryIO, spool))


def _is_wanted(entry: Entry, stream: Opener) -> bool:
    parts = entry.name.split("/")
    if entry.is_empty or not parts[-1] or "__MACOSX" in parts:
        return False
    if any(map(recognise.is_hidden, parts)) or recognise.is_temporary(entry.name):
        return False
    return recognise.may_be_trace(entry.name, partial(_head, stream))


def _entry_stream(file: FileOpener, entry: Entry) -> Opener:
    raw = partial(_chunks, file, entry.start, entry.length)
    if entry.is_encrypted:
        error = RejectedFile("the zip member is encrypted", code="BAD_CONTAINER", hint="unpack it")
        return partial(_failing, error)
    if entry.method == archive.STORED:
        return partial(stored, raw, entry.length, entry.checksum)
    if entry.method == archive.DEFLATED:
        return partial(inflate, raw, entry.checksum)
    if entry.method == archive.ZSTANDARD:
        return partial(unzstd, raw)
    message = f"zip compression method {entry.method} is not supported"
    return partial(_failing, RejectedFile(message, code="BAD_CONTAINER", hint="unpack it"))
