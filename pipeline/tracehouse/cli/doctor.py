"""`tracehouse doctor`."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.options import FAILED, reports_errors
from tracehouse.cli.output import cell, check_words, duration, percentage, printable

if TYPE_CHECKING:
    from tracehouse.commands.doctor import Examination, FilePage, TracePage

_WIDTH = 100
_EXAMPLE = 72
_CATEGORIES = 12
_UTC = "+00:00"


@click.command()
@click.argument("file")
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Words for people, or the same as JSON.",
)
@click.option(
    "--reader",
    type=click.Choice(["scan", "ijson"]),
    default="scan",
    show_default=True,
    help="How to read JSON: the fast scanner, or the slow reference.",
)
@reports_errors
def doctor(file: str, fmt: str, reader: str) -> None:
    """Say what a trace file is, what is odd in it and what that costs.

    And how to capture a better one. FILE is a file or URL; nothing is stored. Exits with 1 if the
    file, or a member of it, is rejected.

    \b
    Example:
        tracehouse doctor run.pt.trace.json.gz
        tracehouse doctor run.pt.trace.json.gz --format json
    """
    from tracehouse.commands.doctor import examine

    found = examine(file, reader=reader)
    if fmt == "json":
        click.echo(json.dumps(asdict(found), indent=2, ensure_ascii=True))
    else:
        _write(found)
    if found.is_rejected:
        sys.exit(FAILED)


def _write(found: Examination) -> None:
    _write_file(found.file, sum(page.trace_id is not None for page in found.traces))
    for page in found.traces:
        click.echo()
        _write_trace(page, found.file)


def _write_file(file: FilePage, pages: int) -> None:
    click.echo(printable(file.path))
    count = "1 trace" if pages == 1 else f"{pages or 'no'} traces"
    facts = [f"{file.bytes:,} bytes", file.container, file.encoding, count]
    click.echo(f"  {', '.join(fact for fact in facts if fact)}")
    _write_findings(file.findings)


def _write_trace(page: TracePage, file: FilePage) -> None:
    if page.status == "rejected":
        _write_rejected(page, file)
    else:
        _write_facts(page, file.path)
        _write_categories(page.categories)
        _write_findings(page.findings)
    _write_list("what that costs", [check_words(**check) for check in page.failing])
    if page.status != "rejected" and not page.failing:
        click.echo("  every check that applies holds")
    _write_list("what to do" if page.status == "rejected" else "a better capture", page.advices)


def _write_rejected(page: TracePage, file: FilePage) -> None:
    click.echo("rejected" if page.path == file.path else f"{printable(page.path)}: rejected")
    codes = ", ".join(row["code"] for row in page.findings)
    _write_wrapped("  why          ", printable(f"{page.reason} ({codes})"))
    if page.path == file.path:
        _write_wrapped("  looks like   ", printable(file.kind))
        _write_wrapped("  first bytes  ", printable(file.first_bytes or "none"))


def _write_facts(page: TracePage, file: str) -> None:
    click.echo(f"trace {page.trace_id}: {page.status}")
    facts = {"path": page.path} if page.path != file else {}
    facts |= {**page.facts, "time": _time(page), "GPU": _gpu(page.gpu)}
    width = max(map(len, facts))
    for name, words in facts.items():
        _write_wrapped(f"  {name.ljust(width)}  ", printable(words))


def _time(page: TracePage) -> str:
    if page.duration_ns is None:
        return "no event with a known time"
    length = duration(page.duration_ns)
    if page.start is None or page.end is None:
        return f"{length}; on a clock of its own, not since 1970"
    day, _, clock = page.start.partition("T")
    until = page.end.removeprefix(f"{day}T").replace("T", " ")
    return f"{length}, from {day} {clock.removesuffix(_UTC)} to {until.removesuffix(_UTC)} UTC"


def _gpu(gpu: dict[str, Any] | None) -> str:
    if gpu is None:
        return "no activity"
    devices = "1 device" if gpu["devices"] == 1 else f"{gpu['devices']} devices"
    return (
        f"{cell(gpu['activities'])} activities ({cell(gpu['kernels'])} kernels) on {devices}, busy "
        f"{percentage(gpu['busy_pct'])}: {duration(gpu['busy_ns'])} of {duration(gpu['total_ns'])}"
    )


def _write_categories(categories: dict[str, int]) -> None:
    total = sum(categories.values())
    click.echo(f"  {total:,} events")
    shown = list(categories.items())[:_CATEGORIES]
    rest = len(categories) - len(shown)
    if rest:
        shown.append((f"{rest} more categories", total - sum(n for _, n in shown)))
    width = max((len(f"{n:,}") for _, n in shown), default=0)
    for name, count in shown:
        click.echo(f"    {count:>{width},}  {_cut(name)}")


def _write_findings(findings: tuple[dict[str, Any], ...]) -> None:
    _write_list("what is odd", [_finding(row) for row in findings])


def _finding(row: dict[str, Any]) -> str:
    times = "" if row["count"] == 1 else f" x{row['count']:,}"
    first = row["first_event_id"]
    place = "" if first is None else f", first in event {first:,}"
    example = f": {_cut(row['example'])}" if row["example"] else ""
    done = f"{row['meaning']}; {row['action']}"
    return f"{row['severity']} {row['code']}{times}{place}{example} ({done})"


def _write_list(title: str, lines: Any) -> None:
    if lines:
        click.echo(f"  {title}")
    for line in lines:
        _write_wrapped("    - ", printable(line))


def _write_wrapped(start: str, words: str) -> None:
    wrapped = textwrap.wrap(
        words, _WIDTH - len(start), break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(wrapped or [""]):
        click.echo(f"{' ' * len(start) if number else start}{line}".rstrip())


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _EXAMPLE else f"{shown[: _EXAMPLE - 1]}…"
