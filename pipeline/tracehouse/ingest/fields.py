"""Which JSON key of an event fills which column, and what a value of any type becomes there.

This is the meaning of an event, shared by both readers. The scanner has a fast path that gives the
same result for ordinary values; whatever is not ordinary comes here (`row_of`).
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tracehouse.units import INT64_MAX, INT64_MIN, ns_of_us

# Top-level keys → columns. Matched exactly.
WORD_KEYS = {
    "ph": "ph",
    "cat": "cat",
    "name": "name",
    "pid": "pid",
    "tid": "tid",
    "bp": "bp",
    "s": "scope",
}
TIME_KEYS = {"ts": "ts_ns", "dur": "dur_ns"}
TOP_INT_KEYS = {"id": "flow_id"}
ARGS_KEY = "args"

# Keys of args → columns. Matched without regard to case (field_cases F23); the last one wins.
ARG_INT_KEYS = {
    "correlation": "correlation",
    "external id": "external_id",
    "device": "device",
    "stream": "stream",
    "sycl queue": "stream",  # the stream of Intel's kernels (F33)
    "sequence number": "sequence_number",
    "fwd thread id": "fwd_thread_id",
    "python id": "python_id",
    "python parent id": "python_parent_id",
    "bytes": "bytes",
    "graph id": "graph_id",
    "graph node id": "graph_node_id",
}
ARG_TEXT_KEYS = {
    "input dims": "input_dims",
    "input type": "input_types",
    "input strides": "input_strides",
    "concrete inputs": "concrete_inputs",
    "collective name": "collective_name",
    "kernel_name": "kernel_name",  # these and the next: what Triton's launcher says of a kernel
    "kernel_hash": "kernel_hash",
    "kernel_file": "kernel_file",
    "kernel_kwargs": "kernel_kwargs",
    "num_warps": "num_warps",
    "num_stages": "num_stages",
    "kernel_num_gb": "kernel_num_gb",
    "kernel_flop": "kernel_flop",
    "grid": "grid",  # of the launcher, and of the kernel on the GPU
}

NUMBER_COLUMNS = (
    *TIME_KEYS.values(),
    *TOP_INT_KEYS.values(),
    *dict.fromkeys(ARG_INT_KEYS.values()),  # two keys may fill one column
)
WORD_COLUMNS = (*WORD_KEYS.values(), *ARG_TEXT_KEYS.values())

# A pid or tid stands as text; one that looks like an integer is an integer unless `extra` says
# otherwise.
ID_COLUMNS = frozenset({"pid", "tid"})
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_HANDLE = re.compile(r"0[xX][0-9a-fA-F]{1,16}", re.ASCII)

# A decimal with more digits behind the point than this is written with an exponent.
MAX_PLAIN_DIGITS = 400


@dataclass(slots=True)
class Row:
    """One event as columns. Absent values are absent from the dictionaries."""

    numbers: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    args: str | None = None
    extra: str | None = None
    findings: list[str] = field(default_factory=list)


def row_of(event: dict[str, Any]) -> Row:
    """Turn one event, parsed with exact numbers (int and Decimal), into a row.

    Never fails: a value that its column cannot hold is NULL there, stays in `extra` (or in `args`),
    and BAD_NUMBER or DUR_INVALID is among the findings where a number was due.
    """
    row = Row()
    extra: dict[str, Any] = {}
    for key, value in event.items():
        if key == ARGS_KEY:
            row.args = json_text(value)
            if isinstance(value, dict):
                _read_args(value, row)
        elif (column := WORD_KEYS.get(key)) is not None:
            if not _read_word(column, value, row):
                extra[key] = value
        elif (column := TIME_KEYS.get(key)) is not None:
            if not _read_time(column, value, row):
                extra[key] = value
        elif (column := TOP_INT_KEYS.get(key)) is not None:
            if not _read_flow_id(column, value, row):
                extra[key] = value
        else:
            extra[key] = value
    if extra:
        row.extra = json_text(extra)
    if event.get("ts") is None and row.words.get("ph") == "X":
        row.findings.append("BAD_NUMBER")  # a complete event without a time (field_cases F28)
    return row


def _read_word(column: str, value: Any, row: Row) -> bool:
    """Store a word; False if the column cannot give back the value that stood there."""
    if isinstance(value, str):
        row.words[column] = plain_text(value)
        return column not in ID_COLUMNS or _INTEGER.fullmatch(value) is None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    row.words[column] = str(value) if isinstance(value, int) else json_text(value)
    return column in ID_COLUMNS and isinstance(value, int)


def _read_time(column: str, value: Any, row: Row) -> bool:
    """Store a time in ns; False if the column cannot give back the value that stood there."""
    ns, exact = ns_of_us(value)
    if ns is None:
        if value is not None:
            row.findings.append("DUR_INVALID" if exact and column == "dur_ns" else "BAD_NUMBER")
        return False
    if column == "dur_ns" and ns < 0:
        row.findings.append("DUR_INVALID")
        return False
    row.numbers[column] = ns
    return exact


def _read_flow_id(column: str, value: Any, row: Row) -> bool:
    if isinstance(value, int) and not isinstance(value, bool) and INT64_MIN <= value <= INT64_MAX:
        row.numbers[column] = value
        return True
    return False


def _read_args(args: dict[str, Any], row: Row) -> None:
    for key, value in args.items():
        folded = key.lower()
        if (column := ARG_INT_KEYS.get(folded)) is not None:
            number = _integer(value)
            if number is None:
                row.numbers.pop(column, None)
                if value is not None:
                    row.findings.append("BAD_NUMBER")
            else:
                row.numbers[column] = number
        elif (column := ARG_TEXT_KEYS.get(folded)) is not None:
            row.words[column] = json_text(value)


def _integer(value: Any) -> int | None:
    """An int, an integral decimal, or the text of an integer or a handle (0x55d0), as an integer.

    None for all else.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if len(text) < 25 and _INTEGER.fullmatch(text):
            value = int(text)
        else:
            value = int(text, 16) if _HANDLE.fullmatch(text) else None
    elif isinstance(value, Decimal):
        value = int(value) if value.adjusted() < 20 and value == value.to_integral_value() else None
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return value
    return None


LONGEST_INTEGER = 4_000  # digits that Python reads as an int


def parsed_json(text: str | bytes, **hooks: Any) -> Any:
    """Parse JSON with exact numbers: int, or Decimal. `hooks` go to `json.loads`.

    Raises ValueError for text that is no JSON, RecursionError for one nested too deep.
    """
    return json.loads(text, parse_float=Decimal, parse_int=_exact_integer, **hooks)


def _exact_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= LONGEST_INTEGER else Decimal(text)


def plain_text(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, replaced by `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# The encoder writes a Decimal as a text that nobody else can have written; then its quotes go.
_MARK = secrets.token_hex(16)
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


def _marked(value: Any) -> str:
    if not isinstance(value, Decimal):
        raise TypeError(type(value).__name__)
    exponent = value.as_tuple().exponent
    plain = isinstance(exponent, int) and -MAX_PLAIN_DIGITS <= exponent <= 0
    return _MARK + (format(value, "f") if plain else str(value))


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_marked).encode
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any) -> str:
    """Write a parsed JSON value in the one canonical way.

    No white space, digits as they stood, `\\uXXXX` decoded.
    Two texts of equal value give equal results, whichever reader parsed them. Lone surrogates stay
    escaped.
    """
    text = _encode(value)
    if _MARK in text:
        text = _MARKED.sub(r"\1", text)
    return text if text.isascii() else _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", text)
