"""`tracehouse show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.options import format_option, out_argument, reports_errors
from tracehouse.cli.output import (
    beside,
    cell,
    check_words,
    duration,
    emit,
    emit_rows,
    percentage,
    printable,
)
from tracehouse.cli.show_roofline import write_rooflines
from tracehouse.cli.show_triton import write_kernels, write_rows, write_walks
from tracehouse.cli.terminal import coloured, write_line
from tracehouse.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_TOP = 5
_CHECKS = 4
_NAME_WIDTH = 72


@click.command()
@out_argument
@click.argument("table", required=False)
@click.option("--kernel", metavar="NAME", help="With triton: walk through the kernel of that name.")
@click.option("--trace", help="Only traces whose id, path or file name starts so.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Traces, or rows of TABLE, at most; 0 for all.",
)
@format_option
@reports_errors
def show(
    out: Path, table: str | None, kernel: str | None, trace: str | None, limit: int, fmt: str
) -> None:
    """Show where the GPU time went.

    For each trace in OUT its device time, the checks it fails, top ops and top kernels; or the rows
    of TABLE. TABLE roofline is shown for people: how far each op is from the device's limit. So is
    triton: what the kernels of torch.compile did; for machines it is triton_summary, and with
    --kernel the rows of triton_kernels.

    \b
    Example:
        tracehouse show warehouse
        tracehouse show warehouse roofline
        tracehouse show warehouse triton --kernel triton_poi_fused_add_0
        tracehouse show warehouse op_summary --trace run-0421 --format csv
    """
    from tracehouse.commands import show as command

    if kernel is not None and table != "triton":
        raise UsageError(
            "--kernel goes with the table triton.", hint="show OUT triton --kernel NAME"
        )
    if table == "triton":
        if fmt != "table":
            write_rows(out, kernel, trace, limit, fmt)
        elif kernel is None:
            write_kernels(out, trace, limit)
        else:
            write_walks(out, kernel, trace, limit)
        return
    if table == "roofline" and fmt == "table":
        write_rooflines(out, trace, limit)
        return
    if table is not None:
        rows = command.table_rows(out, table, trace=trace, limit=limit)
        emit(rows.table, fmt)
    else:
        rows = command.trace_rows(out, trace=trace, limit=limit)
        if fmt == "table":
            _write_overview(out, rows.table)
        else:
            emit(rows.table, fmt)
    if rows.table.num_rows < rows.total:
        shown = f"{rows.table.num_rows:,} of {rows.total:,} rows"
        click.echo(f"{shown} shown; --limit 0 shows all.", err=True)


def _write_overview(out: Path, traces: pa.Table) -> None:
    from tracehouse.commands.show import top_lists

    rows = traces.to_pylist()
    lists = top_lists(out, [row["trace_id"] for row in rows], _TOP)
    for number, row in enumerate(rows):
        if number:
            click.echo()
        _write_head(row)
        top = lists[row["trace_id"]]
        _write_checks(top.failing, row["trace_id"])
        _write_top("top ops", top.ops, "name", "category", "direct_kernel_time_ns")
        _write_top("top kernels", top.kernels, "short_name", "kind", "time_ns")


def _write_head(row: dict[str, Any]) -> None:
    reason = f" ({printable(row['reason'])})" if row["reason"] else ""
    name = coloured(printable(beside(row["path"] or "")), bold=True)
    click.echo(f"{name}  [{row['trace_id']}]")
    colour = "green" if row["status"] == "ok" else "red"
    status = f"status {row['status']}{reason}"
    click.echo(f"  label {printable(row['label'] or '-')}, {coloured(status, fg=colour)}")
    click.echo(f"  {cell(row['events'])} events, {cell(row['kernels'])} kernels")
    if row["busy_pct"] is None:
        click.echo("  no GPU activity")
        return
    click.echo(
        f"  device busy {percentage(row['busy_pct'])}: "
        f"{duration(row['busy_ns'])} of {duration(row['total_ns'])}"
    )
    parts = ", ".join(
        f"{words} {duration(row[f'{name}_ns'])} ({percentage(row[f'{name}_pct'])})"
        for words, name in (
            ("computation", "computation"),
            ("exposed communication", "exposed_comm"),
            ("exposed copies", "exposed_memcpy"),
        )
    )
    write_line(parts, indent="  ")


def _write_checks(failing: pa.Table, trace_id: str) -> None:
    for check in failing.slice(0, _CHECKS).to_pylist():
        write_line(f"check: {check_words(**check)}", indent="  ", fg="yellow")
    if failing.num_rows > _CHECKS:
        rest = failing.num_rows - _CHECKS
        click.echo(f"  {rest} more checks fail: tracehouse show OUT checks --trace {trace_id}")


def _write_top(title: str, rows: pa.Table, name: str, kind: str, time: str) -> None:
    if not rows.num_rows:
        return
    click.echo(f"  {title}")
    texts = [
        [
            _shortened(row[name] or ""),
            printable(row[kind] or ""),
            cell(row["count"]),
            duration(row[time]),
            percentage(row["pct"]),
        ]
        for row in rows.to_pylist()
    ]
    emit_rows(
        ["name", kind, "count", "GPU time", "share"],
        texts,
        right=[False, False, True, True, True],
        indent="    ",
    )


def _shortened(name: str) -> str:
    text = printable(name)
    return text if len(text) <= _NAME_WIDTH else f"{text[: _NAME_WIDTH - 1]}…"
