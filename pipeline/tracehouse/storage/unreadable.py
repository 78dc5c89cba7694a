"""What cannot be read by this process now: its rights or the disk, which say nothing of content."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tracehouse.errors import TracehouseError

UNREADABLE = "LAKE_UNREADABLE"  # the code of the error
UNREAD = "unreadable"  # the word of the fault

# The file is not there, or a folder stands in its place: this is damage.
_OF_THE_LAKE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP})


def why_unreadable(error: BaseException) -> str | None:
    """Return the system's words where `error` says nothing of a file's content; else None.

    Such as want of a right, a failing disk or mount, too many open files. What a library says of
    content that it cannot decode carries no number of the system.
    """
    if not isinstance(error, OSError) or error.errno is None or error.errno in _OF_THE_LAKE:
        return None
    return os.strerror(error.errno)


def unreadable(path: Path, why: str) -> TracehouseError:
    """Return the error that names what cannot be read, and says that it is no damage."""
    return TracehouseError(
        f"{path} cannot be read: {why}",
        code=UNREADABLE,
        hint="it may well be intact: give this user the right to read it, or mend the disk, the "
        "mount or the limit of the system, and run it again",
    )
