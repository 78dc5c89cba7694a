"""Reading a warehouse: what `tracehouse.open` returns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import duckdb
import pyarrow as pa

from tracehouse.errors import TracehouseError, UsageError
from tracehouse.warehouse.build import WAREHOUSE
from tracehouse.warehouse.catalogue import relations
from tracehouse.warehouse.connection import open_file
from tracehouse.warehouse.faults import lake_error
from tracehouse.warehouse.moved import follow
from tracehouse.warehouse.rows import Rows

_COMMENT = re.compile(r"(?P<meaning>.*?)(?: \[(?P<unit>[^\[\]]+)\])?", re.DOTALL)

_BATCH_ROWS = 1 << 16

_COLUMNS = """
SELECT relations.name, relations.comment, columns.column_name, columns.data_type, columns.comment
FROM (
    SELECT table_name AS name, comment FROM duckdb_tables() WHERE NOT temporary
    UNION ALL
    SELECT view_name AS name, comment FROM duckdb_views() WHERE NOT internal AND NOT temporary
) AS relations
JOIN duckdb_columns() AS columns ON columns.table_name = relations.name
WHERE NOT starts_with(relations.name, '_') AND columns.database_name = current_database()
ORDER BY columns.column_index
"""


@dataclass(frozen=True, slots=True)
class ColumnDoc:
    """One column in words: DuckDB type, unit (`-` for none), meaning, and its COMMENT as stored."""

    name: str
    type: str
    unit: str
    meaning: str
    comment: str


@dataclass(frozen=True, slots=True)
class TableDoc:
    """One table or view in words: what a row is, and its columns in order."""

    name: str
    meaning: str
    columns: tuple[ColumnDoc, ...]


class Warehouse:
    """A warehouse, open for reading. Close it, or use it as a context manager."""

    def __init__(self, out: str | os.PathLike[str]) -> None:
        """Open the warehouse in the folder `out`, also where that has been moved.

        Raises:
            UsageError: there is none.
            TracehouseError: BAD_WAREHOUSE if the file cannot be opened.
        """
        self._out = Path(out)
        path = self._out / WAREHOUSE
        if not path.is_file():
            raise UsageError(
                f"{out} holds no warehouse.", hint=f"Try: tracehouse analyze TRACES -o {out}"
            )
        try:
            self._inode = path.stat().st_ino
            self._connection = open_file(path, read_only=True)
            follow(self._connection, self._out)
        except duckdb.Error as error:
            raise TracehouseError(
                f"{path} cannot be opened: {error}",
                code="BAD_WAREHOUSE",
                hint=f"Try: tracehouse check {out} --repair",
            ) from error

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        self._connection.close()

    def sql(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> Rows:
        """Return the rows of a query; a statement without rows gives none.

        Args:
            query: SQL. The database is read-only.
            parameters: values for `?` in order, or for `$name` by name.

        Raises:
            duckdb.Error: the query is wrong, in DuckDB's own words.
            TracehouseError: LAKE_DAMAGED names a file of the lake that is gone or has changed;
                OUT_OF_MEMORY.
            UsageError: a file cannot be read for another reason.
        """
        return Rows(self.arrow(query, parameters))

    def arrow(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> pa.Table:
        """Return the rows of a query as an Arrow table; else as `sql`."""
        try:
            rows = self._connection.sql(query, params=parameters)
            return pa.table({}) if rows is None else rows.to_arrow_table()
        except duckdb.Error as error:
            raise self._told(query, error) from error

    def batches(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows of a query batch by batch, so that they need not fit in memory.

        One query at a time: another one ends it. Raises as `sql`, also while it is read; OSError
        for what else goes wrong then.
        """
        try:
            reader = self._connection.sql(query, params=parameters).to_arrow_reader(_BATCH_ROWS)
        except duckdb.Error as error:
            raise self._told(query, error) from error
        return pa.RecordBatchReader.from_batches(reader.schema, self._read(query, reader))

    def _read(self, query: str, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (OSError, pa.ArrowException) as error:
            raise lake_error(self._out, query, error) or error from error

    def _told(self, query: str, error: duckdb.Error) -> Exception:
        """Return what a failed query raises: the error itself, or one that says what to do."""
        if isinstance(error, duckdb.OutOfMemoryException):
            return TracehouseError(
                f"there is not enough memory for this query: {str(error).strip().splitlines()[0]}",
                code="OUT_OF_MEMORY",
                hint="ask for fewer rows or traces, or where there is more memory",
            )
        if (found := lake_error(self._out, query, error)) is not None:
            return found
        if not isinstance(error, duckdb.IOException):
            return error
        if self._is_replaced():
            return UsageError(
                f"{self._out / WAREHOUSE} has been rebuilt since it was opened, and its old"
                " files are gone.",
                hint="Open it again.",
            )
        return UsageError(
            str(error).strip(),
            hint=f"\nIf the warehouse was moved or copied: tracehouse refresh {self._out}",
        )

    def _is_replaced(self) -> bool:
        try:
            return (self._out / WAREHOUSE).stat().st_ino != self._inode
        except OSError:
            return True

    def table(self, name: str) -> pa.Table:
        """Return all rows of a table or view, in the order they are stored.

        Raises:
            UsageError: there is no such table; the hint names those there are.
        """
        names = [table.name for table in self.describe()]
        if name not in names:
            raise UsageError(f"There is no table {name!r}.", hint=f"There are: {', '.join(names)}")
        return self.arrow(f'SELECT * FROM "{name}"')

    def describe(self) -> tuple[TableDoc, ...]:
        """Describe every table and view from the COMMENTs in the file, in the order of the docs."""
        rank = {relation.name: i for i, relation in enumerate(relations())}
        meanings: dict[str, str] = {}
        columns: dict[str, list[ColumnDoc]] = {}
        for table, about, column, type_, comment in self._connection.execute(_COLUMNS).fetchall():
            meanings[table] = about or ""
            columns.setdefault(table, []).append(_column(column, type_, comment or ""))
        names = sorted(columns, key=lambda name: (rank.get(name, len(rank)), name))
        return tuple(TableDoc(name, meanings[name], tuple(columns[name])) for name in names)


def _column(name: str, type_: str, comment: str) -> ColumnDoc:
    words = _COMMENT.fullmatch(comment)
    assert words is not None  # every text fits: both groups may be empty
    return ColumnDoc(name, type_, words["unit"] or "-", words["meaning"], comment)
