from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage import layout
from tracehouse.storage.compaction import compact
from tracehouse.storage.lock import lock
from tracehouse.storage.manifest import FileEntry, Part, TraceRef, load_state
from tracehouse.storage.upkeep import clean, prune
from tracehouse.storage.writer import PartWriter, commit_staged


def entry(path: str, *traces: str) -> FileEntry:
    refs = tuple(TraceRef(trace, path) for trace in traces)
    return FileEntry(path, 1, 2, "ab", "ok", None, "job", refs)


def write(out: Path, number: int, files: dict[str, str], held: str) -> Part:
    """Commit a part: `files` are path → trace, `held` its traces, two rows each in `ops`."""
    with PartWriter(out, layout.part_id(number)) as writer:
        for trace in held:
            ids = pa.array([trace] * 2).dictionary_encode()
            writer.append("ops", pa.table({"trace_id": ids, "event_id": [number, number + 100]}))
        return commit_staged(out, writer.stage([entry(p, t) for p, t in files.items()], list(held)))


def counted(out: Path) -> dict[str, list[int]]:
    """Collect the event ids that count, by trace."""
    state = load_state(out)
    found: dict[str, list[int]] = {}
    for part in state.parts:
        for file in part.tables.values():
            for row in pq.read_table(out / file.path).to_pylist():
                if state.owners.get(row["trace_id"]) == part.id:
                    found.setdefault(row["trace_id"], []).append(row["event_id"])
    return found


def parquet_files(out: Path) -> list[str]:
    return sorted(p.name for p in (out / "lake/ops").iterdir())


# --- lock ---------------------------------------------------------------------------------------


def test_lock_keeps_others_out(tmp_path):
    out = tmp_path / "deep" / "out"
    code = (
        "import sys, pathlib; from tracehouse.storage.lock import lock\n"
        "with lock(pathlib.Path(sys.argv[1])): pass"
    )

    def other() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, str(out)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with lock(out):
        with pytest.raises(UsageError, match="another run is writing to") as caught, lock(out):
            pass
        assert str(out) in str(caught.value)
        run = other()
        assert run.returncode != 0
        assert "another run is writing to" in run.stderr
    assert other().returncode == 0


def test_lock_ends_with_an_error(tmp_path):
    with pytest.raises(BlockingIOError), lock(tmp_path):
        raise BlockingIOError  # of the body, not of the lock
    with lock(tmp_path):
        pass


def test_lock_on_a_file(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="cannot write to"), lock(tmp_path / "out"):
        pass


# --- clean --------------------------------------------------------------------------------------


def test_clean_removes_refuse_and_nothing_else(tmp_path):
    write(tmp_path, 1, {"a": "A"}, "A")
    before = load_state(tmp_path)
    refuse = (
        "lake/manifests/part-000002.json.tmp-part-000002-77",
        "lake/ops/part-000002.parquet",
        "lake/ops/part-000003.parquet.tmp-part-000003-77",
    )
    kept = ("lake/ops/notes.txt", "lake/ops/other.parquet", "warehouse.duckdb", "lake/README")
    for name in refuse + kept:
        (tmp_path / name).write_text("x")
    assert clean(tmp_path) == refuse
    assert not any((tmp_path / name).exists() for name in refuse)
    assert all((tmp_path / name).exists() for name in kept)
    assert load_state(tmp_path) == before
    assert counted(tmp_path) == {"A": [1, 101]}
    assert clean(tmp_path) == ()


def test_clean_of_nothing(tmp_path):
    assert clean(tmp_path / "nowhere") == ()


def test_clean_touches_nothing_where_a_manifest_is_damaged(tmp_path):
    write(tmp_path, 1, {"a": "A"}, "A")
    layout.manifest_path(tmp_path, "part-000001").write_text("{")
    with pytest.raises(TracehouseError, match="part-000001"):
        clean(tmp_path)
    assert parquet_files(tmp_path) == ["part-000001.parquet"]


# --- prune --------------------------------------------------------------------------------------


