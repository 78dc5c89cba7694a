"""What runs the parts of a run: this process, processes of its own (pool), or a Dask cluster.

All of them run the same function on the same tasks, so that the results are the same.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from tracehouse import __version__
from tracehouse.commands.part_task import PartOutcome, PartTask
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.spill import give_back
from tracehouse.storage import layout
from tracehouse.storage.address import url_of

_AT_PORT = re.compile(r"(?:[a-z]+://)?[^/\s]+:\d+", re.ASCII)
_LOOK_SECONDS = 0.1

Run = Callable[[PartTask], PartOutcome]

_CONNECT_SECONDS = 15
_START_SECONDS = 60  # for a cluster that is being started: its scheduler file, its first worker
_PATIENCE_SECONDS = 120  # for a cluster to have a worker again


class Workers(Protocol):
    """Runs tasks, each in one process.

    `name`: as table `runs` has it. `count`: tasks that can run at once. `shares_memory`: whether
    they run on this machine, all in the memory that the run may use.
    """

    name: str
    shares_memory: bool

    @property
    def count(self) -> int: ...  # noqa: D102 (said above)

    def submit(self, run: Run, task: PartTask) -> Future[PartOutcome]:
        """Start a task; the caller has no more than `count` of them running."""

    def has_died(self, error: BaseException) -> bool:
        """Whether the error of a task says that the process it ran in died."""

    def check(self) -> None:
        """Raise TracehouseError CLUSTER_LOST if there is no process left to run anything."""

    def rest(self) -> None:
        """Give back the memory of processes that do nothing now."""

    def close(self) -> None:
        """End the processes; tasks that run are waited for, and those that don't are dropped."""


class ThisProcess:
    """Runs a task at once, here. If it dies, so does the run."""

    name = "process"
    shares_memory = True
    count = 1

    def submit(self, run: Run, task: PartTask) -> Future[PartOutcome]:
        """Run a task to its end; its error is raised here, unless memory was all it wanted."""
        future: Future[PartOutcome] = Future()
        try:
            future.set_result(run(task))
        except MemoryError as error:
            future.set_exception(error.with_traceback(None))  # which holds what was in memory
        return future

    def has_died(self, error: BaseException) -> bool:
        """Never: nobody would be there to ask."""
        return False

    def check(self) -> None:
        """Nothing to check."""

    def rest(self) -> None:
        """Give back what is free, so that a part that wanted memory has it."""
        give_back()

    def close(self) -> None:
        """Nothing to end."""


