"""What a run tells of itself: the row of table `runs`."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tracehouse import __version__
from tracehouse.analysis.settings import Settings
from tracehouse.commands.part_task import TraceResult
from tracehouse.errors import TracehouseError
from tracehouse.ingest.recognise import is_url
from tracehouse.ingest.secrets import redact_text
from tracehouse.storage import runs
from tracehouse.storage.place import Place
from tracehouse.storage.runs import RunRecord
from tracehouse.vocab import Status

_MOST_PATHS = 20
_ERROR_LENGTH = 1000


def begun(out: Path, arguments: Mapping[str, Any]) -> RunRecord:
    """Write down that a run begins. Call it under the lock. Raises OSError."""
    record = RunRecord(
        run_id=runs.next_run_id(out),
        started_at=_now(),
        pipeline_version=__version__,
        host=socket.gethostname(),
        pid=os.getpid(),
        arguments=json.dumps(arguments),
    )
    runs.write(out, record)
    return record


def failed(place: Place, record: RunRecord, error: Exception, exit_code: int) -> None:
    """Write down that a run failed as a whole, if that can be written; else it has no end."""
    ended = replace(
        record,
        finished_at=_now(),
        exit_code=exit_code,
        error=redact_text(f"{type(error).__name__}: {error}")[0][:_ERROR_LENGTH],
    )
    try:
        runs.write(place.folder, ended)
        place.record()
    except (OSError, TracehouseError):  # the error that made it fail says more
        return


def ended(out: Path, record: RunRecord, results: Iterable[TraceResult]) -> RunRecord:
    """Write down that a run came to its end, and what it read. Raises OSError."""
    read = [result for result in results if not result.skipped]
    status = Counter(result.status for result in read)
    whole = replace(
        record,
        finished_at=_now(),
        traces_ok=status[Status.OK],
        traces_repaired=status[Status.REPAIRED],
        traces_partial=status[Status.PARTIAL],
        traces_rejected=status[Status.REJECTED],
        bytes=sum(result.bytes or 0 for result in read),
        events=sum(result.events or 0 for result in read),
    )
    runs.write(out, whole)
    return whole


def arguments_of(paths: Sequence[str], settings: Settings, **options: Any) -> dict[str, Any]:
    """Return what a run was asked to do, as far as it was said, without what may be secret.

    Of a URL stay scheme, host and path; of the files of settings their names.
    """
    words: dict[str, Any] = {
        "paths": [_without_secrets(path) for path in paths[:_MOST_PATHS]],
        "more_paths": max(len(paths) - _MOST_PATHS, 0),
        "categories": None if settings.categories is None else settings.categories.path,
        "arch": None if settings.arch is None else settings.arch.name,
        "models": [file.path for file in settings.models],
        "inductor_cache": None if settings.inductor_cache is None else str(settings.inductor_cache),
        "step_patterns": list(settings.step_patterns),
        **options,
    }
    return {key: value for key, value in words.items() if value not in (None, [], 0)}


def _without_secrets(path: str) -> str:
    if not is_url(path):
        return path
    parts = urlsplit(path)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
