"""`tracehouse report`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import out_argument, reports_errors
from tracehouse.errors import UsageError


@click.command()
@out_argument
@click.option("--trace", help="The trace whose id, path or file name starts so.")
@click.option("--label", help="Of the whole warehouse only traces of this label.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write; of csv a folder. Markdown goes to stdout if it is left out.",
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["html", "xlsx", "csv", "md"]),
    help="How to write it; by default what the name of the file tells, else html.",
)
@reports_errors
def report(
    out: Path, trace: str | None, label: str | None, output: Path | None, fmt: str | None
) -> None:
    """Write a report of one trace, or of a whole warehouse.

    Of a trace: where the GPU time went, its ops and kernels, how far they are from the device's
    limit, compiled kernels, steps. Of the warehouse OUT: labels, trends and regressions, traces,
    coverage, failures. An HTML report is one file that needs no network; xlsx has a sheet a table,
    csv a file a table; md is short, for a comment on a pull request.

    \b
    Example:
        tracehouse report warehouse -o report.html
        tracehouse report warehouse --trace run-0421 -o run-0421.html
        tracehouse report warehouse --label nightly -o nightly.xlsx
        tracehouse report warehouse --trace run-0421 --format md
    """
    from tracehouse.commands import report as command

    fmt = fmt or command.fitting_format(output)
    if output is None and fmt != "md":
        raise UsageError("The report needs a file.", hint=f"Try: -o report.{fmt}")
    page = command.page_of(out, trace=trace, label=label)
    if output is None:
        click.echo(command.rendered(page, fmt), nl=False)
        return
    command.write(page, fmt, output)
    click.echo(f"{output}", err=True)
