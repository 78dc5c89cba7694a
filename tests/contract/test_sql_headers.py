"""Every SQL file is what its header says."""

from __future__ import annotations

import json
import random

import duckdb
import pyarrow as pa
import pytest

from tracehouse.analysis import step_grammars
from tracehouse.analysis.summaries import INPUTS, evaluated
from tracehouse.resources import sql_texts
from tracehouse.schema.tables import STEP_GRAMMARS, TABLES
from tracehouse.warehouse.connection import open_session
from tracehouse.warehouse.views import load_views

VIEWS = load_views("trace")
TEXTS = sql_texts("trace")
SCHEMAS = {table.name: table.schema for table in (*TABLES.values(), STEP_GRAMMARS)}
each_view = pytest.mark.parametrize("view", VIEWS, ids=[v.name for v in VIEWS])

RATES = {  # unit to how a column of it may end
    "TFLOPS/s": ("tflops_s", "peak_tflops"),
    "TB/s": ("tb_s",),
    "flops/byte": ("flops_per_byte",),
    "GFLOP": ("gflops",),
    "MiB": ("mib",),
}
KINDS = ("compute", "comm", "memcpy", "memset")


def sample_part(seed: int = 7) -> dict[str, pa.Table]:
    """Draw three traces with two devices, ops with and without inputs, graph launches, and gaps."""
    draw = random.Random(seed)
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in INPUTS}
    for trace in ("a" * 16, "b" * 16, "c" * 16):
        rows["traces"].append({"trace_id": trace, "status": "ok"})
        rows["issues"] += [
            {"trace_id": trace, "code": code, "count": draw.randrange(1, 9)}
            for code in ("CORRELATION_AMBIGUOUS", "DROPPED_EVENT", "TRUNCATED")
        ]
        rows["signatures"] += [
            {"trace_id": trace, "signature_id": s, "input_dims": [[s, 2]]} for s in range(3)
        ]
        rows["ops"] += [
            {"trace_id": trace, "event_id": i, "name": f"op{i % 4}", "category": f"c{i % 2}"}
            | {"signature_id": draw.choice((None, 0, 1, 2)), "dur_ns": draw.randrange(50)}
            | {"direct_kernel_count": draw.randrange(3), "direct_kernel_time_ns": draw.randrange(9)}
            for i in range(20)
        ]
        rows["launches"] += [
            {"trace_id": trace, "event_id": 100 + i, "name": f"launch{i % 2}", "kernel_count": 2}
            | {"kernel_time_ns": draw.randrange(9)}
            | {"direct_kernel_count": draw.randrange(3), "direct_kernel_time_ns": draw.randrange(9)}
            for i in range(6)
        ]
        rows["kernels"] += [
            {"trace_id": trace, "event_id": 200 + i, "device": i % 2, "kind": draw.choice(KINDS)}
            | {"name": f"kernel{i % 5}", "ts_ns": draw.randrange(900), "dur_ns": draw.randrange(30)}
            | {"op_id": draw.choice((None, i)), "launch_id": draw.choice((None, 100 + i % 6))}
            | {"link": draw.choice(("correlation", "external_id", "none"))}
            for i in range(20)
        ]
        rows["op_perf"] += [
            {"trace_id": trace, "event_id": i, "name": f"op{i % 4}", "category": f"c{i % 2}"}
            | {"signature_id": draw.choice((None, 0, 1)), "counted": draw.random() < 0.7}
            | {"compute_spec": draw.choice((None, "matrix_bf16")), "kernel_count": 1}
            | {"kernel_time_ns": draw.randrange(90), "flops": draw.choice((None, 0, 1000))}
            | {"bytes": draw.choice((None, 0, 4000)), "peak_tflops": 989.5, "peak_tb_s": 3.35}
            | {"roofline_ns": draw.choice((None, 0.125, 0.75)), "why": draw.choice((None, "x"))}
            for i in range(20)
        ]
        rows["annotations"] += [
            {"trace_id": trace, "event_id": 300 + i, "side": "cpu", "process": f"p{i % 2}"}
            | {"name": f"step[DECODE bs={i}]", "ts_ns": 100 * i, "dur_ns": draw.randrange(90)}
            | {"role": "step" if i % 3 else "other", "why": None if i % 3 else "nested"}
            | {"step_id": i if i % 3 else i + 1, "rule": "sglang_decode", "fields": "r"}
            | {"numbers": [draw.randrange(1, 9)], "kernel_count": 2, "kernel_time_ns": i}
            for i in range(20)
        ]
        rows["kernels"] += [
            {"trace_id": trace, "event_id": 400 + i, "step_id": i, "kind": "compute"}
            | {"name": "kernel", "ts_ns": draw.randrange(900), "dur_ns": draw.randrange(30)}
            for i in range(20)
        ]
        rows["steady_state"] += [
            {"trace_id": trace, "region_id": i, "kind": kind, "rule": "found", "process": "p1"}
            | {"first_step": 5 * i, "last_step": 5 * i + 6, "fallback": False}
            for i, kind in enumerate(("ramp_up", "mixed", "decode"))
        ]
        rows["attention_roofline"] += [
            {"trace_id": trace, "event_id": i, "step_id": i % 7, "name": f"op{i % 2}"}
            | {"phase": draw.choice(("decode", "mixed")), "window_keys": draw.choice((None, 128))}
            | {"h_q": 64, "h_kv": draw.choice((None, 8)), "kernel_time_ns": draw.randrange(90)}
            | {"flops": draw.choice((None, 1000)), "bytes": 4000, "flops_min": 500}
            | {"roofline_ns": draw.choice((None, 0.125, 0.75)), "why": draw.choice((None, "x"))}
            | {"bound": draw.choice((None, "compute", "memory"))}
            for i in range(20)
        ]
        rows["triton_kernels"] += [
            {"trace_id": trace, "event_id": i, "name": f"triton_{i % 3}", "kind": "poi"}
            | {"signature_id": draw.choice((None, 0, 1)), "kernel_hash": draw.choice((None, "h"))}
            | {"aten_ops": draw.choice((None, ["add", "mul"]))}
            | {"check": draw.choice(("none", "grid_ok", "grid_mismatch"))}
            | {"kernel_time_ns": draw.choice((None, 0, 90)), "flops": draw.choice((None, 1000))}
            | {"bytes": draw.choice((None, 4000)), "roofline_ns": draw.choice((None, 0.125, 0.75))}
            for i in range(20)
        ]
    made = {name: as_table(name, rows[name]) for name in INPUTS if name != "step_grammars"}
    return made | {"step_grammars": step_grammars.load().table()}


