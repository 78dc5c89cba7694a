"""Run the commands of docs/tutorial.md and write what they print:  python docs/write_tutorial.py.

In a block of code a line `$ command` is followed by what it prints, stderr too.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / "docs/tutorial.md"
_BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)


def written(text: str, folder: Path) -> str:
    """Return `text` with the output of its commands, run in order in the empty `folder`."""
    _furnish(folder)

    def block(match: re.Match[str]) -> str:
        commands = [line for line in match[1].splitlines() if line.startswith("$ ")]
        outputs = "".join(f"{command}\n{_output(command[2:], folder)}" for command in commands)
        return f"```\n{outputs}```"

    return _BLOCK.sub(block, text)


def _furnish(folder: Path) -> None:
    """Put what a checkout has: data/, and .venv/bin with this Python and this Tracehouse."""
    (folder / "data").symlink_to(ROOT / "data")
    commands = folder / ".venv/bin"
    commands.mkdir(parents=True)
    for name, module in (("python", ""), ("tracehouse", " -m tracehouse")):
        script = commands / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{module} "$@"\n')
        script.chmod(0o755)


def _output(command: str, folder: Path) -> str:
    environment = os.environ | {"NO_COLOR": "1", "TZ": "UTC"}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.rstrip() + "\n" for line in done.stdout.splitlines()]
    return "".join(lines)


def main() -> None:
    """Write the tutorial anew."""
    with tempfile.TemporaryDirectory() as folder:
        text = written(TUTORIAL.read_text("utf-8"), Path(folder))
    TUTORIAL.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
