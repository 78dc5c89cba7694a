"""In which order the parts of a run are worked on, and what happens to those whose process dies.

Large parts first. Parts run at once as long as there are processes and memory for them; one that
needs more memory than there is runs alone. If a process dies or gets no memory, its part is tried
once more, alone, when all others are done; if it fails again the part is halved, until the file
that kills is alone: that one is rejected, and the others are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace

from tracehouse.commands import memory
from tracehouse.commands.division import part_of
from tracehouse.commands.executors import Run, Workers, cluster_lost
from tracehouse.commands.part import rejected_part
from tracehouse.commands.part_task import PartOutcome, PartTask
from tracehouse.errors import RejectedFile
from tracehouse.ingest.discover import SourceFile

KILLER = (
    "the process that analysed it died twice, the second time with nothing else running: it was "
    "killed, perhaps for want of memory, or crashed"
)
STARVED = (
    "there was not enough memory to analyse it, twice, the second time with nothing else running"
)
_LOOK_SECONDS = 30.0  # between looks whether there is anybody left to wait for


@dataclass(slots=True)
class Schedule:
    """The parts of one run.

    `limit`: memory that the run may use on this machine; of a cluster, what one worker may.
    `next_number`: that of a part made here. `deaths`: processes that died so far.
    """

    workers: Workers
    run: Run
    limit: int
    next_number: int
    deaths: int = 0
    _waiting: list[PartTask] = field(default_factory=list)
    _again: deque[PartTask] = field(default_factory=deque)
    _flying: dict[Future[PartOutcome], PartTask] = field(default_factory=dict)

    def outcomes(self, tasks: Sequence[PartTask]) -> Iterator[PartOutcome]:
        """Run the tasks, and yield what they staged as it comes.

        Raises what a task raises, OSError for one; TracehouseError CLUSTER_LOST.
        """
        self._waiting = sorted(tasks, key=lambda task: task.text_bytes, reverse=True)
        while self._waiting or self._again or self._flying:
            self._start()
            yield from self._finished()

    def _start(self) -> None:
        """Start what there is room for."""
        count = self.workers.count
        while len(self._flying) < count and (task := self._next()) is not None:
            shares = min(count, len(self._flying) + len(self._waiting) + 1)
            self._submit(task, self.limit // shares if self.workers.shares_memory else self.limit)
        if not self._flying and self._again:
            self.workers.rest()
            self._submit(self._again.popleft(), self.limit)

    def _next(self) -> PartTask | None:
        """Take the largest part that there is memory for; if nothing runs, the largest."""
        if not self._waiting:
            return None
        if not self._flying or not self.workers.shares_memory:
            if memory.need(self._waiting[0].text_bytes) > self.limit:
                self.workers.rest()
            return self._waiting.pop(0)
        left = self.limit - sum(memory.need(task.text_bytes) for task in self._flying.values())
        for number, task in enumerate(self._waiting):
            if memory.need(task.text_bytes) <= left:
                return self._waiting.pop(number)
        return None

    def _submit(self, task: PartTask, share: int) -> None:
        bounded = replace(
            task,
            memory_bytes=self.limit,
            query_bytes=memory.for_queries(share, task.text_bytes),
            spill_rows=memory.rows_held(share),
        )
        future = self.workers.submit(self.run, bounded)
        self._flying[future] = task

    def _finished(self) -> Iterator[PartOutcome]:
        """Wait for a task to end, and yield what it staged."""
        done, _ = wait(self._flying, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
        if not done:
            self.workers.check()
        for future in done:
            task = self._flying.pop(future)
            if future.cancelled():  # by the cluster: nobody here does
                self.workers.check()
                raise cluster_lost("the Dask cluster dropped a task")
            error = future.exception()
            if error is None:
                yield future.result()
            elif isinstance(error, MemoryError):
                yield from self._bury(task, STARVED)
            elif self.workers.has_died(error):
                self.deaths += 1
                yield from self._bury(task, KILLER)
            else:
                raise error

    def _bury(self, task: PartTask, why: str) -> Iterator[PartOutcome]:
        """Decide what becomes of a part whose process died or got no memory."""
        if not task.is_alone:
            self._again.append(replace(task, is_alone=True))
        elif len(task.files) == 1:
            yield rejected_part(task, _killer(why))
        else:
            middle = len(task.files) // 2
            for files in (task.files[middle:], task.files[:middle]):
                self._again.appendleft(self._half(task, files))

    def _half(self, task: PartTask, files: Sequence[SourceFile]) -> PartTask:
        number, self.next_number = self.next_number, self.next_number + 1
        return part_of(task, number, files)


def _killer(why: str) -> RejectedFile:
    return RejectedFile(
        why,
        code="WORKER_DIED",
        hint="analyse it alone on a machine with more memory; the next run tries it again",
    )
