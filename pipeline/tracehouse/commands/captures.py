"""Reading the traces of graph captures: once a process for the traces that share them."""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.analysis.captured import FULL, PIECEWISE, CaptureTrace, Vocabulary, captured
from tracehouse.analysis.graft import Captures
from tracehouse.analysis.link import link
from tracehouse.analysis.settings import Settings
from tracehouse.commands.statuses import WORST_FIRST, status_of
from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.capture_folders import INDEX, CaptureFiles
from tracehouse.ingest.discover import SourceFile
from tracehouse.ingest.limits import DEFAULT_LIMITS, Limits
from tracehouse.ingest.read import RejectedMember, read_file
from tracehouse.ingest.recognise import is_url
from tracehouse.vocab import Category, Status, canonical_category

NO_CAPTURE = "no graph is captured in it: it has no StreamBeginCapture with dispatches behind it"

_KERNEL = r'"kernel":(?P<kernel>"(?:[^"\\]|\\.)*")'
_INDEX_BYTES = 4 << 20
_Told = dict[str, tuple[int, str]]  # batch and mode by the name of a file


@dataclass(frozen=True, slots=True)
class CaptureOutcome:
    """What became of a capture file. `is_unread`: the system did not let it be read."""

    file: SourceFile
    status: Status
    reason: str | None
    content_hash: str | None
    is_useful: bool
    is_unread: bool = False


@dataclass(frozen=True, slots=True)
class ReadCaptures:
    """The captures of some files, and what became of each file."""

    captures: Captures
    outcomes: tuple[CaptureOutcome, ...]

    def note(self, findings: Findings) -> None:
        """Tell a trace which of its captures are of no use."""
        for outcome in self.outcomes:
            if not outcome.is_useful:
                name = posixpath.basename(outcome.file.path)
                findings.add("CAPTURE_UNUSABLE", example=f"{name}: {outcome.reason}")


_kept: dict[tuple[CaptureFiles, str, str, Limits], ReadCaptures] = {}


def forget_captures() -> None:
    """Let the next run read captures anew."""
    _kept.clear()


def read_captures(
    files: CaptureFiles, reader: str, settings: Settings, limits: Limits = DEFAULT_LIMITS
) -> ReadCaptures | None:
    """Read the captures in some files, those of the call before if they are the same.

    None for no files. A file that cannot be used is told in the outcomes, and never raises.
    """
    if not files:
        return None
    key = files, reader, settings.digest, limits
    if key not in _kept:
        _kept.clear()  # traces of one folder come one after another
        _kept[key] = _read_all(files, reader, settings, limits)
    return _kept[key]


def _read_all(files: CaptureFiles, reader: str, settings: Settings, limits: Limits) -> ReadCaptures:
    vocabulary, told = Vocabulary(), _Told()
    outcomes, traces = [], []
    for file in files:
        if posixpath.basename(file.path) == INDEX:
            outcomes.append(_read_index(file, told))
    for file in files:
        if posixpath.basename(file.path) != INDEX:
            outcome, found = _read(file, reader, settings, limits, vocabulary, told)
            outcomes.append(outcome)
            traces += found
    return ReadCaptures(Captures(tuple(traces), vocabulary), tuple(outcomes))


