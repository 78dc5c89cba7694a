"""Which lake a warehouse was built from: where it was, and which manifests it had."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import xxhash

from tracehouse import __version__
from tracehouse.storage import layout
from tracehouse.storage.address import place_of
from tracehouse.warehouse.connection import open_file

_TABLE = "_lake"
ORIGIN_TABLE = f"CREATE TABLE {_TABLE} (place VARCHAR, manifests VARCHAR, version VARCHAR)"
_MANIFESTS = "_lake_manifests"


@dataclass(frozen=True, slots=True)
class Origin:
    """`place`: OUT when it was built, absolute or a URL. `manifests`: hash of their names.

    Manifests never change, so that their names tell what the lake held. `version`: of Tracehouse.
    """

    place: str
    manifests: str
    version: str


def origin_of(out: Path) -> Origin:
    """Return what a warehouse would note that is built from `out` as it stands."""
    names = "\n".join(path.name for path in layout.manifest_paths(out))
    return Origin(place_of(out), xxhash.xxh3_64_hexdigest(names.encode()), __version__)


def note_origin(connection: duckdb.DuckDBPyConnection, out: Path) -> None:
    """Note in a warehouse under construction what it is built from. Raises duckdb.Error."""
    origin = origin_of(out)
    connection.execute(
        f"INSERT INTO {_TABLE} VALUES (?, ?, ?)", [origin.place, origin.manifests, origin.version]
    )
    names = [path.name for path in layout.manifest_paths(out)]
    connection.execute(f"CREATE TABLE {_MANIFESTS} AS SELECT unnest(?::VARCHAR[]) AS name", [names])


def noted_origin(connection: duckdb.DuckDBPyConnection) -> Origin | None:
    """Return what a warehouse notes; None for one of a version that noted nothing."""
    try:
        rows = connection.execute(f"SELECT place, manifests, version FROM {_TABLE}").fetchall()
    except duckdb.CatalogException:
        return None
    return Origin(*rows[0]) if rows else None


def noted_manifests(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the names of the manifests that a warehouse was built from.

    Those of a bucket may be more: a run puts new ones there before its warehouse, and removes old
    ones behind it. Raises duckdb.Error.
    """
    rows = connection.execute(f"SELECT name FROM {_MANIFESTS}").fetchall()
    return frozenset(name for (name,) in rows)


def is_current(out: Path, warehouse: Path) -> bool:
    """Whether the file `warehouse` was built from `out` as it stands, where it stands."""
    if not warehouse.exists():
        return False
    try:
        with open_file(warehouse, read_only=True) as connection:
            noted = noted_origin(connection)
    except duckdb.Error:  # damaged: it is to be built anew
        return False
    now = origin_of(out)
    return noted is not None and is_at(noted, out) and noted == replace(now, place=noted.place)


def is_at(origin: Origin, out: Path) -> bool:
    """Whether OUT is still where the warehouse was built, by this or another path."""
    if origin.place == place_of(out):
        return True
    try:
        return Path(origin.place).samefile(out)
    except OSError:
        return False
