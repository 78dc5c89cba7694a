"""Opening a warehouse in another folder than the one it was built in."""

from __future__ import annotations

import os
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
    _shadow(connection, Path(os.path.abspath(out)), state)  # noqa: PTH100 - keeps links


def _shadow(connection: duckdb.DuckDBPyConnection, out: Path, state: LakeState) -> None:
    if any(state.dead.values()):
        connection.register("_dead", dead_rows(out, state))
        connection.execute("CREATE TEMP TABLE _dead_rows AS SELECT file, trace_id FROM _dead")
        connection.unregister("_dead")
    over_lake = [r for r in relations() if r.order_by is None and r.query is None]
    texts = {relation.name: rows_of(relation, out, state) for relation in over_lake}
    texts |= {view.name: view.query for view in live_views()}  # they read those
    for name, text in texts.items():
        try:
            connection.execute(f"CREATE TEMP VIEW {name} AS {text}")
        except duckdb.Error:  # a file is gone or damaged: the query that needs it will tell
            continue
