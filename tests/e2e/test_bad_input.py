"""Whatever lies in a folder: what can be read is read, and the rest is a row with a reason."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile

import pytest
from warehouses import analyse, contents, drawn, manifests, query

from tracehouse.errors import UsageError
from tracehouse.storage.lock import lock

READERS = ("scan", "ijson")

# us   0     50     99
# 20 events, so that a file cut in its middle keeps some
LONG = drawn(1)
for position in range(16):
    LONG.op("aten::add", 100 + position, 1)


def put_zip(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of every kind of file that a batch has to survive, and two good ones."""
    folder = tmp_path / "in"
    folder.mkdir()
    drawn(1).write(folder / "good.json")
    drawn(2).write(folder / "good.json.gz")
    (folder / "blank.json").write_bytes(b" \n\t\n")
    (folder / "empty.json").write_bytes(b"")
    (folder / "empty.json.gz").write_bytes(gzip.compress(b""))
    (folder / "garbage.json").write_bytes(bytes(range(256)) * 9)
    (folder / "garbage.json.gz").write_bytes(b"\x1f\x8b" + bytes(range(256)))
    (folder / "half.json.gz").write_bytes(gzip.compress(LONG.data())[:-30])
    (folder / "list.json").write_text("[1, 2, 3]")
    (folder / "number.json").write_text("17")
    (folder / "other.json").write_text('{"a": {"traceEvents": []}}')
    (folder / "notes.txt").write_text("not a trace, and not taken for one")
    put_zip(
        folder / "two.zip", one_json=drawn(3).data(), two_json=drawn(4).data(), README_md="read me"
    )
    put_zip(folder / "mixed.zip", good_json=drawn(5).data(), bad_json=b"nonsense")
    put_zip(folder / "useless.zip", README_md="read me")
    return folder


REJECTED = {
    "blank.json": "EMPTY_FILE",
    "empty.json": "EMPTY_FILE",
    "empty.json.gz": "EMPTY_FILE",
    "garbage.json": "NOT_A_TRACE",
    "garbage.json.gz": "BAD_CONTAINER",
    "list.json": "NOT_A_TRACE",
    "mixed.zip/bad.json": "NOT_A_TRACE",
    "number.json": "NOT_A_TRACE",
    "other.json": "NOT_A_TRACE",
    "useless.zip": "NOT_A_TRACE",
}
READ = {
    "good.json": "ok",
    "good.json.gz": "ok",
    "half.json.gz": "partial",
    "mixed.zip/good.json": "ok",
    "two.zip/one.json": "ok",
    "two.zip/two.json": "ok",
}


@pytest.mark.parametrize("reader", READERS)
def test_one_bad_file_never_costs_the_batch(tmp_path, folder, reader):
    out = tmp_path / "out"
    report = analyse(folder, out=out, reader=reader)
    found = {os.path.relpath(r.path, folder): r.status for r in report.results}
    assert found == READ | dict.fromkeys(REJECTED, "rejected")
    assert (report.total, report.rejected, report.partial) == (14, 10, 1)

    status = {
        os.path.relpath(p, folder): s for p, s in query(out, "SELECT path, status FROM traces")
    }
    assert status == found
    rejected = query(
        out,
        "SELECT path, code, reason FROM traces JOIN issues USING (trace_id)"
        " WHERE status = 'rejected' AND severity = 'error'",
    )
    assert {os.path.relpath(path, folder): code for path, code, _ in rejected} == REJECTED
    assert all(reason for *_, reason in rejected)
    files = {os.path.relpath(p, folder): s for p, s in query(out, "SELECT path, status FROM files")}
    whole = {name for name in found if ".zip/" not in name}
    assert files == {name: found[name] for name in whole} | {
        "mixed.zip": "rejected",  # the worst of its members
        "two.zip": "ok",
    }
    # No rejected trace has rows elsewhere, but each has its line in trace_timeline.
    assert query(
        out, "SELECT count(*) FROM events SEMI JOIN traces USING (trace_id) WHERE events IS NULL"
    ) == [(0,)]
    assert query(
        out, "SELECT count(*), count(busy_ns) FROM trace_timeline JOIN traces USING (trace_id)"
        " WHERE status = 'rejected'"
    ) == [(10, 0)]  # fmt: skip

    again = analyse(folder, out=out, reader=reader)
    assert (again.unchanged, again.rejected, len(manifests(out))) == (14, 10, 1)
    assert [(r.path, r.status, r.reason) for r in again.results] == [
        (r.path, r.status, r.reason) for r in report.results
    ]


def test_a_cut_file_keeps_its_whole_events(tmp_path, folder):
    out = tmp_path / "out"
    analyse(folder / "half.json.gz", out=out)
    ((events, names),) = query(out, "SELECT count(*), list(name ORDER BY event_id) FROM events")
    assert 0 < events < 20
    assert names == [event["name"] for event in LONG.events()][:events]


