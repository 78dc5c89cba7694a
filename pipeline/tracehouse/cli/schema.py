"""`tracehouse schema`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import format_option, reports_errors
from tracehouse.cli.output import emit, emit_rows, printable


@click.command()
@click.argument("out", required=False)
@click.argument("table", required=False)
@format_option
@reports_errors
def schema(out: str | None, table: str | None, fmt: str) -> None:
    """Describe the tables and columns.

    Those of the warehouse OUT, or those this version writes. A single argument is taken for OUT if
    there is such a folder, else for TABLE.

    \b
    Example:
        tracehouse schema
        tracehouse schema kernels
        tracehouse schema warehouse op_summary --format json
    """
    from tracehouse.commands import schema as command
    from tracehouse.storage.address import url_of

    if out is not None and table is None and url_of(out) is None and not Path(out).is_dir():
        out, table = None, out
    tables = command.describe(None if out is None else Path(out), table)
    if fmt != "table":
        emit(command.column_rows(tables), fmt)
        return
    for number, described in enumerate(tables):
        if number:
            click.echo()
        click.echo(f"{printable(described.name)}: {printable(described.meaning)}")
        rows = [[c.name, c.type, c.unit, c.meaning] for c in described.columns]
        emit_rows(
            ["column", "type", "unit", "meaning"],
            [[printable(text) for text in row] for row in rows],
            right=[False] * 4,
            indent="  ",
        )
