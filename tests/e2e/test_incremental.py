"""A second run reads what changed, and ends in the warehouse that a first run would make."""

from __future__ import annotations

import os
import random
from pathlib import Path
from zipfile import ZipFile

import pytest
from warehouses import analyse, contents, drawn, manifests, query

from tracehouse.commands import part, results
from tracehouse.errors import RejectedFile

NAMED = "SELECT path, events FROM traces ORDER BY path"


def paths(out):
    return [path for (path,) in query(out, "SELECT path FROM traces ORDER BY path")]


def test_an_unchanged_file_is_not_read_again(tmp_path):
    file, out = drawn(1).write(tmp_path / "in/a.json"), tmp_path / "out"
    analyse(file, out=out)
    before, written, status = contents(out), manifests(out), file.stat()
    file.write_bytes(b"?" * status.st_size)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    report = analyse(file, out=out)
    assert (report.total, report.unchanged, report.rejected) == (1, 1, 0)
    assert [(r.status, r.events, r.kernels, r.busy_ns, r.skipped) for r in report.results] == [
        ("ok", 4, 1, 25_000, True)  # 20 µs of kernel and 5 µs of copy
    ]
    assert contents(out) == before
    assert manifests(out) == written


def test_a_changed_file_replaces_its_rows_in_every_table(tmp_path):
    folder, out, fresh = tmp_path / "in", tmp_path / "out", tmp_path / "fresh"
    drawn(1).write(folder / "a.json")
    drawn(2).write(folder / "b.json")
    analyse(folder, out=out)
    drawn(3).write(folder / "a.json")
    report = analyse(folder, out=out)
    assert report.unchanged == 1
    assert query(out, "SELECT DISTINCT name FROM ops ORDER BY name") == [
        ("aten::op2",),
        ("aten::op3",),
    ]
    analyse(folder, out=fresh)
    assert contents(out) == contents(fresh)


def test_a_touched_file_adds_no_rows(tmp_path):
    file, out = drawn(1).write(tmp_path / "a.json"), tmp_path / "out"
    analyse(file, out=out)
    before, parquet = contents(out), set(out.rglob("*.parquet"))
    os.utime(file, ns=(0, 1_000_000_000))
    assert analyse(file, out=out).unchanged == 0
    after = contents(out)
    assert before.pop("files") != after.pop("files")  # the time
    assert after == before
    assert set(out.rglob("*.parquet")) == parquet
    assert analyse(file, out=out).unchanged == 1


def test_a_vanished_file_stays_until_pruned(tmp_path):
    folder, out, fresh = tmp_path / "in", tmp_path / "out", tmp_path / "fresh"
    gone = drawn(1).write(folder / "a.json")
    kept = drawn(2).write(folder / "b.json")
    analyse(folder, out=out)
    before = contents(out)
    gone.unlink()
    analyse(folder, out=out)
    assert contents(out) == before
    analyse(folder, out=out, prune=True)
    assert paths(out) == [str(kept)]
    analyse(folder, out=fresh)
    assert contents(out) == contents(fresh)


@pytest.mark.parametrize(
    ("given", "pruned"),
    [
        ("run1", {"run1/a.json"}),
        ("run[1]", {"run[1]/a.json"}),  # exists: no pattern
        ("run?", {"run1/a.json", "run2/a.json"}),
        ("run?/*.json", {"run1/a.json", "run2/a.json"}),
        ("ru*/b.json", set()),
        ("**/a.json", {"run1/a.json", "run2/a.json", "run[1]/a.json"}),
        (".", {"run1/a.json", "run2/a.json", "run[1]/a.json"}),
    ],
)
def test_prune_forgets_only_what_the_paths_cover(tmp_path, monkeypatch, given, pruned):
    folder, out = tmp_path / "in", tmp_path / "out"
    everything = {f"{run}/{name}.json" for run in ("run1", "run2", "run[1]") for name in "ab"}
    for number, name in enumerate(sorted(everything)):
        drawn(number).write(folder / name)
    drawn(9).write(folder / "a.json")  # so that **/a.json finds something
    analyse(folder, out=out)
    for run in ("run1", "run2", "run[1]"):
        (folder / run / "a.json").unlink()
    monkeypatch.chdir(folder)
    analyse(given, out=out, prune=True)
    left = everything - pruned | {"a.json"}
    assert paths(out) == sorted(str(folder / name) for name in left)


