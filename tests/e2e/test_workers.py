"""A trace's rows are the same whoever computes them, and whatever shares its part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from killers import attempts_of, run_unless_poisoned
from warehouses import (
    analyse,
    contents,
    drawn,
    files_of,
    manifests,
    query,
    temporary_files,
)

from tracehouse.commands import analyze, division


@pytest.fixture
def part_a_file(monkeypatch):
    """Make every file a part of its own, so that a few small ones keep two workers busy."""
    monkeypatch.setattr(division, "PART_BYTES", 1)


def test_two_workers_give_what_one_gives(tmp_path, repo_root, part_a_file, samples_alone):
    one, alone = samples_alone
    two = tmp_path / "two"
    both = analyse(repo_root / "data" / "samples", out=two, workers=2)
    assert len(manifests(two)) == alone.total  # one for each file
    assert contents(two) == contents(one)
    assert [(r.path, r.status, r.events, r.kernels, r.busy_ns) for r in both.results] == [
        (r.path, r.status, r.events, r.kernels, r.busy_ns) for r in alone.results
    ]
    assert files_of(two) == files_of(one)
    assert (alone.record.executor, both.record.executor) == ("process", "pool")


def test_neighbours_in_a_part_change_nothing(tmp_path, repo_root, samples_alone):
    apart, _ = samples_alone
    together = tmp_path / "together"
    analyse(repo_root / "data" / "samples", out=together)
    assert len(manifests(together)) == 1
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


# Processes that die


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of two traces, and let files called poison… kill what analyses them."""
    monkeypatch.setattr(analyze, "run_part", run_unless_poisoned)
    for number in range(2):
        drawn(number).write(tmp_path / "in" / f"good{number}.json")
    return tmp_path / "in"


def statuses(out: Path) -> dict[str, str]:
    rows = query(out, "SELECT path, status FROM files")
    return {Path(path).name: status for path, status in rows}


def test_a_file_that_kills_its_worker_is_rejected_and_no_other(tmp_path, folder, part_a_file):
    out = tmp_path / "out"
    poison = drawn(7).write(folder / "poison.json")
    report = analyse(folder, out=out, workers=2)
    assert statuses(out) == {"good0.json": "ok", "good1.json": "ok", "poison.json": "rejected"}
    assert attempts_of(poison) == ["1 False", "1 True"]  # once, and once more alone
    assert (report.rejected, report.record.worker_deaths, report.record.exit_code) == (1, 2, 1)
    ((code, reason),) = query(
        out,
        "SELECT code, reason FROM issues JOIN traces USING (trace_id) WHERE severity = 'error'",
    )
    assert code == "WORKER_DIED"
    assert "died twice" in reason
    assert temporary_files(out) == []
    # The next run tries it again, in a process apart although one would do for one file.
    again = analyse(folder, out=out, workers=2)
    assert (again.unchanged, again.rejected, len(attempts_of(poison))) == (2, 1, 4)


def test_a_worker_that_dies_once_costs_nothing(tmp_path, folder, part_a_file):
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    once = drawn(7).write(folder / "once.json")
    report = analyse(folder, out=out, workers=2)
    assert (report.rejected, report.record.worker_deaths) == (0, 1)
    assert attempts_of(once) == ["1 False", "1 True"]
    analyse(folder, out=fresh)
    assert contents(out) == contents(fresh)


def test_of_a_part_whose_worker_died_only_the_guilty_is_rejected(tmp_path, folder, monkeypatch):
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    for number in range(2, 6):
        drawn(number).write(folder / f"good{number}.json")
    analyse(folder, out=fresh)
    poison = drawn(7).write(folder / "poison.json")
    # A part of seven files, and a second one: for a single part this process would do.
    monkeypatch.setattr(division, "PART_BYTES", 7 * division.FILE_BYTES + 10_000)
    drawn(8).write(folder / "z.json")
    analyse(folder / "z.json", out=fresh)
    report = analyse(folder, out=out, workers=2)
    assert attempts_of(poison) == ["7 False", "7 True", "4 True", "2 True", "1 True"]
    assert (report.rejected, report.record.worker_deaths) == (1, 5)
    assert statuses(out)["poison.json"] == "rejected"
    expected, found = contents(fresh), contents(out)
    for table in ("events", "ops", "kernels", "op_summary", "kernel_summary", "op_perf"):
        assert found[table] == expected[table]
    assert temporary_files(out) == []


def test_after_a_run_that_was_killed_one_worker_is_a_process_apart(tmp_path, folder):
    out = tmp_path / "out"
    poison = drawn(7).write(folder / "poison.json")
    out.mkdir()
    (out / ".lock").write_text('{"pid": 4711, "host": "h", "since": "2026-01-01T00:00:00+00:00"}')
    report = analyse(folder, out=out, workers=1)  # in this process it would kill the tests
    assert (report.record.executor, report.rejected) == ("pool", 1)
    assert statuses(out)["good0.json"] == "ok"
    assert len(attempts_of(poison)) == 4
    poison.unlink()
    assert analyse(folder, out=out, workers=1).record.executor == "process"


@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_script_needs_no_guard(tmp_path, from_stdin):
    for number in range(2):
        drawn(number).write(tmp_path / "in" / f"{number}.json")
    text = (
        "from tracehouse.commands import division\nimport sys, tracehouse\n"
        "print('once')\ndivision.PART_BYTES = 1\n"
        f"paths = {str(tmp_path / 'in')!r}, {str(tmp_path / 'out')!r}\n"
        "report = tracehouse.analyze(*paths, workers=2)\n"
        "print(report.record.executor, report.total, report.rejected)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(text)
    run = subprocess.run(
        [sys.executable, "-" if from_stdin else str(script)],
        input=text if from_stdin else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "once\npool 2 0\n"), run.stderr


def test_a_server_of_workers_that_dies_is_started_anew(tmp_path, folder):
    """It is killed while it starts, so that the first worker asks for it in vain."""
    code = (
        "import os, signal, sys, tracehouse\n"
        "from multiprocessing import forkserver\n"
        "from tracehouse.commands import division\n"
        "division.PART_BYTES = 1\n"
        "server = forkserver._forkserver\n"
        "real, deaths = server.connect_to_new_process, []\n"
        "def dying(fds):\n"
        "    ends = real(fds)\n"
        "    if not deaths:\n"
        "        deaths.append(server._forkserver_pid)\n"
        "        os.kill(server._forkserver_pid, signal.SIGKILL)\n"
        "    return ends\n"
        "forkserver.connect_to_new_process = dying\n"
        "report = tracehouse.analyze(sys.argv[1], sys.argv[2], workers=2)\n"
        "print(len(deaths), report.total, report.rejected)\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(tmp_path / "out")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "1 2 0\n"), run.stderr
