"""The work done by a Dask cluster of processes: the same lake, and the same fate for killers."""

from __future__ import annotations

from pathlib import Path

import pytest
from killers import attempts_of, run_unless_poisoned
from warehouses import analyse, contents, drawn, files_of, query, temporary_files

from tracehouse import __version__
from tracehouse.commands import analyze, division, executors
from tracehouse.commands.part_task import PartTask
from tracehouse.errors import UsageError
from tracehouse.storage.place import reading

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def cluster():
    """Return a running cluster of two processes, which gives a task up when it kills one."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
    ):
        yield cluster


def test_dask_gives_what_this_process_gives(
    tmp_path, repo_root, monkeypatch, cluster, samples_alone
):
    monkeypatch.setattr(division, "PART_BYTES", 1)
    here, _ = samples_alone
    there = tmp_path / "there"
    samples = repo_root / "data" / "samples"
    report = analyse(samples, out=there, workers=None, dask=cluster.scheduler_address)
    assert contents(there) == contents(here)
    assert files_of(there) == files_of(here)
    assert (report.record.executor, report.record.workers) == ("dask", 2)
    assert report.record.cpu_seconds > 0
    assert temporary_files(there) == []


def test_workers_that_see_no_folder_of_the_run_write_to_the_bucket(
    bucket, to_reach_s3, tmp_path, monkeypatch, cluster
):
    monkeypatch.setattr(division, "PART_BYTES", 1)
    folder, out, here = tmp_path / "in", Path(f"s3://{bucket[1]}/w"), tmp_path / "here"
    for number in range(3):
        drawn(number).write(folder / f"{number}.json")
    address = cluster.scheduler_address
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}

    def enter(variables):
        import os

        import s3fs

        os.environ.update(variables)
        s3fs.S3FileSystem.clear_instance_cache()

    with distributed.Client(address, set_as_default=False) as client:
        client.run(enter, {**to_reach_s3, **nowhere})
        with pytest.raises(UsageError, match=r"the Dask worker .* does not see s3://"):
            analyse(folder, out=out, workers=None, dask=address)
        client.run(enter, to_reach_s3)
    report = analyse(folder, out=out, workers=None, dask=address)
    analyse(folder, out=here)
    assert report.record.executor == "dask"
    assert contents(out) == contents(here)
    with reading(out) as (copy, _):
        assert files_of(copy) == files_of(here)
    listed = bucket[0].list_objects_v2(Bucket=bucket[1])["Contents"]
    assert not [entry["Key"] for entry in listed if "tmp" in entry["Key"]]
    assert analyse(folder, out=out).unchanged == 3


def test_a_file_that_kills_a_worker_of_the_cluster_is_rejected(tmp_path, monkeypatch, cluster):
    monkeypatch.setattr(analyze, "run_part", run_unless_poisoned)
    monkeypatch.setattr(division, "PART_BYTES", 1)
    folder, out = tmp_path / "in", tmp_path / "out"
    for number in range(2):
        drawn(number).write(folder / f"good{number}.json")
    poison = drawn(7).write(folder / "poison.json")
    file = tmp_path / "scheduler.json"
    file.write_text(f'{{"address": "{cluster.scheduler_address}"}}')
    report = analyse(folder, out=out, workers=None, dask=str(file))
    assert query(out, "SELECT status, count(*) FROM files GROUP BY ALL ORDER BY ALL") == [
        ("ok", 2),
        ("rejected", 1),
    ]
    assert query(out, "SELECT code FROM issues WHERE severity = 'error'") == [("WORKER_DIED",)]
    assert attempts_of(poison)[-1] == "1 True"
    assert report.record.worker_deaths >= 2
    assert temporary_files(out) == []


def test_a_cluster_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr("tracehouse.commands.executors._CONNECT_SECONDS", 0.5)
    drawn(1).write(tmp_path / "a.json")
    with pytest.raises(UsageError, match=r"cannot reach a Dask scheduler at tcp://127\.0\.0\.1:9"):
        analyse(tmp_path / "a.json", out=tmp_path / "out", workers=None, dask="tcp://127.0.0.1:9")
    for nothing in (tmp_path / "nowhere" / "scheduler.json", "localhost"):
        monkeypatch.setattr("tracehouse.commands.executors._START_SECONDS", 0.3)
        with pytest.raises(UsageError, match=f"there is no scheduler file {nothing}"):
            analyse(tmp_path / "a.json", out=tmp_path / "out", workers=None, dask=str(nothing))
    with pytest.raises(UsageError, match="workers are counted by the Dask cluster"):
        analyse(tmp_path / "a.json", out=tmp_path / "out", workers=2, dask="tcp://127.0.0.1:9")


def test_a_worker_that_came_later_and_is_another(tmp_path):
    (tmp_path / ".lock").write_text("note")
    place = str(tmp_path)
    out = executors._one_at_a_time(lambda task: "done", None, place, (__version__, "note"))
    assert out == "done"
    task = PartTask(tmp_path, "part-000001", (), None, "scan", frozenset())
    for ours in ((__version__, "of another folder"), ("0.0.0", "note")):
        with pytest.raises(UsageError, match=f"does not see {tmp_path}"):
            executors._one_at_a_time(lambda task: "done", task, place, ours)
