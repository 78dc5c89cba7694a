"""Build the warehouse anew from its lake."""

from __future__ import annotations

from pathlib import Path

from tracehouse.errors import UsageError
from tracehouse.storage.lock import lock
from tracehouse.warehouse.build import refresh


def refresh_warehouse(out: Path) -> Path:
    """Rebuild the database file of `out` and return its path.

    UsageError where `out` holds no lake or another run is writing to it.
    """
    if not (out / "lake").is_dir():
        raise UsageError(f"{out} holds no lake.", hint=f"Try: tracehouse analyze TRACES -o {out}")
    with lock(out):
        refresh(out)
    return out / "warehouse.duckdb"
