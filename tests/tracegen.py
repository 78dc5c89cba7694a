"""Small traces for tests, written as they are drawn.

    Trace().op("aten::mm", 0, 50).launch(5, 4, correlation=1).kernel("gemm", 10, 20, correlation=1)

Times are µs: ints, or decimal text ("79.4") that reaches the file digit for digit. Every method
that draws returns the trace. `events()` and `document()` hold numbers as Decimal, exact.
"""

from __future__ import annotations

import gzip
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

Us = int | str
Layout = Literal["kineto", "compact"]
Place = Literal["before", "after", "around", "none"]


class Number(str):
    """The text of a number, written as it stands."""


def drawn(us: Us) -> Number:
    """Return a time as text, if it is an int or a plain decimal."""
    text = str(us)
    if isinstance(us, float) or not re.fullmatch(r"-?\d+(\.\d+)?", text):
        message = f"a time is an int or decimal text, not {us!r}"
        raise TypeError(message)
    return Number(text)


class Trace:
    """A trace under construction; `envelope` holds the keys beside its event list."""

    def __init__(self, *, pid: int = 100, **envelope: Any) -> None:
        self.pid = pid
        self.envelope: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        } | envelope
        self._events: list[dict[str, Any] | str] = []

    # The host

    def op(self, name: str, ts: Us, dur: Us, *, thread: int = 1, **args: Any) -> Self:
        """Draw an op call; write args with spaces as **{"Input Dims": …}."""
        return self.complete("cpu_op", name, self.pid, thread, ts, dur, args)

    def annotation(self, name: str, ts: Us, dur: Us, *, thread: int = 1, **args: Any) -> Self:
        """Draw a user annotation on a thread."""
        return self.complete("user_annotation", name, self.pid, thread, ts, dur, args)

    def frame(self, name: str, ts: Us, dur: Us, *, thread: int = 1, **args: Any) -> Self:
        """Draw a Python frame."""
        return self.complete("python_function", name, self.pid, thread, ts, dur, args)

    def launch(
        self,
        ts: Us,
        dur: Us,
        *,
        correlation: int,
        name: str = "cudaLaunchKernel",
        thread: int = 1,
        cat: str = "cuda_runtime",
        **args: Any,
    ) -> Self:
        """Draw a call that starts GPU work; the name makes it a graph launch, cat a driver call."""
        ids = {"correlation": correlation} | args
        return self.complete(cat, name, self.pid, thread, ts, dur, ids)

    # The GPU

    def kernel(
        self,
        name: str,
        ts: Us,
        dur: Us,
        *,
        correlation: int | None = None,
        stream: int = 7,
        device: int = 0,
        cat: str = "kernel",
        **args: Any,
    ) -> Self:
        """Draw a kernel, or with `cat` another GPU activity; without correlation the key is out."""
        ids: dict[str, Any] = {"device": device, "stream": stream}
        if correlation is not None:
            ids["correlation"] = correlation
        return self.complete(cat, name, device, stream, ts, dur, ids | args)

    def memcpy(self, ts: Us, dur: Us, *, kind: str = "HtoD", **args: Any) -> Self:
        """Draw a copy; keyword arguments as for `kernel`."""
        return self.kernel(f"Memcpy {kind}", ts, dur, cat="gpu_memcpy", **args)

    def memset(self, ts: Us, dur: Us, **args: Any) -> Self:
        """Draw a fill; keyword arguments as for `kernel`."""
        return self.kernel("Memset (Device)", ts, dur, cat="gpu_memset", **args)

    def mirror(self, name: str, ts: Us, dur: Us, **args: Any) -> Self:
        """Draw the GPU side of a user annotation; keyword arguments as for `kernel`."""
        return self.kernel(name, ts, dur, cat="gpu_user_annotation", **args)

    # Anything

    def flow(self, ts: Us, end: Us, flow_id: int, *, thread: int = 1, stream: int = 7) -> Self:
        """Draw the arrow of a launch: its start on the thread, its end on the stream of GPU 0."""
        ids: dict[str, Any] = {"id": flow_id, "cat": "ac2g", "name": "ac2g"}
        start = {"ph": "s", "pid": self.pid, "tid": thread, "ts": drawn(ts)}
        finish = {"ph": "f", "pid": 0, "tid": stream, "ts": drawn(end), "bp": "e"}
        return self.event(**start, **ids).event(**finish, **ids)

    def complete(
        self,
        cat: str,
        name: str,
        pid: int | str,
        tid: int | str,
        ts: Us,
        dur: Us,
        args: dict[str, Any] | None = None,
    ) -> Self:
        """Draw a complete event of any category."""
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        times = {"ts": drawn(ts), "dur": drawn(dur)}
        return self.event(**event, **times, args=args or {})

    def event(self, **keys: Any) -> Self:
        """Add an event key by key, as odd as need be."""
        self._events.append(keys)
        return self

    def raw(self, text: str) -> Self:
        """Add the text of an event as it stands, JSON or not."""
        self._events.append(text)
        return self

    # Written

    def text(self, layout: Layout = "kineto", envelope: Place = "before") -> str:
        """Return the file's text; "none" writes the bare array of events.

        The place "around" puts the first key before the event list and the others behind it.
        """
        list_text = _list(self._events, layout)
        if envelope == "none":
            return list_text
        comma, colon = (",\n  ", ": ") if layout == "kineto" else (",", ":")
        keys = [f"{json.dumps(k)}{colon}{_value(v, layout)}" for k, v in self.envelope.items()]
        at = {"before": len(keys), "after": 0, "around": min(1, len(keys))}[envelope]
        keys.insert(at, f'"traceEvents"{colon}{list_text}')
        body = comma.join(keys)
        return f"{{\n  {body}\n}}\n" if layout == "kineto" else f"{{{body}}}"

    def data(self, layout: Layout = "kineto", envelope: Place = "before") -> bytes:
        """Return the file's text in UTF-8."""
        return self.text(layout, envelope).encode()

    def write(self, path: Path, layout: Layout = "kineto", envelope: Place = "before") -> Path:
        """Write the trace and return the path; a name that ends in .gz is compressed."""
        data = self.data(layout, envelope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path

    def document(self) -> dict[str, Any]:
        """Return the whole trace as a JSON library reads it, with exact fractions."""
        document: dict[str, Any] = json.loads(self.text("compact"), parse_float=Decimal)
        return document

    def events(self) -> list[dict[str, Any]]:
        """Return the events alone, likewise."""
        events: list[dict[str, Any]] = self.document()["traceEvents"]
        return events


def _value(value: Any, layout: Layout) -> str:
    if isinstance(value, Number):
        return value
    if isinstance(value, dict):
        comma, colon = (", ", ": ") if layout == "kineto" else (",", ":")
        items = (f"{json.dumps(k)}{colon}{_value(v, layout)}" for k, v in value.items())
        return "{" + comma.join(items) + "}"
    return json.dumps(value, separators=None if layout == "kineto" else (",", ":"))


def _list(events: list[dict[str, Any] | str], layout: Layout) -> str:
    if layout == "compact":
        texts = (e if isinstance(e, str) else _value(e, layout) for e in events)
        return "[" + ",".join(texts) + "]"
    return "[\n  " + ",\n  ".join(_kineto(e) for e in events) + "\n  ]"


def _kineto(event: dict[str, Any] | str) -> str:
    """Write an event over several lines, as Kineto does: what, when, args."""
    if isinstance(event, str):
        return event
    groups = (
        {k: v for k, v in event.items() if k not in ("ts", "dur", "args")},
        {k: event[k] for k in ("ts", "dur") if k in event},
    )
    lines = [_value(group, "kineto")[1:-1] for group in groups if group]
    if "args" in event:
        args = event["args"]
        inner = _value(args, "kineto")
        if isinstance(args, dict):
            inner = "{\n      " + inner[1:-1] + "\n    }"
        lines.append(f'"args": {inner}')
    return "{\n    " + ",\n    ".join(lines) + "\n  }"
