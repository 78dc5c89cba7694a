"""The tutorial prints what it says."""

from __future__ import annotations

import importlib.util
import re


def test_the_commands_print_what_the_tutorial_says(repo_root, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(repo_root / "pipeline"))
    path = repo_root / "docs/write_tutorial.py"
    spec = importlib.util.spec_from_file_location("write_tutorial", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.TUTORIAL.read_text("utf-8")
    assert text.count("\n$ ") >= 9
    assert without_seconds(script.written(text, tmp_path)) == without_seconds(text)


def without_seconds(text: str) -> str:
    return re.sub(r"\d+\.\d\d s;", "… s;", text)
