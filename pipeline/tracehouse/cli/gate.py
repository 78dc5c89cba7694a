"""`tracehouse gate`."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from pathlib import Path

import click

from tracehouse.cli.options import FAILED, USAGE, out_argument, reports_errors

FORMATS = ("text", "json", "md", "junit")


def _percent(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Read `5%` or `5` as a percentage of at least 0."""
    if value is None:
        return None
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise click.BadParameter(f"{value!r} is no percentage, such as 5%", context, option)
    return number


def _age(context: click.Context, option: click.Parameter, value: str | None) -> timedelta | None:
    """Read a length of time such as `36h` or `2d`."""
    if value is None:
        return None
    given = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([hd])", value)
    if not given:
        raise click.BadParameter(
            f"{value!r} is no length of time, such as 36h or 2d", context, option
        )
    return timedelta(hours=float(given[1]) * (24 if given[2] == "d" else 1))


@click.command()
@out_argument
@click.option("--label", help="Judge the newest run of this label; the only one by default.")
@click.option(
    "--against",
    metavar="RUNS",
    default="last:20",
    show_default=True,
    help="last:N, the N good runs before it; label:NAME, the newest of another label; or trace:ID.",
)
@click.option(
    "--max-slowdown",
    callback=_percent,
    metavar="PCT",
    help="Less is never a regression; 5% by default.",
)
@click.option(
    "--min-share",
    callback=_percent,
    metavar="PCT",
    help="Ops, kernels and steps of less time are not judged; 1% by default.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="Judge this metric of `trends` only. May be given several times.",
)
@click.option(
    "--newest",
    type=click.IntRange(min=1),
    metavar="K",
    help="Judge the median of the newest K good runs: slower to see, surer; 1 by default.",
)
@click.option(
    "--min-runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs that a number needs to be compared with; 5 by default.",
)
@click.option(
    "--max-age",
    callback=_age,
    metavar="AGE",
    help="Say no verdict (exit 2) if the newest run is older, e.g. 36h or 2d: it is missing.",
)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to write the verdict on stdout.",
)
@reports_errors
def gate(
    out: Path,
    label: str | None,
    against: str,
    max_slowdown: float | None,
    min_share: float | None,
    metrics: tuple[str, ...],
    newest: int | None,
    min_runs: int | None,
    max_age: timedelta | None,
    fmt: str,
) -> None:
    """Fail if the newest run of a label is slower than the runs before it.

    Each number of the run is compared with its median over earlier runs: the GPU's busy and total
    time, steps, tokens a second, each op with its input shapes, each kernel. It is a regression if
    it is worse by --max-slowdown and beyond the noise of the earlier runs. Exits with 0 if nothing
    is, 1 if something is, and 2 if that cannot be said: the newest file was rejected or cut short,
    too few earlier runs can be compared, or the command is wrong. That the newest run left no file
    at all, only --max-age can tell. docs/regressions.md says more.

    \b
    Example:
        tracehouse gate warehouse --label nightly --against last:20
        tracehouse gate warehouse --label main --against label:release --max-slowdown 3%
        tracehouse gate warehouse --label nightly --max-age 36h --format junit
    """
    from tracehouse.cli import gate_words as words
    from tracehouse.commands.gate import DEFAULT_METRICS, GateOptions, Outcome
    from tracehouse.commands.gate import gate as judge

    options = GateOptions(
        newest_runs=newest,
        min_runs=min_runs,
        max_slowdown_pct=max_slowdown,
        min_share_pct=min_share,
        metrics=metrics or DEFAULT_METRICS,
        max_age=max_age,
    )
    report = judge(out, label, against, options)
    written = {
        "text": words.text,
        "json": words.as_json,
        "md": words.markdown,
        "junit": words.junit,
    }
    click.echo(written[fmt](report))
    codes = {Outcome.PASSED: 0, Outcome.FAILED: FAILED, Outcome.UNDECIDED: USAGE}
    sys.exit(codes[report.outcome])
