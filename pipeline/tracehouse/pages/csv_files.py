"""The tables of a page as a folder of CSV files, one a table, values as they are stored."""

from __future__ import annotations

import csv
from pathlib import Path

from tracehouse.pages.model import Page
from tracehouse.pages.words import as_json


def write(page: Page, folder: Path) -> None:
    """Write NAME.csv for each table of a page; the folder is made if absent.

    A head line of column names; NULL is empty, numbers are as stored, lists are JSON.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for table in page.tables:
        columns = [column.to_pylist() for column in table.rows.columns]
        temporary = folder / f".{table.name}.csv.tmp"
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.rows.column_names)
            for row in zip(*columns, strict=True):
                writer.writerow(as_json(v) if isinstance(v, list | dict) else v for v in row)
        temporary.replace(folder / f"{table.name}.csv")
