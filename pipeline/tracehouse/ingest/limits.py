"""How much of a file is read: what bounds a bomb, a string of 10 GB, an archive without end."""

from __future__ import annotations

import re
from dataclasses import dataclass

import xxhash

from tracehouse.errors import RejectedFile, UsageError

_SIZE = re.compile(r"(\d{1,9})(?:([kmgt])(i)?)?b?", re.ASCII | re.IGNORECASE)
# Texts come in blocks of 4 MiB: of an event that is found too long, one has to be at hand.
LEAST_EVENT_BYTES = 8 << 20
_FREE_BYTES = 256 << 20  # of text, whatever it is packed in: a small file may well be all zeros


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one file, in bytes of text unless said otherwise. docs/limits.md has them all.

    text_bytes: of one text, and of all texts of an archive together. ratio: of text to the bytes
    that it is packed in, beyond the first 256 MiB. members: of an archive. metadata_bytes: before
    or behind the event list. event_bytes: of one event; a longer one has its largest text cut.
    """

    text_bytes: int = 256 << 30
    ratio: int = 300
    members: int = 100_000
    metadata_bytes: int = 64 << 20
    event_bytes: int = 64 << 20

    @property
    def digest(self) -> str:
        """Hash that tells limits apart."""
        values = (self.text_bytes, self.ratio, self.members, self.metadata_bytes, self.event_bytes)
        return xxhash.xxh3_64_hexdigest(repr(values).encode())


DEFAULT_LIMITS = Limits()


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 4GB (10⁹), 64MiB (2²⁰) or 1000. UsageError otherwise."""
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise UsageError(f"{text!r} is no size", hint="give one such as 4GB or 64MiB")
    power = " kmgt".index((match[2] or " ").lower())
    return int(match[1]) * (1024 if match[3] else 1000) ** power


class Budget:
    """The text that a file or member may still give."""

    def __init__(self, limits: Limits, packed_bytes: int | None, share: int = 1) -> None:
        """Allow what `limits` allow of `packed_bytes`; `share` times the ratio, for an archive."""
        self._limit = limits.text_bytes
        self._is_of_ratio = False
        if packed_bytes is not None:
            allowed = max(_FREE_BYTES, limits.ratio * packed_bytes) * share
            self._is_of_ratio = allowed < self._limit
            self._limit = min(self._limit, allowed)
        self._spent = 0

    def spend(self, count: int) -> None:
        """Take `count` bytes. RejectedFile TOO_LARGE if there are not so many left."""
        self._spent += count
        if self._spent <= self._limit:
            return
        option, why = "--max-text", ""
        if self._is_of_ratio:
            option, why = "--max-ratio", ", far more than what it is packed in"
        raise RejectedFile(
            f"it unpacks to more than {self._limit:,} bytes of text{why}",
            code="TOO_LARGE",
            hint=f"{option} raises the limit",
        )
