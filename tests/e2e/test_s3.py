"""Traces in a bucket, against an S3 server on loopback; credentials are in the environment."""

from __future__ import annotations

import gzip
import zipfile

import pytest
from commandline import run
from warehouses import drawn, query

from tracehouse.commands.analyze import analyze
from tracehouse.errors import UsageError


def put(bucket, key, data):
    bucket[0].put_object(Bucket=bucket[1], Key=key, Body=data)


def zipped(data):
    import io

    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.json", data)
    return raw.getvalue()


def test_a_bucket_is_read_as_a_folder_is(bucket, tmp_path):
    files = {
        "run1/a.json": drawn(1).data(),
        "run1/b.json.gz": gzip.compress(drawn(2).data()),
        "run2/c.zip": zipped(drawn(3).data()),
        "run2/half.json.gz": gzip.compress(drawn(4).data())[:-40],
        "run2/no.json": b'{"a": 1}',
        "run2/.hidden.json": drawn(5).data(),
        "run2/part.json.tmp": drawn(6).data(),
        "other/d.json": drawn(7).data(),
    }
    for key, data in files.items():
        put(bucket, f"archive/{key}", data)
        local = tmp_path / "in" / key
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(data)
    url, out = f"s3://{bucket[1]}/archive", tmp_path / "out"
    report = analyze([f"{url}/run*"], out, workers=2)
    statuses = {r.path.removeprefix(f"{url}/"): r.status for r in report.results}
    assert statuses == {
        "run1/a.json": "ok",
        "run1/b.json.gz": "ok",
        "run2/c.zip/inner.json": "ok",
        "run2/half.json.gz": "partial",
        "run2/no.json": "rejected",
    }
    assert query(out, "SELECT DISTINCT label FROM files ORDER BY label") == [("run1",), ("run2",)]
    analyze([str(tmp_path / "in/run1"), str(tmp_path / "in/run2")], tmp_path / "fresh", workers=1)
    same = "SELECT name, ts_ns, args FROM events ORDER BY ALL"
    assert query(out, same) == query(tmp_path / "fresh", same)

    # What did not change is not read again; what did, or came, is.
    assert analyze([f"{url}/run*"], out, workers=1).unchanged == 5
    put(bucket, "archive/run1/a.json", drawn(8).data())
    put(bucket, "archive/run1/new.json", drawn(9).data())
    again = analyze([f"{url}/run1", f"{url}/other/d.json"], out, workers=1)
    assert (again.total, again.unchanged) == (4, 1)
    ops = {name for (name,) in query(out, "SELECT name FROM ops")}
    assert ops >= {"aten::op8", "aten::op9", "aten::op7"}
    assert "aten::op1" not in ops
    text = "".join(p.read_text() for p in out.rglob("*.json"))
    assert "secret-of-the-test" not in text


def test_what_a_bucket_refuses_is_told(bucket, tmp_path, monkeypatch):
    url = f"s3://{bucket[1]}"
    put(bucket, "a.json", drawn(1).data())
    for wrong in (f"{url}/nowhere.json", f"{url}/nowhere/*.json", "s3://no-such-bucket-here/a"):
        with pytest.raises(UsageError, match="s3://"):
            analyze([wrong], tmp_path / "out", workers=1)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    result = run("analyze", f"{url}/a.json", "-o", str(tmp_path / "out"))
    assert result.returncode == 2
    assert "credentials" in result.stderr
    assert "secret-of-the-test" not in result.stderr


def test_an_object_that_goes_while_it_is_read_is_rejected_and_tried_again(bucket, tmp_path):
    from tracehouse.commands import part

    put(bucket, "a.json", drawn(1).data())
    put(bucket, "b.json", drawn(2).data())
    url, out = f"s3://{bucket[1]}", tmp_path / "out"
    real = part.read_file

    def vanishing(path, **options):
        if path.endswith("b.json"):
            bucket[0].delete_object(Bucket=bucket[1], Key="b.json")
        return real(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "read_file", vanishing)
        report = analyze([url], out, workers=1)
    assert {r.path: r.status for r in report.results} == {
        f"{url}/a.json": "ok",
        f"{url}/b.json": "rejected",
    }
    put(bucket, "b.json", drawn(2).data())
    assert analyze([url], out).rejected == 0
