"""Which of the files found a run has to read: those that are new, changed or read otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from tracehouse.commands.schedule import KILLER, STARVED
from tracehouse.ingest.capture_folders import Divided, with_captures
from tracehouse.ingest.discover import SourceFile
from tracehouse.ingest.recognise import is_url
from tracehouse.storage import layout
from tracehouse.storage.address import url_of
from tracehouse.storage.manifest import PRUNED, FileEntry, LakeState
from tracehouse.vocab import FileRole


def without_lake(files: Sequence[SourceFile], out: Path) -> list[SourceFile]:
    """Leave out the lake's own manifests, which are JSON, where `out` lies below a folder read."""
    url = url_of(out)
    if url is not None:
        return [f for f in files if not f.path.startswith(f"{url}/{layout.LAKE}/")]
    lake = os.path.realpath(out / layout.LAKE) + os.sep
    return [f for f in files if is_url(f.path) or not os.path.realpath(f.path).startswith(lake)]


def held_traces(state: LakeState, settings: str, untouched: Set[str]) -> frozenset[str]:
    """The traces whose rows count and depend on these settings alone: they need no rows again.

    What captures told of a trace holds only as long as all of its files are untouched.
    """
    parts = {part.id for part in state.parts if part.settings == settings}
    held = {trace_id for trace_id, part in state.owners.items() if part in parts}
    doubtful = {
        trace.trace_id
        for entry in state.files
        if entry.settings != settings and entry.path not in untouched
        for trace in entry.traces
    }
    return frozenset(held - doubtful)


def is_unchanged(
    file: SourceFile, seen: Mapping[str, FileEntry], divided: Divided, noted: Sequence[str]
) -> bool:
    """Whether a file is as it was, and was analysed with these settings and captures.

    Or was dropped for its age. One whose version is not known (0) is read again; a link to nothing
    has none and no size.
    """
    entry, captures = seen.get(file.path), divided.of(file)
    if entry is None:
        return False
    if entry.status != PRUNED:
        if entry.settings not in {with_captures(settings, captures) for settings in noted}:
            return False
        if any(not _is_seen_capture(capture, seen.get(capture.path)) for capture in captures):
            return False
    if not file.mtime_ns and (file.size or is_url(file.path)):
        return False
    return (entry.size, entry.mtime_ns) == (file.size, file.mtime_ns)


def _is_seen_capture(file: SourceFile, entry: FileEntry | None) -> bool:
    """Whether a capture file was read as one; what the system did not let be read was not."""
    version = file.size, file.mtime_ns, FileRole.CAPTURE
    return entry is not None and (entry.size, entry.mtime_ns, entry.role) == version


def has_killed(entry: FileEntry | None) -> bool:
    """Whether the last run that saw a file gave it up because its process died of it."""
    return entry is not None and entry.reason in (KILLER, STARVED)
