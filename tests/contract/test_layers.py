"""Imports point one way.

They are read from the syntax trees: one inside a function or under TYPE_CHECKING counts too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# Lower may not import higher, and none its neighbours on a level, but for NEIGHBOURS.
LEVELS = (
    {"errors", "units", "vocab"},
    {"compiled", "config", "findings", "resources", "spill", "stopwatch"},
    {"schema", "compute", "formulas", "triton"},
    {"ingest", "storage", "warehouse", "analysis", "serving", "pages"},
    {"commands"},
    {"cli", "__main__", ""},  # "" is the package itself: the Python interface
)
NEIGHBOURS = {
    ("warehouse", "storage"): "the warehouse is built from the lake's state",
    (
        "analysis",
        "warehouse",
    ): "summaries run the SQL views, which the warehouse parses and connects to",
    ("analysis", "serving"): "which steps are the steady state is a table of every trace",
    ("triton", "formulas"): "the inputs of a compiled kernel are read as those of any op",
    ("__main__", "cli"): "python -m tracehouse is the command line",
}
COMPUTE_MAY_IMPORT = {"__future__", "math", "numba", "numpy", "tracehouse", "typing"}


def level(package: str) -> int:
    return next(i for i, packages in enumerate(LEVELS) if package in packages)


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, known: Iterable[str]) -> set[str]:
    """Collect the modules of `known` and the other packages that `source` imports anywhere."""
    known = set(known)
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            for alias in node.names:
                if (node.module, alias.name) == ("tracehouse", "__version__"):
                    continue  # a word that anyone may read
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return {name if name.startswith("tracehouse") else name.split(".")[0] for name in found}


def package_of(module: str) -> str:
    """Return the part a module belongs to: tracehouse.cli.show → cli, tracehouse → nothing."""
    return module.partition(".")[2].partition(".")[0]


def is_allowed(importer: str, imported: str) -> bool:
    a, b = package_of(importer), package_of(imported)
    return a == b or level(b) < level(a) or (a, b) in NEIGHBOURS


@pytest.fixture(scope="module")
def edges(repo_root) -> dict[str, set[str]]:
    root = repo_root / "pipeline/tracehouse"
    paths = {module_name(path, root): path for path in root.rglob("*.py")}
    return {name: imports(path.read_text("utf-8"), paths) for name, path in paths.items()}


def inside(targets: Iterable[str]) -> set[str]:
    return {target for target in targets if target.split(".")[0] == "tracehouse"}


def test_every_part_has_a_level(edges):
    assert {package_of(module) for module in edges} <= set().union(*LEVELS)


def test_imports_point_downward(edges):
    wrong = {
        f"{module} imports {target}"
        for module, targets in edges.items()
        for target in inside(targets)
        if not is_allowed(module, target)
    }
    assert wrong == set()


def test_no_cycle(edges):
    graph = {module: inside(targets) - {module} for module, targets in edges.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' → '.join(error.args[1])}")


def test_compute_imports_numpy_and_numba_only(edges):
    taken = {
        f"{module} imports {target}"
        for module, targets in edges.items()
        if package_of(module) == "compute"
        for target in targets
        if target.split(".")[0] not in COMPUTE_MAY_IMPORT
    }
    assert taken == set()


def test_click_stays_in_cli(edges):
    assert {m for m, t in edges.items() if "click" in t and package_of(m) != "cli"} == set()


def test_one_module_opens_duckdb(repo_root):
    connects = {
        path.name
        for path in (repo_root / "pipeline/tracehouse").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "connect"
        and getattr(node.value, "id", "") == "duckdb"
    }
    assert connects == {"connection.py"}


def test_a_hidden_edge_is_seen():
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from tracehouse.cli import output\n"
        "def late():\n"
        "    import tracehouse.commands.show\n"
    )
    found = inside(imports(source, {"tracehouse.cli.output"}))
    assert found == {"tracehouse.cli.output", "tracehouse.commands.show"}
    assert not is_allowed("tracehouse.schema.tables", "tracehouse.cli.output")
    assert not is_allowed("tracehouse.storage.writer", "tracehouse.warehouse.query")
    assert is_allowed("tracehouse.cli.show", "tracehouse.commands.show")
