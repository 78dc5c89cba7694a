from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from tracehouse.errors import UsageError
from tracehouse.ingest import recognise
from tracehouse.ingest.discover import Discovery, discover
from tracehouse.storage import layout, runs

TRACE = b'{"traceEvents": []}'


def put(path: Path, data: bytes = TRACE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found(discovery: Discovery, root: Path) -> list[str]:
    return [os.path.relpath(f.path, root) for f in discovery.files]


def test_folder_takes_traces_by_suffix_or_content(tmp_path):
    for name in (
        "a.json",
        "b.json.gz",
        "c.pt.trace.json",
        "deep/er/d.json.zst",
        "e.zip",
        "f.trace",
    ):
        put(tmp_path / name, b"whatever")
    put(tmp_path / "by_content_text", b' \n[{"ph":"X"}]')
    put(tmp_path / "by_content_gzip.1774", gzip.compress(TRACE))
    put(tmp_path / "wide.out", b"\xff\xfe[\0")
    for name in ("x.csv", "x.csv.gz", "README.md", "run.log", "w.duckdb", "t.parquet", "m.pt"):
        put(tmp_path / name)
    put(tmp_path / "LICENSE", b"MIT License")
    put(tmp_path / "empty", b"")
    assert found(discover([str(tmp_path)]), tmp_path) == [
        "a.json",
        "b.json.gz",
        "by_content_gzip.1774",
        "by_content_text",
        "c.pt.trace.json",
        "deep/er/d.json.zst",
        "e.zip",
        "f.trace",
        "wide.out",
    ]


def test_unfinished_and_hidden_files_are_listed_not_taken(tmp_path):
    put(tmp_path / "a.json")
    put(tmp_path / "b.json.tmp")  # F07
    put(tmp_path / "c.json.gz.part")
    put(tmp_path / ".d.json")
    put(tmp_path / ".cache/e.json")
    discovery = discover([str(tmp_path)])
    assert found(discovery, tmp_path) == ["a.json"]
    names = [os.path.relpath(path, tmp_path) for path in discovery.skipped]
    assert names == [".d.json", "b.json.tmp", "c.json.gz.part"]


@pytest.mark.parametrize("name", ["x.csv", ".hidden.json", "b.json.tmp", "[odd].json", "LICENSE"])
def test_a_file_named_outright_is_taken(tmp_path, name):
    path = put(tmp_path / name)
    discovery = discover([str(tmp_path), str(path)])
    assert str(path) in [f.path for f in discovery.files]
    assert str(path) not in discovery.skipped


def test_size_time_and_absolute_path(tmp_path, monkeypatch):
    put(tmp_path / "sub/a.json")
    os.utime(tmp_path / "sub/a.json", ns=(5, 1_700_000_000_123_456_789))
    monkeypatch.chdir(tmp_path / "sub")
    (file,) = discover(["../sub/./a.json"]).files
    assert file.path == str(tmp_path / "sub/a.json")
    assert (file.size, file.mtime_ns) == (len(TRACE), 1_700_000_000_123_456_789)


def test_globs(tmp_path):
    for name in ("r1/a.json", "r1/x/b.json", "r2/c.json", "r2/c.csv", "r3/d.json"):
        put(tmp_path / name)
    assert found(discover([f"{tmp_path}/**/*.json"]), tmp_path) == [
        "r1/a.json",
        "r1/x/b.json",
        "r2/c.json",
        "r3/d.json",
    ]
    # A folder that matches is searched; its table is no trace.
    assert found(discover([f"{tmp_path}/r[12]"]), tmp_path) == [
        "r1/a.json",
        "r1/x/b.json",
        "r2/c.json",
    ]


def test_a_file_found_twice_counts_once(tmp_path):
    path = put(tmp_path / "a.json")
    discovery = discover([str(path), str(tmp_path), f"{tmp_path}/*.json"])
    assert found(discovery, tmp_path) == ["a.json"]


def test_links_are_followed_and_loops_end(tmp_path):
    put(tmp_path / "real/a.json")
    (tmp_path / "real/loop").symlink_to(tmp_path / "real")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/b.json").symlink_to(tmp_path / "real/a.json")
    (tmp_path / "jobs/gone.json").symlink_to(tmp_path / "nowhere")
    discovery = discover([str(tmp_path)])
    assert found(discovery, tmp_path) == ["jobs/b.json", "real/a.json"]
    assert discovery.unreadable == (str(tmp_path / "jobs/gone.json"),)


@pytest.mark.parametrize("path", ["nope.json", "no/such/folder", "*.json", "**/x-*"])
def test_a_path_that_leads_nowhere_is_named(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "a.txt")
    with pytest.raises(UsageError) as caught:
        discover(["a.txt", path])
    assert path in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe"):
        discover([str(tmp_path / "pipe")])
    discovery = discover([str(tmp_path)])
    assert (discovery.files, discovery.special) == ((), (str(tmp_path / "pipe"),))


@pytest.fixture
def with_warehouse(tmp_path):
    """Return a folder with a trace, and with one more in that of a warehouse."""
    put(tmp_path / "a.json")
    put(tmp_path / "job/b.json")
    put(tmp_path / "job/wh/lake/manifests/part-000001.json")
    put(tmp_path / "job/wh/lake/runs/run-000001.json")
    put(tmp_path / "job/wh/c.json")
    put(tmp_path / "other/lake/manifests/d.json")  # no warehouse's
    return tmp_path


OF_TRACES = ["a.json", "job/b.json", "job/wh/c.json", "other/lake/manifests/d.json"]


@pytest.mark.parametrize("given", ["", "**", "**/*.json", "*"])
def test_the_lake_of_a_warehouse_is_passed_over(with_warehouse, given):
    discovery = discover([str(with_warehouse / given)])
    assert found(discovery, with_warehouse) == OF_TRACES
    assert discovery.lakes == (str(with_warehouse / "job/wh/lake"),)


def test_the_lake_of_a_run_that_committed_nothing_is_passed_over(with_warehouse):
    (with_warehouse / "job/wh/lake/manifests/part-000001.json").unlink()
    assert found(discover([str(with_warehouse)]), with_warehouse) == OF_TRACES


@pytest.mark.parametrize("given", ["", "/manifests", "/manifests/part-000001.json", "/*/part-*"])
def test_what_is_named_within_a_lake_is_taken(with_warehouse, given):
    discovery = discover([f"{with_warehouse}/job/wh/lake{given}"])
    assert "job/wh/lake/manifests/part-000001.json" in found(discovery, with_warehouse)


def test_the_names_of_a_lake_are_those_that_are_written(tmp_path):
    manifest = layout.manifest_path(tmp_path, layout.part_id(1))
    record = runs.folder(tmp_path) / f"{runs.next_run_id(tmp_path)}.json"
    lake = str(tmp_path / layout.LAKE)
    assert [recognise.lake_of(str(path)) for path in (manifest, record)] == [lake, lake]
    assert {manifest.parent.name, record.parent.name} == set(recognise.LAKE_RECORDS)


def test_the_lake_of_a_bucket_is_passed_over(tmp_path):
    fs = fsspec.filesystem("memory")
    url = f"memory:///tracehouse-{tmp_path.name}"
    lake = "x/wh/lake/manifests"
    for name in ("a.json", "x/wh/b.json", f"{lake}/part-000001.json", f"{lake}/part-000002.json"):
        fs.pipe_file(f"/tracehouse-{tmp_path.name}/{name}", TRACE)
    for given in ("", "/**"):
        discovery = discover([url + given])
        assert [f.path.removeprefix(url) for f in discovery.files] == ["/a.json", "/x/wh/b.json"]
        assert discovery.lakes == (f"{url}/x/wh/lake",)
    assert len(discover([f"{url}/x/wh/lake"]).files) == 2
    assert len(discover([f"{url}/{lake}/*.json"]).files) == 2


def test_urls(tmp_path):
    fs = fsspec.filesystem("memory")
    root = f"/tracehouse-{tmp_path.name}"
    for name in ("a.json", "x/b.json.gz", "x/notes.txt", "x/c.json.tmp", ".git/d.json"):
        fs.pipe_file(f"{root}/{name}", TRACE)
    url = f"memory://{root}"
    discovery = discover([url])
    assert [f.path.removeprefix(url) for f in discovery.files] == ["/a.json", "/x/b.json.gz"]
    assert {f.size for f in discovery.files} == {len(TRACE)}
    assert all(f.mtime_ns > 0 for f in discovery.files)
    assert [p.removeprefix(url) for p in discovery.skipped] == ["/.git/d.json", "/x/c.json.tmp"]
    assert [f.path for f in discover([f"{url}/*.json"]).files] == [f"{url}/a.json"]
    assert [f.path for f in discover([f"{url}/x/notes.txt"]).files] == [f"{url}/x/notes.txt"]
    for wrong in (f"{url}/nope.json", f"{url}/*.zip", "nosuchprotocol://bucket/a.json"):
        with pytest.raises(UsageError, match=wrong.replace("*", r"\*")):
            discover([wrong])


def test_local_paths_load_no_fsspec(tmp_path):
    put(tmp_path / "a.json")
    code = (
        "import sys; from tracehouse.ingest.discover import discover;"
        "discover(sys.argv[1:]); sys.exit('fsspec' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_real_archive(shared_traces):
    names = [Path(f.path).name for f in discover([str(shared_traces)]).files]
    assert all(name.endswith((".json", ".json.gz")) for name in names)
    assert len(names) == sum(1 for p in shared_traces.rglob("*.json*") if p.is_file())
