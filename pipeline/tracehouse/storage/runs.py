"""The record of each run: a row of table `runs`, one small JSON file each.

    OUT/lake/runs/run-000001.json

A run's file is written when it begins, and replaced when it ends: one that was killed stays without
an end. A reader meets one or the other, whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, get_type_hints

from tracehouse.storage import durable, layout
from tracehouse.storage.unreadable import UNREAD, unreadable, why_unreadable

FOLDER = "runs"
PATH = f"{layout.LAKE}/{FOLDER}"
PATTERN = "run-*.json"

_LONGEST = 16 << 20  # bytes of a record that DuckDB reads
_TIMES = frozenset({"started_at", "finished_at"})
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


def record_faults(out: Path) -> dict[Path, tuple[str, str]]:
    """Return the records with which table `runs` fails or lacks a row: the fault, and in words.

    `unreadable` where this process cannot read one, else `record`: one that is no JSON object, in
    one line, of the run that its name says. Oldest first. A record has no checksum: what it says is
    not judged.
    """
    found: dict[Path, tuple[str, str]] = {}
    for path in sorted(_records(out), key=lambda p: (len(p.name), p.name)):
        try:
            with path.open("rb") as file:
                content = file.read(_LONGEST + 1)
        except OSError as error:
            why = why_unreadable(error)
            found[path] = ("record", "it is no file") if why is None else (UNREAD, why)
            continue
        if (what := _wrong_record(content, path.stem)) is not None:
            found[path] = ("record", what)
    return found


def _wrong_record(content: bytes, run_id: str) -> str | None:
    """Return why a record's content is none of the run; None if it is."""
    if not content.strip():
        return "it is empty"
    if len(content) > _LONGEST or b"\n" in content.strip():
        return "it is no JSON object in one line"
    try:
        fields = json.loads(content.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    if not isinstance(fields, dict) or fields.get("run_id") != run_id:
        return f"it is no record of {run_id}"
    for name, type_ in get_type_hints(RunRecord).items():
        value = fields.get(name)
        if value is None:
            continue
        if not _is_of(value, type_) or (name in _TIMES and not _is_time(value)):
            return f"its {name} is no value of that column"
    return None


def _no_number(word: str) -> object:
    raise ValueError(f"{word} is no number")


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_of(value: object, type_: Any) -> bool:
    """Whether a value of JSON can be one of a field: text, or a number of 64 bits."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return (isinstance(value, type_) and abs(value) < 1 << 63) or isinstance(0.0, type_)
    return isinstance(value, type_)


def _records(out: Path) -> list[Path]:
    """Return the records. TracehouseError LAKE_UNREADABLE if their folder cannot be read."""
    found = folder(out)
    try:
        return [p for p in found.iterdir() if p.match(PATTERN)] if found.is_dir() else []
    except OSError as error:
        if (why := why_unreadable(error)) is None:
            raise
        raise unreadable(found, why) from error
