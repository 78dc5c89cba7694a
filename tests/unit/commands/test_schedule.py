"""Dividing files into parts, and working on them within the memory that there is."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.commands import division, memory
from tracehouse.commands.part_task import PartTask
from tracehouse.commands.schedule import Schedule
from tracehouse.errors import UsageError
from tracehouse.ingest.discover import SourceFile

MB = 1 << 20


def task(name: str, text_bytes: int = 0, files: int = 1) -> PartTask:
    own = tuple(SourceFile(f"/in/{name}{number}.json", 0, 1) for number in range(files))
    return PartTask(Path("/out"), name, own, None, "scan", frozenset(), text_bytes=text_bytes)


class Killed(Exception):
    """Stands for the death of a process."""


@dataclass
class Threads:
    """Workers that are threads; notes what ran, and what ran at once."""

    count: int
    shares_memory: bool = True
    name: str = "threads"
    begun: list[str] = field(default_factory=list)
    running: dict[str, PartTask] = field(default_factory=dict)
    together: list[set[str]] = field(default_factory=list)
    rests: int = 0

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.count)
        self._lock = threading.Lock()

    def submit(self, run, task: PartTask) -> Future:
        with self._lock:
            self.begun.append(task.part_id)
            self.running[task.part_id] = task
            self.together.append(set(self.running))
        return self._threads.submit(self._run, run, task)

    def _run(self, run, task):
        try:
            time.sleep(0.002)
            return run(task)
        finally:
            with self._lock:
                del self.running[task.part_id]

    def has_died(self, error):
        return isinstance(error, Killed)

    def check(self): ...

    def rest(self):
        self.rests += 1


def names(task: PartTask) -> str:
    return task.part_id


def test_large_parts_come_first():
    workers = Threads(1)
    tasks = [task("small", 1 * MB), task("large", 300 * MB), task("middle", 20 * MB)]
    assert list(Schedule(workers, names, 4_000 * MB, 1).outcomes(tasks)) == [
        "large",
        "middle",
        "small",
    ]


def test_parts_run_together_as_far_as_memory_goes():
    # 400 MiB a process, 0.6 a byte of the first 256 MiB of text, 0.25 of each that follows: 740 MiB
    # each of the large, 460 of the small.
    limit = memory.need(1_000 * MB) + memory.need(100 * MB)
    workers = Threads(4)
    tasks = [task("large0", 1_000 * MB), task("large1", 1_000 * MB)]
    tasks += [task(f"small{number}", 100 * MB) for number in range(4)]
    assert set(Schedule(workers, names, limit, 1).outcomes(tasks)) == {t.part_id for t in tasks}
    assert workers.begun[:2] == ["large0", "small0"]  # no room for the second large one
    assert not any({"large0", "large1"} <= together for together in workers.together)
    assert max(map(len, workers.together)) >= 2


def test_what_needs_more_than_there_is_runs_alone():
    workers = Threads(4)
    tasks = [task("small", 1 * MB), task("giant", 10_000 * MB), task("other", 1 * MB)]
    assert set(Schedule(workers, names, 1_000 * MB, 1).outcomes(tasks)) == {
        "giant",
        "small",
        "other",
    }
    assert [together for together in workers.together if "giant" in together] == [{"giant"}]
    assert workers.rests >= 1  # the others gave their memory back


@given(
    sizes=st.lists(st.integers(0, 3_000), max_size=12),
    count=st.integers(1, 5),
    limit=st.integers(600, 4_000),
)
def test_every_part_runs_once_and_never_beyond_the_memory(sizes, count, limit):
    workers = Threads(count)
    tasks = [task(f"{number}", size * MB) for number, size in enumerate(sizes)]
    done = list(Schedule(workers, names, limit * MB, 1).outcomes(tasks))
    assert sorted(done) == sorted(t.part_id for t in tasks)
    need = {t.part_id: memory.need(t.text_bytes) for t in tasks}
    for together in workers.together:
        assert len(together) <= count
        assert len(together) == 1 or sum(need[name] for name in together) <= limit * MB


def test_an_error_does_not_wait_for_parts_that_have_not_begun():
    workers = Threads(2)

    def run(task: PartTask) -> None:
        if task.part_id == "0":
            raise OSError("disk full")

    tasks = [task(str(number)) for number in range(100)]
    with pytest.raises(OSError, match="disk full"):
        list(Schedule(workers, run, 4_000 * MB, 1).outcomes(tasks))
    assert len(workers.begun) < 50


@given(count=st.integers(1, 20), guilty=st.sets(st.integers(0, 19), max_size=3))
def test_of_a_part_that_kills_only_the_guilty_are_given_up(count, guilty):
    workers = Threads(2)
    given_up = []
    kills = {f"/in/x{number}.json" for number in guilty if number < count}

    def run(task: PartTask) -> list[str]:
        paths = [file.path for file in task.files]
        if kills & set(paths):
            raise Killed
        return paths

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tracehouse.commands.schedule.rejected_part",
            lambda task, error: given_up.extend(file.path for file in task.files) or [],
        )
        schedule = Schedule(workers, run, 4_000 * MB, 10)
        parts = list(schedule.outcomes([task("x", files=count), task("y")]))
    assert sorted(path for part in parts for path in part) == sorted(
        {f"/in/x{number}.json" for number in range(count)} - kills | {"/in/y0.json"}
    )
    assert set(given_up) == kills
    assert len(given_up) == len(kills)
    # After the first death everything runs alone, and the parts made here have their own numbers.
    again = [name for name in workers.begun if name.startswith("part-")]
    assert len(set(again)) == len(again)
    assert all(number >= 10 for number in (int(name[5:]) for name in again))


# Division


def divided(sizes: list[int], most_text: int = 1 << 40, suffix: str = ".json") -> list[list[int]]:
    files = [SourceFile(f"/in/{n:05d}{suffix}", size, 1) for n, size in enumerate(sizes)]
    tasks = division.divide(files, task(""), most_text)
    assert [t.part_id for t in tasks] == [f"part-{n:06d}" for n in range(1, len(tasks) + 1)]
    assert [file for t in tasks for file in t.files] == files
    return [[file.size for file in t.files] for t in tasks]


def test_many_tiny_files_are_committed_in_several_parts():
    # 256 KiB a file: 2,050 files count for 512.5 MiB, a quarter of which is 512 files.
    assert [len(part) for part in divided([0] * 2_050)] == [512, 512, 512, 512, 2]
    # At most 512 MiB a part: 2,048 files of no size.
    assert [len(part) for part in divided([0] * 10_000)] == [2_048] * 4 + [1_808]
    # And no less than 128 MiB.
    assert [len(part) for part in divided([0] * 513)] == [512, 1]


def test_a_large_file_is_a_part_of_its_own():
    assert divided([10 * MB, 900 * MB, 10 * MB]) == [[10 * MB], [900 * MB], [10 * MB]]
    assert divided([], 1) == []
    # Compressed text counts sixteenfold, so that one of them counts 80.25 MiB: seven pass 512 MiB.
    assert [len(part) for part in divided([5 * MB] * 40, suffix=".json.gz")] == [6] * 6 + [4]


def test_little_memory_makes_small_parts():
    limit = memory.text_within(memory.need(10 * MB))
    assert limit == pytest.approx(10 * MB, abs=2)
    assert [len(part) for part in divided([4 * MB] * 6, limit)] == [2, 2, 2]


def test_what_a_part_needs_grows_slowly_once_its_columns_are_in_files():
    assert memory.need(100 * MB) == 460 * MB
    assert memory.need(256 * MB) == int(553.6 * MB)
    assert memory.need(1_256 * MB) - memory.need(256 * MB) == 250 * MB
    assert memory.need_of_rows(8_000_000) == 400 * MB + 125 * 8_000_000


def test_a_part_is_told_what_it_may_use():
    workers = Threads(2)
    told: list[PartTask] = []
    tasks = [task("a", 100 * MB), task("b", 100 * MB)]
    list(Schedule(workers, lambda t: (told.append(t), t.part_id)[1], 1_000 * MB, 1).outcomes(tasks))
    for given_task in told:
        assert given_task.memory_bytes == 1_000 * MB  # of the run: what rejects a trace
        assert given_task.query_bytes == 128 * MB  # the least
        assert given_task.spill_rows == (100 * MB) // 450  # half of the memory is 100 MiB free
    assert memory.for_queries(4_000 * MB, 100 * MB) == 256 * MB  # the most
    assert memory.for_queries(630 * MB, 100 * MB) == 200 * MB
    assert memory.rows_held(4_000 * MB) == 1 << 18
    assert memory.rows_held(0) == 1 << 14


# Amounts of memory


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4GB", 4_000_000_000),
        ("1GiB", 1 << 30),
        ("2.5g", 2_500_000_000),
        (" 600 MB ", 600_000_000),
        ("1t", 10**12),
        ("700000000", 700_000_000),
    ],
)
def test_amounts(text, amount):
    assert memory.parse_amount(text) == amount


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "4 GB x", "1e9", "4PB", "٤GB", "1..5GB"])
def test_what_is_no_amount(text):
    with pytest.raises(UsageError, match="is no amount of memory"):
        memory.parse_amount(text)


def test_too_little_memory():
    with pytest.raises(UsageError, match="too little memory"):
        memory.parse_amount("100MB")


def test_the_default_leaves_the_machine_some():
    pages = Path("/proc/meminfo").read_text() if Path("/proc/meminfo").exists() else "MemTotal: 0"
    total = int(pages.partition("MemTotal:")[2].split()[0]) << 10
    assert 0 < memory.default_limit() <= 0.81 * (total or 1 << 60)


@pytest.mark.parametrize(
    ("files", "own", "granted"),
    [
        ({"memory.max": "max"}, "0::/\n", sys.maxsize),
        ({"memory.max": "4000\n"}, "0::/\n", 4000),  # a container sees its own as the root
        (
            {"a.slice/memory.max": "3000", "a.slice/b.service/memory.max": "max"},
            "0::/a.slice/b.service\n",
            3000,
        ),
        ({"memory/job/memory.limit_in_bytes": "2000"}, "7:cpu:/x\n4:memory:/job\n", 2000),
        ({"memory/memory.limit_in_bytes": "1000"}, "", 1000),
        ({}, None, sys.maxsize),
    ],
)
def test_what_control_groups_grant(tmp_path, files, own, granted):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    note = tmp_path / "own"
    if own is not None:
        note.write_text(own)
    assert memory.granted(tmp_path, note) == granted


def test_the_peak_is_that_of_what_was_done_since():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not forget peaks")
    block = bytearray(300 * MB)
    del block
    before = memory.peak()
    memory.forget_peak()
    assert memory.peak() < before - 200 * MB
