"""A part whose work raises: only the guilty trace is rejected, wherever it was found."""

from __future__ import annotations

import pytest
from tracegen import Trace

import tracehouse
from tracehouse.commands import linked_trace, part
from tracehouse.commands.analyze import analyze
from tracehouse.ingest import read as reading
from tracehouse.spill import SpillError


def trace(number):
    """Draw an op with a kernel of 20 µs, both named by the number."""
    drawn = Trace(number=number).op(f"op{number}", 0, 50).launch(5, 4, correlation=1)
    return drawn.kernel(f"k{number}", 10, 20, correlation=1)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of traces 1, 2, 3 and, under another name, 2 again."""
    for name, number in (("a.json", 1), ("b.json", 2), ("c.json", 3), ("d.json.gz", 2)):
        trace(number).write(tmp_path / "in" / name)
    return tmp_path / "in"


def failing_link(frame, trace_id, *, _link=linked_trace.link, **options):
    if "k2" in frame["name"].to_pylist():
        raise ValueError("no link")
    return _link(frame, trace_id, **options)


def failing_summarise(tables, *, _summarise=part.summarise, **options):
    if "k2" in tables["kernels"]["name"].to_pylist():
        raise ValueError("no sum")
    return _summarise(tables, **options)


def failing_read(path, *, _read=part.read_file, **options):
    yield from _read(path, **options)
    if path.endswith(("b.json", "d.json.gz")):
        raise ValueError("no end")


FAILURES = {"link": (linked_trace, failing_link), "summarise": (part, failing_summarise)}


def query(out, sql):
    with tracehouse.open(out) as warehouse:
        return [tuple(row.values()) for row in warehouse.sql(sql).to_pylist()]


@pytest.mark.parametrize("hold", [0, 1 << 20], ids=["streamed", "held"])
@pytest.mark.parametrize("name", FAILURES)
def test_only_the_guilty_trace_is_rejected(tmp_path, folder, monkeypatch, name, hold):
    out = tmp_path / "out"
    monkeypatch.setattr(reading, "HOLD_BYTES", hold)
    with monkeypatch.context() as broken:
        module, failing = FAILURES[name]
        broken.setattr(module, name, failing)
        report = analyze([str(folder)], out, workers=1)
    status = [("a.json", "ok"), ("b.json", "rejected"), ("c.json", "ok"), ("d.json.gz", "rejected")]
    status = [(str(folder / file), word) for file, word in status]
    assert [(r.path, r.status) for r in report.results] == status
    assert [r.busy_ns for r in report.results] == [20_000, None, 20_000, None]
    assert report.rejected == 2
    assert query(out, "SELECT path, status FROM traces ORDER BY path") == status
    assert query(out, "SELECT path, status FROM files ORDER BY path") == status
    issues = "SELECT path, code FROM issues JOIN traces USING (trace_id) WHERE severity = 'error'"
    assert sorted(query(out, issues)) == [
        (path, "ANALYSIS_FAILED") for path, word in status if word == "rejected"
    ]
    # Nothing of it is left in any table, and a rejected trace has its row in trace_timeline.
    events, kernels, summary = (
        query(out, f"SELECT DISTINCT name FROM {table} WHERE name LIKE 'k%' ORDER BY name")
        for table in ("events", "kernels", "kernel_summary")
    )
    assert events == kernels == summary == [("k1",), ("k3",)]
    assert query(out, "SELECT busy_ns FROM trace_timeline ORDER BY busy_ns NULLS LAST") == [
        (20_000,), (20_000,), (None,), (None,),
    ]  # fmt: skip
    # The next run goes on from there.
    again = analyze([str(folder)], out, workers=1)
    assert (again.unchanged, again.rejected) == (4, 2)
    trace(2).write(folder / "b.json").touch()
    mended = analyze([str(folder)], out, workers=1)
    assert (mended.unchanged, mended.rejected) == (3, 1)
    assert query(out, "SELECT count(*) FROM kernels WHERE name = 'k2'") == [(1,)]


@pytest.mark.parametrize("hold", [0, 1 << 20], ids=["streamed", "held"])
def test_an_error_while_a_file_is_read_costs_only_the_file(tmp_path, folder, monkeypatch, hold):
    out = tmp_path / "out"
    monkeypatch.setattr(reading, "HOLD_BYTES", hold)
    monkeypatch.setattr(part, "read_file", failing_read)
    report = analyze([str(folder)], out, workers=1)
    assert report.rejected == 2
    assert {r.path: r.reason for r in report.results if r.status == "rejected"} == {
        str(folder / name): "its analysis failed: ValueError: no end"
        for name in ("b.json", "d.json.gz")
    }
    assert query(out, "SELECT name FROM kernel_summary WHERE name IN ('k1', 'k3')") != []


def test_a_disk_that_cannot_be_written_stops_the_run(tmp_path, folder, monkeypatch):
    def full(self, table, rows, append=part.PartWriter.append):
        if table == "events":  # written while files are read
            raise OSError(28, "No space left on device")
        append(self, table, rows)

    monkeypatch.setattr(part.PartWriter, "append", full)
    with pytest.raises(OSError, match="No space left"):
        analyze([str(folder)], tmp_path / "out", workers=1)
    monkeypatch.undo()
    assert analyze([str(folder)], tmp_path / "out", workers=1).rejected == 0


@pytest.mark.parametrize("name", ["link", "summarise"])
def test_a_full_folder_for_temporary_files_stops_the_run(tmp_path, folder, monkeypatch, name):
    def full(*_arguments, **_options):
        raise SpillError(28, "No space left on device", "/tmp")

    monkeypatch.setattr(linked_trace if name == "link" else part, name, full)
    with pytest.raises(OSError, match=r"No space left on device: '/tmp'"):
        analyze([str(folder)], tmp_path / "out", workers=1)
    monkeypatch.undo()
    assert analyze([str(folder)], tmp_path / "out", workers=1).rejected == 0