def as_table(name: str, rows: list[dict[str, object]]) -> pa.Table:
    schema = TABLES[name].schema
    columns = []
    for field in schema:
        is_word = pa.types.is_dictionary(field.type)
        plain = field.type.value_type if is_word else field.type
        values = [row.get(field.name) for row in rows]
        columns.append(pa.array(values, plain).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def installed(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Run the files as they stand, over the tables of a part.

    The rows of a view are kept once it is made: a stack of views is planned anew for each reader.
    """
    session = duckdb.connect()
    for name, table in tables.items():
        session.register(name, table)
    for view in VIEWS:
        session.execute(TEXTS[view.name])
        session.execute(f"CREATE TABLE _kept AS FROM {view.name}; DROP VIEW {view.name}")
        session.execute(f"ALTER TABLE _kept RENAME TO {view.name}")
    return session


@pytest.fixture(scope="module")
def session():
    with installed(sample_part()) as session:
        yield session


@pytest.fixture(scope="module")
def empty_session():
    empty = {name: SCHEMAS[name].empty_table() for name in INPUTS}
    with installed(empty) as session:
        yield session


def described(session, view):
    rows = session.execute(f"DESCRIBE {view.name}").fetchall()
    return [(name, type_) for name, type_, *_ in rows]


@each_view
def test_columns_are_those_of_the_header(session, view):
    assert described(session, view) == [(c.name, c.type) for c in view.columns]


@each_view
def test_columns_stand_without_rows(empty_session, view):
    assert described(empty_session, view) == [(c.name, c.type) for c in view.columns]
    assert empty_session.execute(f"FROM {view.name}").fetchall() == []


def tables_read(node: object) -> set[str]:
    """Collect the tables of a serialised query, less the names that its CTEs define."""
    if isinstance(node, list):
        return set().union(*(tables_read(item) for item in node))
    if not isinstance(node, dict):
        return set()
    found = set().union(*(tables_read(value) for value in node.values()))
    if node.get("type") == "BASE_TABLE":
        found.add(node["table_name"])
    return found - {entry["key"] for entry in node.get("cte_map", {}).get("map", [])}


def test_tables_read_sees_through_ctes():
    query = "WITH x AS (SELECT a FROM t) SELECT a FROM x JOIN (SELECT a FROM u) AS v USING (a)"
    assert tables_read(parsed(query)) == {"t", "u"}


def parsed(query: str) -> object:
    (text,) = duckdb.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
    answer = json.loads(text)
    assert not answer["error"], answer
    return answer


@each_view
def test_reads_are_those_of_the_parse(view):
    assert sorted(view.reads) == sorted(tables_read(parsed(view.query)))


@each_view
def test_reads_exist(view):
    known = {v.name for v in VIEWS} | set(INPUTS)
    assert set(view.reads) <= known


@each_view
def test_grain_is_a_key(session, view):
    """A key column may be NULL only where its meaning says so."""
    key = ", ".join(view.grain)
    meanings = {c.name: c.meaning for c in view.columns}
    rows = session.execute(f"SELECT {key} FROM {view.name}").fetchall()
    assert rows, "the sample must reach every view"
    assert len(set(rows)) == len(rows)
    for i, name in enumerate(view.grain):
        assert "NULL" in meanings[name] or all(row[i] is not None for row in rows)


def test_order_of_rows_does_not_matter():
    tables = sample_part()
    draw = random.Random(3)
    expected = evaluated(tables)
    shuffled = {
        name: table.take(pa.array(draw.sample(range(table.num_rows), table.num_rows), pa.int64()))
        for name, table in tables.items()
    }
    found = evaluated(shuffled)
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name].equals(expected[name]), name


def test_a_trace_is_the_same_whatever_is_in_its_part():
    tables = sample_part()
    together = evaluated(tables)
    for trace in tables["traces"]["trace_id"].to_pylist():
        alone = evaluated({name: of_trace(table, trace) for name, table in tables.items()})
        for name, rows in alone.items():
            assert rows.equals(of_trace(together[name], trace)), name


def of_trace(table: pa.Table, trace: str) -> pa.Table:
    if "trace_id" not in table.column_names:
        return table
    return table.filter([t == trace for t in table["trace_id"].to_pylist()]).combine_chunks()


def test_evaluating_equals_the_views(session):
    """`evaluated` gives the rows that the files give, in the order that their headers state."""
    for name, rows in evaluated(sample_part()).items():
        view = next(v for v in VIEWS if v.name == name)
        columns = ", ".join(f'"{c.name}"' for c in view.columns)
        assert rows.to_pylist() == (
            session.sql(f"SELECT {columns} FROM {name} ORDER BY {view.order_by}")
            .to_arrow_table()
            .to_pylist()
        )


@each_view
def test_words_are_for_people(view):
    assert view.summary.endswith(".")
    for column in view.columns:
        if column.unit in RATES:
            assert column.name.endswith(RATES[column.unit])
            continue
        assert column.unit in {"-", "ns", "pct", "bytes", "flops"}
        quantity = column.name.removesuffix("_seed").removesuffix("_min").removesuffix("_max")
        assert column.unit == "-" or quantity.split("_")[-1] == column.unit
        assert not column.meaning.endswith("]")  # brackets hold the unit of a COMMENT


@each_view
def test_house_style(view):
    text = TEXTS[view.name]
    assert "SELECT *" not in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text.endswith(";\n")
    assert "\t" not in text


def test_sessions_do_not_see_each_other():
    with open_session() as one, open_session() as two:
        one.register("kernels", pa.table({"a": [1]}))
        one.execute("CREATE TEMP TABLE mine AS SELECT a FROM kernels")
        for name in ("kernels", "mine"):
            with pytest.raises(duckdb.CatalogException):
                two.execute(f"SELECT a FROM {name}")
