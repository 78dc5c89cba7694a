"""The work of one task: read some files, link and summarise their traces, and stage them as a part.

The tables are made for all traces of a part together; a trace's rows are the same whatever else is
in its part. An error that no one foresaw costs the trace that raised it, never its neighbours.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from tracehouse.analysis.devices import device_of
from tracehouse.analysis.summaries import summarise
from tracehouse.commands import memory
from tracehouse.commands.captures import CaptureOutcome, ReadCaptures, read_captures
from tracehouse.commands.linked_trace import (
    LINKED,
    empty_row,
    issue_rows,
    linked_tables,
    trace_row,
)
from tracehouse.commands.part_entries import FoundTrace, capture_entry_of, entry_of
from tracehouse.commands.part_task import PartOutcome, PartTask, TraceResult
from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.formulas.arch import Arch
from tracehouse.ingest.discover import SourceFile
from tracehouse.ingest.read import ReadTrace, RejectedMember, read_file
from tracehouse.schema.tables import ISSUES, TABLES, TRACES
from tracehouse.spill import Spill, SpillError, give_back
from tracehouse.stopwatch import Stopwatch
from tracehouse.storage.manifest import FileEntry, shown_path
from tracehouse.storage.writer import PartWriter
from tracehouse.vocab import Status
from tracehouse.warehouse.connection import limit_memory

_LARGE_BYTES = 64 << 20  # text that leaves freed memory worth giving back to the system
# Of the machine rather than of the file: the next run tries again.
_TRIED_AGAIN = frozenset({"READ_FAILED", "WORKER_DIED", "MEMORY_LIMIT"})
_LEAST_IN_ALL = 256 << 20  # for views that could not do with less


def run_part(task: PartTask) -> PartOutcome:
    """Read, analyse and stage the files of a task.

    A file that cannot be used becomes a rejected trace. Raises OSError if the part cannot be
    written; MemoryError if there is not enough memory, which is no fault of a trace.
    """
    started = time.process_time()
    memory.forget_peak()
    limit_memory(task.query_bytes)
    spill = Spill(task.spill_rows)
    with PartWriter(task.out, task.part_id, after_group=spill.rest) as writer:
        work = _Work(task, writer, spill)
        for file in task.files:
            work.read(file)
        return _staged(work, started)


def beyond_memory(rows: int, needed: int, limit: int) -> RejectedFile:
    """Return the error of a trace that needs more memory than the run may use."""
    return RejectedFile(
        f"beyond the memory limit: {rows:,} op calls, calls and kernels need about"
        f" {needed / 1e9:,.1f} GB, and --memory-limit is {limit / 1e9:,.1f} GB",
        code="MEMORY_LIMIT",
        hint=f"give --memory-limit {math.ceil(needed / 1e9)}GB; the next run tries it again",
    )


def rejected_part(task: PartTask, error: RejectedFile) -> PartOutcome:
    """Stage the one file of a task as rejected, without reading it."""
    started = time.process_time()
    with PartWriter(task.out, task.part_id) as writer:
        work = _Work(task, writer, Spill())
        for file in task.files:
            work.reject(file, error)
        return _staged(work, started)


def _staged(work: _Work, started: float) -> PartOutcome:
    work.summarise()
    task = work.task
    staged = work.writer.stage(work.entries(), sorted(work.held), task.settings.digest)
    return PartOutcome(staged, work.outcome(), time.process_time() - started, memory.peak())


@dataclass(slots=True)
class _Work:
    """A part under construction."""

    task: PartTask
    writer: PartWriter
    spill: Spill
    held: set[str] = field(default_factory=set)  # traces with rows in the part
    unlinked: set[str] = field(default_factory=set)  # those of them that have only events
    files: list[tuple[SourceFile, list[FoundTrace]]] = field(default_factory=list)
    tables: dict[str, list[pa.Table]] = field(default_factory=lambda: {name: [] for name in LINKED})
    notes: dict[str, Findings] = field(default_factory=dict)  # of the traces held
    archs: dict[str, Arch | None] = field(default_factory=dict)
    busy: dict[str, int] = field(default_factory=dict)
    captures: dict[str, CaptureOutcome] = field(default_factory=dict)  # by path
    watch: Stopwatch = field(default_factory=Stopwatch)

    def read(self, file: SourceFile) -> None:
        """Read and link the traces of a file."""
        found: list[FoundTrace] = []
        self.files.append((file, found))
        with self.watch.stage("read"):
            self._read(file, found)

    def reject(self, file: SourceFile, error: RejectedFile) -> None:
        """Take a file as one that cannot be used."""
        self.files.append((file, [self._rejected(file.path, error, Findings())]))

    def _read(self, file: SourceFile, found: list[FoundTrace]) -> None:
        archive = Findings()
        captures = self._captures(file)
        started = time.process_time()
        try:
            for trace in read_file(
                file.path,
                reader=self.task.reader,
                sink=self._keep,
                wanted=lambda trace_id: self._claim(trace_id, is_known=captures is None),
                findings=archive,
                keep_secrets=self.task.keep_secrets,
                limits=self.task.limits,
                spill=self.spill,
            ):
                if isinstance(trace, RejectedMember):
                    found.append(self._rejected(trace.path, trace.error, Findings()))
                    continue
                trace.findings.merge(archive.take())
                found.append(self._linked(trace, captures, started))
                started = time.process_time()
        except RejectedFile as error:
            found.append(self._rejected(file.path, error, archive))
        except (OSError, MemoryError):  # of the part, not of the file: that is READ_FAILED
            raise
        except Exception as error:  # the boundary of a file: the others must go on
            found.append(self._failed(file.path, error))
        # What an archive holds behind its last trace.
        if found and found[0].trace_id in self.notes:
            self.notes[found[0].trace_id].merge(archive.take())

    def _keep(self, events: pa.Table) -> None:
        with self.watch.stage("write"):
            self.writer.append("events", events)

    def _captures(self, file: SourceFile) -> ReadCaptures | None:
        task = self.task
        files = task.captures.get(file.path, ())
        found = read_captures(files, task.reader, task.settings, task.limits)
        if found is not None:
            self.captures.update((outcome.file.path, outcome) for outcome in found.outcomes)
        return found

    def _claim(self, trace_id: str, *, is_known: bool) -> bool:
        if trace_id in self.held or (is_known and trace_id in self.task.known):
            return False
        self.held.add(trace_id)
        self.unlinked.add(trace_id)
        return True

    def _linked(
        self, trace: ReadTrace, captures: ReadCaptures | None, started: float
    ) -> FoundTrace:
        """Link a trace that was read; the same content a second time needs only its status."""
        linked: dict[str, pa.Table] = {}
        if trace.is_new:
            try:
                linked = self._link(trace, captures)
            except (MemoryError, SpillError):  # of the part, not of the trace
                raise
            except RejectedFile as error:
                return self._rejected(trace.path, error, Findings())
            except Exception as error:  # the boundary of a trace: the others must go on
                return self._failed(trace.path, error)
            self.unlinked.remove(trace.trace_id)
        elif trace.trace_id in self.unlinked:
            return self._failed(trace.path, RuntimeError("it failed under another path before"))
        row = trace_row(trace, linked, self.task.reader, time.process_time() - started)
        if trace.is_new:
            for name in LINKED:
                self.tables[name].append(linked[name])
            self.notes[trace.trace_id] = trace.findings
        return FoundTrace(trace.trace_id, trace.path, row, trace.is_new, stages=self.watch.take())

    def _link(self, trace: ReadTrace, captures: ReadCaptures | None) -> dict[str, pa.Table]:
        settings = self.task.settings
        arch = settings.arch or device_of(trace.envelope)
        self._check_memory(trace.frame.num_rows)
        if trace.bytes > _LARGE_BYTES:
            give_back()
        linked = linked_tables(trace, arch, settings, captures, self.watch)
        self.archs[trace.trace_id] = arch
        return linked

    def _check_memory(self, rows: int) -> None:
        """Raise RejectedFile MEMORY_LIMIT if linking so many rows needs more than the run may."""
        limit, needed = self.task.memory_bytes, memory.need_of_rows(rows)
        if limit is not None and needed > limit and rows > self.task.spill_rows:
            raise beyond_memory(rows, needed, limit)

    def _failed(self, path: str, error: Exception) -> FoundTrace:
        message = f"its analysis failed: {type(error).__name__}: {error}"
        hint = "this is an error in Tracehouse: please report it"
        return self._rejected(
            path, RejectedFile(message, code="ANALYSIS_FAILED", hint=hint), Findings()
        )

    def _rejected(self, path: str, error: RejectedFile, findings: Findings) -> FoundTrace:
        """A trace of status rejected, with an id of its own: its path's."""
        trace_id = xxhash.xxh3_64(f"rejected:{path}".encode(errors="surrogateescape")).hexdigest()
        findings.add(error.code, example=str(error))
        row = empty_row(trace_id, self.task.reader) | {
            "status": Status.REJECTED.value,
            "reason": shown_path(str(error)),
        }
        self.held.add(trace_id)
        self.notes[trace_id] = findings
        is_unread, is_too_large = error.code in _TRIED_AGAIN, error.code == "TOO_LARGE"
        return FoundTrace(trace_id, path, row, True, is_unread, is_too_large)

    def summarise(self) -> None:
        """Evaluate the SQL views and write every table, last `traces`: it says what that took."""
        if self.task.text_bytes > _LARGE_BYTES:
            give_back()
        self.watch.take()
        tables = {name: self._joined(name) for name in LINKED}
        tables |= {"traces": self._trace_table(), "issues": self._issue_table()}
        try:
            views = self._summaries(tables)
        except SpillError:
            raise
        except Exception:  # one trace at a time tells which of them it was
            views = self._summarise_each(tables)
            tables |= {"traces": self._trace_table(), "issues": self._issue_table()}
        with self.watch.stage("write"):
            for name, rows in (tables | views).items():
                if name != TRACES.name:
                    self.writer.append(name, rows)
            self.writer.settle()
        self._share(self.watch.take())
        self.writer.append(TRACES.name, self._trace_table())
        timeline = views["trace_timeline"]
        self.busy = dict(
            zip(timeline["trace_id"].to_pylist(), timeline["busy_ns"].to_pylist(), strict=True)
        )

    def _share(self, common: dict[str, float]) -> None:
        """Add to each trace its share, by events, of what was done for all of the part together."""
        timed = [o for _, found in self.files for o in found if o.stages]
        events = sum(outcome.row["events"] for outcome in timed if outcome.is_new)
        for outcome in timed:
            share = outcome.row["events"] / events if outcome.is_new and events else 0.0
            for stage, seconds in common.items():
                outcome.stages[stage] += share * seconds
                outcome.row[f"{stage}_seconds"] = outcome.stages[stage]

    def _summaries(self, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """Evaluate the views; where they cannot do with the memory they were given, with all."""
        settings, watch = self.task.settings, self.watch
        try:
            return summarise(
                tables, archs=self.archs, settings=settings, watch=watch, spill=self.spill
            )
        except duckdb.OutOfMemoryException:
            limit = self.task.memory_bytes
            limit_memory(None if limit is None else max(limit - memory.BASE, _LEAST_IN_ALL))
        try:
            return summarise(
                tables, archs=self.archs, settings=settings, watch=watch, spill=self.spill
            )
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error)) from error

    def _summarise_each(self, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """Summarise trace by trace; one that fails is rejected wherever it was found."""
        none = {name: table.slice(0, 0) for name, table in tables.items()}
        parts = [self._summaries(none)]
        for trace_id in tables["traces"]["trace_id"].to_pylist():
            own = {name: _of_trace(table, trace_id) for name, table in tables.items()}
            try:
                parts.append(self._summaries(own))
            except MemoryError:
                raise
            except Exception as error:  # the boundary of a trace
                parts.append(self._summaries(none | {"traces": self._give_up(trace_id, error)}))
        return {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}

    def _give_up(self, trace_id: str, error: Exception) -> pa.Table:
        """Reject a trace that was linked, and return its new rows of `traces`."""
        del self.notes[trace_id]
        rows = []
        for _, found in self.files:
            for number, outcome in enumerate(found):
                if outcome.trace_id == trace_id:
                    found[number] = self._failed(outcome.path, error)
                    rows.append(found[number].row)
        return pa.Table.from_pylist(rows, TRACES.schema)

    def _joined(self, name: str) -> pa.Table:
        tables = self.tables[name] or [TABLES[name].schema.empty_table()]
        return pa.concat_tables(tables).unify_dictionaries()

    def _trace_table(self) -> pa.Table:
        rows = [outcome.row for _, found in self.files for outcome in found if outcome.is_new]
        return pa.Table.from_pylist(rows, TRACES.schema)

    def _issue_table(self) -> pa.Table:
        rows = [
            row for trace_id, found in self.notes.items() for row in issue_rows(trace_id, found)
        ]
        return pa.Table.from_pylist(rows, ISSUES.schema)

    def entries(self) -> list[FileEntry]:
        """What the manifest says of the files."""
        return [
            *(entry_of(file, found, self.task) for file, found in self.files),
            *(capture_entry_of(outcome, self.task.label) for outcome in self.captures.values()),
        ]

    def outcome(self) -> tuple[TraceResult, ...]:
        """What became of every trace; a content found twice has the kernels of its first path."""
        rows = {o.trace_id: o.row for _, found in self.files for o in found if o.is_new}
        return tuple(
            TraceResult(
                path=shown_path(o.path),
                status=o.row["status"],
                reason=o.row["reason"],
                events=o.row["events"],
                kernels=rows.get(o.trace_id, o.row)["kernels"],
                busy_ns=self.busy.get(o.trace_id),
                seconds=o.row["seconds"] or 0.0,
                stages=o.stages,
                bytes=o.row["bytes"],
                trace_id=o.trace_id,
            )
            for _, found in self.files
            for o in found
        )


def _of_trace(table: pa.Table, trace_id: str) -> pa.Table:
    return table.filter(pc.equal(table["trace_id"].cast(pa.string()), trace_id))
