"""The manifests of the lake, and the state that they add up to.

A manifest is written once and never changed. A *part* manifest names the files that were read,
what became of them, and the Parquet files with their rows. A *prune* manifest names paths to
forget. Both take a number from one sequence, and the newest that names a path holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xxhash

from tracehouse import __version__
from tracehouse.errors import TracehouseError
from tracehouse.storage import durable, layout
from tracehouse.storage.unreadable import unreadable, why_unreadable

FORMAT = 1
PRUNED = "pruned"  # status of a file whose traces were dropped for their age


@dataclass(frozen=True, slots=True)
class TraceRef:
    """A trace that a file holds; `path` is the file's, or "archive.zip/member.json"."""

    trace_id: str
    path: str


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file: path relative to OUT, rows, bytes, XXH3-64 of its content in hex."""

    path: str
    rows: int
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as a run saw it.

    `mtime_ns` since 1970, `content_hash` None if it was not read. `settings`: hash of what the
    analysis depended on beside the file, "" if that was not noted. `role`: trace; or capture, of a
    file that tells of the graphs in other traces and has none of its own.
    """

    path: str
    size: int
    mtime_ns: int
    content_hash: str | None
    status: str
    reason: str | None
    label: str
    traces: tuple[TraceRef, ...]
    settings: str = ""
    role: str = "trace"


@dataclass(frozen=True, slots=True)
class Part:
    """What one commit added: the files read, and its rows, one Parquet file a table that has any.

    `held` are the traces whose rows are in it. A file entry may refer to others: a file with the
    content of one that an earlier part holds adds no rows. `created_at` is ISO 8601 in UTC.
    `settings` is that of the rows, as in FileEntry.
    """

    id: str
    created_at: str
    pipeline_version: str
    files: tuple[FileEntry, ...]
    tables: dict[str, TableFile]
    held: tuple[str, ...] = ()
    settings: str = ""


@dataclass(frozen=True, slots=True)
class LakeState:
    """What the lake holds.

    `parts`: oldest first. `files`: for each path the entry of the newest part that names it, less
    pruned paths, sorted by path. `owners`: for each trace of a live file, the part whose rows
    count: the newest that holds it. `dead`: for each part that has any, the traces in it whose rows
    don't count, because no live file refers to them or a newer part holds them too.

    All of it follows from the manifests alone, so that it is the same after a crash as without one.
    """

    parts: tuple[Part, ...]
    files: tuple[FileEntry, ...]
    owners: dict[str, str]
    dead: dict[str, frozenset[str]]


def load_state(out: Path, *, passing_over: Collection[Path] = ()) -> LakeState:
    """Read all manifests but those of `passing_over`; an absent lake is an empty one.

    TracehouseError LAKE_DAMAGED names a manifest that cannot be used and says what to do;
    LAKE_UNREADABLE one that this process cannot read.
    """
    parts: list[Part] = []
    live: dict[str, FileEntry] = {}
    holder: dict[str, str] = {}
    for path in layout.manifest_paths(out):
        if path in passing_over:
            continue
        content = _read(path)
        if isinstance(content, Part):
            parts.append(content)
            live.update((entry.path, entry) for entry in content.files)
            holder.update((trace_id, content.id) for trace_id in content.held)
        else:
            for gone in content:
                live.pop(gone, None)
    wanted = {trace.trace_id for entry in live.values() for trace in entry.traces}
    owners = {trace_id: part for trace_id, part in sorted(holder.items()) if trace_id in wanted}
    dead: dict[str, frozenset[str]] = {}
    for part in parts:
        ignored = frozenset(trace_id for trace_id in part.held if owners.get(trace_id) != part.id)
        if ignored:
            dead[part.id] = ignored
    files = tuple(live[path] for path in sorted(live))
    return LakeState(tuple(parts), files, owners, dead)


def all_files(state: LakeState) -> list[TableFile]:
    """Return every Parquet file of the lake."""
    return [file for part in state.parts for file in part.tables.values()]


def unusable_manifests(out: Path) -> dict[Path, TracehouseError]:
    """Return the manifests that cannot be used, and why: LAKE_DAMAGED or LAKE_UNREADABLE."""
    found: dict[Path, TracehouseError] = {}
    for path in layout.manifest_paths(out):
        try:
            _read(path)
        except TracehouseError as error:
            found[path] = error
    return found


def commit_part(out: Path, part: Part) -> None:
    """Write the manifest of a part whose Parquet files are in place: the commit. Raises OSError."""
    _write(out, part.id, {"kind": "part", **asdict(part)})


def commit_prune(out: Path, part_id: str, paths: Collection[str]) -> None:
    """Write a manifest that makes the lake forget `paths`. Raises OSError."""
    content = {"kind": "prune", "created_at": timestamp(), "pipeline_version": __version__}
    _write(out, part_id, {**content, "paths": sorted(paths)})


def shown_path(path: str) -> str:
    """Return a path or message as the warehouse has it: what is not UTF-8 becomes an escape."""
    return path.encode(errors="backslashreplace").decode()


def timestamp() -> str:
    """Return the time now as manifests carry it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _write(out: Path, part_id: str, content: dict[str, Any]) -> None:
    path = layout.manifest_path(out, part_id)
    durable.make_folder(path.parent)
    text = json.dumps({"format": FORMAT, **content}, separators=(",", ":"))
    text = text[:-1] + _sealed(text[:-1])
    durable.replace_text(path, layout.temporary(path, part_id), text)


def _sealed(text: str) -> str:
    """Return how a manifest ends: its last key is the XXH3-64 of all text before it."""
    return f',"checksum":"{xxhash.xxh3_64_hexdigest(text.encode())}"}}'


def pruned_paths(path: Path) -> list[str] | None:
    """Return the paths that a manifest prunes; None if it is that of a part."""
    content = _read(path)
    return None if isinstance(content, Part) else content


def _read(path: Path) -> Part | list[str]:
    """Return the part of a manifest, or the paths that it prunes."""
    try:
        text = path.read_bytes().decode()
        content = json.loads(text)
        if "checksum" in content and not text.endswith(_sealed(text[: -len(_sealed(""))])):
            raise _damaged(path, "its content has changed: the checksum in it is another")
        if content["format"] != FORMAT:
            raise _damaged(path, f"it has format {content['format']}, not {FORMAT}")
        if content["kind"] == "prune":
            return [str(gone) for gone in content["paths"]]
        if content["id"] != path.stem:
            raise _damaged(path, f"it is the manifest of {content['id']}")
        return _part(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if (why := why_unreadable(error)) is not None:
            raise unreadable(path, why) from error
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> TracehouseError:
    out = path.parents[2]
    hint = f"restore the file from a backup, or: tracehouse check {out} --repair"
    return TracehouseError(
        f"the manifest {path} cannot be used: {why}", code="LAKE_DAMAGED", hint=hint
    )


def _part(content: dict[str, Any]) -> Part:
    return Part(
        content["id"],
        content["created_at"],
        content["pipeline_version"],
        tuple(_file_entry(**entry) for entry in content["files"]),
        {table: TableFile(**file) for table, file in content["tables"].items()},
        tuple(content["held"]),
        content.get("settings", ""),
    )


def _file_entry(traces: list[dict[str, str]], **fields: Any) -> FileEntry:
    return FileEntry(traces=tuple(TraceRef(**ref) for ref in traces), **fields)
