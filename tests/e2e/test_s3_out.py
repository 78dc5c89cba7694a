"""A warehouse in a bucket, against an S3 server on loopback: the same as one in a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from commandline import run
from warehouses import analyse, contents, drawn, files_of, names_in, query

import tracehouse
from tracehouse.commands import division
from tracehouse.commands.check import check
from tracehouse.commands.compact import compact
from tracehouse.commands.export import export
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage import compaction
from tracehouse.storage.address import url_of
from tracehouse.storage.bucket import StoreError
from tracehouse.storage.place import reading

SECRETS = ("key-of-the-test", "secret-of-the-test")


def url(bucket, name="warehouse"):
    return f"s3://{bucket[1]}/{name}"


def listed(bucket, prefix="warehouse/"):
    found = bucket[0].list_objects_v2(Bucket=bucket[1], Prefix=prefix)
    return {entry["Key"].removeprefix(prefix) for entry in found.get("Contents", ())}


def content(bucket, key):
    return bucket[0].get_object(Bucket=bucket[1], Key=f"warehouse/{key}")["Body"].read()


def put(bucket, key, data):
    bucket[0].put_object(Bucket=bucket[1], Key=f"warehouse/{key}", Body=data)


def said(*arguments):
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def impatient(monkeypatch):
    """Let nothing be tried again."""
    import s3fs

    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)


def test_the_lake_and_the_tables_are_those_of_a_folder(bucket, tmp_path, repo_root, samples_alone):
    """By the command line, of two processes, from a machine that has nothing."""
    here, _ = samples_alone
    out = url(bucket)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "PART_BYTES", 1)
        said("analyze", repo_root / "data/samples", "-o", out, "--workers", 2)
    with reading(Path(out)) as (folder, _):
        assert files_of(folder) == files_of(here)
    assert contents(Path(out)) == contents(here)
    names = {name for name in listed(bucket) if name.startswith("lake/")}
    assert names == {
        path.relative_to(here).as_posix() for path in (here / "lake").rglob("*") if path.is_file()
    }
    for key in listed(bucket):
        data = content(bucket, key)
        assert not any(secret.encode() in data for secret in SECRETS), key
        assert str(tmp_path).encode() not in data, key
    work = [path for path in (tmp_path / "cache").glob("*/work/*")]
    assert work == []


def test_a_second_run_fetches_nothing_and_finds_nothing_to_do(door, bucket, tmp_path):
    drawn(1).write(tmp_path / "in/a.json")
    out = Path(url(bucket))
    analyse(tmp_path / "in", out=out)
    door.asked.clear()
    assert analyse(tmp_path / "in", out=out).unchanged == 1
    reads = [path for method, path in door.asked if method in ("GET", "HEAD")]
    assert {path for path in reads if "/lake/" in path or "duckdb" in path} <= {
        f"/{bucket[1]}/warehouse/lake/runs/run-000001.json"
    }
    written = {path for method, path in door.asked if method == "PUT"}
    assert written == {
        f"/{bucket[1]}/warehouse/.lock",
        f"/{bucket[1]}/warehouse/lake/runs/run-000002.json",
    }
    # A reader fetches of the lake what its query is about, and what it has it does not fetch again.
    for _ in range(2):
        door.asked.clear()
        assert query(out, "SELECT count(*) FROM kernels") == [(1 + 1,)]
        read = {path for method, path in door.asked if method == "GET" and "/lake/" in path}
        assert read <= {f"/{bucket[1]}/warehouse/lake/kernels/part-000001.parquet"}
    assert read == set()
    assert query(out, "SELECT run_id, exit_code FROM runs ORDER BY ALL") == [
        ("run-000001", 0),
        ("run-000002", 0),
    ]
    # A name that is put together in the query is found too.
    assert query(out, "SELECT count(*) FROM query_table('eve' || 'nts')")[0][0] > 0


def test_every_command_takes_a_bucket(bucket, tmp_path):
    folder, out = tmp_path / "in", url(bucket)
    for number in range(2):
        drawn(number).write(folder / f"{number}.json")
        said("analyze", folder, "-o", out, "--label", f"night{number}", "--workers", 1)
    assert "night1" in said("report", out, "--format", "md")
    assert "aten::op1" in said("show", out)
    assert "k1" in said("show", out, "kernels", "--format", "csv")
    assert "kernels" in said("schema", out)
    assert json.loads(said("steps", out, "--format", "json")) == []
    said("compare", f"{out}:last:1", "last:1", "--in", out)
    said("compare", out, folder / "0.json")
    text = said("export", out, "1.json", "-o", "-")
    assert "aten::op1" in text
    said("export", out, "--tables", "kernels", "-o", tmp_path / "tables")
    assert pq.read_table(tmp_path / "tables/kernels.parquet").num_rows == 4
    before = names_in(Path(out))
    said("compact", out)
    said("refresh", out)
    assert names_in(Path(out)) == before
    assert len({name for name in listed(bucket) if "manifests" in name}) == 1
    (folder / "1.json").unlink()
    said("analyze", folder, "-o", out, "--prune", "--workers", 1)
    assert "aten::op1" not in said("show", out)
    dropped = said("prune", out, "--older-than", "1h", "--by", "analysed", "--dry-run")
    assert "in/0.json" not in dropped  # it is young
    said("check", out)


def test_a_colleague_reads_it_with_other_tools(bucket, tmp_path):
    import s3fs

    drawn(3).write(tmp_path / "a.json")
    analyse(tmp_path / "a.json", out=Path(url(bucket)))
    s3 = s3fs.S3FileSystem()
    names = pq.read_table(f"{bucket[1]}/warehouse/lake/kernels", filesystem=s3)["name"]
    assert "k3" in names.to_pylist()
    drawn(4).write(tmp_path / "a.json")
    analyse(tmp_path / "a.json", out=Path(url(bucket)))  # the rows before do not count any more
    s3.invalidate_cache()
    # The file alone: its views name the bucket, which httpfs would read. Here fsspec stands in.
    s3.get(f"{bucket[1]}/warehouse/warehouse.duckdb", str(tmp_path / "w.duckdb"))
    with duckdb.connect(str(tmp_path / "w.duckdb"), read_only=True) as connection:
        connection.register_filesystem(s3)
        assert connection.execute("SELECT count(*) FROM kernels").fetchall() == [(2,)]
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]
    # A copy of the whole is a warehouse in a folder.
    copy = tmp_path / "copy"
    s3.get(f"{bucket[1]}/warehouse", str(copy), recursive=True)
    assert query(copy, "SELECT count(*) FROM kernels") == [(2,)]


def test_a_folder_that_was_copied_into_a_bucket_goes_on_there(bucket, tmp_path):
    drawn(1).write(tmp_path / "in/a.json")
    here, out = tmp_path / "here", Path(url(bucket))
    analyse(tmp_path / "in", out=here)
    for path in here.rglob("*"):
        if path.is_file():
            put(bucket, path.relative_to(here).as_posix(), path.read_bytes())
    assert names_in(out) == names_in(here)
    drawn(2).write(tmp_path / "in/b.json")
    assert analyse(tmp_path / "in", out=out).unchanged == 1
    analyse(tmp_path / "in", out=here)
    assert names_in(out) == names_in(here)


def test_rows_that_no_longer_count_are_left_out(bucket, tmp_path):
    drawn(1).write(tmp_path / "in/a.json")
    drawn(2).write(tmp_path / "in/b.json")
    out = Path(url(bucket))
    analyse(tmp_path / "in", out=out)
    drawn(3).write(tmp_path / "in/a.json")
    analyse(tmp_path / "in", out=out)
    analyse(tmp_path / "in", out=tmp_path / "fresh")
    assert contents(out) == contents(tmp_path / "fresh")
    assert query(out, "SELECT DISTINCT split_part(file, '/', 3) FROM _dead_rows") == [(bucket[1],)]


def test_a_lake_below_what_is_read_is_no_trace(bucket, tmp_path):
    bucket[0].put_object(Bucket=bucket[1], Key="a.json", Body=drawn(1).data())
    out = Path(url(bucket))
    root = f"s3://{bucket[1]}"
    assert [analyse_url(root, out).total for _ in range(2)] == [1, 1]


def analyse_url(source, out):
    return tracehouse.analyze(source, out, workers=1)


def test_damage_is_found_and_taken_out(bucket, tmp_path):
    folder, out = tmp_path / "in", Path(url(bucket))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "PART_BYTES", 1)
        for number in range(3):
            drawn(number).write(folder / f"{number}.json")
        analyse(folder, out=out)
    whole = names_in(out)
    key = "lake/kernels/part-000002.parquet"
    data = bytearray(content(bucket, key))
    data[len(data) // 2] ^= 1
    put(bucket, key, bytes(data))
    bucket[0].delete_object(Bucket=bucket[1], Key="warehouse/lake/ops/part-000003.parquet")
    with pytest.raises(TracehouseError, match=r"damaged: s3://.*/kernels/part-000002.parquet"):
        query(out, "SELECT count(name) FROM kernels")
    old = "lake/runs/run-000000.json"  # not the newest, which every run fetches
    put(bucket, old, b"junk")
    faults = {(fault.where, fault.fault) for fault in check(out).faults}
    assert faults == {
        (key, "checksum"),
        ("lake/ops/part-000003.parquet", "missing"),
        (old, "record"),
    }
    done = check(out, repair=True)
    assert (done.is_repaired, done.left) == (True, ())
    assert len(done.forgotten) == 2
    assert old not in listed(bucket)
    assert any(name.startswith("lake/damaged/run-000000/") for name in listed(bucket))
    assert query(out, "SELECT count(*) FROM runs") == [(1,)]
    assert "lake/damaged/part-000002/kernels.parquet" in listed(bucket)
    assert check(out).faults == ()
    analyse(folder, out=out)
    assert names_in(out) == whole


def test_what_is_kept_here_may_be_damaged(bucket, tmp_path):
    drawn(1).write(tmp_path / "in/a.json")
    out = Path(url(bucket))
    analyse(tmp_path / "in", out=out)
    every = "SELECT * FROM ops ORDER BY ALL"
    before = query(out, every), query(out, "SELECT * FROM kernels ORDER BY ALL")
    for path in (tmp_path / "cache").glob("*/objects/*"):
        data = path.read_bytes()
        if data.startswith(b"PAR1"):
            path.write_bytes(data[:-20] + b"x" * 20)
    assert query(out, every) == before[0]
    assert query(out, "SELECT * FROM kernels ORDER BY ALL") == before[1]


def test_a_warehouse_that_is_replaced_while_it_is_read(bucket, tmp_path):
    folder, out = tmp_path / "in", Path(url(bucket))
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    with tracehouse.open(out) as old, tracehouse.open(out) as late:
        count = "SELECT count(*) FROM ops"
        assert old.sql(count).to_pylist() == [{"count_star()": 1}]
        drawn(2).write(folder / "b.json")
        analyse(folder, out=out)
        compact(out)
        assert old.sql(count).to_pylist() == [{"count_star()": 1}]
        assert old.sql("SELECT count(*) AS n FROM kernels").to_pylist() == [{"n": 2}]
        compact(out)  # removes what the first one replaced
        (tmp_path / "cache").rename(tmp_path / "gone")
        with pytest.raises(UsageError, match="rebuilt since it was opened"):
            late.sql("SELECT count(*) FROM launches")
    assert query(out, count) == [(2,)]


def test_errors_of_the_user(bucket, tmp_path, monkeypatch, impatient):
    import s3fs

    drawn(1).write(tmp_path / "a.json")

    def refused(*arguments):
        result = run(*arguments)
        said_of_it = result.stdout + result.stderr
        assert result.returncode == 2, said_of_it
        assert not any(secret in said_of_it for secret in SECRETS)
        return result.stderr

    trace = tmp_path / "a.json"
    assert "bucket does not exist" in refused("analyze", trace, "-o", "s3://no-such-bucket-x/w")
    assert "bucket does not exist" in refused("show", "s3://no-such-bucket-x/w")
    assert f"{url(bucket)} holds no warehouse. Try: tracehouse analyze TRACES -o s3://" in refused(
        "show", url(bucket)
    )
    assert "holds no lake" in refused("compact", url(bucket))
    assert "holds no lake" in refused("check", url(bucket))
    assert listed(bucket, "") == set()  # nobody made anything
    for wrong in ("gs://bucket/w", "s3://", "s3://bucket/a?b", "s3://bucket/../w", "az:/b/w"):
        assert "OUT cannot be at" in refused("analyze", trace, "-o", wrong)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody listens there
    s3fs.S3FileSystem.clear_instance_cache()
    assert "credentials" in refused("analyze", trace, "-o", url(bucket))
    assert "credentials" in refused("sql", url(bucket), "SELECT 1")


def test_without_the_right_to_write_it_can_be_read(door, bucket, tmp_path, impatient):
    drawn(1).write(tmp_path / "in/a.json")
    out = Path(url(bucket))
    analyse(tmp_path / "in", out=out)
    steps = ["steps", f"{url(bucket, 'in')}/a.json", "--format", "json"]
    bucket[0].put_object(Bucket=bucket[1], Key="in/a.json", Body=drawn(1).data())
    door.rule = lambda method, path: "403" if path.endswith("a.json/warehouse.duckdb") else None
    assert run(*steps).returncode == 0  # of a trace, where nothing is listed
    door.rule = lambda method, path: None if method in ("GET", "HEAD") else "403"
    assert query(out, "SELECT count(*) FROM kernels") == [(2,)]
    assert check(out).faults == ()
    with pytest.raises(UsageError, match=r"cannot write \.lock of s3://.*AccessDenied"):
        analyse(tmp_path / "in", out=out)


def test_a_store_that_fails_in_the_middle(door, bucket, tmp_path, impatient):
    folder, out = tmp_path / "in", Path(url(bucket))
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    old = names_in(out)
    drawn(2).write(folder / "b.json")
    door.rule = lambda method, path: "500" if method == "PUT" and "/kernels/" in path else None
    result = run("analyze", str(folder), "-o", str(out), "--workers", "1")
    assert result.returncode == 1
    assert f"cannot write lake/kernels/part-000002.parquet of {url(bucket)}" in result.stderr
    door.rule = lambda method, path: None
    assert names_in(out) == old
    ends = "SELECT exit_code, error LIKE '%kernels%' FROM runs ORDER BY run_id"
    assert query(out, ends) == [(0, None), (1, True)]
    door.rule = lambda method, path: "500" if method == "PUT" and path.endswith("duckdb") else None
    with pytest.raises(StoreError):
        analyse(folder, out=out)
    door.rule = lambda method, path: None
    assert names_in(out) == old
    analyse(folder, out=out)
    analyse(folder, out=tmp_path / "fresh")
    assert names_in(out) == names_in(tmp_path / "fresh")
    # An answer that breaks off is no object.
    (tmp_path / "cache").rename(tmp_path / "gone")
    door.rule = lambda method, path: "cut" if "/kernels/" in path else None
    with pytest.raises(OSError, match="cannot read lake/kernels"):
        query(out, "SELECT count(*) FROM kernels")


def test_answers_that_are_lost(door, bucket, tmp_path, monkeypatch):
    """Each first try is done and answered by an error, so that the second meets what it did."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    tried = set()

    def forgetful(method, path):
        first = (method, path) not in tried or path.endswith(".lock")
        if path.endswith(".lock") and method == "PUT":
            first = len([a for a in door.asked if a == (method, path)]) % 2 == 1
        tried.add((method, path))
        return "forget" if method == "PUT" and first else None

    folder, out = tmp_path / "in", Path(url(bucket))
    drawn(1).write(folder / "a.json")
    door.rule = forgetful
    analyse(folder, out=out)
    door.rule = lambda method, path: None
    analyse(folder, out=tmp_path / "fresh")
    assert names_in(out) == names_in(tmp_path / "fresh")
    assert check(out).faults == ()


