"""A drawn timeline written as Kineto, the tracer below torch.profiler, writes one.

A sample is drawn in microseconds from its own zero. `Drawing` keeps the rows in Kineto's order
(host rows, runtime calls, GPU activity, names of processes and threads) and ties them with the ids
that a real trace has.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Us = int | str
"""A time in µs: an int, or decimal text such as "79.4"."""

BASE_TIME_NS = 1_775_000_000_000_000_000  # baseTimeNanoseconds: the trace's clock began then
ZERO_NS = 5_000_000_000_000_000  # where a drawing's own zero lies on the trace's clock
MAIN_THREAD = 4242


def ns(us: Us) -> int:
    """Convert µs to ns exactly; text may have up to three decimals."""
    whole, _, decimals = str(us).partition(".")
    return int(whole) * 1000 + int(decimals.ljust(3, "0") or "0")


def us_text(time_ns: int) -> str:
    """Write ns as Kineto does: µs with three decimals."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


@dataclass(frozen=True, slots=True)
class Device:
    """What `deviceProperties` says of a GPU model."""

    name: str
    properties: dict[str, int]

    def lines(self, ordinal: int) -> str:
        """Return its entry of `deviceProperties`."""
        fields = json.dumps({"id": ordinal, "name": self.name, **self.properties})
        return "    {\n      " + fields[1:-1] + "\n    }"


MI300X = Device(
    "AMD Instinct MI300X",
    {
        "totalGlobalMem": 206141652992,
        "computeMajor": 9,
        "computeMinor": 4,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 131072,
        "warpSize": 64,
        "sharedMemPerBlock": 65536,
        "numSms": 304,
    },
)
H100 = Device(
    "NVIDIA H100 80GB HBM3",
    {
        "totalGlobalMem": 84942979072,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 132,
    },
)


@dataclass(slots=True)
class _Row:
    """One event: the lines between its braces, and what decides its place."""

    at_ns: int
    lines: list[str]
    tail: _Row | None = None  # the flow event that stands behind it


