"""The commands that docs/nightly.md shows can be given like that."""

from __future__ import annotations

import re
import shlex

import pytest
from commandline import run

from tracehouse.cli.main import main


def commands(repo_root) -> list[list[str]]:
    text = (repo_root / "docs" / "nightly.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    found = (re.search(r"(?:^|[ /=])tracehouse ((?:analyze|sql) .*)$", line) for line in lines)
    return [shlex.split(re.sub(r" 2>> \S+$", "", match[1])) for match in found if match]


def test_there_are_some(repo_root):
    assert len(commands(repo_root)) >= 7


def test_their_options_exist(repo_root):
    for words in commands(repo_root):
        command = main.commands[words[0]]
        try:
            context = command.make_context(words[0], words[1:])  # parsed, not run
        except Exception as error:
            pytest.fail(f"{words}: {error}")
        assert context.params["out"]


def test_the_query_on_runs_can_be_asked(repo_root, tmp_path):
    (query,) = [
        words[2] for words in commands(repo_root) if words[0] == "sql" and "runs" in words[2]
    ]
    empty = tmp_path / "in"
    empty.mkdir()
    out = str(tmp_path / "out")
    assert run("analyze", str(empty), "-o", out).returncode == 0
    result = run("sql", out, query, "--format", "csv")
    assert result.returncode == 0, result.stderr
    header, row = result.stdout.splitlines()
    assert header == "started_at,seconds,files,unchanged,traces_rejected,error"
    assert row.endswith(",0,0,0,")
