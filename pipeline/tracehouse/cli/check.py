"""`tracehouse check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehouse.cli.options import FAILED, format_option, out_argument, reports_errors
from tracehouse.cli.output import emit, printable

if TYPE_CHECKING:
    from tracehouse.commands.check import CheckReport


@click.command()
@out_argument
@click.option(
    "--repair",
    is_flag=True,
    help="Take out what is damaged, so that the next analyze reads those traces again, and build "
    "the database anew.",
)
@format_option
@reports_errors
def check(out: Path, repair: bool, fmt: str) -> None:
    """Check that the warehouse in OUT is as it was written.

    Every file of the lake is read and compared with its manifest: presence, length, checksum, rows
    and columns. Then the database: whether it opens, is current, and its views resolve. Prints what
    is wrong, where and what to do, and exits with 1 if anything is.

    --repair deletes nothing: damaged files go to OUT/lake/damaged. What the lake forgets is named.
    What cannot be read for want of a right, or as a disk fails, may be intact: it stays as it is.

    \b
    Example:
        tracehouse check warehouse
        tracehouse check warehouse --repair
    """
    from tracehouse.commands import check as command
    from tracehouse.storage.address import shown

    report = command.check(out, repair=repair)
    if report.faults or fmt != "table":
        emit(command.fault_rows(report), fmt)
    if report.set_aside:
        click.echo(
            f"set aside in {shown(out)}/lake/damaged: {len(report.set_aside):,} files", err=True
        )
    lost = set(report.lost)
    _name("forgotten, to be read again", [p for p in report.forgotten if p not in lost])
    _name("forgotten, and its file is gone", report.lost)
    _name("as an earlier run read it", report.returned)
    if report.is_repaired:
        _name("left as it is", [fault.where for fault in report.left])
    click.echo(
        f"{report.parts:,} parts, {report.files:,} files, {report.bytes:,} bytes read; "
        f"{len(report.faults):,} faults{_outcome(report)}",
        err=True,
    )
    if report.is_repaired and report.forgotten:
        click.echo("Run analyze over the traces again: it reads what was forgotten.", err=True)
    if report.left:
        sys.exit(FAILED)


def _outcome(report: CheckReport) -> str:
    if not report.is_repaired:
        return ""
    return f", {len(report.left):,} of them not repaired" if report.left else ", repaired"


def _name(word: str, paths: Sequence[str]) -> None:
    for path in paths:
        click.echo(f"{word}: {printable(path)}", err=True)
