"""Which annotations count as steps, and what belongs to them; times in µs in, ns out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.frames import call, frame, kernel, note, op

from tracehouse.analysis.link import link
from tracehouse.findings import Findings

V3 = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)"
DECODE = "step[DECODE bs=8]"


def run(*events):
    findings = Findings()
    linked = link(frame(events), "0" * 16, findings=findings)
    rows = {name: table.to_pylist() for name, table in linked.items()}
    return rows, {finding.code.word: finding.count for finding in findings}


def column(rows, name):
    return [row[name] for row in rows]


def mirror(name, ts, dur, *, tid=7, pid=0):
    return note(name, ts, dur, pid=pid, tid=tid, cat="gpu_user_annotation")


def launched(ts, at, dur, correlation, *, tid=5, stream=7, pid=5):
    """Draw a launch and its kernel."""
    return (
        call("cudaLaunchKernel", ts, 1, correlation, tid=tid, pid=pid),
        kernel("k", at, dur, correlation, stream=stream),
    )


def test_a_native_step_in_a_detailed_one_counts_once():
    rows, codes = run(
        note(V3, 0, 100), note(DECODE, 10, 80), *launched(5, 200, 7, 1), *launched(20, 210, 9, 2)
    )
    notes = rows["annotations"]
    assert column(notes, "role") == ["step", "other"]
    assert column(notes, "why") == ["vllm_v3", "nested"]
    assert column(notes, "step_id") == [0, 0]
    assert column(rows["kernels"], "step_id") == [0, 0]  # the outer interval counts
    assert notes[0]["kernel_time_ns"] == 16_000
    assert codes["STEP_NESTED"] == 1


def test_a_profiler_step_around_one_step_is_that_step():
    rows, _ = run(  # F66
        note("ProfilerStep#3", 0, 100),
        note(DECODE, 10, 80),
        *launched(5, 20, 10, 1),
        *launched(20, 110, 20, 2),
    )
    assert column(rows["annotations"], "role") == ["step", "other"]
    assert rows["annotations"][0]["kernel_time_ns"] == 30_000


def test_a_profiler_step_around_several_is_none_and_no_other_is():
    rows, _ = run(
        note("ProfilerStep#1", 0, 100),
        note(DECODE, 10, 20),
        note(DECODE, 50, 20),
        note("ProfilerStep#2", 100, 100),
        note(DECODE, 110, 20),
        *launched(5, 20, 10, 1),  # between the steps
        *launched(55, 60, 10, 2),
        *launched(115, 120, 10, 3),
    )
    notes = rows["annotations"]
    assert column(notes, "role") == ["other", "step", "step", "other", "step"]
    assert column(notes, "why")[0] == "holds_steps"
    assert column(notes, "step_id") == [None, 0, 1, None, 2]
    assert column(rows["kernels"], "step_id") == [None, 1, 2]


def test_a_profiler_step_around_one_of_another_thread_is_none():
    rows, _ = run(
        note("ProfilerStep#1", 0, 100, tid=5),
        note(DECODE, 10, 20, tid=6),
        note("ProfilerStep#2", 100, 100, tid=5),  # around none, but of the same rule
        *launched(15, 20, 10, 1, tid=6),
        *launched(50, 60, 10, 2, tid=5),  # between the steps
    )
    assert column(rows["annotations"], "role") == ["other", "step", "other"]
    assert column(rows["annotations"], "step_id") == [None, 0, None]
    assert column(rows["kernels"], "step_id") == [0, None]


def test_model_inference_gives_way_to_what_says_more():
    rows, _ = run(
        note("model_inference", 0, 100),
        note("execute_diffusion_1_256x256", 10, 80),
        note("model_inference", 200, 9),
    )
    assert column(rows["annotations"], "role") == ["other", "step", "other"]
    rows, _ = run(note("model_inference", 0, 100))
    assert column(rows["annotations"], "role") == ["step"]


def test_a_range_that_two_threads_print_counts_once():
    name = "[Executor] _forward_step 118: 1 ctx reqs, 31 gen reqs"
    rows, codes = run(
        note(name, 0, 100, tid=5),
        note(name, 10, 80, tid=6),
        note(name, 300, 80, tid=6),  # another one: numbers may come again
        *launched(20, 30, 4, 1, tid=5),
        *launched(25, 35, 4, 2, tid=6),  # either thread may launch
        *launched(95, 98, 4, 3, tid=6),  # after its range, though within the other's
    )
    assert column(rows["annotations"], "why") == ["trtllm", "duplicate", "trtllm"]
    assert column(rows["annotations"], "step_id") == [0, 0, 1]
    assert column(rows["kernels"], "step_id") == [0, 0, None]
    assert codes["STEP_NESTED"] == 1


def test_workers_of_a_process_may_write_alike():
    rows, _ = run(note(DECODE, 0, 100, tid=5), note(DECODE, 10, 80, tid=6))
    assert column(rows["annotations"], "step_id") == [0, 1]


def test_steps_in_dummy_runs_and_captures_are_none():
    rows, _ = run(
        note("dummy_decode[bs=1 tok=1 d=1]", 0, 100),
        note(DECODE, 10, 80),
        note("capture_32_FULL", 200, 100),
        note(V3, 210, 80),
        *launched(20, 30, 4, 1),
    )
    notes = rows["annotations"]
    assert column(notes, "role") == ["dummy", "dummy", "capture", "capture"]
    assert column(notes, "why") == ["atom_dummy", "in_dummy", "capture", "in_capture"]
    assert column(rows["kernels"], "step_id") == [None]


def test_draft_work_belongs_to_the_step_around_it_or_the_next():
    rows, _ = run(
        note("step[DRAFT bs=8]", 0, 10),
        note("step[TARGET_VERIFY bs=8]", 20, 50),
        note("draft", 30, 10),
        note("draft_extend", 90, 5),  # no step follows
        *launched(5, 6, 4, 1),
        *launched(35, 40, 4, 2),
        *launched(91, 95, 4, 3),
    )
    assert column(rows["annotations"], "step_id") == [0, 0, 0, None]
    assert column(rows["kernels"], "step_id") == [0, 0, None]


def test_launches_of_other_threads_are_of_no_serving_step():
    rows, _ = run(note(DECODE, 0, 100), *launched(20, 30, 4, 1, tid=6))
    assert column(rows["kernels"], "step_id") == [None]
    rows, _ = run(note("ProfilerStep#1", 0, 100), *launched(20, 30, 4, 1, tid=6))
    assert column(rows["kernels"], "step_id") == [0]  # a backward pass has a thread of its own


def test_overlap_in_time_decides_nothing():
    # asynchronous scheduling: step 1 is prepared while the work of step 0 runs
    rows, _ = run(
        note(DECODE, 0, 10),
        note(DECODE, 10, 10),
        *launched(5, 12, 7, 1),
        *launched(15, 30, 7, 2),
    )
    assert column(rows["kernels"], "step_id") == [0, 1]


def test_a_kernel_without_launch_belongs_to_the_mirror_it_is_in():
    rows, _ = run(
        note(DECODE, 0, 10),
        note(DECODE, 10, 10),
        mirror(DECODE, 50, 20),
        mirror(DECODE, 80, 20),
        kernel("k", 55, 5, 901, stream=7),
        kernel("k", 85, 5, 902, stream=7),
        kernel("k", 85, 5, 903, stream=8),  # another stream
        kernel("k", 75, 5, 904, stream=7),  # between them
        *launched(5, 82, 3, 1),  # of step 0, whenever it runs
    )
    assert column(rows["annotations"], "step_id") == [0, 1, 0, 1]
    assert column(rows["kernels"], "step_id") == [0, 1, None, None, 0]


def test_a_mirror_of_a_step_before_the_recording_is_nobodys():
    rows, _ = run(
        mirror(DECODE, 2, 5),
        note(DECODE, 10, 10),
        mirror(DECODE, 30, 5),
        kernel("k", 3, 2, 901, stream=7),
        kernel("k", 31, 2, 902, stream=7),
    )
    assert column(rows["annotations"], "step_id") == [None, 0, 0]
    assert column(rows["kernels"], "step_id") == [None, 0]


def test_mirrors_on_several_streams_are_one_occurrence():
    rows, _ = run(
        note(DECODE, 0, 10),
        note(DECODE, 10, 10),
        mirror(DECODE, 50, 20, tid=7),
        mirror(DECODE, 55, 20, tid=8),
        mirror(DECODE, 80, 20, tid=8),
    )
    assert column(rows["annotations"], "step_id") == [0, 1, 0, 0, 1]


def test_without_annotations_of_the_host_those_of_the_gpu_are_the_steps():
    rows, _ = run(
        mirror(DECODE, 50, 20, tid=7),
        mirror(DECODE, 55, 20, tid=8),
        mirror(DECODE, 80, 20, tid=8),
        *launched(5, 55, 5, 1, stream=8),
        kernel("k", 85, 5, 902, stream=8),
    )
    notes = rows["annotations"]
    assert column(notes, "role") == ["step", "other", "step"]
    assert column(notes, "why") == ["sglang_decode", "duplicate", "sglang_decode"]
    assert column(notes, "step_id") == [0, 0, 1]
    assert column(rows["kernels"], "step_id") == [0, 1]


def test_ranks_of_a_merged_file_have_steps_of_their_own():
    rows, _ = run(
        note(DECODE, 0, 50, pid="[TP00] 83"),
        note(DECODE, 1, 50, pid="[TP01] 84"),
        note("forward", 2, 3, pid="[TP01] 84"),
    )
    assert column(rows["annotations"], "step_id") == [0, 1, None]


def test_steps_are_told_by_their_start_not_by_their_number():
    rows, _ = run(note("ProfilerStep#7", 100, 50), note("ProfilerStep#7", 0, 50))
    assert column(rows["annotations"], "step_id") == [1, 0]


NAMES = [
    *(V3, DECODE, "ProfilerStep#1", "draft", "dummy_decode[bs=1]", "capture_1_FULL", "x"),
    *("step(1)", "model_inference", "execute_diffusion_1_2x3"),
    "[Executor] _forward_step: 0 ctx reqs, 1 gen reqs",
]
names = st.sampled_from(NAMES)
spans = st.tuples(
    names, st.integers(0, 20), st.integers(0, 12), st.booleans(), st.sampled_from([5, 6])
)


@given(st.lists(spans, max_size=14))
def test_whatever_the_annotations_each_step_counts_once(drawn):
    events = [
        note(name, ts, dur, tid=tid, cat="gpu_user_annotation" if on_gpu else "user_annotation")
        for name, ts, dur, on_gpu, tid in drawn
    ]
    events += [e for i in range(6) for e in launched(3 * i, 20 + i, 1, i + 1)]
    rows, _ = run(*events)
    notes = rows["annotations"]
    steps = [row for row in notes if row["role"] == "step"]
    assert sorted(row["step_id"] for row in steps) == list(range(len(steps)))
    for row in notes:
        assert (row["kernel_count"] is None) == (row["role"] != "step")
        assert row["role"] not in ("dummy", "capture") or row["step_id"] is None
    inside = [row["step_id"] for row in rows["kernels"] if row["step_id"] is not None]
    assert set(inside) <= set(range(len(steps)))
    assert sum(row["kernel_count"] for row in steps) == len(inside)


@pytest.mark.parametrize("name", ["step[DECODE bs=8]", "ProfilerStep#4"])
def test_an_op_with_the_name_of_a_step_is_one(name):
    rows, _ = run(op(name, 0, 20), op("draft", 2, 3), *launched(5, 8, 2, 1))
    assert column(rows["annotations"], "role") == ["step"]
    assert column(rows["kernels"], "step_id") == [0]
