"""kernel_summary: GPU activities by name."""

from __future__ import annotations

from part_tables import A, B, activity, part

from tracehouse.analysis.summaries import evaluated

GEMM = {"name": "void gemm<float>(int)", "short_name": "gemm"}
COPY = {"name": "Memcpy HtoD", "short_name": "Memcpy HtoD"}


def found(*kernels, traces=(A,)):
    return evaluated(part(traces=traces, kernels=kernels))["kernel_summary"].to_pylist()


def test_activities_are_summed_by_name():
    gemm, copy = found(
        activity(1, "compute", 0, 10, **GEMM),
        activity(2, "compute", 5, 35, **GEMM),  # overlaps the first: both count in full
        activity(3, "compute", 50, 70, **GEMM),
        activity(4, "memcpy", 70, 110, **COPY),
    )
    assert gemm == {
        "trace_id": A,
        "name": "void gemm<float>(int)",
        "kind": "compute",
        "short_name": "gemm",
        "count": 3,
        "time_ns": 60,  # 10 + 30 + 20
        "mean_ns": 20.0,
        "median_ns": 20.0,
        "min_ns": 10,
        "max_ns": 30,
        "std_ns": 10.0,  # √((10² + 10² + 0²) / 2)
        "pct": 60.0,  # of 60 + 40
        "cumulative_pct": 60.0,
    }
    assert (copy["time_ns"], copy["std_ns"], copy["cumulative_pct"]) == (40, None, 100.0)


def test_a_name_of_two_kinds_has_two_rows():
    rows = found(
        activity(1, "comm", 0, 10, name="x"),
        activity(2, "compute", 0, 30, name="x"),
    )
    assert [(r["kind"], r["pct"]) for r in rows] == [("compute", 75.0), ("comm", 25.0)]


def test_unknown_durations_count_but_take_no_time():
    (row,) = found(activity(1, "compute", 0, None, **GEMM), activity(2, "compute", 0, 8, **GEMM))
    assert (row["count"], row["time_ns"], row["mean_ns"]) == (2, 8, 8.0)


def test_shares_are_of_each_trace():
    rows = found(
        activity(1, "compute", 0, 1, **GEMM),
        {**activity(1, "compute", 0, 1000, **GEMM), "trace_id": B},
        traces=(A, B),
    )
    assert [(r["trace_id"], r["pct"]) for r in rows] == [(A, 100.0), (B, 100.0)]


def test_sums_beyond_int64_are_unknown():
    long = 2**62
    (row,) = found(*(activity(i, "compute", 0, long, **GEMM) for i in range(2)))
    assert row["time_ns"] is None  # 2 · 2⁶² = 2⁶³
    assert row["max_ns"] == long
