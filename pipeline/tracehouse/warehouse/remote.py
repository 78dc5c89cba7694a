"""Reading a warehouse in a bucket: its file, and of the lake what a query needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import duckdb

from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage.bucket import Bucket, Changed, StoreError
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import LakeState, load_state
from tracehouse.storage.replica import Replica
from tracehouse.warehouse.catalogue import RUNS, live_views, relations
from tracehouse.warehouse.faults import no_warehouse
from tracehouse.warehouse.moved import shadow
from tracehouse.warehouse.origin import noted_manifests

_WORD = re.compile(r"\w+")
_TRIES = 5  # at a warehouse that is being replaced


class RemoteLake:
    """A warehouse in a bucket as it was when it was opened; `folder` has its file."""

    def __init__(self, url: str) -> None:
        """Fetch the warehouse at `url`.

        UsageError if there is none, or the bucket cannot be read; OSError.
        """
        self._replica = Replica(Bucket(url))
        self._state: LakeState | None = None
        self._ready: set[str] = set()
        try:
            self._fetch_warehouse()
        except BaseException:
            self.close()
            raise

    @property
    def folder(self) -> Path:
        """The working folder."""
        return self._replica.folder

    def close(self) -> None:
        """Remove the folder; twice does no harm."""
        self._replica.close()

    def told(self, text: str) -> str:
        """Word a text by the URL instead of the folder."""
        return self._replica.told(text)

    def tell(self, error: TracehouseError) -> None:
        """Word an error by the URL instead of the folder."""
        self._replica.tell(error)

    def _fetch_warehouse(self) -> None:
        url = self._replica.bucket.url
        for _ in range(_TRIES):
            if WAREHOUSE not in self._replica.listing:
                raise no_warehouse(url, has_lake=bool(self._replica.manifests))
            try:
                self._replica.fetch([WAREHOUSE])
                self._replica.forget_others()
                return
            except Changed:
                self._replica.look()
        raise UsageError(f"{url} is replaced again and again", hint="try again")

    def prepare(self, connection: duckdb.DuckDBPyConnection, query: str | None) -> bool:
        """Let the views over the lake that a query names, or all, read what is fetched for them.

        Returns whether there was anything to do. UsageError if the lake has been replaced
        meanwhile; TracehouseError LAKE_DAMAGED; OSError.
        """
        named = _over_lake() | _over_others() if query is None else _read_by(query)
        if not (named & _over_lake()) - self._ready:
            return False
        wanted = (named & (_over_lake() | _over_others())) - self._ready
        try:
            if self._state is None:
                self._state = self._fetched_state(connection)
            self._replica.need(
                file
                for part in self._state.parts
                for name, file in part.tables.items()
                if name in wanted
            )
            if RUNS.name in wanted:
                self._replica.fetch_runs()
        except (Changed, KeyError) as error:
            raise self._replaced() from error
        except StoreError as error:
            self._replica.look()  # was it removed since it was listed?
            if self._state is None or not self._has_all(wanted):
                raise self._replaced() from error
            raise
        shadow(connection, self.folder, self._state, wanted)
        self._ready |= wanted
        return True

    def _fetched_state(self, connection: duckdb.DuckDBPyConnection) -> LakeState:
        try:
            noted: Iterable[str] = noted_manifests(connection)
            self._replica.fetch(f"lake/manifests/{name}" for name in noted)
        except duckdb.CatalogException:  # built by a version that did not note them
            self._replica.fetch_state()
        return load_state(self.folder)

    def _has_all(self, tables: Iterable[str]) -> bool:
        assert self._state is not None
        return all(
            part.tables[name].path in self._replica.listing
            for part in self._state.parts
            for name in part.tables.keys() & set(tables)
        )

    def _replaced(self) -> UsageError:
        url = self._replica.bucket.url
        return UsageError(
            f"{url} has been rebuilt since it was opened, and its old files are gone.",
            hint="Open it again.",
        )


def has_warehouse(url: str) -> bool:
    """Whether there is a warehouse at a URL. UsageError if that is refused."""
    return Bucket(url).has(WAREHOUSE)


@cache
def _over_lake() -> frozenset[str]:
    """Name the views over the lake."""
    return frozenset(r.name for r in relations() if r.order_by is None and r.query is None)


@cache
def _over_others() -> frozenset[str]:
    """Name the views over other tables and views."""
    return frozenset(view.name for view in live_views())


def _read_by(query: str) -> set[str]:
    """Return the relations whose names a query has, and those that they read."""
    known = _reads()
    found: set[str] = set()
    new = set(_WORD.findall(query.lower())) & known.keys()
    while new:
        found |= new
        new = set().union(*(known[name] for name in new)) - found
    return found


@cache
def _reads() -> dict[str, set[str]]:
    """Return for each table and view the names of those that it reads."""
    words = {view.name: set(_WORD.findall(view.query.lower())) for view in live_views()}
    known = {relation.name for relation in relations()} | words.keys()
    return {name: words.get(name, set()) & known for name in known}