def test_exit_codes(tmp_path, folder):
    def run(*arguments):
        command = [sys.executable, "-m", "tracehouse", "analyze", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    out = tmp_path / "out"
    assert run(folder / "good.json", folder / "half.json.gz", "-o", out).returncode == 0
    rejected = run(folder, "-o", out)
    assert rejected.returncode == 1
    assert all(name in rejected.stderr for name in REJECTED)
    with lock(out):
        second = run(folder, "-o", out)
    assert (second.returncode, second.stdout) == (2, "")
    assert "another run is writing" in second.stderr
    on_a_file = run(folder, "-o", folder / "good.json")
    assert (on_a_file.returncode, on_a_file.stdout) == (2, "")


@pytest.mark.parametrize("place", ["good.json", "good.json/below"])
def test_out_cannot_be_a_file(tmp_path, folder, place):
    with pytest.raises(UsageError, match="cannot write to"):
        analyse(folder / "other.json", out=folder / place)


@pytest.mark.parametrize("name", ["what?", os.fsdecode(b"latin-\xe9")])
def test_an_out_that_duckdb_cannot_write_is_refused_at_once(tmp_path, folder, name):
    with pytest.raises(UsageError, match="cannot make a warehouse at"):
        analyse(folder, out=tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_path_that_does_not_exist_costs_nothing(tmp_path, folder):
    out = tmp_path / "out"
    with pytest.raises(UsageError, match=r"nowhere\.json"):
        analyse(folder, folder / "nowhere.json", out=out)
    assert not out.exists()


def test_an_empty_folder_gives_an_empty_warehouse(tmp_path):
    empty, out = tmp_path / "in", tmp_path / "out"
    empty.mkdir()
    assert analyse(empty, out=out).total == 0
    assert set(map(len, contents(out).values())) == {0}


@pytest.mark.parametrize("inside", ["out", "deep/down/out", "."])
def test_an_out_below_the_paths_is_not_read_as_input(tmp_path, inside):
    folder = tmp_path / "in"
    trace = drawn(1).write(folder / "a.json")
    out = folder / inside
    for unchanged in (0, 1, 1):
        report = analyse(folder, out=out)
        assert (report.total, report.unchanged, report.rejected) == (1, unchanged, 0)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert analyse(link, out=out).total == analyse(folder, out=link / inside).total == 1
    assert query(out, "SELECT path FROM traces") == [(str(trace),)]


def test_file_names_of_every_kind(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    names = {
        "a b.json": "a b.json",
        'it\'s "q".json': 'it\'s "q".json',
        "ü€𝄞.json": "ü€𝄞.json",
        "two\nlines.json": "two\nlines.json",
        "[a]*?.json": "[a]*?.json",
        "%s;--.json": "%s;--.json",
        os.fsdecode(b"latin-\xe9.json"): "latin-\\udce9.json",  # not UTF-8
        os.fsdecode(b"latin-\xe9.json.gz"): "latin-\\udce9.json.gz",  # not gzip either
    }
    for number, name in enumerate(names):
        (folder / name).write_bytes(drawn(number).data())
    (folder / os.fsdecode(b"bad-\xe9.json")).write_text("nonsense")
    shown = sorted(str(folder / name) for name in [*names.values(), "bad-\\udce9.json"])
    report = analyse(folder, out=out, prune=True)
    assert sorted(r.path for r in report.results) == shown
    assert (report.total, report.rejected) == (9, 1)
    assert [path for (path,) in query(out, "SELECT path FROM files ORDER BY path")] == shown
    assert [path for (path,) in query(out, "SELECT path FROM traces ORDER BY path")] == shown
    again = analyse(folder, out=out, prune=True)
    assert (again.unchanged, sorted(r.path for r in again.results)) == (9, shown)


def test_a_folder_that_is_not_utf8_labels_its_traces(tmp_path):
    folder, out = tmp_path / os.fsdecode(b"job-\xe9"), tmp_path / "out"
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    assert query(out, "SELECT label FROM traces") == [("job-\\udce9",)]


def test_links_are_followed_and_loops_ended(tmp_path):
    folder, out, real = tmp_path / "in", tmp_path / "out", tmp_path / "real"
    drawn(1).write(real / "a.json")
    folder.mkdir()
    (folder / "folder").symlink_to(real)
    (folder / "file.json").symlink_to(real / "a.json")
    (folder / "loop").symlink_to(folder)
    (folder / "broken.json").symlink_to(tmp_path / "nowhere")
    report = analyse(folder, out=out)
    assert {os.path.relpath(r.path, folder): r.status for r in report.results} == {
        "broken.json": "rejected",
        "file.json": "ok",
        "folder/a.json": "ok",
    }
    assert query(out, "SELECT path FROM traces WHERE status = 'ok'") == [
        (str(folder / "file.json"),)
    ]
