"""`tracehouse report`: a page about one trace or a warehouse, written in one of several formats.

Every number on it is the result of a query of sql/report; here they are put in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tracehouse.commands import report_archive, report_trace
from tracehouse.commands.report_data import Source
from tracehouse.errors import UsageError
from tracehouse.pages.model import Page
from tracehouse.storage.address import shown
from tracehouse.warehouse.query import Warehouse

FORMATS = ("html", "xlsx", "csv", "md")
_SUFFIXES = {".html": "html", ".htm": "html", ".xlsx": "xlsx", ".csv": "csv", ".md": "md"}
_MOST_NAMED = 5


def page_of(out: Path, *, trace: str | None = None, label: str | None = None) -> Page:
    """Return the page of the trace meant by `trace`, or of the warehouse, or of one label of it.

    trace: an id, path or file name, or the start of one.

    Raises:
        UsageError: no trace or several fit, no trace has the label, or both are given.
    """
    if trace is not None and label is not None:
        raise UsageError("--trace and --label exclude each other.", hint="Leave one out.")
    with Warehouse(out) as warehouse:
        source = Source(warehouse)
        if trace is not None:
            return report_trace.page(source, _only_trace(warehouse, trace))
        if label is not None:
            _check_label(warehouse, label)
        return report_archive.page(source, shown(out), label)


def fitting_format(path: Path | None) -> str:
    """Return the format that the suffix of a path tells; html if it tells none."""
    return "html" if path is None else _SUFFIXES.get(path.suffix.lower(), "html")


def write(page: Page, fmt: str, path: Path) -> None:
    """Write a page to `path` in one of FORMATS: whole or not at all; csv is a folder of files.

    Raises:
        UsageError: csv is asked for and `path` is a file, or another format and it is a folder.
        OSError: it cannot be written.
    """
    if fmt == "csv":
        from tracehouse.pages import csv_files

        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file.", hint="csv is written as a folder of files.")
        csv_files.write(page, path)
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", hint=f"Name a file, e.g. {path}/report.{fmt}")
    if fmt == "xlsx":
        from tracehouse.pages import xlsx

        _replace(path, lambda target: xlsx.write(page, target))
        return
    text = rendered(page, fmt)
    _replace(path, lambda target: target.write_text(text, encoding="utf-8"))


def rendered(page: Page, fmt: str) -> str:
    """Return a page as text: `html` or `md`."""
    if fmt == "html":
        from tracehouse.pages import html

        return html.render(page)
    from tracehouse.pages import markdown

    return markdown.render(page)


def _replace(path: Path, write_to: Callable[[Path], object]) -> None:
    """Write beside `path`, then rename over it: a reader meets the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_to(temporary)
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _only_trace(warehouse: Warehouse, trace: str) -> str:
    from tracehouse.commands.show import restriction

    where, parameters = restriction(warehouse, trace)
    query = f"SELECT trace_id, path FROM traces {where} ORDER BY path, trace_id"
    found = warehouse.arrow(query, parameters).to_pylist()
    exact = [row for row in found if trace in (row["trace_id"], row["path"])]
    if len(exact) == 1:
        found = exact
    if len(found) > 1:
        named = "; ".join(f"{row['trace_id']} {row['path']}" for row in found[:_MOST_NAMED])
        more = "; …" if len(found) > _MOST_NAMED else ""
        raise UsageError(
            f"{len(found)} traces start with {trace!r}.", hint=f"Name one: {named}{more}"
        )
    return str(found[0]["trace_id"])


def _check_label(warehouse: Warehouse, label: str) -> None:
    query = "SELECT DISTINCT label FROM traces WHERE label IS NOT NULL ORDER BY label"
    known = warehouse.arrow(query)["label"].to_pylist()
    if label not in known:
        named = ", ".join(known[:20]) or "none"
        raise UsageError(f"No trace has the label {label!r}.", hint=f"There are: {named}")
