"""What the system does to a run: a full disk, missing permission, readers at the wrong moment.

Nothing is lost, nothing is half there, and the message says what and where. Root meets no missing
permission: it takes another user's rights for the time of a test.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import run
from rights import folder_for_all, open_to_all, unprivileged
from warehouses import analyse, drawn, query, temporary_files

from tracehouse.commands.check import check
from tracehouse.errors import UsageError
from tracehouse.storage import layout
from tracehouse.storage.manifest import FileEntry, TraceRef, load_state
from tracehouse.storage.upkeep import clean
from tracehouse.storage.writer import PartWriter, commit_staged
from tracehouse.warehouse.query import Warehouse

OPS = "SELECT name FROM ops ORDER BY name"


# --- a full disk -------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Return a folder on a disk of 24 MiB, or skip."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("no right to mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_fills_up_at_any_moment(small_disk, tmp_path):
    folder, out = tmp_path / "in", small_disk / "out"
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    drawn(2).write(folder / "b.json")
    filler = small_disk / "filler"
    failed = 0
    # No room for a page of Parquet, a file of it, a part, the database.
    for free in (0, 8 << 10, 100 << 10, 1 << 20):
        filler.write_bytes(b"")
        with filler.open("r+b") as file:
            usage = os.statvfs(small_disk)
            room = usage.f_bavail * usage.f_frsize
            os.posix_fallocate(file.fileno(), 0, max(room - free, 1))
        done = run("analyze", folder, "-o", out, "--workers", 1)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert str(out) in done.stderr
        assert temporary_files(out / "lake") == []
        failed += 1
        assert query(out, OPS) == [("aten::op1",)]  # readers see the old state, whole
        filler.unlink()
    assert failed == 4
    assert run("analyze", folder, "-o", out, "--workers", 1).returncode == 0
    assert query(out, OPS) == [("aten::op1",), ("aten::op2",)]
    assert check(out).faults == ()
    assert temporary_files(out) == []


def _write(out: Path, name: str) -> None:
    """Commit a part of one file `name` with one trace of that name."""
    with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
        for table in ("ops", "kernels"):
            ids = pa.array([name] * 3).dictionary_encode()
            writer.append(table, pa.table({"trace_id": ids, "event_id": [0, 1, 2]}))
        entry = FileEntry(name, 1, 2, name, "ok", None, "job", (TraceRef(name, name),))
        commit_staged(out, writer.stage([entry], [name]))


class _FullAt:
    """Makes every write point raise ENOSPC from the step that is told on."""

    def __init__(self, monkeypatch, step: int) -> None:
        self.left = step
        for owner, name in (
            (os, "fsync"),
            (Path, "replace"),
            (Path, "mkdir"),
            (Path, "write_text"),
            (pq.ParquetWriter, "write_table"),
            (pq.ParquetWriter, "close"),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real):
        def call(*arguments, **options):
            if self.left <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left -= 1
            return real(*arguments, **options)

        return call


def test_a_disk_full_at_every_write_point(tmp_path):
    base = tmp_path / "base"
    _write(base, "a")
    old = load_state(base)
    for step in itertools.count():
        out = tmp_path / str(step)
        shutil.copytree(base, out)
        with pytest.MonkeyPatch.context() as patch:
            _FullAt(patch, step)
            try:
                _write(out, "b")
                break
            except OSError as error:
                code = error.errno
        assert code == errno.ENOSPC
        state = load_state(out)
        assert (state.files, state.owners) == (old.files, old.owners) or len(state.files) == 2
        clean(out)
        _write(out, "b")
        assert [entry.path for entry in load_state(out).files] == ["a", "b"]
        assert not [p for p in (out / "lake").rglob("*") if "tmp" in p.name]
    assert step > 12


# --- permissions -------------------------------------------------------------------------------


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with folder_for_all() as folder:
        yield folder


@pytest.fixture
def in_and_out(open_folder):
    folder, out = open_folder / "in", open_folder / "out"
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    open_to_all(out)
    return folder, out


def test_an_out_that_may_not_be_written_is_a_usage_error(in_and_out):
    folder, out = in_and_out
    (out / ".lock").chmod(0o444)
    out.chmod(0o555)
    with unprivileged():
        with pytest.raises(UsageError, match=r"cannot write to .*Permission denied"):
            analyse(folder, out=out)
        with pytest.raises(UsageError, match=r"cannot write to .*Permission denied"):
            analyse(folder, out=out / "below")
        # Reading it needs no right to write.
        assert query(out, OPS) == [("aten::op1",)]
        assert check(out).faults == ()
        assert run("refresh", out).returncode == 2
        assert run("check", out, "--repair").returncode == 2
    out.chmod(0o777)


@pytest.mark.parametrize("closed", ["lake/ops", "lake/manifests", "lake/runs", "."])
def test_a_folder_inside_that_may_not_be_written(in_and_out, closed):
    folder, out = in_and_out
    drawn(2).write(folder / "b.json")
    (out / closed).chmod(0o555)
    with unprivileged():
        done = run("analyze", folder, "-o", out, "--workers", 1)
        assert done.returncode == 1
        assert "Permission denied" in done.stderr
        assert str(out / closed) in done.stderr
        assert query(out, OPS) == [("aten::op1",)]
    (out / closed).chmod(0o777)
    with unprivileged():
        assert run("analyze", folder, "-o", out, "--workers", 1).returncode == 0
    assert query(out, OPS) == [("aten::op1",), ("aten::op2",)]
    assert check(out).faults == ()


def test_an_input_that_may_not_be_read_is_rejected_and_read_when_it_may(open_folder):
    folder, out = open_folder / "in", open_folder / "out"
    file = drawn(1).write(folder / "a.json")
    closed = drawn(2).write(folder / "closed" / "b.json").parent
    file.chmod(0)
    closed.chmod(0)
    with unprivileged():
        report = analyse(folder, out=out, prune=True)
        assert {(r.path, r.status) for r in report.results} == {
            (str(file), "rejected"),
            (str(closed), "rejected"),
        }
    file.chmod(0o644)
    closed.chmod(0o755)
    assert analyse(folder, out=out, prune=True).rejected == 0
    assert query(out, "SELECT count(*) FROM files WHERE status <> 'ok'") == [(0,)]


def test_a_lake_file_that_may_not_be_read_is_named(in_and_out):
    _, out = in_and_out
    events = out / "lake/events/part-000001.parquet"
    events.chmod(0)
    with unprivileged():
        done = run("sql", out, "FROM events")
        assert done.returncode == 1
        assert str(events) in done.stderr
        assert "Permission denied" in done.stderr


# --- readers -----------------------------------------------------------------------------------

READER = """
import pathlib, sys, time
from tracehouse.errors import UsageError
from tracehouse.warehouse.query import Warehouse
out, stop = map(pathlib.Path, sys.argv[1:])
query = '''
SELECT (SELECT list(name ORDER BY name) FROM ops), (SELECT list(name ORDER BY name) FROM kernels),
    (SELECT list(name ORDER BY name) FROM op_summary WHERE category <> '(no op)'),
    (SELECT list(path) FROM traces), (SELECT list(label) FROM traces),
    (SELECT list(label) FROM files)
'''
seen = []
print("ready", flush=True)
while not stop.exists():
    with Warehouse(out) as warehouse:
        try:
            state = warehouse.sql(query).fetchone()
        except UsageError as error:  # two runs have ended since it was opened
            assert "rebuilt since it was opened" in str(error)
            continue
    time.sleep(0.02)
    if state not in seen:
        seen.append(state)
