"""`tracehouse steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.options import (
    format_option,
    model_config_option,
    reports_errors,
    serving_options,
)
from tracehouse.cli.output import beside, cell, duration, emit, emit_rows, percentage, printable

if TYPE_CHECKING:
    from tracehouse.commands.steps import TraceSteps

_TABLES = ("steps", "step_summary", "steady_state", "attention_summary")
_STEP_HEAD = (
    *("step", "phase", "requests", "tokens", "host", "GPU busy", "GPU span", "gap before"),
    *("tokens/s", "kernels", "graph"),
)
_SUMMARY_HEAD = (
    *("phase", "requests", "steps", "host median", "GPU median", "GPU p95", "busy", "gap median"),
    *("tokens/s", "over decode"),
)
_ATTENTION_HEAD = (
    *("phase", "attention op", "heads", "width", "window", "calls", "mean", "TFLOPS/s", "TB/s"),
    *("of roofline", "bound"),
)
_REGION_HEAD = ("steps", "kind", "rule", "count", "concurrency")


@click.command()
@click.argument("path", metavar="TRACE|OUT")
@click.option("--trace", help="Of a warehouse, only traces whose id, path or file name starts so.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Steps of each trace to list, at most; 0 for all.",
)
@click.option(
    "--table",
    "table",
    type=click.Choice(_TABLES),
    default="steps",
    show_default=True,
    help="What csv and json have: every step, the summary, the steady state, or attention.",
)
@model_config_option
@serving_options
@format_option
@reports_errors
def steps(
    path: str,
    trace: str | None,
    limit: int,
    table: str,
    model_config: str | None,
    step_patterns: tuple[str, ...],
    conc: int | None,
    osl: int | None,
    r: float | None,
    num_prompts: int | None,
    fmt: str,
) -> None:
    """Show the steps of serving or training: phases, times, rates, steady state, attention.

    Of a trace's file, or of every trace in the warehouse OUT that has steps. With --conc, --osl and
    --r also what these parameters of the benchmark say of the steady state; they count from the
    first step in the trace.

    \b
    Example:
        tracehouse steps serving.json.gz
        tracehouse steps warehouse --trace run-0421 --table step_summary --format csv
        tracehouse steps serving.json.gz --conc 64 --osl 1024 --r 0.8
    """
    from tracehouse.commands.settings import read_settings
    from tracehouse.commands.steps import trace_steps

    settings = read_settings(
        step_patterns=step_patterns,
        conc=conc,
        osl=osl,
        r=r,
        num_prompts=num_prompts,
        model_config=model_config,
    )
    found = trace_steps(path, trace=trace, settings=settings)
    if fmt != "table":
        _emit(found, table, fmt)
        return
    if not any(page.steps.num_rows for page in found):
        click.echo("No annotation is a step; --step-pattern says which are.", err=True)
    for number, page in enumerate(found):
        if number:
            click.echo()
        _write(page, limit)


def _emit(found: list[TraceSteps], table: str, fmt: str) -> None:
    import pyarrow as pa

    tables = {
        "steps": [page.steps for page in found],
        "step_summary": [page.summary for page in found],
        "steady_state": [page.steady for page in found],
        "attention_summary": [page.attention for page in found],
    }[table]
    if tables:
        plain = [t.cast(pa.schema([_plain(pa, field) for field in t.schema])) for t in tables]
        emit(pa.concat_tables(plain), fmt)
    else:
        emit(pa.table({}), fmt)


def _plain(pa: Any, field: Any) -> Any:
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, type_)


def _write(page: TraceSteps, limit: int) -> None:
    click.echo(f"{printable(beside(page.path))}  [{page.trace_id}]")
    count = page.steps.num_rows
    frameworks = sorted({f for f in page.steps["framework"].to_pylist() if f})
    named = f", written by {', '.join(map(printable, frameworks))}" if frameworks else ""
    click.echo(f"  {count:,} steps{named}")
    if not count:
        return
    _write_regions(page)
    click.echo("  by phase and requests")
    rows = [_summary_cells(row) for row in page.summary.to_pylist()]
    emit_rows(_SUMMARY_HEAD, rows, [False] + [True] * 9, indent="    ")
    _write_attention(page)
    click.echo("  steps")
    shown = page.steps.slice(0, limit) if limit else page.steps
    rows = [_step_cells(row) for row in shown.to_pylist()]
    emit_rows(_STEP_HEAD, rows, [True, False, *[True] * 8, False], indent="    ")
    if shown.num_rows < count:
        click.echo(f"{shown.num_rows:,} of {count:,} steps shown; --limit 0 shows all.", err=True)


def _write_regions(page: TraceSteps) -> None:
    regions = page.steady.to_pylist()
    if not regions:
        return
    click.echo("  steady state")
    rows = [
        [
            f"{row['first_step']:,}–{row['last_step']:,}",
            row["kind"].replace("_", "-"),
            f"{row['rule']}{' (fallback)' if row['fallback'] else ''}",
            cell(row["steps"]),
            cell(row["concurrency"]),
        ]
        for row in regions
    ]
    emit_rows(_REGION_HEAD, rows, [True, False, False, True, True], indent="    ")


def _write_attention(page: TraceSteps) -> None:
    rows = page.attention.to_pylist()
    if not rows:
        return
    click.echo("  attention by phase")
    cells = [_attention_cells(row) for row in rows]
    emit_rows(_ATTENTION_HEAD, cells, [False, False, *[True] * 8, False], indent="    ")
    for words in sorted({row[name] for row in rows for name in ("why", "note") if row[name]}):
        click.echo(f"    {printable(words)}")


def _attention_cells(row: dict[str, Any]) -> list[str]:
    def pair(first: int | None, second: int | None) -> str:
        if first is None or second is None:
            return ""
        return f"{first}" if first == second else f"{first}/{second}"

    return [
        row["phase"] or "",
        printable(row["name"] or ""),
        pair(row["h_q"], row["h_kv"]),
        pair(row["d_qk"], row["d_v"]),
        cell(row["window_keys"]),
        cell(row["calls"]),
        duration(row["mean_ns"]),
        cell(row["tflops_s"]),
        cell(row["tb_s"]),
        percentage(row["roofline_pct"]),
        row["bound"] or "",
    ]


def _summary_cells(row: dict[str, Any]) -> list[str]:
    return [
        row["phase"],
        cell(row["r"]),
        cell(row["steps"]),
        duration(row["cpu_median_ns"]),
        duration(row["gpu_median_ns"]),
        duration(row["gpu_p95_ns"]),
        percentage(row["gpu_busy_pct"]),
        duration(row["gap_median_ns"]),
        _rate(row["tokens_per_s"]),
        percentage(row["over_decode_pct"]),
    ]


def _step_cells(row: dict[str, Any]) -> list[str]:
    return [
        cell(row["step_id"]),
        row["phase"],
        cell(row["r"]),
        cell(row["tokens"]),
        duration(row["cpu_dur_ns"]),
        duration(row["gpu_busy_ns"]),
        duration(row["gpu_span_ns"]),
        duration(row["gap_before_ns"]),
        _rate(row["tokens_per_s"]),
        cell(row["kernels"]),
        row["graph"] or "",
    ]


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
