"""The names of everything under OUT.

    OUT/.lock                          held by the run that writes
    OUT/warehouse.duckdb               what readers open
    OUT/.copy-of                       only in a working copy: the URL of what it is a copy of
    OUT/lake/<table>/<part>.parquet    the rows of a part
    OUT/lake/manifests/<part>.json     what the part is; its appearance is the commit

A part's id is `part-000001` and ascending. A file under construction carries
`.tmp-<part>-<process>` behind its name, so that nobody reads it and a later run knows it as left
over.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tracehouse.storage.unreadable import unreadable, why_unreadable

LOCK = ".lock"
WAREHOUSE = "warehouse.duckdb"
LAKE = "lake"
MANIFESTS = "manifests"

_PART_ID = re.compile(r"part-(\d{6,})", re.ASCII)
_OURS = re.compile(r"part-\d{6,}\.(parquet|json)(\.tmp-part-\d{6,}-\d+)?|run-\d{6,}\.tmp", re.ASCII)


def part_id(number: int) -> str:
    """Return the id of the part with this number, from 1."""
    return f"part-{number:06d}"


def part_number(part: str) -> int:
    """Return the number of a part id; the newest part has the highest."""
    match = _PART_ID.fullmatch(part)
    if match is None:
        raise KeyError(part)
    return int(match[1])


def table_path(table: str, part: str) -> str:
    """Return the path of a part's rows of a table, relative to OUT."""
    return f"{LAKE}/{table}/{part}.parquet"


def manifest_path(out: Path, part: str) -> Path:
    """Return the path of a part's manifest."""
    return out / LAKE / MANIFESTS / f"{part}.json"


def temporary(path: Path, part: str) -> Path:
    """Return where this process builds the file of `part` that will be `path`."""
    return path.with_name(f"{path.name}.tmp-{part}-{_process(os.getpid())}")


@cache
def _process(pid: int) -> str:
    """Return digits that no other process has, be it on another machine."""
    return f"{pid}{secrets.randbelow(10**9):09d}"


def manifest_paths(out: Path) -> list[Path]:
    """Return the committed manifests, oldest first; none where there is no lake.

    TracehouseError LAKE_UNREADABLE if their folder cannot be read.
    """
    folder = out / LAKE / MANIFESTS
    try:
        if not folder.is_dir():
            return []
        found = [p for p in folder.iterdir() if p.suffix == ".json" and _PART_ID.fullmatch(p.stem)]
    except OSError as error:
        if (why := why_unreadable(error)) is None:
            raise
        raise unreadable(folder, why) from error
    return sorted(found, key=lambda p: part_number(p.stem))


def next_part_number(out: Path) -> int:
    """Return the first number that no committed part has or has had above it."""
    paths = manifest_paths(out)
    return part_number(paths[-1].stem) + 1 if paths else 1


def written_files(out: Path) -> Iterator[Path]:
    """Yield every file in the lake that carries a name of ours, whole or under construction."""
    lake = out / LAKE
    if not lake.is_dir():
        return
    for folder in sorted(lake.iterdir()):
        if folder.is_dir():
            yield from (path for path in sorted(folder.iterdir()) if _OURS.fullmatch(path.name))


def is_written(name: str) -> bool:
    """Whether a path relative to OUT is one that `written_files` yields."""
    steps = name.split("/")
    return len(steps) == 3 and steps[0] == LAKE and _OURS.fullmatch(steps[2]) is not None
