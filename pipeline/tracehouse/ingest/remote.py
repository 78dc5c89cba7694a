"""Finding and opening files behind fsspec URLs; the only importer of fsspec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, cast

import fsspec
import xxhash

from tracehouse.errors import UsageError
from tracehouse.ingest import recognise

_MAGIC = re.compile(r"[*?\[]")
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "created")
_TAG_KEYS = ("ETag", "etag", "md5Hash")


def open_remote(url: str) -> BinaryIO:
    """Open a URL for reading, seekable. Raises OSError as the store does."""
    fs, path = fsspec.core.url_to_fs(url)
    return cast(BinaryIO, fs.open(path, "rb"))


def find_remote(url: str, skipped: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield URL, size in bytes and version of the files that `url` names.

    The version is the time of the last change in ns since 1970, else a hash of the ETag, else 0.
    Hidden and unfinished files are added to `skipped`. UsageError if the URL leads nowhere, or if
    its protocol needs a package that is not installed.
    """
    try:
        fs, path = fsspec.core.url_to_fs(url)
        if fs.isfile(path):
            yield _described(fs, path, fs.info(path))
            return
        infos = _listing(fs, path)
    except (ImportError, ValueError) as error:
        hint = "install the fsspec package of this protocol"
        raise UsageError(f"cannot open {url}: {error}", hint=hint) from error
    except OSError as error:
        raise UsageError(f"cannot read {url}: {error}") from error
    if not infos:
        raise UsageError(f"no file matches {url}", hint="check the URL")
    for name, info in sorted(infos.items()):
        parts = name.removeprefix(path).split("/")
        if any(map(recognise.is_hidden, parts)) or recognise.is_temporary(name):
            skipped.add(fs.unstrip_protocol(name))
        elif recognise.may_be_trace(name, partial(_head, fs, name)):
            yield _described(fs, name, info)


def _listing(fs: Any, path: str) -> dict[str, dict[str, Any]]:
    """Name to info of all files below `path` (a folder or a glob)."""
    if not _MAGIC.search(path):
        return dict(fs.find(path, detail=True))
    infos: dict[str, dict[str, Any]] = {}
    for name, info in fs.glob(path, detail=True).items():
        infos.update(fs.find(name, detail=True) if info["type"] == "directory" else {name: info})
    return infos


def _head(fs: Any, name: str) -> bytes:
    with fs.open(name, "rb") as file:
        return cast(bytes, file.read(recognise.HEAD_LENGTH))


def _described(fs: Any, name: str, info: dict[str, Any]) -> tuple[str, int, int]:
    return fs.unstrip_protocol(name), int(info.get("size") or 0), _version(info)


def _version(info: dict[str, Any]) -> int:
    for key in _TIME_KEYS:
        moment = info.get(key)
        if isinstance(moment, datetime):
            return int(moment.timestamp() * 1_000_000) * 1_000
        if isinstance(moment, int | float):
            return int(moment * 1_000_000) * 1_000
    for key in _TAG_KEYS:
        if info.get(key):
            return (
                xxhash.xxh3_64_intdigest(str(info[key]).encode()) >> 1
            )  # 63 bits: fits a signed column
    return 0
