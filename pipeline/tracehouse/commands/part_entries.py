"""What a part's manifest says of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import xxhash

from tracehouse.analysis.settings import Settings
from tracehouse.commands.captures import CaptureOutcome
from tracehouse.commands.part_task import PartTask
from tracehouse.commands.statuses import WORST_FIRST
from tracehouse.ingest.capture_folders import with_captures
from tracehouse.ingest.discover import SourceFile
from tracehouse.ingest.limits import Limits
from tracehouse.storage.manifest import FileEntry, TraceRef, shown_path
from tracehouse.vocab import FileRole, Status


@dataclass(slots=True)
class FoundTrace:
    """One trace of a file: where it was found, and the row of `traces` it has or would have."""

    trace_id: str
    path: str
    row: dict[str, Any]
    is_new: bool
    is_unread: bool = False  # the system did not let it be read: the next run tries again
    is_too_large: bool = False  # limits may be raised: then it is read again
    stages: dict[str, float] = field(default_factory=dict)  # CPU seconds by stage


def settings_noted(settings: Settings, limits: Limits, *, is_too_large: bool = False) -> str:
    """Return what the manifest notes of a file's settings: of the limits only where they told."""
    return f"{settings.digest}/{limits.digest}" if is_too_large else settings.digest


def entry_of(file: SourceFile, found: Sequence[FoundTrace], task: PartTask) -> FileEntry:
    """Return the entry of a file, in which at least one trace was found, if only to be rejected."""
    is_too_large = any(o.is_too_large for o in found)
    noted = settings_noted(task.settings, task.limits, is_too_large=is_too_large)
    worst = min(found, key=lambda o: WORST_FIRST.index(Status(o.row["status"])))
    readable = [o.trace_id for o in found if o.row["status"] != Status.REJECTED]
    content: str | None = readable[0] if len(readable) == 1 else None
    if len(readable) > 1:
        content = xxhash.xxh3_64("".join(readable).encode()).hexdigest()
    return FileEntry(
        path=file.path,
        size=file.size,
        mtime_ns=0 if any(o.is_unread for o in found) else file.mtime_ns,
        content_hash=content,
        status=worst.row["status"],
        reason=worst.row["reason"],
        label=_label(file, task.label),
        traces=tuple(TraceRef(o.trace_id, shown_path(o.path)) for o in found),
        settings=with_captures(noted, task.captures.get(file.path, ())),
    )


def capture_entry_of(outcome: CaptureOutcome, label: str | None) -> FileEntry:
    """Return the entry of a file of graph captures."""
    file = outcome.file
    return FileEntry(
        path=file.path,
        size=file.size,
        mtime_ns=0 if outcome.is_unread else file.mtime_ns,
        content_hash=outcome.content_hash,
        status=outcome.status.value,
        reason=None if outcome.reason is None else shown_path(outcome.reason),
        label=_label(file, label),
        traces=(),
        role=FileRole.CAPTURE.value,
    )


def _label(file: SourceFile, label: str | None) -> str:
    """Return the label of a file: the one given, else the name of its folder."""
    return shown_path(PurePosixPath(file.path).parent.name if label is None else label)
