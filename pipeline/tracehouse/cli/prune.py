"""`tracehouse prune`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import format_option, out_argument, reports_errors
from tracehouse.cli.output import emit


@click.command()
@out_argument
@click.option(
    "--older-than", required=True, metavar="AGE", help="Hours, days or weeks: 36h, 90d, 12w."
)
@click.option("--label", help="Only traces of this job.")
@click.option(
    "--by",
    type=click.Choice(["recorded", "analysed"]),
    default="recorded",
    show_default=True,
    help="Which time counts: of the trace's first event (of the file's last change where its clock "
    "does not tell), or of its analysis.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be dropped.")
@format_option
@reports_errors
def prune(out: Path, older_than: str, label: str | None, by: str, dry_run: bool, fmt: str) -> None:
    """Drop the traces of OUT that are older than AGE.

    Prints the files whose traces go, with the time that counted. The files themselves are not
    touched: analyze passes over them from then on, until they change. Rows go at once; the space
    on disk is free after the next analyze, compact or prune.

    \b
    Example:
        tracehouse prune warehouse --older-than 90d --label nightly --dry-run
    """
    from tracehouse.commands import prune as command

    age = command.parse_age(older_than)
    report = command.prune(out, age, label=label, by=by, dry_run=dry_run)
    if report.files.num_rows or fmt != "table":
        emit(report.files, fmt)
    word = "would be dropped" if dry_run else "dropped"
    click.echo(f"{report.files.num_rows:,} files {word}, {report.kept:,} kept", err=True)
