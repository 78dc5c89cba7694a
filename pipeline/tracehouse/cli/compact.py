"""`tracehouse compact`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import out_argument, reports_errors


@click.command()
@out_argument
@reports_errors
def compact(out: Path) -> None:
    """Merge the small parts of the lake in OUT, so that queries open fewer files.

    A part is what one run, or one task of it, wrote. analyze does it by itself where more traces
    are replaced than count, or 32 parts are below 4 MiB; this merges all below 64 MiB. Tables and
    rows stay the same. The old files go with the next analyze, compact or prune.

    \b
    Example:
        tracehouse compact warehouse
    """
    from tracehouse.commands import compact as command

    report = command.compact(out)
    click.echo(
        f"{report.replaced:,} parts replaced: {report.parts_before:,} parts of "
        f"{report.files_before:,} files are now {report.parts_after:,} of {report.files_after:,}",
        err=True,
    )
