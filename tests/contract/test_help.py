"""Every command explains itself: a sentence, an example that parses, help for each option."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from tracehouse.cli.main import main

COMMANDS = sorted(main.commands)


def examples(text: str) -> list[str]:
    """Return the lines below `Example:` that call tracehouse."""
    _, _, below = text.partition("Example:\n")
    return [line.strip() for line in below.splitlines() if line.strip().startswith("tracehouse ")]


@pytest.mark.parametrize(
    "arguments", [[], *([name] for name in COMMANDS)], ids=["tracehouse", *COMMANDS]
)
def test_help_has_a_sentence_and_an_example(arguments):
    result = CliRunner().invoke(main, [*arguments, "--help"], prog_name="tracehouse")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: {' '.join(['tracehouse', *arguments])} ")
    assert examples(result.stdout)
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_examples_parse(name):
    command = main.commands.get(name, main)
    for example in examples(command.help or ""):
        _, verb, *rest = shlex.split(example, comments=True)
        assert verb == name or not name
        main.commands[verb].make_context(verb, rest)  # a usage error would raise


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    silent = [
        option.name
        for option in main.commands[name].params
        if isinstance(option, click.Option) and not option.help
    ]
    assert silent == []


def test_version():
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.split()[0] == "tracehouse"


@pytest.mark.parametrize(
    "arguments", [["nope"], ["analyze"], ["show"], ["sql", "x"], ["show", "x", "--limit", "-1"]]
)
def test_usage_errors_exit_with_2(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error:" in result.stderr
