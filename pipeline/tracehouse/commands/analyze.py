"""`tracehouse analyze`: from files to a warehouse, in parts that are committed one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from tracehouse.analysis.kernel_cache import forget
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.commands import division, memory, run_record
from tracehouse.commands.captures import forget_captures
from tracehouse.commands.changes import has_killed, held_traces, is_unchanged, without_lake
from tracehouse.commands.executors import ThisProcess
from tracehouse.commands.part import run_part
from tracehouse.commands.part_entries import settings_noted
from tracehouse.commands.part_in_store import run_part_in_store
from tracehouse.commands.part_task import PartOutcome, PartTask, TraceResult
from tracehouse.commands.schedule import Schedule
from tracehouse.commands.vanished import mistaken_files, vanished_files
from tracehouse.commands.workforce import choose_workers
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.ingest.capture_folders import Divided, divide
from tracehouse.ingest.discover import Discovery, SourceFile, discover
from tracehouse.ingest.limits import DEFAULT_LIMITS, Limits
from tracehouse.ingest.read import check_reader
from tracehouse.ingest.recognise import is_temporary
from tracehouse.storage import compaction, layout, upkeep
from tracehouse.storage.address import url_of
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import FileEntry, LakeState, load_state
from tracehouse.storage.place import Place, writing
from tracehouse.storage.runs import RunRecord
from tracehouse.storage.writer import PartWriter, commit_staged
from tracehouse.vocab import Status
from tracehouse.warehouse.build import copied_tables
from tracehouse.warehouse.connection import limit_memory
from tracehouse.warehouse.publish import publish
from tracehouse.warehouse.query import Warehouse

__all__ = ["RunReport", "TraceResult", "analyze"]

OnTrace = Callable[[TraceResult], None]


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did.

    results: every trace of the files found, in order of their paths, the unchanged among them, and
    every capture file that cannot be used. total, unchanged: files of traces. captures: files of
    graph captures. rejected, partial: files of either. passed_over: files that their writers have
    not finished (TEMP_SKIPPED). special: pipes, sockets and devices, passed over too.
    pruned: files that are gone and whose traces were dropped. record: the row of table `runs`.
    warehouse: its file; that of a bucket as `storage.address` says.
    alone: files that may need more memory than the run was allowed, analysed with nothing else
    running.
    """

    results: tuple[TraceResult, ...]
    total: int
    unchanged: int
    rejected: int
    partial: int
    captures: int
    passed_over: tuple[str, ...]
    pruned: tuple[str, ...]
    seconds: float
    warehouse: Path
    record: RunRecord
    alone: tuple[str, ...] = ()
    special: tuple[str, ...] = ()


def analyze(
    paths: Sequence[str],
    out: Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    memory_limit: int | None = None,
    wait: float = 0.0,
    label: str | None = None,
    reader: str = "scan",
    prune: bool = False,
    keep_secrets: bool = False,
    capture: str | None = None,
    settings: Settings = DEFAULT,
    limits: Limits = DEFAULT_LIMITS,
    on_trace: OnTrace | None = None,
) -> RunReport:
    """Read every new or changed file of `paths` into the warehouse at `out`, a folder or s3://….

    `workers`: processes, None for as many as there are cores and memory for, 1 for this process
    alone (one of its own if the last run on `out` was killed). `dask`: address or scheduler file of
    a Dask cluster that does the work instead. `memory_limit`: bytes that all processes of the run
    may use together, of a cluster each worker; None for four fifths of the machine. `wait`: seconds
    to wait for another run on `out`. `label`: name of the job,
    given to unchanged files too; None for the name of each new file's folder. `prune`: drop what
    was read earlier from files of `paths` that are gone now. `keep_secrets`: store values that look
    like secrets as they are, in the traces that this run reads. `capture`: a file or folder of
    traces of graph captures, for all traces; those in a folder `capture_traces` beside a trace are
    used as well. `settings`: the user's categories,
    device and formulas; files that were analysed with others are read again. `limits`: how much of
    a file is read; files that were TOO_LARGE for others are tried again. `on_trace` is called with
    each new trace once its rows are safe.

    A file that cannot be read is a result of status rejected, and so is one that kills the process
    which analyses it. Raises UsageError for a path or reader that doesn't exist, a cluster that
    cannot be used, or if another run writes to `out`; TracehouseError LAKE_DAMAGED, CLUSTER_LOST,
    LOCK_LOST; OSError if `out` cannot be written.
    """
    started = time.monotonic()
    check_reader(reader)
    forget()
    forget_captures()
    _check_out(out)
    if dask is not None and workers is not None:
        raise UsageError(
            "workers are counted by the Dask cluster", hint="give either --workers or --dask"
        )
    found = discover(paths)
    unreadable = (SourceFile(path, 0, 0) for path in found.unreadable)
    divided = divide(without_lake(found.files, out), capture)
    files = (*divided.traces, *unreadable)
    arguments = run_record.arguments_of(
        paths,
        settings,
        label=label,
        reader=reader,
        prune=prune,
        keep_secrets=keep_secrets,
        capture=capture,
        workers=workers,
        dask=dask,
    )
    asked = time.monotonic()
    with writing(out, wait=wait, kept=copied_tables(), is_new=True) as place:
        started += time.monotonic() - asked  # the wait for another run is none of this one's time
        record = run_record.begun(place.folder, arguments)
        place.record()
        try:
            pattern = PartTask(
                out=Path(os.path.abspath(place.folder)),  # noqa: PTH100 (keeps links)
                part_id="",
                files=(),
                label=label,
                reader=reader,
                known=frozenset(),
                keep_secrets=keep_secrets,
                settings=settings,
                limits=limits,
                captures=divided.captures,
                store=None if dask is None else url_of(out),
            )
            limit = memory.default_limit() if memory_limit is None else memory_limit
            run = _Run(paths, out, place, pattern, found, divided, files, limit, record, on_trace)
            state = run.forget(prune=prune)
            run.work(state, workers, dask, apart=place.died)
            run.publish()
            return run.report(started)
        except (TracehouseError, OSError, duckdb.Error, MemoryError) as error:
            code = 2 if isinstance(error, UsageError) else 1
            _tidy(place)
            run_record.failed(place, record, error, code)
            raise


