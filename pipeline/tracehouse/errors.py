"""The exception hierarchy and the table of stable finding codes.

A *finding* is something odd in a file: a code, how often it occurred and where first. Findings
never stop a run; exceptions do. A code never changes its meaning and is never reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How far a finding can change a number."""

    INFO = "info"  # noted, every number stands
    WARNING = "warning"  # a number may differ from the raw text
    ERROR = "error"  # nothing of the file is usable


@dataclass(frozen=True, slots=True)
class Code:
    """One stable word of the `issues` table."""

    word: str
    severity: Severity
    meaning: str
    action: str  # what was done about it, and what is kept


_INFO, _WARNING, _ERROR = Severity.INFO, Severity.WARNING, Severity.ERROR

CODES: dict[str, Code] = {
    code.word: code
    for code in (
        Code(
            "WRONG_SUFFIX",
            _INFO,
            "content differs from the file name",
            "read by content; everything kept",
        ),
        Code(
            "MULTI_MEMBER",
            _INFO,
            "several compressed members make one text",
            "joined; everything kept",
        ),
        Code(
            "MULTI_DOC",
            _WARNING,
            "several JSON documents in one text",
            "each document is its own trace",
        ),
        Code(
            "MEMBER_SKIPPED",
            _INFO,
            "archive member that is no trace",
            "skipped; the other members kept",
        ),
        Code(
            "TEMP_SKIPPED", _INFO, "unfinished file left by a writer", "passed over; not a failure"
        ),
        Code("EMPTY_FILE", _ERROR, "no bytes, or a container of no bytes", "nothing kept"),
        Code("BAD_CONTAINER", _ERROR, "looks compressed, but nothing decodes", "nothing kept"),
        Code("ENCODING_BOM", _INFO, "UTF-8 byte-order mark", "mark dropped; everything kept"),
        Code("ENCODING_FIXED", _WARNING, "not UTF-8", "transcoded; bad bytes became U+FFFD"),
        Code("NOT_A_TRACE", _ERROR, "readable, but holds no list of trace events", "nothing kept"),
        Code(
            "TOO_LARGE",
            _ERROR,
            "more text or members than the limits allow, as in a bomb",
            "nothing kept; docs/limits.md names the options",
        ),
        Code("READ_FAILED", _ERROR, "the file could not be read", "nothing kept"),
        Code(
            "ANALYSIS_FAILED",
            _ERROR,
            "the analysis of this trace failed",
            "nothing kept; report it",
        ),
        Code(
            "MEMORY_LIMIT",
            _ERROR,
            "the analysis of this trace needs more memory than --memory-limit",
            "nothing kept; the next run tries again",
        ),
        Code(
            "WORKER_DIED",
            _ERROR,
            "the process that analysed this trace died or got no memory, twice",
            "nothing kept; the next run tries again",
        ),
        Code(
            "REPAIRED_ESCAPE",
            _WARNING,
            "bare quote or wrong backslash in a string",
            "text as meant",
        ),
        Code("REPAIRED_CONTROL", _WARNING, "raw control character in a string", "character kept"),
        Code("REPAIRED_NUMBER", _WARNING, "NaN, Infinity or a bare word for a value", "value NULL"),
        Code(
            "INTERLEAVED_WRITERS",
            _WARNING,
            "two writers shared the file",
            "events before the first break kept",
        ),
        Code(
            "REPAIRED_SYNTAX",
            _WARNING,
            "text where JSON allows none",
            "text dropped; everything else kept",
        ),
        Code(
            "REPAIRED_METADATA",
            _WARNING,
            "a key beside the event list is broken",
            "key dropped; events kept",
        ),
        Code(
            "DROPPED_EVENT", _WARNING, "an event cannot be read", "event dropped; all others kept"
        ),
        Code(
            "TRUNCATED",
            _WARNING,
            "text or compressed stream ends early",
            "every complete event kept",
        ),
        Code("DUPLICATE_KEY", _INFO, "the same key twice in one object", "last value kept"),
        Code("NO_EVENTS", _WARNING, "the event list is empty", "an empty trace"),
        Code(
            "NO_GPU_EVENTS",
            _WARNING,
            "no GPU activity in the trace",
            "CPU tables kept; GPU tables empty",
        ),
        Code(
            "BAD_NUMBER", _WARNING, "a field that must be a number is none", "field NULL; row kept"
        ),
        Code(
            "DUR_INVALID",
            _WARNING,
            "negative or wrapped duration",
            "duration NULL; row kept; not busy",
        ),
        Code(
            "DUR_OVERFLOW",
            _WARNING,
            "GPU duration runs far over later work of its own stream",
            "clipped to the next start; raw_dur_ns keeps it",
        ),
        Code(
            "CLOCK_ZERO",
            _WARNING,
            "GPU record without timing (ts 0)",
            "start and duration NULL; row kept; not busy",
        ),
        Code(
            "CLOCK_DOMAIN",
            _WARNING,
            "GPU and CPU times do not share a clock",
            "everything kept; launch delays NULL",
        ),
        Code("LAUNCH_SKEW", _INFO, "a kernel starts before its launch call", "delay kept negative"),
        Code(
            "STREAM_OVERLAP", _INFO, "neighbours on a stream overlap", "kept; busy time is a union"
        ),
        Code("NEST_TOLERANCE", _INFO, "a child ends shortly after its parent", "nesting kept"),
        Code(
            "ORPHAN_KERNEL", _INFO, "GPU activity without launch or op", "kept; launch and op NULL"
        ),
        Code(
            "CORRELATION_AMBIGUOUS",
            _WARNING,
            "a correlation id used by unrelated launches",
            "kept; link NULL",
        ),
        Code("GRAPH_REPLAY", _INFO, "several activities share a graph launch", "kept"),
        Code(
            "GRAPH_UNMATCHED",
            _INFO,
            "a graph launch is of no graph in the capture traces",
            "its kernels have no op; launches.why_no_capture says why",
        ),
        Code(
            "CAPTURE_UNUSABLE",
            _WARNING,
            "a capture trace of this trace cannot be used",
            "kernels of graphs that only it knows have no op",
        ),
        Code("SHAPES_MISSING", _INFO, "no input shapes recorded", "shapes NULL"),
        Code(
            "ARGS_EXTRA",
            _INFO,
            "more values than declared inputs",
            "kept in signatures.extra_inputs",
        ),
        Code(
            "SPAN_UNPAIRED",
            _INFO,
            "begin event without end, or end event without begin",
            "a begin is a span of unknown duration",
        ),
        Code("NAME_UNKNOWN", _INFO, "a GPU activity without a telling name", "kept as it stands"),
        Code(
            "RECLASSIFIED",
            _INFO,
            "a copy or fill filed as a kernel",
            "kept as gpu_memcpy or _memset",
        ),
        Code(
            "NO_UNIQUE_KERNEL_NAMES",
            _INFO,
            "compiled kernels are named by number only, so that their ops are not known",
            "sizes and bytes kept, FLOPs 0 and marked partial; capture with "
            "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES=1 (PyTorch 2.4 and 2.5; the default from 2.6 on)",
        ),
        Code(
            "KERNEL_ARGS_ODD",
            _WARNING,
            "a value, type, size or signature of a compiled kernel cannot be read",
            "passed over; the work that depends on it NULL",
        ),
        Code(
            "UNKNOWN_DEVICE",
            _INFO,
            "the device is in no file of data/arch",
            "work and rates kept; rooflines NULL; --arch names the device",
        ),
        Code("RANKS_MERGED", _WARNING, "several ranks in one file", "kept apart by rank_label"),
        Code("RANK_UNKNOWN", _INFO, "no rank recorded", "rank NULL"),
        Code(
            "RANK_DUPLICATE",
            _WARNING,
            "another trace of the same label, rank and time",
            "each kept under its own trace_id, not to be summed as one rank",
        ),
        Code(
            "STEP_UNPARSED",
            _INFO,
            "an annotation begins like a step's but has another wording",
            "a step of phase other; counts NULL; --step-pattern can read it",
        ),
        Code(
            "STEP_NESTED",
            _INFO,
            "a step written inside another, or twice",
            "counted once, under the outer one",
        ),
        Code("SECRET_REDACTED", _WARNING, "a value looks like a secret", "stored as `redacted`"),
        Code(
            "OVERSIZE_EVENT",
            _WARNING,
            "an event above the size limit",
            "event kept, its largest text cut",
        ),
    )
}


class TracehouseError(Exception):
    """Base of every error that Tracehouse raises on purpose.

    `code` is a stable word, `hint` says what to do; a traceback shows it too, as a note.
    """

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        if hint:
            self.add_note(hint)


class RejectedFile(TracehouseError):
    """A file of which nothing can be used; `code` is one of the error codes of CODES."""


class UsageError(TracehouseError):
    """The caller asked for something that does not exist; the command line exits with 2."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, code="USAGE", hint=hint)