def test_a_new_label_is_given_to_files_that_are_not_read_again(tmp_path):
    folder, out = tmp_path / "job", tmp_path / "out"
    one, two = drawn(1).write(folder / "a.json"), drawn(2).write(folder / "b.json")
    labels = "SELECT path, label FROM traces ORDER BY path"
    analyse(folder, out=out)
    assert query(out, labels) == [(str(one), "job"), (str(two), "job")]
    before, parquet = contents(out), set(out.rglob("*.parquet"))
    report = analyse(one, out=out, label="nightly")
    assert report.unchanged == 1
    assert query(out, labels) == [(str(one), "nightly"), (str(two), "job")]
    assert set(out.rglob("*.parquet")) == parquet
    written = manifests(out)
    analyse(folder, out=out)  # without a label it stays
    assert query(out, labels) == [(str(one), "nightly"), (str(two), "job")]
    assert manifests(out) == written
    analyse(one, out=out, label="job")
    assert contents(out) == before


def test_equal_contents_are_one_trace_named_by_the_first_path(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    second = drawn(1).write(folder / "b.json")
    analyse(folder, out=out)
    assert query(out, NAMED) == [(str(second), 4)]
    first = drawn(1).write(folder / "a.json.gz")  # the same text, packed
    analyse(folder, out=out)
    assert query(out, NAMED) == [(str(first), 4)]
    assert query(out, "SELECT count(*), count(DISTINCT traces) FROM files") == [(2, 1)]
    assert query(out, "SELECT count(*) FROM kernels") == [(2,)]
    first.unlink()
    analyse(folder, out=out, prune=True)
    assert query(out, NAMED) == [(str(second), 4)]
    assert query(out, "SELECT count(*) FROM kernels") == [(2,)]


def test_a_file_that_takes_the_content_of_another(tmp_path):
    folder, out, fresh = tmp_path / "in", tmp_path / "out", tmp_path / "fresh"
    first, second = drawn(1).write(folder / "a.json"), drawn(2).write(folder / "b.json")
    analyse(folder, out=out)
    os.utime(drawn(2).write(first), ns=(0, 1_000_000_000))
    analyse(folder, out=out)
    assert query(out, NAMED) == [(str(first), 4)]
    assert query(out, "SELECT name FROM ops") == [("aten::op2",)]
    drawn(1).write(second)  # and back: what was dropped is read anew
    os.utime(second, ns=(0, 2_000_000_000))
    analyse(folder, out=out)
    analyse(folder, out=fresh)
    assert contents(out) == contents(fresh)
    assert paths(out) == [str(first), str(second)]


def test_a_rejected_file_that_is_repaired(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    file = folder / "a.json"
    file.write_text("nonsense")
    assert analyse(folder, out=out).rejected == 1
    report = analyse(folder, out=out)
    assert (report.rejected, report.unchanged) == (1, 1)
    assert report.results[0].reason
    drawn(1).write(file)
    assert analyse(folder, out=out).rejected == 0
    assert query(out, "SELECT status, reason FROM traces") == [("ok", None)]
    assert query(out, "SELECT status, reason FROM files") == [("ok", None)]
    assert query(out, "SELECT count(*) FROM issues WHERE severity = 'error'") == [(0,)]


def test_a_file_that_the_system_did_not_let_be_read_is_tried_again(tmp_path, monkeypatch):
    file, out = drawn(1).write(tmp_path / "a.json"), tmp_path / "out"

    def failing(path, **options):
        raise RejectedFile("the file cannot be read: Input/output error", code="READ_FAILED")

    with monkeypatch.context() as broken:
        broken.setattr(part, "read_file", failing)
        assert analyse(file, out=out).rejected == 1
    report = analyse(file, out=out)  # its size and time are as before
    assert (report.rejected, report.unchanged) == (0, 0)
    assert query(out, NAMED) == [(str(file), 4)]


def test_a_link_to_nothing_is_reported_each_time_and_read_when_repaired(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    link = folder / "a.json"
    link.symlink_to(tmp_path / "later.json")
    for _ in range(2):
        assert analyse(folder, out=out, prune=True).rejected == 1
    assert len(manifests(out)) == 1
    drawn(1).write(tmp_path / "later.json")
    assert analyse(folder, out=out).rejected == 0
    assert query(out, NAMED) == [(str(link), 4)]


@pytest.mark.parametrize("prune", [False, True])
def test_a_folder_that_could_not_be_listed_is_forgotten_once_it_is(tmp_path, monkeypatch, prune):
    folder, out = tmp_path / "in", tmp_path / "out"
    file = drawn(1).write(folder / "sub/a.json")
    listed = Path.iterdir

    def refusing(path):
        if path == folder / "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    with monkeypatch.context() as locked:
        locked.setattr(Path, "iterdir", refusing)
        for _ in range(2):
            assert analyse(folder, out=out, prune=prune).rejected == 1
    assert query(out, "SELECT path, status FROM files") == [(str(folder / "sub"), "rejected")]
    report = analyse(folder, out=out, prune=prune)
    assert (report.rejected, report.pruned) == (0, ())
    for table in ("files", "traces"):
        assert query(out, f"SELECT path, status FROM {table}") == [(str(file), "ok")]
    assert query(out, "SELECT count(*) FROM issues WHERE severity = 'error'") == [(0,)]
    written = manifests(out)
    analyse(folder, out=out, prune=prune)
    assert manifests(out) == written


def test_a_trace_whose_path_is_a_folder_now_stays_until_pruned(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    gone = drawn(1).write(folder / "a")
    analyse(folder, out=out)
    gone.unlink()
    file = drawn(2).write(folder / "a/b.json")
    analyse(folder, out=out)
    assert paths(out) == [str(gone), str(file)]
    assert analyse(folder, out=out, prune=True).pruned == (str(gone),)


def test_another_warehouse_in_the_archive_is_no_trace(tmp_path):
    folder = tmp_path / "in"
    file = drawn(1).write(folder / "a.json")
    analyse(folder, out=folder / "one")
    manifest = folder / "one/lake/manifests/part-000001.json"
    out = folder / "two"
    assert analyse(folder, manifest, out=out).rejected == 1  # it is named
    assert analyse(folder, out=out).rejected == 0
    assert query(out, "SELECT path, status FROM files") == [(str(file), "ok")]


def test_a_content_found_twice_has_the_numbers_of_its_twin(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("a.json", "b.json.gz"):
        drawn(1).write(folder / name)
    with ZipFile(folder / "c.zip", "w") as archive:
        archive.writestr("d.json", drawn(1).data())
        archive.writestr("e.json", drawn(2).data())
    names = ["a.json", "b.json.gz", "c.zip/d.json", "c.zip/e.json"]
    numbers = dict.fromkeys(names, ("ok", 4, 1, 25_000))  # 20 µs of kernel and 5 µs of copy
    pct = [pytest.approx(2500 / 35)] * 4  # from the kernel's start to the copy's end
    for _ in range(3):
        told = []
        report = analyse(folder, out=out, on_trace=told.append)
        found = {
            str(Path(r.path).relative_to(folder)): (r.status, r.events, r.kernels, r.busy_ns)
            for r in report.results
        }
        assert found == numbers
        assert results.result_rows(report)["busy_pct"].to_pylist() == pct
        if not report.unchanged:  # each line of the first run says so too
            assert {(r.kernels, r.busy_ns) for r in told} == {(1, 25_000)}
        os.utime(folder / "b.json.gz", ns=(0, report.unchanged * 1_000_000_000))


@pytest.mark.parametrize("seed", range(3))
def test_any_history_ends_where_a_first_run_would(tmp_path, seed):
    chance = random.Random(seed)
    folder, out, fresh = tmp_path / "in", tmp_path / "out", tmp_path / "fresh"
    clock = 1_000_000_000
    folder.mkdir()
    for _ in range(5):
        for name in chance.sample(["a.json", "b.json", "c.json", "d.json"], 2):
            clock += 1_000_000_000
            file = folder / name
            content = chance.choice([None, b"nonsense", *(drawn(n).data() for n in range(3))])
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)
                os.utime(file, ns=(0, clock))
        analyse(folder, out=out, prune=chance.random() < 0.5)
    analyse(folder, out=out, prune=True)
    analyse(folder, out=fresh)
    assert contents(out) == contents(fresh)


def test_a_lake_of_mostly_dead_rows_is_compacted(tmp_path):
    # Two files in a part of their own each night; both change twice: 4 dead traces against 2.
    folder, out = tmp_path / "in", tmp_path / "out"
    for night in range(3):
        drawn(10 + night).write(folder / "a.json")
        drawn(20 + night).write(folder / "b.json")
        analyse(folder, out=out)
    fresh = tmp_path / "fresh"
    analyse(folder, out=fresh)
    assert contents(out) == contents(fresh)
    # Nothing but the last night is named; what compaction left over goes with the next run.
    analyse(folder, out=out)
    assert len(manifests(out)) == 1
    assert len(list((out / "lake" / "kernels").iterdir())) == 1
    assert contents(out) == contents(fresh)
