"""What is wrong with a warehouse and its lake, when a query fails or a user asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import duckdb

from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage.address import is_url, place_of
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import LakeState, load_state
from tracehouse.storage.verify import Columns, Fault, fault_error, file_fault
from tracehouse.warehouse.catalogue import RUNS, Relation, relations
from tracehouse.warehouse.connection import open_file
from tracehouse.warehouse.moved import shadow
from tracehouse.warehouse.origin import is_at, noted_origin, origin_of

_WORD = re.compile(r"\w+")
# Errors of the query itself: no file is read for them.
_OF_THE_QUERY = (duckdb.ParserException, duckdb.CatalogException)


def lake_error(out: Path, query: str, error: Exception) -> TracehouseError | None:
    """Return the error that names the file of the lake on which a query failed.

    None where the files behind the tables whose names it has are as they were written. Their
    content is read only where the error may come of it.
    """
    if isinstance(error, _OF_THE_QUERY):
        return None
    try:
        state = load_state(out)
    except TracehouseError as manifest:
        return manifest
    tables = set(_WORD.findall(query.lower()))
    columns = lake_columns()
    is_quick = isinstance(error, duckdb.BinderException)
    for part in state.parts:
        for name in sorted(tables & part.tables.keys()):
            file = part.tables[name]
            found = file_fault(out, file, columns.get(name, ()), is_quick=is_quick)
            if found is not None:
                return fault_error(out, file.path, found)
    return None


def no_warehouse(out: str, *, has_lake: bool) -> UsageError:
    """Return the error of a reader that finds no database in `out`, a folder or a URL.

    `has_lake`: parts are there, from which it can be built.
    """
    if not has_lake:
        return UsageError(
            f"{out} holds no warehouse.", hint=f"Try: tracehouse analyze TRACES -o {out}"
        )
    return UsageError(
        f"{out} holds a lake whose database is not built: no run has come to its end yet, or "
        f"{WAREHOUSE} is gone.",
        hint=f"Try: tracehouse refresh {out}, or analyze again",
    )


@cache
def lake_columns() -> Columns:
    """Return the columns that this version reads of each table of the lake."""
    from_manifests = ("path", "label")
    return {
        relation.name: frozenset(
            c.name
            for c in relation.columns
            if relation.name != "traces" or c.name not in from_manifests
        )
        for relation in relations()
    }


def warehouse_faults(out: Path, state: LakeState, *, is_whole: bool) -> Iterator[Fault]:
    """Yield what is wrong with OUT/warehouse.duckdb, of which every table is read.

    `is_whole`: the lake is as it was written. Only then are the views over it looked at: else they
    fail for what has been told.
    """
    path = out / WAREHOUSE
    if not path.is_file():
        yield Fault(WAREHOUSE, "missing", "it is gone, or no run has come to its end yet")
        return
    try:
        with open_file(path, read_only=True) as connection:
            if is_url(place_of(out)):  # its views name the bucket
                shadow(connection, out, state, None)
            outdated = _outdated(connection, out)
            if outdated is not None:
                yield outdated
            for relation in relations():
                if relation.order_by is not None:
                    yield from _unreadable_table(connection, relation)
                elif is_whole and outdated is None:
                    yield from _wrong_view(connection, relation, state)
    except duckdb.Error as error:
        yield Fault(WAREHOUSE, "unreadable", f"it cannot be read: {_first_line(error)}")


def _outdated(connection: duckdb.DuckDBPyConnection, out: Path) -> Fault | None:
    noted, now = noted_origin(connection), origin_of(out)
    if noted is None or noted.version != now.version:
        return Fault(WAREHOUSE, "stale", "it was built by another version")
    if noted.manifests != now.manifests:
        return Fault(WAREHOUSE, "stale", "the lake has changed since it was built")
    if not is_at(noted, out):
        return Fault(WAREHOUSE, "moved", f"it was built in {noted.place}")
    return None


def _unreadable_table(connection: duckdb.DuckDBPyConnection, relation: Relation) -> Iterator[Fault]:
    names = ", ".join(f'"{c.name}"' for c in relation.columns)
    try:
        connection.execute(f"SELECT bit_xor(hash({names})) FROM {relation.name}").fetchall()
    except duckdb.Error as error:
        yield Fault(WAREHOUSE, "unreadable", f"{relation.name}: {_first_line(error)}")


def _wrong_view(
    connection: duckdb.DuckDBPyConnection, relation: Relation, state: LakeState
) -> Iterator[Fault]:
    """Look whether a view resolves with its columns and, over the lake, the rows it should have."""
    names = ", ".join(f'"{c.name}"' for c in relation.columns)
    try:
        connection.execute(f"SELECT {names} FROM {relation.name} LIMIT 0").fetchall()
        if relation.query is not None:
            return
        ((found,),) = connection.execute(f"SELECT count(*) FROM {relation.name}").fetchall()
    except duckdb.Error as error:
        yield Fault(WAREHOUSE, "view", f"{relation.name}: {_first_line(error)}")
        return
    wanted = _rows(state, relation.name)
    if wanted is not None and found != wanted:
        what = f"{relation.name} has {found:,} rows, the lake {wanted:,}"
        yield Fault(WAREHOUSE, "rows", what)


def _rows(state: LakeState, table: str) -> int | None:
    """Count the rows of a table in the lake; None where some don't count, or none are of parts."""
    if table == RUNS.name:
        return None
    parts = [part for part in state.parts if table in part.tables]
    if any(part.id in state.dead for part in parts):
        return None
    return sum(part.tables[table].rows for part in parts)


def _first_line(error: duckdb.Error) -> str:
    return str(error).strip().partition("\n")[0]
