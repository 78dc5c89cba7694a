"""The header parser and the order of views."""

from __future__ import annotations

import pytest

from tracehouse.errors import TracehouseError
from tracehouse.resources import data_text, sql_texts
from tracehouse.warehouse.views import ViewColumn, comment, in_reading_order, parse_view

TEXT = """\
-- Kernels that are long,
-- by their length.
--
-- grain:   one row per (trace_id, event_id)
-- reads:   kernels, _other
-- columns:
--   trace_id  VARCHAR     -   trace the row belongs to
--   event_id  BIGINT      -   the kernel
--   dims      BIGINT[][]  -   with: a colon; and more
--   long_ns   BIGINT      ns  how long
-- notes:
--   First line.
--   Second line.
CREATE OR REPLACE VIEW long_kernels AS
SELECT trace_id -- a comment in the body
FROM kernels;
"""


def test_every_section_is_read():
    view = parse_view("long_kernels", TEXT)
    assert view.summary == "Kernels that are long, by their length."
    assert view.grain == ("trace_id", "event_id")
    assert view.reads == ("kernels", "_other")
    assert view.columns[2] == ViewColumn("dims", "BIGINT[][]", "-", "with: a colon; and more")
    assert view.columns[3].unit == "ns"
    assert view.notes == "First line. Second line."
    assert view.query == "SELECT trace_id -- a comment in the body\nFROM kernels"


def test_a_leading_underscore_is_private():
    private = parse_view("_long", TEXT.replace("VIEW long_kernels", "VIEW _long"))
    assert private.is_private
    assert not parse_view("long_kernels", TEXT).is_private


def test_rows_are_ordered_by_key_and_ranked_ones_by_time():
    assert parse_view("long_kernels", TEXT).order_by == (
        '"trace_id" NULLS LAST, "event_id" NULLS LAST'
    )
    ranked = TEXT.replace("long_ns ", "time_ns ").replace(
        "-- notes:", "--   cumulative_pct  DOUBLE  pct  so far\n-- notes:"
    )
    assert parse_view("long_kernels", ranked).order_by == (
        '"trace_id" NULLS LAST, "time_ns" DESC NULLS LAST, "event_id" NULLS LAST'
    )


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("-- grain:   one row per (trace_id, event_id)", "-- grain:   a kernel"),
        ("-- columns:", "-- notes:"),
        ("BIGINT      ns  how long", "BIGINT  ns"),
        ("-- Kernels that are long,\n-- by their length.\n", ""),
        ("VIEW long_kernels", "VIEW other_name"),
        ("FROM kernels;", "FROM kernels"),
        ("FROM kernels;", "FROM kernels; DROP VIEW x;"),
    ],
)
def test_a_malformed_file_is_named(good, bad):
    assert good in TEXT
    with pytest.raises(TracehouseError, match="long_kernels") as caught:
        parse_view("long_kernels", TEXT.replace(good, bad))
    assert caught.value.code == "BAD_VIEW"


def view_reading(name, *reads):
    text = TEXT.replace("long_kernels", name).replace("kernels, _other", ", ".join(reads))
    return parse_view(name, text)


def test_views_follow_what_they_read():
    views = [view_reading("a", "b", "c"), view_reading("b", "c"), view_reading("c", "kernels")]
    assert [v.name for v in in_reading_order(views)] == ["c", "b", "a"]


def test_a_circle_is_named():
    with pytest.raises(TracehouseError, match="a, b: read each other in a circle"):
        in_reading_order([view_reading("a", "b"), view_reading("b", "a")])


def test_comments_carry_the_unit():
    assert comment("how long", "ns") == "how long [ns]"
    assert comment("a name", "-") == "a name"


def test_resources_are_found_and_missing_ones_named(repo_root):
    names = {path.stem for path in (repo_root / "sql/trace").glob("*.sql")}
    assert set(sql_texts("trace")) == names
    for find, name in ((sql_texts, "nowhere"), (data_text, "nothing.csv")):
        with pytest.raises(TracehouseError, match=name) as caught:
            find(name)
        assert caught.value.code == "RESOURCE_MISSING"


def test_data_is_text(repo_root):
    path = repo_root / "data/op_categories.csv"
    assert data_text("op_categories.csv") == path.read_text("utf-8")
