"""Kernels of random graphs go to the op calls that they were drawn with."""

from __future__ import annotations

import numpy as np
import pytest
from capture_cases import BLOCK, BLOCK_KERNELS, COPY, FILL, capture, replay
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import read_text

from tracehouse.analysis.captured import Vocabulary, captured
from tracehouse.analysis.graft import Captures, graft
from tracehouse.analysis.graft_tables import FIRST_ID
from tracehouse.analysis.graph_choice import step_sizes
from tracehouse.analysis.link import link
from tracehouse.analysis.op_categories import load
from tracehouse.commands.captures import dispatched
from tracehouse.findings import Findings
from tracehouse.schema.tables import EVENTS, FRAME_SCHEMA


def linked(trace):
    """Return the frame of a drawn trace, its tables, and the kernels that its calls name."""
    reading = read_text(trace.data(), "scan")
    frame = reading.frame.cast(FRAME_SCHEMA)
    return (
        frame,
        link(frame, "t", findings=Findings()),
        dispatched(reading.events.cast(EVENTS.schema)),
    )


def grafted(replayed, *captures):
    """Return the tables of a trace with its captures, and its findings."""
    vocabulary, traces, findings = Vocabulary(), [], Findings()
    for recorded in captures:
        frame, tables, names = linked(recorded)
        traces.append(captured(frame, tables, names, vocabulary, source="c", rank=None))
    tables = linked(replayed)[1]
    return graft(tables, Captures(tuple(traces), vocabulary), None, load(), findings=findings)


def calls_of_kernels(tables):
    """Return for each kernel its op and that op's number within the launch, in order of time."""
    ops = {op["event_id"]: op for op in tables["ops"].to_pylist()}
    kernels = sorted(tables["kernels"].to_pylist(), key=lambda k: k["ts_ns"])
    first = {}
    found = []
    for kernel in kernels:
        if kernel["op_id"] is None:
            found.append(None)
            continue
        at = first.setdefault(kernel["launch_id"], kernel["op_id"])
        first[kernel["launch_id"]] = min(at, kernel["op_id"])
        found.append((ops[kernel["op_id"]]["name"], kernel["op_id"], kernel["launch_id"]))
    return [
        None if call is None else (call[0], call[1] - first[call[2]], call[2]) for call in found
    ]


calls = st.tuples(
    st.sampled_from(["my::a", "my::b", "aten::mm"]),
    st.sampled_from([4, 8]),
    st.lists(st.sampled_from(["k1", "k2", "k3", COPY, FILL]), min_size=1, max_size=3),
)
graphs = st.lists(calls, min_size=1, max_size=8)


@settings(max_examples=25)
@given(graphs, st.integers(1, 4), st.booleans())
def test_every_kernel_finds_its_call(graph, launches, has_step):
    kernels = [kernel for _, _, own in graph for kernel in own]
    annotation = "execute_context_0(0)_generation_8(8)" if has_step else None
    tables = grafted(replay([[kernels]] * launches, annotation), capture([graph]))
    drawn = [(name, number) for number, (name, _, own) in enumerate(graph) for _ in own]
    found = calls_of_kernels(tables)
    assert [call[:2] for call in found] == drawn * launches
    ops = tables["ops"].to_pylist()
    assert [op["event_id"] - FIRST_ID for op in ops] == list(range(len(graph) * launches))
    assert [op["direct_kernel_count"] for op in ops] == [len(own) for *_, own in graph] * launches
    assert [op["direct_kernel_time_ns"] for op in ops] == [
        3_000 * len(own) for *_, own in graph
    ] * launches
    shapes = {row["signature_id"]: row["input_dims"] for row in tables["signatures"].to_pylist()}
    assert [shapes[op["signature_id"]][0] for op in ops] == [
        [batch, 4] for _, batch, _ in graph
    ] * launches


@settings(max_examples=25)
@given(st.lists(graphs, min_size=2, max_size=4))
def test_pieces_in_order(pieces):
    steps = [[[kernel for *_, own in piece for kernel in own] for piece in pieces]]
    tables = grafted(replay(steps), capture(pieces, "capture_8_PIECEWISE"))
    drawn = [
        (name, number)
        for piece in pieces
        for number, (name, _, own) in enumerate(piece)
        for _ in own
    ]
    assert [call[:2] for call in calls_of_kernels(tables)] == drawn


def test_the_sums_of_a_nested_call():
    # us  an op around both, so that its subtree has all three kernels of 3 us
    recorded = capture([BLOCK])
    recorded.op("my::layer", 20, 30)
    tables = grafted(replay([[BLOCK_KERNELS]]), recorded)
    rows = {op["name"]: op for op in tables["ops"].to_pylist()}
    layer = rows["my::layer"]
    assert (layer["depth"], layer["kernel_count"], layer["kernel_time_ns"]) == (0, 3, 9_000)
    assert (layer["direct_kernel_count"], layer["direct_kernel_time_ns"]) == (0, 0)
    assert rows["aten::mm"]["parent_id"] == rows["my::norm"]["parent_id"] == layer["event_id"]
    assert rows["my::norm"]["depth"] == 1


def test_calls_around_the_capture_are_not_of_the_graph():
    recorded = capture([BLOCK])
    recorded.op("my::warm_up", 5, 60)  # it begins before the capture does
    tables = grafted(replay([[BLOCK_KERNELS]]), recorded)
    assert set(tables["ops"]["name"].to_pylist()) == {"aten::mm", "my::norm"}


def test_what_ran_during_the_capture_was_not_captured():
    # A launch whose kernel is in the capture trace itself is no dispatch of the graph.
    recorded = capture([BLOCK])
    recorded.launch(43, 1, correlation=70, kernel="eager").kernel("eager", 50, 2, correlation=70)
    tables = grafted(replay([[BLOCK_KERNELS]]), recorded)
    assert set(tables["kernels"]["graft"].to_pylist()) == {"exact"}


@pytest.mark.parametrize(
    ("annotation", "sizes"),
    [
        # tokens, requests, padded
        ("execute_context_2(30)_generation_4(8)", (38, 6, -1)),
        ("execute_new_1_cached_7", (-1, 8, -1)),
        ("step[DECODE bs=64]", (-1, 64, -1)),
        ("step[EXTEND bs=2 toks=100]", (100, 2, -1)),
        ("decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=239616 sk=239616]", (117, 117, 128)),
        ("execute_diffusion_3_256x256", (-1, 3, -1)),
        ("[Executor] _forward_step 1: 1 ctx reqs, 20 ctx tkns, 31 gen reqs", (51, 32, -1)),
        ("ProfilerStep#3", (-1, -1, -1)),
    ],
)
def test_the_batch_of_a_step(annotation, sizes):
    found = step_sizes(linked(replay([[["k"]]], annotation))[1]["annotations"])
    assert found.step.tolist() == [0]
    assert tuple(np.concatenate([found.tokens, found.requests, found.padded])) == sizes


def test_a_nested_step_tells_what_the_outer_leaves_out():
    trace = replay([[["k"]]], "execute_context_0(0)_generation_8(32)")
    trace.annotation("step[DECODE bs=8]", 1, 8)
    found = step_sizes(linked(trace)[1]["annotations"])
    assert (found.tokens.tolist(), found.requests.tolist()) == ([32], [8])
