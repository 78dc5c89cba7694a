"""Of any trace, the parts sum to the whole."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.intervals import covered
from tracegen import Trace

import tracehouse

# Whole µs, in a narrow window, so that spans nest, overlap, touch and coincide.
moments, lengths = st.integers(1, 40), st.integers(0, 25)
correlations = st.integers(1, 4)
PRODUCT = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}


@st.composite
def traces(draw):
    trace = Trace()
    for _ in range(draw(st.integers(0, 6))):
        name, thread = (
            draw(st.sampled_from(["my::a", "my::b", "aten::mm"])),
            draw(st.integers(1, 2)),
        )
        args = PRODUCT if draw(st.booleans()) else {}
        trace.op(name, draw(moments), draw(lengths), thread=thread, **args)
    for correlation in draw(st.lists(correlations, unique=True)):
        name = draw(st.sampled_from(["cudaLaunchKernel", "hipGraphLaunch"]))
        trace.launch(draw(moments), draw(lengths), correlation=correlation, name=name)
    for _ in range(draw(st.integers(0, 8))):
        trace.kernel(
            draw(st.sampled_from(["gemm", "ncclDevKernel_AllReduce", "copy"])),
            draw(moments),
            draw(lengths),
            correlation=draw(st.none() | correlations),
            device=draw(st.integers(0, 1)),
            stream=draw(st.integers(7, 8)),
            cat=draw(st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset"])),
        )
    return trace


def us(rows, key=lambda row: None):
    """Sum, over the groups that `key` makes, the µs that at least one row of a group covers."""
    spans = defaultdict(list)
    for row in rows:
        assert row["ts_ns"] % 1_000 == row["dur_ns"] % 1_000 == 0
        start = row["ts_ns"] // 1_000
        spans[key(row)].append((start, start + row["dur_ns"] // 1_000))
    return sum(map(covered, spans.values()))


def launcher(row):
    """Tell what a GPU activity is put down to: its op, else its launch, else itself."""
    for key in ("op_id", "launch_id", "event_id"):
        if row[key] is not None:
            return key, row[key]
    raise AssertionError(row)


def check_work(trace, kernels):
    """Check which row of op_perf carries the time of each activity of an op; returns their sum."""
    ops = {op["event_id"]: op for op in trace.ops.to_pylist()}
    work = {row["event_id"]: row for row in trace.op_perf.to_pylist()}
    groups = defaultdict(list)
    for kernel in kernels:
        if kernel["op_id"] is not None:
            at, way = kernel["op_id"], []
            while at is not None:
                way.append(at)
                at = ops[at]["parent_id"]
            known = [i for i in way if i in work and work[i]["flops"] is not None]
            groups[known[-1] if known else kernel["op_id"]].append(kernel)
    assert {i for i, row in work.items() if row["counted"]} == set(groups)
    for event_id, below in groups.items():
        row = work[event_id]
        assert row["carrier_id"] == event_id
        assert row["kernel_count"] == len(below)
        assert row["kernel_time_ns"] == 1_000 * us(below)
        assert row["flops"] is not None or row["why"] is not None
    return sum(work[i]["kernel_time_ns"] for i in groups)


def total(table, column):
    return sum(table[column].to_pylist())


@settings(max_examples=40)
@given(traces())
def test_parts_sum_to_the_whole(drawn):
    with tempfile.TemporaryDirectory() as folder:
        trace = tracehouse.read(drawn.write(Path(folder) / "trace.json"))
    gpu = [e for e in drawn.events() if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    kernels = trace.kernels.to_pylist()
    assert len(kernels) == len(gpu)
    (timeline,) = trace.trace_timeline.to_pylist()

    # Every activity is in one row of op_summary, and in one of kernel_summary.
    direct = total(trace.op_summary, "direct_kernel_time_ns")
    assert direct == 1_000 * us(kernels, launcher)
    assert direct >= timeline["busy_ns"]
    assert total(trace.op_summary, "kernel_count") == len(gpu)
    assert total(trace.kernel_summary, "count") == len(gpu)
    assert total(trace.kernel_summary, "time_ns") == sum(1_000 * int(e["dur"]) for e in gpu)
    for table in (trace.op_args_summary, trace.op_categories):
        assert total(table, "direct_kernel_time_ns") == direct

    carried = check_work(trace, kernels)
    (coverage,) = trace.coverage.to_pylist() or [dict.fromkeys(trace.coverage.column_names, 0)]
    assert coverage["op_time_ns"] == carried
    assert coverage["modelled_ns"] + coverage["unmodelled_ns"] == carried
    without_op = [row for row in kernels if row["op_id"] is None]
    assert coverage["no_op_ns"] == 1_000 * us(without_op, launcher)
    for table in (trace.roofline, trace.roofline_categories):
        assert total(table, "kernel_time_ns") == carried

    # Busy time: a union over all devices, and one a device.
    assert timeline["busy_ns"] == 1_000 * us(kernels)
    assert total(trace.gpu_timeline, "busy_ns") == 1_000 * us(kernels, lambda row: row["device"])
    assert timeline["busy_ns"] <= total(trace.gpu_timeline, "busy_ns")
    for row in (timeline, *trace.gpu_timeline.to_pylist()):
        assert row["busy_ns"] + row["idle_ns"] == row["total_ns"]
        assert row["busy_ns"] == (
            row["computation_ns"] + row["exposed_comm_ns"] + row["exposed_memcpy_ns"]
        )

    # Ops: what is below a call holds what is directly below it; calls without parents hold all.
    for op in trace.ops.to_pylist():
        assert op["direct_kernel_time_ns"] <= op["kernel_time_ns"]
        assert op["direct_kernel_count"] <= op["kernel_count"]
        assert 0 <= op["self_ns"] <= op["dur_ns"]
    assert total(trace.ops, "direct_kernel_count") == sum(k["op_id"] is not None for k in kernels)
    launches = {launch["event_id"]: launch for launch in trace.launches.to_pylist()}
    # A graph's kernels are no op's own, but they are below the op that launches it.
    without_op = {None, *(i for i, launch in launches.items() if launch["op_id"] is None)}
    roots = [op for op in trace.ops.to_pylist() if op["parent_id"] is None]
    assert sum(op["kernel_count"] for op in roots) == sum(
        k["launch_id"] not in without_op for k in kernels
    )
    assert total(trace.launches, "kernel_count") == sum(k["launch_id"] is not None for k in kernels)
