"""A run on a bucket killed at any step: readers meet the old state or the new, the next run mends.

A child kills itself with SIGKILL before a request that it is told, in the middle of reading and at
the end; `test_s3_crash` goes through every request. What the child leaves in the bucket is all that
there is: its folder is gone for the next run, which works without it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from objects import copied
from warehouses import analyse, contents, drawn, names_in

from tracehouse.storage import compaction

CHILD = """
import json, os, pathlib, signal, sys
import s3fs
from tracehouse.commands import analyze, division
from tracehouse.storage import compaction, lease
from tracehouse.storage.bucket import Bucket

def counting(name, words):
    real = getattr(Bucket, name)
    def counted(self, *args, **options):
        if words(*args).startswith(step):
            global left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *args, **options)
    setattr(Bucket, name, counted)

def delete(self, names, real=Bucket.delete):
    real(self, list(names))  # a list, so that it can be looked at
Bucket.delete = delete
counting("put", lambda name, *_: f"put {name}")
counting("put_note", lambda name, *_: f"note {name}")
counting("delete", lambda names: f"delete {' '.join(names)}")
division.PART_BYTES = 1  # a part a file
compaction._MANY = 2
lease.EXPIRES_SECONDS = -1.0  # the next run need not wait
folder, outs, steps = sys.argv[1], *map(json.loads, sys.argv[2:])
for out, (step, left) in zip(outs, steps):
    child = os.fork()
    if child == 0:
        analyze.analyze([folder], pathlib.Path(out), workers=1, prune=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    print("done" if status == 0 else "killed")
"""

# What a run does in order: the request before which it dies, and how many like it come before.
STEPS = (
    ("put lake/ops", 2, "old"),  # half of the second part
    ("delete lake/manifests", 2, "new"),  # of the parts that were merged
)


def url(bucket, name):
    return Path(f"s3://{bucket[1]}/{name}")


def test_killed_before_a_request(bucket, tmp_path, monkeypatch):
    folder = tmp_path / "in"
    drawn(1).write(folder / "a.json")
    drawn(2).write(folder / "b.json")
    analyse(folder, out=url(bucket, "past"))
    old = names_in(url(bucket, "past"))
    drawn(3).write(folder / "a.json")
    drawn(4).write(folder / "c.json.gz")
    (folder / "b.json").unlink()
    analyse(folder, out=url(bucket, "fresh"))
    new = names_in(url(bucket, "fresh"))

    outs = [url(bucket, f"out{number}") for number in range(len(STEPS))]
    for out in outs:
        copied(bucket, "past", out.name)
    steps = json.dumps([step[:2] for step in STEPS])
    command = [sys.executable, "-c", CHILD, str(folder), json.dumps(list(map(str, outs))), steps]
    ends = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert ends == ["killed"] * len(outs)

    monkeypatch.setattr(compaction, "_MANY", 2)
    states = {"old": old, "new": new}
    for out, (step, count, met) in zip(outs, STEPS, strict=True):
        assert names_in(out) == states[met], (step, count)
        analyse(folder, out=out, prune=True)
        assert names_in(out) == new, (step, count)
    assert contents(out) == contents(url(bucket, "fresh"))
