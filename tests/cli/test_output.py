"""How values are written: NULL, big numbers, odd floats, lists, names that harm a terminal."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.cli.output import cell, duration, emit, percentage, printable

TABLE = pa.table(
    {
        "name": pa.array(["aten::mm", None, 'a,"b"\n'], pa.string()),
        "time_ns": pa.array([1234567, None, -1], pa.int64()),
        "pct": pa.array([12.34567, float("nan"), None], pa.float64()),
        "dims": pa.array([[[2, 3], []], None, [None]], pa.list_(pa.list_(pa.int64()))),
    }
)


def test_table_when_piped(capsys):
    emit(TABLE, "table")
    # Numbers to the right, thousands separated; NULL is empty; a line break is shown as its escape.
    assert capsys.readouterr().out.splitlines() == [
        "name        time_ns     pct  dims",
        "aten::mm  1,234,567  12.346  [[2, 3], []]",
        f"{'':8}  {'':9}     nan",
        'a,"b"\\n          -1          [null]',
    ]


def test_csv_keeps_numbers_whole(capsys):
    emit(TABLE, "csv")
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows == [
        ["name", "time_ns", "pct", "dims"],
        ["aten::mm", "1234567", "12.34567", "[[2, 3], []]"],
        ["", "", "nan", ""],
        ['a,"b"\n', "-1", "", "[null]"],
    ]


def test_json_is_an_array_with_one_row_a_line(capsys):
    emit(TABLE, "json")
    text = capsys.readouterr().out
    assert len(text.splitlines()) == 3
    assert json.loads(text) == [
        {"name": "aten::mm", "time_ns": 1234567, "pct": 12.34567, "dims": [[2, 3], []]},
        {"name": None, "time_ns": None, "pct": None, "dims": None},  # JSON has no NaN
        {"name": 'a,"b"\n', "time_ns": -1, "pct": None, "dims": [None]},
    ]


@pytest.mark.parametrize(("fmt", "text"), [("table", "n\n"), ("csv", "n\n"), ("json", "[]\n")])
def test_no_rows(capsys, fmt, text):
    emit(pa.table({"n": pa.array([], pa.int64())}), fmt)
    assert capsys.readouterr().out == text


def test_integers_beyond_a_double_are_exact(capsys):
    big = decimal.Decimal(2**63 + 1)  # DuckDB's HUGEINT arrives as a decimal
    emit(pa.table({"n": pa.array([big], pa.decimal128(38, 0))}), "json")
    assert json.loads(capsys.readouterr().out) == [{"n": 9223372036854775809}]


def test_times_are_iso(capsys):
    at = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)
    emit(pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))}), "json")
    assert json.loads(capsys.readouterr().out) == [{"at": "2024-05-06T07:08:09+00:00"}]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, ""),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.500 µs"),
        (262_538_000, "262.538 ms"),
        (-2_000_000, "-2.000 ms"),
        (3_600_000_000_000, "3,600.000 s"),
    ],
)
def test_duration(ns, text):
    assert duration(ns) == text


def test_percentage():
    assert (percentage(97.7149), percentage(0.0), percentage(None)) == ("97.71 %", "0.00 %", "")


def test_cell_tells_true_from_one():
    assert (cell(True), cell(1), cell(0), cell(None)) == ("true", "1", "0", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gemm<µ>", "gemm<µ>"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\x07", "a\\rb\\x07"),
        ("\u202egnp.exe", "\\u202egnp.exe"),  # right-to-left override
        ("\ud800", "\\ud800"),  # lone surrogate: cannot be encoded
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown


@given(st.text())
def test_printable_never_lets_a_control_character_through(text):
    shown = printable(text)
    shown.encode("utf-8")
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)


def test_markup_in_names_is_shown_as_it_is(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    emit(pa.table({"[bold]n": ["[red]x[/red]", "[/oops]"]}), "table")
    out = capsys.readouterr().out
    assert "[bold]n" in out
    assert "[red]x[/red]" in out
    assert "[/oops]" in out
