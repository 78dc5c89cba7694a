"""The command line in this process, where a dozen commands cost what one process does.

tests/cli/test_process.py holds that a process says the same.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from click.testing import CliRunner

from tracehouse.cli.main import main


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `tracehouse` with these arguments; any error it does not put into words is raised."""
    words = list(map(str, arguments))
    with contextlib.chdir(cwd or Path.cwd()):
        result = CliRunner().invoke(main, words, prog_name="tracehouse")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(words, result.exit_code, result.stdout, result.stderr)
