"""Taking what is damaged out of the lake, so that the traces of parts are read again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tracehouse.storage import durable, layout
from tracehouse.storage.manifest import LakeState, commit_prune, load_state
from tracehouse.storage.writer import PartWriter, checksum, commit_staged

DAMAGED = "damaged"  # folder of lake/ where parts are set aside, each in a folder of its own


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did.

    `set_aside`: files moved to lake/damaged, by the path they had, relative to OUT. `forgotten`:
    traces' files whose rows were in them.
    """

    set_aside: tuple[str, ...]
    forgotten: tuple[str, ...]


def take_out(out: Path, parts: Collection[str], manifests: Collection[Path]) -> Repair:
    """Take out damaged parts and manifests that cannot be read; all else stays.

    First a manifest that forgets the files whose rows go, then one that keeps what a damaged part
    says of files whose rows are elsewhere, and last the damaged ones are moved away: a crash in
    between costs nothing. Nothing is deleted. Call it under the lock. Raises OSError.
    """
    state = load_state(out, passing_over=manifests)
    forgotten = _forgotten(state, parts)
    live = {entry.path: entry for entry in state.files if entry.path not in set(forgotten)}
    kept = [
        entry
        for part in state.parts
        if part.id in parts
        for entry in part.files
        if live.get(entry.path) is entry
    ]
    # Also where nothing is forgotten: so that no number is given a second time.
    commit_prune(out, layout.part_id(layout.next_part_number(out)), forgotten)
    if kept:
        with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
            commit_staged(out, writer.stage(kept, []))
    moved = [name for part in sorted(parts) for name in _set_aside(out, part)]
    moved += [name for path in sorted(manifests) for name in _set_aside(out, path.stem)]
    return Repair(tuple(moved), forgotten)


def take_out_records(out: Path, records: Iterable[Path]) -> tuple[str, ...]:
    """Move records of runs to lake/damaged; return the paths that they had, relative to OUT.

    Each goes under its content's hash: the number of the newest is given again. Call it under the
    lock. Raises OSError.
    """
    moved = []
    for path in records:
        folder = out / layout.LAKE / DAMAGED / path.stem
        durable.make_folder(folder)
        mark = checksum(path) if path.is_file() else "no-file"
        path.replace(folder / f"{path.parent.name}-{mark}{path.suffix}")
        durable.sync(path.parent)
        durable.sync(folder)
        moved.append(path.relative_to(out).as_posix())
    return tuple(moved)


def _forgotten(state: LakeState, parts: Collection[str]) -> tuple[str, ...]:
    """Name the files with a trace whose rows are in one of `parts`, or nowhere."""
    return tuple(
        entry.path
        for entry in state.files
        if any(
            ref.trace_id not in state.owners or state.owners[ref.trace_id] in parts
            for ref in entry.traces
        )
    )


def _set_aside(out: Path, part: str) -> list[str]:
    """Move the manifest of a part, then its Parquet files; return the paths that they had."""
    lake = out / layout.LAKE
    folder = lake / DAMAGED / part
    durable.make_folder(folder)
    moved = []
    for path in (layout.manifest_path(out, part), *sorted(lake.glob(f"*/{part}.parquet"))):
        if path.exists():
            path.replace(folder / f"{path.parent.name}{path.suffix}")
            durable.sync(path.parent)
            moved.append(path.relative_to(out).as_posix())
    durable.sync(folder)
    return moved
