"""Reading a file.

Its members, the documents in each, and of each document the events and the envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from tracehouse.errors import RejectedFile, UsageError
from tracehouse.findings import Findings
from tracehouse.ingest.about import About, about
from tracehouse.ingest.batches import Dictionaries, EventBatch, FrameBuilder, event_table
from tracehouse.ingest.containers import Member, members
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.envelope import Tail, holds_event, parse_envelope, take_head, take_tail
from tracehouse.ingest.fields import json_text
from tracehouse.ingest.limits import DEFAULT_LIMITS, Limits
from tracehouse.ingest.reader_ijson import IjsonReader
from tracehouse.ingest.reader_scan import ScanReader
from tracehouse.ingest.redaction import Redactor
from tracehouse.ingest.text import utf8_blocks
from tracehouse.spill import Spill
from tracehouse.vocab import GPU_CATEGORIES, canonical_category

READERS: dict[str, type[ScanReader] | type[IjsonReader]] = {
    "scan": ScanReader,
    "ijson": IjsonReader,
}

# Text held as columns before a trace's events go to the sink as they come (then its hash is taken
# in a pass of its own, since every row carries it).
HOLD_BYTES = 128 << 20


Sink = Callable[[pa.Table], None]
"""Takes rows of table `events`."""


@dataclass(slots=True)
class ReadTrace:
    """One trace as read: its events have gone to the sink, the rest is here.

    frame: what the linker needs. spill: where that is, and what is made of it should go. bytes: of
    the decompressed text, all documents of it. span_ns: first start and last end of complete
    events. is_new: whether its events went to the sink. is_list: whether the document was a bare
    list of events, with no envelope around it.
    """

    trace_id: str
    path: str
    is_new: bool
    events: int
    bytes: int
    frame: pa.Table
    spill: Spill
    envelope: dict[str, Any]
    is_list: bool
    about: About
    findings: Findings
    span_ns: tuple[int | None, int | None]
    reader: str


@dataclass(slots=True)
class _Span:
    """The first start and last end of complete events of the host, as far as both are known.

    What counts of GPU activity is decided when it is linked.
    """

    start: int | None = None
    end: int | None = None
    _is_host: list[bool] = field(default_factory=list)

    def add(self, batch: EventBatch, dictionaries: Dictionaries) -> None:
        phases, categories = dictionaries["ph"].words, dictionaries["cat"].words
        self._is_host.extend(
            canonical_category(word) not in GPU_CATEGORIES
            for word in categories[len(self._is_host) :]
        )
        if "X" not in phases:
            return
        ts, has_ts = batch.numbers["ts_ns"]
        dur, has_dur = batch.numbers["dur_ns"]
        keep = (batch.codes["ph"] == phases.index("X")) & has_ts & has_dur
        keep &= np.array([*self._is_host, True])[batch.codes["cat"]]  # -1, no category: the last
        if not keep.any():
            return
        start, end = int(ts[keep].min()), int((ts[keep] + dur[keep]).max())
        self.start = start if self.start is None else min(self.start, start)
        self.end = end if self.end is None else max(self.end, end)


def check_reader(reader: str) -> None:
    """Raise UsageError if there is no such reader."""
    if reader not in READERS:
        raise UsageError(
            f"no reader is called {reader!r}", hint=f"use one of: {', '.join(READERS)}"
        )


def read_file(
    path: str,
    *,
    reader: str,
    sink: Sink,
    wanted: Callable[[str], bool],
    findings: Findings,
    keep_secrets: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    spill: Spill | None = None,
) -> Iterator[ReadTrace | RejectedMember]:
    """Read every trace of a file.

    `path`: a local path or URL. `sink` takes the events. `wanted` is asked once with each trace_id:
    nothing of a trace that is not wanted goes to the sink. `findings` receives what concerns an
    archive as a whole. `keep_secrets`: do not redact values that look like secrets. `limits`: how
    much is read. `spill`: where the frames go that are too large for memory; None for one a trace.
    A member that cannot be used comes as RejectedMember, and the others go on.

    Raises RejectedFile if nothing of the file can be used.
    """
    for member in members(path, path, findings, limits):
        shown = f"{path}/{member.name}" if member.name else path
        try:
            yield from _read_member(
                member, shown, reader, sink, wanted, keep_secrets, limits, spill
            )
        except RejectedFile as error:
            if not member.name:
                raise
            yield RejectedMember(shown, error)


@dataclass(frozen=True, slots=True)
class RejectedMember:
    """A member of an archive of which nothing can be used."""

    path: str
    error: RejectedFile


class Tap:
    """Passes blocks on and keeps their hash and length: what trace_id is made of."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._hash = xxhash.xxh3_64()
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._hash.update(block)
            self.bytes += len(block)
            yield block

    def hash(self) -> str:
        """The hash of what has passed: the trace_id of a text of one document."""
        return self._hash.hexdigest()


