"""Fewer parts, and fewer traces: compact and prune, as the warehouse and later runs see it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from commandline import run
from tracegen import Trace
from warehouses import analyse, contents, drawn, manifests, query

from tracehouse.commands.check import check
from tracehouse.commands.compact import compact
from tracehouse.commands.prune import parse_age, prune
from tracehouse.errors import UsageError
from tracehouse.storage import compaction
from tracehouse.storage.manifest import load_state

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY_NS = 86_400 * 10**9


def ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**9


def recorded(number: int, days_ago: int) -> Trace:
    """Draw a trace whose clock says when it was recorded."""
    base = ns(NOW) - days_ago * DAY_NS
    return (
        Trace(number=number, baseTimeNanoseconds=base)
        .op(f"aten::op{number}", 0, 50)
        .launch(5, 4, correlation=1)
        .kernel(f"k{number}", 10, 20, correlation=1)
    )


def undated(number: int) -> Trace:
    trace = drawn(number)
    del trace.envelope["baseTimeNanoseconds"]
    return trace


def without_runs(tables):
    return {name: rows for name, rows in tables.items() if name != "runs"}


def paths(out):
    return [Path(p).name for (p,) in query(out, "SELECT path FROM traces ORDER BY path")]


# --- compact -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nightly(tmp_path_factory):
    """Return a folder and a warehouse that grew by one trace a run, with one that was replaced."""
    folder, out = tmp_path_factory.mktemp("nightly") / "in", tmp_path_factory.mktemp("nights")
    for number, name in ((0, "a"), (1, "b"), (2, "a")):
        drawn(number).write(folder / f"{name}.json")
        analyse(folder, out=out)
    return folder, out


def test_compact_merges_parts_and_changes_no_row(nightly):
    folder, out = nightly
    before = contents(out)
    assert len(manifests(out)) == 3
    done = run("compact", out)
    assert done.returncode == 0
    assert "3 parts replaced: 3 parts" in done.stderr
    assert len(manifests(out)) == 1
    (part,) = load_state(out).parts
    assert len(part.held) == part.tables["traces"].rows == 2  # what was replaced is gone
    assert contents(out) == before
    assert check(out).faults == ()
    assert "0 parts replaced" in run("compact", out).stderr
    assert {p.name for p in out.glob("lake/*/*.parquet")} == {f"{part.id}.parquet"}
    again = analyse(folder, out=out)
    assert (again.unchanged, len(manifests(out))) == (2, 1)


def test_parts_of_other_settings_are_not_merged(tmp_path):
    from tracehouse.commands.settings import read_settings

    for number in range(3):
        file = drawn(number).write(tmp_path / "in" / f"{number}.json")
        settings = read_settings(step_patterns=["other"] if number == 1 else [])
        analyse(file, out=tmp_path / "out", settings=settings)
    compact(tmp_path / "out")
    state = load_state(tmp_path / "out")
    assert sorted(len(part.held) for part in state.parts) == [1, 2]
    assert len({part.settings for part in state.parts}) == 2


def test_many_tiny_parts_are_merged_by_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "_MANY", 2)
    counts = []
    for number in range(3):
        drawn(number).write(tmp_path / "in" / f"{number}.json")
        analyse(tmp_path / "in", out=tmp_path / "out")
        counts.append(len(manifests(tmp_path / "out")))
    assert counts == [1, 1, 1]
    assert query(tmp_path / "out", "SELECT count(*) FROM kernels") == [(6,)]


def test_manifests_that_only_forget_go_once_nothing_needs_them(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    for number in range(3):
        gone = drawn(number).write(folder / f"{number}.json")
        analyse(folder, out=out)
        if number < 2:
            gone.unlink()
    analyse(folder, out=out, prune=True)
    assert manifests(out) == {"part-000003.json", "part-000004.json"}  # the newest forgets
    drawn(3).write(folder / "3.json")
    analyse(folder, out=out)
    compact(out)
    assert manifests(out) == {"part-000006.json"}
    assert paths(out) == ["2.json", "3.json"]


# --- prune ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "age"),
    [("36h", timedelta(hours=36)), ("90d", timedelta(days=90)), ("12w", timedelta(weeks=12))],
)
def test_ages(text, age):
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "0d", "1.5d", "90 d", "1y", "9999999d"])
def test_what_is_no_age(text):
    with pytest.raises(UsageError, match="no age"):
        parse_age(text)


@pytest.fixture
def archive(tmp_path):
    """Return a folder and its warehouse: traces 1, 80, 100 and 200 days old, and one of no date.

    That one's file was last changed 95 days ago.
    """
    folder, out = tmp_path / "in", tmp_path / "out"
    for days in (1, 80, 100, 200):
        recorded(days, days).write(folder / f"{'ab'[days % 3 == 1]}" / f"{days}.json")
    file = undated(5).write(folder / "b" / "undated.json")
    changed = ns(NOW) - 95 * DAY_NS
    os.utime(file, ns=(changed, changed))
    analyse(folder, out=out)
    return folder, out


def test_prune_by_the_time_of_recording(archive):
    folder, out = archive
    before = contents(out)
    told = prune(out, timedelta(days=90), now=NOW, dry_run=True)
    assert contents(out) == before
    rows = {
        Path(r["path"]).name: ((NOW - r["time"]).days, r["time_of"]) for r in told.files.to_pylist()
    }
    assert rows == {
        "100.json": (100, "recorded"),
        "200.json": (200, "recorded"),
        "undated.json": (95, "file"),
    }
    assert told.kept == 2

    done = prune(out, timedelta(days=90), now=NOW)
    assert done == told
    assert paths(out) == ["80.json", "1.json"]
    assert query(out, "SELECT count(*) FROM kernels") == [(2,)]
    assert query(out, "SELECT count(*) FROM files WHERE status = 'pruned' AND traces = []") == [
        (3,)
    ]
    assert check(out).faults == ()
    # The files are still there, and are not read again, whatever the settings.
    assert analyse(folder, out=out).unchanged == 5
    from tracehouse.commands.settings import read_settings

    report = analyse(folder, out=out, settings=read_settings(step_patterns=["x"]))
    assert report.unchanged == 3
    assert paths(out) == ["80.json", "1.json"]
    assert prune(out, timedelta(days=90), now=NOW).files.num_rows == 0
    # One that changes is.
    recorded(7, 3).write(folder / "a" / "100.json")
    analyse(folder, out=out)
    assert "100.json" in paths(out)
    # One whose file goes is forgotten as any other.
    (folder / "b" / "undated.json").unlink()
    analyse(folder, out=out, prune=True)
    assert query(out, "SELECT count(*) FROM files WHERE path LIKE '%undated.json'") == [(0,)]


def test_prune_of_one_label(archive):
    _, out = archive
    prune(out, timedelta(days=90), label="a", now=NOW)
    assert "200.json" not in paths(out) or "100.json" not in paths(out)
    labels = query(out, "SELECT DISTINCT label FROM files WHERE status = 'pruned'")
    assert labels == [("a",)]


def test_prune_by_the_time_of_analysis(archive):
    _, out = archive
    assert prune(out, timedelta(hours=1), by="analysed").files.num_rows == 0
    later = datetime.now(UTC) + timedelta(hours=2)
    assert prune(out, timedelta(hours=1), by="analysed", now=later).files.num_rows == 5
    assert set(map(len, without_runs(contents(out) | {"files": []}).values())) == {0}


def test_content_that_a_younger_file_holds_too_stays(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    old, new = undated(1).write(folder / "old.json"), undated(1).write(folder / "new.json.gz")
    for file, days in ((old, 100), (new, 1)):
        at = ns(NOW) - days * DAY_NS
        os.utime(file, ns=(at, at))
    analyse(folder, out=out)
    assert prune(out, timedelta(days=90), now=NOW).files["path"].to_pylist() == [str(old)]
    assert query(out, "SELECT path FROM traces") == [(str(new),)]
    assert query(out, "SELECT count(*) FROM kernels") == [(2,)]


def test_the_command(archive):
    _, out = archive
    done = run("prune", out, "--older-than", "1d", "--dry-run", "--format", "csv")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "path,label,traces,time,time_of")
    assert "5 files would be dropped, 0 kept" in done.stderr
    assert len(paths(out)) == 5
    assert run("prune", out, "--older-than", "1d").returncode == 0
    assert paths(out) == []
    assert run("prune", out, "--older-than", "soon").returncode == 2
    assert run("prune", out / "nowhere", "--older-than", "1d").returncode == 2
