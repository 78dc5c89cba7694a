"""Seeded mutants of real and sample traces: both readers agree, and nothing intact is lost.

A mutant differs from its original in one stretch of bytes. Events that lie wholly outside it, and
not beside it, are intact. `make mutants` runs many more of them.
"""

from __future__ import annotations

import json
import os
import random
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from reading import Reading, assert_same, read_text

from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.text import utf8_blocks

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = int(os.environ.get("TRACEHOUSE_MUTANTS", "20"))
SOURCES = [
    "data/samples/training.json.gz",
    "data/samples/two_ranks/rank0.json.gz",
    "../shared/traces/torch_compile_triton/trace.json.gz",
    "../shared/traces/hta/critical_path/cuda_event_sync/event_sync_trace.json.gz",
    "../shared/traces/hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
]


@dataclass(frozen=True)
class Original:
    """A trace's text, where its event list begins, and the extent and identity of each event."""

    text: bytes
    start: int
    events: tuple[tuple[int, int, str], ...]


def identity(event: dict[str, object]) -> str:
    return json.dumps([event.get(key) for key in ("ph", "cat", "name", "ts", "dur", "id")])


def original_of(text: bytes) -> Original:
    """Take a trace apart with nothing but the standard library."""
    start = text.index(b"[", text.index(b'"traceEvents"')) + 1
    decoder = json.JSONDecoder()
    whole = text.decode()
    assert whole.isascii()  # so that characters and bytes are the same
    events = []
    at = start
    while True:
        while whole[at] in " \t\r\n,":
            at += 1
        if whole[at] == "]":
            return Original(text, start, tuple(events))
        event, end = decoder.raw_decode(whole, at)
        events.append((at, end, identity(event)))
        at = end


def flip(text: bytes, rng: random.Random, low: int) -> tuple[bytes, int, int]:
    at = rng.randrange(low, len(text))
    return text[:at] + bytes([text[at] ^ (1 << rng.randrange(8))]) + text[at + 1 :], at, at + 1


def insert(text: bytes, rng: random.Random, low: int) -> tuple[bytes, int, int]:
    at = rng.randrange(low, len(text))
    extra = rng.choice(
        [
            b'"',
            b"\\",
            b"\n",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\x00",
            b"\xff",
            b"NaN",
            b"N/A",
            b'\\"',
            b"//",
        ]
    )
    return text[:at] + extra * rng.choice([1, 1, 2]) + text[at:], at, at


def delete(text: bytes, rng: random.Random, low: int) -> tuple[bytes, int, int]:
    at = rng.randrange(low, len(text))
    end = min(at + rng.choice([1, 1, 2, 8, 60]), len(text))
    return text[:at] + text[end:], at, end


def double(text: bytes, rng: random.Random, low: int) -> tuple[bytes, int, int]:
    at = rng.randrange(low, len(text))
    end = min(at + rng.choice([1, 5, 40, 300]), len(text))
    return text[:end] + text[at:end] + text[end:], at, end


def cut(text: bytes, rng: random.Random, low: int) -> tuple[bytes, int, int]:
    at = rng.randrange(low, len(text))
    return text[:at], at, len(text)


def swap(text: bytes, rng: random.Random, low: int) -> tuple[bytes, int, int]:
    at = rng.randrange(low, len(text) - 90)
    middle, end = at + rng.randrange(1, 40), at + rng.randrange(41, 90)
    return text[:at] + text[middle:end] + text[at:middle] + text[end:], at, end


KINDS = (flip, insert, delete, double, cut, swap)


def read(text: bytes, reader: str, block: int) -> Reading | str:
    """Read a mutant; a rejection gives its code."""
    try:
        return read_text(b"".join(utf8_blocks([text], Findings())), reader, block)
    except RejectedFile as error:
        return error.code


def intact(original: Original, low: int, high: int) -> Counter[str]:
    """Count the events that a change of text[low:high] leaves alone."""
    known = [
        name
        for (start, end, name), (_, before, _), (after, _, _) in zip(
            original.events,
            (original.events[:1] + original.events)[: len(original.events)],
            (*original.events[1:], original.events[-1]),
            strict=True,
        )
        if (end < low and after <= low) or (start > high and before >= high)
    ]
    return Counter(known)


def kept(reading: Reading) -> Counter[str]:
    """Count the events of a reading by identity, times in µs as the file has them."""
    rows = zip(
        *(
            reading.events[c].to_pylist()
            for c in ("ph", "cat", "name", "ts_ns", "dur_ns", "flow_id")
        ),
        strict=True,
    )
    return Counter(
        json.dumps([ph, cat, name, us(ts), us(dur), flow]) for ph, cat, name, ts, dur, flow in rows
    )


def us(ns: int | None) -> float | int | None:
    if ns is None:
        return None
    return ns / 1000 if ns % 1000 else ns // 1000


def normal(name: str) -> str:
    """An identity with whole times as integers, as `kept` writes them."""
    values = json.loads(name)
    for i in (3, 4):
        if isinstance(values[i], float) and values[i].is_integer():
            values[i] = int(values[i])
    return json.dumps(values)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_mutants(source: str, kind: Callable[..., tuple[bytes, int, int]]) -> None:
    path = ROOT / source
    if not path.exists():
        pytest.skip(f"no {path}")
    original = original_of(zlib.decompressobj(31).decompress(path.read_bytes()))
    rng = random.Random(f"{source} {kind.__name__}")
    for number in range(MUTANTS):
        text, low, high = kind(original.text, rng, original.start)
        scan = read(text, "scan", rng.choice([200, 1 << 14, 1 << 20]))
        reference = read(text, "ijson", 1 << 20)
        where = f"mutant {number}: bytes {low} to {high}"
        if isinstance(scan, str) or isinstance(reference, str):
            assert scan == reference, where
            continue
        try:
            assert_same(scan, reference)
            if "INTERLEAVED_WRITERS" not in scan.findings:
                wanted = Counter({normal(k): n for k, n in intact(original, low, high).items()})
                assert not wanted - kept(scan)
        except AssertionError as error:
            error.add_note(where)
            raise
