"""`report`: as a user runs it."""

from __future__ import annotations

import csv
import io

import openpyxl
import pytest


def test_a_page_of_one_trace(tracehouse, warehouse, tmp_path):
    path = tmp_path / "good.html"
    result = tracehouse("report", warehouse, "--trace", "good", "-o", path)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    text = path.read_text(encoding="utf-8")
    assert "<h1>good.json</h1>" in text
    assert '<dt>GPU busy</dt><dd title="57.142857142857146 %">57.14 %</dd>' in text  # 40 / 70
    assert "Check unlinked_pct is 25, expected at most 5" in text
    assert "http-equiv" in text
    assert [p.name for p in tmp_path.iterdir()] == ["good.html"]  # no temporary file is left


def test_markdown_goes_to_stdout(tracehouse, warehouse):
    result = tracehouse("report", warehouse, "--trace", "good", "--format", "md")
    assert result.returncode == 0, result.stderr
    assert "GPU busy **57.14 %**" in result.stdout
    assert "| `aten::mm` | `GEMM` | 1 | 30.000 µs | 75.00 % |" in result.stdout
    assert "\x1b" not in result.stdout
    assert len(result.stdout) < 5_000


def test_the_suffix_tells_the_format(tracehouse, warehouse, tmp_path):
    result = tracehouse("report", warehouse, "-o", tmp_path / "all.xlsx")
    assert result.returncode == 0, result.stderr
    book = openpyxl.load_workbook(tmp_path / "all.xlsx")
    assert book.sheetnames[0] == "headline"
    found = {row[0].value for row in book["traces"].iter_rows(min_row=2)}
    assert found == {"good.json", "cut.json"}


def test_csv_is_a_folder_of_tables(tracehouse, warehouse, tmp_path):
    result = tracehouse(
        "report", warehouse, "--trace", "good", "--format", "csv", "-o", tmp_path / "c"
    )
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "c" / "kernels.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["gpu_time_ns"], r["share_pct"]) for r in rows] == [
        ("30000", "75.0"),
        ("10000", "25.0"),
    ]


def test_a_rejected_trace_has_its_reason(tracehouse, archive, tmp_path):
    tracehouse("analyze", archive / "other.json", "-o", tmp_path / "out")
    result = tracehouse("report", tmp_path / "out", "--trace", "other", "--format", "md")
    assert result.returncode == 0, result.stderr
    assert "status **rejected**" in result.stdout
    assert "not a trace" in result.stdout
    whole = tracehouse("report", tmp_path / "out", "--format", "md")
    assert "rejected **1**" in whole.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "needs a file. Try: -o report.html"),
        (("--trace", "nope", "-o", "x.html"), "No trace starts with 'nope'"),
        (("--label", "nope", "-o", "x.html"), "No trace has the label 'nope'. There are: "),
        (("--trace", "g", "--label", "l", "-o", "x.html"), "exclude each other"),
        (("-o", "."), "is a folder"),
    ],
)
def test_usage_errors(tracehouse, warehouse, tmp_path, arguments, words):
    result = tracehouse("report", warehouse, *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_several_traces_are_named(tracehouse, warehouse, archive, tmp_path):
    result = tracehouse("report", warehouse, "--trace", archive, "-o", tmp_path / "x.html")
    assert result.returncode == 2
    assert "2 traces start with" in result.stderr
    assert "good.json" in result.stderr


def test_a_folder_that_is_not_there(tracehouse, warehouse, tmp_path):
    result = tracehouse("report", warehouse, "-o", tmp_path / "no" / "x.html")
    assert result.returncode == 1
    assert "no/x.html" in result.stderr or "No such file" in result.stderr
