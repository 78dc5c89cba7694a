"""A lake that was damaged: the file is named, never a wrong number given, and it is repaired."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import run
from rights import folder_for_all, open_to_all, unprivileged
from warehouses import analyse, contents, drawn, query

import tracehouse
from tracehouse.commands.check import check
from tracehouse.commands.export import export
from tracehouse.commands.refresh import refresh_warehouse
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage import verify, writer
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import load_state
from tracehouse.storage.verify import lake_faults

EVENTS = "lake/events/part-000001.parquet"
COPIED = "lake/trace_timeline/part-000001.parquet"  # a table that the warehouse holds itself
MANIFEST = "lake/manifests/part-000001.json"


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """Return a folder of two traces, and their warehouse of two parts: a.json's is the first."""
    folder = tmp_path_factory.mktemp("check")
    for number, name in ((1, "a.json"), (2, "b.json")):
        drawn(number).write(folder / "in" / name)
        analyse(folder / "in", out=folder / "out")
    return folder / "in", folder / "out"


@pytest.fixture
def out(past, tmp_path):
    copy = shutil.copytree(past[1], tmp_path / "out")
    refresh_warehouse(copy)
    return copy


def delete(path):
    path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[:-50])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(data)


def test_a_whole_warehouse_has_no_fault(out):
    report = check(out)
    assert report.faults == ()
    files = list(out.glob("lake/*/*.parquet"))
    assert (report.parts, report.files) == (2, len(files))
    assert report.bytes == sum(path.stat().st_size for path in files)
    done = run("check", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 faults" in done.stderr
    assert json.loads(run("check", out, "--format", "json").stdout) == []


def test_there_must_be_a_lake(tmp_path):
    assert run("check", tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("path", "harm", "fault"),
    [
        (EVENTS, delete, "missing"),
        (EVENTS, truncate, "size"),
        (EVENTS, flip, "checksum"),
        (COPIED, flip, "checksum"),
        (MANIFEST, truncate, "manifest"),
        (MANIFEST, flip, "manifest"),
    ],
)
def test_damage_is_named_and_only_its_part_is_read_again(past, out, path, harm, fault):
    folder = past[0]
    of_b = "FROM kernels SEMI JOIN (FROM traces WHERE path LIKE '%b.json') USING (trace_id)"
    intact = query(out, of_b)
    harm(out / path)
    report = check(out)
    assert [(f.where, f.fault) for f in report.faults] == [(path, fault)]
    done = run("check", out, "--format", "csv")  # again: it only looked
    assert done.returncode == 1
    assert path in done.stdout
    assert "--repair" in done.stdout

    report = check(out, repair=True)
    assert report.forgotten == (str(folder / "a.json"),)
    assert (report.lost, report.returned) == ((), ())
    assert check(out).faults == ()
    assert query(out, "FROM kernels") == intact
    assert [p for (p,) in query(out, "SELECT path FROM files")] == [str(folder / "b.json")]
    aside = list((out / "lake/damaged/part-000001").iterdir())
    assert len(aside) == len(report.set_aside) > 10


@pytest.mark.parametrize("path", [EVENTS, MANIFEST])
def test_after_a_repair_the_next_run_ends_where_all_was(past, out, path):
    folder, before = past[0], contents(out)
    flip(out / path)
    check(out, repair=True)
    again = analyse(folder, out=out)
    assert (again.unchanged, again.rejected) == (1, 0)
    assert without_runs(contents(out)) == without_runs(before)
    assert check(out).faults == ()


def without_runs(tables):
    return {name: rows for name, rows in tables.items() if name != "runs"}


def test_a_flipped_bit_is_found_by_whoever_verifies_pages(tmp_path, repo_root):
    out = tmp_path / "out"
    analyse(repo_root / "data" / "samples" / "training.json.gz", out=out)
    file = out / EVENTS
    whole, table = file.read_bytes(), pq.read_table(file)
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    chance, silent = random.Random(5), {False: 0, True: 0}
    for _ in range(50):
        data = bytearray(whole)
        data[chance.randrange(4, len(data) - footer)] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
        assert [f.fault for f in lake_faults(out, load_state(out).parts, {})] == ["checksum"]
        for verified in (False, True):
            try:
                found = pq.read_table(file, page_checksum_verification=verified)
                silent[verified] += not found.equals(table)
            except (OSError, pa.ArrowException, UnicodeDecodeError):
                continue
    # The heads of pages have no checksum, and in so small a file they are a good part of it.
    assert silent[True] < silent[False] / 2, silent


def test_what_cannot_be_read_again_is_told_apart(out, tmp_path):
    gone = tmp_path / "in" / "c.json"
    drawn(3).write(gone)
    analyse(gone, out=out)
    gone.unlink()
    (out / "lake/kernels/part-000003.parquet").unlink()
    report = check(out, repair=True)
    assert report.forgotten == report.lost == (str(gone),)


def test_a_lost_replacement_brings_the_earlier_reading_back(out, tmp_path):
    file = drawn(3).write(tmp_path / "in" / "c.json")
    analyse(file, out=out)
    drawn(4).write(file)
    analyse(file, out=out)
    empty(out / "lake/manifests/part-000004.json")
    report = check(out, repair=True)
    assert (report.forgotten, report.returned) == ((), (str(file),))
    assert analyse(file, out=out).unchanged == 0  # it is not the file that was read then
    assert query(out, "SELECT count(*) FROM ops WHERE name = 'aten::op4'") == [(1,)]


def test_files_of_a_damaged_part_whose_rows_are_elsewhere_stay(out, tmp_path):
    # part 3 holds c.json's rows, and refers to part 2's for a copy of b.json.
    folder = tmp_path / "in"
    drawn(3).write(folder / "c.json")
    copy = drawn(2).write(folder / "copy.json")
    analyse(folder, out=out)
    (out / "lake/ops/part-000003.parquet").unlink()
    report = check(out, repair=True)
    assert report.forgotten == (str(folder / "c.json"),)
    assert (str(copy),) in query(out, "SELECT path FROM files")
    assert analyse(folder, out=out).unchanged == 1
    assert check(out).faults == ()


def test_a_file_whose_trace_no_part_holds_is_read_again(out, tmp_path):
    copy = drawn(1).write(tmp_path / "in" / "copy.json")  # refers to the rows of part 1
    analyse(copy, out=out)
    (out / MANIFEST).unlink()
    assert [(f.where, f.fault) for f in check(out).faults] == [
        (str(copy), "unheld"),
        (WAREHOUSE, "stale"),
    ]
    assert str(copy) in check(out, repair=True).forgotten
    assert analyse(copy, out=out).rejected == 0
    assert query(out, "SELECT count(*) FROM ops WHERE name = 'aten::op1'") == [(1,)]


@pytest.mark.parametrize(("harm", "fault"), [(delete, "missing"), (empty, "stale")])
def test_a_damaged_database_is_built_anew(out, harm, fault):
    before = contents(out)
    harm(out / WAREHOUSE)
    assert [f.where for f in check(out).faults] == [WAREHOUSE]
    report = check(out, repair=True)
    assert (report.forgotten, report.set_aside) == ((), ())
    assert contents(out) == before
    assert check(out).faults == ()


def test_a_flipped_bit_in_the_database_is_found_and_analyze_can_go_on(past, out):
    data = bytearray((out / WAREHOUSE).read_bytes())
    for at in range(0, 3 * 4096, 64):  # its headers
        data[at] ^= 0xFF
    (out / WAREHOUSE).write_bytes(data)
    assert [(f.where, f.fault) for f in check(out).faults] == [(WAREHOUSE, "unreadable")]
    done = run("sql", out, "FROM traces")
    assert (done.returncode, done.stdout) == (1, "")
    assert "check" in done.stderr
    assert "Traceback" not in done.stderr
    assert analyse(past[0], out=out).unchanged == 2
    assert check(out).faults == ()


# --- what cannot be read may be intact ----------------------------------------------------------


@pytest.fixture
def shared(past):
    with folder_for_all() as folder:
        out = shutil.copytree(past[1], folder / "out")
        refresh_warehouse(out)
        open_to_all(out)
        yield out


@pytest.mark.parametrize("closed", [EVENTS, COPIED, MANIFEST, "lake/ops"])
def test_what_this_user_may_not_read_is_no_damage_and_stays(shared, closed):
    before, files = contents(shared), set(shared.rglob("*"))
    mode = (shared / closed).stat().st_mode
    (shared / closed).chmod(0)
    with unprivileged():
        looked, done = run("check", shared), run("check", shared, "--repair")
        told = run("refresh", shared)
    assert (looked.returncode, done.returncode, told.returncode) == (1, 1, 1)
    for said in (looked.stdout, done.stdout):
        assert closed in said
        assert "unreadable" in said
        assert "Permission denied" in said
        assert "damage" not in said
        assert "--repair" not in said
    assert f"left as it is: {closed}" in done.stderr
    assert ", repaired" not in done.stderr
    assert f"{shared / closed}" in told.stderr
    assert "cannot be read: Permission denied" in told.stderr
    assert "damage" not in told.stderr
    (shared / closed).chmod(mode)
    assert set(shared.rglob("*")) == files
    assert contents(shared) == before
    assert check(shared).faults == ()


def test_a_query_says_that_it_may_not_read(shared):
    (shared / EVENTS).chmod(0)
    with unprivileged(), tracehouse.open(shared) as warehouse:
        with pytest.raises(TracehouseError, match="cannot be read: Permission denied") as caught:
            warehouse.sql("FROM events")
    assert (caught.value.code, EVENTS in str(caught.value)) == ("LAKE_UNREADABLE", True)


@pytest.mark.parametrize("closed", ["lake/manifests", "lake/runs", "lake"])
def test_a_folder_that_may_not_be_read_is_named(shared, closed):
    (shared / closed).chmod(0)
    with unprivileged():
        done = run("check", shared)
    (shared / closed).chmod(0o777)
    assert done.returncode == 1
    assert f"{shared / closed}" in done.stderr
    assert "cannot be read: Permission denied" in done.stderr
    assert "half-written" not in done.stderr


def test_a_failing_disk_is_no_damage_and_a_part_with_both_stays(out, monkeypatch):
    def failing(path):
        if path == out / EVENTS:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return writer.checksum(path)

    monkeypatch.setattr(verify, "checksum", failing)
    flip(out / "lake/kernels/part-000001.parquet")
    flip(out / "lake/kernels/part-000002.parquet")
    report = check(out, repair=True)
    assert ("unreadable", "Input/output error") in [(f.fault, f.what) for f in report.faults]
    assert {name.rpartition("/")[2] for name in report.set_aside} == {
        "part-000002.parquet",
        "part-000002.json",
    }
    assert {(f.where, f.fault) for f in report.left} == {
        (EVENTS, "unreadable"),
        ("lake/kernels/part-000001.parquet", "checksum"),
    }


# --- records of runs ---------------------------------------------------------------------------

RECORD = "lake/runs/run-000002.json"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk",
        "[]",
        "{}",
        '{"run_id":"run-000001"}',
        '{"run_id":"run-000002",\n"pid":1}',
        '{"run_id":"run-000002","pid":"me"}',
        '{"run_id":"run-000002","pid":9223372036854775808}',
        '{"run_id":"run-000002","started_at":"yesterday"}',
        '{"run_id":"run-000002","seconds":NaN}',
        b'{"run_id":"run-000002","host":"\xff"}',
    ],
)
def test_a_damaged_record_of_a_run_is_named_and_taken_out(out, text):
    (out / RECORD).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert [(f.where, f.fault) for f in check(out).faults] == [(RECORD, "record")]
    report = check(out, repair=True)
    assert (report.set_aside, report.left, report.forgotten) == ((RECORD,), (), ())
    assert query(out, "SELECT run_id FROM runs") == [("run-000001",)]
    assert len(list((out / "lake/damaged/run-000002").iterdir())) == 1


