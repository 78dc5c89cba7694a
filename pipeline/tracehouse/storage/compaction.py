"""Rewriting parts: without rows that don't count, and small ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracehouse.storage import durable, layout
from tracehouse.storage.manifest import (
    FileEntry,
    LakeState,
    Part,
    TableFile,
    load_state,
    pruned_paths,
)
from tracehouse.storage.verify import check_files
from tracehouse.storage.writer import PartWriter, commit_staged

# A part of 256 MiB of text makes some 10 MB of Parquet or more.
SMALL_BYTES = 64 << 20  # parts below this are merged when a user asks for it,
_FULL_BYTES = 256 << 20  # into parts of about this size
# By itself only what a nightly run of few traces leaves is merged, so that a run never rewrites
# more than MANY times TINY. A query pays some 0.2 ms a Parquet file: 32 parts of 30 tables cost it
# as much as a report takes to print, and they come together in a month of nights.
_TINY_BYTES = 4 << 20
_MANY = 32


@dataclass(slots=True)
class _Group:
    """Parts that become one, whose tables have the same columns."""

    settings: str | None = None  # None: no part of it has rows
    version: str | None = None
    bytes: int = 0
    parts: list[Part] = field(default_factory=list)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)


def is_due(state: LakeState) -> bool:
    """Whether a run should compact: more traces are dead than count, or many parts are tiny."""
    dead = sum(len(traces) for traces in state.dead.values())
    return dead > len(state.owners) or _tiny_parts(state) >= _MANY


def due_below(state: LakeState) -> int:
    """Return below how many bytes of Parquet `compact` should merge what `is_due` speaks of."""
    return _TINY_BYTES if _tiny_parts(state) >= _MANY else 0


def files_read(state: LakeState, below: int) -> list[TableFile]:
    """Return the Parquet files that `compact` reads: of the parts that it may rewrite."""
    return [
        f for part in state.parts if _is_wanted(part, state, below) for f in part.tables.values()
    ]


def _is_wanted(part: Part, state: LakeState, below: int) -> bool:
    return part.id in state.dead or _bytes(part) < below or not part.tables


def _tiny_parts(state: LakeState) -> int:
    return sum(_bytes(part) < _TINY_BYTES for part in state.parts)


def compact(out: Path, *, below: int = 0) -> tuple[str, ...]:
    """Rewrite the parts that have dead rows, and merge those of less than `below` bytes of Parquet.

    Returns the ids of the parts replaced. Their manifests go; their Parquet files stay until the
    next `clean`, for readers of the warehouse built from them: rebuild it in between. Call it under
    the lock. A crash in between costs nothing: a new part outranks those it replaces.

    Raises:
        TracehouseError: LAKE_DAMAGED names a file that is not as it was written.
        OSError: the lake cannot be written.
    """
    state = load_state(out)
    live = {entry.path: entry for entry in state.files}
    groups = _groups(out, state, below, live)
    for group in groups:
        _merge(out, group, state, live)
    replaced = [part for group in groups for part in group.parts]
    for part in replaced:
        layout.manifest_path(out, part.id).unlink()
        durable.sync(out / layout.LAKE / layout.MANIFESTS)
    _drop_prunes(out)
    return tuple(sorted((part.id for part in replaced), key=layout.part_number))


def _groups(out: Path, state: LakeState, below: int, live: dict[str, FileEntry]) -> list[_Group]:
    """Divide the parts that are to be rewritten; one that would come out as it is stays."""
    groups: list[_Group] = []
    for part in state.parts:
        if not _is_wanted(part, state, below):
            continue
        check_files(out, part.tables.values())
        schemas = {name: pq.read_schema(out / f.path) for name, f in part.tables.items()}
        group = next((g for g in groups if below and _fits(g, part, schemas)), None)
        if group is None:
            group = _Group()
            groups.append(group)
        group.parts.append(part)
        group.bytes += _bytes(part)
        group.schemas = schemas | group.schemas
        if part.tables:
            group.settings, group.version = part.settings, part.pipeline_version
    return [g for g in groups if len(g.parts) > 1 or _is_worn(g.parts[0], state, live)]


def _fits(group: _Group, part: Part, schemas: dict[str, pa.Schema]) -> bool:
    if group.bytes + _bytes(part) > _FULL_BYTES:
        return False
    if not part.tables or group.settings is None:
        return True
    if (group.settings, group.version) != (part.settings, part.pipeline_version):
        return False
    return all(schemas[name].equals(group.schemas[name]) for name in schemas.keys() & group.schemas)


def _is_worn(part: Part, state: LakeState, live: dict[str, FileEntry]) -> bool:
    """Whether a part has rows that don't count, or nothing that does."""
    if part.id in state.dead:
        return True
    return not part.tables and not any(live.get(e.path) is e for e in part.files)


def _bytes(part: Part) -> int:
    return sum(file.bytes for file in part.tables.values())


def _merge(out: Path, group: _Group, state: LakeState, live: dict[str, FileEntry]) -> None:
    """Commit what counts of some parts as the newest part; nothing if nothing does."""
    files = [e for part in group.parts for e in part.files if live.get(e.path) is e]
    held = {
        part.id: [t for t in part.held if t not in state.dead.get(part.id, ())]
        for part in group.parts
    }
    every = [trace_id for traces in held.values() for trace_id in traces]
    if not files and not every:
        return
    with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
        for part in group.parts:
            for name in part.tables if held[part.id] else ():
                _copy_rows(out, part, name, held[part.id], writer)
        staged = writer.stage(files, every, group.settings or "")
        version = group.version or staged.part.pipeline_version
        part = replace(staged.part, pipeline_version=version)
        commit_staged(out, replace(staged, part=part))


def _copy_rows(out: Path, part: Part, name: str, held: Sequence[str], writer: PartWriter) -> None:
    is_whole = len(held) == len(part.held)
    with pq.ParquetFile(out / part.tables[name].path) as parquet:
        for index in range(parquet.num_row_groups):
            rows = parquet.read_row_group(index)
            writer.append(name, rows if is_whole else rows.filter(_is_any(rows["trace_id"], held)))


def _is_any(column: pa.ChunkedArray, words: Sequence[str]) -> pa.ChunkedArray:
    return pc.is_in(column.cast(pa.string()), pa.array(words, pa.string()))


def _drop_prunes(out: Path) -> None:
    """Remove the manifests that only forget, and of whose paths no older part speaks any more.

    The newest manifest stays, whatever it is: no number is given twice.
    """
    known: set[str] = set()
    parts = {layout.manifest_path(out, part.id): part for part in load_state(out).parts}
    for path in layout.manifest_paths(out)[:-1]:
        if path in parts:
            known |= {entry.path for entry in parts[path].files}
        elif not known & set(pruned_paths(path) or ()):
            path.unlink()
            durable.sync(path.parent)
