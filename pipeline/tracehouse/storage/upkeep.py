"""Keeping the lake in order: one writer at a time, no refuse, no forgotten files, no dead rows."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracehouse.errors import UsageError
from tracehouse.storage import durable, layout
from tracehouse.storage.manifest import LakeState, Part, commit_prune, load_state
from tracehouse.storage.writer import PartWriter, commit_staged


@contextmanager
def lock(out: Path) -> Iterator[None]:
    """Keep every other run from writing to `out`, which is created if need be.

    The lock is the system's and ends with the process, and with the workers it forked: while one of
    them is still writing, no other run may. UsageError if another run holds it, or if `out` cannot
    be written to.
    """
    try:
        durable.make_folder(out)
        descriptor = os.open(out / layout.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror}", hint="check OUT") from error
    try:
        _take(descriptor, out)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, out: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = f"another run is writing to {out}"
        raise UsageError(message, hint="wait until it ends") from error


def clean(out: Path) -> tuple[str, ...]:
    """Remove what killed runs left: temporary files, and Parquet files that no manifest names.

    Returns their paths relative to `out`. Call it under the lock, before parts are written. Only
    files named as this package names them are touched. TracehouseError LAKE_DAMAGED, and nothing is
    removed, if a manifest cannot be read.
    """
    named = {file.path for part in load_state(out).parts for file in part.tables.values()}
    manifests = set(layout.manifest_paths(out))
    removed = []
    for path in layout.written_files(out):
        relative = path.relative_to(out).as_posix()
        if path not in manifests and relative not in named:
            path.unlink(missing_ok=True)
            removed.append(relative)
    return tuple(removed)


def prune(out: Path, gone: Collection[str]) -> tuple[str, ...]:
    """Forget files: their traces no longer count unless another live file holds them.

    Returns those of `gone` that the lake knew, sorted; nothing is written if there are none. Call
    it under the lock. Raises OSError.
    """
    known = tuple(f.path for f in load_state(out).files if f.path in set(gone))
    if known:
        commit_prune(out, layout.part_id(layout.next_part_number(out)), known)
    return known


def compact(out: Path) -> tuple[str, ...]:
    """Rewrite the parts that have dead rows, each as a new part with the rows that count.

    Returns the ids of the parts replaced. Their manifests go; their Parquet files stay until the
    next `clean`, for readers of the warehouse built from them: rebuild it in between. Call it under
    the lock. A crash in between costs nothing: a new part outranks the one it replaces. Raises
    OSError.
    """
    state = load_state(out)
    worn = [part for part in state.parts if part.id in state.dead]
    for part in worn:
        _rewrite(out, part, state)
    for part in worn:
        layout.manifest_path(out, part.id).unlink()
        durable.sync(out / layout.LAKE / layout.MANIFESTS)
    return tuple(part.id for part in worn)


def _rewrite(out: Path, part: Part, state: LakeState) -> None:
    """Commit what counts of `part` as the newest part; nothing if nothing does."""
    live = {entry.path: entry for entry in state.files}
    files = [entry for entry in part.files if live.get(entry.path) is entry]
    held = [trace_id for trace_id in part.held if trace_id not in state.dead[part.id]]
    if not files and not held:
        return
    with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
        for name, file in part.tables.items() if held else ():
            with pq.ParquetFile(out / file.path) as parquet:
                for index in range(parquet.num_row_groups):
                    rows = parquet.read_row_group(index)
                    writer.append(name, rows.filter(_is_any(rows["trace_id"], held)))
        commit_staged(out, writer.stage(files, held, part.settings))


def _is_any(column: pa.ChunkedArray, words: list[str]) -> pa.ChunkedArray:
    return pc.is_in(column.cast(pa.string()), pa.array(words, pa.string()))
