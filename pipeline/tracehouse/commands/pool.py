"""Worker processes of this machine, forked from a server that has loaded the code."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import spawn

from tracehouse.commands.executors import Run
from tracehouse.commands.part_task import PartOutcome, PartTask
from tracehouse.errors import TracehouseError

_TRIES = 3  # to start a process
_PAUSE_SECONDS = 0.1

_starting = threading.Lock()


class Pool:
    """Runs tasks in processes of this machine, at most `count` at once.

    Each process is an executor of its own: if it dies, its task is known, and no other is lost.
    """

    name = "pool"
    shares_memory = True

    def __init__(self, count: int) -> None:
        self.count = count
        # Forked from a server that has loaded the code but no threads yet.
        methods = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context(
            "forkserver" if "forkserver" in methods else "spawn"
        )
        if "forkserver" in methods:
            self._context.set_forkserver_preload(["tracehouse.commands.worker"])
        self._has_started = False  # a process; else its death says nothing about its task
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[PartOutcome], ProcessPoolExecutor] = {}

    def submit(self, run: Run, task: PartTask) -> Future[PartOutcome]:
        """Start a task in a process that is idle, or in a new one."""
        self._take_back()
        while self._idle:
            process = self._idle.pop()
            try:
                future = process.submit(run, task)
            except BrokenProcessPool:  # it died while it had nothing to do
                process.shutdown()
                continue
            self._busy[future] = process
            return future
        process = self._new()
        try:
            future = process.submit(run, task)
        except BrokenProcessPool as error:
            future = Future()
            future.set_exception(error)
        self._busy[future] = process
        return future

    def _new(self) -> ProcessPoolExecutor:
        """Start a process; once more if the server of them dies, which starts anew then."""
        for _ in range(_TRIES):
            process = ProcessPoolExecutor(1, mp_context=self._context, initializer=_end_with_parent)
            try:
                with _without_main():
                    started = process.submit(_nothing)
                if not self._has_started:
                    started.result()
            except (BrokenProcessPool, EOFError, OSError) as error:
                process.shutdown(wait=False)
                reason = error
                time.sleep(_PAUSE_SECONDS)  # until the system has seen to a server that died
                continue
            self._has_started = True
            return process
        raise TracehouseError(
            f"worker processes cannot start: {str(reason) or type(reason).__name__}",
            code="WORKER_DIED",
            hint="let one process do the work: --workers 1, in Python workers=1",
        ) from reason

    def _take_back(self) -> None:
        """Take note of processes that have done their task, and let go of those that died.

        Also of one that wanted memory: what it still holds goes with it.
        """
        for future in [future for future in self._busy if future.done()]:
            process = self._busy.pop(future)
            if isinstance(future.exception(), BrokenProcessPool | MemoryError):
                process.shutdown()
            else:
                self._idle.append(process)

    def has_died(self, error: BaseException) -> bool:
        """Whether the process of a task died."""
        return isinstance(error, BrokenProcessPool)

    def check(self) -> None:
        """Nothing to check: a process that dies is told at once."""

    def rest(self) -> None:
        """End the processes that are idle."""
        self._take_back()
        while self._idle:
            self._idle.pop().shutdown()

    def close(self) -> None:
        """End the processes; tasks that run are waited for."""
        processes = [*self._idle, *self._busy.values()]
        for process in processes:
            process.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.shutdown()


def _nothing() -> None:
    """Do nothing: a process that does so has started."""


def _end_with_parent() -> None:
    """Make this worker end when its run is killed; it would wait for more work forever."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _without_main() -> Iterator[None]:
    """Let processes that start meanwhile not run the main script of this one again.

    They need nothing of it, and it may not be made for that: a script without a guard would
    analyse again, and one from stdin cannot be found.
    """
    with _starting:
        prepared = spawn.get_preparation_data

        def without_main(name: str) -> dict[str, object]:
            data = prepared(name)
            return {key: value for key, value in data.items() if not key.startswith("init_main")}

        spawn.get_preparation_data = without_main
        try:
            yield
        finally:
            spawn.get_preparation_data = prepared
