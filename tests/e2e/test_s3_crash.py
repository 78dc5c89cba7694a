"""A run on a bucket killed before any request leaves the old state or the new one.

As `test_crash_storage` does for a folder: a child counts the requests that change what is read, and
kills itself with SIGKILL before the one it is told; the test goes through all of them. The
warehouse here is a text that names the manifests it was built from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from objects import copied, keys

from tracehouse.storage.manifest import all_files, load_state
from tracehouse.storage.place import reading, writing

CHILD = """
import json, os, pathlib, signal, sys, threading
import pyarrow as pa, s3fs
from tracehouse.storage import compaction, layout, lease, repair, upkeep
from tracehouse.storage.bucket import Bucket
from tracehouse.storage.manifest import FileEntry, TraceRef, all_files, load_state
from tracehouse.storage.place import writing
from tracehouse.storage.writer import PartWriter

lease.EXPIRES_SECONDS = -1.0  # the next run need not wait
one = threading.Lock()

def counting(name):
    real = getattr(Bucket, name)
    def step(*args, **options):
        global left
        with one:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
        return real(*args, **options)
    setattr(Bucket, name, step)

counting("put")
counting("delete")
def delete(self, names, real=Bucket.delete):
    for name in list(names):  # S3 does not remove all or none
        real(self, [name])
Bucket.delete = delete

def write(place, files):
    part = layout.part_id(layout.next_part_number(place.folder))
    with PartWriter(place.folder, part) as writer:
        traces = sorted(set(files.values()))
        for table in ("ops", "kernels"):
            ids = pa.array(traces).dictionary_encode()
            writer.append(table, pa.table({"trace_id": ids, "event_id": range(len(traces))}))
        entries = [
            FileEntry(path, 1, 2, t, "ok", None, "job", (TraceRef(t, path),))
            for path, t in files.items()
        ]
        place.commit(writer.stage(entries, traces))

def compact(place):
    place.need(compaction.files_read(load_state(place.folder), 1 << 30))
    compaction.compact(place.folder, below=1 << 30)

def repaired(place):
    place.need(all_files(load_state(place.folder)), is_checked=False)
    repair.take_out(place.folder, ["part-000001"], [])

WORK = {
    "start": lambda place: write(place, {"a": "A", "b": "B"}),
    "replace": lambda place: write(place, {"a": "X", "c": "C"}),
    "prune": lambda place: upkeep.prune(place.folder, ["a"]),
    "merge": compact,
    "repair": repaired,
}

for line in sys.stdin:
    out, work, stop = json.loads(line)
    child = os.fork()
    if child == 0:
        left = stop
        with writing(pathlib.Path(out), kept=["ops"], is_new=True) as place:
            upkeep.clean(place.folder)
            WORK[work](place)
            names = [path.name for path in layout.manifest_paths(place.folder)]
            temporary = place.folder / "warehouse.tmp"
            temporary.write_text(json.dumps(names))
            temporary.replace(place.folder / "warehouse.duckdb")
            place.publish()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    print(json.dumps(status == 0), flush=True)
"""


@pytest.fixture(scope="module")
def child(to_reach_s3, tmp_path_factory):
    """Return what does `work` in a process of its own, and tells whether it came to its end."""
    cache = str(tmp_path_factory.mktemp("cache"))
    environment = {**os.environ, **to_reach_s3, "TRACEHOUSE_CACHE": cache}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:

        def run(out, work, stop=-1):
            process.stdin.write(json.dumps([str(out), work, stop]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


def seen(bucket, name):
    """What a reader sees in the manifests: files, and rows that count by table and trace."""
    with reading(Path(f"s3://{bucket[1]}/{name}")) as (folder, need):
        state = load_state(folder)
        need(all_files(state))
        rows = [
            (table, row["trace_id"])
            for part in state.parts
            for table, file in part.tables.items()
            for row in pq.read_table(folder / file.path).to_pylist()
            if state.owners.get(row["trace_id"]) == part.id
        ]
    return state.files, sorted(rows)


def assert_open_warehouse_is_whole(bucket, name):
    """All that the published warehouse was built from is there."""
    there = keys(bucket, name)
    if "warehouse.duckdb" not in there:
        return
    body = bucket[0].get_object(Bucket=bucket[1], Key=f"{name}/warehouse.duckdb")["Body"]
    for manifest in json.loads(body.read()):
        assert f"lake/manifests/{manifest}" in there
        key = f"{name}/lake/manifests/{manifest}"
        content = json.loads(bucket[0].get_object(Bucket=bucket[1], Key=key)["Body"].read())
        assert {file["path"] for file in content.get("tables", {}).values()} <= there


def refuse(bucket, name):
    """Name the Parquet files that no manifest names."""
    with reading(Path(f"s3://{bucket[1]}/{name}")) as (folder, _):
        named = {file.path for file in all_files(load_state(folder))}
    return {
        key
        for key in keys(bucket, name) - named
        if not key.endswith((".json", ".duckdb", ".lock")) and "/damaged/" not in key
    }


# Each request that changes what a reader sees: for the lock see test_s3_lease.
@pytest.mark.parametrize(
    ("before", "work", "steps"),
    [
        # Two tables, manifest, warehouse; three manifests go.
        (["start", "replace", "prune"], "merge", 7),
        # Set aside: two tables, manifest. The manifest that forgets, warehouse; three go.
        (["start", "replace"], "repair", 8),
    ],
)
def test_killed_before_every_request(bucket, child, before, work, steps):
    def out(name):
        return f"s3://{bucket[1]}/{name}"

    for each in before:
        assert child(out("base"), each)
    copied(bucket, "base", "undisturbed")
    assert child(out("undisturbed"), work)
    old, new = seen(bucket, "base"), seen(bucket, "undisturbed")
    met = []
    for stop in range(100):
        name = f"out{stop}"
        copied(bucket, "base", name)
        has_ended = child(out(name), work, stop)
        state = seen(bucket, name)
        assert state in (old, new), stop
        assert_open_warehouse_is_whole(bucket, name)
        met.append(state == new)
        with writing(Path(out(name)), kept=["ops"]):
            pass  # the next run removes what is left over
        assert seen(bucket, name) == state
        assert refuse(bucket, name) == set(), stop
        if has_ended:
            break
    assert len(met) > steps
    assert met == sorted(met)
    assert set(met) == {old == new, True}