def test_a_repair_of_a_record_says_so_and_runs_go_on(past, out):
    (out / RECORD).write_text("junk\n")
    assert run("sql", out, "FROM runs").returncode != 0
    done = run("check", out, "--repair")
    assert done.returncode == 0
    assert RECORD in done.stdout
    assert "set aside in" in done.stderr
    assert "1 faults, repaired" in done.stderr
    analyse(past[0], out=out)
    assert query(out, "SELECT count(*), max(run_id) FROM runs") == [(2, "run-000002")]


def test_other_records_are_as_runs_wrote_them(out):
    # of a version with another field, and a whole number for one with a fraction
    (out / RECORD).write_text('{"run_id":"run-000002","seconds":3,"pid":null,"new":[1]}')
    assert check(out).faults == ()
    assert query(out, "SELECT seconds FROM runs WHERE run_id = 'run-000002'") == [(3.0,)]


# --- no database, a link to nothing --------------------------------------------------------------


def test_a_lake_without_a_database_is_told_from_no_warehouse(out):
    before = contents(out)
    (out / WAREHOUSE).unlink()
    for verb, what in (("sql", "FROM traces"), ("show", "traces")):
        done = run(verb, out, what)
        assert done.returncode == 2
        assert "database is not built" in done.stderr
        assert f"tracehouse refresh {out}" in done.stderr
    assert run("refresh", out).returncode == 0
    assert contents(out) == before


