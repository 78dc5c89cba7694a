"""The table of a page in a browser: many rows, large integers, unknown values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tracehouse.pages import html
from tracehouse.pages.model import Column, Page, Section, Table

ROWS = 50_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Write a page of 50,000 rows: i-th largest time, some unknown, ids beyond 2^53."""
    rows = pa.table(
        {
            "op": [f"aten::op{i % 977}" for i in range(ROWS)],
            "shapes": [f"[[{i}, {i % 7}], [{i % 31}]]" for i in range(ROWS)],
            "gpu_time_ns": pa.array(
                [None if i % 10 == 3 else (i * 7919) % ROWS for i in range(ROWS)]
            ),
            "share_pct": [100.0 * ((i * 31) % ROWS) / ROWS for i in range(ROWS)],
            "signature_id": [2**62 + (i * 37) % ROWS for i in range(ROWS)],
        }
    )
    units = {"gpu_time_ns": "ns", "share_pct": "pct"}
    columns = tuple(Column(name, units.get(name, "-"), f"the {name}") for name in rows.column_names)
    table = Table("many", "Many", columns, rows)
    path = tmp_path_factory.mktemp("large") / "large.html"
    page = Page("Large", "", [], [], [Section("all", "All", parts=[table])], "")
    path.write_text(html.render(page), encoding="utf-8")
    return path


def test_many_rows_stay_usable(large, opened):
    """Each step must be a matter of well under a second, and the page hold few rows."""
    with opened(large) as shown:
        took = shown.page.evaluate(
            """() => {
                const grid = grids[0], times = [];
                const timed = (act) => { const t = performance.now(); act();
                    times.push(performance.now() - t); };
                timed(() => grid.sortBy(2));
                timed(() => grid.sortBy(1));
                timed(() => { grid.filter = "aten::op5 31]"; grid.arrange(); });
                timed(() => grid.turn(1));
                return times;
            }"""
        )
        assert max(took) < 1_500, took
        assert shown.page.locator("tbody tr").count() <= 50
        assert large.stat().st_size < 5_000_000


def test_unknown_values_come_last_both_ways(large, opened):
    with opened(large) as shown:
        times = [None if i % 10 == 3 else (i * 7919) % ROWS for i in range(ROWS)]
        known = sorted(t for t in times if t is not None)
        shown.sort("many", "gpu_time_ns")
        assert shown.exact("many")[0]["gpu_time_ns"] == f"{known[-1]:,} ns"
        shown.sort("many", "gpu_time_ns")
        assert shown.exact("many")[0]["gpu_time_ns"] == f"{known[0]:,} ns"
        shown.page.evaluate("() => { grids[0].page = Math.floor(50000 / 15); grids[0].fill(); }")
        assert {row["gpu_time_ns"] for row in shown.exact("many")} == {""}


def test_large_integers_are_exact_and_in_order(large, opened):
    with opened(large) as shown:
        shown.sort("many", "signature_id")
        expected = [str(2**62 + ROWS - 1 - i) for i in range(15)]
        assert [row["signature_id"] for row in shown.shown("many")] == expected
        shown.filter("many", f"signature_id:{2**62 + 5}")
        assert str(2**62 + 5) in {row["signature_id"] for row in shown.shown("many")}


def test_pages_of_rows(large, opened):
    with opened(large) as shown:
        assert shown.page.inner_text(".count") == "1–15 of 50,000 rows"
        shown.page.click("[aria-label='Next rows']")
        assert shown.page.inner_text(".count") == "16–30 of 50,000 rows"
        shown.page.select_option("[aria-label='Rows a page']", "200")
        assert shown.page.locator("tbody tr").count() == 200
        shown.filter("many", "op12")
        assert shown.page.inner_text(".count").endswith("(50,000 in all)")
        assert shown.said == []
