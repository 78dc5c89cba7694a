"""Each command as a user runs it, in a process of its own: it says and does what it does in ours.

The other tests of commands run them in this process, which is several times as fast.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

VARIES = re.compile(r"\d+\.\d\d s\b|[\d,]+ bytes")  # the time a run took, its digits in the lake


def in_a_process(*arguments, cwd):
    command = [sys.executable, "-m", "tracehouse", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def folders(tracehouse, repo_root, archive, tmp_path_factory):
    """Two folders of equal names and content, each with a trace and a warehouse of it, `out`."""
    made = []
    for name in ("side-a", "side-b"):
        folder = tmp_path_factory.mktemp(name) / "nightly"
        folder.mkdir()
        sample = (repo_root / "data/samples/serving.json.gz").read_bytes()
        (folder / "a.json.gz").write_bytes(sample)
        (folder / "other.json").write_bytes((archive / "other.json").read_bytes())
        done = tracehouse("analyze", "a.json.gz", "-o", "out", "--workers", "1", cwd=folder)
        assert done.returncode == 0, done.stderr
        made.append(folder)
    return made


@pytest.mark.parametrize(
    "words",
    [
        "analyze a.json.gz other.json -o new --workers 1 --format csv",
        "show out",
        "report out -o page.html",
        "compare a.json.gz a.json.gz",
        "gate out --against last:1",
        "sql out 'no such words'",
        "steps a.json.gz --limit 3",
        "split a.json.gz --phase decode -o part",
        "plan --conc 8 --osl 64 --r 0.5",
        "schema kernels",
        "doctor a.json.gz",
        "export out a -o -",
        "refresh out",
        "check out",
        "compact out",
        "prune out --older-than 30d",
        "show nowhere",
        "show out --no-such-option",
    ],
)
def test_a_process_says_what_is_said_here(tracehouse, folders, words):
    arguments = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", words)]
    ours, theirs = folders
    here = tracehouse(*arguments, cwd=ours)
    there = in_a_process(*arguments, cwd=theirs)

    def told(result, folder):
        texts = (VARIES.sub("", text) for text in (result.stdout, result.stderr))
        return (result.returncode, *(text.replace(str(folder), "") for text in texts))

    assert told(there, theirs) == told(here, ours)
    assert {path.name for path in theirs.iterdir()} == {path.name for path in ours.iterdir()}
