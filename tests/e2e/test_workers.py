"""A trace's rows are the same whoever computes them, and whatever shares its part."""

from __future__ import annotations

import os
import signal

import pytest
from warehouses import analyse, contents, drawn, manifests, query

from tracehouse.commands import analyze
from tracehouse.errors import TracehouseError


def kill_worker(task):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def part_a_file(monkeypatch):
    """Make every file a part of its own, so that a few small ones keep two workers busy."""
    monkeypatch.setattr(analyze, "PART_BYTES", 1)


def test_two_workers_give_what_one_gives(tmp_path, repo_root, part_a_file):
    one, two = tmp_path / "one", tmp_path / "two"
    samples = repo_root / "data" / "samples"
    alone = analyse(samples, out=one, workers=1)
    both = analyse(samples, out=two, workers=2)
    assert len(manifests(two)) == alone.total  # one for each file
    assert contents(two) == contents(one)
    assert [(r.path, r.status, r.events, r.kernels, r.busy_ns) for r in both.results] == [
        (r.path, r.status, r.events, r.kernels, r.busy_ns) for r in alone.results
    ]


def test_neighbours_in_a_part_change_nothing(tmp_path, repo_root, monkeypatch):
    together, apart = tmp_path / "together", tmp_path / "apart"
    samples = repo_root / "data" / "samples"
    analyse(samples, out=together)
    assert len(manifests(together)) == 1
    for file in reversed(sorted(path for path in samples.rglob("*") if path.is_file())):
        analyse(file, out=apart)
    assert contents(apart) == contents(together)


def test_two_workers_meet_one_content_twice(tmp_path, part_a_file):
    folder, out = tmp_path / "in", tmp_path / "out"
    first = drawn(1).write(folder / "a.json")
    drawn(1).write(folder / "b.json.gz")
    report = analyse(folder, out=out, workers=2)
    assert [r.status for r in report.results] == ["ok", "ok"]
    assert query(out, "SELECT path, events FROM traces") == [(str(first), 4)]
    assert query(out, "SELECT count(*) FROM events") == [(4,)]
    assert query(out, "SELECT name, count FROM op_summary WHERE category <> '(no op)'") == [
        ("aten::op1", 1)
    ]


def test_a_worker_that_dies_is_an_error_in_words(tmp_path, part_a_file, monkeypatch):
    folder, out = tmp_path / "in", tmp_path / "out"
    for number in range(2):
        drawn(number).write(folder / f"{number}.json")
    with monkeypatch.context() as broken:
        broken.setattr(analyze, "run_part", kill_worker)
        with pytest.raises(TracehouseError, match="worker") as error:
            analyse(folder, out=out, workers=2)
    assert error.value.code == "WORKER_DIED"
    assert "workers" in error.value.hint
    assert analyse(folder, out=out, workers=2).rejected == 0
