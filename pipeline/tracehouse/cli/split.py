"""`tracehouse split`."""

from __future__ import annotations

from pathlib import Path

import click

from tracehouse.cli.options import format_option, reports_errors, serving_options
from tracehouse.cli.output import cell, emit, emit_rows, percentage, printable

_HEAD = (
    *("window", "steps", "prefill", "mixed", "decode", "with prefill", "requests", "tokens"),
    *("events", "GPU events", "GPU busy", "file"),
)


@click.command()
@click.argument("path", metavar="TRACE")
@click.option(
    "-o",
    "--output",
    "target",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder to write to; created if there is none.",
)
@click.option(
    "--steps",
    metavar="A:B",
    help="Write steps A to B-1 alone, numbered as `tracehouse steps` does; B may be too large.",
)
@click.option(
    "--num-steps",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Steps of a window; the mixed one gets more where so few could miss every prefill.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Write to a folder that is not empty; same names are replaced.",
)
@serving_options
@format_option
@reports_errors
def split(
    path: str,
    target: Path,
    steps: str | None,
    num_steps: int,
    overwrite: bool,
    step_patterns: tuple[str, ...],
    conc: int | None,
    osl: int | None,
    r: float | None,
    num_prompts: int | None,
    fmt: str,
) -> None:
    """Write the steps of a trace that are worth a look as traces of their own.

    Of the largest steady run: a window of all kinds of steps, whose share of steps with a prefill
    is as close as can be to that of the whole steady state (or to 2 CONC / (OSL (1 + R)), with
    --conc, --osl and --r), the longest run of steps that only decode, and that of steps with a
    prefill. Each is a gzip trace that Perfetto and TraceLens open, with execution_details.json and
    .csv beside them (times in µs).

    Events stand byte for byte as in TRACE, and so do its other keys: secrets too, which `export
    --scrub` takes out. To a step belong the calls that start in it, the GPU work they launched
    whenever it ran, ranges on the GPU, flows, and Python frames with those around the window; of
    the process also what other threads do in the window, and what stands between its steps.

    \b
    Example:
        tracehouse split serving.json.gz -o windows
        tracehouse split serving.json.gz -o windows --num-steps 16 --conc 32 --osl 1024 --r 0.8
        tracehouse split training.json.gz -o two --steps 3:5 --format json
    """
    import pyarrow as pa

    from tracehouse.commands import split as command
    from tracehouse.commands.settings import read_settings

    settings = read_settings(
        step_patterns=step_patterns, conc=conc, osl=osl, r=r, num_prompts=num_prompts
    )
    done = command.split(
        path, target, num_steps=num_steps, steps=steps, overwrite=overwrite, settings=settings
    )
    for note in done.notes:
        click.echo(f"Note: {printable(note)}.", err=True)
    rows = [file.row for file in done.files]
    if fmt != "table":
        emit(pa.Table.from_pylist(rows), fmt)
        return
    shown = [
        [
            row["window"].replace("_", "-"),
            f"{row['first_step']:,}–{row['last_step']:,}",
            *(cell(row[name]) for name in ("num_prefill", "num_prefilldecode", "num_decode")),
            percentage(None if row["prefill_share"] is None else 100 * row["prefill_share"]),
            *(cell(row[name]) for name in ("avg_conc", "avg_bs", "event_count", "num_gpu_events")),
            f"{row['gpu_busy_duration']:,.3f} µs",
            printable(row["output_path"]),
        ]
        for row in rows
    ]
    emit_rows(_HEAD, shown, [False, *[True] * 10, False])
