"""Heads, numbers in words, data within HTML, Markdown, workbooks and CSV of a page."""

from __future__ import annotations

import csv
import json

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.pages import csv_files, html, markdown, xlsx
from tracehouse.pages.embed import page_data
from tracehouse.pages.model import Chart, Column, Fact, Page, Section, Table, shown
from tracehouse.pages.words import printable

HOSTILE = [
    "</script><script>alert(1)</script>",
    "=1+1",
    "+A1",
    "-A1",
    "@SUM(A1)",
    "a|b`c`",
    "\x1b[",
]


def page_of(rows: pa.Table, units: dict[str, str] | None = None, **more: object) -> Page:
    columns = tuple(Column(n, (units or {}).get(n, "-"), f"the {n}") for n in rows.column_names)
    table = Table("ops", "Ops", columns, rows)
    facts = [Fact("GPU busy", "57.14 %", "57.142857 %")]
    return Page(
        "a_b.json", "<b>", facts, ["one *two*"], [Section("s", "S", parts=[table])], "", **more
    )


@pytest.mark.parametrize(
    ("name", "unit", "head"),
    [
        ("gpu_time_ns", "ns", "GPU time [ns]"),
        ("share_pct", "pct", "share [%]"),
        ("tflops_s", "TFLOPS/s", "TFLOPS/s"),
        ("flops_per_byte", "flops/byte", "flops/byte"),
        ("data_moved_mib", "MiB", "data moved [MiB]"),
        ("r", "-", "requests"),
        ("step_id", "-", "step id"),
    ],
)
def test_heads_carry_units(name, unit, head):
    assert Column(name, unit, "").head == head


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(262_538_215, "ns", "262.538 ms"), (52.561, "pct", "52.56 %"), (None, "ns", ""),
     (1234, "-", "1,234"), (["a", "b"], "-", "a, b"), (0, "ns", "0 ns")],
)  # fmt: skip
def test_values_are_rounded_for_people(value, unit, text):
    assert shown(value, unit) == text


def decoded(column):
    words = column.get("words")
    if words is not None:
        return [None if place < 0 else words[place] for place in column["data"]]
    if column["kind"] == "big":
        return [None if value is None else int(value) for value in column["data"]]
    return column["data"]


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(),
            st.none() | st.text(),
            st.none() | st.booleans(),
        ),
        max_size=20,
    )
)
def test_data_survives_the_page(rows):
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    types = (pa.int64(), pa.float64(), pa.string(), pa.bool_())
    texts = columns[2] = [t and t.encode("utf-8", "replace").decode() for t in columns[2]]
    table = pa.table({n: pa.array(c, t) for n, c, t in zip("ifsb", columns, types, strict=True)})
    text = page_data(page_of(table), [])
    assert not set("<>&\u2028\u2029") & set(text)
    found = json.loads(text)["tables"]["ops"]
    assert found["count"] == len(rows)
    integers, floats, words, flags = (decoded(column) for column in found["columns"])
    assert integers == list(columns[0])
    assert flags == list(columns[3])
    assert words == [None if t is None else printable(t) for t in texts]
    finite = [f if f is not None and abs(f) < float("inf") else None for f in columns[1]]
    assert floats == finite  # exact: JSON holds the shortest text that reads back


def test_a_page_escapes_what_it_says():
    text = html.render(page_of(pa.table({"op": HOSTILE})))
    assert "alert(1)</script>" not in text
    assert '<p class="subtitle">&lt;b&gt;</p>' in text
    assert "plotly" not in text.lower()[:2000]  # no chart, no library
    assert len(text) < 60_000


def test_a_page_with_a_chart_has_the_library_once():
    page = page_of(pa.table({"op": ["a"], "x": [1]}))
    chart = Chart("bars", "B", "bars", {"table": "ops", "label": "op", "value": "x", "share": "x"})
    text = html.render(Page("t", "", [], [], [Section("s", "S", parts=[chart, *page.tables])], ""))
    assert text.count("<script>") == 2
    assert text.count("sha256-") == 2
    assert text.count('data-chart="0"') == 1


def test_markdown_holds_no_markup_of_names():
    rows = pa.table({"op": HOSTILE, "gpu_time_ns": [1_500] * 6 + [None]})
    text = markdown.render(
        page_of(rows, {"gpu_time_ns": "ns"}, summary={"ops": (7, ("op", "gpu_time_ns"))})
    )
    lines = text.splitlines()
    assert lines[0] == r"### a\_b.json"
    assert r"\<b\>" in lines
    assert "| `</script><script>alert(1)</script>` | 1.500 µs |" in lines
    assert r"| `a\|b'c'` | 1.500 µs |" in lines
    assert r"| `\x1b[` |  |" in lines
    assert r"- one \*two\*" in lines


def test_markdown_is_short():
    rows = pa.table({"op": [f"op{i}" * 100 for i in range(5_000)]})
    text = markdown.render(page_of(rows, summary={"ops": (8, ("op",))}))
    assert "(first 8 of 5,000)" in text
    assert len(text) < 2_000


def test_a_workbook_is_made_for_people(tmp_path):
    rows = pa.table(
        {
            "op": [*HOSTILE, "https://example.org", "x" * 40_000],
            "gpu_time_ns": [262_538_215, *[None] * 8],
            "share_pct": [46.32268636947733, *[0.5] * 8],
            "signature_id": [2**62 + 1, *[3] * 8],
            "fused": [["a", "b"], *[None] * 8],
            "partial": [True, *[False] * 8],
        }
    )
    xlsx.write(page_of(rows, {"gpu_time_ns": "ns", "share_pct": "pct"}), tmp_path / "p.xlsx")
    book = openpyxl.load_workbook(tmp_path / "p.xlsx")
    assert book.sheetnames == ["headline", "ops", "columns"]
    sheet = book["ops"]
    assert [cell.value for cell in sheet[1]] == [
        *("op", "GPU time [ns]", "share [%]", "signature id", "fused", "partial"),
    ]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("B2", "A1:F10")
    first = [cell.value for cell in sheet[2]]
    assert first == [HOSTILE[0], 262_538_215, 46.32268636947733, str(2**62 + 1), '["a", "b"]', True]
    assert (sheet["B2"].number_format, sheet["C2"].number_format) == ("#,##0", "0.00")
    assert [cell.data_type for cell in sheet["A"]] == ["s"] * 10  # no formula
    assert sheet["A3"].value == "=1+1"
    assert sheet["A8"].value == "\\x1b["
    assert sheet["A9"].hyperlink is None
    assert len(sheet["A10"].value) == 32_767
    assert book["headline"]["B4"].value == "57.14 %"


def test_csv_holds_the_stored_values(tmp_path):
    rows = pa.table({"op": ["=1+1", 'a"b'], "n": [1, None], "list": [[1, 2], None]})
    csv_files.write(page_of(rows), tmp_path / "out")
    with (tmp_path / "out" / "ops.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["op", "n", "list"], ["=1+1", "1", "[1, 2]"], ['a"b', "", ""]
        ]  # fmt: skip
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["ops.csv"]
