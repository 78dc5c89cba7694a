"""What a task is told, and what comes of it: what goes to a worker and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.ingest.capture_folders import CaptureFiles
from tracehouse.ingest.discover import SourceFile
from tracehouse.ingest.limits import DEFAULT_LIMITS, Limits
from tracehouse.spill import AFTER_ROWS
from tracehouse.storage.writer import StagedPart


@dataclass(frozen=True, slots=True)
class PartTask:
    """What one task is to do.

    `known`: traces that the lake holds already, which need no rows again. `captures`: capture files
    of the traces, by path of the trace; what they tell is new, so that `known` does not count
    there. `text_bytes`: a guess at the length of the files' text. `memory_bytes`: that the run may
    use, None for no limit. `query_bytes`: memory for the SQL views, None for what DuckDB takes.
    `spill_rows`: of a trace's frame, beyond which its columns are in temporary files. `is_alone`: a
    process died of these files, and nothing else runs beside them. `store`: URL of the bucket that
    the files go to from a worker which does not see `out`, None if it does.
    """

    out: Path
    part_id: str
    files: tuple[SourceFile, ...]
    label: str | None
    reader: str
    known: frozenset[str]
    keep_secrets: bool = False
    settings: Settings = DEFAULT
    limits: Limits = DEFAULT_LIMITS
    captures: Mapping[str, CaptureFiles] = field(default_factory=dict)
    text_bytes: int = 0
    memory_bytes: int | None = None
    query_bytes: int | None = None
    spill_rows: int = AFTER_ROWS
    is_alone: bool = False
    store: str | None = None


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What became of one trace, or of a file that holds none.

    events, kernels, busy_ns: None where they are not known. seconds: CPU time of reading and
    linking. stages: CPU seconds by stage (`stopwatch.STAGES`), empty where nothing was analysed.
    bytes: length of its text. skipped: it was not read again, because its file has not changed.
    trace_id: that of its content, which several paths may have.
    """

    path: str
    status: str
    reason: str | None
    events: int | None = None
    kernels: int | None = None
    busy_ns: int | None = None
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    bytes: int | None = None
    skipped: bool = False
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """A staged part, ready to be committed, and what became of its traces.

    cpu_seconds: of the process while it worked on it. peak_bytes: its largest resident set.
    """

    staged: StagedPart
    results: tuple[TraceResult, ...]
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
