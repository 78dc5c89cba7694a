"""One writer at a time to a bucket: an object that says who writes, renewed while it does.

    OUT/.lock    {"pid":…,"host":…,"since":…,"token":…,"beat":…,"expires":…}, or without a token

It is replaced on the condition only that it is still the one last seen (If-Match, If-None-Match),
so that of two runs which take it one fails. A run that was killed renews it no more; `expires`
seconds later, by the clock of the store alone, the next one takes it over.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage import layout
from tracehouse.storage.bucket import CREDENTIALS_HINT, Bucket, Changed, StoreError
from tracehouse.storage.lock import Holder, taken

EXPIRES_SECONDS = 120.0
BEAT_SECONDS = 20.0
LOOK_SECONDS = 2.0  # between tries, while another run is waited for
_LONGEST = 3600.0  # that a note may ask to be believed


class Lease:
    """The right to write to a bucket, held. `died`: who held it last, if that run was killed."""

    def __init__(self, bucket: Bucket, etag: str, holder: Holder, token: str, died: Holder | None):
        self.died = died
        self.token = token
        self._bucket = bucket
        self._etag = etag
        self._holder = holder
        self._beat = 0
        self._one = threading.Lock()

    def renew(self) -> None:
        """Make sure that the right is still held, for EXPIRES_SECONDS from now.

        TracehouseError LOCK_LOST if another run has taken over; StoreError.
        """
        with self._one:
            self._beat += 1
            note = _worded(self._holder, self.token, self._beat)
            try:
                self._etag = self._bucket.put_note(layout.LOCK, note, instead_of=self._etag)
            except Changed as error:
                # The store may have done what it did not get to say.
                found = self._bucket.read_note(layout.LOCK)
                if found is None or _read(found.content).get("token") != self.token:
                    raise self._lost() from error
                self._etag = found.etag

    def release(self) -> None:
        """Give the right back; where that cannot be said it expires."""
        with self._one:
            try:
                note = json.dumps({"free": secrets.token_hex(8)}).encode()
                self._bucket.put_note(layout.LOCK, note, instead_of=self._etag)
            except (Changed, StoreError):
                return

    def keep(self, ended: threading.Event) -> None:
        """Renew it again and again until `ended`."""
        while not ended.wait(BEAT_SECONDS):
            try:
                self.renew()
            except TracehouseError:
                return  # the work asks before it commits, and is told
            except StoreError:
                continue  # it is valid for a while yet

    def _lost(self) -> TracehouseError:
        return TracehouseError(
            f"another run has taken over {self._bucket.url}: this one gave no sign of life for "
            f"{EXPIRES_SECONDS:g} s",
            code="LOCK_LOST",
            hint="what was committed stays: run it again to go on",
        )


@contextmanager
def lease(bucket: Bucket, *, wait: float = 0.0) -> Iterator[Lease]:
    """Keep every other run from writing to `bucket`.

    `wait`: seconds to wait for another run to end. UsageError names the run that holds it, or says
    that the bucket cannot be written to.
    """
    try:
        bucket.check_conditions()
        held = _take(bucket, wait)
    except StoreError as error:
        raise UsageError(str(error), hint=CREDENTIALS_HINT) from error
    ended = threading.Event()
    beating = threading.Thread(target=held.keep, args=(ended,), daemon=True)
    beating.start()
    try:
        yield held
    finally:
        ended.set()
        beating.join()
        held.release()


def token_of(bucket: Bucket) -> str | None:
    """Return the token of the run that writes to `bucket` now; None if none does."""
    found = bucket.read_note(layout.LOCK)
    return None if found is None else _read(found.content).get("token")


def _take(bucket: Bucket, wait: float) -> Lease:
    deadline = time.monotonic() + wait
    since = datetime.now(UTC).isoformat(timespec="seconds")
    holder, token = Holder(os.getpid(), socket.gethostname(), since), secrets.token_hex(16)
    died: Holder | None = None
    while True:
        seen = bucket.read_note(layout.LOCK)
        note = {} if seen is None else _read(seen.content)
        if seen is not None and note.get("token") == token:
            return Lease(bucket, seen.etag, holder, token, died)  # its answer was lost
        other = _holder(note)
        expires = _expires(note)
        if seen is None or "token" not in note or seen.age > expires:
            died = other if "token" in note else None
            try:
                etag = bucket.put_note(
                    layout.LOCK,
                    _worded(holder, token, 0),
                    instead_of=None if seen is None else seen.etag,
                )
            except Changed:
                continue  # another run was faster: look who
            if seen is None:
                _check_conditions(bucket)
            return Lease(bucket, etag, holder, token, died)
        left = deadline - time.monotonic()
        if left <= 0:
            raise taken(
                bucket.url,
                other,
                wait,
                f"its last sign of life was {max(seen.age, 0):.0f} s ago, and at {expires:g} s it "
                "is taken for dead",
            )
        time.sleep(min(LOOK_SECONDS, left))


def _check_conditions(bucket: Bucket) -> None:
    """Make sure that the store heeds conditions; one that does not would let two runs write."""
    for other in (None, '"no-such-etag"'):
        try:
            bucket.put_note(layout.LOCK, b"{}", instead_of=other)
        except Changed:
            continue
        raise UsageError(
            f"the store of {bucket.url} ignores conditions (If-Match, If-None-Match), without "
            "which two runs could write at once",
            hint="write to a folder, and copy it",
        )


def _worded(holder: Holder, token: str, beat: int) -> bytes:
    note = {**asdict(holder), "token": token, "beat": beat, "expires": EXPIRES_SECONDS}
    return json.dumps(note).encode()


def _read(content: bytes) -> dict[str, Any]:
    """Return what a note says; nothing for one that is none, which then holds nobody off."""
    try:
        note = json.loads(content)
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _holder(note: dict[str, Any]) -> Holder | None:
    try:
        return Holder(int(note["pid"]), str(note["host"]), str(note["since"]))
    except (ValueError, TypeError, KeyError):
        return None


def _expires(note: dict[str, Any]) -> float:
    given = note.get("expires")
    return min(float(given), _LONGEST) if isinstance(given, int | float) else EXPIRES_SECONDS
