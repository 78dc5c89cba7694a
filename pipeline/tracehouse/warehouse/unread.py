"""Making views over files that are not here: DuckDB looks at them when it makes a view.

What it looks for is their columns, which are known. So for as long as the views are made, each URL
below the lake gives it an empty file with the columns of its table.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow.parquet as pq

from tracehouse.warehouse.blank import no_rows
from tracehouse.warehouse.catalogue import Relation, relations


@contextmanager
def unread_files(connection: duckdb.DuckDBPyConnection, url: str) -> Iterator[None]:
    """Let views be made over the lake at `url`, of which nothing is read. Raises duckdb.Error."""
    protocol = url.partition(":")[0]
    over_lake = (r for r in relations() if r.order_by is None and r.query is None)
    contents = {relation.name: _no_rows(connection, relation) for relation in over_lake}
    connection.register_filesystem(_filesystem(protocol, contents))
    try:
        yield
    finally:
        connection.unregister_filesystem(protocol)


def _no_rows(connection: duckdb.DuckDBPyConnection, relation: Relation) -> bytes:
    """Return a Parquet file with the columns of a relation."""
    buffer = io.BytesIO()
    pq.write_table(connection.sql(no_rows(relation)).to_arrow_table(), buffer)
    return buffer.getvalue()


def _filesystem(protocol: str, contents: Mapping[str, bytes]) -> Any:
    """Return a file system with a file at every path, that of the table in its name."""
    from fsspec.spec import AbstractFileSystem  # a warehouse in a folder needs none of it

    def content(path: str) -> bytes:
        *_, table, name = path.split("/")
        return contents[table] if name.endswith(".parquet") else b""  # the records of runs

    class Columns(AbstractFileSystem):  # type: ignore[misc]  # it carries no types
        cachable = False

        def glob(self, path: str, **options: Any) -> list[str]:
            return [path]

        def exists(self, path: str, **options: Any) -> bool:
            return True

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            return {"name": path, "size": len(content(path)), "type": "file"}

        def modified(self, path: str) -> datetime:
            return datetime.fromtimestamp(0, UTC)

        def open(self, path: str, *args: Any, **options: Any) -> io.BytesIO:
            return io.BytesIO(content(path))

    Columns.protocol = protocol
    return Columns()
