"""What the verbs share: options, and errors turned into words and exit codes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from tracehouse.cli.output import FORMATS, printable
from tracehouse.errors import TracehouseError, UsageError

P = ParamSpec("P")
R = TypeVar("R")

FAILED, USAGE, INTERRUPTED = 1, 2, 130

out_argument = click.argument("out", type=click.Path(path_type=Path))

format_option = click.option(
    "--format",
    "fmt",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to write the result on stdout.",
)


_SERVING = (
    click.option(
        "--step-pattern",
        "step_patterns",
        metavar="REGEX",
        multiple=True,
        help="Annotations that are steps, e.g. 'iter(?P<iteration>\\d+) bs=(?P<r>\\d+)'; its named "
        "groups become columns. May be given several times.",
    ),
    click.option("--conc", type=int, help="Requests that the benchmark let run at once."),
    click.option("--osl", type=int, help="Its longest output, in tokens."),
    click.option("--r", type=float, help="Its shortest output as a share of OSL, 0 to 1."),
    click.option("--num-prompts", type=int, help="Its requests in all; 10 x CONC by default."),
)


model_config_option = click.option(
    "--model-config",
    metavar="FILE",
    help="config.json of the model that is served: heads and widths where an op's inputs do not "
    "tell them, windows, the type of the KV cache, the longest context.",
)


_LIMITS = (
    click.option(
        "--max-text",
        metavar="SIZE",
        help="Reject a file or member that unpacks to more text; 256GiB by default.",
    ),
    click.option(
        "--max-ratio",
        type=click.IntRange(min=1),
        help="Reject one that unpacks to more times its size and to more than 256 MiB; 300 by "
        "default.",
    ),
    click.option(
        "--max-members",
        type=click.IntRange(min=1),
        help="Reject an archive of more members; 100000 by default.",
    ),
    click.option(
        "--max-metadata",
        metavar="SIZE",
        help="Text before or behind the event list that is read; 64MiB by default.",
    ),
    click.option(
        "--max-event",
        metavar="SIZE",
        help="Cut the largest text of a longer event; 64MiB by default.",
    ),
)


def limit_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options on how much of a file is read."""
    for option in reversed(_LIMITS):
        command = option(command)
    return command


def serving_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options on steps and on the benchmark that was run."""
    for option in reversed(_SERVING):
        command = option(command)
    return command


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Print an error and its hint; exit 2 for a usage error, 1 for any other and the system's.

    Want of memory is one of the system's.

    Ctrl-C exits with 130 and one line: what was committed stays, and the next run goes on there.
    """

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
        _open_closed_streams()
        try:
            return command(*args, **kwargs)
        except TracehouseError as error:
            click.echo(f"Error: {printable(_with_hint(error), lines=True)}", err=True)
            sys.exit(USAGE if isinstance(error, UsageError) else FAILED)
        except BrokenPipeError:  # the reader of stdout, such as head, has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(FAILED)
        except OSError as error:  # a full disk, a folder that cannot be written to
            click.echo(f"Error: {printable(str(error))}. Nothing half-written counts.", err=True)
            sys.exit(FAILED)
        except MemoryError:
            click.echo("Error: there is not enough memory. Nothing half-written counts.", err=True)
            sys.exit(FAILED)
        except KeyboardInterrupt:
            click.echo("Interrupted. What was committed stays; run it again to go on.", err=True)
            sys.exit(INTERRUPTED)

    return reporting


def _with_hint(error: TracehouseError) -> str:
    """Return the message and the hint as two sentences, or as two halves of one."""
    message = str(error)
    if not error.hint:
        return message
    is_apart = message.endswith((".", "!", "?")) or error.hint.startswith("\n")
    return f"{message}{'' if is_apart else ';'} {error.hint}"


def _open_closed_streams() -> None:
    """Let a process that was started without stdout or stderr (`>&-`) do its work unheard."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))
