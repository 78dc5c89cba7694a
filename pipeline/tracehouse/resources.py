"""The only finder of the packaged SQL and data files.

A wheel carries them inside the package (`tracehouse/sql`, `tracehouse/data`); a checkout has them
at its root.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from tracehouse.errors import TracehouseError


def sql_texts(folder: str) -> dict[str, str]:
    """Read the SQL files of a folder of sql/.

    Args:
        folder: name of the folder, e.g. `trace`.

    Returns:
        File name without suffix to text, in order of name.

    Raises:
        TracehouseError: RESOURCE_MISSING if there is no such folder.
    """
    files = [f for f in _find("sql", folder).iterdir() if f.name.endswith(".sql")]
    return {
        f.name.removesuffix(".sql"): f.read_text(encoding="utf-8")
        for f in sorted(files, key=lambda f: f.name)
    }


def data_names(folder: str) -> tuple[str, ...]:
    """Name the files of a folder of data/, e.g. of `arch`, in order.

    Raises:
        TracehouseError: RESOURCE_MISSING if there is no such folder.
    """
    return tuple(sorted(f.name for f in _find("data", folder).iterdir() if f.is_file()))


def data_text(name: str) -> str:
    """Read a text file of data/, e.g. `op_categories.csv` or `arch/MI300X.json`.

    Raises:
        TracehouseError: RESOURCE_MISSING if there is no such file.
    """
    return _find("data", name).read_text(encoding="utf-8")


def page_text(name: str) -> str:
    """Read a text file of pages/assets, e.g. `page.css`.

    Raises:
        TracehouseError: RESOURCE_MISSING if there is no such file.
    """
    return _find("pages", f"assets/{name}").read_text(encoding="utf-8")


def _find(kind: str, name: str) -> Traversable:
    package = resources.files("tracehouse")
    roots: tuple[Traversable, ...] = (package, Path(__file__).parents[2])
    for root in roots:
        found = root.joinpath(kind).joinpath(*name.split("/"))
        if found.is_file() or found.is_dir():
            return found
    raise TracehouseError(
        f"{kind}/{name} is neither in the installed package nor in the checkout",
        code="RESOURCE_MISSING",
        hint="reinstall tracehouse",
    )
