"""The record of each run: a row of table `runs`, one small JSON file each.

    OUT/lake/runs/run-000001.json

A run's file is written when it begins, and replaced when it ends: one that was killed stays without
an end. A reader meets one or the other, whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from tracehouse.storage import durable, layout

FOLDER = "runs"
PATH = f"{layout.LAKE}/{FOLDER}"
PATTERN = "run-*.json"

_RUN_ID = re.compile(r"run-(\d{6,})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A row of table `runs`, whose columns say what each field means. Times are ISO 8601, UTC."""

    run_id: str
    started_at: str
    pipeline_version: str
    host: str
    pid: int
    arguments: str
    executor: str | None = None
    workers: int | None = None
    memory_limit_bytes: int | None = None
    finished_at: str | None = None
    exit_code: int | None = None
    error: str | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    publish_seconds: float | None = None
    peak_memory_bytes: int | None = None
    worker_deaths: int | None = None
    files: int | None = None
    unchanged: int | None = None
    pruned: int | None = None
    traces_ok: int | None = None
    traces_repaired: int | None = None
    traces_partial: int | None = None
    traces_rejected: int | None = None
    bytes: int | None = None
    events: int | None = None


def folder(out: Path) -> Path:
    """Return where the records of a warehouse are."""
    return out / layout.LAKE / FOLDER


def next_run_id(out: Path) -> str:
    """Return the id of the next run. Call it under the lock."""
    found = [_RUN_ID.fullmatch(path.stem) for path in _records(out)]
    return f"run-{max((int(match[1]) for match in found if match), default=0) + 1:06d}"


def has_any(out: Path) -> bool:
    """Whether there is a record."""
    return any(_RUN_ID.fullmatch(path.stem) for path in _records(out))


def write(out: Path, record: RunRecord) -> None:
    """Put a run's record in its place. Call it under the lock. Raises OSError."""
    path = folder(out) / f"{record.run_id}.json"
    durable.make_folder(path.parent)
    fields = {name: _storable(value) for name, value in asdict(record).items()}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    durable.replace_text(path, path.with_suffix(".tmp"), f"{text}\n")


def _storable(value: object) -> object:
    """Return a text so that it can be stored: what is not UTF-8 becomes an escape."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value


def _records(out: Path) -> list[Path]:
    found = folder(out)
    return list(found.glob(PATTERN)) if found.is_dir() else []
