"""Write the traces of the tutorial:  python data/nightly.py [FOLDER] [--nights N]

Two jobs, each a folder of one trace a night: `steady`, where nothing happens, and `slower`, where
on the last night an op is 8 % slower. docs/tutorial.md finds it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from generators import nightly
from generators.kineto import compress

NIGHTS = 40
SLOWDOWN = 0.08


def write(folder: Path, nights: int = NIGHTS) -> None:
    """Write both jobs below `folder`; equal sources give equal files."""
    for job in ("steady", "slower"):
        (folder / job).mkdir(parents=True, exist_ok=True)
        for night in range(1, nights + 1):
            is_slow = job == "slower" and night == nights
            drawing = nightly.draw(job, night, slowdown=SLOWDOWN if is_slow else 0.0)
            path = folder / job / f"night-{night:02d}.json.gz"
            path.write_bytes(compress(drawing.text().encode()))


def main() -> None:
    """Write them below the folder given, or below `nightly/` here."""
    parser = argparse.ArgumentParser(description="Write the traces of docs/tutorial.md.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("nightly"))
    parser.add_argument("--nights", type=int, default=NIGHTS)
    given = parser.parse_args()
    write(given.folder, given.nights)


if __name__ == "__main__":
    main()
