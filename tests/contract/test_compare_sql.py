"""Every SQL file of a comparison is what its header says."""

from __future__ import annotations

import duckdb
import pytest
from test_sql_headers import parsed, tables_read

import tracehouse
from tracehouse.commands.compare_sums import TABLES, compared, registered
from tracehouse.resources import sql_texts
from tracehouse.warehouse.catalogue import relations
from tracehouse.warehouse.queries import load_queries
from tracehouse.warehouse.views import evaluate_views, load_views

QUERIES = load_queries("compare_side")
VIEWS = load_views("compare")
REGISTERED = {"compared_sides", *(f"compared_{name}" for name in TABLES)}
PHASES = [None, "decode"]
each_query = pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
each_view = pytest.mark.parametrize("view", VIEWS, ids=[v.name for v in VIEWS])


@pytest.fixture(scope="module")
def warehouse(repo_root, tmp_path_factory):
    """Open a warehouse of a trace with serving steps and one of two training steps."""
    out = tmp_path_factory.mktemp("compared") / "out"
    samples = [repo_root / f"data/samples/{name}.json.gz" for name in ("serving", "training")]
    tracehouse.analyze(samples, out, workers=1, label="sample")
    with tracehouse.open(out) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def traces(warehouse):
    return warehouse.sql("SELECT trace_id FROM traces ORDER BY path")["trace_id"].to_pylist()


def rows(warehouse, query, traces, phase=None):
    values = {"traces": traces, "phase": phase}
    return warehouse.arrow(query.sql, {name: values[name] for name in query.parameters})


@pytest.fixture(scope="module")
def session(warehouse, traces):
    """Evaluate the views over one side of each trace."""
    sides = [{n: rows(warehouse, QUERIES[n], [trace]) for n in TABLES} for trace in traces]
    with duckdb.connect() as session:
        for name, table in registered(sides, "trace").items():
            session.register(name, table)
        evaluate_views(session, VIEWS)
        yield session


@each_query
def test_columns_of_a_query_are_those_of_its_header(warehouse, traces, query):
    for chosen in (traces, []):
        found = rows(warehouse, query, chosen)
        types = duckdb.sql("DESCRIBE SELECT * FROM found").fetchall()
        assert [(n, t) for n, t, *_ in types] == [(c.name, c.type) for c in query.view.columns]
    assert query.view.name == "candidates" or found.num_rows == 0


@each_query
def test_grain_of_a_query_is_a_key(warehouse, traces, query):
    found = rows(warehouse, query, traces).select(list(query.view.grain)).to_pylist()
    assert found
    assert len({tuple(row.values()) for row in found}) == len(found)


@pytest.mark.parametrize("phase", PHASES)
def test_activities_are_all_activities(warehouse, traces, phase):
    """What the queries give is what the warehouse's own tables say."""
    found = rows(warehouse, QUERIES["activities"], traces, phase)
    step = "" if phase is None else " JOIN steps USING (trace_id, step_id) WHERE phase = ?"
    expected = warehouse.sql(
        f"SELECT count(*), sum(dur_ns)::BIGINT FROM kernels{step}", [phase] if phase else []
    ).fetchone()
    assert (sum(found["activities"].to_pylist()), sum(found["time_ns"].to_pylist())) == expected
    steps = rows(warehouse, QUERIES["phases"], traces, phase)
    assert sum(steps["steps"].to_pylist()) == {None: 22, "decode": 11}[phase]


def test_calls_and_efficiency_are_those_of_the_roofline(warehouse, traces):
    found = rows(warehouse, QUERIES["calls"], traces).to_pylist()
    ops = [row for row in found if row["category"] not in ("launch", "(no op)")]
    calls, time, least = warehouse.sql(
        "SELECT sum(count)::BIGINT, sum(kernel_time_ns) FILTER (roofline_ns IS NOT NULL)::BIGINT, "
        "sum(roofline_ns) FROM roofline"
    ).fetchone()
    assert sum(row["calls"] for row in ops) == calls
    assert sum(row["limited_ns"] for row in ops) >= time  # some calls of a row may have one
    assert sum(row["roofline_ns"] or 0 for row in ops) >= least - 1e-3
    others = warehouse.sql(
        "SELECT sum(count)::BIGINT FROM op_summary WHERE category IN ('launch', '(no op)')"
    ).fetchone()
    assert sum(row["calls"] for row in found) - calls == others[0]


@each_query
def test_a_query_reads_what_it_says(query):
    assert sorted(query.view.reads) == sorted(tables_read(parsed(query.sql)))
    assert set(query.view.reads) <= {relation.name for relation in relations()}
    assert set(query.parameters) <= {"traces", "phase"}


@each_view
def test_columns_of_a_view_are_those_of_its_header(session, view):
    found = session.execute(f"DESCRIBE {view.name}").fetchall()
    assert [(name, type_) for name, type_, *_ in found] == [(c.name, c.type) for c in view.columns]


@each_view
def test_grain_of_a_view_is_a_key(session, view):
    found = session.execute(f"SELECT {', '.join(view.grain)} FROM {view.name}").fetchall()
    assert found, "the samples must reach every view"
    assert len(set(found)) == len(found)
    meanings = {c.name: c.meaning for c in view.columns}
    for i, name in enumerate(view.grain):
        assert "NULL" in meanings[name] or all(row[i] is not None for row in found), name


@each_view
def test_a_view_reads_what_it_says(view):
    assert sorted(view.reads) == sorted(tables_read(parsed(view.query)))
    assert set(view.reads) <= REGISTERED | {v.name for v in VIEWS}


@pytest.mark.parametrize("folder", ["compare", "compare_side"])
def test_house_style(folder):
    views = (*VIEWS, *(query.view for query in QUERIES.values()))
    for name, text in sql_texts(folder).items():
        assert "SELECT *" not in text, name
        assert max(len(line) for line in text.splitlines()) <= 100, name
        assert text.endswith(";\n"), name
        assert "\t" not in text, name
    for view in views:
        assert view.summary.endswith("."), view.name
        for column in view.columns:
            assert column.unit in {"-", "ns", "pct"}, column
            assert column.unit == "-" or column.name.endswith(f"_{column.unit}"), column


def test_no_traces_give_empty_parts(warehouse):
    nothing = {name: rows(warehouse, QUERIES[name], []) for name in TABLES}
    one = {name: rows(warehouse, QUERIES[name], ["0" * 16]) for name in TABLES}
    totals, parts = compared([nothing, one])
    assert parts.num_rows == 0
    assert [(row["part"], row["side_ns"]) for row in totals.to_pylist()] == []
