"""Make large traces, and archives of many, from one real trace.

    python benchmarks/enlarge.py SOURCE TARGET MEGABYTES

TARGET holds the events of SOURCE again and again until it is MEGABYTES long. Each copy lies behind
the last in time and has ids of its own (correlation, External id, flows, Python frames …), so that
every link stays within its copy; the envelope and the metadata events stand once. Numbers are
shifted in the text: digits behind the point stay as they are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

GAP_US = 1_000  # between the end of a copy and the start of the next
SEPARATOR = ",\n"

# Keys whose numbers are shifted. Of the link ids 0 means none, and stays.
_LINK_IDS = (
    "id",
    "correlation",
    "External id",
    "external id",
    "Record function id",
    "Sequence number",
    "wait_on_cuda_event_record_corr_id",
)
_POSITIONS = ("Ev Idx", "Python id", "Python parent id")
_SHIFTED = re.compile(rf'"(ts|{"|".join(_LINK_IDS + _POSITIONS)})"\s*:\s*(\d+)')

_decode = json.JSONDecoder().raw_decode
_BETWEEN_ITEMS = re.compile(r"[\s,]*")
_COLON = re.compile(r"\s*:\s*")


class Event(NamedTuple):
    """An event that has a time.

    followed: the correlation or flow id of the call it belongs to, if it has one.
    """

    text: str
    start: float
    end: float
    correlation: int | None
    followed: int | None


class Template:
    """The text of some events, taken apart at the numbers to shift."""

    def __init__(self, events: Sequence[Event], period_us: int, id_step: int) -> None:
        text = SEPARATOR.join(event.text for event in events)
        self._between: list[str] = []
        self._numbers: list[int] = []
        self._steps: list[int] = []
        at = 0
        for match in _SHIFTED.finditer(text):
            key, number = match[1], int(match[2])
            if number == 0 and key in _LINK_IDS:
                continue
            self._between.append(text[at : match.start(2)])
            self._numbers.append(number)
            self._steps.append(period_us if key == "ts" else id_step)
            at = match.end(2)
        self._between.append(text[at:])

    def copy(self, number: int) -> str:
        """The events of copy `number`; copy 0 is the original."""
        pieces = [""] * (2 * len(self._numbers) + 1)
        pieces[::2] = self._between
        pieces[1::2] = [
            str(n + number * step) for n, step in zip(self._numbers, self._steps, strict=True)
        ]
        return "".join(pieces)


class Source:
    """A trace taken apart: head and tail of the envelope, metadata, events that have a time."""

    def __init__(self, text: str) -> None:
        start = _list_start(text)
        self.head = text[:start]
        self.metadata: list[str] = []
        self.events: list[Event] = []
        end = start
        for value, begin, end in _items(text, start):
            item = text[begin:end]
            if value.get("ph") == "M" or "ts" not in value:
                self.metadata.append(item)
            else:
                self.events.append(_event(item, value))
        close = text.index("]", end)
        self.array = text[start - 1 : close + 1]
        self.tail = text[close:]
        # Whole microseconds and a power of ten: what is added to times and ids, once a copy.
        first = min(event.start for event in self.events)
        self.period_us = int(max(event.end for event in self.events) - first) + 1 + GAP_US
        ids = (int(m[2]) for e in self.events for m in _SHIFTED.finditer(e.text) if m[1] != "ts")
        self.id_step = 10 ** len(str(max(ids, default=0)))

    def template(self, events: Sequence[Event] | None = None) -> Template:
        """The template of the events given, or of all."""
        return Template(self.events if events is None else events, self.period_us, self.id_step)

    def write(self, target: Path, size: int) -> int:
        """Write a trace of at least `size` bytes, in whole copies; returns how many."""
        template = self.template()
        copies = 0
        with target.open("w", encoding="utf-8") as file:
            file.write(self.head + SEPARATOR.join(self.metadata))
            while copies == 0 or file.tell() < size:
                file.write((SEPARATOR if copies or self.metadata else "") + template.copy(copies))
                copies += 1
            file.write(self.tail)
        return copies

    def window(self, first: int, count: int) -> list[Event]:
        """`count` events in order of time from the `first` on, and their GPU events and flows."""
        by_time, followers = self._in_time
        chosen = [by_time[i % len(by_time)] for i in range(first, first + min(count, len(by_time)))]
        called = {event.correlation for event in chosen} - {None}
        return chosen + [event for id_ in sorted(called) for event in followers[id_]]

    @cached_property
    def _in_time(self) -> tuple[list[Event], dict[int, list[Event]]]:
        calls = {e.correlation for e in self.events if e.followed is None}
        followers = defaultdict(list)
        by_time = []
        for event in sorted(self.events, key=lambda event: event.start):
            if event.followed is not None and event.followed in calls:
                followers[event.followed].append(event)
            else:
                by_time.append(event)
        return by_time, followers

    def write_archive(self, folder: Path, traces: int, least: int, most: int) -> None:
        """Write `traces` gzip traces of `least` to `most` events (log-uniform), no two alike."""
        folder.mkdir()
        draw = random.Random(1)
        for number in range(traces):
            count = round(least * (most / least) ** draw.random())
            events = self.window(draw.randrange(len(self.events)), count)
            body = SEPARATOR.join([*self.metadata, self.template(events).copy(number)])
            text = (self.head + body + self.tail).encode()
            (folder / f"trace_{number:04}.json.gz").write_bytes(gzip.compress(text, 1))


def read_text(path: Path) -> str:
    """The text of a plain or gzip file."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def _list_start(text: str) -> int:
    """Where the items of the event list begin."""
    at = _BETWEEN_ITEMS.match(text).end() + 1
    if text[at - 1] == "[":
        return at
    while True:
        key, at = _decode(text, _BETWEEN_ITEMS.match(text, at).end())
        at = _COLON.match(text, at).end()
        if key == "traceEvents":
            return at + 1
        at = _decode(text, at)[1]


def _items(text: str, at: int) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield each item of a list with the start and end of its text."""
    while text[start := _BETWEEN_ITEMS.match(text, at).end()] != "]":
        value, at = _decode(text, start)
        yield value, start, at


def _event(text: str, value: dict[str, Any]) -> Event:
    args = value.get("args") or {}
    start = float(value["ts"])
    correlation = args.get("correlation")
    followed = None
    if value["ph"] in ("s", "t", "f"):
        followed = value.get("id")
    elif value.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
        followed = correlation
    return Event(text, start, start + float(value.get("dur", 0)), correlation, followed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("megabytes", type=int)
    args = parser.parse_args()
    copies = Source(read_text(args.source)).write(args.target, args.megabytes * 10**6)
    print(f"{args.target}: {copies} copies, {args.target.stat().st_size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
