"""Write tables of a warehouse as files: Parquet, CSV or Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from tracehouse.commands.show import restriction
from tracehouse.errors import UsageError
from tracehouse.storage import durable
from tracehouse.storage.manifest import load_state
from tracehouse.storage.verify import check_files
from tracehouse.warehouse.catalogue import relations
from tracehouse.warehouse.query import ColumnDoc, TableDoc, Warehouse

FORMATS = ("parquet", "csv", "arrow")
ALL = "all"
_FORMULA = "^[=+\\-@\t\r\n]"  # what a spreadsheet takes for a formula, or trims down to one


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table that was written: its name, file and rows."""

    name: str
    path: Path
    rows: int


def export_tables(
    out: Path,
    names: Sequence[str],
    folder: Path,
    fmt: str,
    *,
    trace: str | None = None,
    for_spreadsheets: bool = False,
) -> list[ExportedTable]:
    """Write tables of the warehouse in `out` into `folder`, a file each: NAME.parquet and so on.

    `names`: tables or views; `all` is each of them. `trace`: only rows of the traces whose id, path
    or file name starts so. Parquet and Arrow keep types, and unit and meaning as metadata of each
    column. CSV: a header line, NULL is empty, text in quotes, lists as JSON. `for_spreadsheets`: in
    CSV, text that a spreadsheet would take for a formula has a `'` before it.

    All files appear once all are whole, or none does. Memory: a batch of rows.

    Raises UsageError for a table or trace that does not exist, a table whose rows belong to no
    trace, or a `folder` that is a file; TracehouseError LAKE_DAMAGED names a file behind one of the
    tables that is not as it was written; OSError if it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", hint="Name a folder: each table is a file in it.")
    with Warehouse(out) as warehouse:
        tables = _chosen(warehouse.describe(), names, trace)
        where, parameters = restriction(warehouse, trace)
        _verify(out, {table.name for table in tables})
        folder.mkdir(parents=True, exist_ok=True)
        with _published(folder) as paths:
            return [
                _write(warehouse, table, where, parameters, paths, fmt, for_spreadsheets)
                for table in tables
            ]


def _verify(out: Path, names: Set[str]) -> None:
    """Compare the lake's files behind views that are to be copied with their checksums."""
    read = names & {relation.name for relation in relations() if relation.order_by is None}
    parts = load_state(out).parts
    check_files(out, (f for part in parts for name, f in part.tables.items() if name in read))


def _chosen(
    described: Sequence[TableDoc], names: Sequence[str], trace: str | None
) -> list[TableDoc]:
    known = {table.name: table for table in described}
    if ALL in names:
        chosen = [t for t in known.values() if trace is None or _has_traces(t)]
    else:
        missing = [name for name in names if name not in known]
        if missing:
            raise UsageError(
                f"There is no table {missing[0]!r}.", hint=f"There are: {', '.join(known)}"
            )
        chosen = [known[name] for name in dict.fromkeys(names)]
    apart = [table.name for table in chosen if trace is not None and not _has_traces(table)]
    if apart:
        raise UsageError(f"The rows of {apart[0]!r} belong to no trace.", hint="Leave TRACE out.")
    return chosen


def _has_traces(table: TableDoc) -> bool:
    return any(column.name == "trace_id" for column in table.columns)


class _Paths(Protocol):
    def __call__(self, name: str) -> tuple[Path, Path]: ...


@contextmanager
def _published(folder: Path) -> Iterator[_Paths]:
    """Give a temporary path for a file name, and rename all of them in the end."""
    pairs: list[tuple[Path, Path]] = []

    def paths(name: str) -> tuple[Path, Path]:
        pairs.append((folder / f".{name}.{os.getpid()}.tmp", folder / name))
        return pairs[-1]

    try:
        yield paths
        for temporary, _ in pairs:
            durable.sync(temporary)
        for temporary, final in pairs:
            temporary.replace(final)
        durable.sync(folder)
    finally:
        for temporary, _ in pairs:
            temporary.unlink(missing_ok=True)


def _write(
    warehouse: Warehouse,
    table: TableDoc,
    where: str,
    parameters: Sequence[object],
    paths: _Paths,
    fmt: str,
    for_spreadsheets: bool,
) -> ExportedTable:
    temporary, final = paths(f"{table.name}.{fmt}")
    columns = ", ".join(_as_text(c) if fmt == "csv" else f'"{c.name}"' for c in table.columns)
    reader = warehouse.batches(f'SELECT {columns} FROM "{table.name}" {where}', parameters)
    schema = _documented(reader.schema, table.columns)
    rows = 0
    with _WRITERS[fmt](temporary, schema) as writer:
        for batch in reader:
            if for_spreadsheets and fmt == "csv":
                batch = _without_formulas(batch)
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            rows += batch.num_rows
    return ExportedTable(table.name, final, rows)


def _as_text(column: ColumnDoc) -> str:
    """Word a column so that CSV can hold it: lists and structs as JSON, times in UTC."""
    name = f'"{column.name}"'
    if column.type.endswith("[]") or column.type.startswith("STRUCT"):
        return f"CAST(to_json({name}) AS VARCHAR) AS {name}"
    if column.type == "TIMESTAMP WITH TIME ZONE":
        return f"strftime({name} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') AS {name}"
    return name


def _documented(schema: pa.Schema, columns: Sequence[ColumnDoc]) -> pa.Schema:
    return pa.schema(
        field.with_metadata({"unit": column.unit, "meaning": column.meaning})
        for field, column in zip(schema, columns, strict=True)
    )


def _without_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        pc.if_else(
            pc.match_substring_regex(c, _FORMULA), pc.binary_join_element_wise("'", c, ""), c
        )
        if pa.types.is_string(c.type)
        else c
        for c in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


class _Writer(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> object: ...
    def write_batch(self, batch: pa.RecordBatch) -> object: ...


def _parquet(path: Path, schema: pa.Schema) -> _Writer:
    return pq.ParquetWriter(path, schema, compression="zstd")


def _csv(path: Path, schema: pa.Schema) -> _Writer:
    return pyarrow.csv.CSVWriter(path, schema)


def _arrow(path: Path, schema: pa.Schema) -> _Writer:
    return pa.ipc.new_file(path, schema)


_WRITERS: Mapping[str, Callable[[Path, pa.Schema], _Writer]] = {
    "parquet": _parquet,
    "csv": _csv,
    "arrow": _arrow,
}
