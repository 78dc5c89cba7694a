"""A command in a new process finds its compiled code: the second one compiles nothing."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys
import numba
from numba.core import event

class Seen(event.Listener):
    def __init__(self):
        self.names = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__qualname__}")
    def on_end(self, event):
        pass

seen = Seen()
event.register("numba:compile", seen)
from tracehouse.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
ours = seen.names[:]

@numba.njit
def probe(x):
    return x + 1

probe(1)
print("COMPILED", json.dumps([ours, len(seen.names) - len(ours)]))
"""


def compiled(*arguments: object) -> tuple[list[str], int]:
    """Run a command in a new process; what it compiled, and how often a probe behind it was."""
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.rpartition("COMPILED")[2])


def test_the_second_process_compiles_nothing(tmp_path, repo_root):
    samples = repo_root / "data" / "samples"
    options = ("--workers", 1, "--format", "csv")
    ours, probes = compiled("analyze", samples, "-o", tmp_path / "first", *options)
    if ours:  # nobody has filled the caches yet
        ours, probes = compiled("analyze", samples, "-o", tmp_path / "second", *options)
    assert ours == []
    assert probes == 1  # a compilation would have been seen
