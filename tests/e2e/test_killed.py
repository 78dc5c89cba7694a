"""A run killed at any moment: the old warehouse stays readable, and the next run ends in the new.

First at every step of its own, in a child that kills itself; then whenever the clock says, from the
command line. SIGKILL leaves no one time to tidy up.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time

import pytest
from warehouses import analyse, contents, drawn, names_in, temporary_files

from tracehouse.commands.refresh import refresh_warehouse

CHILD = """
import os, pathlib, signal, sys
from tracehouse.commands import analyze, division, part
from tracehouse.storage import durable, place
from tracehouse.warehouse import build, publish

def step():
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

def counting(owner, name, *, after=False):
    real = getattr(owner, name)
    def counted(*args, **options):
        step()
        result = real(*args, **options)
        if after:
            step()
        return result
    setattr(owner, name, counted)

counting(part, "read_file")
counting(part, "summarise")
counting(place, "commit_staged")
counting(durable, "replace_text")  # puts a manifest in its place
counting(publish, "build")
counting(build, "_fill", after=True)
division.PART_BYTES = 1  # a part a file
folder, workers, *outs = sys.argv[1:]
for out in outs:
    left = int(out.rpartition("-")[2])
    child = os.fork()
    if child == 0:
        analyze.analyze([folder], pathlib.Path(out), workers=int(workers), prune=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    print("done" if status == 0 else "killed")
"""

COMMAND = """
from tracehouse.commands import division
division.PART_BYTES = 1
from tracehouse.cli.main import main
main()
"""


@pytest.fixture
def history(tmp_path):
    """Return a folder, the warehouse of its past, and a fresh one of what it holds now.

    Since the past a file has changed, one has come and one has gone.
    """
    folder, past, fresh = tmp_path / "in", tmp_path / "past", tmp_path / "fresh"
    drawn(1).write(folder / "a.json")
    drawn(2).write(folder / "b.json")
    analyse(folder, out=past)
    drawn(3).write(folder / "a.json")
    drawn(4).write(folder / "c.json.gz")
    (folder / "b.json").unlink()
    analyse(folder, out=fresh)
    return folder, past, fresh


def copied(past, name):
    out = shutil.copytree(past, past.with_name(name))
    refresh_warehouse(out)
    return out


# The record of the run, the prune manifest, then for each of the two parts: commit, manifest; and
# before these, if it is done in the same process: read, summarise. Then build, fill, the end of it,
# and the record again. Of the second part its commit alone: it takes the steps of the first.
@pytest.mark.parametrize(
    ("workers", "moments"),
    [
        (1, (*range(2 + 4), 2 + 4 + 2, *range(2 + 2 * 4, 15))),
        (2, (3, 5, *range(2 + 2 * 2 + 3, 11))),
    ],
)
def test_killed_before_a_step(history, workers, moments):
    folder, past, fresh = history
    old, new, whole = names_in(past), names_in(fresh), contents(fresh)
    outs = [copied(past, f"out-{moment}") for moment in moments]
    command = [sys.executable, "-c", CHILD, str(folder), str(workers), *map(str, outs)]
    ends = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert ends == ["killed"] * (len(outs) - 1) + [
        "done"
    ]  # the last moment is behind the last step
    for out in outs[:-2]:
        assert names_in(out) == old  # the last step but the record is the one that shows the new
    assert names_in(outs[-2]) == new
    for out in outs:
        analyse(folder, out=out, prune=True)
        assert contents(out) == whole
        assert temporary_files(out) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_any_time(history, workers):
    folder, past, fresh = history
    old, new = names_in(past), names_in(fresh)

    def start(out):
        arguments = ["analyze", str(folder), "-o", str(out), "--prune", "--workers", str(workers)]
        command = [sys.executable, "-c", COMMAND, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    undisturbed = copied(past, "undisturbed")
    began = time.monotonic()
    with start(undisturbed) as process:
        said = process.communicate()[0]
    whole = time.monotonic() - began
    assert (process.returncode, contents(undisturbed)) == (0, contents(fresh)), said

    chance = random.Random(workers)
    for number in range(2):
        out = copied(past, f"out{number}")
        end = time.monotonic() + whole * chance.uniform(0.3, 1)
        with start(out) as process:
            while time.monotonic() < end:
                assert names_in(out) in (old, new)
            process.kill()
            # The run's workers hold its output open: this waits until the last of them has ended.
            process.communicate(timeout=60)
        assert names_in(out) in (old, new)
        analyse(folder, out=out, prune=True)
        assert contents(out) == contents(fresh)
        assert temporary_files(out) == []
