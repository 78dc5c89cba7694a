"""What `tracehouse analyze` says on stderr while it runs and when it ends: words, or JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.options import FAILED, INTERRUPTED, USAGE
from tracehouse.cli.output import beside, cell, check_words, duration, printable
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.storage.address import shown

if TYPE_CHECKING:
    from tracehouse.commands.analyze import RunReport, TraceResult
    from tracehouse.commands.results import FailingCheck

OnTrace = Callable[["TraceResult"], None]

_CHECKS = 5  # lines about failing checks
_MOST_NAMED = 10  # of paths in a line


class TextLog:
    """Lines for people; on a terminal a bar instead of a line a trace."""

    @contextmanager
    def progress(self) -> Iterator[OnTrace]:
        """Give a callback that reports a finished trace."""
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

    def end(self, report: RunReport, failing: Sequence[FailingCheck], out: Path) -> None:
        """Say why traces are not ok, which checks fail, and how the run went as a whole."""
        for result in report.results:
            if result.status != "ok":
                reason = printable(result.reason or "no reason given")
                click.echo(f"{result.status}: {printable(beside(result.path))}: {reason}", err=True)
        _write_checks(failing, out)
        _write_sum(report)

    def profile(self, report: RunReport, stages: dict[str, float]) -> None:
        """Say where the CPU time of the run went."""
        record = report.record
        shares = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in stages.items())
        click.echo(
            f"CPU seconds: {shares}; {record.cpu_seconds or 0:.2f} in all on {record.workers} "
            f"workers ({record.executor}); peak memory of one process "
            f"{(record.peak_memory_bytes or 0) / 1e6:,.0f} MB",
            err=True,
        )


class JsonLog:
    """One JSON object a line: `event` says what it is, `time` when (ISO 8601, UTC)."""

    @contextmanager
    def progress(self) -> Iterator[OnTrace]:
        """Give a callback that reports a finished trace. Errors end the run as objects too."""
        try:
            yield lambda result: _emit("trace", **_plain(result))
        except TracehouseError as error:
            _emit("error", code=error.code, message=str(error), hint=error.hint)
            sys.exit(USAGE if isinstance(error, UsageError) else FAILED)
        except OSError as error:
            _emit("error", code="SYSTEM", message=str(error), hint="nothing half-written counts")
            sys.exit(FAILED)
        except MemoryError:
            hint = "nothing half-written counts"
            _emit("error", code="OUT_OF_MEMORY", message="there is not enough memory", hint=hint)
            sys.exit(FAILED)
        except KeyboardInterrupt:
            hint = "what was committed stays; run it again to go on"
            _emit("error", code="INTERRUPTED", message="interrupted", hint=hint)
            sys.exit(INTERRUPTED)

    def end(self, report: RunReport, failing: Sequence[FailingCheck], out: Path) -> None:
        """Tell the checks that fail, what was passed over, and the row of table `runs`."""
        for check in failing:
            _emit("check", **asdict(check))
        for path in report.passed_over:
            _emit("passed_over", path=path, code="TEMP_SKIPPED")
        for path in report.special:
            _emit("passed_over", path=path, code=None)
        for path in report.alone:
            _emit("alone", path=path, memory_limit_bytes=report.record.memory_limit_bytes)
        record = asdict(report.record)
        record["arguments"] = json.loads(report.record.arguments)
        _emit("run", **record, rejected=report.rejected, partial=report.partial)

    def profile(self, report: RunReport, stages: dict[str, float]) -> None:
        """Tell where the CPU time of the run went."""
        _emit("profile", **{f"{stage}_seconds": seconds for stage, seconds in stages.items()})


LOGS: dict[str, type[TextLog] | type[JsonLog]] = {"text": TextLog, "json": JsonLog}


def _plain(result: TraceResult) -> dict[str, Any]:
    stages = {f"{stage}_seconds": seconds for stage, seconds in result.stages.items()}
    return {
        "path": result.path,
        "status": result.status,
        "reason": result.reason,
        "events": result.events,
        "kernels": result.kernels,
        "busy_ns": result.busy_ns,
        "bytes": result.bytes,
        "seconds": result.seconds,
        **stages,
    }


def _emit(event: str, **fields: Any) -> None:
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    click.echo(json.dumps({"time": time, "event": event, **fields}), err=True)


def _summary(result: TraceResult) -> str:
    path = printable(beside(result.path))
    if result.events is None:
        return f"{result.status:<8}  {path}"
    if result.kernels is None:  # only its status is found out
        said = f"{cell(result.events)} events, content known before, {result.seconds:.2f} s"
        return f"{result.status:<8}  {path}: {said}"
    return (
        f"{result.status:<8}  {path}: {cell(result.events)} events, "
        f"{cell(result.kernels)} kernels, busy {duration(result.busy_ns)}, {result.seconds:.2f} s"
    )


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
        click.echo(f'{rest}: tracehouse sql {printable(shown(out))} "{query}"', err=True)


def _first(paths: Sequence[str]) -> str:
    """Name the first of some paths."""
    return ", ".join(printable(beside(path)) for path in paths[:_MOST_NAMED])


def _write_sum(report: RunReport) -> None:
    """Say on stderr how the run went as a whole."""
    if report.passed_over:
        count, first = len(report.passed_over), _first(report.passed_over)
        click.echo(f"TEMP_SKIPPED: {count:,} unfinished files passed over: {first}", err=True)
    if report.special:
        count, first = len(report.special), _first(report.special)
        click.echo(f"pipes, sockets and devices passed over: {count:,}: {first}", err=True)
    if report.pruned:
        click.echo(f"pruned, their files are gone: {len(report.pruned):,}", err=True)
    if report.alone:
        limit = (report.record.memory_limit_bytes or 0) / 1e9
        click.echo(
            f"may need more memory than the limit of {limit:,.1f} GB, analysed one at a time with "
            f"nothing else running: {_first(report.alone)}",
            err=True,
        )
    if report.record.worker_deaths:
        click.echo(f"processes that died: {report.record.worker_deaths:,}", err=True)
    captures = f", {report.captures:,} of graph captures" if report.captures else ""
    click.echo(
        f"{report.total:,} files{captures}: {report.unchanged:,} unchanged, "
        f"{report.partial:,} partial, {report.rejected:,} rejected; {report.seconds:.2f} s; "
        f"{shown(report.warehouse)}",
        err=True,
    )
