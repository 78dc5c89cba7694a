"""A wheel works outside the checkout: its SQL and data files are inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip(
    "hatchling", reason="building a wheel needs hatchling, which extra `dev` brings"
)


def run(arguments: list[str], **kwargs: object) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(arguments, capture_output=True, text=True, check=False, **kwargs)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def wheel(repo_root, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    run([*build, str(repo_root)])
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory) -> Path:
    """Install the wheel alone into a folder; its dependencies come from the tests' environment."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    run([*pip, "--target", str(folder), str(wheel)])
    return folder


@pytest.fixture
def outside(site, tmp_path):
    """Return a function that runs a command on the installed wheel outside the checkout."""
    # Nothing is compiled yet in its place; all but the scanner runs as Python too.
    environment = {**os.environ, "PYTHONPATH": str(site), "NUMBA_DISABLE_JIT": "1"}
    return lambda *arguments: run(list(arguments), cwd=tmp_path, env=environment).stdout


def test_everything_of_the_package_is_inside(repo_root, wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = repo_root / "pipeline"
    sources = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.suffix in (".py", ".css", ".js") or path.name == "py.typed"
    }
    sql = {
        f"tracehouse/{path.relative_to(repo_root)}" for path in (repo_root / "sql").rglob("*.sql")
    }
    assert sql
    arch = {
        f"tracehouse/{path.relative_to(repo_root)}"
        for path in (repo_root / "data" / "arch").glob("*.json")
    }
    assert arch
    assert sources | sql | arch | {"tracehouse/data/op_categories.csv"} <= inside


def test_nothing_else_is_inside(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tracehouse"}


def test_schema_runs_outside(outside, site):
    where = outside(sys.executable, "-c", "import tracehouse; print(tracehouse.__file__)")
    assert Path(where.strip()).is_relative_to(site)
    printed = outside(sys.executable, str(site / "bin" / "tracehouse"), "schema", "op_summary")
    assert "direct_kernel_time_ns" in printed


def test_analyze_runs_outside(outside, tmp_path):
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 1, "dur": 9}
    call = op | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 2, "dur": 1}
    kernel = op | {"cat": "kernel", "name": "relu", "pid": 0, "tid": 7, "ts": 4}
    linked = [event | {"args": {"correlation": 1}} for event in (call, kernel)]
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [op, *linked]}))
    tracehouse = [sys.executable, "-m", "tracehouse"]
    outside(*tracehouse, "analyze", "a.json", "-o", "out", "--workers", "1", "--reader", "ijson")
    query = "SELECT name, kernel_count FROM op_summary"
    assert outside(*tracehouse, "sql", "out", query, "--format", "csv") == (
        "name,kernel_count\naten::relu,1\n"
    )
