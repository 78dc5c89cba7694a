"""`tracehouse analyze`: from files to a warehouse, in parts that are committed one by one."""

from __future__ import annotations

import fnmatch
import multiprocessing
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from tracehouse.analysis.kernel_cache import forget
from tracehouse.analysis.settings import DEFAULT, Settings
from tracehouse.commands.captures import forget_captures
from tracehouse.commands.part import PartOutcome, PartTask, TraceResult, run_part
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.ingest.capture_folders import Divided, divide, with_captures
from tracehouse.ingest.discover import SourceFile, discover
from tracehouse.ingest.read import check_reader
from tracehouse.ingest.recognise import is_temporary, is_url
from tracehouse.storage import layout, upkeep
from tracehouse.storage.manifest import FileEntry, LakeState, load_state
from tracehouse.storage.writer import PartWriter, commit_staged
from tracehouse.vocab import FileRole, Status
from tracehouse.warehouse.build import WAREHOUSE, build
from tracehouse.warehouse.query import Warehouse

__all__ = ["RunReport", "TraceResult", "analyze"]

# Text of the files after which a part is full; a compressed file counts for EXPANSION times its
# size, and each for FILE_BYTES more: what a tiny file costs. So a part has at most 1,024 files, and
# ten thousand tiny ones keep every worker busy and are committed as they come.
PART_BYTES = 256 << 20
_EXPANSION = 16
_FILE_BYTES = 256 << 10
_COMPRESSED = (".gz", ".zst", ".zip")
# Below this much text in all, starting workers costs more than they save.
_ALONE_BYTES = 64 << 20

OnTrace = Callable[[TraceResult], None]


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did.

    results: every trace of the files found, in order of their paths, the unchanged among them, and
    every capture file that cannot be used. total, unchanged: files of traces. captures: files of
    graph captures. rejected, partial: files of either. passed_over: files that their writers have
    not finished (TEMP_SKIPPED).
    pruned: files that are gone and whose traces were dropped. seconds: wall time.
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


def analyze(
    paths: Sequence[str],
    out: Path,
    *,
    workers: int | None = None,
    label: str | None = None,
    reader: str = "scan",
    prune: bool = False,
    keep_secrets: bool = False,
    capture: str | None = None,
    settings: Settings = DEFAULT,
    on_trace: OnTrace | None = None,
) -> RunReport:
    """Read every new or changed file of `paths` into the warehouse at `out`.

    `workers`: processes, None for one a core, 1 for this process alone. `label`: name of the job,
    given to unchanged files too; None for the name of each new file's folder. `prune`: drop what
    was read earlier from files of `paths` that are gone now. `keep_secrets`: store values that look
    like secrets as they are, in the traces that this run reads. `capture`: a file or folder of
    traces of graph captures, for all traces; those in a folder `capture_traces` beside a trace are
    used as well. `settings`: the user's categories,
    device and formulas; files that were analysed with others are read again. `on_trace` is called
    with each new trace once its rows are safe.

    A file that cannot be read is a result of status rejected. Raises UsageError for a path or
    reader that doesn't exist, or if another run writes to `out`; TracehouseError WORKER_DIED;
    OSError if `out` cannot be written.
    """
    started = time.monotonic()
    check_reader(reader)
    forget()
    forget_captures()
    _check_out(out)
    found = discover(paths)
    divided = divide(_without_lake(found.files, out), capture)
    unreadable = (SourceFile(path, 0, 0) for path in found.unreadable)
    files = (*divided.traces, *unreadable)
    with upkeep.lock(out):
        upkeep.clean(out)
        before = load_state(out)
        pruned: tuple[str, ...] = ()
        if prune:
            pruned = upkeep.prune(out, _vanished(paths, before, found.unreadable))
            before = load_state(out)
        seen = {entry.path: entry for entry in before.files}
        digest = settings.digest
        changed = [file for file in files if not _is_unchanged(file, seen, divided, digest)]
        untouched = {file.path for file in files} - {file.path for file in changed}
        if label is not None:
            _relabel(out, [seen[path] for path in sorted(untouched)], label)
        known = _held(before, digest, untouched)
        tasks = [
            replace(
                task,
                keep_secrets=keep_secrets,
                settings=settings,
                captures={f.path: own for f in task.files if (own := divided.of(f))},
            )
            for task in _tasks(changed, out, label, reader, known, workers)
        ]
        results: list[TraceResult] = []
        for outcome in _outcomes(tasks, workers):
            commit_staged(out, outcome.staged)
            results += outcome.results
            for result in outcome.results:
                if on_trace is not None:
                    on_trace(result)
        after = _compacted(out, load_state(out))
        if not _is_current(out):
            build(out, after)
    live = {entry.path: entry for entry in after.files}
    captures = [live[file.path] for file in divided.capture_files]
    entries = [*(live[file.path] for file in files), *captures]
    results += _unchanged(out, [live[path] for path in untouched])
    results += _refused(captures)
    return RunReport(
        results=tuple(sorted(results, key=lambda r: r.path)),
        total=len(files),
        unchanged=len(untouched),
        rejected=sum(entry.status == Status.REJECTED for entry in entries),
        captures=len(captures),
        partial=sum(entry.status == Status.PARTIAL for entry in entries),
        passed_over=tuple(path for path in found.skipped if is_temporary(path)),
        pruned=pruned,
        seconds=time.monotonic() - started,
        warehouse=out / WAREHOUSE,
    )


