"""Making files survive a crash: data first, then names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracehouse.errors import UsageError


def sync(path: Path) -> None:
    """Bring a file's data, or a folder's names, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError that names no file, as those of writing do not, name `path`."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, their names brought to disk.

    Raises OSError; UsageError if one of them is a link to nothing.
    """
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    for new in reversed(missing):
        if new.is_symlink():
            raise UsageError(
                f"{new} is a link to {new.readlink()}, which is not there",
                hint="mount what it leads to, or remove the link",
            )
        new.mkdir(exist_ok=True)
        sync(new.parent)


def replace_text(path: Path, temporary: Path, text: str) -> None:
    """Put `text` at `path` at once: a reader or a crash meets the old state or the new one.

    `temporary` is where it is built, in the same folder. Raises OSError, and leaves nothing there.
    """
    try:
        with naming(path):
            temporary.write_text(text, encoding="utf-8")
            sync(temporary)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)
