"""`tracehouse compact`: fewer and fuller parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracehouse.errors import UsageError
from tracehouse.storage import compaction, layout, upkeep
from tracehouse.storage.lock import lock
from tracehouse.storage.manifest import load_state
from tracehouse.warehouse.build import WAREHOUSE, build
from tracehouse.warehouse.origin import is_current


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
    if not (out / layout.LAKE).is_dir():
        raise UsageError(f"{out} holds no lake.", hint=f"Try: tracehouse analyze TRACES -o {out}")
    with lock(out, wait=wait):
        upkeep.clean(out)
        before = load_state(out)
        replaced = compaction.compact(out, below=compaction.SMALL_BYTES)
        after = load_state(out)
        if not is_current(out, out / WAREHOUSE):
            build(out, after)
    return CompactReport(
        parts_before=len(before.parts),
        parts_after=len(after.parts),
        files_before=sum(len(part.tables) for part in before.parts),
        files_after=sum(len(part.tables) for part in after.parts),
        replaced=len(replaced),
    )
