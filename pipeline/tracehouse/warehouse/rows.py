"""The rows of a query, for people who come from Arrow and for those who come from DuckDB."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


class Rows:
    """An Arrow table that can be taken in DuckDB's ways too.

    Everything of `pyarrow.Table` works: `rows["name"]`, `rows.to_pylist()`, `rows.num_rows` …;
    beside it `fetchall`, `fetchone`, `arrow` and `df`.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._next = 0

    def arrow(self) -> pa.Table:
        """The Arrow table itself."""
        return self._table

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows not fetched yet, as tuples."""
        rest = self._table.slice(self._next)
        self._next = self._table.num_rows
        columns = [column.to_pylist() for column in rest.columns]
        return list(zip(*columns, strict=True))

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None behind the last."""
        if self._next >= self._table.num_rows:
            return None
        self._next += 1
        return tuple(column[self._next - 1].as_py() for column in self._table.columns)

    def df(self) -> Any:
        """A pandas DataFrame; ImportError where pandas is not installed."""
        return self._table.to_pandas()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__arrow_c_stream__":
            raise AttributeError(name)
        return getattr(self._table, name)

    def __getitem__(self, key: Any) -> Any:
        return self._table[key]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __eq__(self, other: object) -> bool:
        return bool(self._table == (other.arrow() if isinstance(other, Rows) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._table)
