"""The tables of `tracehouse compare` on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.output import cell, duration, emit_rows, percentage, printable

if TYPE_CHECKING:
    from tracehouse.commands.compare import Comparison

_WORDS = {"kernel_time": "kernel time"}
# Columns go from the last of these on where the terminal is narrow.
_DISPENSABLE = ("spread", "roofline", "calls", "diff %", "cause", "type", "explains")
_LABELS = ("op", "shape", "kernel", "of op", "category", "phase")
_NARROWEST, _WANTED, _WIDEST = 10, 24, 56  # letters of a label
_ARROW = " → "


def write_comparison(
    found: Comparison, levels: Sequence[str], per: str, phase: str | None, limit: int
) -> None:
    """Write the sides, their totals, and for each level and side the largest differences."""
    sides = found.sides.to_pylist()
    _write_sides(sides)
    click.echo()
    what = f" in steps of phase {printable(phase)}" if phase else ""
    click.echo(f"GPU time{what}, per {per}")
    _write_totals(found.totals.to_pylist(), [side["side"] for side in sides])
    for level in levels:
        for side in sides[1:]:
            click.echo()
            _write_level(found, level, side["side"], limit)


def _write_sides(sides: Sequence[dict[str, Any]]) -> None:
    for side in sides:
        facts = [_counted(side["traces"], "trace"), _counted(side["steps"], "step")]
        facts += [printable(device) for device in side["devices"]]
        if not side["activities"]:
            facts.append("no GPU activity")
        if side["partial"]:
            facts.append(f"{_counted(side['partial'], 'partial trace')}")
        if side["rejected"]:
            facts.append(f"{_counted(side['rejected'], 'rejected trace')} left out")
        if side["without_steps"]:
            facts.append(f"{_counted(side['without_steps'], 'trace')} without such steps left out")
        click.echo(f"{side['side']}  {printable(side['given'])}: {', '.join(facts)}")


def _write_totals(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    base, *others = names
    of = {(row["side"], row["part"]): row for row in rows}
    parts = list(dict.fromkeys(row["part"] for row in rows))
    head = ["", base]
    for other in others:
        head += [other, f"{other} − {base}", "diff %"]
    texts = []
    for part in parts:
        line = [_WORDS.get(part, part), duration(of[others[0], part]["base_ns"])]
        for other in others:
            row = of[other, part]
            line += [
                duration(row["side_ns"]),
                _signed(row["diff_ns"]),
                _signed_pct(row["diff_pct"]),
            ]
        texts.append(line)
    emit_rows(head, texts, [False] + [True] * (len(head) - 1), indent="  ")


def _write_level(found: Comparison, level: str, side: str, limit: int) -> None:
    rows = found.of_level(level, side).to_pylist()
    totals = found.totals.to_pylist()
    whole = next(t for t in totals if t["side"] == side and t["part"] == "kernel_time")
    base = whole["base"]
    click.echo(f"by {level}, {side} against {base}, largest difference first")
    shown = rows[:limit] if limit else rows
    columns = _columns(level, base, side, shown)
    _add_sums(columns, base, side, shown, whole, len(rows) - len(shown))
    names = _fitting(columns)
    right = [name not in (*_LABELS, "type", "cause") for name in names]
    lines = list(zip(*(columns[name] for name in names), strict=True))
    emit_rows(names, lines, right, indent="  ")


def _columns(
    level: str, base: str, side: str, rows: Sequence[dict[str, Any]]
) -> dict[str, list[str]]:
    """Return the columns of a table: head to the texts of its rows, in order."""
    columns: dict[str, list[str]] = {}
    if level == "op":
        columns["op"] = [printable(row["name"] or "(no name)") for row in rows]
        columns["shape"] = [_shape(row["shapes"]) for row in rows]
        columns["type"] = [row["dtype"] or "" for row in rows]
    elif level == "kernel":
        columns["kernel"] = [_kernel(row) for row in rows]
        columns["of op"] = [", ".join(map(printable, row["ops"] or ())) for row in rows]
    else:
        columns[level] = [printable(row["name"] or "") for row in rows]
    columns[base] = [duration(row["base_ns"]) for row in rows]
    columns[side] = [duration(row["side_ns"]) for row in rows]
    columns[f"{side} − {base}"] = [_signed(row["diff_ns"]) for row in rows]
    columns["diff %"] = [_signed_pct(row["diff_pct"]) for row in rows]
    columns["explains"] = [percentage(row["explains_pct"]) for row in rows]
    columns["calls" if level != "phase" else "steps"] = [
        _change(_count(row["base_calls"]), _count(row["side_calls"])) for row in rows
    ]
    if level != "kernel":
        columns["roofline"] = [
            _change(percentage(row["base_roofline_pct"]), percentage(row["side_roofline_pct"]))
            for row in rows
        ]
    if any(row["base_mad_ns"] is not None or row["side_mad_ns"] is not None for row in rows):
        columns["spread"] = [_spread(row) for row in rows]
    columns["cause"] = [_cause(row) for row in rows]
    return columns


def _add_sums(
    columns: dict[str, list[str]],
    base: str,
    side: str,
    shown: Sequence[dict[str, Any]],
    whole: dict[str, Any],
    others: int,
) -> None:
    """Add a row of what is not shown, and one of the sum: the rows add up to it."""
    label = next(iter(columns))
    rest = {key: whole[key] - sum(row[key] for row in shown) for key in ("base_ns", "side_ns")}
    sums = [(f"{others:,} others", rest)] if others else []
    sums.append(("kernel time", whole))
    for words, row in sums:
        difference = row["side_ns"] - row["base_ns"]
        texts = {
            label: words,
            base: duration(row["base_ns"]),
            side: duration(row["side_ns"]),
            f"{side} − {base}": _signed(difference),
            "explains": percentage(
                100 * difference / whole["diff_ns"] if whole["diff_ns"] else None
            ),
        }
        for name, column in columns.items():
            column.append(texts.get(name, ""))


def _fitting(columns: dict[str, list[str]]) -> list[str]:
    """Return the heads of the columns that fit the terminal, its labels shortened to fit.

    Everything is kept where stdout is no terminal.
    """
    names = list(columns)
    labels = [name for name in names if name in _LABELS]
    room = _room()
    if room is not None:
        for name in (None, *_DISPENSABLE):
            if name in names:
                names.remove(name)
            left = room - 2 - sum(_width(columns, n) + 3 for n in names if n not in labels)
            if left >= (_WANTED + 3) * len(labels):
                break
        widest = max(_NARROWEST, left // len(labels) - 3)
    else:
        widest = _WIDEST
    for name in labels:
        columns[name] = [_cut(text, widest) for text in columns[name]]
    return names


def _room() -> int | None:
    """Return how wide a line on stdout can be; None where it is no terminal."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console().width


