"""Linking and nesting of events written by hand; times in µs as in a trace, results in ns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.frames import call, frame, kernel, note, op

from tracehouse.analysis.link import link
from tracehouse.findings import Findings
from tracehouse.schema import tables

TRACE = "0123456789abcdef"


def run(*events, table=None):
    """Return the rows of each table, and the count of each finding."""
    findings = Findings()
    linked = link(frame(events) if table is None else table, TRACE, findings=findings)
    linked.pop("compiled_calls")  # has tests of its own
    assert list(linked) == ["ops", "signatures", "launches", "annotations", "kernels", "spans"]
    for name, found in linked.items():
        assert found.schema.equals(tables.TABLES[name].schema, check_metadata=True), name
        found.validate(full=True)
    rows = {name: found.to_pylist() for name, found in linked.items()}
    return rows, {finding.code.word: finding.count for finding in findings}


def column(rows, name):
    return [row[name] for row in rows]


def test_an_op_its_launch_and_its_kernel():
    rows, findings = run(
        op("aten::linear", 0, 20, **{"External id": 1}),
        op("aten::mm", 2, 10, **{"External id": 2, "Input Dims": [[4, 8], [8, 2]]}),
        call("cudaLaunchKernel", 5, 3, 77, **{"External id": 2}),
        kernel("void gemm<float>(float*)", 15, 6, 77, device=0, **{"External id": 2}),
    )
    outer, inner = rows["ops"]
    assert (outer["parent_id"], inner["parent_id"]) == (None, 0)
    assert (outer["depth"], inner["depth"]) == (0, 1)
    assert (outer["self_ns"], inner["self_ns"]) == (10_000, 10_000)
    assert (inner["process"], inner["thread"], inner["category"]) == ("5", "5", "GEMM")
    assert (outer["kernel_count"], outer["kernel_time_ns"]) == (1, 6_000)
    assert (outer["direct_kernel_count"], outer["direct_kernel_time_ns"]) == (0, 0)
    assert (inner["direct_kernel_count"], inner["direct_kernel_time_ns"]) == (1, 6_000)
    assert inner["signature_id"] == rows["signatures"][0]["signature_id"]
    assert outer["signature_id"] is None
    launch = rows["launches"][0]
    assert (launch["event_id"], launch["op_id"], launch["kernel_count"]) == (2, 1, 1)
    assert launch["delay_ns"] == 10_000  # 15 - 5
    assert launch["is_graph"] is False
    gpu = rows["kernels"][0]
    assert (gpu["launch_id"], gpu["op_id"], gpu["link"]) == (2, 1, "correlation")
    assert (gpu["device"], gpu["stream"], gpu["kind"]) == (0, 7, "compute")
    assert (gpu["category"], gpu["short_name"], gpu["graph"]) == ("kernel", "gemm", False)
    assert {row["trace_id"] for found in rows.values() for row in found} == {TRACE}
    assert findings == {}


def test_external_ids_are_no_correlation_ids():
    # F50: aten::add has External id 8, the kernel correlation 8
    rows, _ = run(
        op("aten::mm", 1, 9, **{"External id": 7}),
        op("aten::add", 20, 9, **{"External id": 8}),
        call("cudaLaunchKernel", 2, 3, 8, **{"External id": 7}),
        kernel("gemm", 6, 4, 8, **{"External id": 7}),
    )
    assert (rows["kernels"][0]["launch_id"], rows["kernels"][0]["op_id"]) == (2, 0)
    assert column(rows["ops"], "kernel_count") == [1, 0]


@pytest.mark.parametrize("correlation", [0, -1, None])
def test_no_correlation_is_no_link(correlation):
    # F51: never joined with each other, nor with a runtime row that has none either
    rows, findings = run(
        call("hipLaunchKernel", 1, 2, correlation),
        kernel("ncclDevKernel_Generic", 3, 2, correlation),
        kernel("ncclDevKernel_Generic", 6, 2, correlation),
    )
    assert column(rows["kernels"], "launch_id") == [None, None]
    assert column(rows["kernels"], "link") == ["none", "none"]
    assert rows["launches"] == []
    assert findings == {"ORPHAN_KERNEL": 2}


def test_a_kernel_launched_before_the_window_stays():
    rows, findings = run(op("aten::mm", 5, 5, **{"External id": 3}), kernel("gemm", 1, 2, 9))
    assert (rows["kernels"][0]["link"], rows["kernels"][0]["op_id"]) == ("none", None)
    assert rows["ops"][0]["kernel_count"] == 0
    assert findings["ORPHAN_KERNEL"] == 1


def test_an_id_of_unrelated_launches_links_nothing():
    # F53: two rows with id 40 on different threads, three kernels
    rows, findings = run(
        op("aten::mm", 0, 9, **{"External id": 1}),
        call("hipLaunchKernel", 1, 2, 40, tid=5),
        call("hipLaunchKernel", 1, 2, 40, tid=6),
        *(kernel("k", at, 2, 40, **{"External id": 1}) for at in (10, 20, 30)),
    )
    assert len(rows["kernels"]) == 3
    assert column(rows["kernels"], "launch_id") == [None] * 3
    assert column(rows["kernels"], "op_id") == [None] * 3
    assert rows["launches"] == []
    assert findings == {"CORRELATION_AMBIGUOUS": 1, "ORPHAN_KERNEL": 3, "SHAPES_MISSING": 1}


def test_runtime_and_driver_row_are_one_launch():
    # F54: the innermost is the launch, in whatever order the file has them
    rows, _ = run(
        call("cuLaunchKernel", 2, 2, 8, cat="cuda_driver"),
        call("cudaLaunchKernel", 1, 5, 8),
        kernel("k", 9, 2, 8),
    )
    assert column(rows["launches"], "name") == ["cuLaunchKernel"]
    assert rows["launches"][0]["delay_ns"] == 7_000  # 9 - 2
    assert rows["kernels"][0]["launch_id"] == 0


def graph(enclosing=()):
    return run(
        *enclosing,
        call("cudaGraphLaunch", 1, 8, 90, **{"External id": 3}),
        kernel("n0", 20, 4, 90, **{"graph node id": 1}),
        kernel("n1", 24, 4, 90, **{"graph node id": 0}),
        kernel("n2", 22, 9, 90, stream=13, **{"graph node id": 73_014_444_033}),
    )


def test_a_graph_launch_has_many_kernels():
    # F55: union of [20,24) [24,28) [22,31) is 11 µs; delay to the first kernel 20 - 1
    rows, findings = graph()
    launch = rows["launches"][0]
    assert (launch["kernel_count"], launch["kernel_time_ns"]) == (3, 11_000)
    assert (launch["delay_ns"], launch["is_graph"]) == (19_000, True)
    assert column(rows["kernels"], "graph") == [True] * 3
    assert column(rows["kernels"], "graph_node_id") == [1, None, 73_014_444_033]
    assert findings == {"GRAPH_REPLAY": 1}


def test_the_op_around_a_graph_launch_is_not_that_of_its_kernels():
    # F56: it counts in the subtree of that op ("launched below"), but is no direct work of any op
    rows, _ = graph([op("aten::replay", 0, 10)])
    assert column(rows["kernels"], "op_id") == [None] * 3
    assert rows["launches"][0]["op_id"] == 0
    outer = rows["ops"][0]
    assert (outer["kernel_count"], outer["kernel_time_ns"]) == (3, 11_000)
    assert (outer["direct_kernel_count"], outer["direct_kernel_time_ns"]) == (0, 0)


def test_kernels_of_two_streams_count_once_above_and_in_full_below():
    # mm: [10,20), add: [15,30): below both 20 µs; each alone 10 and 15
    rows, _ = run(
        op("model", 0, 9),
        op("aten::mm", 1, 3),
        op("aten::add", 5, 3),
        call("cudaLaunchKernel", 2, 1, 1),
        call("cudaLaunchKernel", 6, 1, 2),
        kernel("a", 10, 10, 1, stream=7),
        kernel("b", 15, 15, 2, stream=8),
    )
    assert column(rows["ops"], "kernel_time_ns") == [20_000, 10_000, 15_000]
    assert column(rows["ops"], "direct_kernel_time_ns") == [0, 10_000, 15_000]
    assert column(rows["ops"], "kernel_count") == [2, 1, 1]


def test_the_external_id_decides_where_no_op_is_around():
    # the launch is on thread 6, the op on thread 5; two ops have id 4, so that one decides nothing
    rows, _ = run(
        op("aten::mm", 0, 9, **{"External id": 3}),
        op("aten::add", 20, 2, **{"External id": 4}),
        op("aten::sub", 30, 2, **{"External id": 4}),
        call("cudaLaunchKernel", 50, 2, 1, tid=6, **{"External id": 3}),
        call("cudaLaunchKernel", 60, 2, 2, tid=6, **{"External id": 4}),
        call("cudaLaunchKernel", 70, 2, 3, tid=6, **{"External id": 0}),
        *(kernel("k", 80 + i, 1, i) for i in (1, 2, 3)),
    )
    assert column(rows["launches"], "op_id") == [0, None, None]
    assert column(rows["kernels"], "op_id") == [0, None, None]
    assert column(rows["kernels"], "link") == ["correlation"] * 3


def test_nesting_comes_before_the_external_id():
    rows, _ = run(
        op("aten::mm", 0, 9, **{"External id": 3}),
        op("aten::add", 10, 9, **{"External id": 4}),
        call("cudaLaunchKernel", 11, 2, 1, **{"External id": 3}),
        kernel("k", 20, 1, 1),
    )
    assert rows["launches"][0]["op_id"] == 1


def test_a_kernel_without_launch_is_tied_by_its_external_id():
    rows, findings = run(
        note("ProfilerStep#1", 0, 20),
        op("aten::mm", 1, 9, **{"External id": 3}),
        kernel("k", 5, 4, 9, **{"External id": 3}),
    )
    gpu = rows["kernels"][0]
    assert (gpu["launch_id"], gpu["op_id"], gpu["link"], gpu["step_id"]) == (
        None,
        1,
        "external_id",
        0,
    )
    assert rows["ops"][0]["direct_kernel_time_ns"] == 4_000
    assert findings["ORPHAN_KERNEL"] == 1


def test_a_call_that_launches_nothing_is_no_launch():
    assert run(call("cudaDeviceSynchronize", 0, 5, 3), kernel("k", 9, 1, 4))[0]["launches"] == []


def test_ranks_of_a_merged_file_are_linked_apart():
    # F64: both ranks use correlation 5
    rows, _ = run(
        call("cudaLaunchKernel", 1, 2, 5, pid="[TP00] 83", tid=83),
        kernel("a", 4, 6, 5, pid="[TP00] 0"),
        call("cudaLaunchKernel", 1, 2, 5, pid="[TP01] 84", tid=84),
        kernel("b", 4, 6, 5, pid="[TP01] 3"),
    )
    assert column(rows["kernels"], "launch_id") == [0, 2]
    assert column(rows["kernels"], "device") == [0, 3]
    assert column(rows["kernels"], "rank_label") == ["TP00", "TP01"]


@pytest.mark.parametrize(
    ("pid", "tid", "args", "lane"),
    [
        (0, 7, {}, (0, 7)),
        (0, 7, {"device": 3, "stream": 20}, (3, 20)),
        ("[TP00] 2", "stream 7", {}, (2, 7)),
        ("CUDA functions", "stream", {}, (None, None)),
        (0, -1, {"stream": -1}, (0, None)),
        (0, 7, {"stream": 94_837_465_220_097}, (0, 94_837_465_220_097)),  # F34
    ],
)
def test_device_and_stream(pid, tid, args, lane):
    event = {"cat": "kernel", "name": "k", "pid": pid, "tid": tid, "ts": 1, "dur": 1, "args": args}
    gpu = run(event)[0]["kernels"][0]
    assert (gpu["device"], gpu["stream"]) == lane


def test_a_copy_filed_as_a_kernel_is_a_copy():
    rows, _ = run(kernel("Memcpy HtoD (Host -> Device)", 1, 2, 0, bytes=64))  # F32
    gpu = rows["kernels"][0]
    assert (gpu["category"], gpu["kind"], gpu["bytes"]) == ("gpu_memcpy", "memcpy", 64)


def test_old_spellings_of_categories():
    rows, _ = run(  # F25
        {**op("mul", 0, 9), "cat": "Operator"},
        call("hipLaunchKernel", 1, 1, 3, cat="hip_runtime"),
        kernel("k", 4, 1, 3, cat="Kernel"),
    )
    assert rows["ops"][0]["direct_kernel_count"] == 1
    assert rows["kernels"][0]["category"] == "kernel"


def test_a_child_that_ends_two_ns_late():
    rows, findings = run(op("P", 100, 50), op("C", "120", "30.002"))  # F48
    assert column(rows["ops"], "parent_id") == [None, 0]
    assert column(rows["ops"], "self_ns") == [20_000, 30_002]
    assert findings["NEST_TOLERANCE"] == 1


def test_a_child_listed_before_its_parent():
    # both start at 1; the longer one is the parent, whatever the order in the file
    rows, _ = run(op("child", 1, 5), op("parent", 1, 9))
    assert column(rows["ops"], "parent_id") == [1, None]


def test_unknown_durations():
    rows, _ = run(
        op("aten::a", 0, 20),
        op("aten::b", 1, None),
        op("aten::c", 2, 3),
        call("cudaLaunchKernel", 3, None, 1),
        kernel("k", 9, None, 1),
        kernel("k", 10, 2, 1),
    )
    assert column(rows["ops"], "parent_id") == [None, 0, 0]
    assert column(rows["ops"], "self_ns") == [17_000, None, 3_000]
    assert rows["launches"][0]["op_id"] == 2
    assert rows["launches"][0]["delay_ns"] == 6_000  # to the first start, of whatever duration
    assert column(rows["ops"], "kernel_count") == [2, 0, 2]
    assert column(rows["ops"], "kernel_time_ns") == [2_000, 0, 2_000]
    assert column(rows["kernels"], "dur_ns") == [None, 2_000]


def test_a_kernel_before_its_launch():
    rows, findings = run(call("cudaLaunchKernel", 100, 6, 8), kernel("k", "99.2", 2, 8))  # F44
    assert rows["launches"][0]["delay_ns"] == -800
    assert findings == {"LAUNCH_SKEW": 1, "ORPHAN_KERNEL": 1}  # no op is around the launch


@pytest.mark.parametrize(
    ("other", "overlaps"),
    [
        ({"stream": 7}, 1),
        ({"stream": 8}, 0),
        ({"stream": 7, "device": 1}, 0),
        ({"stream": 7, "pid": "[TP01] 0"}, 0),
    ],
)
def test_overlap_on_a_stream(other, overlaps):
    _, findings = run(kernel("a", 10, 10, 0), kernel("b", 17, 12, 0, **other))  # F46
    assert findings.get("STREAM_OVERLAP", 0) == overlaps


def test_neighbours_that_touch_do_not_overlap():
    spans = [(10, 0), (10, 5), (15, 5), (15, 0)]
    assert "STREAM_OVERLAP" not in run(*(kernel("k", *span, 0) for span in spans))[1]  # F47


def test_annotations_and_steps():
    rows, _ = run(
        note("ProfilerStep#3", 0, 100),
        note("forward", 10, 30),
        note("ProfilerStep#4", 100, 100),
        note("ProfilerStep#3", 20, 2, pid=0, tid=7, cat="gpu_user_annotation"),
        op("aten::mm", 99, 1, tid=6),  # another thread of the process
        op("aten::mm", 99, 1, pid=4),  # another process
        call("cudaLaunchKernel", 100, 5, 1),
        kernel("k", 250, 9, 1),
    )
    notes = rows["annotations"]
    assert column(notes, "side") == ["cpu", "cpu", "cpu", "gpu"]
    assert column(notes, "parent_id") == [None, 0, None, None]
    assert column(notes, "role") == ["step", "other", "step", "other"]
    assert column(notes, "why") == ["ProfilerStep", None, "ProfilerStep", None]
    assert column(notes, "process") == ["5", "5", "5", None]
    assert column(notes, "thread") == ["5", "5", "5", None]
    assert column(notes, "device") == [None, None, None, 0]
    assert column(notes, "stream") == [None, None, None, 7]
    assert column(rows["ops"], "step_id") == [0, None]
    assert column(notes, "step_id") == [0, None, 1, 0]
    assert column(rows["launches"], "step_id") == [1]
    assert column(rows["kernels"], "step_id") == [1]  # by its launch, though it runs later
    assert column(notes, "kernel_time_ns") == [0, None, 9_000, None]


def test_the_innermost_of_nested_steps():
    rows, _ = run(
        note("ProfilerStep#1", 0, 100),
        note("ProfilerStep#9", 10, 20, tid=6),
        op("a", 5, 1),
        op("b", 15, 1),
        op("c", 35, 1),
    )
    assert column(rows["ops"], "step_id") == [0, 1, 0]


def test_a_trace_without_gpu_events():
    event = op("aten::add", 1, 2, **{"Input Dims": [[1]]})
    rows, findings = run(event)
    assert len(rows["ops"]) == 1
    assert rows["kernels"] == []
    assert findings == {"NO_GPU_EVENTS": 1}


def test_an_empty_frame():
    rows, findings = run()
    assert not any(rows.values())
    assert findings == {"NO_GPU_EVENTS": 1}


def test_the_first_event_is_named():
    findings = Findings()
    events = [kernel("ok", 1, 1, 0), kernel("late", 9, 1, 0), kernel("early", 5, 5, 0)]
    link(frame(events), TRACE, findings=findings)
    found = {f.code.word: (f.count, f.first_event_id, f.example) for f in findings}
    assert found["ORPHAN_KERNEL"] == (3, 0, "ok")
    assert found["STREAM_OVERLAP"] == (1, 1, "late")


def test_rows_without_a_time_raise_nothing():
    # `ts` unknown: kept, not busy, not nested, not around anything
    table = frame(
        [op("a", 0, 9), op("b", 1, 2), call("l", 2, 1, 3), kernel("k", 5, 1, 3), note("n", 0, 5)]
    )
    at = table.schema.get_field_index("ts_ns")
    table = table.set_column(at, "ts_ns", pa.nulls(table.num_rows, pa.int64()))
    rows, findings = run(table=table)
    assert column(rows["ops"], "parent_id") == [None, None]
    assert column(rows["ops"], "self_ns") == [None, None]
    assert (rows["launches"][0]["op_id"], rows["launches"][0]["delay_ns"]) == (None, None)
    assert rows["launches"][0]["kernel_time_ns"] == 0
    assert rows["kernels"][0]["launch_id"] == 2
    assert "LAUNCH_SKEW" not in findings


def test_an_end_beyond_the_range_of_int64():
    table = frame([op("a", 0, 9), op("b", 1, 2), op("c", 0, 1, tid=6)])
    times = {"ts_ns": [2**62, 2**62 + 1, 2**63 - 1], "dur_ns": [2**63 - 1, 5, 2**63 - 1]}
    for name, values in times.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, pa.int64()))
    rows, _ = run(table=table)
    assert column(rows["ops"], "parent_id") == [None, 0, None]
    assert column(rows["ops"], "dur_ns") == times["dur_ns"]
    assert min(column(rows["ops"], "self_ns")) >= 0


def test_chunks_with_their_own_dictionaries():
    events = [
        op("aten::a", 0, 9, **{"Input Dims": [[1]]}),
        op("aten::b", 1, 5, **{"Input Dims": [[2]]}),
        call("cudaLaunchKernel", 2, 1, 1),
        kernel("k", 20, 4, 1),
    ]
    whole = frame(events)
    parts = [frame([{}] * i + [event]) for i, event in enumerate(events)]
    assert run(table=pa.concat_tables(parts)) == run(table=whole)


names = st.sampled_from(["aten::mm", "cudaLaunchKernel", "cudaGraphLaunch", "k", "ProfilerStep#1"])
categories = st.sampled_from(
    ["cpu_op", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "user_annotation", "Kernel"]
)
ids = st.none() | st.integers(-1, 4)
events = st.fixed_dictionaries(
    {
        "ph": st.sampled_from("XXXXBE"),
        "cat": categories,
        "name": names,
        "pid": st.sampled_from(["1", "[A] 1", "[B] 1", "x"]),
        "tid": st.sampled_from(["1", "2", "stream 3"]),
        "ts": st.integers(0, 30),
        "dur": st.none() | st.integers(0, 20),
        "args": st.fixed_dictionaries({"correlation": ids, "External id": ids, "stream": ids}),
    }
)


@given(st.lists(events, max_size=25))
def test_whatever_the_events_the_tables_hold_together(drawn):
    rows, _ = run(*drawn)
    ops = {row["event_id"]: row for row in rows["ops"]}
    launches = {row["event_id"]: row for row in rows["launches"]}
    kernels = rows["kernels"]
    assert len(ops) == sum(event["cat"] == "cpu_op" and event["ph"] in "XB" for event in drawn)
    assert len(kernels) == sum(
        event["cat"] in ("kernel", "Kernel", "gpu_memcpy") and event["ph"] == "X" for event in drawn
    )
    assert len(rows["spans"]) == sum(event["ph"] == "B" for event in drawn)
    for found in rows.values():
        at = column(found, "event_id") if found and "event_id" in found[0] else []
        assert at == sorted(at)
    for gpu in kernels:
        assert gpu["op_id"] is None or gpu["op_id"] in ops
        assert (gpu["link"] == "correlation") == (gpu["launch_id"] in launches)
        assert gpu["op_id"] is None or not gpu["graph"]
        assert (gpu["link"] == "none") == (gpu["why_unlinked"] is not None)
    assert sum(row["kernel_count"] for row in launches.values()) == sum(
        gpu["launch_id"] is not None for gpu in kernels
    )
    assert sum(row["direct_kernel_count"] for row in ops.values()) == sum(
        gpu["op_id"] is not None for gpu in kernels
    )
    for row in ops.values():
        parent = ops.get(row["parent_id"])
        assert row["direct_kernel_time_ns"] <= row["kernel_time_ns"]
        if parent is not None:
            assert parent["depth"] == row["depth"] - 1
            assert parent["kernel_count"] >= row["kernel_count"]
            assert parent["kernel_time_ns"] >= row["kernel_time_ns"]
        if row["self_ns"] is not None:
            assert 0 <= row["self_ns"] <= row["dur_ns"]


@given(st.lists(events, max_size=25), st.integers(1, 1_000), st.integers(1, 10**12))
def test_a_shift_in_time_changes_nothing_but_the_times(drawn, one, other):
    # to no start of 0, which may be no time at all (F39)
    (before, noted), (after, noted_after) = (
        run(*({**event, "ts": event["ts"] + shift} for event in drawn)) for shift in (one, other)
    )
    for found in (*before.values(), *after.values()):
        for row in found:
            row.pop("ts_ns", None)
    assert before == after
    assert noted == noted_after
