"""op_summary, op_args_summary and op_categories: whom GPU time is put down to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from part_tables import A, B, activity, part

from tracehouse.analysis.summaries import evaluated

# aten::linear (1) ── aten::addmm (2) ── kernels 20: [0, 20) and 21: [10, 30)   union 30, sum 40
#                  └─ aten::addmm (3) ── kernel 22: [40, 50)                    10
# fused (4) ───────── kernel 23: [60, 70); below it, a nested op's 35 ns as well
# cudaGraphLaunch (50) ── kernels 24: [80, 92) and 25: [86, 98)                  union 18
# cudaGraphLaunch (51) ── kernel 26: [100, 112)                                  12
#                      and kernel 30, which by its capture is of fused
# nothing known ───── kernels 27: [120, 132), 28: [140, 148), 29 of unknown length
OPS = (
    {"event_id": 1, "name": "aten::linear", "category": "GEMM", "dur_ns": 90}
    | {"kernel_count": 3, "kernel_time_ns": 40, "direct_kernel_count": 0},
    {"event_id": 2, "name": "aten::addmm", "category": "GEMM", "dur_ns": 30, "signature_id": 77}
    | {"kernel_count": 2, "kernel_time_ns": 30}
    | {"direct_kernel_count": 2, "direct_kernel_time_ns": 30},
    {"event_id": 3, "name": "aten::addmm", "category": "GEMM", "dur_ns": 20, "signature_id": -78}
    | {"kernel_count": 1, "kernel_time_ns": 10}
    | {"direct_kernel_count": 1, "direct_kernel_time_ns": 10},
    {"event_id": 4, "name": "fused", "category": "other", "dur_ns": 70}
    | {"kernel_count": 5, "kernel_time_ns": 45}
    | {"direct_kernel_count": 1, "direct_kernel_time_ns": 10},
)
LAUNCHES = (
    {"event_id": 49, "name": "cudaLaunchKernel", "op_id": 2, "dur_ns": 4}
    | {"kernel_count": 1, "kernel_time_ns": 20}
    | {"direct_kernel_count": 0, "direct_kernel_time_ns": 0},
    {"event_id": 50, "name": "cudaGraphLaunch", "dur_ns": 5}
    | {"kernel_count": 2, "kernel_time_ns": 18}
    | {"direct_kernel_count": 2, "direct_kernel_time_ns": 18},
    {"event_id": 51, "name": "cudaGraphLaunch", "dur_ns": 6}
    | {"kernel_count": 2, "kernel_time_ns": 22}
    | {"direct_kernel_count": 1, "direct_kernel_time_ns": 12},
)
KERNELS = (
    activity(20, "compute", 0, 20, op_id=2, launch_id=49),
    activity(21, "compute", 10, 30, op_id=2),
    activity(22, "compute", 40, 50, op_id=3),
    activity(23, "compute", 60, 70, op_id=4),
    activity(24, "compute", 80, 92, launch_id=50),
    activity(25, "compute", 86, 98, launch_id=50),
    activity(26, "compute", 100, 112, launch_id=51),
    activity(27, "memcpy", 120, 132),
    activity(28, "compute", 140, 148),
    activity(29, "compute", 150, None),
    activity(30, "compute", 112, 122, op_id=4, launch_id=51),
)
SIGNATURES = (
    {"signature_id": 77, "input_dims": [[1024], [8, 512], None], "input_types": ["float", ""]},
    {"signature_id": -78, "input_dims": [], "concrete_inputs": ["", "1."]},
)


def of_trace(rows, trace=A):
    return [{**row, "trace_id": trace} for row in rows]


@pytest.fixture(scope="module")
def found():
    drawn = part(
        ops=of_trace(OPS),
        launches=of_trace(LAUNCHES),
        kernels=KERNELS,
        signatures=of_trace(SIGNATURES),
    )
    return {name: table.to_pylist() for name, table in evaluated(drawn).items()}


def picked(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_every_activity_is_put_down_to_one_launcher(found):
    columns = ("name", "category", "count", "kernel_count", "direct_kernel_time_ns")
    assert picked(found["op_summary"], *columns) == [
        ("aten::addmm", "GEMM", 2, 3, 40),  # 30 + 10
        ("cudaGraphLaunch", "launch", 2, 3, 30),  # 18 + 12
        ("(no op)", "(no op)", 3, 3, 20),  # 12 + 8 + unknown
        ("fused", "other", 1, 1, 10),
    ]


def test_times_below_and_on_the_host(found):
    assert picked(found["op_summary"], "name", "kernel_time_ns", "host_time_ns") == [
        ("aten::addmm", 40, 50),
        ("cudaGraphLaunch", 30, 11),
        ("(no op)", 20, None),
        ("fused", 45, 70),
    ]


def test_statistics_are_per_call(found):
    columns = ("mean_ns", "median_ns", "min_ns", "max_ns", "std_ns")
    assert picked(found["op_summary"], *columns) == [
        (20.0, 20.0, 10, 30, 14.142),  # √((10² + 10²) / 1)
        (15.0, 15.0, 12, 18, 4.243),  # √((3² + 3²) / 1)
        (10.0, 10.0, 8, 12, 2.828),  # √((2² + 2²) / 1): the unknown one counts for nothing
        (10.0, 10.0, 10, 10, None),
    ]


def test_shares_are_of_the_trace(found):
    assert picked(found["op_summary"], "pct", "cumulative_pct") == [
        (40.0, 40.0),
        (30.0, 70.0),
        (20.0, 90.0),
        (10.0, 100.0),
    ]


def test_inputs_split_an_op(found):
    columns = ("name", "signature_id", "count", "direct_kernel_time_ns", "cumulative_pct")
    assert picked(found["op_args_summary"], *columns) == [
        ("aten::addmm", 77, 1, 30, 30.0),
        ("cudaGraphLaunch", None, 2, 30, 60.0),
        ("(no op)", None, 3, 20, 80.0),
        ("aten::addmm", -78, 1, 10, 90.0),
        ("fused", None, 1, 10, 100.0),
    ]


def test_inputs_are_readable(found):
    by_signature = {row["signature_id"]: row for row in found["op_args_summary"]}
    columns = ("input_dims", "input_types", "input_strides", "concrete_inputs")
    assert picked([by_signature[77]], *columns) == [
        ("[[1024], [8, 512], NULL]", "[float, '']", None, None)
    ]
    assert picked([by_signature[-78]], *columns) == [("[]", None, None, "['', 1.]")]


def test_categories_sum_the_ops(found):
    columns = ("category", "count", "direct_kernel_time_ns", "max_ns", "pct", "cumulative_pct")
    assert picked(found["op_categories"], *columns) == [
        ("GEMM", 2, 40, 30, 40.0, 40.0),
        ("launch", 2, 30, 18, 30.0, 70.0),
        ("(no op)", 3, 20, 12, 20.0, 90.0),
        ("other", 1, 10, 10, 10.0, 100.0),
    ]


def test_equal_ids_of_two_traces_do_not_mix():
    # Launch 50 has an op in trace A and none in trace B.
    launches = [
        {"trace_id": t, "event_id": 50, "name": "launch", "kernel_count": 1, "kernel_time_ns": 9}
        | {"direct_kernel_count": own, "direct_kernel_time_ns": 9 * own}
        for t, own in ((A, 0), (B, 1))
    ]
    kernels = [
        {**activity(20, "compute", 0, 9, launch_id=50, op_id=2), "trace_id": A},
        {**activity(20, "compute", 0, 9, launch_id=50), "trace_id": B},
    ]
    ops = of_trace(
        [{"event_id": 2, "name": "op", "direct_kernel_count": 1, "direct_kernel_time_ns": 9}]
    )
    found = evaluated(part(traces=(A, B), ops=ops, launches=launches, kernels=kernels))
    assert picked(found["op_summary"].to_pylist(), "trace_id", "name", "pct") == [
        (A, "op", 100.0),
        (B, "launch", 100.0),
    ]


def test_shares_of_no_time_are_unknown():
    found = evaluated(part(kernels=(activity(1, "compute", 5, 5), activity(2, "memcpy", 5, None))))
    assert picked(found["op_summary"].to_pylist(), "count", "direct_kernel_time_ns", "pct") == [
        (2, 0, None)
    ]
    assert picked(found["kernel_summary"].to_pylist(), "kind", "time_ns", "pct") == [
        ("compute", 0, None),
        ("memcpy", None, None),
    ]


OWNERS = st.lists(
    st.sampled_from([(None, None), (2, None), (3, None), (2, 50), (None, 50), (None, 51)]),
    max_size=12,
)


@settings(max_examples=15)
@given(OWNERS)
def test_no_activity_is_lost_or_counted_twice(owners):
    """Each activity is alone in its time, so that sums and unions are one; lengths are 2ⁱ."""
    drawn = [
        activity(200 + i, "compute", 10_000 * i, 10_000 * i + 2**i, op_id=op, launch_id=launch)
        for i, (op, launch) in enumerate(owners)
    ]

    def lengths(key, value):
        return [k["dur_ns"] for k in drawn if k[key] == value]

    ops = [
        {"event_id": e, "name": f"op{e}", "direct_kernel_count": len(lengths("op_id", e))}
        | {"direct_kernel_time_ns": sum(lengths("op_id", e))}
        for e in (2, 3)
    ]
    launches = []
    for e in (50, 51):
        all_ = lengths("launch_id", e)
        own = [k["dur_ns"] for k in drawn if (k["launch_id"], k["op_id"]) == (e, None)]
        launches.append(
            {"event_id": e, "name": f"launch{e}"}
            | {"kernel_count": len(all_), "kernel_time_ns": sum(all_)}
            | {"direct_kernel_count": len(own), "direct_kernel_time_ns": sum(own)}
        )
    found = evaluated(part(ops=of_trace(ops), launches=of_trace(launches), kernels=drawn))
    for view in ("op_summary", "op_args_summary", "op_categories"):
        rows = found[view].to_pylist()
        assert sum(row["kernel_count"] for row in rows) == len(owners)
        assert sum(row["direct_kernel_time_ns"] for row in rows) == 2 ** len(owners) - 1
