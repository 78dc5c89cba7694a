"""`tracehouse.read` gives what `tracehouse.analyze` stores; both readers, held or streamed."""

from __future__ import annotations

import gzip
import zipfile

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reading import plain
from warehouses import analyse, contents, drawn

import tracehouse
from tracehouse.errors import RejectedFile, UsageError
from tracehouse.ingest import read as reading
from tracehouse.warehouse.catalogue import live_views

# They hold what a run knows: of files, and when and how long it read a trace. And the views over
# several tables, which only a warehouse has.
OF_A_RUN = {"traces", "files", "runs", *(view.name for view in live_views())}


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, plain(table).to_pylist()))


@pytest.fixture
def streams(monkeypatch):
    """Let a trace go to the sink as it comes, whatever its size."""
    monkeypatch.setattr(reading, "HOLD_BYTES", 0)


def sample(repo_root, name):
    return repo_root / "data" / "samples" / f"{name}.json.gz"


@pytest.mark.parametrize("reader", ["scan", "ijson"])
@pytest.mark.parametrize("name", ["triton_block", "serving", "truncated"])
def test_every_table_is_what_analyze_stores(tmp_path, repo_root, name, reader):
    file, out = sample(repo_root, name), tmp_path / "out"
    trace = tracehouse.read(file, reader=reader)
    analyse(file, out=out, reader=reader)
    with tracehouse.open(out) as warehouse:
        stored = {table.name: table for table in warehouse.describe()}
        assert set(stored) - OF_A_RUN == set(trace.tables) - OF_A_RUN
        for table in set(trace.tables) - OF_A_RUN:
            assert getattr(trace, table).column_names == warehouse.table(table).column_names
            kept = warehouse.table(table)
            if table == "checks":  # which ranks are missing, only an archive tells
                kept = kept.filter(pc.not_equal(kept["name"], "missing_ranks"))
            assert rows(getattr(trace, table)) == rows(kept), table
        assert warehouse.sql("SELECT trace_id FROM traces").to_pylist() == [
            {"trace_id": trace.trace_id}
        ]
        assert sorted(warehouse.table("issues")["code"].to_pylist()) == [
            finding.code.word for finding in trace.findings
        ]


@pytest.mark.parametrize("reader", ["scan", "ijson"])
def test_a_streamed_trace_is_what_a_held_one_is(repo_root, monkeypatch, reader):
    file = sample(repo_root, "torch_cpu")
    held = tracehouse.read(file, reader=reader)
    monkeypatch.setattr(reading, "HOLD_BYTES", 0)
    streamed = tracehouse.read(file, reader=reader)
    assert streamed.trace_id == held.trace_id
    assert streamed.envelope == held.envelope
    for name in set(held.tables) - OF_A_RUN:
        assert plain(getattr(streamed, name)).equals(plain(getattr(held, name))), name


@pytest.mark.parametrize("reader", ["scan", "ijson"])
def test_streamed_traces_are_stored_as_held_ones_are(tmp_path, repo_root, monkeypatch, reader):
    folder, held, streamed = tmp_path / "in", tmp_path / "held", tmp_path / "streamed"
    drawn(1).write(folder / "a.json")
    drawn(1).write(folder / "b.json.gz")  # the same content again
    (folder / "c.json").write_bytes(drawn(2).data() + drawn(3).data())  # two documents
    (folder / "d.json").write_bytes(drawn(4).data()[:-60])  # cut
    (folder / "e.json").write_text("[" + "1, " * 200 + "1]")  # a list, but of no events
    inputs = (folder, sample(repo_root, "serving"))
    analyse(*inputs, out=held, reader=reader)
    monkeypatch.setattr(reading, "HOLD_BYTES", 0)
    report = analyse(*inputs, out=streamed, reader=reader)
    assert contents(streamed) == contents(held)
    assert (report.total, report.rejected, report.partial) == (6, 1, 1)
    assert analyse(*inputs, out=streamed, reader=reader).unchanged == 6


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize("reader", ["scan", "ijson"])
def test_a_streamed_trace_that_is_known_adds_no_rows(tmp_path, reader):
    folder, out = tmp_path / "in", tmp_path / "out"
    drawn(1).write(folder / "b.json")
    analyse(folder, out=out, reader=reader)
    parquet = set(out.rglob("*.parquet"))
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out, reader=reader)
    assert set(out.rglob("*.parquet")) == parquet


def test_what_cannot_be_read_raises(tmp_path):
    garbage = tmp_path / "garbage.json"
    garbage.write_text("nonsense")
    with pytest.raises(RejectedFile) as rejected:
        tracehouse.read(garbage)
    assert rejected.value.code == "NOT_A_TRACE"
    (tmp_path / "bad.json.gz").write_bytes(gzip.compress(drawn(1).data())[:12])
    with pytest.raises(RejectedFile) as rejected:
        tracehouse.read(tmp_path / "bad.json.gz")
    assert rejected.value.code == "BAD_CONTAINER"
    with pytest.raises(UsageError, match="no such file"):
        tracehouse.read(tmp_path / "nowhere.json")
    with pytest.raises(UsageError, match="no reader is called 'magic'"):
        tracehouse.read(garbage, reader="magic")


def test_several_traces_are_too_many(tmp_path):
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", drawn(1).data())
        archive.writestr("b.json", drawn(2).data())
    with pytest.raises(UsageError, match="several traces"):
        tracehouse.read(path)
    documents = tmp_path / "two.json"
    documents.write_bytes(drawn(1).data() + drawn(2).data())
    with pytest.raises(UsageError, match="several traces"):
        tracehouse.read(documents)


def test_a_table_that_does_not_exist_is_an_attribute_error(tmp_path):
    trace = tracehouse.read(drawn(1).write(tmp_path / "a.json"))
    with pytest.raises(AttributeError, match="'kernel'; its tables are annotations, attention_"):
        _ = trace.kernel
