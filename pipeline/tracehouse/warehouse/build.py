"""Building `warehouse.duckdb` from the lake: beside the old file, then renamed over it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from tracehouse.storage import durable, runs
from tracehouse.storage.address import is_url, place_of
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import LakeState, TableFile, all_files, shown_path
from tracehouse.storage.verify import check_files, fault_error, file_fault
from tracehouse.warehouse.blank import copy_blank, no_rows, quoted_text, rows_macro
from tracehouse.warehouse.catalogue import ADDED_ROWS, FILES, RUNS, Relation, relations
from tracehouse.warehouse.connection import attached, open_session
from tracehouse.warehouse.origin import note_origin
from tracehouse.warehouse.unread import unread_files
from tracehouse.warehouse.views import load_views

_MANY_ROWS = 20_000  # to copy: for fewer the choices of DuckDB's optimizer do not repay it


def build(out: Path, state: LakeState) -> None:
    """Build OUT/warehouse.duckdb anew from the lake's parts.

    A reader meets the old file or the new one, whole. Traces, files, issues and summaries are
    copied; the large tables are views over the lake's Parquet, by absolute path or, in a working
    copy, by URL. Rows of traces that are dead in a part are left out. An empty lake gives every
    table, without rows. One build at a time: the caller holds the lock of OUT.

    Raises:
        TracehouseError: LAKE_DAMAGED names a Parquet file that is gone, cut off or, if it is
            copied, has changed; LAKE_UNREADABLE one that this process cannot read.
        duckdb.Error: the lake's Parquet does not have the columns of this version.
        OSError: OUT cannot be written, or a Parquet file of the lake not be read.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - resolve() would follow links
    check_files(out, copied_files(state))
    for left_over in out.glob(f".{WAREHOUSE}.*.tmp*"):
        left_over.unlink()
    temporary = out / f".{WAREHOUSE}.{os.getpid()}.tmp"
    try:
        copy_blank(temporary)
        with open_session() as session, attached(session, temporary):
            _fill(session, out, state)
            note_origin(session, out)
        temporary.replace(out / WAREHOUSE)
    except duckdb.Error as error:
        _name_missing(out, state)
        if isinstance(error, duckdb.IOException | duckdb.FatalException):  # such as a full disk
            raise OSError(f"cannot build {out / WAREHOUSE}: {error}") from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
    durable.sync(out)


def copied_tables() -> frozenset[str]:
    """Name the tables of the lake whose rows are copied into the warehouse."""
    return frozenset(relation.name for relation in relations() if relation.order_by is not None)


def copied_files(state: LakeState) -> list[TableFile]:
    """Return the Parquet files that a build reads whole."""
    copied = copied_tables()
    return [f for part in state.parts for name, f in part.tables.items() if name in copied]


def _name_missing(out: Path, state: LakeState) -> None:
    """Raise TracehouseError for a file of the lake that is gone, cut off or cannot be read."""
    is_copy = is_url(place_of(out))  # which has those alone that are copied
    for file in copied_files(state) if is_copy else all_files(state):
        found = file_fault(out, file, is_quick=True)
        if found is not None:
            raise fault_error(out, file.path, found)


def _fill(connection: duckdb.DuckDBPyConnection, out: Path, state: LakeState) -> None:
    """Fill a blank warehouse: what is copied is read in `out`, views name the lake's own place."""
    place = place_of(out)
    connection.register("_files", _file_rows(state))
    connection.register("_trace_paths", _trace_paths(state))
    if any(state.dead.values()):
        names = dict.fromkeys((str(out), place))
        connection.register("_dead", pa.concat_tables(dead_rows(name, state) for name in names))
        connection.execute("CREATE TABLE _dead_rows AS SELECT file, trace_id FROM _dead")
    if _copied_rows(state) < _MANY_ROWS:
        connection.execute("SET enable_optimizer = false")
    with unread_files(connection, place) if is_url(place) else nullcontext():
        for relation in relations():
            if relation.query is not None or not _may_have_rows(relation, state):
                continue
            if relation.order_by is None:
                rows = rows_of(relation, out, state, place)
                macro = rows_macro(relation)
                connection.execute(f"CREATE OR REPLACE MACRO {macro}() AS TABLE {rows}")
            else:
                rows = rows_of(relation, out, state, str(out))
                connection.execute(
                    f"INSERT INTO {relation.name} {rows} ORDER BY {relation.order_by}"
                )
    if any(state.dead.values()) and is_url(place):
        connection.execute("DELETE FROM _dead_rows WHERE NOT starts_with(file, ?)", [place])


def _copied_rows(state: LakeState) -> int:
    return sum(
        part.tables[relation.name].rows
        for relation in relations()
        if relation.order_by is not None
        for part in state.parts
        if relation.name in part.tables
    )


def _may_have_rows(relation: Relation, state: LakeState) -> bool:
    """Whether a relation is to be filled: most have no rows but those of the lake."""
    if relation.name in {FILES.name, RUNS.name, *ADDED_ROWS}:
        return True
    return any(relation.name in part.tables for part in state.parts)


