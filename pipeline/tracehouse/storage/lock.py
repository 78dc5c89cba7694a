"""One writer at a time: the lock of a warehouse, and who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tracehouse.errors import UsageError
from tracehouse.storage import durable, layout

_LOOK_SECONDS = 0.1  # between tries, while another run is waited for
_NOTED_SECONDS = 0.5  # within which who has taken the lock says so
_NOTE_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that writes to a warehouse, and since when (ISO 8601, UTC)."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@dataclass(frozen=True, slots=True)
class Held:
    """The lock, held. `died`: who held it last, if that process ended without giving it back."""

    died: Holder | None


@contextmanager
def lock(out: Path, *, wait: float = 0.0) -> Iterator[Held]:
    """Keep every other run from writing to `out`, which is created if need be.

    The lock is the system's and ends with the process, and with the workers it forked: while one of
    them is still writing, no other run may. What stands in the file only says who holds it.
    `wait`: seconds to wait for another run to end. UsageError names the run that holds it, or says
    that `out` cannot be written to.
    """
    try:
        durable.make_folder(out)
        descriptor = os.open(out / layout.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        where = error.filename or out
        raise UsageError(f"cannot write to {where}: {error.strerror}", hint="check OUT") from error
    try:
        _take(descriptor, out, wait)
        died = _noted(descriptor)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        _note(descriptor, json.dumps(asdict(Holder(os.getpid(), socket.gethostname(), since))))
        try:
            yield Held(died)
        finally:
            _note(descriptor, "")
    finally:
        os.close(descriptor)


def _take(descriptor: int, out: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise taken(out, _noted_soon(descriptor), wait) from error
        time.sleep(_LOOK_SECONDS)


def taken(
    out: Path | str, holder: Holder | None, wait: float, remark: str | None = None
) -> UsageError:
    """Return the error of a run that finds another one at work in `out`."""
    message = f"another run is writing to {out}"
    if holder is not None:
        message += f": {holder}"
    if remark is not None:
        message += f" ({remark})"
    if wait:
        return UsageError(f"{message}; waited {wait:g} s", hint="wait longer")
    return UsageError(message, hint="wait until it ends, or let --wait SECONDS do so")


def _noted(descriptor: int) -> Holder | None:
    """Return who the file says holds the lock; None if it says nothing, or is being written."""
    try:
        note = json.loads(os.pread(descriptor, _NOTE_LENGTH, 0))
        return Holder(int(note["pid"]), str(note["host"]), str(note["since"]))
    except (ValueError, TypeError, KeyError):
        return None


def _noted_soon(descriptor: int) -> Holder | None:
    """Return who holds the lock, who may have taken it just now and not said so yet."""
    deadline = time.monotonic() + _NOTED_SECONDS
    while (holder := _noted(descriptor)) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    return holder


def _note(descriptor: int, text: str) -> None:
    """Replace what stands in the file. A full disk only costs the note."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
    except OSError:
        return