def _read_index(file: SourceFile, told: _Told) -> CaptureOutcome:
    """Read what an index says of the files beside it; of one that it names twice, nothing."""
    if is_url(file.path):
        from tracehouse.ingest.remote import open_remote

        opened = open_remote(file.path)
    else:
        opened = None
    try:
        if opened is None:
            with Path(file.path).open("rb") as local:
                text = local.read(_INDEX_BYTES + 1)
        else:
            with opened as remote:
                text = remote.read(_INDEX_BYTES + 1)
        listed = [_entry(item) for item in json.loads(text)]
    except OSError as error:
        return CaptureOutcome(
            file, Status.REJECTED, f"cannot be read: {error}", None, False, is_unread=True
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        reason = "not a list of objects with file, batch_size and mode FULL or PIECEWISE"
        return CaptureOutcome(file, Status.REJECTED, reason, None, is_useful=False)
    names = [name for name, *_ in listed]
    told.update((n, (size, mode)) for n, size, mode in listed if names.count(n) == 1)
    return CaptureOutcome(file, Status.OK, None, None, is_useful=True)


def _entry(item: dict[str, object]) -> tuple[str, int, str]:
    name, size, mode = item["file"], item["batch_size"], item["mode"]
    if not isinstance(name, str) or type(size) is not int or not 0 <= size < 1 << 62:
        raise ValueError("no name, or no batch size")
    if mode not in (FULL, PIECEWISE):
        raise ValueError("unknown mode")
    return name.replace("\\", "/").rpartition("/")[2], size, str(mode)


def _read(
    file: SourceFile,
    reader: str,
    settings: Settings,
    limits: Limits,
    vocabulary: Vocabulary,
    told: _Told,
) -> tuple[CaptureOutcome, list[CaptureTrace]]:
    """Read the captures of one file; what is wrong with it costs the captures only."""
    name = posixpath.basename(file.path)
    try:
        found, statuses, hashes = _traces(
            file, reader, settings, limits, vocabulary, told.get(name)
        )
    except RejectedFile as error:
        is_unread = error.code == "READ_FAILED"
        return CaptureOutcome(file, Status.REJECTED, str(error), None, False, is_unread), []
    except Exception as error:  # the boundary of a file: the traces must go on
        reason = f"its analysis failed: {type(error).__name__}: {error}"
        return CaptureOutcome(file, Status.REJECTED, reason, None, is_useful=False), []
    status, why = min(statuses, key=lambda s: WORST_FIRST.index(s[0]))
    is_useful = any(trace.captures for trace in found)
    content = hashes[0] if len(hashes) == 1 else None
    if not is_useful:
        why = why or NO_CAPTURE
    return CaptureOutcome(file, status, why, content, is_useful), found


def _traces(
    file: SourceFile,
    reader: str,
    settings: Settings,
    limits: Limits,
    vocabulary: Vocabulary,
    told: tuple[int, str] | None,
) -> tuple[list[CaptureTrace], list[tuple[Status, str | None]], list[str]]:
    """Return the capture traces of a file, the status of each, and their content hashes."""
    names: dict[str, dict[int, str]] = {}  # of kernels, by trace and event
    found: list[CaptureTrace] = []
    statuses: list[tuple[Status, str | None]] = []
    hashes: list[str] = []

    def take(rows: pa.Table) -> None:
        if rows.num_rows:
            names.setdefault(rows["trace_id"][0].as_py(), {}).update(dispatched(rows))

    for trace in read_file(
        file.path,
        reader=reader,
        sink=take,
        wanted=lambda _: True,
        findings=Findings(),
        limits=limits,
    ):
        if isinstance(trace, RejectedMember):
            statuses.append((Status.REJECTED, str(trace.error)))
            continue
        statuses.append(status_of(trace.findings))
        hashes.append(trace.trace_id)
        linked = link(
            trace.frame,
            trace.trace_id,
            findings=Findings(),
            rules=settings.rules,
            grammars=settings.grammars,
            spill=trace.spill,
        )
        source = posixpath.basename(trace.path).encode(errors="backslashreplace").decode()
        found.append(
            captured(
                trace.frame,
                linked,
                names.pop(trace.trace_id, {}),
                vocabulary,
                source=source,
                rank=trace.about.rank,
                told=told,
            )
        )
    if not statuses:
        statuses.append((Status.REJECTED, "it holds no trace"))
    return found, statuses, hashes


def dispatched(rows: pa.Table) -> dict[int, str]:
    """Return the name of the kernel that each call names (args.kernel), by event_id."""
    words = rows.select(["event_id", "cat", "args"]).unify_dictionaries().combine_chunks()
    cat = words["cat"].combine_chunks()
    if isinstance(cat, pa.ChunkedArray) or not len(cat):
        return {}
    calls = [
        place
        for place, word in enumerate(cat.dictionary.to_pylist())
        if canonical_category(word) in (Category.RUNTIME, Category.DRIVER)
    ]
    chosen = words.filter(pc.is_in(cat.indices, pa.array(calls, cat.indices.type)))
    if not chosen.num_rows:
        return {}
    names = pc.struct_field(pc.extract_regex(chosen["args"], _KERNEL), "kernel")
    encoded = names.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    quoted = encoded.dictionary.to_pylist()
    texts = [None if text is None else json.loads(text, strict=False) for text in quoted]
    return {
        event: texts[code]
        for event, code in zip(
            chosen["event_id"].to_pylist(), encoded.indices.to_pylist(), strict=True
        )
        if code is not None and texts[code]
    }
