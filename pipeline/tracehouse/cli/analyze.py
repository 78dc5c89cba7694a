"""`tracehouse analyze`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracehouse.cli.options import (
    FAILED,
    format_option,
    limit_options,
    model_config_option,
    reports_errors,
    serving_options,
)
from tracehouse.cli.output import beside, emit
from tracehouse.cli.run_log import LOGS


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the warehouse, or s3://BUCKET/PREFIX; made if absent, added to if present.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes; by default as many as there are cores and memory for.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Let the workers of a running Dask cluster do the work: tcp://HOST:8786, or its scheduler "
    "file. They must see PATHS, and an OUT that is a folder, at the same places.",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Memory that all processes may use together, e.g. 8GB (of a Dask cluster: each worker); "
    "four fifths of the machine's by default.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=0.0,
    help="How long to wait for another run that writes to OUT; by default not at all.",
)
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
@click.option("--profile", is_flag=True, help="Add the CPU seconds of each stage.")
@click.option(
    "--log-format",
    type=click.Choice(sorted(LOGS, reverse=True)),
    default="text",
    show_default=True,
    help="What stderr says: lines to read, or one JSON object a line.",
)
@serving_options
@limit_options
@format_option
@reports_errors
def analyze(
    paths: tuple[str, ...],
    out: Path,
    workers: int | None,
    dask: str | None,
    memory_limit: str | None,
    wait: float,
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
    profile: bool,
    log_format: str,
    step_patterns: tuple[str, ...],
    conc: int | None,
    osl: int | None,
    r: float | None,
    num_prompts: int | None,
    max_text: str | None,
    max_ratio: int | None,
    max_members: int | None,
    max_metadata: str | None,
    max_event: str | None,
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
        tracehouse analyze s3://bucket/traces -o s3://bucket/warehouse --wait 600
    """
    log = LOGS[log_format]()
    with log.progress() as on_trace:
        from tracehouse.commands import analyze as command
        from tracehouse.commands.memory import parse_amount
        from tracehouse.commands.results import (
            failing_checks,
            profile_rows,
            result_rows,
            stage_seconds,
        )
        from tracehouse.commands.settings import read_limits, read_settings

        report = command.analyze(
            list(paths),
            out,
            workers=workers,
            dask=dask,
            memory_limit=None if memory_limit is None else parse_amount(memory_limit),
            wait=wait,
            label=label,
            reader=reader,
            prune=prune,
            keep_secrets=keep_secrets,
            capture=capture,
            settings=read_settings(
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
            ),
            limits=read_limits(
                text=max_text,
                ratio=max_ratio,
                members=max_members,
                metadata=max_metadata,
                event=max_event,
            ),
            on_trace=on_trace,
        )
        rows = profile_rows(report) if profile else result_rows(report)
        failing = failing_checks(report)
    if fmt == "table":
        rows = rows.set_column(0, "path", [[beside(path) for path in rows["path"].to_pylist()]])
    emit(rows, fmt)
    log.end(report, failing, out)
    if profile:
        log.profile(report, stage_seconds(report))
    if report.rejected:
        sys.exit(FAILED)
