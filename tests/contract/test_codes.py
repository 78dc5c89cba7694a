"""The code table: every word once, in its form, and every word the code uses stands in it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tracehouse.errors import CODES, Severity, TracehouseError, UsageError
from tracehouse.findings import EXAMPLE_LENGTH, Findings

WORD = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def calls(path: Path) -> list[ast.Call]:
    return [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)]


def literal(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def test_each_word_is_written_once(repo_root):
    # CODES is a dict: a word written twice would lose its first meaning. So count in the source.
    source = repo_root / "pipeline/tracehouse/errors.py"
    words = [literal(c.args[0]) for c in calls(source) if called_name(c) == "Code"]
    assert set(words) == set(CODES)
    assert [word for word, times in Counter(words).items() if times > 1] == []


@pytest.mark.parametrize("code", CODES.values(), ids=list(CODES))
def test_code_is_complete(code):
    assert WORD.fullmatch(code.word)
    assert code.severity in set(Severity)
    assert code.meaning
    assert code.action
    assert (code.severity is Severity.ERROR) == code.action.startswith("nothing kept")


def used_words(path: Path) -> set[str]:
    """Collect the words given to Findings.add and to RejectedFile."""
    found = set()
    for call in calls(path):
        if called_name(call) == "add" and call.args:
            found.add(literal(call.args[0]))
        elif called_name(call) == "RejectedFile":
            found |= {literal(k.value) for k in call.keywords if k.arg == "code"}
    return {word for word in found if word and WORD.fullmatch(word)}


def test_used_words_sees_both_forms(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('found.add("A_A", 2)\nraise RejectedFile("x", code="B_B")\nnames.add("b")')
    assert used_words(module) == {"A_A", "B_B"}


def test_every_word_in_use_is_known(repo_root):
    package = repo_root / "pipeline/tracehouse"
    used = {path.name: used_words(path) for path in package.rglob("*.py")}
    assert any(used.values())
    assert {
        name: words - CODES.keys() for name, words in used.items() if words - CODES.keys()
    } == {}


def test_usage_error_carries_its_hint():
    error = UsageError("no such table", hint="try another")
    assert isinstance(error, TracehouseError)
    assert (str(error), error.code, error.hint) == ("no such table", "USAGE", "try another")


def test_findings_keep_count_first_event_and_example():
    found = Findings()
    found.add("BAD_NUMBER", 2, event_id=9, example="later")
    found.add("BAD_NUMBER", event_id=4, example="first" + "x" * EXAMPLE_LENGTH)
    found.add("BAD_NUMBER", 3, event_id=7, example="between")
    found.add("BAD_NUMBER", 0, event_id=0)  # nothing happened
    (finding,) = found
    assert (finding.count, finding.first_event_id) == (6, 4)  # 2 + 1 + 3
    assert finding.example is not None
    assert finding.example.startswith("first")
    assert len(finding.example) == EXAMPLE_LENGTH


def test_unknown_word_is_a_programming_error():
    with pytest.raises(KeyError):
        Findings().add("NO_SUCH_CODE")
