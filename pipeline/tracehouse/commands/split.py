"""`tracehouse split`: the steps of a trace that are worth a look, as traces of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tracehouse.analysis.link import link
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.analysis.step_belonging import FLOW_PHASES, Belonging
from tracehouse.analysis.step_events import FLOW_COLUMNS, StepEvents
from tracehouse.analysis.summaries import steps_alone
from tracehouse.commands.output_file import opened
from tracehouse.commands.split_summary import (
    DETAILS,
    SplitFile,
    details_csv,
    details_json,
    is_ours,
    split_file,
)
from tracehouse.errors import RejectedFile, Severity, TracehouseError, UsageError
from tracehouse.findings import Findings
from tracehouse.ingest.copying import copy_events
from tracehouse.ingest.discover import discover
from tracehouse.ingest.read import ReadTrace, RejectedMember, read_file
from tracehouse.schema.tables import EVENTS
from tracehouse.serving.step_windows import MIXED_WINDOW, RANGE, StepWindow, chosen_windows
from tracehouse.storage.durable import make_folder

_RANGE = re.compile(r"(\d{1,15}):(\d{1,15})", re.ASCII)
_MANY = 5  # traces that a message names
DEFAULT_STEPS = 32


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What was written: a file a window, and what the reader should know of them."""

    path: str
    trace_id: str
    files: tuple[SplitFile, ...]
    notes: tuple[str, ...]


def split(
    path: str,
    target: Path,
    *,
    num_steps: int = DEFAULT_STEPS,
    steps: str | None = None,
    overwrite: bool = False,
    settings: Settings = DEFAULT,
) -> SplitReport:
    """Write windows of the steps of the one trace in a file to the folder `target`.

    Those of the steady state as `serving.step_windows` chooses them, or with `steps` ("A:B", of
    which B is excluded and may be too large) those steps alone. What of the trace belongs to them
    is defined by `analysis.step_events`. Events are copied byte for byte. Beside the traces stand
    execution_details.json and .csv. Files appear whole or not at all, the details last.

    The text is read twice and never held; memory grows with the events that are no Python frames,
    by some hundred bytes each.

    Raises:
        UsageError: there is no such file, it holds several traces, `steps` names none, `num_steps`
            is below 1, or `target` is no empty folder and `overwrite` is not set.
        RejectedFile: nothing of the file is usable.
        TracehouseError: NO_STEPS, NOT_STEADY: there is nothing to write.
        OSError: `target` cannot be written.
    """
    if num_steps < 1:
        raise UsageError(f"a window must have at least 1 step, not {num_steps}")
    asked = None if steps is None else _read_range(steps)
    _check(path, target, overwrite)
    trace, flows = _read(path)
    damage = _damage(trace)
    linked = link(
        trace.frame,
        trace.trace_id,
        findings=trace.findings,
        rules=settings.rules,
        grammars=settings.grammars,
        spill=trace.spill,
    )
    table, regions = steps_alone(linked, settings)
    windows = _windows(table, regions, num_steps, asked, settings)
    events = StepEvents(trace.frame, linked, flows)
    belongings = [events.of(window.steps) for window in windows]
    files = [
        split_file(number, window, table, linked["kernels"], belonging.ids, Path(path).name)
        for number, (window, belonging) in enumerate(zip(windows, belongings, strict=True))
    ]
    del events, linked, flows
    written = _write(path, trace, target, files, belongings)
    notes = [*damage, *_notes(trace, windows, num_steps)]
    return SplitReport(trace.path, trace.trace_id, written, tuple(notes))


def _read_range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    first, end = (int(match[1]), int(match[2])) if match else (0, 0)
    if first >= end:
        raise UsageError(
            f"--steps takes A:B with A below B, not {text!r}",
            hint="--steps 3:5 is steps 3 and 4, as `tracehouse steps` numbers them",
        )
    return first, end


def _check(path: str, target: Path, overwrite: bool) -> None:
    discover([path])
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder", hint="name the file of one trace")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is no folder", hint="name a folder to write to")
    if not target.is_dir():
        return
    if not overwrite and any(target.iterdir()):
        raise UsageError(
            f"{target} is not empty",
            hint="name another folder, or give --overwrite to replace files of the same names",
        )
    details = target / f"{DETAILS}.json"
    if details.is_file() and not is_ours(details):
        raise UsageError(
            f"{details} is none of split's, and would be lost",
            hint="captures have a list of that name: name another folder",
        )


