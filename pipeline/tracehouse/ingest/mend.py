"""Mending one event: from text that is nearly JSON to JSON, with what was wrong in it.

A parser for one object that accepts what real exporters get wrong. Each mistake it knows is a row
of REPAIRS; whatever else it meets makes the event one that cannot be mended. It never guesses
beyond the event it is given.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

# What is mended: the code, what is recognised, what becomes of it (field_cases.md B).
REPAIRS = (
    ("REPAIRED_ESCAPE", "a bare quote in a string", "escaped"),
    (
        "REPAIRED_ESCAPE",
        "a backslash before a character that has no escape",
        "every one is literal",
    ),
    ("REPAIRED_CONTROL", "a raw control character in a string", "escaped"),
    ("REPAIRED_CONTROL", "a control character between values", "dropped"),
    ("REPAIRED_NUMBER", "NaN, Infinity, N/A or another bare word for a value", "null"),
    ("REPAIRED_SYNTAX", "a comma missing, doubled or trailing", "as it should be"),
    ("REPAIRED_SYNTAX", "a key or text without one of its quotes", "given"),
    ("REPAIRED_SYNTAX", "a key or text in single quotes", "in double quotes"),
)

# The keys of a trace event: they stand behind the end of a text, which tells it from a bare quote.
TOP_KEYS = (
    "ph",
    "cat",
    "name",
    "pid",
    "tid",
    "ts",
    "dur",
    "args",
    "id",
    "bp",
    "s",
    "tts",
    "tdur",
    "cname",
    "sf",
)
_TOP = "|".join(TOP_KEYS)
_SPACE = re.compile(r"[\x00-\x20\u00a0\ufeff]*")  # JSON allows four of them
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[\s,}\]]|\Z)", re.ASCII
)
_BARE = re.compile(r'[^\s,}\]"{\[:]{1,40}')
_BARE_KEY = re.compile(r'([A-Za-z_][\w .%()/-]{0,60}?)"?\s*:', re.ASCII)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_KEY_AHEAD = r'"(?:[^"\\\x00-\x1f]|\\.){0,80}"\s*:'

# What may stand behind the quote that ends a text, by where it stands. A text of the event itself
# that holds a bare quote already ends only before a key that events have: it may well hold
# `", "word":`.
_ENDS_KEY = re.compile(r"\s*:")
_ENDS_OBJECT = r",?\s*\}\s*(?:[,\]}{]|\Z)"
_ENDS_VALUE = re.compile(rf"\s*(?:(?:,\s*)*{_KEY_AHEAD}|{_ENDS_OBJECT}|\Z)")
_ENDS_TOP_VALUE = re.compile(
    rf'\s*(?:(?:,\s*)+"?(?:{_TOP})"?\s*:|"(?:{_TOP})"\s*:|{_ENDS_OBJECT}|\Z)'
)
_ENDS_BARE = re.compile(rf'\s*,\s*(?:{_TOP})"?\s*:')
_ENDS_ITEM = re.compile(r'\s*(?:,\s*["\[{0-9tfn-]|,?\s*\]\s*[,\]}])')
# A text without its last quote: the next key of the event follows in the middle of it.
_SWALLOWED = re.compile(rf',\s*"(?:{_TOP})"\s*:\s*["0-9{{-]')
_BEFORE_KEY = re.compile(rf"\s*,\s*{_KEY_AHEAD}")
_SINGLE = re.compile(r"'((?:[^'\\\x00-\x1f\"]|\\')*)'(?=\s*[,:}\]])")
_MISSING_COMMA = re.compile(_KEY_AHEAD)

_BEHIND_EVENT = re.compile(r"\s*(?:[,\]}]|\Z)")
_CORE_KEY = re.compile(r'"(ph|cat|name|pid|tid|ts|dur)"\s*[:=]')

_MOST_DEPTH = 60
_MOST_TRIES = 8
_LONGEST_TRIED = 1 << 14  # characters


@dataclass(frozen=True, slots=True)
class Mended:
    """An event as valid JSON, how often each code was met, and where in the given text it ends."""

    text: str
    codes: Counter[str]
    end: int


def mend(text: str, strict: bool = False) -> Mended | None:
    """Mend the object that `text` begins with; None if it cannot be.

    `strict`: not if a key of events then stands twice or is lost, as where two events run together.

    Where a bare quote was taken for the end of a text of the event and nothing fits behind it, the
    text is taken to go on (it may hold JSON of its own).
    """
    refused: set[int] = set()
    first: Mended | None = None
    for _ in range(_MOST_TRIES if len(text) <= _LONGEST_TRIED else 1):
        mender = _Mender(text, refused)
        try:
            end = mender.value(0, 0, _ENDS_VALUE)
        except _Beyond:
            end = -1
        if end >= 0 and not mender.lost_key():
            found = Mended("".join(mender.out), mender.codes, end)
            is_sure = not refused and not strict
            if _BEHIND_EVENT.match(text, end) and (is_sure or not mender.doubled_key()):
                return found
            first = first or (found if is_sure else None)
        if mender.last_end < 0:
            break
        refused = {quote for quote in refused if quote < mender.last_end} | {mender.last_end}
    return first


class _Beyond(Exception):
    """The text cannot be mended."""


class _Mender:
    def __init__(self, text: str, refused: set[int]) -> None:
        self.text = text
        self.refused = refused  # quotes that end no text
        self.last_end = -1  # the last quote that ended a text of the event itself
        self.swallowed: list[str] = []  # keys of events that stand inside a text
        self.keys: list[str] = []  # of the event itself
        self.out: list[str] = []
        self.codes: Counter[str] = Counter()

    def core_keys(self) -> list[str]:
        return [key[1:-1] for key in self.keys if _CORE_KEY.match(f"{key}:")]

    def lost_key(self) -> bool:
        """Whether a key of the event was lost to a text that went on for too long."""
        return not set(self.swallowed) <= set(self.core_keys())

    def doubled_key(self) -> bool:
        """Whether a key of the event stands twice."""
        return len(self.core_keys()) != len(set(self.core_keys()))

    def space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        if match is None:
            return at
        if match.group().strip(" \t\r\n"):
            self.codes["REPAIRED_CONTROL"] += 1
        return match.end()

    def char(self, at: int) -> str:
        return self.text[at : at + 1]

    def value(self, at: int, depth: int, ends: re.Pattern[str]) -> int:
        """Mend a value: the position behind it."""
        at = self.space(at)
        c = self.char(at)
        if c == '"':
            return self.string(at, ends, depth)
        if c in ("{", "["):
            if depth == _MOST_DEPTH:
                raise _Beyond
            return self.mapping(at, depth + 1) if c == "{" else self.array(at, depth + 1)
        return self.word(at)

    def word(self, at: int) -> int:
        """Mend a number or literal."""
        match = _NUMBER.match(self.text, at)
        if match:
            self.out.append(match.group())
            return match.end()
        if end := self.single(at):
            return end
        match = _BARE.match(self.text, at)
        if match is None:
            raise _Beyond
        known = match.group() in ("true", "false", "null")
        if not known:
            self.codes["REPAIRED_NUMBER"] += 1
        self.out.append(match.group() if known else "null")
        return match.end()

    def single(self, at: int) -> int:
        """Mend a text in single quotes: the position behind it, 0 if there is none."""
        match = _SINGLE.match(self.text, at)
        if match is None:
            return 0
        self.codes["REPAIRED_SYNTAX"] += 1
        self.out.append('"' + match[1].replace("\\'", "'") + '"')
        return match.end()

    def mapping(self, at: int, depth: int) -> int:
        self.out.append("{")
        at = self.space(at + 1)
        first = True
        while True:
            while self.char(at) == ",":  # doubled, leading or trailing
                self.codes["REPAIRED_SYNTAX"] += 1
                at = self.space(at + 1)
            if self.char(at) == "}":
                self.out.append("}")
                return at + 1
            if not first:
                self.out.append(",")
            first = False
            at = self.space(self.key(at))
            if depth == 1:
                self.keys.append(self.out[-1])
            if self.char(at) != ":":
                raise _Beyond
            self.out.append(":")
            at = self.space(self.value(at + 1, depth, _ENDS_VALUE))
            at = self.separator(at, "}")

    def array(self, at: int, depth: int) -> int:
        self.out.append("[")
        at = self.space(at + 1)
        first = True
        while True:
            while self.char(at) == ",":
                self.codes["REPAIRED_SYNTAX"] += 1
                at = self.space(at + 1)
            if self.char(at) == "]":
                self.out.append("]")
                return at + 1
            if not first:
                self.out.append(",")
            first = False
            at = self.space(self.value(at, depth, _ENDS_ITEM))
            at = self.separator(at, "]")

    def separator(self, at: int, closing: str) -> int:
        """Walk the comma behind a member; one before the closing bracket is counted."""
        c = self.char(at)
        if c == ",":
            behind = self.space(at + 1)
            if self.char(behind) != closing:
                return behind
            return at  # the loop counts it as a stray one
        if c == closing:
            return at
        if closing == "}" and _MISSING_COMMA.match(self.text, at):
            self.codes["REPAIRED_SYNTAX"] += 1
            return at
        raise _Beyond

    def key(self, at: int) -> int:
        if self.char(at) == '"':
            return self.string(at, _ENDS_KEY, 0)
        if end := self.single(at):
            return end
        match = _BARE_KEY.match(self.text, at)
        if match is None:
            raise _Beyond
        self.codes["REPAIRED_SYNTAX"] += 1
        self.out.append(f'"{match[1]}"')
        return match.end(1) + (self.char(match.end(1)) == '"')

    def string(self, at: int, ends: re.Pattern[str], depth: int) -> int:
        """Mend a string from its opening quote; `ends` is what stands behind the closing one."""
        text = self.text
        start = at = at + 1
        bare: list[int] = []
        impossible = control = unclosed = False
        while True:
            match = _PLAIN.match(text, at)
            at = match.end() if match else at
            c = self.char(at)
            if c == "":
                raise _Beyond
            if c == '"':
                if self.is_last(at, ends, depth, bool(bare)):
                    break
                swallowed = _comma_before(text, at)
                if (
                    depth == 1
                    and swallowed >= start
                    and swallowed not in self.refused
                    and _SWALLOWED.match(text, swallowed)
                ):
                    at, unclosed = swallowed, True
                    break
                bare.append(at - start)
                at += 1
            elif c == "\\":
                escape = _ESCAPE.match(text, at)
                if escape is None:
                    impossible = True
                    at += 1
                elif escape.group() == '\\"' and (
                    _BEFORE_KEY.match(text, at + 2)
                    or (impossible and self.is_last(at + 1, ends, depth, bool(bare)))
                ):
                    impossible = True
                    at += 1  # the backslash is literal and the quote the last
                else:
                    at = escape.end()
            else:
                control = True
                at += 1
        if depth == 1 and ends is _ENDS_VALUE:
            self.last_end = at
            self.swallowed += _CORE_KEY.findall(text, start, at) if bare else []
        self.codes["REPAIRED_ESCAPE"] += bool(bare or impossible)
        self.codes["REPAIRED_CONTROL"] += control
        self.codes["REPAIRED_SYNTAX"] += unclosed
        self.out.append(f'"{_escaped(text[start:at], bare, impossible, control)}"')
        return at if unclosed else at + 1

    def is_last(self, quote: int, ends: re.Pattern[str], depth: int, has_bare: bool) -> bool:
        """Whether the quote at `quote` ends its text."""
        if quote in self.refused:
            return False
        if depth == 1 and ends is _ENDS_VALUE:
            if _ENDS_BARE.match(self.text, quote + 1):
                return True
            if has_bare:
                ends = _ENDS_TOP_VALUE
        return ends.match(self.text, quote + 1) is not None


def _comma_before(text: str, at: int) -> int:
    """The position of the comma that stands before `at`, but for space; -1 if none does."""
    before = text[:at].rstrip(" \t\r\n") if at < 64 else text[at - 64 : at].rstrip(" \t\r\n")
    return at - len(text[max(at - 64, 0) : at]) + len(before) - 1 if before.endswith(",") else -1


def _escaped(content: str, bare: list[int], impossible: bool, control: bool) -> str:
    """Word the content of a string as JSON does."""
    if impossible:
        # Every single backslash is literal; a pair is one, as it always was.
        content = re.sub(
            r'\\\\|\\|"', lambda m: {"\\": "\\\\", '"': '\\"'}.get(m[0], m[0]), content
        )
    elif bare:
        pieces = []
        last = 0
        for quote in bare:
            pieces += [content[last:quote], '\\"']
            last = quote + 1
        content = "".join([*pieces, content[last:]])
    if control:
        content = re.sub(r"[\x00-\x1f]", lambda m: f"\\u{ord(m[0]):04x}", content)
    return content
