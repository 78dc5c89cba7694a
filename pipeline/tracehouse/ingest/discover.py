"""Finding the files that a command line names: files, folders, globs, URLs.

Which files of a folder or a glob are taken: all whose name ends as a trace's does, and of those
whose name says nothing, the ones whose first bytes may begin a trace. A JSON file that is no trace
is taken too, and rejected when it is read: a folder never loses a trace silently. A file named
outright is always taken. The lake of a warehouse that lies in a folder or matches a glob is passed
over: its manifests are JSON, and no traces.
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
    folders: frozenset[str] = frozenset()  # local ones that were listed
    lakes: tuple[str, ...] = ()  # of warehouses, passed over
    special: tuple[str, ...] = ()  # pipes, sockets and devices, passed over


@dataclass(slots=True)
class _Found:
    files: dict[str, SourceFile] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    searched: set[tuple[int, int]] = field(default_factory=set)  # device and inode of folders
    folders: set[str] = field(default_factory=set)  # paths of those
    lakes: set[str] = field(default_factory=set)
    special: set[str] = field(default_factory=set)

    def add(self, path: Path, status: os.stat_result) -> None:
        self.files[str(path)] = SourceFile(str(path), status.st_size, status.st_mtime_ns)


def discover(paths: Sequence[str]) -> Discovery:
    """Find the files that `paths` name.

    They may be files, folders (searched to the bottom), globs (`**` too) and fsspec URLs. Hidden
    files and folders and unfinished files (*.tmp, *.part) inside folders are passed over, and so is
    what a warehouse keeps there.

    UsageError names a path that does not exist or is no regular file or folder, and a glob without
    a match.
    """
    found = _Found()
    for path in paths:
        if recognise.is_url(path):
            from tracehouse.ingest.remote import find_remote

            for url, size, version in find_remote(path, found.skipped, found.lakes):
                found.files[url] = SourceFile(url, size, version)
        else:
            _find_local(path, found)
    return Discovery(
        tuple(sorted(found.files.values(), key=lambda f: f.path)),
        tuple(sorted(found.skipped - found.files.keys())),
        tuple(sorted(found.unreadable)),
        frozenset(found.folders),
        tuple(sorted(found.lakes)),
        tuple(sorted(found.special)),
    )


def _find_local(path: str, found: _Found) -> None:
    absolute = _absolute(path)
    try:
        status = absolute.stat()
    except OSError as error:
        matches = glob.glob(path, recursive=True)  # noqa: PTH207 (Path.glob takes no such pattern)
        if not matches:
            raise UsageError(_why(path, error), hint="check the path; quote globs") from error
        for match in map(_absolute, matches):
            lake = _lake_above(match)
            if lake is None or absolute.is_relative_to(lake):
                _take(match, found)
            else:
                found.lakes.add(str(lake))
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
    found.folders.add(str(folder))
    if (status.st_dev, status.st_ino) in found.searched:
        return
    found.searched.add((status.st_dev, status.st_ino))
    for child in children:
        _take(child, found)


def _take(path: Path, found: _Found) -> None:
    try:
        status = path.stat()
    except OSError:
        found.unreadable.add(str(path))
        return
    if stat.S_ISDIR(status.st_mode):
        if _is_lake(path):
            found.lakes.add(str(path))
        elif not recognise.is_hidden(path.name):
            _walk(path, found)
    elif stat.S_ISREG(status.st_mode):
        if recognise.is_hidden(path.name) or recognise.is_temporary(path.name):
            found.skipped.add(str(path))
        elif recognise.may_be_trace(path.name, partial(_head, path)):
            found.add(path, status)
    elif not recognise.is_hidden(path.name):
        found.special.add(str(path))


def _lake_above(path: Path) -> Path | None:
    """Return the lake that `path` lies in, or None."""
    return next((folder for folder in path.parents if _is_lake(folder)), None)


def _is_lake(folder: Path) -> bool:
    """Whether a folder is the lake of a warehouse: it holds a manifest or the record of a run."""
    if folder.name != recognise.LAKE:
        return False
    try:
        records = [folder / name for name in recognise.LAKE_RECORDS]
        files = (file for record in records if record.is_dir() for file in record.iterdir())
        return any(recognise.lake_of(str(file)) is not None for file in files)
    except OSError:  # then it is searched, and reported if it cannot be
        return False


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(recognise.HEAD_LENGTH)
    except OSError:
        return b"{"  # take it: reading it will say what is wrong
