"""Where the CPU time of a task goes, by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

STAGES = ("read", "link", "formulas", "views", "write")


class Stopwatch:
    """CPU seconds of this process by stage; time in a stage within another is that one's only."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what is done in a `with` block to a stage, one of STAGES."""
        self._count()
        self._running.append(name)
        try:
            yield
        finally:
            self._count()
            self._running.pop()

    def take(self) -> dict[str, float]:
        """Return the seconds of every stage so far, and begin anew."""
        self._count()
        taken, self._seconds = self._seconds, dict.fromkeys(STAGES, 0.0)
        return taken

    def _count(self) -> None:
        now = time.process_time()
        if self._running:
            self._seconds[self._running[-1]] += now - self._since
        self._since = now
