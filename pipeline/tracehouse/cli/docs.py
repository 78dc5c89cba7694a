"""`tracehouse docs`: the generated part of the documentation."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from tracehouse.cli.options import reports_errors


@click.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.pass_context
@reports_errors
def docs(context: click.Context, folder: Path) -> None:
    """Write the reference pages.

    FOLDER gets one page for the tables, the codes, the formulas and the commands.

    \b
    Example:
        tracehouse docs docs/reference
    """
    from tracehouse.commands.docs import GENERATED, codes_page, formulas_page, tables_page

    root = context.find_root().command
    assert isinstance(root, click.Group)
    pages = {
        "tables.md": tables_page(),
        "codes.md": codes_page(),
        "formulas.md": formulas_page(),
        "commands.md": f"# Commands\n\n{GENERATED}\n\n{commands_text(root)}",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    click.echo(f"Wrote {', '.join(pages)} to {folder}", err=True)


def commands_text(root: click.Group) -> str:
    """Return every command that is not hidden, as Markdown: usage, words, example, options."""
    shown = (command for command in root.commands.values() if not command.hidden)
    return "\n".join(_section(command) for command in shown)


def _section(command: click.Command) -> str:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    usage = " ".join(["tracehouse", str(command.name), *map(_argument, arguments), "[OPTIONS]"])
    words, _, example = inspect.cleandoc(command.help or "").partition("\b\nExample:\n")
    lines = [f"## {command.name}", "", f"`{usage}`", "", words.strip(), ""]
    lines += ["```", inspect.cleandoc(example), "```", ""]
    lines += [f"- `{_names(option)}`: {option.help}" for option in options]
    return "\n".join(lines).rstrip() + "\n"


def _argument(argument: click.Argument) -> str:
    name = str(argument.name).upper() + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _names(option: click.Option) -> str:
    names = ", ".join(option.opts)
    if option.is_flag:
        return names
    values = option.type.choices if isinstance(option.type, click.Choice) else ["VALUE"]
    default = f" (default {option.default})" if option.show_default else ""
    return f"{names} {'|'.join(map(str, values))}{default}"
