"""Copying some events of a trace into files of their own, byte for byte, in a pass over its text.

The text beside the event list is copied as it stands where it is sound JSON, else written anew of
what could be read of it. Memory is that of a block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.batches import EventBatch
from tracehouse.ingest.containers import Member, members
from tracehouse.ingest.cursor import Cursor
from tracehouse.ingest.envelope import EVENT_LIST, Tail, take_head
from tracehouse.ingest.fields import json_text
from tracehouse.ingest.read import ReadTrace, Tap, end_of_list
from tracehouse.ingest.reader_scan import ScanReader
from tracehouse.ingest.text import utf8_blocks

Words = Mapping[str, Sequence[str]]
Choice = Callable[[EventBatch, Words], NDArray[np.int64]]
"""Gives the ids of the events of a batch to copy, ascending; the words are those of its columns."""

_SEPARATOR = b",\n"
_LIST = EVENT_LIST.decode()


def copy_events(
    path: str, trace: ReadTrace, choices: Sequence[tuple[Choice, BinaryIO]]
) -> list[int]:
    """Copy events of a trace that was read from `path` to each file whose choice they are.

    Returns how many each file got. What was mended on reading is copied as mended, what was dropped
    is not there; text that was no UTF-8 is copied as read. Each file is valid JSON with all keys
    beside the event list. Raises RejectedFile READ_FAILED if the file is not the one that was read.
    """
    tap = Tap(_member_of(path, trace.path).blocks())
    findings = Findings()
    cursor = Cursor(utf8_blocks(tap, findings))
    cursor.skip_blank()
    head = take_head(cursor)
    reader = ScanReader(cursor, findings)
    outputs = [_Output(file, head, trace) for _, file in choices]
    tail = Tail(b"", is_complete=False, has_events=True)
    while tail.has_events:
        for batch in reader.batches():
            words: Words = {name: known.words for name, known in reader.dictionaries.items()}
            for (choice, _), output in zip(choices, outputs, strict=True):
                ids = choice(batch, words)
                if len(ids):
                    output.write(reader.texts(ids))
        tail = end_of_list(cursor, head, reader, findings)
    cursor.skip_all()
    if tap.hash() != trace.trace_id:
        raise RejectedFile(
            f"{path} has changed while it was read", code="READ_FAILED", hint="run it again"
        )
    for output in outputs:
        output.end(tail)
    return [output.events for output in outputs]


def _member_of(path: str, shown: str) -> Member:
    """Return the text in a file that is shown under a name, as `ingest.read` shows it."""
    for member in members(path, path, Findings()):
        if shown == (f"{path}/{member.name}" if member.name else path):
            return member
    raise RejectedFile(f"{shown} is not there any more", code="READ_FAILED", hint="run it again")


class _Output:
    """A document under construction."""

    def __init__(self, file: BinaryIO, head: bytes, trace: ReadTrace) -> None:
        self._file = file
        self._is_list = trace.is_list
        self._missing = dict(trace.envelope)  # keys that have not been written
        self.events = 0
        if trace.is_list:
            file.write(b"[")
            return
        said = _object(head + b"]}")
        if said is None or list(said)[-1:] != [_LIST]:
            keys = json_text(trace.envelope)[1:-1]
            file.write(f'{{{keys}{"," if keys else ""}\n"{_LIST}":['.encode())
            self._missing.clear()
            return
        file.write(head)
        for key in said:
            self._missing.pop(key, None)

    def write(self, texts: Iterable[bytes]) -> None:
        """Write some events."""
        texts = list(texts)
        self._file.write(_SEPARATOR if self.events else b"\n")
        self._file.write(_SEPARATOR.join(texts))
        self.events += len(texts)

    def end(self, tail: Tail) -> None:
        """Write what stands behind the events."""
        if self._is_list:
            self._file.write(b"\n]\n")
            return
        said = _object(b'{"":[]' + tail.text) if tail.is_complete else None
        if said is not None and set(said) - {""} == set(self._missing):
            self._file.write(b"\n]" + tail.text)
        else:
            keys = "".join(f",\n{json_text(k)}:{json_text(v)}" for k, v in self._missing.items())
            self._file.write(f"\n]{keys}}}\n".encode())


def _object(text: bytes) -> dict[str, Any] | None:
    """Parse an object; None if it is no sound JSON, or has a key twice."""
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, doubled ones too."""


def _refused(constant: str) -> None:
    raise ValueError(constant)
