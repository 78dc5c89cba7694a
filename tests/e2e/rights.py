"""Another user's rights, for root meets no missing permission."""

from __future__ import annotations

import multiprocessing.forkserver  # noqa: F401 - not to be looked for without rights
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """Make a folder that every user may enter; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="tracehouse-"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def open_to_all(out: Path) -> None:
    """Let every user read and write all that is in a folder."""
    for path in [out, *out.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Go on with the rights of a user that owns nothing, if this is root."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
