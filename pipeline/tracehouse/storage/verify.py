"""Whether the lake is as its manifests say: what is missing, cut off, changed or unreadable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tracehouse.errors import TracehouseError
from tracehouse.storage.manifest import LakeState, Part, TableFile
from tracehouse.storage.unreadable import UNREAD, unreadable, why_unreadable
from tracehouse.storage.writer import checksum

Columns = Mapping[str, Collection[str]]
"""The columns that this version reads of each table."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    `where`: a path, relative to OUT for what lies in it. `fault`: one word. Of the lake: missing,
    size, checksum, format, rows, columns, manifest, record, unheld; unreadable, which is no damage:
    this process cannot read it now. Of the database: missing, unreadable, stale, moved, rows, view.
    `part`: that has to go, or has to stay because one of its files is unreadable; None if it is of
    none.
    """

    where: str
    fault: str
    what: str
    part: str | None = None


def lake_faults(out: Path, parts: Iterable[Part], columns: Columns) -> Iterator[Fault]:
    """Yield what is wrong with the Parquet files of `parts`: every byte of them is read."""
    for part in parts:
        for table, file in sorted(part.tables.items()):
            found = file_fault(out, file, columns.get(table, ()))
            if found is not None:
                yield Fault(file.path, *found, part.id)


def unheld_files(state: LakeState) -> Iterator[Fault]:
    """Yield the files that refer to a trace of which no part has the rows."""
    for entry in state.files:
        lost = [ref.trace_id for ref in entry.traces if ref.trace_id not in state.owners]
        if lost:
            yield Fault(entry.path, "unheld", f"no part holds its trace {lost[0]}")


def file_fault(
    out: Path, file: TableFile, columns: Collection[str] = (), *, is_quick: bool = False
) -> tuple[str, str] | None:
    """Return what is wrong with a Parquet file, in a word and in words; None if nothing is.

    `columns`: those that it must have. `is_quick`: judge by its length and footer alone, which a
    changed bit may pass.
    """
    found = _content_fault(out, file, is_quick=is_quick)
    if found is not None:
        return found
    try:
        with pq.ParquetFile(out / file.path) as parquet:
            rows, names = parquet.metadata.num_rows, parquet.schema_arrow.names
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if (why := why_unreadable(error)) is not None:
            return UNREAD, why
        return "format", f"it is no Parquet that can be read: {error}"
    if rows != file.rows:
        return "rows", f"it has {rows:,} rows, not {file.rows:,}"
    if absent := sorted(set(columns) - set(names)):
        return "columns", f"it has no column {absent[0]}: another version wrote it"
    return None


def _content_fault(out: Path, file: TableFile, *, is_quick: bool) -> tuple[str, str] | None:
    path = out / file.path
    try:
        size = path.stat().st_size
        if size != file.bytes:
            return "size", f"it has {size:,} bytes, not {file.bytes:,}"
        found = file.checksum if is_quick else checksum(path)
    except OSError as error:
        why = why_unreadable(error)
        return ("missing", "it is gone") if why is None else (UNREAD, why)
    if found != file.checksum:
        return "checksum", f"its content has changed: XXH3 {found}, not {file.checksum}"
    return None


def check_files(out: Path, files: Iterable[TableFile]) -> None:
    """Raise TracehouseError LAKE_DAMAGED for the first file that is not as it was written.

    LAKE_UNREADABLE where this process cannot read it.
    Its checksum tells that; to open it as Parquet would cost three times as much.
    """
    for file in files:
        found = _content_fault(out, file, is_quick=False)
        if found is not None:
            raise fault_error(out, file.path, found)


def fault_error(out: Path, path: str, fault: tuple[str, str]) -> TracehouseError:
    """Return the error that names a file of the lake with its fault, and says what to do."""
    word, what = fault
    if word == UNREAD:
        return unreadable(out / path, what)
    return TracehouseError(
        f"the lake is damaged: {out / path}: {what}",
        code="LAKE_DAMAGED",
        hint=f"restore it from a backup, or: tracehouse check {out} --repair",
    )