def test_a_link_to_nothing_in_the_lake_is_named(past, out, tmp_path):
    shutil.rmtree(out / "lake/kernels")
    (out / "lake/kernels").symlink_to(tmp_path / "nowhere")
    check(out, repair=True)
    done = run("analyze", past[0], "-o", out, "--workers", 1)
    assert done.returncode == 2
    assert f"{out / 'lake/kernels'} is a link to {tmp_path / 'nowhere'}" in done.stderr
    (out / "lake/kernels").unlink()
    assert analyse(past[0], out=out).rejected == 0
    assert check(out).faults == ()


# --- meeting damage in another command --------------------------------------------------------


@pytest.mark.parametrize("harm", [delete, truncate])
@pytest.mark.parametrize("arguments", [("sql", "FROM events"), ("show", "events")])
def test_a_query_names_the_file(out, harm, arguments):
    harm(out / EVENTS)
    verb, what = arguments
    done = run(verb, out, what)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(out / EVENTS) in done.stderr
    assert f"tracehouse check {out} --repair" in done.stderr
    assert run("sql", out, "SELECT count(*) FROM traces").returncode == 0  # the rest can be read
    wrong = run("sql", out, "SELECT nothing FROM traces")
    assert wrong.returncode == 2
    assert "nothing" in wrong.stderr