def test_prune(tmp_path):
    write(tmp_path, 1, {"a": "A", "b": "B"}, "AB")
    assert prune(tmp_path, ["a", "never seen"]) == ("a",)
    assert [f.path for f in load_state(tmp_path).files] == ["b"]
    assert counted(tmp_path) == {"B": [1, 101]}
    assert layout.next_part_number(tmp_path) == 3


def test_prune_of_nothing_writes_nothing(tmp_path):
    write(tmp_path, 1, {"a": "A"}, "A")
    assert prune(tmp_path, ["z"]) == ()
    assert prune(tmp_path, []) == ()
    assert len(layout.manifest_paths(tmp_path)) == 1


def test_a_pruned_path_leaves_what_another_file_holds(tmp_path):
    write(tmp_path, 1, {"a": "A", "b": "A"}, "A")
    prune(tmp_path, ["a"])
    assert counted(tmp_path) == {"A": [1, 101]}


# --- compact ------------------------------------------------------------------------------------


def test_compact_drops_dead_rows_only(tmp_path):
    write(tmp_path, 1, {"a": "A", "b": "B", "c": "C"}, "ABC")
    write(tmp_path, 2, {"d": "D"}, "D")
    write(tmp_path, 3, {"a": "X"}, "X")
    prune(tmp_path, ["c"])  # number 4
    files, rows = load_state(tmp_path).files, counted(tmp_path)
    assert rows == {"B": [1, 101], "D": [2, 102], "X": [3, 103]}
    assert compact(tmp_path) == ("part-000001",)
    state = load_state(tmp_path)
    assert [p.id for p in state.parts] == ["part-000002", "part-000003", "part-000005"]
    assert state.parts[-1].tables["ops"].rows == 2
    assert (state.files, counted(tmp_path), state.dead) == (files, rows, {})
    # Readers of the old warehouse keep their file until the next clean.
    assert "part-000001.parquet" in parquet_files(tmp_path)
    assert clean(tmp_path) == ("lake/ops/part-000001.parquet",)
    assert compact(tmp_path) == ()


def test_compact_leaves_nothing_of_a_part_that_died(tmp_path):
    write(tmp_path, 1, {"a": "A"}, "A")
    write(tmp_path, 2, {"a": "B"}, "B")
    assert compact(tmp_path) == ("part-000001",)
    assert [p.id for p in load_state(tmp_path).parts] == ["part-000002"]
    assert counted(tmp_path) == {"B": [2, 102]}


def test_compact_keeps_the_files_of_a_part_without_rows_that_count(tmp_path):
    write(tmp_path, 1, {"a": "A"}, "A")
    write(tmp_path, 2, {"b": "A"}, "A")  # owns A now
    assert compact(tmp_path) == ("part-000001",)
    state = load_state(tmp_path)
    assert [f.path for f in state.files] == ["a", "b"]
    assert state.owners == {"A": "part-000002"}
    assert state.parts[-1].tables == {}


def test_a_compaction_cut_short_changes_nothing(tmp_path, monkeypatch):
    write(tmp_path, 1, {"a": "A", "b": "B"}, "AB")
    write(tmp_path, 2, {"a": "X", "c": "C"}, "XC")
    write(tmp_path, 3, {"c": "Y"}, "Y")
    files, rows = load_state(tmp_path).files, counted(tmp_path)
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path.name == "part-000002.json":
            raise KeyboardInterrupt
        real(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path)
    assert (load_state(tmp_path).files, counted(tmp_path)) == (files, rows)
    clean(tmp_path)
    compact(tmp_path)
    assert (load_state(tmp_path).files, counted(tmp_path)) == (files, rows)
    assert load_state(tmp_path).dead == {}


def test_a_lake_can_be_moved(tmp_path):
    write(tmp_path / "here", 1, {"a": "A"}, "A")
    state = load_state(tmp_path / "here")
    os.rename(tmp_path / "here", tmp_path / "there")  # noqa: PTH104
    assert load_state(tmp_path / "there") == state
    assert counted(tmp_path / "there") == {"A": [1, 101]}
