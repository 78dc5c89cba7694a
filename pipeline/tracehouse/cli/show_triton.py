"""`tracehouse show OUT triton`: compiled kernels as a table, and one of them step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.output import beside, cell, duration, emit, emit_rows, percentage, printable

if TYPE_CHECKING:
    from tracehouse.commands.show_triton import Walk

_HEAD = (
    *("Kernel", "GFLOPS", "Data Moved (MB)", "FLOPS/Byte", "TB/s", "TFLOPS/s"),
    *("calls", "mean time", "roofline", "source"),
)
_IS_NUMBER = (False, True, True, True, True, True, True, True, True, False)


def write_kernels(out: Path, trace: str | None, limit: int) -> None:
    """Write a table a trace on stdout, longest time first, with notes on what is not known."""
    from tracehouse.commands.show_triton import kernels_of_traces
    from tracehouse.commands.triton_words import notes

    found = kernels_of_traces(out, trace=trace, limit=limit)
    if not found:
        click.echo("No trace has compiled kernels.", err=True)
    for number, one in enumerate(found):
        if number:
            click.echo()
        click.echo(printable(beside(one.path)))
        rows = one.kernels.to_pylist()
        places = {
            note: i for i, note in enumerate(dict.fromkeys(n for r in rows for n in notes(r)), 1)
        }
        emit_rows(_HEAD, [_cells(row, places) for row in rows], _IS_NUMBER, indent="  ")
        for note, place in places.items():
            click.echo(f"  [{place}] {printable(note)}")
        if len(rows) < one.total:
            shown = f"{len(rows):,} of {one.total:,} rows"
            click.echo(f"{shown} shown; --limit 0 shows all.", err=True)


def write_rows(out: Path, kernel: str | None, trace: str | None, limit: int, fmt: str) -> None:
    """Write rows of triton_summary, or of triton_kernels for one kernel, for machines."""
    from tracehouse.commands.show_triton import kernel_rows

    rows = kernel_rows(out, kernel, trace=trace, limit=limit)
    emit(rows.table, fmt)
    if rows.table.num_rows < rows.total:
        shown = f"{rows.table.num_rows:,} of {rows.total:,} rows"
        click.echo(f"{shown} shown; --limit 0 shows all.", err=True)


def write_walks(out: Path, kernel: str, trace: str | None, limit: int) -> None:
    """Write how the numbers of a kernel come about, for each of its inputs."""
    from tracehouse.commands.show_triton import walks

    for number, walk in enumerate(walks(out, kernel, trace=trace, limit=limit)):
        if number:
            click.echo()
        _write_walk(walk)


def _cells(row: dict[str, Any], places: dict[str, int]) -> list[str]:
    from tracehouse.commands.triton_words import mebibytes, notes

    marks = "".join(f" [{places[note]}]" for note in notes(row))
    return [
        printable(row["name"] or ""),
        _fixed(row["gflops"], 3),
        mebibytes(row["data_moved_mib"]),
        _fixed(row["flops_per_byte"], 2),
        _fixed(row["tb_s"], 2),
        _fixed(row["tflops_s"], 2),
        cell(row["count"]),
        duration(row["mean_ns"]),
        percentage(row["roofline_pct"]),
        f"{row['source'] or ''}{marks}",
    ]


def _fixed(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _write_walk(walk: Walk) -> None:
    from tracehouse.commands.triton_words import kind_words, notes, walk_blocks

    launch = walk.launch
    click.echo(f"{printable(launch['name'])}  ({kind_words(launch['kind'])})")
    click.echo(f"  {printable(beside(launch['path'] or ''))}, event {launch['event_id']}")
    if launch["kernel_hash"]:
        click.echo(f"  kernel hash {printable(launch['kernel_hash'])}")
    for block in walk_blocks(walk):
        click.echo(f"  {block.title}")
        if block.head:
            emit_rows(block.head, block.rows, block.right, indent="    ")
        for line in block.lines:
            click.echo(f"    {line}")
    for note in notes(walk.summary):
        click.echo(f"  note: {printable(note)}")
