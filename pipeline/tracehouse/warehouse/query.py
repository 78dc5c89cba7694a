"""Reading a warehouse: what `tracehouse.open` returns."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import duckdb
import pyarrow as pa

from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage.address import shown, url_of
from tracehouse.storage.layout import WAREHOUSE, manifest_paths
from tracehouse.warehouse.catalogue import relations
from tracehouse.warehouse.connection import open_file
from tracehouse.warehouse.faults import lake_error, no_warehouse
from tracehouse.warehouse.moved import follow
from tracehouse.warehouse.rows import Rows

if TYPE_CHECKING:
    from tracehouse.warehouse.remote import RemoteLake

T = TypeVar("T")

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
        """Open the warehouse in `out`, a folder, also where that has been moved, or s3://….

        Of one in a bucket the file is fetched now, and of the lake what a query needs.

        Raises:
            UsageError: there is none.
            TracehouseError: BAD_WAREHOUSE if the file cannot be opened.
            OSError: the store or the disk failed.
        """
        self._out = Path(out)
        self._remote: RemoteLake | None = None
        if (url := url_of(out)) is not None:
            from tracehouse.warehouse.remote import RemoteLake

            self._remote = RemoteLake(url)
            self._out = self._remote.folder
        path = self._out / WAREHOUSE
        if not path.is_file():
            raise no_warehouse(str(out), has_lake=bool(manifest_paths(self._out)))
        try:
            self._inode = path.stat().st_ino
            self._connection = open_file(path, read_only=True)
            if self._remote is None:
                follow(self._connection, self._out)
        except duckdb.Error as error:
            if self._remote is not None:
                self._remote.close()
            raise TracehouseError(
                f"{shown(Path(out) / WAREHOUSE)} cannot be opened: {error}",
                code="BAD_WAREHOUSE",
                hint=f"Try: tracehouse check {shown(out)} --repair",
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
        if self._remote is not None:
            self._remote.close()

    def sql(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> Rows:
        """Return the rows of a query; a statement without rows gives none.

        Args:
            query: SQL. The database is read-only.
            parameters: values for `?` in order, or for `$name` by name.

        Raises:
            duckdb.Error: the query is wrong, in DuckDB's own words.
            TracehouseError: LAKE_DAMAGED names a file of the lake that is gone or has changed,
                LAKE_UNREADABLE one that this process cannot read; OUT_OF_MEMORY.
            UsageError: a file cannot be read for another reason.
        """
        return Rows(self.arrow(query, parameters))

    def arrow(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> pa.Table:
        """Return the rows of a query as an Arrow table; else as `sql`."""
        return self._answered(query, lambda: self._table(query, parameters))

    def _table(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None
    ) -> pa.Table:
        rows = self._connection.sql(query, params=parameters)
        return pa.table({}) if rows is None else rows.to_arrow_table()

    def _answered(self, query: str, answer: Callable[[], T]) -> T:
        """Return the answer to a query, what it reads being there."""
        try:
            if self._remote is not None:
                self._remote.prepare(self._connection, query)
            return answer()
        except duckdb.Error as error:
            if self._remote is None or "s3://" not in str(error):
                raise self._told(query, error) from error
        except TracehouseError as error:
            if self._remote is not None:
                self._remote.tell(error)
            raise
        # It reads tables that it does not name, such as query_table('ev' || 'ents').
        try:
            self._remote.prepare(self._connection, None)
            return answer()
        except duckdb.Error as error:
            raise self._told(query, error) from error

    def batches(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows of a query batch by batch, so that they need not fit in memory.

        One query at a time: another one ends it. Raises as `sql`, also while it is read; OSError
        for what else goes wrong then.
        """
        reader = self._answered(
            query,
            lambda: self._connection.sql(query, params=parameters).to_arrow_reader(_BATCH_ROWS),
        )
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
            if self._remote is not None:
                self._remote.tell(found)
            return found
        if not isinstance(error, duckdb.IOException):
            return error
        if self._remote is not None:
            return UsageError(self._remote.told(str(error).strip()))
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


def holds_warehouse(out: str | os.PathLike[str]) -> bool:
    """Whether there is a warehouse in a folder or a bucket. UsageError if a bucket refuses."""
    try:
        url = url_of(out)
    except UsageError:  # of traces it may be the URL
        return False
    if url is None:
        return (Path(out) / WAREHOUSE).is_file()
    from tracehouse.warehouse.remote import has_warehouse

    return has_warehouse(url)
