"""The blank warehouse: every table, view and comment, and no rows.

It is made once, then copied and filled: to make the catalogue with its comments costs several times
what it costs to fill it. What differs from one warehouse to the next, the Parquet files behind a
view, stands in a macro that the view reads.
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import duckdb
import xxhash

from tracehouse import __version__
from tracehouse.warehouse.catalogue import Relation, live_views, relations
from tracehouse.warehouse.connection import open_file
from tracehouse.warehouse.origin import ORIGIN_TABLE
from tracehouse.warehouse.views import comment

# Beside the compiled routines, which live and go with the code just so.
_KEPT = Path(__file__).parent / "__pycache__"


def copy_blank(target: Path) -> None:
    """Put a blank warehouse of this version at `target`; the first time it is made and kept.

    Raises:
        OSError, duckdb.Error: `target` cannot be written.
    """
    kept = _KEPT / f"blank-{_fingerprint()}.duckdb"
    if not kept.exists():
        temporary = kept.with_suffix(f".{os.getpid()}.tmp")
        try:
            _KEPT.mkdir(exist_ok=True)
            _make(temporary)
            temporary.replace(kept)
        except (OSError, duckdb.IOException):  # the package's folder cannot be written to
            _make(target)
            return
    shutil.copyfile(kept, target)


def _make(path: Path) -> None:
    with open_file(path, read_only=False) as connection:
        connection.begin()
        for statement in _all_statements():
            connection.execute(statement)
        connection.commit()


def rows_macro(relation: Relation) -> str:
    """Name the macro that gives the rows of a view."""
    return f"_stored_{relation.name}"


def no_rows(relation: Relation) -> str:
    """Word a SELECT that has the columns of a relation and no rows."""
    nulls = ", ".join(f'CAST(NULL AS {c.type}) AS "{c.name}"' for c in relation.columns)
    return f"SELECT {nulls} WHERE false"


def quoted_text(value: str) -> str:
    """Word a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


@cache
def _fingerprint() -> str:
    """Tell blanks of other versions apart."""
    texts = [__version__, duckdb.__version__]
    texts += _all_statements()
    return xxhash.xxh3_64("\0".join(texts).encode()).hexdigest()


def _all_statements() -> list[str]:
    """Word the statements that make everything, each view after what it reads, then comments."""
    return [
        *(";".join(_made(relation)) for relation in relations() if relation.query is None),
        *(f"CREATE VIEW {view.name} AS {view.query}" for view in live_views()),
        *(";".join(_comments(relation)) for relation in relations()),
        ORIGIN_TABLE,
    ]


def _made(relation: Relation) -> list[str]:
    """Word the statements that make a table, or a view over the lake, empty."""
    if relation.order_by is None:
        names = ", ".join(f'"{c.name}"' for c in relation.columns)
        return [
            f"CREATE MACRO {rows_macro(relation)}() AS TABLE {no_rows(relation)}",
            f"CREATE VIEW {relation.name} AS SELECT {names} FROM {rows_macro(relation)}()",
        ]
    columns = ", ".join(f'"{c.name}" {c.type}' for c in relation.columns)
    return [f"CREATE TABLE {relation.name} ({columns})"]


def _comments(relation: Relation) -> list[str]:
    kind = "VIEW" if relation.order_by is None else "TABLE"
    return [
        f"COMMENT ON {kind} {relation.name} IS {quoted_text(relation.comment)}",
        *(
            f'COMMENT ON COLUMN {relation.name}."{c.name}" IS '
            + quoted_text(comment(c.meaning, c.unit))
            for c in relation.columns
        ),
    ]