@dataclass(slots=True)
class Drawing:
    """A trace being drawn: one host process and the GPUs it may use."""

    name: str
    device: Device
    ordinal: int = 0  # the GPU that does the work
    devices: int = 1  # how many there are
    pid: int = MAIN_THREAD
    base_time_ns: int = BASE_TIME_NS
    envelope: dict[str, Any] = field(default_factory=dict)
    _host: list[_Row] = field(default_factory=list)
    _flows: list[_Row] = field(default_factory=list)
    _calls: list[_Row] = field(default_factory=list)
    _gpu: list[_Row] = field(default_factory=list)
    _mirrors: list[_Row] = field(default_factory=list)
    _threads: set[int] = field(default_factory=set)
    _streams: set[int] = field(default_factory=set)
    _open_ops: list[int] = field(default_factory=list)
    _external: int = 0
    _correlation: int = 0
    _python: int = 0

    # Host rows

    @contextmanager
    def op(
        self, name: str, at: Us, dur: Us, *, tid: int = MAIN_THREAD, **args: Any
    ) -> Iterator[int]:
        """Draw an op call; calls drawn inside the `with` carry its External id. Yields that id."""
        self._external += 1
        external = self._external
        ids = {"External id": external, "Record function id": 0, "Ev Idx": len(self._host)}
        self._host.append(self._complete("cpu_op", name, self.pid, tid, at, dur, ids | args))
        self._threads.add(tid)
        self._open_ops.append(external)
        try:
            yield external
        finally:
            self._open_ops.pop()

    def leaf_op(self, name: str, at: Us, dur: Us, *, tid: int = MAIN_THREAD, **args: Any) -> None:
        """Draw an op call that starts nothing."""
        with self.op(name, at, dur, tid=tid, **args):
            pass

    def annotation(self, name: str, at: Us, dur: Us) -> int:
        """Draw a user annotation on the main thread and return its External id."""
        self._external += 1
        ids = {"External id": self._external, "Record function id": 0, "Ev Idx": len(self._host)}
        row = self._complete("user_annotation", name, self.pid, MAIN_THREAD, at, dur, ids)
        self._host.append(row)
        self._threads.add(MAIN_THREAD)
        return self._external

    def frame(self, name: str, at: Us, dur: Us, parent: int | None = None) -> int:
        """Draw a Python frame on the main thread and return its id."""
        self._python += 1
        args = {"Python parent id": parent, "Python id": self._python, "Ev Idx": len(self._host)}
        row = self._complete("python_function", name, self.pid, MAIN_THREAD, at, dur, args)
        self._host.append(row)
        return self._python

    def memory(self, at: Us, size: int, total: int) -> None:
        """Draw an allocation (or, with a negative size, a free) of `size` bytes."""
        args = {
            "Total Reserved": 67108864,
            "Total Allocated": total,
            "Bytes": size,
            "Device Id": self.ordinal,
            "Device Type": 1,
            "Addr": 140_000_000_000_000,
        }
        lines = [
            f'"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",'
            f' "pid": {self.pid}, "tid": {MAIN_THREAD},',
            f'"ts": {self._ts(at)},',
            *_args_lines(args),
        ]
        self._host.append(_Row(ns(at), lines))

    def backward_of(self, forward_at: Us, backward_at: Us, sequence: int, tid: int) -> None:
        """Draw the arrow from a forward op on the main thread to its backward op on `tid`."""
        for ph, at, thread, end in (
            ("s", forward_at, MAIN_THREAD, ""),
            ("f", backward_at, tid, ', "bp": "e"'),
        ):
            lines = [
                f'"ph": "{ph}", "id": {sequence}, "pid": {self.pid}, "tid": {thread},'
                f' "ts": {self._ts(at)},',
                f'"cat": "fwdbwd", "name": "fwdbwd"{end}',
            ]
            self._flows.append(_Row(ns(at), lines))

    # Runtime calls

    def call(
        self, name: str, at: Us, dur: Us, *, tid: int = MAIN_THREAD, cat: str = "cuda_runtime"
    ) -> int:
        """Draw a runtime call that starts no GPU work and return its correlation id."""
        self._correlation += 1
        args: dict[str, Any] = {"External id": self._open_ops[-1]} if self._open_ops else {}
        args |= {"cbid": 0, "correlation": self._correlation}
        self._calls.append(self._complete(cat, name, self.pid, tid, at, dur, args))
        return self._correlation

    def launch(
        self, name: str, at: Us, dur: Us, *, tid: int = MAIN_THREAD, cat: str = "cuda_runtime"
    ) -> int:
        """Draw a call that starts GPU work and its flow's start; return the correlation id."""
        correlation = self.call(name, at, dur, tid=tid, cat=cat)
        self._calls[-1].tail = self._flow("s", correlation, self.pid, tid, at)
        return correlation

    # GPU rows

    def kernel(
        self, name: str, at: Us, dur: Us, correlation: int, *, stream: int = 7, **args: Any
    ) -> None:
        """Draw a kernel, with the end of the flow from its launch."""
        shape = {"grid": [1024, 1, 1], "block": [256, 1, 1]}
        self._activity("kernel", name, at, dur, correlation, stream, shape | args)

    def copy(
        self, kind: str, at: Us, dur: Us, correlation: int, size: int, *, stream: int = 7
    ) -> None:
        """Draw a copy of `size` bytes; kind is HtoD or DtoH."""
        words = {"HtoD": "Pageable -> Device", "DtoH": "Device -> Pageable"}[kind]
        name = f"Memcpy {kind} ({words})"
        self._activity("gpu_memcpy", name, at, dur, correlation, stream, {"bytes": size})

    def fill(self, at: Us, dur: Us, correlation: int, size: int, *, stream: int = 7) -> None:
        """Draw a fill of `size` bytes."""
        args = {"bytes": size}
        self._activity("gpu_memset", "Memset (Device)", at, dur, correlation, stream, args)

    def mirror(self, name: str, at: Us, dur: Us, external: int, *, stream: int = 7) -> None:
        """Draw the GPU side of a user annotation."""
        args = {"External id": external}
        row = self._complete("gpu_user_annotation", name, self.ordinal, stream, at, dur, args)
        self._mirrors.append(row)

    def _activity(
        self,
        cat: str,
        name: str,
        at: Us,
        dur: Us,
        correlation: int,
        stream: int,
        args: dict[str, Any],
    ) -> None:
        ids = {"device": self.ordinal, "context": 1, "stream": stream, "correlation": correlation}
        row = self._complete(cat, name, self.ordinal, stream, at, dur, ids | args)
        row.tail = self._flow("f", correlation, self.ordinal, stream, at)
        self._gpu.append(row)
        self._streams.add(stream)

    # Writing

    def text(self) -> str:
        """Return the whole file."""
        rows: list[_Row] = []
        for group in (self._host, self._flows, self._calls, self._gpu, self._mirrors):
            for row in sorted(group, key=lambda r: r.at_ns):
                rows.append(row)
                if row.tail is not None:
                    rows.append(row.tail)
        blocks = ["  {\n    " + "\n    ".join(row.lines) + "\n  }" for row in rows]
        blocks += self._names() + self._window(rows)
        end = f'\n  ],\n  "traceName": "{self.name}.json"\n}}\n'
        return self._head() + ",\n".join(blocks) + end

    def _head(self) -> str:
        trace_id = f"{random.Random(self.name).getrandbits(128):032X}"
        keys = {**self.envelope, "record_shapes": 1, "trace_id": trace_id, "displayTimeUnit": "ms"}
        keys["baseTimeNanoseconds"] = self.base_time_ns
        devices = ",\n".join(self.device.lines(i) for i in range(self.devices))
        return (
            '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n'
            + devices
            + "\n  ],\n"
            + "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in keys.items())
            + '  "traceEvents": [\n'
        )

    def _names(self) -> list[str]:
        """Name the processes (three rows each), the streams and the threads (two rows each)."""
        at = self._ts(0)
        rows = []
        processes = [(self.pid, "CPU", self.pid)]
        processes += [(i, f"GPU {i}", 5000000 + i) for i in range(self.devices)]
        for pid, label, order in processes:
            rows.append(_metadata("process_name", at, pid, 0, "name", "python"))
            rows.append(_metadata("process_labels", at, pid, 0, "labels", label))
            rows.append(_metadata("process_sort_index", at, pid, 0, "sort_index", order))
        lanes = [(self.ordinal, tid, f"stream {tid} ") for tid in sorted(self._streams)]
        lanes += [(self.pid, tid, f"thread {tid} (python)") for tid in sorted(self._threads)]
        for pid, tid, label in lanes:
            rows.append(_metadata("thread_name", at, pid, tid, "name", label))
            rows.append(_metadata("thread_sort_index", at, pid, tid, "sort_index", tid))
        return rows

    def _window(self, rows: list[_Row]) -> list[str]:
        """Write the four rows that say how long the profiler watched."""
        start = self._ts(0)
        length = max(row.at_ns for row in rows) + 1_000_000
        spans = '"pid": "Spans", "tid": "PyTorch Profiler"'
        traces = '"pid": "Traces", "tid": "Trace PyTorch Profiler"'
        return [
            f'  {{\n    "ph": "X", "cat": "Trace", "ts": {start}, "dur": {us_text(length)},\n'
            f'    {spans},\n    "name": "PyTorch Profiler (0)",\n'
            '    "args": {\n      "Op count": 0\n    }\n  }',
            _metadata("process_sort_index", start, '"Spans"', 0, "sort_index", 536870912),
            '  {\n    "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g",\n'
            f'    {traces}, "ts": {start}\n  }}',
            '  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n'
            f'    "pid": "", "tid": "", "ts": {us_text(ZERO_NS + length)}\n  }}',
        ]

    def _ts(self, at: Us) -> str:
        return us_text(ZERO_NS + ns(at))

    def _complete(
        self, cat: str, name: str, pid: int, tid: int, at: Us, dur: Us, args: dict[str, Any]
    ) -> _Row:
        what = f'"ph": "X", "cat": "{cat}", "name": {json.dumps(name)}'
        first = f'{what}, "pid": {pid}, "tid": {tid},'
        times = f'"ts": {self._ts(at)}, "dur": {us_text(ns(dur))},'
        return _Row(ns(at), [first, times, *_args_lines(args)])

    def _flow(self, ph: str, correlation: int, pid: int, tid: int, at: Us) -> _Row:
        end = ', "bp": "e"' if ph == "f" else ""
        lines = [
            f'"ph": "{ph}", "id": {correlation}, "pid": {pid}, "tid": {tid}, "ts": {self._ts(at)},',
            f'"cat": "ac2g", "name": "ac2g"{end}',
        ]
        return _Row(ns(at), lines)


def _args_lines(args: dict[str, Any]) -> list[str]:
    return ['"args": {', "  " + json.dumps(args)[1:-1], "}"]


def _metadata(name: str, ts: str, pid: int | str, tid: int, key: str, value: int | str) -> str:
    return (
        f'  {{\n    "name": "{name}", "ph": "M", "ts": {ts}, "pid": {pid}, "tid": {tid},\n'
        f'    "args": {{\n      "{key}": {json.dumps(value)}\n    }}\n  }}'
    )


_GZIP_HEADER = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x02\xff"  # no name, no time, no system


def compress(data: bytes) -> bytes:
    """Compress to gzip; the header carries no time, so equal text gives equal bytes."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    return _GZIP_HEADER + body + struct.pack("<II", zlib.crc32(data), len(data) % 2**32)


def compress_cut_off(data: bytes) -> bytes:
    """Compress to gzip up to the last byte of `data` and stop there, as a killed writer does.

    The stream holds all of `data` but neither its last block nor its checksum.
    """
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return _GZIP_HEADER + deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)
