"""The members of a zip or tar archive, whole or cut off.

A whole zip archive is read by its directory. One that lost its end has none: its members are then
found by their own headers, so that all but the last are still whole. Names are labels, never paths.
"""

from __future__ import annotations

import errno
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from tracehouse.errors import RejectedFile

# signature, version, flags, method, time, date, checksum, two sizes, lengths of name and extra
_LOCAL = struct.Struct("<4s5H3L2H")
_SIGNATURE = b"PK\x03\x04"
_END_SIGNATURE = b"PK\x05\x06"
_LARGE_END_SIGNATURE = b"PK\x06\x06"
_END_REACH = (1 << 16) + 256  # the end record with the longest comment, and those before it
_SHORTEST_RECORD = 47  # of the directory: a name of one byte
_SIZE_LATER = 0x08  # sizes and checksum stand behind the data
_ENCRYPTED = 0x01
_UTF8_NAME = 0x800
_UNKNOWN_SIZE = 0xFFFFFFFF  # the size is in a zip64 field
_SCAN_LENGTH = 1 << 20

STORED, DEFLATED, ZSTANDARD = 0, 8, 93


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the data of a member lies; `checksum` (CRC-32) is None where only its end tells it."""

    name: str
    method: int
    start: int
    length: int
    checksum: int | None
    is_encrypted: bool
    is_empty: bool  # as far as known beforehand


def entries(file: BinaryIO, most: int) -> tuple[list[Entry], bool]:
    """Return the members of an archive in its order, and whether it has a directory.

    `file` must be seekable. Raises OSError if it cannot be read; RejectedFile TOO_LARGE if it has
    more than `most` members.
    """
    if _directory_bytes(file) > most * _SHORTEST_RECORD:
        raise _too_many(most)
    try:
        with zipfile.ZipFile(file) as archive:
            return [_located(file, info) for info in archive.infolist()], True
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, struct.error):
        pass
    except OSError as error:
        if error.errno != errno.EINVAL:  # an offset in the directory leads before the file
            raise
    found = list(islice(_walk(file), most + 1))
    if len(found) > most:
        raise _too_many(most)
    return found, False


def _too_many(most: int) -> RejectedFile:
    return RejectedFile(
        f"the archive has more than {most:,} members",
        code="TOO_LARGE",
        hint="--max-members raises the limit",
    )


def _directory_bytes(file: BinaryIO) -> int:
    """How long a zip archive says that its directory is; 0 if it has none.

    Sought before the directory is read, which takes ten times as much memory.
    """
    end = file.seek(0, 2)
    start = max(end - _END_REACH, 0)
    file.seek(start)
    tail = file.read(_END_REACH)
    at = tail.rfind(_END_SIGNATURE)
    if at < 0 or at + 16 > len(tail):
        return 0
    size = int.from_bytes(tail[at + 12 : at + 16], "little")
    if size == _UNKNOWN_SIZE and (large := tail.rfind(_LARGE_END_SIGNATURE, 0, at)) >= 0:
        size = int.from_bytes(tail[large + 40 : large + 48], "little")
    return size


def tar_entries(file: BinaryIO, most: int) -> tuple[list[Entry], bool]:
    """Return the files in a tar archive in its order, and whether it is whole.

    RejectedFile TOO_LARGE if there are more than `most`.
    """
    found: list[Entry] = []
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            found.extend(
                Entry(i.name, STORED, i.offset_data, i.size, None, False, i.size == 0)
                for i in islice(archive, most + 1)
                if i.isfile()
            )
    except tarfile.TarError:
        return found, False
    if len(found) > most:
        raise _too_many(most)
    return found, True


def _located(file: BinaryIO, info: zipfile.ZipInfo) -> Entry:
    """Make the entry of a directory record; one that points nowhere gets data behind the end."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL.size)
    start = file.seek(0, 2)
    if len(header) == _LOCAL.size and header.startswith(_SIGNATURE):
        *_, name_length, extra_length = _LOCAL.unpack(header)
        start = info.header_offset + _LOCAL.size + name_length + extra_length
    return Entry(
        info.filename,
        info.compress_type,
        start,
        info.compress_size,
        info.CRC,
        is_encrypted=bool(info.flag_bits & _ENCRYPTED),
        is_empty=info.file_size == 0,
    )


def _walk(file: BinaryIO) -> Iterator[Entry]:
    """Find members by their headers, one behind the other."""
    end = file.seek(0, 2)
    position = _next_header(file, 0, end)
    while position < end:
        file.seek(position)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size:
            return
        signature, _, flags, method, _, _, checksum, length, *sizes = _LOCAL.unpack(header)
        text_length, name_length, extra_length = sizes
        if signature != _SIGNATURE or not name_length:
            position = _next_header(file, position + 1, end)
            continue
        name = file.read(name_length).decode("utf-8" if flags & _UTF8_NAME else "cp437", "replace")
        start = position + _LOCAL.size + name_length + extra_length
        is_open = bool(flags & _SIZE_LATER) or length == _UNKNOWN_SIZE
        position = _next_header(file, start, end) if is_open else start + length
        yield Entry(
            name,
            method,
            start,
            position - start,
            None if is_open else checksum,
            is_encrypted=bool(flags & _ENCRYPTED),
            is_empty=not is_open and text_length == 0,
        )


def _next_header(file: BinaryIO, position: int, end: int) -> int:
    """Return where the next signature starts, at or behind `position`; `end` if nowhere."""
    while position < end:
        file.seek(position)
        window = file.read(_SCAN_LENGTH)
        at = window.find(_SIGNATURE)
        if at >= 0:
            return position + at
        if len(window) < len(_SIGNATURE):
            break
        position += len(window) - len(_SIGNATURE) + 1
    return end
