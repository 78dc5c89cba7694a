"""Which files a warehouse knows of that are gone, or were never any."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from tracehouse.ingest.discover import Discovery
from tracehouse.ingest.recognise import is_url
from tracehouse.storage.manifest import LakeState
from tracehouse.vocab import FileRole


def vanished_files(paths: Sequence[str], state: LakeState, unreadable: Sequence[str]) -> list[str]:
    """The local files that `paths` cover, were seen once and are no files now."""
    return [
        entry.path
        for entry in state.files
        if not is_url(entry.path)
        and entry.path not in unreadable
        and any(_covers(path, entry.path) for path in paths if not is_url(path))
        and _is_gone(entry.path)
    ]


def mistaken_files(state: LakeState, found: Discovery) -> list[str]:
    """The paths that were rejected as traces and of which this search tells that they are none.

    They are folders, which could not be listed then, or belong to another warehouse.
    """
    named = {file.path for file in found.files} | set(found.unreadable)
    lakes = tuple(f"{lake}/" for lake in found.lakes)
    return [
        entry.path
        for entry in state.files
        if entry.content_hash is None
        and entry.role == FileRole.TRACE
        and entry.path not in named
        and (entry.path in found.folders or entry.path.startswith(lakes))
    ]


def _covers(path: str, file: str) -> bool:
    """Whether `path` names `file` or a folder above it: literally if it exists, else as a glob."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 (keeps links, as discover does)
    if absolute.exists():
        return Path(file).is_relative_to(absolute)
    return _matches(absolute.parts, Path(file).parts)


def _matches(pattern: Sequence[str], steps: Sequence[str]) -> bool:
    """Whether the steps of a glob match a path's first steps."""
    if not pattern:
        return True
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return _matches(rest, steps) or (bool(steps) and _matches(pattern, steps[1:]))
    return bool(steps) and fnmatch.fnmatchcase(steps[0], first) and _matches(rest, steps[1:])


def _is_gone(path: str) -> bool:
    """Whether no file is at `path`; in a folder that cannot be searched it may still be there."""
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
