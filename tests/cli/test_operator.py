"""The nightly job: no terminal, a full disk, a store that fails, a warehouse that moved."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tracehouse as package
from tracehouse.commands import analyze as command
from tracehouse.errors import UsageError

TRACE = json.dumps(
    {
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 5, "tid": 5, "ts": 1, "dur": 2}
        ]
    }
)


def shell(line: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `tracehouse` in a shell line, where it is `$0`."""
    return subprocess.run(
        ["bash", "-c", line, sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


@pytest.fixture
def nightly(tmp_path) -> Path:
    """Return a folder with the folder `in`, of one trace."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(TRACE, encoding="utf-8")
    return tmp_path


# Streams


def test_closed_streams_do_not_stop_the_work(nightly):
    done = shell('"$0" -m tracehouse analyze in -o out 2>&-', cwd=nightly)
    assert done.returncode == 0
    assert "in/a.json  ok" in done.stdout
    done = shell('"$0" -m tracehouse sql out "FROM traces" >&-', cwd=nightly)
    assert (done.returncode, done.stderr) == (0, "")


def test_message_and_hint_are_told_apart(tracehouse, tmp_path):
    done = tracehouse("analyze", "nothere", "-o", "out", cwd=tmp_path)
    words = "Error: no such file or folder: nothere; check the path; quote globs\n"
    assert (done.returncode, done.stderr) == (2, words)


# The disk


def test_a_disk_that_fills_up_while_the_database_is_built(tracehouse, nightly):
    # The database is of some MB, the Parquet files of this trace are of some KB: a limit of 1 MB.
    done = subprocess.run(
        [sys.executable, "-m", "tracehouse", "analyze", "in", "-o", "out"],
        capture_output=True,
        text=True,
        check=False,
        cwd=nightly,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "\nError: cannot build " in done.stderr
    assert not list((nightly / "out").glob("*.duckdb"))
    again = tracehouse("analyze", "in", "-o", "out", cwd=nightly)
    assert again.returncode == 0
    assert "1 files: 1 unchanged, 0 partial, 0 rejected" in again.stderr
    left = {path.name for path in (nightly / "out").iterdir()}
    assert left == {".lock", "lake", "warehouse.duckdb"}


def test_a_moved_warehouse_opens_and_refresh_repoints_it(tracehouse, nightly):
    assert tracehouse("analyze", "in", "-o", "out", cwd=nightly).returncode == 0
    (nightly / "out").rename(nightly / "new")
    assert tracehouse("sql", "new", "FROM events", cwd=nightly).returncode == 0
    moved = tracehouse("check", "new", cwd=nightly)  # for DuckDB alone it is to be repointed
    assert moved.returncode == 1
    assert "refresh" in moved.stdout
    assert tracehouse("refresh", "new", cwd=nightly).returncode == 0
    assert tracehouse("check", "new", cwd=nightly).returncode == 0


def test_an_export_onto_a_folder_is_a_usage_error(tracehouse, warehouse, tmp_path):
    done = tracehouse("export", warehouse, "good", "-o", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {tmp_path} is a folder. Name a file in it.\n"


def test_pruning_says_how_much_went(tracehouse, nightly):
    (nightly / "in" / "b.json").write_text(TRACE.replace("add", "mul"), encoding="utf-8")
    first = tracehouse("analyze", "in", "-o", "out", cwd=nightly)
    assert "pruned" not in first.stderr
    (nightly / "in" / "a.json").unlink()
    done = tracehouse("analyze", "in", "-o", "out", "--prune", cwd=nightly)
    assert "pruned, their files are gone: 1\n" in done.stderr


# Files and stores that come and go


def test_a_link_to_nothing_is_tried_again(nightly):
    (nightly / "in" / "a.json").rename(nightly / "later.json")
    (nightly / "in" / "a.json").symlink_to(nightly / "gone.json")
    first = command.analyze([str(nightly / "in")], nightly / "out", workers=1)
    assert (first.total, first.unchanged, first.rejected) == (1, 0, 1)
    still = command.analyze([str(nightly / "in")], nightly / "out", workers=1)
    assert (still.total, still.rejected) == (1, 1)
    (nightly / "later.json").rename(nightly / "gone.json")
    last = command.analyze([str(nightly / "in")], nightly / "out", workers=1)
    assert [(r.status, r.events) for r in last.results] == [("ok", 1)]


class StoreError(Exception):
    """What a store's library raises: no OSError."""


class Store(MemoryFileSystem):
    """A store of one's own that can fail, and tells no time and no tag of its files."""

    protocol = "shaky"
    store: dict = {}  # noqa: RUF012 (as MemoryFileSystem has it)
    pseudo_dirs = [""]  # noqa: RUF012
    fails_at = ""

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("shaky://"))

    def info(self, path, **kwargs):
        if self.fails_at == "info":
            raise StoreError("no credentials")
        described = super().info(path, **kwargs)
        return {key: described[key] for key in ("name", "size", "type")}

    def find(self, path, detail=False, **kwargs):
        names = super().find(path, **kwargs)
        return {name: self.info(name) for name in names} if detail else names

    def _open(self, path, mode="rb", **kwargs):
        if self.fails_at == "open" and mode == "rb":
            raise StoreError("connection reset")
        return super()._open(path, mode, **kwargs)


@pytest.fixture
def store(monkeypatch):
    fsspec.register_implementation("shaky", Store, clobber=True)
    monkeypatch.setattr(Store, "store", {})
    monkeypatch.setattr(Store, "pseudo_dirs", [""])
    fsspec.filesystem("shaky").pipe("/in/a.json", TRACE.encode())
    return monkeypatch


def test_a_store_that_cannot_be_listed_is_named(store, tmp_path):
    store.setattr(Store, "fails_at", "info")
    with pytest.raises(UsageError, match="cannot read shaky://in: no credentials"):
        package.analyze(["shaky://in"], tmp_path / "out", workers=1)


def test_a_store_that_fails_costs_the_file_until_the_next_run(store, tmp_path):
    store.setattr(Store, "fails_at", "open")
    first = command.analyze(["shaky://in"], tmp_path / "out", workers=1)
    assert [(r.status, r.reason) for r in first.results] == [
        ("rejected", "the file cannot be read: StoreError: connection reset")
    ]
    store.setattr(Store, "fails_at", "")
    second = command.analyze(["shaky://in"], tmp_path / "out", workers=1)
    assert [(r.status, r.events) for r in second.results] == [("ok", 1)]


def test_a_file_whose_version_is_not_known_is_read_again(store, tmp_path):
    command.analyze(["shaky://in"], tmp_path / "out", workers=1)
    # As many bytes, another op, and a store that tells neither a time nor a tag.
    fsspec.filesystem("shaky").pipe("/in/a.json", TRACE.replace("add", "mul").encode())
    command.analyze(["shaky://in"], tmp_path / "out", workers=1)
    with package.open(tmp_path / "out") as warehouse:
        assert warehouse.sql("SELECT name FROM events")["name"].to_pylist() == ["aten::mul"]
