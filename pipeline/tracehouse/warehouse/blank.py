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
from tracehouse.warehouse.catalogue import Relation, relations
from tracehouse.warehouse.connection import open_file
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
        for relation in relations():
            connection.execute(";".join(_statements(relation)))
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
    texts += [statement for relation in relations() for statement in _statements(relation)]
    return xxhash.xxh3_64("\0".join(texts).encode()).hexdigest()


def _statements(relation: Relation) -> list[str]:
    """Word the statements that make a relation, empty, with its comments."""
    if relation.query is not None:
        kind = "VIEW"
        made = [f"CREATE VIEW {relation.name} AS {relation.query}"]
    elif relation.order_by is None:
        kind = "VIEW"
        names = ", ".join(f'"{c.name}"' for c in relation.columns)
        made = [
            f"CREATE MACRO {rows_macro(relation)}() AS TABLE {no_rows(relation)}",
            f"CREATE VIEW {relation.name} AS SELECT {names} FROM {rows_macro(relation)}()",
        ]
    else:
        kind = "TABLE"
        columns = ", ".join(f'"{c.name}" {c.type}' for c in relation.columns)
        made = [f"CREATE TABLE {relation.name} ({columns})"]
    return [
        *made,
        f"COMMENT ON {kind} {relation.name} IS {quoted_text(relation.comment)}",
        *(
            f'COMMENT ON COLUMN {relation.name}."{c.name}" IS '
            + quoted_text(comment(c.meaning, c.unit))
            for c in relation.columns
        ),
    ]
