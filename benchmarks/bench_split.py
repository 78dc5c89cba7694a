"""Measure what it costs to split a large trace: CPU seconds and peak memory.

    python benchmarks/bench_split.py SOURCE [MEGABYTES] [FOLDER]

SOURCE, a serving trace, is enlarged to MEGABYTES (1000) in FOLDER (a temporary one), each copy a
step or more, and split in a process of its own: the steady windows, then 32 steps from the middle.
The start of Python and its imports count.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from enlarge import Source, read_text


def run(path: Path, out: Path, *options: str) -> None:
    """Split in a process of its own, and print what it took."""
    command = [sys.executable, "-m", "tracehouse", "split", str(path), "-o", str(out), *options]
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"it failed: {' '.join(command)}")
    cpu = usage.ru_utime + usage.ru_stime
    print(f"{' '.join(options) or 'windows'}: {cpu:.1f} s of CPU, {usage.ru_maxrss >> 10:,} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("megabytes", type=int, nargs="?", default=1000)
    parser.add_argument("folder", type=Path, nargs="?")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as work:
        path = Path(work) / "large.json"
        copies = Source(read_text(args.source)).write(path, args.megabytes * 10**6)
        print(f"{path.stat().st_size / 1e6:,.0f} MB, {copies} copies of {args.source.name}")
        run(path, Path(work) / "windows")
        run(path, Path(work) / "steps", "--steps", f"{copies // 2}:{copies // 2 + 32}")


if __name__ == "__main__":
    main()
