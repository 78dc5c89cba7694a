"""Finding the files that a command line names: files, folders, globs, URLs.

Which files of a folder or a glob are taken: all whose name ends as a trace's does, and of those
whose name says nothing, the ones whose first bytes may begin a trace. A JSON file that is no trace
is taken too, and rejected when it is read: a folder never loses a trace silently. A file named
outright is always taken.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tracehouse.errors import UsageError
from tracehouse.ingest import recognise


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, as it stood when it was found.

    `path` is absolute for local files, a URL otherwise. `size` is in bytes. `mtime_ns` is the time
    of its last change in ns since 1970; for a store that tells only an ETag, a number that changes
    with it; 0 if it tells neither.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a search found, each sorted by path and without duplicates."""

    files: tuple[SourceFile, ...]
    skipped: tuple[str, ...]  # hidden or unfinished files: TEMP_SKIPPED
    unreadable: tuple[str, ...] = ()  # folders that cannot be listed, links to nothing


@dataclass(slots=True)
class _Found:
    files: dict[str, SourceFile] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    folders: set[tuple[int, int]] = field(default_factory=set)  # device and inode of those searched

    def add(self, path: Path, status: os.stat_result) -> None:
        self.files[str(path)] = SourceFile(str(path), status.st_size, status.st_mtime_ns)


def discover(paths: Sequence[str]) -> Discovery:
    """Find the files that `paths` name.

    They may be files, folders (searched to the bottom), globs (`**` too) and fsspec URLs. Hidden
    files and folders and unfinished files (*.tmp, *.part) inside folders are passed over.

    UsageError names a path that does not exist or is no regular file or folder, and a glob without
    a match.
    """
    found = _Found()
    for path in paths:
        if recognise.is_url(path):
            from tracehouse.ingest.remote import find_remote

            for url, size, version in find_remote(path, found.skipped):
                found.files[url] = SourceFile(url, size, version)
        else:
            _find_local(path, found)
    return Discovery(
        tuple(sorted(found.files.values(), key=lambda f: f.path)),
        tuple(sorted(found.skipped - found.files.keys())),
        tuple(sorted(found.unreadable)),
    )


def _find_local(path: str, found: _Found) -> None:
    absolute = _absolute(path)
    try:
        status = absolute.stat()
    except OSError as error:
        matches = glob.glob(path, recursive=True)  # noqa: PTH207 (Path.glob takes no such pattern)
        if not matches:
            raise UsageError(_why(path, error), hint="check the path; quote globs") from error
        for match in matches:
            _take(_absolute(match), found)
        return
    if stat.S_ISREG(status.st_mode):
        found.add(absolute, status)
    elif stat.S_ISDIR(status.st_mode):
        _walk(absolute, found)
    else:
        raise UsageError(f"not a regular file or folder: {path}", hint="save it to a file first")


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 (resolves "..", but keeps links)


def _why(path: str, error: OSError) -> str:
    if glob.has_magic(path):
        return f"no file matches {path}"
    if isinstance(error, FileNotFoundError):
        return f"no such file or folder: {path}"
    return f"cannot read {path}: {error.strerror}"


def _walk(folder: Path, found: _Found) -> None:
    """Take the files of `folder` and below; links are followed, but each folder once."""
    try:
        status = folder.stat()
        children = sorted(folder.iterdir())
    except OSError:
        found.unreadable.add(str(folder))
        return
    if (status.st_dev, status.st_ino) in found.folders:
        return
    found.folders.add((status.st_dev, status.st_ino))
    for child in children:
        _take(child, found)


def _take(path: Path, found: _Found) -> None:
    try:
        status = path.stat()
    except OSError:
        found.unreadable.add(str(path))
        return
    if stat.S_ISDIR(status.st_mode):
        if not recognise.is_hidden(path.name):
            _walk(path, found)
    elif stat.S_ISREG(status.st_mode):
        if recognise.is_hidden(path.name) or recognise.is_temporary(path.name):
            found.skipped.add(str(path))
        elif recognise.may_be_trace(path.name, partial(_head, path)):
            found.add(path, status)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(recognise.HEAD_LENGTH)
    except OSError:
        return b"{"  # take it: reading it will say what is wrong
