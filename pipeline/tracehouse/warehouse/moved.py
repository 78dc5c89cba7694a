"""Opening a warehouse in another folder than the one it was built in."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import duckdb

from tracehouse.errors import TracehouseError
from tracehouse.storage.manifest import LakeState, load_state
from tracehouse.warehouse.build import dead_rows, rows_of
from tracehouse.warehouse.catalogue import live_views, relations
from tracehouse.warehouse.origin import is_at, noted_origin, origin_of


def follow(connection: duckdb.DuckDBPyConnection, out: Path) -> None:
    """Let the large tables of a warehouse that was moved to `out` read the lake there.

    The file names the lake's Parquet by the place where it was built. Temporary views of the same
    names go before its own, for this connection alone: nothing is written, so that a read-only copy
    opens too. Nothing is done where the lake is not the one that the file was built from:
    `refresh` is what it needs then. Raises duckdb.Error.
    """
    noted = noted_origin(connection)
    if noted is None or is_at(noted, out):
        return
    if noted != replace(origin_of(out), place=noted.place):
        return
    try:
        state = load_state(out)
    except TracehouseError:  # a damaged manifest: what is copied can still be read
        return
    place = os.path.abspath(out)  # noqa: PTH100 - keeps links
    shadow(connection, Path(place), state, None)


def shadow(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    state: LakeState,
    names: Collection[str] | None,
) -> None:
    """Let views over the lake, and those over these, read it in `folder`; None for all of them."""
    if any(state.dead.values()):
        connection.register("_dead", dead_rows(str(folder), state))
        connection.execute("CREATE OR REPLACE TEMP TABLE _dead_rows AS SELECT * FROM _dead")
        connection.unregister("_dead")
    over_lake = (r for r in relations() if r.order_by is None and r.query is None)
    texts = {r.name: rows_of(r, folder, state, str(folder)) for r in over_lake}
    texts |= {view.name: view.query for view in live_views()}  # they read those
    for name, text in texts.items():
        if names is not None and name not in names:
            continue
        try:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {text}")
        except duckdb.Error:  # a file is gone or damaged: the query that needs it will tell
            continue
