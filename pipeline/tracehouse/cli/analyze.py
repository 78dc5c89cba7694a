"""`tracehouse analyze`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehouse.cli.options import (
    FAILED,
    format_option,
    model_config_option,
    reports_errors,
    serving_options,
)
from tracehouse.cli.output import beside, cell, check_words, duration, emit, printable

if TYPE_CHECKING:
    from tracehouse.commands.analyze import RunReport, TraceResult
    from tracehouse.commands.results import FailingCheck

_CHECKS = 5  # lines about failing checks


_MOST_NAMED = 10  # of the unfinished files


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the warehouse; made if absent, added to if present.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes; one a core by default.")
@click.option("--label", help="Name of the job these runs belong to; the folder's by default.")
@click.option(
    "--reader",
    type=click.Choice(["scan", "ijson"]),
    default="scan",
    show_default=True,
    help="How to read JSON: the fast scanner, or the slow reference.",
)
@click.option("--prune", is_flag=True, help="Drop traces whose files are gone from PATHS.")
@click.option(
    "--keep-secrets",
    is_flag=True,
    help="Store values that look like secrets (tokens, passwords) as they are.",
)
@click.option(
    "--categories",
    metavar="FILE",
    help="CSV file of op categories (pattern,match,category,family) that go before ours.",
)
@click.option(
    "--arch",
    metavar="NAME|FILE",
    help="Device whose peaks count, or a JSON file of peaks; recognised in each trace by default.",
)
@click.option(
    "--models",
    metavar="FILE",
    multiple=True,
    help="Python file with formulas for further ops; may be given several times. It is run.",
)
@click.option(
    "--inductor-cache-dir",
    metavar="DIR",
    help="Cache of torch.compile, for kernels whose launches do not tell their work; by default "
    "$TORCHINDUCTOR_CACHE_DIR, ~/.cache/torchinductor or torchinductor_USER in the temporary "
    "folder, the first that exists.",
)
@click.option(
    "--capture",
    metavar="DIR|FILE",
    help="Traces taken while CUDA or HIP graphs were captured: they tell the ops of replayed "
    "graphs. A folder capture_traces beside a trace is found by itself.",
)
@model_config_option
@serving_options
@format_option
@reports_errors
def analyze(
    paths: tuple[str, ...],
    out: Path,
    workers: int | None,
    label: str | None,
    reader: str,
    prune: bool,
    keep_secrets: bool,
    categories: str | None,
    arch: str | None,
    models: tuple[str, ...],
    inductor_cache_dir: str | None,
    capture: str | None,
    model_config: str | None,
    step_patterns: tuple[str, ...],
    conc: int | None,
    osl: int | None,
    r: float | None,
    num_prompts: int | None,
    fmt: str,
) -> None:
    """Analyse traces into a warehouse.

    PATHS are files, folders, globs or URLs. A file that did not change since the last run is not
    read again, unless --categories, --arch, --models, --model-config or --inductor-cache-dir or
    their files did (of the cache, its path), or an option on steps. Exits with 1 if some files were
    rejected.

    \b
    Example:
        tracehouse analyze traces/ 'runs/**/*.json.gz' -o warehouse --label nightly
        tracehouse analyze decode.json.gz -o warehouse --capture capture_traces/
    """
    from tracehouse.commands import analyze as command
    from tracehouse.commands.results import failing_checks, result_rows
    from tracehouse.commands.settings import read_settings

    settings = read_settings(
        categories=categories,
        arch=arch,
        models=models,
        inductor_cache=inductor_cache_dir,
        step_patterns=step_patterns,
        conc=conc,
        osl=osl,
        r=r,
        num_prompts=num_prompts,
        model_config=model_config,
    )

    with _progress() as on_trace:
        report = command.analyze(
            list(paths),
            out,
            workers=workers,
            label=label,
            reader=reader,
            prune=prune,
            keep_secrets=keep_secrets,
            capture=capture,
            settings=settings,
            on_trace=on_trace,
        )
    rows = result_rows(report)
    if fmt == "table":
        rows = rows.set_column(0, "path", [[beside(path) for path in rows["path"].to_pylist()]])
    emit(rows, fmt)
    _write_reasons(report)
    _write_checks(failing_checks(report), out)
    _write_sum(report)
    if report.rejected:
        sys.exit(FAILED)


@contextmanager
def _progress() -> Iterator[Callable[[TraceResult], None]]:
    """Give a callback that reports a finished trace: a bar on a terminal, else a line a trace."""
    if not sys.stderr.isatty():
        yield lambda result: click.echo(_summary(result), err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    columns = (
        BarColumn(),
        TextColumn("{task.completed} traces"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def on_trace(result: TraceResult) -> None:
            progress.update(task, advance=1, description=printable(beside(result.path)))
            if result.status != "ok":
                progress.console.print(Text(_summary(result)))

        yield on_trace


def _summary(result: TraceResult) -> str:
    path = printable(beside(result.path))
    if result.events is None:
        return f"{result.status:<8}  {path}"
    return (
        f"{result.status:<8}  {path}: {cell(result.events)} events, "
        f"{cell(result.kernels)} kernels, busy {duration(result.busy_ns)}, {result.seconds:.2f} s"
    )


def _write_reasons(report: RunReport) -> None:
    """Say on stderr why a trace is not ok."""
    for result in report.results:
        if result.status != "ok":
            reason = printable(result.reason or "no reason given")
            click.echo(f"{result.status}: {printable(beside(result.path))}: {reason}", err=True)


def _write_checks(failing: Sequence[FailingCheck], out: Path) -> None:
    """Say on stderr which checks fail and what that means: a line each, the first few."""
    for check in failing[:_CHECKS]:
        where = printable(beside(check.path))
        if check.traces > 1:
            where = f"{check.traces:,} traces, worst in {where}"
        value = check_words(check.name, check.worst, check.expected, check.meaning)
        click.echo(f"check: {where}: {value}", err=True)
    if len(failing) > _CHECKS:
        query = "FROM checks WHERE NOT ok"
        rest = f"{len(failing) - _CHECKS:,} more checks fail"
        click.echo(f'{rest}: tracehouse sql {printable(str(out))} "{query}"', err=True)


def _write_sum(report: RunReport) -> None:
    """Say on stderr how the run went as a whole."""
    if report.passed_over:
        first = ", ".join(printable(beside(path)) for path in report.passed_over[:_MOST_NAMED])
        click.echo(
            f"TEMP_SKIPPED: {len(report.passed_over):,} unfinished files passed over: {first}",
            err=True,
        )
    if report.pruned:
        click.echo(f"pruned, their files are gone: {len(report.pruned):,}", err=True)
    captures = f", {report.captures:,} of graph captures" if report.captures else ""
    click.echo(
        f"{report.total:,} files{captures}: {report.unchanged:,} unchanged, "
        f"{report.partial:,} partial, {report.rejected:,} rejected; {report.seconds:.2f} s; "
        f"{report.warehouse}",
        err=True,
    )
