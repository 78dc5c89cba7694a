"""The warehouse as DuckDB alone sees it, in another process: read-only, from anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from warehouses import analyse, contents, drawn, query

from tracehouse.commands.refresh import refresh_warehouse

READER = """
import duckdb, sys
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    for line in sys.stdin:
        print(connection.sql(line).fetchall(), flush=True)
"""

JOIN = (
    "SELECT count(*), count(ops.event_id), count(traces.path) FROM kernels"
    " LEFT JOIN ops ON ops.trace_id = kernels.trace_id AND ops.event_id = kernels.op_id"
    " LEFT JOIN traces ON traces.trace_id = kernels.trace_id\n"
)
NAMES = "SELECT DISTINCT name FROM ops ORDER BY name\n"


def read(out, sql, folder):
    command = [sys.executable, "-c", READER, str(out / "warehouse.duckdb")]
    return subprocess.run(
        command, input=sql, capture_output=True, text=True, check=True, cwd=folder
    ).stdout.strip()


def test_kernels_join_ops_and_traces(tmp_path, repo_root, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples = repo_root / "data" / "samples"
    analyse(samples / "triton_block.json.gz", samples / "two_ranks", out=Path("out"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # The block has 12 kernels, each rank 7 and 2 copies: 12 + 2 · 9, all of them below an op.
    assert read(tmp_path / "out", JOIN, elsewhere) == "[(30, 30, 30)]"


def test_a_reader_keeps_its_state_while_a_run_goes_on(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    drawn(1).write(folder / "a.json")
    analyse(folder, out=out)
    command = [sys.executable, "-c", READER, str(out / "warehouse.duckdb")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:

        def ask(sql):
            reader.stdin.write(sql)
            reader.stdin.flush()
            return reader.stdout.readline().strip()

        assert ask(NAMES) == "[('aten::op1',)]"
        drawn(2).write(folder / "a.json")
        analyse(folder, out=out)
        assert query(out, NAMES) == [("aten::op2",)]
        assert ask(NAMES) == "[('aten::op1',)]"  # a view: its Parquet is still there
        assert ask("SELECT name FROM op_summary WHERE category <> '(no op)'\n") == (
            "[('aten::op1',)]"
        )


@pytest.mark.parametrize("name", ["moved", "it's [a] 'new' \"place\" *"])
def test_refresh_repoints_a_warehouse_that_was_moved(tmp_path, name):
    folder, out, moved = tmp_path / "in", tmp_path / "out", tmp_path / name
    drawn(1).write(folder / "a.json")
    drawn(2).write(folder / "b.json")
    analyse(folder, out=out)
    drawn(3).write(folder / "b.json")  # so that a part has rows that don't count
    analyse(folder, out=out)
    before = contents(out)
    out.rename(moved)
    refresh_warehouse(moved)
    assert contents(moved) == before
    assert read(moved, NAMES, tmp_path) == "[('aten::op1',), ('aten::op3',)]"
    drawn(4).write(folder / "c.json")  # and it goes on growing there
    assert analyse(folder, out=moved).unchanged == 2
    assert len(query(moved, NAMES)) == 3
