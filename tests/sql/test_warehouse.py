"""The warehouse file: what it holds, which rows count, and who can open it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from part_tables import A, B, activity, part, stored

from tracehouse.analysis.summaries import evaluated
from tracehouse.commands.refresh import refresh_warehouse
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.schema.tables import TABLES
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import (
    FileEntry,
    LakeState,
    Part,
    TableFile,
    TraceRef,
    commit_part,
)
from tracehouse.storage.writer import checksum
from tracehouse.warehouse.build import build
from tracehouse.warehouse.catalogue import live_views, relations
from tracehouse.warehouse.query import Warehouse
from tracehouse.warehouse.views import load_views

C = "cccccccccccccccc"
EMPTY = LakeState((), (), {}, {})


def tables_of(*traces, length=10):
    """Make every stored table of some traces: each has one op with one kernel of `length` ns."""
    ops = [
        {"trace_id": t, "event_id": 1, "name": "aten::mm", "category": "GEMM", "dur_ns": 5}
        | {"direct_kernel_count": 1, "direct_kernel_time_ns": length, "kernel_time_ns": length}
        for t in traces
    ]
    kernels = [
        {**activity(2, "compute", 0, length, op_id=1, name="gemm"), "trace_id": t} for t in traces
    ]
    named = [{"trace_id": t, "status": "ok", "kernels": 1} for t in traces]
    tables = part(named, ops=ops, kernels=kernels)
    tables["issues"] = stored("issues", [{"trace_id": t, "code": "NO_EVENTS"} for t in traces])
    return tables | evaluated(tables)


def entry(path, *traces, label="nightly"):
    refs = tuple(TraceRef(trace, path) for trace in traces)
    return FileEntry(path, 7, 1_700_000_000_123_456_789, "hash", "ok", None, label, refs)


def write_part(out, part_id, tables, files=()):
    written = {}
    for name, table in tables.items():
        if table.num_rows:
            path = out / "lake" / name / f"{part_id}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            size, content = path.stat().st_size, checksum(path)
            written[name] = TableFile(str(path.relative_to(out)), table.num_rows, size, content)
    held = tuple(trace.trace_id for file in files for trace in file.traces)
    return Part(part_id, "2026-01-01T00:00:00+00:00", "0", tuple(files), written, held)


def state_of(*parts, files, dead=None):
    return LakeState(tuple(parts), tuple(files), {}, dead or {})


@pytest.fixture
def out(tmp_path):
    """Make a warehouse of two traces in one part."""
    files = [entry("/data/a.json", A), entry("/data/b.json", B)]
    build(tmp_path, state_of(write_part(tmp_path, "part-000001", tables_of(A, B)), files=files))
    return tmp_path


def test_an_empty_lake_gives_every_table_with_its_columns(tmp_path):
    build(tmp_path, EMPTY)
    with Warehouse(tmp_path) as warehouse:
        tables = {t.name: [(c.name, c.type) for c in t.columns] for t in warehouse.describe()}
        assert all(warehouse.table(name).num_rows == 0 for name in tables)
    views = (*load_views("trace"), *live_views())
    named = (view.name for view in views if not view.is_private)
    expected = {"files", "runs", *TABLES, *named}
    assert set(tables) == expected
    assert tables["traces"][:4] == [
        ("trace_id", "VARCHAR"),
        ("path", "VARCHAR"),
        ("label", "VARCHAR"),
        ("status", "VARCHAR"),
    ]
    assert ("input_dims", "BIGINT[][]") in tables["signatures"]


def test_a_lake_has_the_columns_that_an_empty_one_has(out, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    build(empty, EMPTY)
    with Warehouse(empty) as without, Warehouse(out) as filled:
        assert filled.describe() == without.describe()


def test_rows_come_back(out):
    with Warehouse(out) as warehouse:
        found = warehouse.sql(
            """
            SELECT traces.path, ops.name AS op, kernels.name AS kernel, kernels.dur_ns
            FROM kernels
            JOIN ops ON ops.trace_id = kernels.trace_id AND ops.event_id = kernels.op_id
            JOIN traces ON traces.trace_id = kernels.trace_id
            ORDER BY traces.path
            """
        )
        assert found.to_pylist() == [
            {"path": path, "op": "aten::mm", "kernel": "gemm", "dur_ns": 10}
            for path in ("/data/a.json", "/data/b.json")
        ]
        assert warehouse.table("trace_timeline")["busy_ns"].to_pylist() == [10, 10]


def test_no_dictionary_type_leaks(out):
    with Warehouse(out) as warehouse:
        types = {c.type for table in warehouse.describe() for c in table.columns}
        assert not any(type_.startswith("ENUM") for type_ in types)
        assert warehouse.table("ops").schema.field("name").type == pa.string()


def test_summaries_are_tables_and_the_rest_are_views(out):
    with Warehouse(out) as warehouse:
        tables = warehouse.sql("SELECT table_name AS n FROM duckdb_tables()")["n"].to_pylist()
        views = warehouse.sql(
            "SELECT view_name AS n FROM duckdb_views() "
            "WHERE NOT internal AND NOT starts_with(view_name, '_')"
        )
    assert set(tables) == {
        *("traces", "files", "issues", "checks", "gpu_timeline", "trace_timeline"),
        *("op_categories", "op_summary", "op_args_summary", "kernel_summary"),
        *("coverage", "roofline", "roofline_categories", "triton_summary"),
        *("steady_state", "step_summary", "attention_summary"),
        "_lake",  # where it was built, and from what
        "_lake_manifests",
    }
    assert set(views["n"].to_pylist()) == {
        *("events", "ops", "kernels", "launches", "annotations", "signatures", "spans"),
        *("idle_gaps", "op_perf", "triton_kernels", "steps", "steady_steps"),
        *("runs", "job_runs", "trends", "regressions"),
        *("step_phases", "phase_op_summary", "phase_kernel_summary"),
        *("phase_roofline", "phase_triton", "attention_roofline"),
    }


def test_every_table_and_column_has_a_comment(out):
    with Warehouse(out) as warehouse:
        tables = warehouse.describe()
    assert [t.name for t in tables] == [r.name for r in relations()]
    for table, relation in zip(tables, relations(), strict=True):
        assert table.meaning == relation.comment
        assert [(c.name, c.unit, c.meaning) for c in table.columns] == [
            (c.name, c.unit, c.meaning) for c in relation.columns
        ]
    columns = {(t.name, c.name): c for t in tables for c in t.columns}
    assert columns["gpu_timeline", "busy_ns"].comment == "time with any GPU activity [ns]"


def test_files_are_listed_by_path(tmp_path):
    broken = FileEntry("/data/0.json", 1, 0, None, "rejected", "EMPTY_FILE: no bytes", "x", ())
    build(tmp_path, state_of(files=[entry("/data/z.zip", A, B), broken]))
    with Warehouse(tmp_path) as warehouse:
        first, second = warehouse.table("files").to_pylist()
    assert first["reason"] == "EMPTY_FILE: no bytes"
    assert first["content_hash"] is None
    assert first["traces"] == []
    assert second == {
        "path": "/data/z.zip",
        "size": 7,
        # 1 700 000 000 s = 19 675 days (2023-11-14) and 80 000 s (22:13:20)
        "mtime": datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC),
        "content_hash": "hash",
        "status": "ok",
        "reason": None,
        "label": "nightly",
        "traces": [A, B],
        "role": "trace",
    }


def test_a_trace_in_two_files_has_the_first_path(tmp_path):
    written = write_part(tmp_path, "part-000001", tables_of(A))
    files = [entry("/data/2.json", A, label="late"), entry("/data/1.json", A, label="early")]
    build(tmp_path, state_of(written, files=files))
    with Warehouse(tmp_path) as warehouse:
        (row,) = warehouse.sql("SELECT trace_id, path, label, kernels FROM traces").to_pylist()
    assert row == {"trace_id": A, "path": "/data/1.json", "label": "early", "kernels": 1}


def test_dead_rows_are_left_out_part_by_part(tmp_path):
    # A is dead in part 1 and lives in part 2; B is dead in part 2 and lives in part 1; C is whole.
    parts = (
        write_part(tmp_path, "part-000001", tables_of(A, B, length=10)),
        write_part(tmp_path, "part-000002", tables_of(A, B, length=20)),
        write_part(tmp_path, "part-000003", tables_of(C, length=30)),
    )
    dead = {"part-000001": frozenset({A}), "part-000002": frozenset({B})}
    files = [entry(f"/{trace}", trace) for trace in (A, B, C)]
    build(tmp_path, state_of(*parts, files=files, dead=dead))
    with Warehouse(tmp_path) as warehouse:
        for table, column in (
            ("kernels", "dur_ns"),
            ("ops", "direct_kernel_time_ns"),
            ("op_summary", "direct_kernel_time_ns"),
            ("trace_timeline", "busy_ns"),
        ):
            query = f"SELECT trace_id, {column} AS ns FROM {table} ORDER BY trace_id"
            found = warehouse.sql(query).to_pylist()
            assert [(r["trace_id"], r["ns"]) for r in found] == [(A, 20), (B, 10), (C, 30)], table
        assert warehouse.table("traces")["trace_id"].to_pylist() == [A, B, C]
        assert "_dead_rows" not in {t.name for t in warehouse.describe()}


def test_summaries_are_stored_longest_time_first(tmp_path):
    tables = part(
        traces=({"trace_id": A, "status": "ok"},),
        kernels=[activity(i, "compute", 0, ns, name=f"k{ns}") for i, ns in enumerate((5, 9, 1))],
    )
    written = write_part(tmp_path, "part-000001", tables | evaluated(tables))
    build(tmp_path, state_of(written, files=[entry("/a", A)]))
    with Warehouse(tmp_path) as warehouse:
        assert warehouse.table("kernel_summary")["name"].to_pylist() == ["k9", "k5", "k1"]


@pytest.mark.parametrize("name", ["it's", "a[1]*b", "trace_id=9"])
def test_folders_with_odd_names(tmp_path, name):
    """Quotes, DuckDB's patterns, and what looks like a partition's name."""
    out = tmp_path / name
    decoy = tmp_path / "a1xb"  # what the pattern would match
    for folder in (out, decoy):
        folder.mkdir()
        written = write_part(folder, "part-000001", tables_of(A, B))
    dead = {"part-000001": frozenset({B})}
    build(out, state_of(written, files=[entry("/a", A)], dead=dead))
    with Warehouse(out) as warehouse:
        assert warehouse.table("kernels")["trace_id"].to_pylist() == [A]


def test_a_relative_folder_gives_absolute_paths(out, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(out.parent)
    written = write_part(out, "part-000001", tables_of(A))
    build(type(out)(out.name), state_of(written, files=[entry("/a", A)]))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with Warehouse(out) as warehouse:
        assert warehouse.table("kernels").num_rows == 1


def test_another_process_opens_it_read_only_from_anywhere(out, tmp_path_factory):
    script = """
