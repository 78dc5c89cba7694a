"""Making files survive a crash: data first, then names."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Bring a file's data, or a folder's names, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, their names brought to disk. Raises OSError."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync(new.parent)


def replace_text(path: Path, temporary: Path, text: str) -> None:
    """Put `text` at `path` at once: a reader or a crash meets the old state or the new one.

    `temporary` is where it is built, in the same folder. Raises OSError, and leaves nothing there.
    """
    try:
        temporary.write_text(text, encoding="utf-8")
        sync(temporary)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)
