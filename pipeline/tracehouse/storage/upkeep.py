"""Keeping the lake in order: one writer at a time, no refuse, no files that are not wanted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from tracehouse.storage import layout
from tracehouse.storage.manifest import PRUNED, commit_prune, load_state
from tracehouse.storage.writer import PartWriter, commit_staged


def clean(out: Path) -> tuple[str, ...]:
    """Remove what killed runs left: temporary files, and Parquet files that no manifest names.

    Returns their paths relative to `out`. Call it under the lock, before parts are written. Only
    files named as this package names them are touched. TracehouseError LAKE_DAMAGED, and nothing is
    removed, if a manifest cannot be read.
    """
    named = {file.path for part in load_state(out).parts for file in part.tables.values()}
    manifests = set(layout.manifest_paths(out))
    removed = []
    for path in layout.written_files(out):
        relative = path.relative_to(out).as_posix()
        if path not in manifests and relative not in named:
            path.unlink(missing_ok=True)
            removed.append(relative)
    return tuple(removed)


def prune(out: Path, gone: Collection[str]) -> tuple[str, ...]:
    """Forget files: their traces no longer count unless another live file holds them.

    Returns those of `gone` that the lake knew, sorted; nothing is written if there are none. Call
    it under the lock. Raises OSError.
    """
    known = tuple(f.path for f in load_state(out).files if f.path in set(gone))
    if known:
        commit_prune(out, layout.part_id(layout.next_part_number(out)), known)
    return known


def retire(out: Path, paths: Collection[str], reason: str) -> tuple[str, ...]:
    """Drop the traces of files that may still be there, and don't read those again as they are.

    Their entries stay, of status PRUNED, for `reason` and without traces. Returns those of `paths`
    that the lake knew and had not dropped, sorted. Call it under the lock. Raises OSError.
    """
    wanted = set(paths)
    entries = [f for f in load_state(out).files if f.path in wanted and f.status != PRUNED]
    if entries:
        dropped = [replace(f, status=PRUNED, reason=reason, traces=()) for f in entries]
        with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
            commit_staged(out, writer.stage(dropped, []))
    return tuple(entry.path for entry in entries)
