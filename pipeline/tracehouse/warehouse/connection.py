"""The only place that opens DuckDB connections."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb

# A query reads its tables only: it downloads no code and sees no Python variable.
_RESTRICTIONS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
)

# What to do where a lower limit of memory cannot be kept to.
_frees: list[Callable[[], None]] = []


def open_session() -> duckdb.DuckDBPyConnection:
    """Open a session of this process's database in memory, for one analysis on one thread.

    What a session registers, and its temporary tables, are its own and go when it is closed. The
    database is opened once a process: that costs as much as several queries. Parts are what runs
    in parallel, so a query keeps to one thread. The views join in the order that they are written
    in: to look for a better one takes longer than all it saves (a sixth of the time of all views).
    """
    return _database(os.getpid()).cursor()


def limit_memory(limit: int | None) -> None:
    """Let the sessions of this process hold `limit` bytes together; beyond, they use the disk.

    None for what DuckDB takes by itself. What they put on disk goes into the system's folder for
    temporary files, and away with the session.
    """
    database = _database(os.getpid())
    if limit is None:
        database.execute("RESET memory_limit")
        return
    statement = f"SET memory_limit = '{int(limit)}B'"
    try:
        database.execute(statement)
    except duckdb.OutOfMemoryException:  # it holds more by now
        for free in _frees:
            free()
        database.execute(statement)


def when_memory_is_short(free: Callable[[], None]) -> None:
    """Let a function give back what can be done without, where `limit_memory` needs it."""
    _frees.append(free)


def open_file(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open the database file at `path`; created if absent, unless `read_only`.

    Raises:
        duckdb.Error: the file is absent (`read_only`), locked or no database.
    """
    return _restricted(duckdb.connect(path, read_only=read_only))


@contextmanager
def attached(session: duckdb.DuckDBPyConnection, path: Path) -> Iterator[None]:
    """Let the statements of a session write to the database file at `path`, in one transaction.

    An open database serves further files at a tenth of what it costs to open one anew. There is no
    log: a process that dies before the end leaves a file that is not to be used.

    Raises:
        duckdb.Error: the file is absent, locked or no database.
    """
    literal = str(path).replace("'", "''")
    session.execute(f"ATTACH '{literal}' AS _attached (RECOVERY_MODE NO_WAL_WRITES)")
    try:
        session.execute("USE _attached")
        session.begin()
        try:
            yield
        except BaseException:
            session.rollback()
            raise
        session.commit()
    finally:
        session.execute("USE memory")
        session.execute("DETACH _attached")


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Open the database of one process: a fork must not go on with that of its parent."""
    # Made when it is needed; nobody else can know its name and put another there.
    folder = os.path.join(  # noqa: PTH118
        tempfile.gettempdir(), f"tracehouse-{process}-{secrets.token_hex(8)}"
    )
    connection = duckdb.connect(":memory:", config={"threads": 1})
    literal = folder.replace("'", "''")
    connection.execute(f"SET temp_directory = '{literal}'")
    connection.execute("SET GLOBAL disabled_optimizers = 'join_order'")
    return _restricted(connection)


def _restricted(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    for setting in _RESTRICTIONS:
        connection.execute(setting)
    return connection
