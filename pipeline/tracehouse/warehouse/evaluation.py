"""Evaluating the views of a folder over one part after another, planned once a process.

To plan a view takes several times as long as to evaluate it over a trace of common size. DuckDB
keeps the plan of a prepared statement only if its optimizer had no hand in it, whose choices depend
on the rows of the moment. So the views are planned without it, as they are written: they read what
they need and join in the order that is stated. For many rows its choices repay planning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from os import getpid

import duckdb
import pyarrow as pa

from tracehouse.spill import Spill
from tracehouse.warehouse.connection import open_session, when_memory_is_short
from tracehouse.warehouse.views import View, load_views

_MANY_ROWS = 250_000  # of all inputs: the optimizer repays from 60,000 steps, 600,000 kernels
_BATCH_ROWS = 1 << 16
_VECTOR_ROWS = 2_048  # that DuckDB works on at a time


class Evaluation:
    """Views under evaluation: each has its rows in a temporary table of its name.

    Each is evaluated once, whatever reads it. One that is not evaluated has no rows.
    """

    def __init__(self, folder: str, inputs: Mapping[str, pa.Schema]) -> None:
        self._session = open_session()
        self._inputs = {name: _Input(schema.empty_table()) for name, schema in inputs.items()}
        for name, given in self._inputs.items():
            self._session.register(name, given)
        for view in load_views(folder):
            columns = ", ".join(f'"{c.name}" {c.type}' for c in view.columns)
            self._session.execute(f"CREATE TEMP TABLE {view.name} ({columns})")
        self._session.execute("SET enable_optimizer = false")
        # From here on names stay as they are: a new one would cost every plan.
        self._planned: set[str] = set()
        self._readers: dict[str, duckdb.DuckDBPyRelation] = {}
        self._none: dict[str, pa.Table] = {}  # of a view that was not evaluated
        self._rows: dict[str, pa.Table | None] = {}  # of one that was; None: not read yet
        self._given = 0  # rows

    def give(self, tables: Mapping[str, pa.Table]) -> None:
        """Let views read the rows of these inputs, in the columns that were stated; more are left.

        Raises KeyError for a column that is missing.
        """
        for name, table in tables.items():
            self._inputs[name].give(table)
            self._given += table.num_rows

    def evaluate(
        self,
        views: Iterable[View],
        without_rows: Collection[str] = (),
        after_view: Callable[[], None] | None = None,
    ) -> None:
        """Evaluate views, given in reading order, but those of which it is known to give no rows.

        `after_view` is called when one has been evaluated.

        Raises duckdb.Error.
        """
        wanted = [view for view in views if view.name not in without_rows]
        is_large = self._given > _MANY_ROWS
        for view in wanted:
            if not is_large and view.name not in self._planned:
                self._session.execute(f"PREPARE _{view.name} AS {_filling(view)}")
                self._planned.add(view.name)
        # Without it even what was planned sums over windows by a slow way.
        self._session.execute("SET enable_optimizer = true")
        for view in wanted:
            self._session.execute(_filling(view) if is_large else f"EXECUTE _{view.name}")
            self._rows[view.name] = None
            if after_view is not None:
                after_view()
        self._session.execute("SET enable_optimizer = false")

    def rows(self, view: View, spill: Spill | None = None) -> pa.Table:
        """Return the rows of an evaluated view, in its order; `spill` takes them as they come."""
        known = self._rows if view.name in self._rows else self._none
        rows = known.get(view.name)
        if rows is None:
            rows = known[view.name] = self._read(view, spill if known is self._rows else None)
        return rows

    def begin(self) -> None:
        """Take up a part."""
        self._session.begin()

    def forget(self) -> None:
        """Leave a part: no view and no input has rows."""
        self._session.rollback()
        self._rows.clear()
        self._given = 0
        for given in self._inputs.values():
            given.clear()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def _read(self, view: View, spill: Spill | None) -> pa.Table:
        if view.name not in self._readers:
            self._readers[view.name] = self._session.table(view.name)
        found = self._readers[view.name]
        if spill is None or not spill.is_on:
            return found.to_arrow_table()
        reader = found.to_arrow_reader(_BATCH_ROWS)
        return spill.batches(reader.schema, reader)


def _filling(view: View) -> str:
    """Word the statement that puts the rows of a view, if public in order, into its table."""
    order = "" if view.is_private else f" ORDER BY {view.order_by}"
    return f"INSERT INTO {view.name} {view.query}{order}"


class _Input:
    """A table under a name that stays while its rows change."""

    def __init__(self, table: pa.Table) -> None:
        self._none = table
        self._table = table

    def give(self, table: pa.Table) -> None:
        schema = self._none.schema
        if table.schema != schema:  # the plans know the types
            table = table.select(schema.names).cast(schema)
        # Each chunk goes through a plan by itself: ten rows cost as much as a vector of them.
        pieces = max((column.num_chunks for column in table.columns), default=0)
        is_crumbled = pieces > 1 and table.num_rows < pieces * _VECTOR_ROWS
        self._table = table.unify_dictionaries().combine_chunks() if is_crumbled else table

    def clear(self) -> None:
        self._table = self._none

    def __arrow_c_schema__(self) -> object:
        return self._table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@contextmanager
def evaluation(folder: str, inputs: Mapping[str, pa.Schema]) -> Iterator[Evaluation]:
    """Lend an evaluation of the views of a folder, which forgets its rows afterwards.

    Args:
        folder: of sql/.
        inputs: what the views read beside each other: of each folder always the same.
    """
    kept = _kept(getpid()).setdefault(folder, [])
    try:
        lent = kept.pop()
    except IndexError:
        lent = Evaluation(folder, inputs)
    try:
        lent.begin()
        yield lent
        lent.forget()
    except BaseException:  # who knows how it was left
        lent.close()
        raise
    kept.append(lent)


@cache
def _kept(process: int) -> dict[str, list[Evaluation]]:
    """Return by folder those that nobody uses; a fork must not go on with those of its parent."""
    return {}


def _let_go() -> None:
    """Close those that nobody uses: the plans hold some of what they made last."""
    for kept in _kept(getpid()).values():
        while kept:
            kept.pop().close()


when_memory_is_short(_let_go)
