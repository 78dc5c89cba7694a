"""The generated reference pages are those that the code would write now."""

from __future__ import annotations

from click.testing import CliRunner

from tracehouse.cli.main import main
from tracehouse.errors import CODES


def written(folder) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}


def test_reference_is_fresh(repo_root, tmp_path):
    result = CliRunner().invoke(main, ["docs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    fresh = written(tmp_path)
    assert set(fresh) == {"tables.md", "codes.md", "formulas.md", "commands.md"}
    assert fresh == written(repo_root / "docs/reference"), "stale: run `make docs`"
    assert all(f"`{word}`" in fresh["codes.md"] for word in CODES)