def rows_of(relation: Relation, out: Path, state: LakeState, place: str) -> str:
    """Word the SELECT that gives the rows of a relation from the lake, which is at `place`."""
    if relation.name == FILES.name:
        return f"SELECT {_names(relation)} FROM _files"
    if relation.name == RUNS.name:
        return _run_rows(relation, place, is_empty=not runs.has_any(out))
    if relation.name == "traces":
        from_paths = ("path", "label")
        names = ", ".join(
            f"{'paths' if c.name in from_paths else 'stored'}.{c.name}" for c in relation.columns
        )
        stored = stored_rows(relation, place, state, without=from_paths)
        return (
            f"SELECT {names} FROM ({stored}) AS stored"
            " LEFT JOIN _trace_paths AS paths ON paths.trace_id = stored.trace_id"
        )
    rows = stored_rows(relation, place, state)
    if relation.name in ADDED_ROWS:
        added = next(v for v in load_views("warehouse") if v.name == ADDED_ROWS[relation.name])
        return f"{rows} UNION ALL SELECT {_names(relation)} FROM ({added.query})"
    return rows


def _run_rows(relation: Relation, place: str, *, is_empty: bool) -> str:
    """Word the SELECT over the records of the runs, which sees those of later runs too."""
    if is_empty:
        return no_rows(relation)
    pattern = quoted_text(f"{_literal_path(place)}/{runs.PATH}/{runs.PATTERN}")
    types = ", ".join(f"{c.name}: {quoted_text(c.type)}" for c in relation.columns)
    return (
        f"SELECT {_names(relation)} FROM read_json([{pattern}], columns = {{{types}}},"
        " format = 'newline_delimited', records = true, maximum_sample_files = 1)"
    )


def stored_rows(
    relation: Relation, place: str, state: LakeState, *, without: tuple[str, ...] = ()
) -> str:
    """Word the SELECT over the Parquet files of a relation, dead rows left out.

    DuckDB takes no parameters in CREATE VIEW, so the paths are quoted here. Only parts that have
    dead rows pay for leaving them out, by an anti-join with the table `_dead_rows`.
    """
    columns = [c for c in relation.columns if c.name not in without]
    parts = [part for part in state.parts if relation.name in part.tables]
    names_of = {p.id: f"{place}/{p.tables[relation.name].path}" for p in parts}
    whole = [names_of[p.id] for p in parts if not state.dead.get(p.id)]
    holed = [names_of[p.id] for p in parts if state.dead.get(p.id)]
    selects = []
    if whole:
        names = ", ".join(f'"{c.name}"' for c in columns)
        selects.append(f"SELECT {names} FROM {_parquet(whole)}")
    if holed:
        names = ", ".join(f'stored."{c.name}"' for c in columns)
        selects.append(
            f"SELECT {names} FROM {_parquet(holed, 'filename = true')} AS stored"
            " ANTI JOIN _dead_rows AS dead"
            " ON dead.file = stored.filename AND dead.trace_id = stored.trace_id"
        )
    if not selects:
        return no_rows(replace(relation, columns=tuple(columns)))
    return " UNION ALL ".join(selects)


def _parquet(paths: list[str], *options: str) -> str:
    files = ", ".join(quoted_text(_literal_path(path)) for path in paths)
    return f"read_parquet({', '.join((f'[{files}]', *options, 'hive_partitioning = false'))})"


def _literal_path(path: str) -> str:
    """Spell a path so that DuckDB takes no character of it as a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _names(relation: Relation) -> str:
    return ", ".join(f'"{c.name}"' for c in relation.columns)


def _file_rows(state: LakeState) -> pa.Table:
    files = sorted(state.files, key=lambda f: f.path)
    values = [
        [shown_path(f.path) for f in files],
        [f.size for f in files],
        [f.mtime_ns // 1_000 for f in files],
        [f.content_hash for f in files],
        [f.status for f in files],
        [f.reason for f in files],
        [f.label for f in files],
        [[t.trace_id for t in f.traces] for f in files],
        [f.role for f in files],
    ]
    schema = FILES.schema
    arrays = [pa.array(v, type) for v, type in zip(values, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _trace_paths(state: LakeState) -> pa.Table:
    """Name each trace by the first path, in order of text, that holds it."""
    held = ((ref.path, file.label, ref.trace_id) for file in state.files for ref in file.traces)
    first: dict[str, tuple[str, str]] = {}
    for path, label, trace_id in sorted(held):
        first.setdefault(trace_id, (path, label))
    return _texts(
        ("trace_id", "path", "label"), ((t, path, label) for t, (path, label) in first.items())
    )


def dead_rows(place: str, state: LakeState) -> pa.Table:
    """Return file and trace_id of the rows that don't count, as `stored_rows` leaves them out."""
    return _texts(
        ("file", "trace_id"),
        (
            (f"{place}/{file.path}", trace_id)
            for part in state.parts
            for trace_id in sorted(state.dead.get(part.id, ()))
            for file in part.tables.values()
        ),
    )


def _texts(names: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(c, pa.string()) for c in columns], names=list(names))
