"""What a person sees on a terminal: it fits, numbers stay whole, colour is theirs to refuse."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.cli import terminal

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
TEXTS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=40)


def on_terminal(*arguments, columns, **environment):
    """Run tracehouse with a terminal of so many columns as stdout, and return what it shows."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tracehouse", *map(str, arguments)],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**kept, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    read = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        read += part
    os.close(ours)
    assert process.wait() == 0
    return read.decode("utf-8").replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [50, 80, 140])
def test_show_fits_the_terminal(warehouse, columns):
    text = ESCAPE.sub("", on_terminal("show", warehouse, "--trace", "good", columns=columns))
    tables = [line for line in text.splitlines() if line.startswith("    ")]
    assert max(map(len, tables)) <= columns
    assert "30.000 µs" in text  # not broken
    assert " ".join(text.split()).count("expected at most") == 2  # checks are broken at blanks


def test_a_narrow_terminal_gets_a_block_a_row(warehouse):
    text = on_terminal("show", warehouse, "roofline", "--trace", "good", columns=40)
    lines = ESCAPE.sub("", text).splitlines()
    assert "  aten::mm" in lines
    assert any(re.fullmatch(r"    time +30\.000 µs", line) for line in lines)


def test_colour_only_where_it_is_wanted(warehouse, tracehouse):
    assert "\x1b[32mstatus ok\x1b[0m" in on_terminal("show", warehouse, columns=80)
    assert "\x1b" not in on_terminal("show", warehouse, columns=80, NO_COLOR="1")
    assert "\x1b" not in on_terminal("show", warehouse, columns=80, TERM="dumb")
    assert "\x1b" not in tracehouse("show", warehouse).stdout  # a pipe, such as to less


def test_widths_are_taken_from_the_widest_text():
    names, right = ("name", "shape", "time"), (False, False, True)
    rows = [("a" * 30, "b" * 20, "1.000 ms")]
    assert terminal.fitting_widths(names, rows, right, 62) == [30, 20, 8]  # 58 and two gaps
    assert terminal.fitting_widths(names, rows, right, 56) == [24, 20, 8]
    assert terminal.fitting_widths(names, rows, right, 36) == [12, 12, 8]
    assert terminal.fitting_widths(names, rows, right, 35) is None


@given(
    st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=5),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(1, 120),
)
def test_widths_fit_or_are_none(rows, right, available):
    widths = terminal.fitting_widths(("a", "head of two", "c"), rows, right, available)
    if widths is None:
        return
    assert sum(widths) + 4 <= available
    for place, is_right in enumerate(right):
        if is_right:
            assert widths[place] >= max(terminal.letters(row[place]) for row in rows)


@given(TEXTS, st.integers(2, 30))
def test_folding_loses_no_letter(text, width):
    lines = terminal._folded(text, width)
    assert all(terminal.letters(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_east_asian_letters_take_two_columns():
    assert [terminal.letters(t) for t in ("aten::mm", "核函数", "e\u0301", "µs")] == [8, 6, 1, 2]
