"""One writer at a time to a bucket, whatever becomes of the last one."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from commandline import run
from warehouses import analyse, contents, drawn

from tracehouse.commands import analyze
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage import lease as module
from tracehouse.storage.bucket import Bucket
from tracehouse.storage.lease import lease, token_of


@pytest.fixture
def there(bucket):
    return Bucket(f"s3://{bucket[1]}/warehouse")


@pytest.fixture
def in_haste(monkeypatch):
    """Let a lease be renewed every quarter of a second and last for three."""
    monkeypatch.setattr(module, "EXPIRES_SECONDS", 3.0)
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.25)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.1)


def noted(bucket):
    body = bucket[0].get_object(Bucket=bucket[1], Key="warehouse/.lock")["Body"]
    return json.loads(body.read())


def test_a_second_run_is_told_who_writes(bucket, there, tmp_path):
    trace = drawn(1).write(tmp_path / "a.json")
    command = ["analyze", str(trace), "-o", there.url, "--workers", "1"]
    with lease(there) as held:
        assert noted(bucket)["pid"] == os.getpid()
        assert token_of(there) == held.token
        result = run(*command)
        assert result.returncode == 2
        assert f"another run is writing to {there.url}: process {os.getpid()} on" in result.stderr
        assert "at 120 s it is taken for dead" in result.stderr
        result = run(*command, "--wait", "0.3")
        assert "waited 0.3 s" in result.stderr
    assert token_of(there) is None
    assert run(*command).returncode == 0


def test_a_run_waits_for_another_one(there, in_haste):
    order = []

    def second():
        with lease(Bucket(there.url), wait=20):
            order.append("second")

    with lease(there):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(5.5)  # the first one is renewed for longer than it lasts
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_run_that_was_killed_is_succeeded(bucket, there, in_haste, monkeypatch):
    monkeypatch.setattr(module.Lease, "keep", lambda self, ended: None)
    with lease(there) as first:
        with pytest.raises(UsageError, match="another run is writing"):
            module._take(there, 0.0)
        with lease(Bucket(there.url), wait=20) as second:
            assert second.died is not None
            assert second.died.pid == os.getpid()
            with pytest.raises(TracehouseError, match="another run has taken over") as caught:
                first.renew()
            assert caught.value.code == "LOCK_LOST"
            second.renew()
        assert "token" not in noted(bucket)
    assert "token" not in noted(bucket)  # the first one left it as it was
    with lease(there) as third:
        assert third.died is None


def test_one_of_many_gets_it(there):
    """Those that meet no lock, one that is free and one that has expired."""
    for _ in range(3):
        gate, got = threading.Barrier(8), []

        def take(gate=gate, got=got):
            mine = Bucket(there.url)
            gate.wait()
            try:
                got.append(module._take(mine, 0.0))
            except UsageError:
                return

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1
        got[0].release()


def test_a_run_that_has_lost_the_bucket_commits_nothing(bucket, there, tmp_path, monkeypatch):
    folder, out = tmp_path / "in", Path(there.url)
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    old = contents(out)
    drawn(2).write(folder / "b.json")
    real = analyze.run_part

    def overtaken(task):
        other = json.dumps({"pid": 7, "host": "elsewhere", "since": "now", "token": "other"})
        bucket[0].put_object(Bucket=bucket[1], Key="warehouse/.lock", Body=other)
        return real(task)

    monkeypatch.setattr(analyze, "run_part", overtaken)
    with pytest.raises(TracehouseError, match=f"another run has taken over {there.url}"):
        analyse(folder, out=out)
    assert contents(out) == old
    keys = bucket[0].list_objects_v2(Bucket=bucket[1])["Contents"]
    assert not [entry["Key"] for entry in keys if "part-000002" in entry["Key"]]
    assert noted(bucket)["token"] == "other"


@pytest.mark.parametrize("content", [b"", b"[]", b"no json", b'{"token": 1, "expires": "x"}'])
def test_a_lock_that_says_nothing_of_use(bucket, there, monkeypatch, content):
    monkeypatch.setattr(module, "EXPIRES_SECONDS", -1.0)
    bucket[0].put_object(Bucket=bucket[1], Key="warehouse/.lock", Body=content)
    with lease(there) as held:
        assert noted(bucket)["token"] == held.token


def test_a_store_that_heeds_no_conditions_is_refused(door, there):
    door.rule = lambda method, path: "deaf"
    with pytest.raises(UsageError, match="ignores conditions"), lease(Bucket(there.url)):
        pass
