"""`tracehouse plan`."""

from __future__ import annotations

import csv
import json
import math
import sys
import textwrap
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tracehouse.cli.options import format_option, reports_errors

if TYPE_CHECKING:
    from tracehouse.commands.plan import Plan, Recipe

_WIDTH = 80
_ROWS = 12  # completion ranges in the picture
_FEWEST_CELLS = 12


@click.command()
@click.option("--conc", type=int, required=True, help="Requests that run at once.")
@click.option("--osl", type=int, required=True, help="Longest output, in tokens.")
@click.option(
    "--r",
    type=float,
    required=True,
    help="Shortest output as a share of OSL: 1 if all are OSL long, 0 if anything up to it.",
)
@click.option("--num-prompts", type=int, help="Requests in all; 10 x CONC by default.")
@format_option
@reports_errors
def plan(conc: int, osl: int, r: float, num_prompts: int | None, fmt: str) -> None:
    """Say which steps of a serving benchmark to profile.

    From its parameters alone: how many steps it has, when its requests end, the window in which the
    batch is full and mixed, and the flags that make vLLM and SGLang profile it.

    \b
    Example:
        tracehouse plan --conc 64 --osl 1024 --r 0.8
        tracehouse plan --conc 64 --osl 1024 --r 0.8 --num-prompts 640 --format json
    """
    from tracehouse.commands import plan as command

    planned = command.plan(conc, osl, r, num_prompts)
    for warning in planned.warnings:
        click.echo(f"Warning: {warning}.", err=True)
    if fmt == "json":
        click.echo(json.dumps(command.record(planned), indent=2, ensure_ascii=False))
    elif fmt == "csv":
        _write_csv(command.record(planned))
    else:
        _write_facts(planned)
        _write_picture(planned)
        for note in planned.notes:
            _write_wrapped("  - ", note)
        for recipe in command.recipes(planned):
            _write_recipe(recipe)


def _write_csv(row: dict[str, Any]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(row)
    writer.writerow(
        [json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for v in row.values()]
    )


def _write_facts(planned: Plan) -> None:
    load, window = planned.load, planned.window
    click.echo(
        f"CONC {load.conc:,}, OSL {load.osl:,}, R {float(load.r):g}, "
        f"NUM_PROMPTS {load.num_prompts:,}"
    )
    least = load.min_window_steps
    often = "every step" if least == 1 else f"one in {least:,} steps"
    facts = {
        "average output": f"{_number(load.avg_osl)} tokens",
        "TOTAL_STEPS": _number(load.total_steps),
        "prefill-decode steps": f"{_number(load.prefill_decode_steps)}, "
        f"a share of {float(load.ratio):.6g}: {often}",
        "decode-only steps": _number(load.decode_only_steps),
        "max_iters": _clamped(window.max_iters, window.max_iters_raw, window.max_reason),
        "delay_iters": _clamped(window.delay_iters, window.delay_iters_raw, window.delay_reason),
        "profile": _profiled(planned),
    }
    width = max(map(len, facts))
    for name, words in facts.items():
        _write_wrapped(f"  {name.ljust(width)}  ", words)


def _profiled(planned: Plan) -> str:
    first, last = planned.window.delay_iters, planned.end - 1
    if last < first:
        return "nothing"
    prefills = float(planned.expected_prefills)
    return f"steps {first:,} to {last:,}, about {prefills:,.1f} of them with a prefill"


def _clamped(value: int, raw: Fraction, reason: str) -> str:
    return f"{value:,} (raw {_number(raw)}{f'; {reason}' if reason else ''})"


def _write_picture(planned: Plan) -> None:
    """Draw the run from its first step to its last, a row a phase, each with its steps."""
    load, window = planned.load, planned.window
    rows: list[tuple[str, str, Fraction, Fraction]] = [
        ("ramp-up", "░", Fraction(0), Fraction(load.conc)),
        *(
            (f"group {n:,} ends", "▒", *load.completion_range(n))
            for n in _pictured(load.groups, load.group)
        ),
        ("window", "█", Fraction(window.delay_iters), Fraction(planned.end)),
        ("the run", "─", Fraction(0), load.total_steps),
    ]
    names = max(len(name) for name, *_ in rows)
    ranges = [f"{_number(start)} – {_number(end)}" for _, _, start, end in rows]
    cells = max(_FEWEST_CELLS, _WIDTH - 2 - names - 2 - 2 - max(map(len, ranges)))
    step = max(end for *_, end in rows) / cells
    click.echo()
    for (name, mark, start, end), shown in zip(rows, ranges, strict=True):
        first = min(math.floor(start / step), cells - 1)
        drawn = max(1, math.ceil(end / step) - first) if end > start or mark == "▒" else 0
        click.echo(f"  {name:<{names}}  {' ' * first}{mark * drawn:<{cells - first}}  {shown}")
    click.echo()


def _pictured(groups: int, group: int) -> list[int]:
    """Return the groups to draw: all, or the first ones and the last if they are too many."""
    if groups <= _ROWS:
        return list(range(1, groups + 1))
    return [*range(1, max(group, _ROWS - 1) + 1), groups]


def _write_recipe(recipe: Recipe) -> None:
    click.echo(f"\n{recipe.framework} ({recipe.versions}):\n")
    for line in recipe.lines:
        click.echo(f"    {line}")
    click.echo()
    for note in recipe.notes:
        _write_wrapped("  - ", note)


def _write_wrapped(start: str, words: str) -> None:
    wrapped = textwrap.wrap(
        words, _WIDTH - len(start), break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(wrapped):
        click.echo(f"{' ' * len(start) if number else start}{line}")


def _number(value: Fraction) -> str:
    """Return at most two decimals, thousands separated; 9216 and not 9216.00."""
    return f"{Decimal(round(value * 100)).scaleb(-2):,.2f}".rstrip("0").rstrip(".")
