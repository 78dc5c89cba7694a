"""Starting up: nothing heavy is loaded before it is needed; errors become words and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import tracehouse
from tracehouse.cli.options import reports_errors
from tracehouse.errors import TracehouseError, UsageError

HEAVY = {"numba", "duckdb", "pyarrow", "ijson", "numpy", "rich", "fsspec"}


@pytest.mark.parametrize(
    "statement",
    [
        "import tracehouse",
        "from click.testing import CliRunner; from tracehouse.cli.main import main; "
        "assert CliRunner().invoke(main, ['show', '--help']).exit_code == 0",
    ],
)
def test_nothing_heavy_is_loaded(statement):
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    modules = {name.split(".")[0] for name in json.loads(loaded)}
    assert "tracehouse" in modules
    assert modules & HEAVY == set()


def test_the_python_interface():
    assert tracehouse.__all__ == ["__version__", "analyze", "open", "read"]
    assert tracehouse.__version__.count(".") == 2


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            UsageError("no such thing.", hint="Try another."),
            2,
            "Error: no such thing. Try another.\n",
        ),
        (TracehouseError("lake is broken", code="X"), 1, "Error: lake is broken\n"),
        (UsageError("bad \x1b[31mname"), 2, "Error: bad \\x1b[31mname\n"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (MemoryError(), 1, "Error: there is not enough memory. Nothing half-written counts.\n"),
    ],
)
def test_errors_become_words_and_exit_codes(error, code, words):
    @click.command()
    @reports_errors
    def failing() -> None:
        raise error

    result = CliRunner().invoke(failing)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith(words)
    assert "Traceback" not in result.stderr


def test_a_bug_is_not_hidden():
    @click.command()
    @reports_errors
    def broken() -> None:
        raise ZeroDivisionError

    assert isinstance(CliRunner().invoke(broken).exception, ZeroDivisionError)
