"""Values in words, as every page and the terminal write them.

Trace content is untrusted: control characters are shown by their escapes.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import unicodedata
from typing import Any

_NS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def cell(value: Any) -> str:
    """Return `value` as a table shows it: NULL empty, thousands separated, three decimals."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, decimal.Decimal | datetime.datetime | datetime.date):
        return str(value)
    return printable(as_json(value))


def duration(ns: int | float | None) -> str:
    """Return a time of `ns` nanoseconds in a fitting unit, e.g. `262.538 ms`; NULL is empty."""
    if ns is None:
        return ""
    for size, unit in _NS:
        if abs(ns) >= size:
            return f"{ns / size:,.3f} {unit}"
    return f"{ns:,.0f} ns"


def percentage(pct: float | None) -> str:
    """Return a percentage with two decimals, e.g. `97.71 %`; NULL is empty."""
    return "" if pct is None else f"{pct:.2f} %"


def printable(text: str, *, lines: bool = False) -> str:
    """Return `text` safe to show on a terminal.

    Control, format and surrogate characters become escapes; `lines` keeps line breaks and tabs,
    for messages of several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        c if c in kept or unicodedata.category(c) not in _UNPRINTABLE else _escape(c) for c in text
    )


def as_json(value: Any, is_ascii: bool = False) -> str:
    """Return `value` as JSON text; NaN and the infinities become null."""
    return json.dumps(_finite(value), ensure_ascii=is_ascii, default=_plain, allow_nan=False)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _finite(value: Any) -> Any:
    """Replace what JSON cannot say: NaN and the infinities become null, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