def test_an_export_never_writes_what_has_changed(out, tmp_path):
    flip(out / EVENTS)
    with pytest.raises(TracehouseError, match="its content has changed") as caught:
        export(out, "a.json", tmp_path / "a.json")
    assert (caught.value.code, EVENTS in str(caught.value)) == ("LAKE_DAMAGED", True)
    assert not (tmp_path / "a.json").exists()
    done = run("export", out, "--tables", "traces,events", "-o", tmp_path / "tables")
    assert (done.returncode, EVENTS in done.stderr) == (1, True)
    assert not (tmp_path / "tables").exists()
    assert run("export", out, "--tables", "traces,kernels", "-o", tmp_path / "t").returncode == 0


def overwrite(path):
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\0" * (path.stat().st_size // 4))


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def replace(path):
    path.with_suffix(".new").write_bytes(b"x")
    path.with_suffix(".new").replace(path)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Return a warehouse whose table of events is read in some 50 steps."""
    trace, chance = drawn(1), random.Random(3)
    for at in range(25_000):
        trace.op("aten::relu", 100 + at, 1, x=chance.randbytes(400).hex())
    folder = tmp_path_factory.mktemp("long")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "GROUP_ROWS", 500)
        analyse(trace.write(folder / "in" / "a.json"), out=folder / "out")
    return folder / "out"


@pytest.mark.parametrize("harm", [delete, replace, cut, overwrite])
def test_a_file_that_is_harmed_while_it_is_read(long, tmp_path, harm):
    out = shutil.copytree(long, tmp_path / "out")
    refresh_warehouse(out)
    with tracehouse.open(out) as warehouse:
        whole = warehouse.sql("SELECT event_id, args FROM events ORDER BY 1").to_pylist()
        reader = warehouse.batches("SELECT event_id, args FROM events")
        read = reader.read_next_batch().to_pylist()
        harm(out / EVENTS)
        try:
            read += [row for batch in reader for row in batch.to_pylist()]
            error = None
        except TracehouseError as raised:
            error = raised
        if error is None:
            assert sorted(read, key=lambda row: row["event_id"]) == whole
            assert harm is not cut
        else:
            assert (error.code, EVENTS in str(error)) == ("LAKE_DAMAGED", True)
            assert harm in (cut, overwrite)  # else what was opened is still there
        with pytest.raises(TracehouseError, match="part-000001"):
            warehouse.sql("SELECT max(args) FROM events")
    assert [f.where for f in check(out).faults] == [EVENTS]


@pytest.mark.parametrize(("path", "harm"), [(EVENTS, delete), (COPIED, flip), (MANIFEST, truncate)])
def test_an_analysis_names_the_file_and_what_it_read_is_kept(out, tmp_path, path, harm):
    harm(out / path)
    before = query(out, "FROM traces")
    file = drawn(3).write(tmp_path / "in" / "c.json")
    done = run("analyze", file, "-o", out, "--workers", 1)
    assert done.returncode == 1
    assert str(out / path) in done.stderr
    assert f"tracehouse check {out} --repair" in done.stderr
    assert query(out, "FROM traces") == before  # readers go on
    check(out, repair=True)
    analyse(file, out=out)
    assert query(out, "SELECT count(*) FROM ops WHERE name = 'aten::op3'") == [(1,)]


# --- another folder ----------------------------------------------------------------------------


def test_a_moved_warehouse_opens_and_analyze_repoints_it(out, tmp_path):
    folder = tmp_path / "in"
    drawn(3).write(folder / "c.json")
    drawn(4).write(folder / "d.json")
    analyse(folder, out=out)
    drawn(5).write(folder / "c.json")  # so that a part has rows that don't count
    analyse(folder, out=out)
    before = contents(out)
    moved = out.rename(tmp_path / "it's [a] 'new' \"place\" *")
    assert contents(moved) == before
    names = "SELECT DISTINCT name FROM ops ORDER BY name"
    assert query(moved, names) == [(f"aten::op{n}",) for n in (1, 2, 4, 5)]
    assert [(f.where, f.fault) for f in check(moved).faults] == [(WAREHOUSE, "moved")]
    assert analyse(folder, out=moved).unchanged == 2
    assert check(moved).faults == ()
    assert query(moved, names) == [(f"aten::op{n}",) for n in (1, 2, 4, 5)]


def test_a_copy_reads_its_own_lake(out, tmp_path):
    copy = shutil.copytree(out, tmp_path / "copy")
    shutil.rmtree(out / "lake" / "kernels")
    assert query(copy, "SELECT count(*) FROM kernels") == [(4,)]
    with pytest.raises(TracehouseError, match="part-000001"):
        query(out, "SELECT count(*) FROM kernels")


def test_a_moved_warehouse_that_is_not_current_says_what_to_do(out, tmp_path):
    moved = Path(shutil.move(out, tmp_path / "moved"))
    (moved / "lake/manifests/part-000002.json").unlink()
    with pytest.raises(UsageError) as caught:
        query(moved, "FROM events")
    assert "tracehouse refresh" in caught.value.hint