def test_a_large_file_goes_up_in_pieces(bucket, tmp_path, monkeypatch):
    from tracehouse.storage import bucket as module
    from tracehouse.storage.bucket import Bucket, Changed

    monkeypatch.setattr(module, "_PART_BYTES", 5 << 20)
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * (12 << 12))
    there = Bucket(url(bucket))
    there.put("lake/ops/part-000001.parquet", large, is_new=True)
    stored = there.listing()["lake/ops/part-000001.parquet"]
    assert stored.bytes == 12 << 20
    assert stored.etag.endswith('-3"')
    there.fetch("lake/ops/part-000001.parquet", stored, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large.read_bytes()
    with pytest.raises(Changed):
        there.put("lake/ops/part-000001.parquet", large, is_new=True)


def test_names_that_lead_out_of_the_folder_are_passed_over(bucket, tmp_path):
    drawn(1).write(tmp_path / "in/a.json")
    out = Path(url(bucket))
    analyse(tmp_path / "in", out=out)
    for key in ("lake/../../evil.parquet", "lake/ops/../x.json", "lake//ops/y.parquet", "other"):
        put(bucket, key, b"evil")
    assert check(out).faults == ()
    analyse(tmp_path / "in", out=out)
    assert "other" in listed(bucket)  # nothing of others is touched


def test_a_folder_needs_no_store():
    code = (
        "import sys, tracehouse.commands.analyze, tracehouse.warehouse.query as q;"
        "import tracehouse.storage.place;"
        "print(sorted({'fsspec', 's3fs', 'tracehouse.storage.bucket'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_urls():
    assert url_of("s3://b/p/") == url_of(Path("s3://b/p")) == "s3://b/p"
    assert url_of("s3:/b") == "s3://b"
    assert url_of("folder/s3:/b") is url_of("/s3:/b") is url_of("C") is None


def test_compaction_by_itself_and_export_from_the_cache(bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "_MANY", 2)
    folder, out = tmp_path / "in", Path(url(bucket))
    for number in range(2):
        drawn(number).write(folder / f"{number}.json")
        analyse(folder, out=out)
    manifests = {name for name in listed(bucket) if "manifests" in name}
    assert manifests == {"lake/manifests/part-000003.json"}  # the second night made one of two
    assert query(out, "SELECT count(*) FROM ops") == [(2,)]
    export(out, "1.json", tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["traceEvents"]
