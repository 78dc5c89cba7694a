"""`tracehouse doctor`: as a user runs it."""

from __future__ import annotations

import json

import pytest


def test_a_page_for_people(tracehouse, archive):
    result = tracehouse("doctor", archive / "good.json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == str(archive / "good.json")
    assert lines[1].endswith("bytes, text, UTF-8, 1 trace")
    # total 200..270 = 70 µs; busy 30 + 10 = 40 µs; the copy, 10 of 40 µs, has no launch
    assert "busy 57.14 %: 40.000 µs of 70.000 µs" in result.stdout
    assert "unlinked_pct is 25, expected at most 5: " in result.stdout
    assert "without_shapes_pct is 100, expected at most 10: " in result.stdout
    assert any(line.startswith("    - Record shapes: profile(record_shapes=") for line in lines)
    assert max(map(len, lines[1:])) <= 100
    assert "\x1b" not in result.stdout


def test_as_json(tracehouse, archive):
    result = tracehouse("doctor", archive / "good.json", "--format", "json", "--reader", "ijson")
    page = json.loads(result.stdout)
    assert page["file"]["container"] == "text"
    (trace,) = page["traces"]
    assert (trace["status"], trace["events"]) == ("ok", 4)
    assert trace["gpu"]["busy_ns"] == 40_000
    assert {row["name"]: row["value"] for row in trace["failing"]} == {
        "unlinked_pct": 25.0,
        "without_shapes_pct": 100.0,
    }


@pytest.mark.parametrize("fmt", ["table", "json"])
def test_a_rejected_file_has_its_page_and_exits_with_1(tracehouse, archive, fmt):
    result = tracehouse("doctor", archive / "other.json", "--format", fmt)
    assert result.returncode == 1
    assert "NOT_A_TRACE" in result.stdout
    assert "looks like   JSON" in result.stdout or fmt == "json"
    assert result.stderr == ""


@pytest.mark.parametrize("name", ["nowhere.json", "."])
def test_usage_errors_exit_with_2(tracehouse, tmp_path, name):
    result = tracehouse("doctor", name, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
