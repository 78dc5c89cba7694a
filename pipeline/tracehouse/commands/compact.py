"""`tracehouse compact`: fewer and fuller parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracehouse.storage import compaction, upkeep
from tracehouse.storage.manifest import load_state
from tracehouse.storage.place import writing
from tracehouse.warehouse.build import copied_tables
from tracehouse.warehouse.publish import publish


@dataclass(frozen=True, slots=True)
class CompactReport:
    """Parts and Parquet files before and after, and how many parts were replaced."""

    parts_before: int
    parts_after: int
    files_before: int
    files_after: int
    replaced: int


def compact(out: Path, *, wait: float = 0.0) -> CompactReport:
    """Merge the small parts of the lake in `out`, drop rows that don't count, build the warehouse.

    The Parquet files that were replaced stay until the next `analyze`, `compact` or `prune`: a
    reader may have the old warehouse open.

    Raises UsageError where `out` holds no lake or another run writes to it; TracehouseError
    LAKE_DAMAGED; OSError.
    """
    with writing(out, wait=wait, kept=copied_tables()) as place:
        upkeep.clean(place.folder)
        before = load_state(place.folder)
        place.need(compaction.files_read(before, compaction.SMALL_BYTES))
        replaced = compaction.compact(place.folder, below=compaction.SMALL_BYTES)
        after = load_state(place.folder)
        publish(place, after)
    return CompactReport(
        parts_before=len(before.parts),
        parts_after=len(after.parts),
        files_before=sum(len(part.tables) for part in before.parts),
        files_after=sum(len(part.tables) for part in after.parts),
        replaced=len(replaced),
    )
