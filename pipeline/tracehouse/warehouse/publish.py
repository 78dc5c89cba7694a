"""The end of every run that writes: the warehouse is brought up to the lake, and to its readers."""

from __future__ import annotations

from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import LakeState
from tracehouse.storage.place import Place
from tracehouse.warehouse.build import build, copied_files
from tracehouse.warehouse.origin import is_current


def publish(place: Place, state: LakeState, *, is_forced: bool = False) -> None:
    """Build the warehouse if it is not that of the lake, whose state this is, or `is_forced`.

    TracehouseError LAKE_DAMAGED, LOCK_LOST; duckdb.Error; OSError.
    """
    if is_forced or not is_current(place.folder, place.folder / WAREHOUSE):
        place.need(copied_files(state))
        build(place.folder, state)
    place.publish()
