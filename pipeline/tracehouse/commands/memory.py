"""How much memory a run may use, and how much a part needs.

Bytes throughout. What a part needs is an estimate from the length of its text; how it was measured
stands in docs/nightly.md, "Memory".
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tracehouse.errors import UsageError
from tracehouse.spill import AFTER_ROWS

# A process with everything imported, and what a part needs beyond that for each byte of its text:
# for the first, whose columns may be in memory, and for those behind, whose columns are in files.
BASE = 400 << 20
PER_TEXT_BYTE = 0.6
_PER_LATER_BYTE = 0.25
_HELD_TEXT = 256 << 20
# What a trace needs for each row of its frame (op call, call or kernel), in memory and in files.
_PER_ROW_HELD = 450
PER_ROW = 125
_LEAST_ROWS = 1 << 14
# Of the machine's memory, where --memory-limit does not say.
_SHARE = 0.8
_LEAST = 512 << 20
_FOR_QUERIES = (128 << 20, 256 << 20)  # least and most

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_CGROUPS = Path("/sys/fs/cgroup")


def parse_amount(text: str) -> int:
    """Return the bytes of an amount such as `4GB`, `512 MiB` or `2.5g`; kB is 1,000, KiB 1,024.

    UsageError for anything else, and for less than a process needs at all.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no amount of memory", hint="give one such as 4GB or 512MiB")
    number, unit, binary = match.groups()
    amount = int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])
    if amount < _LEAST:
        raise UsageError(
            f"{text} is too little memory: a process needs {_LEAST >> 20} MiB with nothing to do",
            hint="give 1GB or more",
        )
    return amount


def default_limit() -> int:
    """Return what a run may use if nobody says: a share of what the machine or container has."""
    return int(_SHARE * min(_machine(), granted(_CGROUPS, Path("/proc/self/cgroup"))))


def _machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def granted(root: Path, own: Path) -> int:
    """Return what control groups (a container, a systemd unit, a Slurm job) grant this process.

    `root`: where they are mounted. `own`: the file that names this process's. Each group above it
    bounds it too. As good as no bound where there is none.
    """
    bounds = [sys.maxsize, _bound(root / "memory" / "memory.limit_in_bytes")]
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        number, controllers, name = line.split(":", 2)
        if (number, controllers) == ("0", ""):  # version 2
            steps = Path(name.lstrip("/")).parts
            bounds += [
                _bound(root.joinpath(*steps[:depth], "memory.max"))
                for depth in range(len(steps) + 1)
            ]
        elif "memory" in controllers.split(","):  # version 1
            bounds.append(_bound(root / "memory" / name.lstrip("/") / "memory.limit_in_bytes"))
    return min(bounds)


def _bound(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # there is no such group, or it says "max"
        return sys.maxsize


def need(text_bytes: int) -> int:
    """Return the largest resident set of a process that works on a part with so much text."""
    later = max(text_bytes - _HELD_TEXT, 0)
    return BASE + int(PER_TEXT_BYTE * (text_bytes - later) + _PER_LATER_BYTE * later)


def need_of_rows(rows: int) -> int:
    """Return the largest resident set of a process that links so many rows, columns in files."""
    return BASE + PER_ROW * rows


def rows_held(share: int) -> int:
    """Return the rows of a frame that may be in memory, if its part has `share` in all."""
    return min(max((share - BASE) // _PER_ROW_HELD, _LEAST_ROWS), AFTER_ROWS)


def text_within(limit: int) -> int:
    """Return the most text of a part that needs no more than `limit`; at least a mebibyte."""
    return max(int((limit - BASE) / PER_TEXT_BYTE), 1 << 20)


def for_queries(share: int, text_bytes: int) -> int:
    """Return what the SQL views of a part may hold in memory, if the part has `share` in all."""
    least, most = _FOR_QUERIES
    held = int(PER_TEXT_BYTE * min(text_bytes, _HELD_TEXT)) // 2
    return min(max(share - BASE - held, least), most)


def cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # fewer than the machine's below Slurm or taskset
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def forget_peak() -> None:
    """Let `peak` count from now on; where the system cannot, it stays that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak() -> int:
    """Return the largest resident set of this process so far."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