def _hash_of(member: Member) -> str:
    tap = Tap(member.blocks())
    for _ in tap:
        pass
    return tap.hash()


def _document_id(content_hash: str, index: int) -> str:
    """The trace_id of document `index` of a text; the first has the hash of the text."""
    return (
        content_hash
        if index == 0
        else xxhash.xxh3_64(f"{content_hash}#{index}".encode()).hexdigest()
    )


def _read_member(
    member: Member,
    path: str,
    reader: str,
    sink: Sink,
    wanted: Callable[[str], bool],
    keep_secrets: bool,
    limits: Limits,
    spill: Spill | None,
) -> Iterator[ReadTrace]:
    tap = Tap(member.blocks())
    text_findings = Findings()
    cursor = Cursor(utf8_blocks(tap, text_findings), limits)
    index = 0
    found: list[tuple[_Document, Findings]] = []
    while cursor.skip_blank():
        findings = Findings()
        document = _Document(
            cursor, reader, findings, sink, wanted, member, tap, index, keep_secrets, spill
        )
        try:
            document.read()
        except RejectedFile:
            if not found:
                raise
            found[-1][1].add(
                "DROPPED_EVENT" if holds_event(cursor.rest()) else "REPAIRED_SYNTAX",
                example="text that is no trace stands behind the document",
            )
            cursor.skip_all()
            break
        found.append((document, findings))
        index += 1
        if not document.is_complete:
            cursor.skip_all()
    if not found:
        raise RejectedFile(
            "the file holds only blanks", code="EMPTY_FILE", hint="record the trace again"
        )
    content_hash = tap.hash()
    for number, (document, findings) in enumerate(found):
        if number == 0:
            findings.merge(member.findings)
            findings.merge(text_findings)
        if len(found) > 1:
            findings.add("MULTI_DOC", example=f"document {number + 1} of {len(found)}")
        shown = path if number == 0 else f"{path}#{number}"
        yield document.finish(_document_id(content_hash, number), shown, tap.bytes)


def end_of_list(
    cursor: Cursor, head: bytes, reader: ScanReader | IjsonReader, findings: Findings
) -> Tail:
    """Take what stands behind the list; where events follow after all, the reader goes on."""
    if not reader.complete:
        return Tail(b"", is_complete=False)
    try:
        tail = take_tail(cursor, head)
    except RejectedFile as error:  # TOO_LARGE: the events are there all the same
        cursor.skip_all()
        findings.add("REPAIRED_METADATA", example=str(error))
        return Tail(b"", is_complete=True)
    if tail.has_events:
        findings.add("REPAIRED_SYNTAX", event_id=reader.events_seen, example="the list goes on")
        reader.go_on()
    return tail


