"""The lock of a warehouse: one writer, named to the others, and no trouble after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tracehouse.errors import UsageError
from tracehouse.storage.lock import Holder, lock

HOLD = (
    "import sys, pathlib; from tracehouse.storage.lock import lock\n"
    "with lock(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def holder(tmp_path):
    """Start a process that holds the lock until its stdin is closed."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.kill()


def test_the_holder_is_named(tmp_path, holder):
    before = time.monotonic()
    with pytest.raises(UsageError) as caught, lock(tmp_path):
        pass
    assert time.monotonic() - before < 1  # at once
    host = os.uname().nodename
    assert f"another run is writing to {tmp_path}: process {holder.pid} on {host}, since 20" in str(
        caught.value
    )
    assert "--wait" in caught.value.hint


def test_who_has_only_just_taken_it_is_named(tmp_path, holder):
    note = (tmp_path / ".lock").read_text()
    (tmp_path / ".lock").write_text("")
    threading.Timer(0.2, (tmp_path / ".lock").write_text, [note]).start()
    with pytest.raises(UsageError, match=f"process {holder.pid} on "), lock(tmp_path):
        pass


def test_waiting_has_an_end(tmp_path, holder):
    before = time.monotonic()
    with pytest.raises(UsageError, match=r"waited 0\.3 s"), lock(tmp_path, wait=0.3):
        pass
    assert 0.3 <= time.monotonic() - before < 3


def test_waiting_ends_with_the_holder(tmp_path, holder):
    threading.Timer(0.3, holder.stdin.close).start()
    with lock(tmp_path, wait=60) as held:
        assert held.died is None  # it gave the lock back
        assert holder.wait(10) == 0


def test_a_lock_that_a_killed_process_left_is_no_obstacle(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with lock(tmp_path, wait=10) as held:  # the system takes it back in its own time
        assert held.died is not None
        assert held.died.pid == holder.pid
    with lock(tmp_path) as held:
        assert held.died is None


@pytest.mark.parametrize("note", ["", "[1]", '{"pid": 1}', "{", "x" * 10_000, '{"pid": "x"}'])
def test_what_stands_in_the_file_is_only_a_note(tmp_path, note):
    (tmp_path / ".lock").write_text(note)
    with lock(tmp_path) as held:
        assert held.died is None
        assert str(os.getpid()) in (tmp_path / ".lock").read_text()
    assert (tmp_path / ".lock").read_text() == ""


def test_a_holder_in_words():
    assert str(Holder(7, "node3", "2026-01-02T03:04:05+00:00")) == (
        "process 7 on node3, since 2026-01-02T03:04:05+00:00"
    )