def _compacted(out: Path, state: LakeState) -> LakeState:
    """Rewrite the lake's parts once more traces in them are dead than count."""
    dead = sum(len(traces) for traces in state.dead.values())
    if dead <= len(state.owners):
        return state
    upkeep.compact(out)
    return load_state(out)


def _check_out(out: Path) -> None:
    """Raise UsageError for a path at which DuckDB cannot make a file."""
    path = os.path.abspath(out)  # noqa: PTH100 (keeps links)
    if "?" in path or path != path.encode(errors="replace").decode():
        raise UsageError(
            f"cannot make a warehouse at {out}: DuckDB takes no path with a question mark, or that "
            "is not UTF-8",
            hint="choose another OUT",
        )


def _held(state: LakeState, settings: str, untouched: Set[str]) -> frozenset[str]:
    """The traces whose rows count and depend on these settings alone: they need no rows again.

    What captures told of a trace holds only as long as all of its files are untouched.
    """
    parts = {part.id for part in state.parts if part.settings == settings}
    held = {trace_id for trace_id, part in state.owners.items() if part in parts}
    doubtful = {
        trace.trace_id
        for entry in state.files
        if entry.settings != settings and entry.path not in untouched
        for trace in entry.traces
    }
    return frozenset(held - doubtful)


def _is_unchanged(
    file: SourceFile, seen: Mapping[str, FileEntry], divided: Divided, settings: str
) -> bool:
    """Whether a file is as it was, and was analysed with the same settings and captures.

    One whose version is not known (0) is read again; a link to nothing has none and no size.
    """
    entry, captures = seen.get(file.path), divided.of(file)
    if entry is None or entry.settings != with_captures(settings, captures):
        return False
    if any(not _is_seen_capture(capture, seen.get(capture.path)) for capture in captures):
        return False
    if not file.mtime_ns and (file.size or is_url(file.path)):
        return False
    return (entry.size, entry.mtime_ns) == (file.size, file.mtime_ns)


def _is_seen_capture(file: SourceFile, entry: FileEntry | None) -> bool:
    """Whether a capture file was read as one; what the system did not let be read was not."""
    version = file.size, file.mtime_ns, FileRole.CAPTURE
    return entry is not None and (entry.size, entry.mtime_ns, entry.role) == version


def _refused(captures: Sequence[FileEntry]) -> list[TraceResult]:
    """The captures that cannot be used, as results of the run."""
    return [
        TraceResult(entry.path, entry.status, entry.reason)
        for entry in captures
        if entry.status == Status.REJECTED
    ]


def _is_current(out: Path) -> bool:
    """Whether the warehouse was built after the newest manifest was written."""
    warehouse = out / WAREHOUSE
    manifests = layout.manifest_paths(out)
    if not warehouse.exists():
        return False
    return not manifests or warehouse.stat().st_mtime_ns > manifests[-1].stat().st_mtime_ns


def _without_lake(files: Sequence[SourceFile], out: Path) -> list[SourceFile]:
    """Leave out the lake's own manifests, which are JSON, where `out` lies below a folder read."""
    lake = os.path.realpath(out / layout.LAKE) + os.sep
    return [f for f in files if is_url(f.path) or not os.path.realpath(f.path).startswith(lake)]


