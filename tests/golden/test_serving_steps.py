"""The steps of real serving traces: by hand count, and by the facts of inference.md §3."""

from __future__ import annotations

import functools

import pytest

import tracehouse

DECODE = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk%dsqsq32sqsk%d)"
# folder, file: framework, phase, requests, Σk, graph, GPU events, busy µs, span µs
FACTS = {
    ("vllm_decode_full", "graph_execution.json.gz"): (
        *("vllm", "decode", 32, 55086, "full", 434, 10717.697, 10743.182),
    ),
    ("vllm_prefilldecode_piecewise", "graph_execution.json.gz"): (
        *("vllm", "mixed", 46, 8430 + 34489, "piecewise", 423, 156085.799, 156466.416),
    ),
    ("sglang_decode", "sglang_Qwen3-8B_decode.json.gz"): (
        *("sglang", "decode", 32, 32785, "full", 558, 9772.929, 473749.943),
    ),
}


@pytest.fixture(scope="module")
def trace_of(shared_traces):
    @functools.cache
    def read(folder, file):
        return tracehouse.read(shared_traces / "inference" / folder / file)

    return read


@pytest.mark.parametrize("source", FACTS, ids=[folder for folder, _ in FACTS])
def test_the_step_of_a_trace(trace_of, source):
    (step,) = trace_of(*source).steps.to_pylist()
    framework, phase, requests, keys, graph, events, busy_us, span_us = FACTS[source]
    assert (step["framework"], step["phase"], step["r"]) == (framework, phase, requests)
    assert (step["t_sk"], step["graph"], step["kernels"]) == (keys, graph, events)
    # theirs are of times rounded to doubles: a nanosecond an event
    assert step["gpu_busy_ns"] / 1e3 == pytest.approx(busy_us, rel=1e-5)
    assert step["gpu_span_ns"] / 1e3 == pytest.approx(span_us, abs=0.1)
    assert step["violated"] is None


def test_a_native_step_inside_a_detailed_one(trace_of):
    # outer 465,716.6 µs, inner 465,248.1 µs on the same thread; the outer one counts, once
    trace = trace_of("sglang_decode", "sglang_Qwen3-8B_decode.json.gz")
    notes = trace.annotations.to_pylist()
    assert [note["name"] for note in notes] == [DECODE % (32785, 32785), "step[DECODE bs=32]"]
    assert [note["why"] for note in notes] == ["vllm_v3", "nested"]
    (step,) = trace.steps.to_pylist()
    assert step["cpu_dur_ns"] == pytest.approx(465_716_600, abs=100_000)
    # what is launched in the inner one alone: 551 events over 10,366.888 µs
    start, end = notes[1]["ts_ns"], notes[1]["ts_ns"] + notes[1]["dur_ns"]
    inside = {x["event_id"] for x in trace.launches.to_pylist() if start <= x["ts_ns"] < end}
    spans = [
        (x["ts_ns"], x["ts_ns"] + x["dur_ns"])
        for x in trace.kernels.to_pylist()
        if x["launch_id"] in inside
    ]
    assert len(spans) == 551
    span = max(end for _, end in spans) - min(start for start, _ in spans)
    assert span / 1e3 == pytest.approx(10366.888, abs=0.1)
