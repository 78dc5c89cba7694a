"""Stand-ins for `run_part` that processes of their own can import.

They kill, eat memory, wait or take notes.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from tracehouse.commands.part import run_part
from tracehouse.commands.part_task import PartOutcome, PartTask
from tracehouse.spill import give_back


def run_unless_poisoned(task: PartTask) -> PartOutcome:
    """Run a part; a file called poison… kills the process, and is noted in `attempts` beside it.

    A file called once… kills it at the first attempt only.
    """
    outcome = run_part(task)  # its temporary files are there by then
    for path in (Path(file.path) for file in task.files):
        if path.name.startswith(("poison", "once")):
            attempts = path.with_name(f".{path.name}.attempts")
            before = attempts.read_text().splitlines() if attempts.exists() else []
            attempts.write_text("\n".join([*before, f"{len(task.files)} {task.is_alone}"]))
            if path.name.startswith("poison") or not before:
                os.kill(os.getpid(), signal.SIGKILL)
    return outcome


def attempts_of(path: Path) -> list[str]:
    """Of each attempt at a file, how many files were in its part and whether it ran alone."""
    return path.with_name(f".{path.name}.attempts").read_text().splitlines()


_LEAKED: list[bytearray] = []


def run_and_leak(task: PartTask) -> PartOutcome:
    """As `run_and_note_memory`, and keep a MiB for each file that was read."""
    _LEAKED.extend(bytearray(b"x" * (1 << 20)) for _ in task.files)
    return run_and_note_memory(task)


def run_and_note_memory(task: PartTask) -> PartOutcome:
    """Run a part, and note the process and what it holds then in `memory` beside OUT."""
    outcome = run_part(task)
    gc.collect()
    pa.default_memory_pool().release_unused()  # what is free is no growth
    give_back()
    held = int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) << 10
    with (task.out.parent / "memory").open("a") as notes:
        notes.write(f"{os.getpid()} {held}\n")
    return outcome


_BLOCK = 64 << 20
_MOST_BLOCKS = 64  # where nothing stops it
_GATE_SECONDS = 120

HOARDS = {
    "bytes": lambda: b"x" * _BLOCK,
    "numpy": lambda: np.empty(_BLOCK, np.int8),  # only promised, never touched
    "arrow": lambda: pa.allocate_buffer(_BLOCK, resizable=True),  # as well
}


def run_and_hoard(task: PartTask) -> PartOutcome:
    """Run a part; for a file called hoard-KIND… take memory of that kind until there is none."""
    for path in (Path(file.path) for file in task.files):
        if path.name.startswith("hoard-"):
            _note_attempt(path, f"{len(task.files)} {task.is_alone}")
            hoard = HOARDS[path.stem.split("-")[1]]
            held = [hoard() for _ in range(_MOST_BLOCKS)]
            raise AssertionError(f"{len(held)} blocks of memory and nobody minded")
    return run_part(task)


def run_when_told(task: PartTask) -> PartOutcome:
    """Run a part; one with a file called slow… only once a file `go` is beside it.

    The process is noted in `.slow….attempts`, as all attempts are.
    """
    for path in (Path(file.path) for file in task.files):
        if path.name.startswith("slow"):
            _note_attempt(path, str(os.getpid()))
            end = time.monotonic() + _GATE_SECONDS
            while not path.with_name("go").exists():
                assert time.monotonic() < end
                time.sleep(0.02)
    return run_part(task)


def _note_attempt(path: Path, words: str) -> None:
    with path.with_name(f".{path.name}.attempts").open("a") as notes:
        notes.write(f"{words}\n")
