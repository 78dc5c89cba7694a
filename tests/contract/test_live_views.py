"""The live views of the warehouse, and the queries of the gate, are what their headers say."""

from __future__ import annotations

import pytest
from test_sql_headers import RATES, parsed, tables_read

import tracehouse
from tracehouse.resources import sql_texts
from tracehouse.warehouse.catalogue import live_views, relations
from tracehouse.warehouse.compose import composed
from tracehouse.warehouse.queries import load_queries

VIEWS = live_views()
QUERIES = load_queries("gate")
UNITS = {"-", "ns", "pct", "bytes", "flops"}
each_view = pytest.mark.parametrize("view", VIEWS, ids=[v.name for v in VIEWS])
each_query = pytest.mark.parametrize("name", QUERIES)


@pytest.fixture(scope="module")
def warehouse(repo_root, tmp_path_factory):
    out = tmp_path_factory.mktemp("live")
    tracehouse.analyze(repo_root / "data/samples", out, workers=1)
    with tracehouse.open(out) as opened:
        yield opened


@each_view
def test_columns_are_those_of_the_header(warehouse, view):
    rows = warehouse.sql(f"DESCRIBE {view.name}").to_pylist()
    assert [(r["column_name"], r["column_type"]) for r in rows] == [
        (c.name, c.type) for c in view.columns
    ]


@each_view
def test_reads_are_those_of_the_parse(view):
    assert sorted(view.reads) == sorted(tables_read(parsed(view.query)))
    known = {relation.name for relation in relations()} | {v.name for v in VIEWS}
    assert set(view.reads) <= known


@each_view
def test_grain_is_a_key(warehouse, view):
    key = ", ".join(view.grain)
    rows = warehouse.sql(f"SELECT {key} FROM {view.name}").fetchall()
    assert rows, "the samples must reach every view"
    assert len(set(rows)) == len(rows)


@each_view
def test_composed_equals_the_stored_view(warehouse, view):
    """What the gate evaluates from the texts is what the views say."""
    key = ", ".join(view.grain)
    query = f"SELECT * FROM {view.name} ORDER BY {key}"
    assert warehouse.sql(composed(query, {})) == warehouse.sql(query)


@pytest.mark.parametrize("folder", ["warehouse", "gate"])
def test_house_style(folder):
    for name, text in sql_texts(folder).items():
        assert "SELECT *" not in text, name
        assert max(len(line) for line in text.splitlines()) <= 100, name
        assert text.endswith(";\n"), name
    views = [*VIEWS, *(query.view for query in QUERIES.values())]
    for view in views:
        assert view.summary.endswith(".")
        for column in view.columns:
            if column.unit in RATES:
                assert column.name.endswith(RATES[column.unit])
                continue
            assert column.unit in UNITS
            is_plain = column.unit in ("-", "ns")  # ns of a value whose unit is always that
            assert is_plain or column.name.split("_")[-1] == column.unit


@each_query
def test_queries_read_what_they_say(name):
    view = QUERIES[name].view
    assert sorted(view.reads) == sorted(tables_read(parsed(view.query)))
