"""From the options of a command to the settings of an analysis: read and tried at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracehouse.analysis.settings import CategoryFile, Settings
from tracehouse.errors import UsageError
from tracehouse.formulas.arch import chosen
from tracehouse.formulas.user import read_model_file


def read_settings(
    *,
    categories: str | None = None,
    arch: str | None = None,
    models: Sequence[str] = (),
) -> Settings:
    """Read the files that a user names.

    `categories`: a CSV file of op categories. `arch`: name of a device, or a JSON file of its
    peaks. `models`: Python files of formulas. UsageError says which of them cannot be used and why.
    """
    settings = Settings(
        categories=None if categories is None else _categories(categories),
        arch=None if arch is None else chosen(arch),
        models=tuple(read_model_file(path) for path in models),
    )
    _ = settings.rules  # so that a wrong row is told now
    return settings


def _categories(path: str) -> CategoryFile:
    try:
        return CategoryFile(path, Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the categories of {path}: {error}",
            hint="give a CSV file with the columns pattern, match, category, family",
        ) from error
