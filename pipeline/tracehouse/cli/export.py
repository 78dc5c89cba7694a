"""`tracehouse export`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracehouse.cli.options import out_argument, reports_errors
from tracehouse.cli.output import cell, printable
from tracehouse.errors import UsageError

FORMATS = ("parquet", "csv", "arrow")


@click.command()
@out_argument
@click.argument("trace", required=False)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="PATH",
    required=True,
    help="File to write the trace to; compressed if it ends in .gz or .zst; - for stdout. With "
    "--tables the folder to write them into.",
)
@click.option(
    "--scrub", is_flag=True, help="Take out host names, user names, home folders and secrets."
)
@click.option(
    "--tables",
    metavar="NAME,NAME",
    help="Write these tables, not a trace: a file each, named as the table; `all` for every one.",
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(FORMATS),
    help="With --tables: what to write; parquet by default.",
)
@click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="With CSV: put a ' before text that a spreadsheet would take for a formula.",
)
@reports_errors
def export(
    out: Path,
    trace: str | None,
    target: str,
    scrub: bool,
    tables: str | None,
    fmt: str | None,
    for_spreadsheets: bool,
) -> None:
    """Write a trace back as Chrome trace JSON, or tables as files.

    TRACE is an id, path or file name in the warehouse OUT, or the start of one. The result holds
    the same events with the same values as the file that was read, less what was beyond repair and
    with secrets redacted, and opens in Perfetto. With --scrub, in every text of it, home folders
    (/home/NAME, /Users/NAME, /root, C:\\Users\\NAME) become `~`, the hosts and users that the trace
    names become `host` and `user`, and the folders of `traceName` are dropped.

    With --tables each table is written into a folder as Parquet, CSV or Arrow; with TRACE too, only
    the rows of that trace.

    \b
    Example:
        tracehouse export warehouse run-0421 -o run-0421.json.gz --scrub
        tracehouse export warehouse --tables op_summary,trends --format csv -o tables
        tracehouse export warehouse run-0421 --tables all -o tables
    """
    if tables is not None:
        if scrub:
            raise UsageError("--scrub is for a trace.", hint="Leave out --scrub or --tables.")
        _export_tables(out, tables, Path(target), fmt or "parquet", trace, for_spreadsheets)
        return
    if trace is None:
        raise UsageError(
            "Say what to export.",
            hint="Name a TRACE to write it back, or --tables to write tables.",
        )
    if fmt is not None or for_spreadsheets:
        option = "--format" if fmt is not None else "--for-spreadsheets"
        raise UsageError(f"{option} goes with --tables; a trace is written as JSON.")
    _export_trace(out, trace, target, scrub)


def _export_trace(out: Path, trace: str, target: str, scrub: bool) -> None:
    from tracehouse.commands import export as command

    if Path(target).is_dir():
        raise UsageError(f"{target} is a folder.", hint="Name a file in it.")
    if target == "-":
        done = command.export(out, trace, sys.stdout.buffer, scrub=scrub)
    else:
        done = command.export(out, trace, Path(target), scrub=scrub)
        wrote = f"{cell(done.events)} events of {printable(done.path)} to {printable(target)}"
        click.echo(f"Wrote {wrote}", err=True)


def _export_tables(
    out: Path, tables: str, folder: Path, fmt: str, trace: str | None, for_spreadsheets: bool
) -> None:
    from tracehouse.commands.export_tables import export_tables

    if str(folder) == "-":
        raise UsageError("Tables go into a folder.", hint="tracehouse sql writes rows on stdout.")
    if for_spreadsheets and fmt != "csv":
        raise UsageError("--for-spreadsheets goes with --format csv.")
    names = [name.strip() for name in tables.split(",") if name.strip()]
    if not names:
        raise UsageError("--tables names no table.", hint="Try: --tables op_summary,trends")
    done = export_tables(out, names, folder, fmt, trace=trace, for_spreadsheets=for_spreadsheets)
    for table in done:
        click.echo(f"Wrote {cell(table.rows)} rows to {printable(str(table.path))}", err=True)
