"""`export --tables`: tables as files, as a user writes them."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import run as invoke
from tracegen import Trace

import tracehouse
from tracehouse.commands import export_tables as command


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Analyse two traces; names of one begin as a formula does."""
    folder = tmp_path_factory.mktemp("tables")
    for name, op in (("plain", "aten::mm"), ("odd", "=1+1")):
        trace = Trace(name=name).op(op, 0, 50, **{"Input Dims": [[2, 3]]})
        trace.launch(5, 4, correlation=1).kernel('ge"mm, é', 10, 20, correlation=1)
        trace.write(folder / "in" / f"{name}.json")
    tracehouse.analyze(folder / "in", folder / "out", workers=1)
    return folder / "out"


def stored(out, table):
    with tracehouse.open(out) as warehouse:
        return warehouse.table(table)


def read_arrow(path):
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


@pytest.mark.parametrize(("fmt", "read"), [("parquet", pq.read_table), ("arrow", read_arrow)])
def test_files_hold_the_rows_types_and_words(out, tmp_path, fmt, read):
    names = ["op_summary", "signatures", "trends", "traces"]
    done = invoke("export", out, "--tables", ",".join(names), "--format", fmt, "-o", tmp_path / "t")
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == sorted(
        f"{name}.{fmt}" for name in names
    )
    for name in names:
        found, expected = read(tmp_path / "t" / f"{name}.{fmt}"), stored(out, name)
        assert found.column_names == expected.column_names
        assert found.num_rows == expected.num_rows
        one, two = (sorted(map(repr, t.to_pylist())) for t in (found, expected))
        assert one == two, name
    field = read(tmp_path / "t" / f"op_summary.{fmt}").schema.field("mean_ns")
    assert field.metadata[b"unit"] == b"ns"
    assert f"Wrote 2 rows to {tmp_path / 't' / f'op_summary.{fmt}'}\n" in done.stderr


def test_parquet_is_the_default_and_all_is_every_table(out, tmp_path):
    assert invoke("export", out, "--tables", "all", "-o", tmp_path).returncode == 0
    with tracehouse.open(out) as warehouse:
        expected = {f"{table.name}.parquet" for table in warehouse.describe()}
    assert {path.name for path in tmp_path.iterdir()} == expected


def test_csv_has_null_as_nothing_and_lists_as_json(out, tmp_path):
    invoke(
        "export", out, "--tables", "signatures,kernels,traces", "--format", "csv", "-o", tmp_path
    )
    with (tmp_path / "signatures.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["input_dims"]) for row in rows] == [[[2, 3]], [[2, 3]]]
    assert rows[0]["input_strides"] == ""
    with (tmp_path / "kernels.csv").open(encoding="utf-8", newline="") as file:
        kernels = list(csv.DictReader(file))
    assert {row["name"] for row in kernels} == {'ge"mm, é'}
    assert {row["dur_ns"] for row in kernels} == {"20000"}
    with (tmp_path / "traces.csv").open(encoding="utf-8", newline="") as file:
        (at, *_) = (row["analysed_at"] for row in csv.DictReader(file))
    assert at.endswith("Z")
    assert at[10] == "T"


@pytest.mark.parametrize(("options", "name"), [([], "=1+1"), (["--for-spreadsheets"], "'=1+1")])
def test_formulas_are_kept_unless_it_is_for_spreadsheets(out, tmp_path, options, name):
    invoke(*("export", out, "--tables", "op_summary", "--format", "csv", "-o", tmp_path, *options))
    with (tmp_path / "op_summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["name"] for row in rows) == sorted([name, "aten::mm"])
    assert {row["direct_kernel_time_ns"] for row in rows} == {"20000"}


def test_one_trace(out, tmp_path):
    done = invoke("export", out, "plain", "--tables", "op_summary,kernels", "-o", tmp_path)
    assert done.returncode == 0
    assert pq.read_table(tmp_path / "op_summary.parquet")["name"].to_pylist() == ["aten::mm"]
    done = invoke("export", out, "plain", "--tables", "files", "-o", tmp_path)
    assert (done.returncode, "belong to no trace" in done.stderr) == (2, True)
    done = invoke("export", out, "plain", "--tables", "all", "-o", tmp_path / "all")
    assert done.returncode == 0
    assert not (tmp_path / "all/files.parquet").exists()


def test_files_are_replaced_together_or_not_at_all(out, tmp_path, monkeypatch):
    invoke("export", out, "--tables", "op_summary,kernels", "-o", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write = command._write

    def fails_at_the_second(warehouse, table, *rest):
        if table.name == "kernels":
            raise OSError("the disk is full")
        return write(warehouse, table, *rest)

    monkeypatch.setattr(command, "_write", fails_at_the_second)
    done = invoke("export", out, "plain", "--tables", "op_summary,kernels", "-o", tmp_path)
    assert (done.returncode, "the disk is full" in done.stderr) == (1, True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x"], "Say what to export"),
        (["--tables", "nope", "-o", "x"], "There is no table 'nope'"),
        (["--tables", "_gate_runs", "-o", "x"], "There is no table '_gate_runs'"),
        (["--tables", ",", "-o", "x"], "--tables names no table"),
        (["nope", "--tables", "ops", "-o", "x"], "No trace starts with 'nope'"),
        (["--tables", "ops", "-o", "-"], "Tables go into a folder"),
        (["--tables", "ops", "-o", "x", "--scrub"], "--scrub is for a trace"),
        (["--tables", "ops", "-o", "x", "--for-spreadsheets"], "goes with --format csv"),
        (["plain", "-o", "x", "--format", "csv"], "--format goes with --tables"),
    ],
)
def test_usage_errors(out, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = invoke("export", out, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(out, tmp_path):
    (tmp_path / "x").write_text("mine")
    done = invoke("export", out, "--tables", "ops", "-o", tmp_path / "x")
    assert (done.returncode, "is a file" in done.stderr) == (2, True)
    assert (tmp_path / "x").read_text() == "mine"
