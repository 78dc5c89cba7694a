"""What a file that is no trace may be, by its first bytes."""

from __future__ import annotations

from typing import NamedTuple

_SHOWN = 64


class _Kind(NamedTuple):
    """`mark` stands at `at`, or anywhere in the head where that is None."""

    mark: bytes
    at: int | None
    words: str


_KINDS = (
    _Kind(b"\x1f\x8b", 0, "gzip"),
    _Kind(b"\x28\xb5\x2f\xfd", 0, "zstd"),
    _Kind(b"PK", 0, "a zip archive (also what torch.save writes)"),
    _Kind(b"\xfd7zXZ", 0, "xz, which is not read: unpack it"),
    _Kind(b"BZh", 0, "bzip2, which is not read: unpack it"),
    _Kind(b"7z\xbc\xaf", 0, "7-Zip, which is not read: unpack it"),
    _Kind(b"\x04\x22\x4d\x18", 0, "lz4, which is not read: unpack it"),
    _Kind(b"ustar", 257, "a tar archive, which is not read: unpack it"),
    _Kind(b"\x80\x02", 0, "a Python pickle, such as a memory snapshot: no trace of events"),
    _Kind(b"\x80\x04", 0, "a Python pickle, such as a memory snapshot: no trace of events"),
    _Kind(b"SQLite format 3", 0, "an SQLite database, such as an Nsight Systems export"),
    _Kind(b"PAR1", 0, "Parquet"),
    _Kind(b"%PDF", 0, "a PDF"),
    _Kind(b"version https://git-lfs", 0, "a Git LFS pointer: run git lfs pull"),
    _Kind(b"<!DOCTYPE", 0, "a web page: the download gave a page instead of the file"),
    _Kind(b"<html", 0, "a web page: the download gave a page instead of the file"),
    _Kind(b'"rocprofiler-sdk-tool"', None, "a rocprofv3 result: no Chrome trace"),
    _Kind(b'"nodes"', None, "a PyTorch execution trace (graph of ops without GPU times)"),
    _Kind(b"chakra", None, "a PyTorch execution trace (graph of ops without GPU times)"),
    _Kind(b"{", 0, "JSON"),
    _Kind(b"[", 0, "JSON"),
)


def kind_of_bytes(head: bytes) -> str:
    """Say what a file may be that begins with `head`; `unknown` if nothing fits."""
    if not head:
        return "nothing: the file is empty"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for kind in _KINDS:
        if text.startswith(kind.mark) if kind.at == 0 else _holds(head, kind):
            return kind.words
    return "text" if head.isascii() and b"\0" not in head else "unknown"


def _holds(head: bytes, kind: _Kind) -> bool:
    return kind.mark in head if kind.at is None else head.startswith(kind.mark, kind.at)


def shown_bytes(head: bytes) -> str:
    """Return the first bytes as text if they are printable ASCII, else in hex."""
    first = head[:_SHOWN]
    if first.isascii() and all(c >= 32 or c in (9, 10, 13) for c in first):
        return first.decode("ascii")
    return first[: _SHOWN // 2].hex(" ")
