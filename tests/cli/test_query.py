"""`show`, `sql`, `schema`, `refresh`: as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

import tracehouse as package


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_show_says_where_the_time_went(tracehouse, warehouse):
    result = tracehouse("show", warehouse, "--trace", "good")
    assert result.returncode == 0, result.stderr
    assert "cut.json" not in result.stdout
    assert "device busy 57.14 %: 40.000 µs of 70.000 µs" in result.stdout  # 40 / 70
    assert "computation 30.000 µs (42.86 %)" in result.stdout  # 30 / 70
    assert "exposed copies 10.000 µs (14.29 %)" in result.stdout  # 10 / 70
    (op,) = [line for line in result.stdout.splitlines() if "aten::mm" in line]
    assert op.split()[-5:] == ["1", "30.000", "µs", "75.00", "%"]  # 30 of 40 µs


def test_show_names_the_checks_that_fail(tracehouse, warehouse):
    result = tracehouse("show", warehouse, "--trace", "good")
    failing = [line for line in result.stdout.splitlines() if line.startswith("  check: ")]
    # The copy, 10 of 40 µs, has no launch; the only op has no shapes.
    assert [line.partition(": this")[0] for line in failing] == [
        "  check: unlinked_pct is 25, expected at most 5",
        "  check: without_shapes_pct is 100, expected at most 10",
    ]


def test_ranks_that_are_missing_are_a_check(tracehouse, archive, tmp_path):
    for rank in (0, 2):
        text = (archive / "good.json").read_text(encoding="utf-8")
        job = f'"distributedInfo": {{"rank": {rank}, "world_size": 4}}'
        (tmp_path / f"{rank}.json").write_text(text.replace("{", f"{{{job}, ", 1))
    tracehouse("analyze", tmp_path / "0.json", tmp_path / "2.json", "-o", tmp_path / "out")
    query = "SELECT DISTINCT value, ok FROM checks WHERE name = 'missing_ranks'"
    found = tracehouse("sql", tmp_path / "out", query, "--format", "csv")
    assert found.stdout == "value,ok\n2.0,False\n"  # 1 and 3 of 4


def test_show_never_lets_a_name_control_the_terminal(tracehouse, warehouse):
    result = tracehouse("show", warehouse)
    assert "\x1b" not in result.stdout
    assert "gemm\\x1b" in result.stdout


def test_show_a_trace_without_gpu_work(tracehouse, tmp_path):
    (tmp_path / "cpu.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, '
        '"ts": 1, "dur": 2}]}'
    )
    tracehouse("analyze", tmp_path / "cpu.json", "-o", tmp_path / "out")
    result = tracehouse("show", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert "no GPU activity" in result.stdout


def test_show_a_table(tracehouse, warehouse):
    result = tracehouse("show", warehouse, "kernels", "--trace", "good", "--format", "csv")
    assert [(r["kind"], r["ts_ns"], r["dur_ns"]) for r in rows(result.stdout)] == [
        ("compute", "200000", "30000"),
        ("memcpy", "260000", "10000"),
    ]


def test_show_says_when_it_does_not_show_all(tracehouse, warehouse):
    result = tracehouse("show", warehouse, "events", "--limit", "2", "--format", "csv")
    assert len(rows(result.stdout)) == 2
    # 4 events of the whole trace and 3 of the cut one
    assert result.stderr == "2 of 7 rows shown; --limit 0 shows all.\n"
    whole = tracehouse("show", warehouse, "events", "--limit", "0", "--format", "csv")
    assert len(rows(whole.stdout)) == 7
    assert whole.stderr == ""


def test_show_finds_a_trace_by_id_path_and_name(tracehouse, warehouse, archive):
    everything = rows(tracehouse("show", warehouse, "--format", "csv").stdout)
    assert [r["path"] for r in everything] == [str(archive / n) for n in ("cut.json", "good.json")]
    good = everything[1]
    for start in (good["trace_id"], good["trace_id"][:8], good["path"], "good.j"):
        found = rows(tracehouse("show", warehouse, "--trace", start, "--format", "csv").stdout)
        assert found == [good]
    beside = tracehouse("show", warehouse, "--trace", "./good", "--format", "csv", cwd=archive)
    assert rows(beside.stdout) == [good]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "nope"), "No trace starts with 'nope'. Try: tracehouse show OUT traces"),
        (("nope",), "There is no table 'nope'. There are: "),
        (('x"; DROP TABLE traces; --',), "There is no table"),
        (("files", "--trace", "good"), "belong to no trace"),
    ],
)
def test_show_usage_errors(tracehouse, warehouse, arguments, words):
    result = tracehouse("show", warehouse, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr


QUERY = "SELECT name, direct_kernel_time_ns AS ns, NULL AS nothing FROM op_summary JOIN traces \
USING (trace_id) WHERE path LIKE '%good.json' AND name = 'aten::mm'"


def test_sql_formats(tracehouse, warehouse):
    assert tracehouse("sql", warehouse, QUERY, "--format", "csv").stdout == (
        "name,ns,nothing\naten::mm,30000,\n"
    )
    assert json.loads(tracehouse("sql", warehouse, QUERY, "--format", "json").stdout) == [
        {"name": "aten::mm", "ns": 30000, "nothing": None}
    ]
    assert tracehouse("sql", warehouse, QUERY).stdout.splitlines() == [
        "name          ns  nothing",
        "aten::mm  30,000",
    ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nope FROM traces", "nope"),
        ("SELEC 1", "syntax error"),
        ("DROP TABLE traces", "read-only"),
    ],
)
def test_sql_errors_are_duckdbs_words(tracehouse, warehouse, query, words):
    result = tracehouse("sql", warehouse, query)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", [("show",), ("sql",), ("schema",), ("refresh",)])
def test_a_folder_without_warehouse(tracehouse, tmp_path, arguments):
    query = ("SELECT 1",) if arguments == ("sql",) else ()
    result = tracehouse(*arguments, tmp_path, *query)
    assert (result.returncode, result.stdout) == (2, "")
    assert "tracehouse analyze" in result.stderr  # what to do about it


def test_schema_of_the_version_and_of_a_warehouse_agree(tracehouse, warehouse):
    ours = rows(tracehouse("schema", "--format", "csv").stdout)
    assert ours == rows(tracehouse("schema", warehouse, "--format", "csv").stdout)
    assert {"traces", "files", "issues", "events", "ops", "kernels", "op_summary"} <= {
        row["table"] for row in ours
    }
    assert [row for row in ours if not (row["type"] and row["unit"] and row["meaning"])] == []


def test_schema_of_one_table(tracehouse, warehouse):
    text = tracehouse("schema", "kernels").stdout
    assert text.startswith("kernels: ")
    (line,) = [line for line in text.splitlines() if line.split()[0] == "dur_ns"]
    assert line.split()[1:3] == ["BIGINT", "ns"]
    assert tracehouse("schema", warehouse, "kernels").stdout == text


def test_schema_of_no_table(tracehouse):
    result = tracehouse("schema", "nope")
    assert (result.returncode, result.stdout) == (2, "")
    assert "There is no table 'nope'. There are: " in result.stderr


def test_refresh_after_a_move(tracehouse, warehouse, tmp_path):
    count = ("SELECT count(*) AS n FROM kernels", "--format", "csv")
    shutil.copytree(warehouse, tmp_path / "first")
    assert tracehouse("refresh", tmp_path / "first").returncode == 0
    (tmp_path / "first").rename(tmp_path / "second")
    assert tracehouse("sql", tmp_path / "second", *count).stdout == "n\n3\n"  # at once
    assert tracehouse("check", tmp_path / "second").returncode == 1  # but for DuckDB alone
    result = tracehouse("refresh", tmp_path / "second")
    assert result.returncode == 0, result.stderr
    assert tracehouse("sql", tmp_path / "second", *count).stdout == "n\n3\n"  # 2 + 1


def test_python_opens_the_same(warehouse):
    with package.open(warehouse) as opened:
        assert opened.sql(QUERY).to_pylist() == [{"name": "aten::mm", "ns": 30000, "nothing": None}]
