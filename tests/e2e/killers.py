"""Stand-ins for `run_part` that processes of their own can import: they kill, or take notes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tracehouse.commands.part import PartOutcome, PartTask, run_part


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


def run_and_note_memory(task: PartTask) -> PartOutcome:
    """Run a part, and note the process and what it holds then in `memory` beside OUT."""
    outcome = run_part(task)
    held = int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) << 10
    with (task.out.parent / "memory").open("a") as notes:
        notes.write(f"{os.getpid()} {held}\n")
    return outcome
