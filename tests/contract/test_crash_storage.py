"""A run killed at any moment leaves the old state or the new one, and the next run repairs it.

A child counts its steps (fsync, rename, unlink, a folder made, rows handed to Parquet) and kills
itself with SIGKILL before the step it is told; the test goes through all of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tracehouse.storage.manifest import LakeState, load_state
from tracehouse.storage.upkeep import clean

CHILD = """
import itertools, os, pathlib, shutil, signal, sys
import pyarrow as pa
from tracehouse.storage import compaction, layout, repair, upkeep
from tracehouse.storage.lock import lock
from tracehouse.storage.manifest import FileEntry, TraceRef
from tracehouse.storage.writer import PartWriter, _TableWriter, commit_staged

def entry(path, trace):
    return FileEntry(path, 1, 2, trace, "ok", None, "job", (TraceRef(trace, path),))

def write(out, files):
    number = layout.next_part_number(out)
    with PartWriter(out, layout.part_id(number)) as writer:
        for table in ("ops", "kernels"):
            for trace in sorted(set(files.values())):
                ids = pa.array([trace] * 3).dictionary_encode()
                writer.append(table, pa.table({"trace_id": ids, "event_id": [0, 1, 2]}))
        entries = [entry(*item) for item in files.items()]
        commit_staged(out, writer.stage(entries, sorted(set(files.values()))))

def counting(owner, name):
    real = getattr(owner, name)
    def step(*args, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return real(*args, **options)
    setattr(owner, name, step)

WORK = {
    "start": lambda out: write(out, {"a": "A", "b": "B"}),
    "replace": lambda out: write(out, {"a": "X", "c": "C"}),
    "prune": lambda out: upkeep.prune(out, ["a"]),
    "compact": compaction.compact,
    "merge": lambda out: compaction.compact(out, below=1 << 30),
    "retire": lambda out: upkeep.retire(out, ["a"], "old"),
    "repair": lambda out: repair.take_out(out, ["part-000001"], []),
}

def forked(out, work, stop):
    # In a process of its own; tells whether it came to its end.
    global left
    child = os.fork()
    if child == 0:
        left = stop
        with lock(out):
            WORK[work](out)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0

for owner, name in ((os, "fsync"), (pathlib.Path, "replace"), (pathlib.Path, "unlink"),
                    (pathlib.Path, "mkdir"), (_TableWriter, "append"), (_TableWriter, "_flush")):
    counting(owner, name)
left = -1  # never
mode, work, *folders = sys.argv[1:]
if mode == "undisturbed":
    for folder in folders:
        for each in work.split():
            assert forked(pathlib.Path(folder), each, -1)
else:
    base, copies = map(pathlib.Path, folders)
    for stop in itertools.count():
        shutil.copytree(base, copies / str(stop))
        if forked(copies / str(stop), work, stop):
            break
"""


def child(mode: str, work: str, *folders: Path) -> None:
    """Do `work`, of several words perhaps, undisturbed in each folder.

    Or (`killed`) do it in copies of the first folder, each killed a step later.
    """
    subprocess.run([sys.executable, "-c", CHILD, mode, work, *map(str, folders)], check=True)


def rows(out: Path) -> dict[tuple[str, str], int]:
    """Count the rows that count, by table and trace."""
    state = load_state(out)
    found: dict[tuple[str, str], int] = {}
    for part in state.parts:
        for table, file in part.tables.items():
            for row in pq.read_table(out / file.path).to_pylist():
                if state.owners.get(row["trace_id"]) == part.id:
                    key = (table, row["trace_id"])
                    found[key] = found.get(key, 0) + 1
    return found


def seen(out: Path) -> tuple[object, ...]:
    """What a reader sees: files and rows, whichever parts hold them."""
    return load_state(out).files, rows(out)


def refuse(out: Path) -> set[str]:
    """Name the files of the lake that nothing names."""
    state: LakeState = load_state(out)
    named = {file.path for part in state.parts for file in part.tables.values()}
    here = {p.relative_to(out).as_posix() for p in (out / "lake").rglob("*") if p.is_file()}
    return {p for p in here - named if not p.endswith(".json") and "/damaged/" not in p}


@pytest.mark.parametrize(
    ("before", "work", "steps"),
    [
        ([], "start", 15),
        (["start"], "replace", 15),
        (["start", "replace"], "prune", 3),  # the manifest: sync it, rename it, sync its folder
        (["start", "replace", "prune"], "compact", 15),
        (["start", "replace"], "merge", 15),
        (["start"], "retire", 3),
        (["start", "replace"], "repair", 6),
    ],
)
def test_killed_at_every_step(tmp_path, before, work, steps):
    base, copies, undisturbed = tmp_path / "base", tmp_path / "copies", tmp_path / "undisturbed"
    base.mkdir()
    child("undisturbed", " ".join(before), base)
    shutil.copytree(base, undisturbed)
    child("undisturbed", work, undisturbed)
    child("killed", work, base, copies)
    old, new = seen(base), seen(undisturbed)
    outs = sorted(copies.iterdir())
    assert len(outs) > steps  # the last one was not killed
    met = set()
    for out in outs:
        state = seen(out)
        assert state in (old, new), out
        met.add(state == new)
        clean(out)
        assert seen(out) == state
        assert refuse(out) == set()
    assert met == {old == new, True}
    child("undisturbed", work, *outs)
    for out in outs:
        assert seen(out) == new
        assert work not in ("compact", "merge") or load_state(out).dead == {}