class DaskCluster:
    """Runs tasks on the workers of a Dask cluster, which others have started.

    `address` is that of its scheduler, or the path of its scheduler file; `task` one of those to
    come, whose warehouse this run holds. Raises UsageError if the cluster cannot be reached, or if
    one of its workers has another version of Tracehouse or does not see that warehouse.
    """

    name = "dask"
    shares_memory = False

    def __init__(self, address: str, task: PartTask) -> None:
        self._client = _connected(address)
        # What it says of a scheduler that is gone, this says in a line; a log of JSON stays one.
        self._log = logging.getLogger("distributed.client")
        self._log_level = self._log.level
        self._log.setLevel(logging.CRITICAL)
        try:
            from distributed import KilledWorker

            self._killed = KilledWorker
            self._await_workers(address)
            self._place = str(task.out) if task.store is None else task.store
            self._ours = _seen_by_worker(self._place)
            self._check_workers()
            self._executor = self._client.get_executor(pure=False, retries=0)
        except BaseException:
            self._leave()
            raise

    @property
    def count(self) -> int:
        """Processes of the cluster now; it may grow and shrink."""
        return max(len(self._threads()), 1)

    def _threads(self) -> dict[str, int]:
        """Ask the scheduler for the threads of each worker; CLUSTER_LOST if it does not answer."""
        try:
            threads: dict[str, int] = self._client.nthreads(callback_timeout=_PATIENCE_SECONDS)
        except (OSError, RuntimeError) as error:  # of the connection; RuntimeError: closed here
            raise cluster_lost("the scheduler of the Dask cluster does not answer") from error
        return threads

    def submit(self, run: Run, task: PartTask) -> Future[PartOutcome]:
        """Start a task on some worker."""
        try:
            return self._executor.submit(_one_at_a_time, run, task, self._place, self._ours)
        except Exception as error:
            if self._client.status == "running":
                raise
            raise cluster_lost("the scheduler of the Dask cluster is gone") from error

    def has_died(self, error: BaseException) -> bool:
        """Whether the workers on which Dask tried a task died."""
        return isinstance(error, self._killed)

    def check(self) -> None:
        """Raise TracehouseError CLUSTER_LOST if the scheduler or all of its workers are gone.

        A worker that is paused for want of memory counts as long as it has a task.
        """
        if self._client.status != "running":
            raise cluster_lost("the scheduler of the Dask cluster is gone")
        if self._threads() and any(self._client.processing().values()):
            return
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
        except TimeoutError as error:
            message = f"the Dask cluster has had no worker for {_PATIENCE_SECONDS} s"
            raise cluster_lost(message) from error

    def rest(self) -> None:
        """Nothing: the workers are not ours."""

    def close(self) -> None:
        """Leave the cluster; tasks that have not ended are cancelled."""
        if self._client.status == "running":
            self._executor.shutdown(wait=False)
        self._leave()

    def _leave(self) -> None:
        self._client.close()
        self._log.setLevel(self._log_level)

    def _await_workers(self, address: str) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_START_SECONDS)
        except TimeoutError as error:
            raise UsageError(
                f"the Dask cluster at {address} has no worker", hint="start some, then run it again"
            ) from error

    def _check_workers(self) -> None:
        """Find out whether every worker can do what it is asked."""
        ours, place = self._ours, self._place
        seen: dict[str, Any] = self._client.run(_seen_by_worker, place, on_error="return")
        for worker, found in sorted(seen.items()):
            if isinstance(found, BaseException):
                raise UsageError(
                    f"the Dask worker {worker} cannot run Tracehouse: {found}",
                    hint="install the same tracehouse there",
                )
            if found[0] != ours[0]:
                raise UsageError(
                    f"the Dask worker {worker} has tracehouse {found[0]}, this is {ours[0]}",
                    hint="install the same version on all",
                )
            if found[1] != ours[1]:
                raise UsageError(
                    f"the Dask worker {worker} does not see {place}",
                    hint="give an OUT on a file system that all workers share, at the same path, "
                    "or in a bucket that all can write to",
                )


def _connected(address: str) -> Any:
    """Connect to a scheduler; `address` may be its scheduler file, also one that is to appear."""
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "a Dask cluster needs the package distributed", hint="pip install 'tracehouse[dask]'"
        ) from error
    if _AT_PORT.fullmatch(address):
        where = {"address": address}
    else:
        _await_file(Path(address))
        where = {"scheduler_file": address}
    try:
        return Client(**where, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"cannot reach a Dask scheduler at {address}: {error}",
            hint="give an address such as tcp://host:8786, or the path of a scheduler file",
        ) from error


def _await_file(path: Path) -> None:
    deadline = time.monotonic() + (_START_SECONDS if path.parent.is_dir() else 0)
    while not path.is_file():
        if time.monotonic() >= deadline:
            raise UsageError(
                f"there is no scheduler file {path}",
                hint="give one, or the scheduler's address such as tcp://host:8786",
            )
        time.sleep(_LOOK_SECONDS)


def cluster_lost(message: str) -> TracehouseError:
    """Return the error of a run whose cluster is gone."""
    return TracehouseError(
        message, code="CLUSTER_LOST", hint="what was committed stays: run it again to go on"
    )


def _seen_by_worker(place: str) -> tuple[str, str | None]:
    """Return this process's version of Tracehouse, and who holds the lock of a warehouse for it."""
    try:
        if url_of(place) is not None:
            from tracehouse.storage.bucket import Bucket
            from tracehouse.storage.lease import token_of

            return __version__, token_of(Bucket(place))
        return __version__, (Path(place) / layout.LOCK).read_text(encoding="utf-8")
    except OSError:
        return __version__, None


_RUNNING = threading.Lock()


def _one_at_a_time(
    run: Run, task: PartTask, place: str, ours: tuple[str, str | None]
) -> PartOutcome:
    """Run a task; on a worker of several threads one after another, as CPU time is a process's.

    `place`, `ours`: what a worker has to see (`_seen_by_worker`), also one that came later.
    """
    if _seen_by_worker(place) != ours:
        raise UsageError(
            f"a Dask worker on {socket.gethostname()} has another version of tracehouse than the "
            f"run, or does not see {place}",
            hint="install the same version on all, and share OUT at the same path, or in a bucket",
        )
    with _RUNNING:
        return run(task)
