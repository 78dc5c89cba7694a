"""Steps that are split off measure the same as in the whole trace, on drawn timelines."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import splitting
from hypothesis import given
from hypothesis import strategies as st
from tracegen import Trace

from tracehouse.commands.split import split

MEASURES = ("name", "process", "side", "ts_ns", "dur_ns", "kernel_count", "kernel_time_ns", "why")
NAMES = (
    "execute_context_0(0)_generation_8(8)",
    "execute_context_1(512)_generation_7(7)",
    "step[DECODE bs=4]",
    "step[DRAFT bs=4]",
    "dummy_decode[bs=4]",
    "[Executor] _forward_step 3: 0 ctx reqs, 4 gen reqs",
    "ProfilerStep#7",
    "loop",
)
THREADS = ((100, 1), (100, 2), (200, 1))

# Steps are short, and what may hold several of them is long; most are on the first thread.
spans = st.tuples(
    st.sampled_from(NAMES[:-3]), st.sampled_from(THREADS), st.integers(0, 400), st.integers(1, 40)
) | st.tuples(
    st.sampled_from(NAMES), st.just(THREADS[0]), st.integers(0, 400), st.integers(30, 200)
)
calls = st.tuples(
    st.sampled_from(THREADS), st.integers(0, 450), st.integers(1, 3), st.integers(0, 300)
)


@st.composite
def drawn(draw):
    """Draw annotations, calls anywhere, their kernels later, and mirrors of some annotations."""
    trace = Trace()
    for name, (pid, tid), ts, dur in draw(st.lists(spans, min_size=3, max_size=14)):
        trace.complete("user_annotation", name, pid, tid, ts, dur)
        if draw(st.booleans()):
            trace.mirror(name, ts + draw(st.integers(0, 200)), dur)
    for number, ((pid, tid), ts, count, delay) in enumerate(draw(st.lists(calls, max_size=12))):
        ids = {"correlation": number + 1}
        trace.complete("cpu_op", f"op {number}", pid, tid, ts, 3)
        trace.complete(
            "cuda_runtime", "cudaGraphLaunch"[: 15 if count > 1 else 4], pid, tid, ts, 2, ids
        )
        trace.event(ph="s", cat="ac2g", name="ac2g", id=number, pid=pid, tid=tid, ts=ts)
        for place in range(count):
            # streams of their own: how long a kernel runs depends on no other
            stream, start = 10 * number + place, ts + delay + 7 * place
            trace.kernel(f"k{number}", start, 5, correlation=number + 1, stream=stream)
            trace.event(ph="f", cat="ac2g", name="ac2g", id=number, pid=0, tid=stream, ts=start)
    return trace


def steps_of(path):
    """Return the steps in order: what they are, and their GPU work as link finds it."""
    linked = splitting.linked(path)
    work = {}
    for kernel in linked["kernels"].to_pylist():
        work.setdefault(kernel["step_id"], []).append((kernel["ts_ns"], kernel["dur_ns"]))
    steps = [row for row in linked["annotations"].to_pylist() if row["role"] == "step"]
    return [
        {m: step[m] for m in MEASURES} | {"work": sorted(work.get(step["step_id"], []))}
        for step in sorted(steps, key=lambda step: step["step_id"])
    ]


@given(drawn(), st.data())
def test_steps_keep_their_measures_and_flows_their_ends(trace, data):
    with tempfile.TemporaryDirectory() as folder:
        path = trace.write(Path(folder) / "run.json")
        whole = steps_of(path)
        if not whole:
            return
        first = data.draw(st.integers(0, len(whole) - 1))
        end = data.draw(st.integers(first + 1, len(whole)))
        report = split(str(path), Path(folder) / "out", steps=f"{first}:{end}")
        written = Path(folder) / "out" / report.files[0].name
        found = steps_of(written)
        document = json.loads(splitting.text_of(written))
        texts = splitting.event_texts(written), splitting.event_texts(path)
    assert found == whole[first:end]
    assert splitting.are_in_order(*texts)
    ends = [(e["id"], e["ph"]) for e in document["traceEvents"] if e["ph"] in "sf"]
    assert {i for i, ph in ends if ph == "s"} == {i for i, ph in ends if ph == "f"}
