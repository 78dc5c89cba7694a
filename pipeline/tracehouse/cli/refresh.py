"""`tracehouse refresh`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import out_argument, reports_errors


@click.command()
@out_argument
@reports_errors
def refresh(out: Path) -> None:
    """Build the database anew from its lake.

    Needed after the folder OUT was moved: the database names the lake's files by their place.

    \b
    Example:
        mv warehouse /archive/warehouse
        tracehouse refresh /archive/warehouse
    """
    from tracehouse.commands.refresh import refresh_warehouse
    from tracehouse.storage.address import shown

    click.echo(f"Rebuilt {shown(refresh_warehouse(out))}", err=True)