class _Document:
    """One JSON document: reads its events, holds them or lets them go, and keeps the rest."""

    def __init__(
        self,
        cursor: Cursor,
        reader: str,
        findings: Findings,
        sink: Sink,
        wanted: Callable[[str], bool],
        member: Member,
        tap: Tap,
        index: int,
        keep_secrets: bool,
        spill: Spill | None,
    ) -> None:
        self._cursor = cursor
        self._findings = findings
        self._sink = sink
        self._wanted = wanted
        self._member = member
        self._tap = tap
        self._index = index
        self._keep_secrets = keep_secrets
        self._spill = Spill() if spill is None else spill
        self._is_list = False
        self._reader_name = reader
        self._envelope: dict[str, Any] = {}
        self._held: list[EventBatch] = []
        self._streaming: str | None = None  # the trace_id, once events go to the sink as they come
        self._is_new: bool | None = None
        self._span = _Span()
        self._events = 0
        self.is_complete = False

    def read(self) -> None:
        """Read to the end of the document. Raises RejectedFile NOT_A_TRACE."""
        cursor = self._cursor
        head = take_head(cursor, self._findings)
        self._events_of = READERS[self._reader_name](cursor, self._findings)
        self._frame = FrameBuilder(self._events_of.dictionaries, self._spill)
        self._redactor = Redactor(self._events_of.dictionaries, self._findings)
        self._is_list = head == b"["
        start = self._tap.bytes
        tail = Tail(b"", is_complete=False, has_events=True)
        while tail.has_events:
            for batch in self._events_of.batches():
                self._take(batch, self._tap.bytes - start)
            tail = end_of_list(cursor, head, self._events_of, self._findings)
        self.is_complete = tail.is_complete
        # A compressed stream that ends early has said so already; so has a second writer.
        told = "TRUNCATED" in self._member.findings or "INTERLEAVED_WRITERS" in self._findings
        if not tail.is_complete and not told:
            last = self._events_of.events_seen - 1
            self._findings.add("TRUNCATED", example=f"the text ends after event {last:,}")
        self._check_is_trace(head)
        self._envelope = parse_envelope(head, tail.text, self._findings)

    def _check_is_trace(self, head: bytes) -> None:
        """A list without an envelope is a trace only if it holds events."""
        if head == b"[" and not self._events_of.dictionaries["ph"].words:
            raise RejectedFile(
                "not a trace: a list, but not of trace events (objects with `ph`)",
                code="NOT_A_TRACE",
                hint="pass the .json that torch.profiler exported",
            )

    def _take(self, batch: EventBatch, text_bytes: int) -> None:
        if not self._keep_secrets:
            batch = self._redactor.batch(batch)
        self._frame.add(batch)
        self._span.add(batch, self._events_of.dictionaries)
        self._events += len(batch)
        if self._streaming is not None:
            self._send([batch], self._streaming)
            return
        self._held.append(batch)
        if text_bytes > HOLD_BYTES:
            self._streaming = _document_id(_hash_of(self._member), self._index)
            self._send(self._held, self._streaming)
            self._held = []

    def _send(self, batches: list[EventBatch], trace_id: str) -> None:
        if self._is_new is None:
            self._is_new = self._wanted(trace_id)
        if self._is_new:
            self._sink(event_table(batches, self._events_of.dictionaries, trace_id))

    def finish(self, trace_id: str, path: str, text_bytes: int) -> ReadTrace:
        """Let go of what is held, and give the rest."""
        self._send(self._held, trace_id)
        self._held = []
        findings = self._findings
        if self._events_of.events_seen == 0:
            findings.add("NO_EVENTS")
        envelope = self._envelope
        if not self._keep_secrets:
            envelope = self._redactor.envelope(envelope)
            self._redactor.examples()
        facts = about(envelope, self._events_of.dictionaries["name"].words, path)
        if facts.rank is None:
            findings.add("RANK_UNKNOWN")
        return ReadTrace(
            trace_id=trace_id,
            path=path,
            is_new=bool(self._is_new),
            events=self._events,
            bytes=text_bytes,
            frame=self._frame.table(),
            spill=self._spill,
            envelope=envelope,
            is_list=self._is_list,
            about=facts,
            findings=findings,
            span_ns=(self._span.start, self._span.end),
            reader=self._reader_name,
        )


def envelope_text(trace: ReadTrace) -> str | None:
    """The envelope as JSON text; None for a bare list of events, which has none."""
    return None if trace.is_list else json_text(trace.envelope)