@dataclass(slots=True)
class _Run:
    """A run under way, which has its warehouse for itself. `pattern`: a task without files."""

    paths: Sequence[str]
    out: Path
    place: Place
    pattern: PartTask
    found: Discovery
    divided: Divided
    files: Sequence[SourceFile]
    limit: int
    record: RunRecord
    on_trace: OnTrace | None
    pruned: tuple[str, ...] = ()
    untouched: set[str] = field(default_factory=set)
    alone: list[str] = field(default_factory=list)
    results: list[TraceResult] = field(default_factory=list)
    after: LakeState | None = None
    cpu_seconds: float = 0.0  # of other processes
    own_since: float = field(default_factory=time.process_time)
    publish_seconds: float = 0.0
    peak_bytes: int = 0

    def forget(self, *, prune: bool) -> LakeState:
        """Remove what killed runs left, what never was a trace, and if asked for, what is gone.

        Returns what the lake holds then.
        """
        folder = self.place.folder
        upkeep.clean(folder)
        state = load_state(folder)
        if upkeep.prune(folder, mistaken_files(state, self.found)):
            state = load_state(folder)
        if prune:
            vanished = vanished_files(self.paths, state, self.found.unreadable)
            self.pruned = upkeep.prune(folder, vanished)
        return load_state(folder) if self.pruned else state

    def work(self, state: LakeState, workers: int | None, dask: str | None, *, apart: bool) -> None:
        """Analyse what is new or has changed, and commit it part by part."""
        folder = self.place.folder
        digest = self.pattern.settings.digest
        limits = self.pattern.limits
        noted = (digest, settings_noted(self.pattern.settings, limits, is_too_large=True))
        seen = {entry.path: entry for entry in state.files}
        changed = [f for f in self.files if not is_unchanged(f, seen, self.divided, noted)]
        self.untouched = {file.path for file in self.files} - {file.path for file in changed}
        if self.pattern.label is not None:
            _relabel(folder, [seen[path] for path in sorted(self.untouched)], self.pattern.label)
        pattern = replace(self.pattern, known=held_traces(state, digest, self.untouched))
        tasks = division.divide(changed, pattern, memory.text_within(self.limit))
        self.alone += [
            file.path
            for task in tasks
            for file in task.files
            if memory.need(task.text_bytes) > self.limit
        ]
        # One of these killed its process in the last run: it must not be this one.
        apart = apart or any(has_killed(seen.get(file.path)) for file in changed)
        runner = choose_workers(tasks, workers, dask, self.limit, apart=apart)
        self.record = replace(
            self.record,
            executor=runner.name,
            workers=runner.count,
            memory_limit_bytes=self.limit,
            worker_deaths=0,
        )
        try:
            number = layout.next_part_number(folder) + len(tasks)
            run = run_part if pattern.store is None else run_part_in_store
            schedule = Schedule(runner, run, self.limit, number)
            for outcome in schedule.outcomes(tasks):
                self._commit(outcome, is_own=runner.name == ThisProcess.name)
        finally:
            runner.close()
            limit_memory(None)  # of this process, if it did the work
        if schedule.deaths:
            upkeep.clean(folder)  # what they were writing
            self.record = replace(self.record, worker_deaths=schedule.deaths)

    def _commit(self, outcome: PartOutcome, *, is_own: bool) -> None:
        before = time.process_time()
        self.place.commit(outcome.staged)
        self.publish_seconds += time.process_time() - before
        self.cpu_seconds += 0.0 if is_own else outcome.cpu_seconds
        self.peak_bytes = max(self.peak_bytes, outcome.peak_bytes)
        self.results += outcome.results
        for result in outcome.results:
            if self.on_trace is not None:
                self.on_trace(result)

    def publish(self) -> None:
        """Bring the warehouse up to the lake."""
        before = time.process_time()
        self.after = _compacted(self.place)
        try:
            publish(self.place, self.after)
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error)) from error
        self.publish_seconds += time.process_time() - before
        self.peak_bytes = max(self.peak_bytes, memory.peak())

    def report(self, started: float) -> RunReport:
        """Put together what the run did, and write it down."""
        assert self.after is not None
        live = {entry.path: entry for entry in self.after.files}
        # One whose trace killed its process was not read, and has no entry.
        captures = [live[f.path] for f in self.divided.capture_files if f.path in live]
        entries = [*(live[file.path] for file in self.files), *captures]
        untouched = [live[path] for path in self.untouched]
        results = _completed(self.place.folder, self.results, untouched)
        results += _refused(captures)
        rejected = sum(entry.status == Status.REJECTED for entry in entries)
        seconds = time.monotonic() - started
        record = replace(
            self.record,
            exit_code=1 if rejected else 0,
            seconds=seconds,
            cpu_seconds=self.cpu_seconds + time.process_time() - self.own_since,
            publish_seconds=self.publish_seconds,
            peak_memory_bytes=self.peak_bytes,
            files=len(self.files),
            unchanged=len(self.untouched),
            pruned=len(self.pruned),
        )
        record = run_record.ended(self.place.folder, record, results)
        self.place.record()
        return RunReport(
            results=tuple(sorted(results, key=lambda r: r.path)),
            total=len(self.files),
            unchanged=len(self.untouched),
            rejected=rejected,
            partial=sum(entry.status == Status.PARTIAL for entry in entries),
            captures=len(captures),
            passed_over=tuple(path for path in self.found.skipped if is_temporary(path)),
            pruned=self.pruned,
            seconds=seconds,
            warehouse=self.out / WAREHOUSE,
            record=record,
            alone=tuple(self.alone),
            special=self.found.special,
        )


