"""Build the warehouse anew from its lake."""

from __future__ import annotations

from pathlib import Path

from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import load_state
from tracehouse.storage.place import writing
from tracehouse.warehouse.build import copied_tables
from tracehouse.warehouse.publish import publish


def refresh_warehouse(out: Path) -> Path:
    """Rebuild the database file of `out` and return its path.

    UsageError where `out` holds no lake or another run is writing to it.
    """
    with writing(out, kept=copied_tables()) as place:
        publish(place, load_state(place.folder), is_forced=True)
    return out / WAREHOUSE