def _cut(label: str, width: int) -> str:
    """Cut a label to a width; the names around an arrow get as much of it each.

    The middle goes: kernels of one family differ at the end of their names.
    """
    if len(label) <= width:
        return label
    names = label.split(_ARROW)
    each = (width - len(_ARROW) * (len(names) - 1)) // len(names)
    tail = each // 3
    return _ARROW.join(
        name if len(name) <= each else f"{name[: each - tail - 1]}…{name[len(name) - tail :]}"
        for name in names
    )


def _width(columns: dict[str, list[str]], name: str) -> int:
    return max(len(text) for text in (name, *columns[name]))


def _shape(shapes: str | None) -> str:
    """Word shapes without the inputs that are no tensors, e.g. `[8944,1024] [1024,2816]`."""
    if shapes is None:
        return ""
    inputs = shapes.replace(", ", ",").replace("],[", "] [").split(" ")
    return printable(" ".join(one for one in inputs if one != "[]"))


def _kernel(row: dict[str, Any]) -> str:
    """Word a kernel: its short name, or both where it is renamed to one that reads otherwise."""
    names = [name for name in (row["base_kernel"], row["side_kernel"]) if name]
    return _ARROW.join(map(printable, dict.fromkeys(names))) or "(no name)"


def _spread(row: dict[str, Any]) -> str:
    """Word the medians over the traces with their MAD, and whether the sides are apart."""
    sides = [
        duration(row[f"{side}_median_ns"])
        + (f" ± {duration(row[f'{side}_mad_ns'])}" if row[f"{side}_mad_ns"] is not None else "")
        for side in ("base", "side")
    ]
    return f"{' → '.join(sides)}{', apart' if row['is_apart'] else ''}"


def _cause(row: dict[str, Any]) -> str:
    renamed = "renamed" if row["status"] == "renamed" else ""
    return ", ".join(word for word in (row["cause"] or "", renamed) if word)


def _change(before: str, after: str) -> str:
    if before == after:
        return before
    return f"{before or '–'} → {after or '–'}"


def _count(value: float | None) -> str:
    if value is None:
        return ""
    return cell(int(value)) if value == int(value) else f"{value:,.1f}"


def _signed(ns: int | None) -> str:
    """Return a difference of times with its sign, e.g. `+1.294 ms`; NULL is empty."""
    return f"+{duration(ns)}" if ns is not None and ns > 0 else duration(ns)


def _signed_pct(pct: float | None) -> str:
    return f"+{percentage(pct)}" if pct is not None and pct > 0 else percentage(pct)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