import duckdb, json, sys
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    rows = connection.execute(
        "SELECT path, sum(dur_ns)::BIGINT FROM kernels JOIN traces USING (trace_id) "
        "GROUP BY path ORDER BY path"
    ).fetchall()
print(json.dumps(rows))
"""
    with Warehouse(out):  # while it is open here
        done = subprocess.run(
            [sys.executable, "-c", script, str(out / WAREHOUSE)],
            cwd=tmp_path_factory.mktemp("elsewhere"),
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout) == [["/data/a.json", 10], ["/data/b.json", 10]]


def test_building_again_replaces_the_file_under_a_reader(out):
    with Warehouse(out) as old:
        build(out, EMPTY)
        assert old.table("traces").num_rows == 2  # the reader keeps what it opened
    with Warehouse(out) as new:
        assert new.table("traces").num_rows == 0


def test_a_failed_build_leaves_the_old_file(out):
    damaged = write_part(out, "part-000002", tables_of(C))
    (out / damaged.tables["op_summary"].path).write_bytes(b"no parquet")
    with pytest.raises(TracehouseError, match="it has 10 bytes"):
        build(out, state_of(damaged, files=[entry("/c", C)]))
    assert [path.name for path in out.iterdir() if path.name != "lake"] == [WAREHOUSE]
    with Warehouse(out) as warehouse:
        assert warehouse.table("traces")["trace_id"].to_pylist() == [A, B]


def test_what_a_killed_build_left_is_removed(out):
    for name in (f".{WAREHOUSE}.1.tmp", f".{WAREHOUSE}.1.tmp.wal"):
        (out / name).write_bytes(b"half")
    build(out, EMPTY)
    assert sorted(path.name for path in out.iterdir()) == ["lake", WAREHOUSE]


def test_two_builds_give_equal_rows(out, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    files = [entry("/data/b.json", B), entry("/data/a.json", A)]
    build(other, state_of(write_part(other, "part-000001", tables_of(B, A)), files=files))
    with Warehouse(out) as one, Warehouse(other) as two:
        for relation in relations():
            if relation.order_by is not None:
                assert one.table(relation.name) == two.table(relation.name), relation.name


def test_refresh_follows_a_moved_folder(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    commit_part(before, write_part(before, "part-000001", tables_of(A), [entry("/a", A)]))
    refresh_warehouse(before)
    before.rename(after)
    with Warehouse(after) as moved:
        assert moved.table("kernels")["trace_id"].to_pylist() == [A]
    with duckdb.connect(after / WAREHOUSE, read_only=True) as alone:
        with pytest.raises(duckdb.IOException):
            alone.sql("FROM kernels").fetchall()
    refresh_warehouse(after)
    with duckdb.connect(after / WAREHOUSE, read_only=True) as alone:
        assert alone.sql("SELECT trace_id FROM kernels").fetchall() == [(A,)]
    with Warehouse(after) as warehouse:
        assert warehouse.table("kernels")["trace_id"].to_pylist() == [A]
        assert warehouse.table("traces")["path"].to_pylist() == ["/a"]


def test_queries_take_parameters(out):
    with Warehouse(out) as warehouse:
        query = "SELECT count(*) AS n FROM traces WHERE trace_id = ?"
        assert warehouse.sql(query, [A])["n"].to_pylist() == [1]
        query = "SELECT count(*) AS n FROM traces WHERE trace_id = $id"
        assert warehouse.sql(query, {"id": "x"})["n"].to_pylist() == [0]


def test_the_warehouse_is_read_only_and_sees_no_python_variables(out):
    secret = pa.table({"a": [1]})
    assert secret.num_rows == 1
    with Warehouse(out) as warehouse:
        for query in ("DROP TABLE traces", "DELETE FROM traces", "SELECT a FROM secret"):
            with pytest.raises(duckdb.Error):
                warehouse.sql(query)
        assert warehouse.table("traces").num_rows == 2


def test_a_statement_without_rows_gives_an_empty_table(out):
    with Warehouse(out) as warehouse:
        assert warehouse.sql("SET threads = 1").num_rows == 0


def test_no_warehouse_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match="holds no warehouse") as caught:
        Warehouse(tmp_path)
    assert "tracehouse analyze" in caught.value.hint


def test_a_damaged_file_says_what_to_do(tmp_path):
    (tmp_path / WAREHOUSE).write_bytes(b"this is no database" * 1000)
    with pytest.raises(TracehouseError) as caught:
        Warehouse(tmp_path)
    assert caught.value.code == "BAD_WAREHOUSE"
    assert "--repair" in caught.value.hint


@pytest.mark.parametrize("name", ["nope", "_dead_rows", 'ops"; DROP TABLE traces; --', ""])
def test_an_unknown_table_names_those_there_are(out, name):
    with Warehouse(out) as warehouse, pytest.raises(UsageError, match="no table") as caught:
        warehouse.table(name)
    assert "kernel_summary" in caught.value.hint


def test_rows_are_taken_the_arrow_way_and_the_duckdb_way(out):
    with Warehouse(out) as warehouse:
        rows = warehouse.sql("SELECT * FROM (VALUES (1, 'a'), (2, NULL), (3, 'c')) t(n, word)")
        assert rows.to_pylist()[1] == {"n": 2, "word": None}
        assert rows["word"].to_pylist() == ["a", None, "c"]
        assert (len(rows), rows.num_rows) == (3, 3)
        assert pa.table(rows).equals(rows.arrow())
        assert rows.fetchone() == (1, "a")
        assert rows.fetchall() == [(2, None), (3, "c")]
        assert (rows.fetchone(), rows.fetchall()) == (None, [])
