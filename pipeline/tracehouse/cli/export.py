"""`tracehouse export`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracehouse.cli.options import out_argument, reports_errors
from tracehouse.cli.output import cell, printable
from tracehouse.errors import UsageError


@click.command()
@out_argument
@click.argument("trace")
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    required=True,
    help="File to write; compressed if it ends in .gz or .zst; - for stdout.",
)
@click.option(
    "--scrub", is_flag=True, help="Take out host names, user names, home folders and secrets."
)
@reports_errors
def export(out: Path, trace: str, target: str, scrub: bool) -> None:
    """Write a trace back as Chrome trace JSON.

    TRACE is an id, path or file name in the warehouse OUT, or the start of one. The result holds
    the same events with the same values as the file that was read, less what was beyond repair and
    with secrets redacted, and opens in Perfetto. With --scrub, in every text of it, home folders
    (/home/NAME, /Users/NAME, /root, C:\\Users\\NAME) become `~`, the hosts and users that the trace
    names become `host` and `user`, and the folders of `traceName` are dropped.

    \b
    Example:
        tracehouse export warehouse run-0421 -o run-0421.json.gz --scrub
    """
    from tracehouse.commands import export as command

    if Path(target).is_dir():
        raise UsageError(f"{target} is a folder.", hint="Name a file in it.")
    if target == "-":
        done = command.export(out, trace, sys.stdout.buffer, scrub=scrub)
    else:
        done = command.export(out, trace, Path(target), scrub=scrub)
        wrote = f"{cell(done.events)} events of {printable(done.path)} to {printable(target)}"
        click.echo(f"Wrote {wrote}", err=True)
