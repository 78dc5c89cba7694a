"""Finding and opening files behind fsspec URLs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import fsspec
import xxhash

from tracehouse.errors import UsageError
from tracehouse.ingest import recognise

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MAGIC = re.compile(r"[*?\[]")
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "created")
_TAG_KEYS = ("ETag", "etag", "md5Hash")


def open_remote(url: str) -> BinaryIO:
    """Open a URL for reading, seekable. OSError for whatever goes wrong at the store."""
    with _store_errors():
        fs, path = fsspec.core.url_to_fs(url)
        return cast(BinaryIO, _RemoteFile(fs.open(path, "rb")))


class _RemoteFile(io.RawIOBase):
    """A file of a store that raises OSError only, as the system's files do."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with _store_errors():
            return cast(bytes, self._file.read(size))

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _store_errors():
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn the errors of a store's own library (botocore's, aiohttp's) into OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # they have no base in common
        raise OSError(f"{type(error).__name__}: {error}") from error


def find_remote(
    url: str, skipped: set[str], lakes: set[str] | None = None
) -> Iterator[tuple[str, int, int]]:
    """Yield URL, size in bytes and version of the files that `url` names.

    The version is the time of the last change in ns since 1970, else a hash of the ETag, else 0.
    Hidden and unfinished files are added to `skipped`. The lakes of warehouses are passed over, and
    added to `lakes`. UsageError if the URL leads nowhere, or if its protocol needs a package that
    is not installed.
    """
    try:
        fs, path = fsspec.core.url_to_fs(url)
        fs.invalidate_cache()  # a process that lives on must not see the listing of yesterday
        if fs.isfile(path):
            yield _described(fs, path, fs.info(path))
            return
        infos = _listing(fs, path)
    except (ImportError, ValueError) as error:
        hint = "install the fsspec package of this protocol beside tracehouse (s3fs, gcsfs, adlfs)"
        raise UsageError(f"cannot open {url}: {error}", hint=hint) from error
    except Exception as error:  # OSError, and what each store's library has of its own
        hint = "check the URL, the network and the credentials"
        raise UsageError(f"cannot read {url}: {error}", hint=hint) from error
    if not infos:
        raise UsageError(f"no file matches {url}", hint="check the URL")
    inner = {lake for name in infos if (lake := recognise.lake_of(name)) is not None}
    inner = {f"{lake}/" for lake in inner if not f"{path}/".startswith(f"{lake}/")}
    if lakes is not None:
        lakes.update(fs.unstrip_protocol(lake[:-1]) for lake in inner)
    below = tuple(inner)
    for name, info in sorted(infos.items()):
        if name.startswith(below):
            continue
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
    try:
        with _store_errors(), fs.open(name, "rb") as file:
            return cast(bytes, file.read(recognise.HEAD_LENGTH))
    except OSError:
        return b"{"  # take it: reading it will say what is wrong


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
