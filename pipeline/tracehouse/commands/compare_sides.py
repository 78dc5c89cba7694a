"""The sides of a comparison: what the user wrote, and the traces that it means.

A side is a trace's file or a folder of them, which are analysed for the purpose; a warehouse; or
traces chosen from a warehouse: OUT:SELECTOR, or a SELECTOR alone where a warehouse is given.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehouse.commands.analyze import analyze
from tracehouse.commands.show import is_meant
from tracehouse.errors import UsageError
from tracehouse.ingest.recognise import is_url
from tracehouse.storage.address import shown
from tracehouse.vocab import Status
from tracehouse.warehouse.queries import load_queries
from tracehouse.warehouse.query import Warehouse, holds_warehouse

Row = Mapping[str, Any]

_NEXT_SELECTOR = re.compile(r",(?=(?:label|date|trace|last):)")
_DAY_US = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1)
_GRAMMAR = (
    "SELECTOR is label:NAME, date:DAY, date:DAY..DAY, trace:START or last:N; joined by commas"
)


@dataclass(frozen=True, slots=True)
class Side:
    """One side: the traces of a warehouse that it means.

    given: as the user wrote it. paths: of its traces, in the order in which they were recorded.
    partial: how many of them are cut or lack events. rejected: traces it means as well, of which
    nothing could be read.
    """

    given: str
    out: Path
    trace_ids: tuple[str, ...]
    paths: tuple[str, ...]
    partial: int
    rejected: int


def find_side(given: str, within: Path | None, scratch: Path) -> Side:
    """Return the side that `given` means.

    Args:
        given: a file, folder, glob or URL of traces, OUT, OUT:SELECTOR, or a SELECTOR of `within`.
        within: the warehouse that a lone selector is of; None if there is none. What fits none of
            its traces is taken for a path.
        scratch: folder that is not there yet, for the warehouse of traces that are in none.

    Raises:
        UsageError: it means nothing, nothing readable, or a selector is malformed.
    """
    out, selectors = _parted(given)
    if out is None and within is not None:
        there, rows = _selection(within, given)
        if there or not Path(given).exists():
            return _side(given, within, there, rows)
    if out is not None:
        return _side(given, out, *_selection(out, selectors))
    if not (Path(given).exists() or is_url(given) or any(c in given for c in "*?[")):
        raise UsageError(
            f"{given!r} is no trace, folder or warehouse.",
            hint=f"Traces of a warehouse: OUT:SELECTOR, or SELECTOR with --in OUT. {_GRAMMAR}",
        )
    report = analyze([given], scratch)
    if all(result.status == Status.REJECTED for result in report.results):
        reasons = "; ".join(dict.fromkeys(f"{r.path}: {r.reason}" for r in report.results[:3]))
        raise UsageError(
            f"No trace of {given!r} can be read: {reasons or 'there is none'}.",
            hint="Try: tracehouse doctor FILE",
        )
    return _side(given, scratch, *_selection(scratch, ""))


def _parted(given: str) -> tuple[Path | None, str]:
    """Part OUT:SELECTORS where a folder before a colon, or the whole, holds a warehouse."""
    if holds_warehouse(given):
        return Path(given), ""
    for colon in (i for i, c in enumerate(given) if c == ":" and i):
        if holds_warehouse(given[:colon]):
            return Path(given[:colon]), given[colon + 1 :]
    return None, ""


def _selection(out: Path, selectors: str) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the traces of a warehouse that all selectors fit, and all that it has."""
    with Warehouse(out) as warehouse:
        rows = warehouse.arrow(load_queries("compare_side")["candidates"].sql).to_pylist()
    there: Sequence[Row] = rows
    for selector in _NEXT_SELECTOR.split(selectors) if selectors else ():
        there = _selected(there, selector)
    return there, rows


def _side(given: str, out: Path, there: Sequence[Row], rows: Sequence[Row]) -> Side:
    readable = [row for row in there if row["status"] != Status.REJECTED]
    if not readable:
        why = (
            f"{len(there)} rejected: {there[0]['path']}: {there[0]['reason']}"
            if there
            else "none fits"
        )
        raise UsageError(f"Side {given!r} has no trace ({why}).", hint=_there_is(out, rows))
    return Side(
        given,
        out,
        tuple(row["trace_id"] for row in readable),
        tuple(row["path"] or "" for row in readable),
        sum(row["status"] == Status.PARTIAL for row in readable),
        len(there) - len(readable),
    )


def _selected(there: Sequence[Row], selector: str) -> Sequence[Row]:
    word, colon, value = selector.partition(":")
    if not colon or word not in _SELECTORS:
        return _plainly_selected(there, selector)
    if not value:
        raise UsageError(f"{selector!r} says no {word}.", hint=_GRAMMAR)
    return _SELECTORS[word](there, value)


def _plainly_selected(there: Sequence[Row], text: str) -> Sequence[Row]:
    """Take a lone word for the start of a trace or for a label, if it can be but one of them."""
    started, labelled = _of_trace(there, text), _of_label(there, text)
    if started and labelled and list(started) != list(labelled):
        raise UsageError(
            f"{text!r} is a label and the start of a trace.",
            hint=f"Write label:{text} or trace:{text}",
        )
    return started or labelled


def _of_label(there: Sequence[Row], value: str) -> Sequence[Row]:
    return [row for row in there if row["label"] == value]


def _of_trace(there: Sequence[Row], value: str) -> Sequence[Row]:
    return [row for row in there if is_meant(value, row["trace_id"], row["path"] or "")]


def _of_date(there: Sequence[Row], value: str) -> Sequence[Row]:
    first, between, last = value.partition("..")
    start = _day(first) if first or not between else None
    end = _day(last) if last else (None if between else start)
    if start is None and end is None:
        raise UsageError(f"date:{value} says no day.", hint=_GRAMMAR)
    return [
        row
        for row in there
        if row["recorded_us"] is not None
        and (start is None or row["recorded_us"] >= start * _DAY_US)
        and (end is None or row["recorded_us"] < (end + 1) * _DAY_US)
    ]


def _day(text: str) -> int:
    """Return the day that a text names, counted from 1970, in UTC."""
    try:
        return (datetime.date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        raise UsageError(f"{text!r} is no day.", hint="Write it as 2025-07-18, in UTC") from None


def _last(there: Sequence[Row], value: str) -> Sequence[Row]:
    if not (value.isascii() and value.isdecimal() and 0 < len(value) < 10 and int(value)):
        raise UsageError(f"last:{value} is no number of traces.", hint="Write last:5 for five")
    readable = [row for row in there if row["status"] != Status.REJECTED]
    return readable[-int(value) :]


_SELECTORS: dict[str, Callable[[Sequence[Row], str], Sequence[Row]]] = {
    "label": _of_label,
    "date": _of_date,
    "trace": _of_trace,
    "last": _last,
}


def _there_is(out: Path, rows: Sequence[Row]) -> str:
    """Say what a warehouse has, for who asked for what it has not."""
    place = shown(out)
    if not rows:
        return f"{place} holds no trace; try: tracehouse analyze TRACES -o {place}"
    labels = sorted({row["label"] for row in rows if row["label"] is not None})
    some = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
    return f"{place} has {len(rows):,} traces, of the labels {some}; {_GRAMMAR}"
