"""Telling traces from other files by name and by first bytes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from enum import StrEnum

HEAD_LENGTH = 512
"""As many first bytes of a file as the rules here need."""


class Container(StrEnum):
    """What the bytes of a file are."""

    GZIP = "gzip"
    ZSTD = "zstd"
    ZIP = "zip"
    TAR = "tar"
    TEXT = "text"


_CLAIMS = {
    ".gz": Container.GZIP,
    ".gzip": Container.GZIP,
    ".zst": Container.ZSTD,
    ".zstd": Container.ZSTD,
    ".zip": Container.ZIP,
    ".tar": Container.TAR,
    ".tgz": Container.GZIP,
    ".json": Container.TEXT,
}
_TRACE_SUFFIXES = frozenset(_CLAIMS) | {".trace"}
_TEMPORARY_SUFFIXES = (".tmp", ".part")
_FOREIGN_SUFFIXES = frozenset(
    ".csv .tsv .md .rst .txt .log .py .pyc .ipynb .sh .js .css .html .htm .xml .yaml .yml .toml "
    ".ini .cfg .parquet .arrow .feather .duckdb .db .sqlite .xlsx .xls .docx .pptx .pdf .png .jpg "
    ".jpeg .gif .svg .pt .pth .ckpt .safetensors .pkl .pickle .npy .npz .so .whl .jar .nsys-rep "
    ".ncu-rep".split()
)
LAKE = "lake"
LAKE_RECORDS = ("manifests", "runs")
"""The folders of a warehouse's lake that hold JSON (`storage.layout`, `storage.runs`)."""
_LAKE_FILE = re.compile(
    rf"(?P<lake>(?:.*/)?{LAKE})/(?:manifests/part|runs/run)-\d{{6,}}\.json", re.ASCII | re.DOTALL
)
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


def container_of(head: bytes) -> Container:
    """Return the container that the first bytes announce; text if none."""
    if head.startswith(b"\x1f\x8b"):
        return Container.GZIP
    if head.startswith(b"\x28\xb5\x2f\xfd") or is_skippable_frame(head):
        return Container.ZSTD
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # a member, or an empty directory
        return Container.ZIP
    if head.startswith(b"ustar", 257):
        return Container.TAR
    return Container.TEXT


_FOREIGN = (
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"Rar!\x1a\x07", "rar"),
)


def foreign_container(head: bytes) -> str | None:
    """Return the name of the container that the first bytes announce, if it is not supported."""
    for magic, name in _FOREIGN:
        if head.startswith(magic):
            return name
    return None


def is_skippable_frame(head: bytes) -> bool:
    """Whether `head` starts a skippable zstd frame (RFC 8878, 3.1.2: 0x184D2A50 to 0x184D2A5F)."""
    return head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F


def looks_like_trace(head: bytes) -> bool:
    """Whether the first bytes may begin a trace: a container, JSON, or text marked as UTF-16."""
    if container_of(head) is not Container.TEXT or head.startswith(_BYTE_ORDER_MARKS):
        return True
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))


def is_url(path: str) -> bool:
    """Whether a path belongs to fsspec and not to the local file system."""
    return "://" in path


def claimed_container(name: str) -> Container | None:
    """Return the container that the last suffix of a name promises; None if it promises nothing."""
    return _CLAIMS.get(_suffix(name))


def without_compression(name: str) -> str:
    """Return the name less a gzip or zstd suffix: the name of what is inside."""
    if claimed_container(name) in (Container.GZIP, Container.ZSTD):
        return name[: -len(_suffix(name))]
    return name


def is_hidden(name: str) -> bool:
    """Whether a file or folder name asks not to be seen."""
    return name.startswith(".") and name not in (".", "..")


def lake_of(path: str) -> str | None:
    """Return the lake of a warehouse if `path` names a file of it that is JSON, but no trace."""
    match = _LAKE_FILE.fullmatch(path)
    return None if match is None else match["lake"]


def is_temporary(name: str) -> bool:
    """Whether a name says that its writer has not finished (field_cases F07)."""
    return name.lower().endswith(_TEMPORARY_SUFFIXES)


def may_be_trace(name: str, read_head: Callable[[], bytes]) -> bool:
    """Whether a file of a folder or an archive may be a trace.

    Its name decides; where that says nothing, its first HEAD_LENGTH bytes, read only then.
    """
    if _suffix(without_compression(name)) in _FOREIGN_SUFFIXES:
        return False
    return _suffix(name) in _TRACE_SUFFIXES or looks_like_trace(read_head())


def _suffix(name: str) -> str:
    return posixpath.splitext(name)[1].lower()