def _read(path: str) -> tuple[ReadTrace, pa.Table]:
    """Read the one trace of a file, and its flow events (FLOW_COLUMNS)."""
    parts: list[pa.RecordBatch] = []
    found: list[ReadTrace] = []
    rejected: list[RejectedFile] = []
    for trace in read_file(
        path,
        reader="scan",
        sink=lambda rows: parts.extend(_flows(rows)),
        wanted=lambda _: not found,
        findings=Findings(),
        keep_secrets=True,  # the envelope is written as it stood
    ):
        if isinstance(trace, RejectedMember):
            rejected.append(trace.error)
        else:
            found.append(trace)
    if not found:
        raise (
            rejected[0]
            if rejected
            else RejectedFile(
                f"{path} holds no trace", code="NOT_A_TRACE", hint="pass a trace file"
            )
        )
    if len(found) > 1:
        some = ", ".join(trace.path for trace in found[:_MANY])
        raise UsageError(
            f"{path} holds {len(found)} traces: {some}", hint="unpack it, and name one of them"
        )
    schema = pa.schema([EVENTS.schema.field(name) for name in FLOW_COLUMNS])
    return found[0], pa.Table.from_batches(parts, schema)


def _flows(rows: pa.Table) -> list[pa.RecordBatch]:
    parts = []
    for batch in rows.select(list(FLOW_COLUMNS)).to_batches():
        phase = batch["ph"]
        is_flow = np.array([*(w in FLOW_PHASES for w in phase.dictionary.to_pylist()), False])
        found = np.flatnonzero(is_flow[phase.indices.fill_null(-1).to_numpy()])
        if len(found):
            parts.append(batch.take(pa.array(found)))
    return parts


def _windows(
    table: pa.Table,
    regions: pa.Table,
    num_steps: int,
    asked: tuple[int, int] | None,
    settings: Settings,
) -> list[StepWindow]:
    count = table.num_rows
    if not count:
        raise TracehouseError(
            "the trace has no steps, so that there is nothing to split",
            code="NO_STEPS",
            hint="`tracehouse steps` says which annotations are steps; --step-pattern adds others",
        )
    if asked is not None:
        first, end = asked
        if first >= count:
            raise UsageError(
                f"--steps {first}:{end} names no step: the trace has {count:,}",
                hint=f"give a range within 0:{count}",
            )
        return [StepWindow(RANGE, np.arange(first, min(end, count), dtype=np.int64), end - first)]
    windows = chosen_windows(table, regions, num_steps, settings.workload)
    if not windows:
        raise TracehouseError(
            f"none of the {count:,} steps is of a steady state: their annotations give no numbers"
            " of requests, or no request runs",
            code="NOT_STEADY",
            hint=f"--steps A:B writes steps by number, within 0:{count}",
        )
    return windows


def _write(
    path: str,
    trace: ReadTrace,
    target: Path,
    files: Sequence[SplitFile],
    belongings: Sequence[Belonging],
) -> tuple[SplitFile, ...]:
    is_new = not target.exists()
    try:
        make_folder(target)
        with ExitStack() as stack:
            opened_files = [stack.enter_context(opened(target / file.name)) for file in files]
            counts = copy_events(
                path,
                trace,
                [
                    (belonging.of, file)
                    for belonging, file in zip(belongings, opened_files, strict=True)
                ],
            )
        written = tuple(f.with_events(n) for f, n in zip(files, counts, strict=True))
        for suffix, text in ((".csv", details_csv(written)), (".json", details_json(written))):
            with opened(target / f"{DETAILS}{suffix}") as file:
                file.write(text.encode())
    except BaseException:
        if is_new and target.is_dir() and not any(target.iterdir()):
            target.rmdir()
        raise
    return written


def _damage(trace: ReadTrace) -> list[str]:
    """Say what of the text was damaged: what is lost there is missing here too."""
    told = [f for f in trace.findings if f.code.severity is Severity.WARNING]
    if not told:
        return []
    words = "; ".join(f"{f.code.word} x{f.count:,}: {f.code.meaning}" for f in told)
    return [f"the trace is damaged ({words}); what was mended is written as mended"]


def _notes(trace: ReadTrace, windows: Sequence[StepWindow], num_steps: int) -> list[str]:
    notes = []
    if windows[0].fallback:
        notes.append("no run of steps is steady: the windows are of the middle third of the trace")
    for window in windows:
        if window.kind == MIXED_WINDOW and window.wanted > num_steps:
            notes.append(
                f"the mixed window was raised from {num_steps:,} to {window.wanted:,} steps, of"
                " which one has a prefill on average"
            )
    if "DUR_OVERFLOW" in trace.findings:
        notes.append(
            "durations of GPU work that run far over later work (DUR_OVERFLOW) stand as recorded:"
            " where that later work is not in the file, they are not cut there"
        )
    return notes
