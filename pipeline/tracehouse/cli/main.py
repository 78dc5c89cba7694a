"""The command `tracehouse` and its verbs."""

from __future__ import annotations

import click

from tracehouse import __version__
from tracehouse.cli.analyze import analyze
from tracehouse.cli.check import check
from tracehouse.cli.compact import compact
from tracehouse.cli.compare import compare
from tracehouse.cli.docs import docs
from tracehouse.cli.doctor import doctor
from tracehouse.cli.export import export
from tracehouse.cli.gate import gate
from tracehouse.cli.plan import plan
from tracehouse.cli.prune import prune
from tracehouse.cli.refresh import refresh
from tracehouse.cli.report import report
from tracehouse.cli.schema import schema
from tracehouse.cli.show import show
from tracehouse.cli.split import split
from tracehouse.cli.sql import sql
from tracehouse.cli.steps import steps


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tracehouse", message="%(prog)s %(version)s")
def main() -> None:
    """Read archives of PyTorch profiler traces into a DuckDB warehouse.

    OUT is the warehouse: a folder, or s3://BUCKET/PREFIX with credentials in the environment.

    \b
    Example:
        tracehouse analyze traces/ -o warehouse
        tracehouse show warehouse
        tracehouse sql warehouse "SELECT name, time_ns FROM kernel_summary LIMIT 10"
    """


_COMMANDS = (
    *(analyze, show, report, compare, gate, sql, steps, split, plan, schema, doctor, export, docs),
    *(refresh, check, compact, prune),
)
for _command in _COMMANDS:
    main.add_command(_command)