def _compacted(place: Place) -> LakeState:
    """Rewrite the lake's parts where that is due."""
    state = load_state(place.folder)
    if not compaction.is_due(state):
        return state
    below = compaction.due_below(state)
    place.need(compaction.files_read(state, below))
    compaction.compact(place.folder, below=below)
    return load_state(place.folder)


def _tidy(place: Place) -> None:
    """Remove what a run that failed has staged, as a full disk has better use for the room."""
    with suppress(OSError, TracehouseError):  # then the next run does it
        upkeep.clean(place.folder)


def _check_out(out: Path) -> None:
    """Raise UsageError for a path at which DuckDB cannot make a file."""
    if url_of(out) is not None:
        return
    path = os.path.abspath(out)  # noqa: PTH100 (keeps links)
    if "?" in path or path != path.encode(errors="replace").decode():
        raise UsageError(
            f"cannot make a warehouse at {out}: DuckDB takes no path with a question mark, or that "
            "is not UTF-8",
            hint="choose another OUT",
        )


def _refused(captures: Sequence[FileEntry]) -> list[TraceResult]:
    """The captures that cannot be used, as results of the run."""
    return [
        TraceResult(entry.path, entry.status, entry.reason)
        for entry in captures
        if entry.status == Status.REJECTED
    ]


def _relabel(out: Path, entries: Sequence[FileEntry], label: str) -> None:
    """Give files that need not be read again their new label, in a part without rows."""
    renamed = [replace(entry, label=label) for entry in entries if entry.label != label]
    if renamed:
        with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
            commit_staged(out, writer.stage(renamed, []))


def _completed(
    out: Path, results: Sequence[TraceResult], untouched: Sequence[FileEntry]
) -> list[TraceResult]:
    """The results of a run, with what the warehouse knows of traces that were not analysed again.

    Those are the traces of `untouched` files, and contents that the warehouse held already.
    """
    if not untouched and not any(_is_bare(result) for result in results):
        return list(results)
    with Warehouse(out) as warehouse:
        rows = warehouse.arrow(
            "SELECT trace_id, status, reason, events, kernels, busy_ns"
            " FROM traces LEFT JOIN trace_timeline USING (trace_id)"
        )
    by_id = {row["trace_id"]: row for row in rows.to_pylist()}
    completed = [
        replace(
            result,
            kernels=by_id[result.trace_id]["kernels"],
            busy_ns=by_id[result.trace_id]["busy_ns"],
        )
        if _is_bare(result)
        else result
        for result in results
    ]
    refs = {ref.path: ref.trace_id for entry in untouched for ref in entry.traces}
    return completed + [
        TraceResult(path=path, skipped=True, **by_id[trace_id]) for path, trace_id in refs.items()
    ]


def _is_bare(result: TraceResult) -> bool:
    """Whether a trace was read and not linked, as its content was known."""
    return result.kernels is None and result.status != Status.REJECTED
