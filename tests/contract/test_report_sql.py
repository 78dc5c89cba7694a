"""The queries of a report: what their headers say, and that they add up to the tables."""

from __future__ import annotations

import re

import pytest
from test_sql_headers import parsed, tables_read
from tracegen import Trace

import tracehouse
from tracehouse.errors import TracehouseError
from tracehouse.resources import sql_texts
from tracehouse.warehouse.catalogue import relations
from tracehouse.warehouse.queries import load_queries, parse_query

QUERIES = load_queries("report")
KNOWN = {relation.name for relation in relations()}
each_query = pytest.mark.parametrize("name", QUERIES)


@pytest.fixture(scope="module")
def warehouse(repo_root, tmp_path_factory):
    """Open a warehouse of the samples and of three kinds of activity that overlap."""
    folder = tmp_path_factory.mktemp("traces")
    trace = Trace()
    # us   0    10   20   30   40   50   60   70      GPU 0: 0..70, busy 0..50 and 60..70
    # compute [0,20) [60,70)   comm [10,40)   copy [30,50)
    trace.kernel("gemm", 0, 20).kernel("ncclDevKernel_AllReduce_Sum_f32", 10, 30, stream=8)
    trace.memcpy(30, 20, stream=9).kernel("gemm", 60, 10)
    (folder / "overlap.json").write_text(trace.text(), encoding="utf-8")
    out = tmp_path_factory.mktemp("report") / "out"
    tracehouse.analyze([repo_root / "data" / "samples", folder], out, workers=1)
    with tracehouse.open(out) as opened:
        yield opened


def parameters(name, warehouse):
    """Return the parameters of a query, once for each trace; of a warehouse all labels and one."""
    names = QUERIES[name].parameters
    if names == ("label",):
        return [{"label": None}, {"label": "samples"}]
    assert names == ("trace_id",)
    ids = warehouse.sql("SELECT trace_id FROM traces ORDER BY path")["trace_id"].to_pylist()
    return [{"trace_id": trace_id} for trace_id in ids]


def is_there(name):
    return set(QUERIES[name].view.reads) <= KNOWN


@each_query
def test_reads_are_those_of_the_parse_and_exist(name):
    query = QUERIES[name]
    literal = re.sub(r"\$[a-z_]+", "NULL", query.sql)
    assert sorted(query.view.reads) == sorted(tables_read(parsed(literal)))
    assert set(query.view.reads) <= KNOWN


@each_query
def test_columns_and_grain_are_those_of_the_header(name, warehouse):
    if not is_there(name):
        pytest.skip("this version has no such table")
    query = QUERIES[name]
    key = list(query.view.grain)
    for given in parameters(name, warehouse):
        rows = warehouse.sql(query.sql, given)
        assert rows.column_names == [c.name for c in query.view.columns]
        described = warehouse.sql(f"DESCRIBE ({query.sql})", given)
        assert described["column_type"].to_pylist() == [c.type for c in query.view.columns]
        keys = [tuple(row[k] for k in key) for row in rows.to_pylist()]
        assert len(set(keys)) == len(keys)


@each_query
def test_house_style(name):
    text = sql_texts("report")[name]
    assert "SELECT *" not in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text.endswith(";\n")
    assert QUERIES[name].view.summary.endswith(".")


def test_a_query_is_one_select():
    header = "-- It.\n--\n-- grain:   one row per (a)\n-- reads:   t\n"
    header += "-- columns:\n--   a  BIGINT  -  a\n"
    assert parse_query("q", f"{header}SELECT a FROM t WHERE b = $b;\n").parameters == ("b",)
    for bad in ("SELECT a FROM t", "SELECT a; SELECT b;"):
        with pytest.raises(TracehouseError, match="needs one statement, `SELECT …;`"):
            parse_query("q", header + bad)


def trace_id(warehouse, path):
    query = "SELECT trace_id FROM traces WHERE ends_with(path, ?)"
    (found,) = warehouse.sql(query, [path])["trace_id"].to_pylist()
    return found


def test_slices_of_a_drawn_trace(warehouse):
    """computation 0-20 and 60-70, exposed communication 20-40, exposed copies 40-50, idle 50-60."""
    rows = warehouse.sql(
        QUERIES["trace_strip"].sql, {"trace_id": trace_id(warehouse, "overlap.json")}
    ).to_pylist()
    kinds = ("computation_ns", "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns")
    assert {row["lane"] for row in rows} == {"GPU 0"}
    assert [sum(row[kind] for row in rows) for kind in kinds] == [30_000, 20_000, 10_000, 10_000]
    width = 70_000 // 600 + 1  # 117 ns; 20 µs end within slice 170: 170 * 117 = 19,890
    at = {row["at_ns"]: row for row in rows}
    assert at[170 * width]["computation_ns"] == 20_000 - 170 * width
    assert at[170 * width]["exposed_comm_ns"] == 171 * width - 20_000
    assert rows[-1]["until_ns"] == 70_000


def test_slices_add_up_to_the_timeline(warehouse):
    names = "lane, computation_ns, exposed_comm_ns, exposed_memcpy_ns, idle_ns"
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in names.split(", ")[1:])
    compared = 0
    for given in parameters("trace_strip", warehouse):
        found = warehouse.sql(
            f"SELECT lane, {sums} FROM ({QUERIES['trace_strip'].sql}) GROUP BY lane ORDER BY lane",
            given,
        ).to_pylist()
        expected = warehouse.sql(
            f"SELECT {names} FROM ({QUERIES['trace_lanes'].sql}) WHERE lane <> 'all devices'"
            " ORDER BY lane LIMIT 8",
            given,
        ).to_pylist()
        assert found == expected
        compared += len(found)
    assert compared >= 4


def test_limits_of_the_device_meet_at_the_ridge(warehouse):
    given = {"trace_id": trace_id(warehouse, "training.json.gz")}
    rows = warehouse.sql(QUERIES["trace_peaks"].sql, given).to_pylist()
    assert rows
    for row in rows:
        if row["flops_per_byte"] == row["ridge"]:
            assert row["tflops_s"] == pytest.approx(row["ridge"] * row["tb_s"])
        elif row["flops_per_byte"] < row["ridge"]:
            assert row["tflops_s"] == pytest.approx(row["flops_per_byte"] * row["tb_s"])
    assert sum(row["flops_per_byte"] == row["ridge"] for row in rows) == len(rows) / 3


def test_gaps_end_where_a_kernel_starts(warehouse):
    given = {"trace_id": trace_id(warehouse, "overlap.json")}
    (gap,) = warehouse.sql(QUERIES["trace_gaps"].sql, given).to_pylist()
    assert (gap["at_ns"], gap["until_ns"], gap["gap_ns"]) == (50_000, 60_000, 10_000)
    assert (gap["idle_pct"], gap["before_kernel"]) == (100.0, "gemm")


def test_a_label_restricts_every_query(warehouse):
    for name, query in QUERIES.items():
        if query.parameters == ("label",) and is_there(name):
            rows = warehouse.sql(query.sql, {"label": "no such label"}).to_pylist()
            assert rows == [] or (name == "archive_headline" and rows[0]["traces"] == 0), name
