"""`tracehouse show OUT roofline`: how far each op is from the limit of its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracehouse.cli.output import beside, cell, duration, emit_rows, percentage, printable

_HEAD = (
    *("op", "shape", "type", "count", "time", "time %"),
    *("TFLOPS/s", "TB/s", "% of roofline", "bound"),
)
_IS_NUMBER = (False, False, False, True, True, True, True, True, True, False)
_NAME_WIDTH, _SHAPE_WIDTH = 44, 40
_NAMES = 3


def write_rooflines(out: Path, trace: str | None, limit: int) -> None:
    """Write a table a trace on stdout, longest time first, with notes on what needs explaining."""
    from tracehouse.commands.show import rooflines

    found = rooflines(out, trace=trace, limit=limit)
    if not found:
        click.echo("No trace has GPU work of recorded ops.", err=True)
    for number, roofline in enumerate(found):
        if number:
            click.echo()
        _write_head(roofline.about.to_pylist()[0])
        rows = roofline.ops.to_pylist()
        notes = _numbered(rows)
        emit_rows(_HEAD, [_cells(row, notes) for row in rows], _IS_NUMBER, indent="  ")
        for note, place in notes.items():
            click.echo(f"  {_mark(place)} {printable(note)}")
        if len(rows) < roofline.total:
            shown = f"{len(rows):,} of {roofline.total:,} rows"
            click.echo(f"{shown} shown; --limit 0 shows all.", err=True)


def _write_head(about: dict[str, Any]) -> None:
    click.echo(printable(beside(about["path"] or "")))
    if about["arch"]:
        device = f"{printable(about['arch'])}, memory {about['tb_s']:.2f} TB/s"
    else:
        named = ", ".join(sorted({name for name in about["devices"] or [] if name}))
        device = f"device not known ({printable(named) or 'no name'}): no peaks; --arch names one"
    click.echo(f"  {device}")
    total = (about["op_time_ns"] or 0) + (about["no_op_ns"] or 0)
    click.echo(
        f"  GPU time {duration(total)}: {duration(about['op_time_ns'])} of recorded ops, "
        f"{percentage(about['modelled_pct'])} of it with a formula"
    )
    if about["unmodelled_names"]:
        names = ", ".join(printable(name) for name in about["unmodelled_names"][:_NAMES])
        more = len(about["unmodelled_names"]) - _NAMES
        click.echo(f"  without: {names}{' …' if more > 0 else ''}")


def _cells(row: dict[str, Any], notes: dict[str, int]) -> list[str]:
    explained = row["note"] or row["why"]
    mark = f" {_mark(notes[explained])}" if explained else ""
    return [
        _shortened(row["name"] or "", _NAME_WIDTH),
        _shortened((row["input_dims"] or "").replace(", []", "").replace(" ", ""), _SHAPE_WIDTH),
        row["dtype"] or "",
        cell(row["count"]),
        duration(row["kernel_time_ns"]),
        percentage(row["pct"]),
        "" if row["tflops_s"] is None else f"{row['tflops_s']:,.2f}",
        "" if row["tb_s"] is None else f"{row['tb_s']:,.3f}",
        percentage(row["roofline_pct"]),
        f"{row['bound'] or ''}{mark}",
    ]


def _numbered(rows: list[dict[str, Any]]) -> dict[str, int]:
    texts = [row["note"] or row["why"] for row in rows]
    return {text: i for i, text in enumerate(dict.fromkeys(t for t in texts if t), 1)}


def _mark(number: int) -> str:
    return f"[{number}]"


def _shortened(text: str, width: int) -> str:
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"
