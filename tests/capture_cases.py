"""Small graphs: the trace of their capture, and traces that launch them.

A graph is a list of calls: an op's name, its batch (first dimension) and the kernels it dispatches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracegen import Trace

Call = tuple[str, int, Sequence[str]]
COPY, FILL = "copy", "fill"  # kernels that are none
_CALLS = {COPY: "hipMemcpyAsync", FILL: "hipMemsetAsync"}

BLOCK: list[Call] = [("aten::mm", 8, ["gemm"]), ("my::norm", 8, ["norm_a", "norm_b"])]
"""Two ops, three kernels."""
BLOCK_KERNELS = ["gemm", "norm_a", "norm_b"]


def capture(
    graphs: Sequence[Sequence[Call]], note: str | None = "capture_8_FULL", *, named: bool = True
) -> Trace:
    """Draw the capture of some graphs, one after another, in one annotation.

    us   0        10         20 …                  +10
    CPU  [note ......................................]
              [Begin 1]  [op ... [dispatch 1] ..]  [End 1]

    named: whether a dispatch tells its kernel, as ROCm's do.
    """
    trace = Trace()
    at, correlation = 10, 1
    for graph in graphs:
        trace.launch(at, 1, name="hipStreamBeginCapture", correlation=correlation)
        at += 10
        for name, batch, kernels in graph:
            shapes = [[batch, 4], [4, 4]] if name == "aten::mm" else [[batch, 4]]
            inputs = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
            trace.op(name, at, 2 * len(kernels) + 2, **inputs)
            for kernel in kernels:
                at, correlation = at + 2, correlation + 1
                args = {"kernel": kernel} if named and kernel not in _CALLS else {}
                call = _CALLS.get(kernel, "hipLaunchKernel")
                trace.launch(at, 1, name=call, correlation=correlation, **args)
            at += 10
        trace.launch(at, 1, name="hipStreamEndCapture", correlation=correlation + 1)
        at, correlation = at + 10, correlation + 2
    if note is not None:
        trace.annotation(note, 0, at)
    return trace


def replay(
    steps: Sequence[Sequence[Sequence[str]]],
    annotation: str | None = "execute_context_0(0)_generation_8(8)",
    *,
    streams: Sequence[int] = (),
    op: str | None = None,
) -> Trace:
    """Draw steps that launch graphs, each by the names of its kernels, of 3 us each.

    annotation: of every step; None for none. streams: of the kernels of each launch; one by
    default. op: a call around every launch.
    """
    trace = Trace()
    at, gpu, correlation = 0, 1_000_000, 100
    for launches in steps:
        start = at
        for kernels in launches:
            correlation += 1
            if op is not None:
                trace.op(op, at + 1, 8)
            trace.launch(at + 2, 5, name="hipGraphLaunch", correlation=correlation)
            for place, name in enumerate(kernels):
                stream = streams[place] if streams else 7
                ids = {"correlation": correlation, "stream": stream}
                if name == COPY:
                    trace.memcpy(gpu, 3, **ids)
                elif name == FILL:
                    trace.memset(gpu, 3, **ids)
                else:
                    trace.kernel(name, gpu, 3, **ids)
                gpu += 4
            at += 10
        if annotation is not None:
            trace.annotation(annotation, start, at - start)
        at += 10
    return trace


def write(folder: Path, replayed: Trace, *captures: Trace) -> Path:
    """Write a trace, and captures to the folder beside it; return the trace's path."""
    for number, trace in enumerate(captures):
        trace.write(folder / "capture_traces" / f"capture_{number}.json")
    return replayed.write(folder / "trace.json")


def ops_of_kernels(trace) -> list[str | None]:
    """Return the op of each kernel of a trace in order of time, by name."""
    names = {op["event_id"]: op["name"] for op in trace.ops.to_pylist()}
    kernels = sorted(trace.kernels.to_pylist(), key=lambda k: (k["ts_ns"], k["event_id"]))
    return [names.get(kernel["op_id"]) for kernel in kernels]
