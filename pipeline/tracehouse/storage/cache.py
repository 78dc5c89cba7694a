"""What was fetched from a bucket, kept on this machine, and the folders that work with it.

    CACHE/<bucket>/objects/<hash>    an object, by its name, ETag and length: it never changes
    CACHE/<bucket>/work/<random>/    a folder of one process, in which objects are linked
    CACHE/<bucket>/work/<random>.lock

CACHE is $TRACEHOUSE_CACHE, else `tracehouse` in $XDG_CACHE_HOME or ~/.cache; where that cannot be
written, a folder for temporary files. All of it can be deleted at any time.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import xxhash

from tracehouse.storage.bucket import Stored


class Cache:
    """The objects of one bucket that are here."""

    def __init__(self, endpoint: str, url: str) -> None:
        """Find or make the folder for the objects under `url` at `endpoint`. Raises OSError."""
        key = xxhash.xxh3_128_hexdigest(f"{endpoint}\0{url}".encode())
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._folder = _made(_home() / key)
        except (OSError, RuntimeError):  # no home, or one that cannot be written to
            self._temporary = tempfile.TemporaryDirectory(prefix="tracehouse-")
            self._folder = _made(Path(self._temporary.name))
        self._objects, self._work = self._folder / "objects", self._folder / "work"

    def open_folder(self) -> tuple[Path, int]:
        """Return a new working folder, and the descriptor that keeps it for this process."""
        self._remove_left_over()
        while True:
            folder = self._work / secrets.token_hex(8)
            lock = folder.with_suffix(".lock")
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if lock.exists():  # else it was taken for left over, before it was locked
                folder.mkdir(0o700)
                return folder, descriptor
            os.close(descriptor)

    def close_folder(self, folder: Path, descriptor: int) -> None:
        """Remove a working folder; the cache too, if it was made for this process alone."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".lock").unlink(missing_ok=True)
        os.close(descriptor)
        if self._temporary is not None:
            self._temporary.cleanup()

    def link(self, name: str, stored: Stored, target: Path) -> bool:
        """Put an object at `target` if it is here, whole."""
        kept = self._path(name, stored)
        try:
            if kept.stat().st_size != stored.bytes:
                return False
            target.unlink(missing_ok=True)
            os.link(kept, target)
        except OSError:
            return False
        return True

    def keep(self, name: str, stored: Stored, source: Path) -> None:
        """Keep a file as the object of that name. One that cannot be kept will be fetched again."""
        kept = self._path(name, stored)
        temporary = kept.with_name(f"{kept.name}.{secrets.token_hex(4)}.tmp")
        try:
            os.link(source, temporary)
            temporary.replace(kept)
            temporary.unlink(missing_ok=True)  # of two names of one file, rename leaves both
        except OSError:
            return

    def forget(self, name: str, stored: Stored) -> None:
        """Drop an object that is not what it should be."""
        self._path(name, stored).unlink(missing_ok=True)

    def keep_only(self, listing: Mapping[str, Stored]) -> None:
        """Drop every object that the bucket does not hold any more."""
        wanted = {self._path(name, stored).name for name, stored in listing.items()}
        for path in _entries(self._objects):
            if path.name not in wanted and not path.name.endswith(".tmp"):
                path.unlink(missing_ok=True)

    def _path(self, name: str, stored: Stored) -> Path:
        words = f"{name}\0{stored.etag}\0{stored.bytes}"
        return self._objects / xxhash.xxh3_128_hexdigest(words.encode())

    def _remove_left_over(self) -> None:
        """Remove the working folders of processes that were killed."""
        for lock in _entries(self._work):
            if lock.suffix != ".lock":
                continue
            try:
                descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink(missing_ok=True)
            except OSError:  # its process lives
                continue
            finally:
                os.close(descriptor)


def _home() -> Path:
    given = os.environ.get("TRACEHOUSE_CACHE")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "tracehouse"


def _made(folder: Path) -> Path:
    for each in (folder / "objects", folder / "work"):
        each.mkdir(0o700, parents=True, exist_ok=True)
        if not os.access(each, os.W_OK | os.X_OK):
            raise PermissionError(f"cannot write to {each}")
    return folder


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