def _relabel(out: Path, entries: Sequence[FileEntry], label: str) -> None:
    """Give files that need not be read again their new label, in a part without rows."""
    renamed = [replace(entry, label=label) for entry in entries if entry.label != label]
    if renamed:
        with PartWriter(out, layout.part_id(layout.next_part_number(out))) as writer:
            commit_staged(out, writer.stage(renamed, []))


def _vanished(paths: Sequence[str], state: LakeState, unreadable: Sequence[str]) -> list[str]:
    """The local files that `paths` cover, were seen once and are no files now."""
    return [
        entry.path
        for entry in state.files
        if not is_url(entry.path)
        and entry.path not in unreadable
        and any(_covers(path, entry.path) for path in paths if not is_url(path))
        and _is_gone(entry.path)
    ]


def _covers(path: str, file: str) -> bool:
    """Whether `path` names `file` or a folder above it: literally if it exists, else as a glob."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 (keeps links, as discover does)
    if absolute.exists():
        return Path(file).is_relative_to(absolute)
    return _matches(absolute.parts, Path(file).parts)


def _matches(pattern: Sequence[str], steps: Sequence[str]) -> bool:
    """Whether the steps of a glob match a path's first steps."""
    if not pattern:
        return True
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return _matches(rest, steps) or (bool(steps) and _matches(pattern, steps[1:]))
    return bool(steps) and fnmatch.fnmatchcase(steps[0], first) and _matches(rest, steps[1:])


def _is_gone(path: str) -> bool:
    """Whether no file is at `path`; in a folder that cannot be searched it may still be there."""
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def _tasks(
    files: Sequence[SourceFile],
    out: Path,
    label: str | None,
    reader: str,
    known: frozenset[str],
    workers: int | None,
) -> list[PartTask]:
    """Divide the files into parts of about equal text.

    At most PART_BYTES each, and enough for every worker.
    """
    weights = [_FILE_BYTES + _text_bytes(file) for file in files]
    share = sum(weights) // (workers or os.cpu_count() or 1) + 1
    limit = min(PART_BYTES, max(share, _ALONE_BYTES))
    batches: list[list[SourceFile]] = []
    room = 0
    for file, weight in zip(files, weights, strict=True):
        if not batches or weight > room:
            batches.append([])
            room = limit
        batches[-1].append(file)
        room -= weight
    first = layout.next_part_number(out)
    return [
        PartTask(out, layout.part_id(number), tuple(batch), label, reader, known)
        for number, batch in enumerate(batches, first)
    ]


def _text_bytes(file: SourceFile) -> int:
    """A guess at the length of a file's text."""
    return file.size * (_EXPANSION if file.path.endswith(_COMPRESSED) else 1)


def _outcomes(tasks: list[PartTask], workers: int | None) -> Iterator[PartOutcome]:
    """Run the tasks, in this process if that is enough, and yield what they staged as it comes."""
    processes = min(workers or os.cpu_count() or 1, len(tasks))
    if processes <= 1:
        yield from map(run_part, tasks)
        return
    pool = _pool(processes)
    try:
        for future in as_completed([pool.submit(run_part, task) for task in tasks]):
            yield future.result()
    except BrokenProcessPool as error:
        raise TracehouseError(
            "a worker process died, perhaps for want of memory",
            code="WORKER_DIED",
            hint="what was committed stays: run it again, with fewer workers; "
            "a script must call it below `if __name__ == '__main__':`",
        ) from error
    finally:  # after an error or Ctrl-C, parts that have not begun are not waited for
        pool.shutdown(cancel_futures=True)


def _pool(processes: int) -> Executor:
    # Forked from a server that has loaded the code but no threads yet.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tracehouse.commands.part"])
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Make this worker end when its run is killed; it would wait for more work forever."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _unchanged(out: Path, entries: Sequence[FileEntry]) -> list[TraceResult]:
    """What the warehouse knows of traces whose files were not read again."""
    if not entries:
        return []
    refs = {ref.path: ref.trace_id for entry in entries for ref in entry.traces}
    with Warehouse(out) as warehouse:
        rows = warehouse.arrow(
            "SELECT trace_id, status, reason, events, kernels, busy_ns"
            " FROM traces LEFT JOIN trace_timeline USING (trace_id)"
        )
    by_id = {row["trace_id"]: row for row in rows.to_pylist()}
    results = []
    for path, trace_id in refs.items():
        row = by_id[trace_id]
        results.append(
            TraceResult(
                path,
                row["status"],
                row["reason"],
                row["events"],
                row["kernels"],
                row["busy_ns"],
                skipped=True,
            )
        )
    return results
