"""`tracehouse sql`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import format_option, out_argument, reports_errors
from tracehouse.cli.output import emit


@click.command()
@out_argument
@click.argument("query")
@format_option
@reports_errors
def sql(out: Path, query: str, fmt: str) -> None:
    """Run a query.

    QUERY is SQL; the warehouse OUT is opened read-only.

    \b
    Example:
        tracehouse sql warehouse "SELECT name, time_ns FROM kernel_summary LIMIT 5"
    """
    from tracehouse.commands.sql import run_query

    emit(run_query(out, query), fmt)