print(seen)
"""


def test_readers_see_the_old_state_or_the_new_one_whole(tmp_path):
    folder, out, stop = tmp_path / "in", tmp_path / "out", tmp_path / "stop"

    def state(number, label):
        return (
            [f"aten::op{number}"],
            ["Memcpy HtoD", f"k{number}"],
            [f"aten::op{number}"],
            [str(folder / "a.json")],
            [label],
            [label],
        )

    drawn(1).write(folder / "a.json")
    analyse(folder, out=out, label="0")
    published = [state(1, "0")]
    command = [sys.executable, "-c", READER, str(out), str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout.readline() == "ready\n"
            for number in range(2, 6):
                drawn(number).write(folder / "a.json")
                for label in "01234":  # four of five publish a label and read nothing
                    analyse(folder, out=out, label=label)
                    published.append(state(number, label))
        finally:
            stop.touch()
        seen = reader.stdout.read()
    assert reader.returncode == 0
    states = eval(seen)  # of our own process
    assert len(published) > 20
    assert len(states) > 4
    at = [published.index(found) for found in states]  # each is one of them, whole,
    assert at == sorted(at)  # and never an older one than before


def test_a_reader_whose_files_are_gone_is_told_to_open_again(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    with Warehouse(out) as warehouse:
        for number in (2, 3, 4):
            drawn(number).write(folder / "a.json")
            analyse(folder, out=out)
        assert warehouse.sql("SELECT count(*) FROM op_summary").fetchone() is not None
        with pytest.raises(UsageError, match="rebuilt since it was opened") as caught:
            warehouse.sql("FROM ops")
    assert caught.value.hint == "Open it again."
