"""`tracehouse compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehouse.cli.options import reports_errors
from tracehouse.cli.output import emit
from tracehouse.errors import UsageError

if TYPE_CHECKING:
    from tracehouse.commands.compare import Comparison

_FORMATS = ("table", "csv", "json", "md", "html", "xlsx")
_BINARY = ("html", "xlsx")
_LEVELS = ("op", "kernel", "category", "phase")
_TABLES = ("sides", "totals", "parts")


@click.command()
@click.argument("sides", nargs=-1, required=True, metavar="A B [C …]")
@click.option(
    "--in",
    "within",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="The warehouse that a SELECTOR alone is of.",
)
@click.option(
    "--by",
    "levels",
    type=click.Choice((*_LEVELS, "all")),
    multiple=True,
    help="What to split the difference into; may be given several times. op: op × shapes × types. "
    "Default: op for table and md, all for the others.",
)
@click.option(
    "--per",
    type=click.Choice(("trace", "step")),
    default="trace",
    show_default=True,
    help="What times and calls are of: the mean trace of a side, or its mean step.",
)
@click.option("--phase", help="Only the work of steps of this phase, e.g. decode.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    help="Rows of table and md, the rest in one row; 0 for all.",
)
@click.option(
    "--table",
    "table",
    type=click.Choice(_TABLES),
    help="What csv and json have: csv parts by default, json all three.",
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(_FORMATS),
    default="table",
    show_default=True,
    help="How to write the result; html and xlsx go to the file of -o.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write md, html, xlsx to."
)
@reports_errors
def compare(
    sides: tuple[str, ...],
    within: Path | None,
    levels: tuple[str, ...],
    per: str,
    phase: str | None,
    limit: int,
    table: str | None,
    fmt: str,
    output: Path | None,
) -> None:
    """Compare two or more sides: where GPU time differs from side A.

    A side is a trace's file, a folder of them, or a URL, read for the purpose; OUT, a whole
    warehouse; OUT:SELECTOR, chosen traces of it; or, with --in OUT, a SELECTOR alone.

    \b
    SELECTOR is one of these, or several joined by commas, which must all hold:
        START         a trace's id, path or file name, or the start of one; or a label
        trace:START   the same, if a label reads so too
        label:NAME    all traces of a label
        date:DAY      recorded on a day in UTC, 2025-07-18; date:DAY..DAY from one to another
        last:N        the N recorded last of those that the selectors before it leave

    Parts add up: the times of all ops, or kernels, categories, phases, are the kernel time of a
    side to the nanosecond, their differences its difference. With overlap, counted more than once,
    that is busy time; with idle time it is the window. Several traces a side count by their mean;
    csv, json and xlsx have the median, MAD, least and greatest beside it. A kernel of another name
    goes with the one that its op has on side A: renamed.

    \b
    Example:
        tracehouse compare h100/bert.json.gz mi300/bert.json.gz
        tracehouse compare --in warehouse label:nightly,last:5 label:candidate --by kernel
        tracehouse compare old new --per step --phase decode --format html -o changes.html
    """
    from tracehouse.commands import compare as command

    _check(fmt, table, output)
    chosen = _chosen(levels, fmt)
    found = command.compare(sides, within=within, levels=chosen, per=per, phase=phase)
    if fmt in ("csv", "json"):
        _emit(found, table, fmt)
    elif fmt == "table":
        from tracehouse.cli.compare_table import write_comparison

        write_comparison(found, chosen, per, phase, limit)
    else:
        _write_page(found, chosen, per, phase, limit, fmt, output)


def _check(fmt: str, table: str | None, output: Path | None) -> None:
    if table is not None and fmt not in ("csv", "json"):
        raise UsageError("--table is for csv and json", hint="leave it out")
    if fmt in _BINARY and output is None:
        raise UsageError(f"--format {fmt} needs a file", hint=f"add: -o changes.{fmt}")
    if output is not None and fmt not in (*_BINARY, "md"):
        raise UsageError("-o is for md, html and xlsx", hint="redirect the others")


def _chosen(levels: tuple[str, ...], fmt: str) -> tuple[str, ...]:
    if not levels:
        return ("op",) if fmt in ("table", "md") else _LEVELS
    return tuple(level for level in _LEVELS if level in levels or "all" in levels)


def _emit(found: Comparison, table: str | None, fmt: str) -> None:
    tables = {"sides": found.sides, "totals": found.totals, "parts": found.parts}
    if fmt == "csv" or table is not None:
        emit(tables[table or "parts"], fmt)
        return
    click.echo("{")
    for number, (name, rows) in enumerate(tables.items()):
        click.echo(f'"{name}":')
        emit(rows, fmt)
        click.echo("}" if number == len(tables) - 1 else ",")


def _write_page(
    found: Comparison,
    levels: tuple[str, ...],
    per: str,
    phase: str | None,
    limit: int,
    fmt: str,
    output: Path | None,
) -> None:
    from tracehouse.commands.compare_page import page, write_page

    made = page(found, levels, per, phase, limit=limit, fmt=fmt)
    text = write_page(made, fmt, output)
    if text is not None:
        click.echo(text, nl=False)
    else:
        click.echo(f"Written: {output}", err=True)
