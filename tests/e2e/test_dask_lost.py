"""A Dask cluster of real processes that loses its workers, or its scheduler, while a run goes on.

What was committed stays, the run ends within a bounded time, and the next one goes on from there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from killers import attempts_of
from warehouses import analyse, drawn, manifests, query

from tracehouse.commands import division
from tracehouse.commands.check import check

pytest.importorskip("distributed")

COMMAND = """
import killers
from tracehouse.cli.main import main
from tracehouse.commands import analyze, division, executors, schedule
analyze.run_part = killers.run_when_told
division.PART_BYTES = 1  # a part a file
schedule._LOOK_SECONDS, executors._PATIENCE_SECONDS = 1, 2  # 30 and 120 are for real clusters
main()
"""
BOUND = 60  # seconds, many times what any run here takes


def environment() -> dict[str, str]:
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Cluster:
    """A scheduler and its workers, each a process of the system."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self._folder = folder
        self._all: list[subprocess.Popen[bytes]] = []
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", self.file]
        self.scheduler = self._start(*words, "--no-dashboard")
        self.workers = [self.worker() for _ in range(2)]

    def _start(self, *words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *map(str, words)]
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)
        self._all.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        words = ["--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", self._folder]
        return self._start("worker", "--scheduler-file", self.file, *words)

    def close(self) -> None:
        for process in self._all:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(autouse=True)
def part_a_file(monkeypatch):
    monkeypatch.setattr(division, "PART_BYTES", 1)


class Run:
    """A run under way: of a trace that is read at once, and two that wait to be told."""

    def __init__(self, place: Path, cluster: Cluster) -> None:
        self.folder, self.out = place / "in", place / "out"
        drawn(1).write(self.folder / "a.json")
        self.slow = [drawn(n).write(self.folder / f"slow{n}.json") for n in (2, 3)]
        words = ["analyze", self.folder, "-o", self.out, "--log-format", "json"]
        command = [sys.executable, "-c", COMMAND, *map(str, words), "--dask", str(cluster.file)]
        await_that(cluster.file.exists)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment(), text=True, **pipes)

    def await_the_middle(self, workers: int) -> list[int]:
        """Wait until the first trace is committed, and the others wait in so many workers.

        Returns the processes that wait, of the traces in their order.
        """
        await_that(lambda: (self.out / "lake/manifests").is_dir() and len(manifests(self.out)) == 1)
        await_that(lambda: sum(attempts.exists() for attempts in self._attempts()) == workers)
        return [int(path.read_text().split()[-1]) for path in self._attempts() if path.exists()]

    def _attempts(self) -> list[Path]:
        return [path.with_name(f".{path.name}.attempts") for path in self.slow]

    def go(self) -> None:
        (self.folder / "go").touch()

    def end(self) -> str:
        return self.process.communicate(timeout=BOUND)[1]

    def assert_lost(self, words: str) -> None:
        """See that it ended because its cluster did, lost nothing, and that another ends it."""
        log = self.end()
        assert self.process.returncode == 1, log
        *_, error = [json.loads(line) for line in log.splitlines()]  # nothing else is said
        assert (error["event"], error["code"]) == ("error", "CLUSTER_LOST")
        assert words in error["message"]
        assert "run it again to go on" in error["hint"]
        assert len(manifests(self.out)) == 1
        report = analyse(self.folder, out=self.out)
        assert (report.unchanged, report.rejected) == (1, 0)
        self.assert_whole()
        ends = query(self.out, "SELECT exit_code, error LIKE '%Dask%' FROM runs ORDER BY run_id")
        assert ends == [(1, True), (0, None)]

    def assert_whole(self) -> None:
        names = query(self.out, "SELECT name FROM ops ORDER BY name")
        assert names == [("aten::op1",), ("aten::op2",), ("aten::op3",)]
        assert check(self.out).faults == ()


def await_that(condition) -> None:
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_cluster_that_is_lost_bit_by_bit(tmp_path, cluster):
    """One cluster for four runs: to start one takes longer than to lose it."""
    run = Run(tmp_path / "a worker is killed", cluster)
    lost, _ = run.await_the_middle(2)
    assert lost in [worker.pid for worker in cluster.workers]
    os.kill(lost, signal.SIGKILL)
    run.go()
    log = run.end()
    assert run.process.returncode == 0, log
    assert len(attempts_of(run.slow[0])) == 2  # the other worker read it as well
    run.assert_whole()

    run = Run(tmp_path / "the scheduler stops", cluster)
    run.await_the_middle(1)
    cluster.scheduler.send_signal(signal.SIGSTOP)
    run.assert_lost("does not answer")
    cluster.scheduler.send_signal(signal.SIGCONT)
    run.go()

    run = Run(tmp_path / "no worker is left", cluster)
    run.await_the_middle(1)
    for worker in cluster.workers:
        worker.kill()
    run.assert_lost("has had no worker for 2 s")

    cluster.workers.append(cluster.worker())
    run = Run(tmp_path / "the scheduler is killed", cluster)
    run.await_the_middle(1)
    cluster.scheduler.kill()
    run.assert_lost("the scheduler of the Dask cluster is gone")
    run.go()
