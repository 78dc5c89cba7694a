"""gpu_timeline, trace_timeline and idle_gaps: unions, and what is left of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from part_tables import A, B, activity, part

from tracehouse.analysis import summaries

TIMES = (
    "total_ns busy_ns idle_ns computation_ns comm_ns exposed_comm_ns memcpy_ns exposed_memcpy_ns"
).split()


def times(row):
    return {name.removesuffix("_ns"): row[name] for name in TIMES}


def rows(view, **tables):
    return summaries.evaluated(part(**tables))[view].to_pylist()


#            1000      1010      1020      1030      1040
# compute    |=========|                                    [1000, 1010)
# memset            |====|                                  [1008, 1012)
# comm            |==============|                          [1005, 1020)
# memcpy                       |=====|          |=====|     [1018, 1024) [1035, 1040)
ONE_DEVICE = (
    activity(1, "compute", 1000, 1010, stream=7),
    activity(2, "memset", 1008, 1012, stream=8),
    activity(3, "comm", 1005, 1020, stream=9),
    activity(4, "memcpy", 1018, 1024, stream=7),
    activity(5, "memcpy", 1035, 1040, stream=7),
)
ONE_DEVICE_TIMES = {
    "total": 40,  # 1040 - 1000
    "busy": 29,  # [1000, 1024) and [1035, 1040)
    "idle": 11,  # [1024, 1035)
    "computation": 12,  # [1000, 1012): compute and memset share 2
    "comm": 15,
    "exposed_comm": 8,  # [1012, 1020)
    "memcpy": 11,  # 6 + 5
    "exposed_memcpy": 9,  # [1020, 1024) and [1035, 1040)
}


@pytest.mark.parametrize("view", ["gpu_timeline", "trace_timeline"])
def test_overlap_counts_once_and_exposed_is_what_nothing_hides(view):
    (row,) = rows(view, kernels=ONE_DEVICE)
    assert times(row) == ONE_DEVICE_TIMES
    assert (row["start_ns"], row["end_ns"]) == (1000, 1040)


def test_percentages_are_of_total():
    (row,) = rows("gpu_timeline", kernels=ONE_DEVICE)
    percentages = {k.removesuffix("_pct"): v for k, v in row.items() if k.endswith("_pct")}
    assert percentages == {  # × 100 / 40
        "total": 100.0,
        "busy": 72.5,
        "idle": 27.5,
        "computation": 30.0,
        "comm": 37.5,
        "exposed_comm": 20.0,
        "memcpy": 27.5,
        "exposed_memcpy": 22.5,
    }


# device 0  |=========|                      compute [0, 10)
# device 1       |=========|                 comm [5, 15)
# device 1                      |=========|  memcpy [20, 30)
TWO_DEVICES = (
    activity(1, "compute", 0, 10),
    activity(2, "comm", 5, 15, device=1),
    activity(3, "memcpy", 20, 30, device=1),
)


def test_each_device_has_its_own_window():
    first, second = rows("gpu_timeline", kernels=TWO_DEVICES)
    assert (first["device"], first["total_ns"], first["busy_ns"]) == (0, 10, 10)
    assert (second["device"], second["total_ns"], second["busy_ns"]) == (1, 25, 20)
    assert second["exposed_comm_ns"] == 10  # the compute that hides half of it is on device 0


def test_a_trace_is_a_union_over_its_devices():
    (row,) = rows("trace_timeline", kernels=TWO_DEVICES)
    assert times(row) == {
        "total": 30,
        "busy": 25,  # [0, 15) and [20, 30); the sum over devices is 30
        "idle": 5,
        "computation": 10,
        "comm": 10,
        "exposed_comm": 5,  # [10, 15)
        "memcpy": 10,
        "exposed_memcpy": 10,
    }


def test_traces_do_not_touch_each_other():
    # The same times in two traces of one part; the second has a kernel that hides all of them.
    other = [{**row, "trace_id": B} for row in ONE_DEVICE]
    other.append({**activity(6, "compute", 0, 5000), "trace_id": B})
    first, second = rows("gpu_timeline", traces=(A, B), kernels=(*ONE_DEVICE, *other))
    assert times(first) == ONE_DEVICE_TIMES
    assert (second["busy_ns"], second["exposed_comm_ns"], second["total_ns"]) == (5000, 0, 5000)


def test_unknown_times_do_not_count():
    unknown = (
        activity(10, "compute", None, None),
        activity(11, "compute", 0, None),
        {**activity(12, "compute", None, None), "dur_ns": 900},
    )
    (row,) = rows("gpu_timeline", kernels=(*ONE_DEVICE, *unknown))
    assert times(row) == ONE_DEVICE_TIMES


def test_zero_length_sets_the_window_and_is_never_busy():
    # |           |=====|     lengths 0 at 0, 10 at [10, 20), 0 at 30
    drawn = (
        activity(1, "compute", 0, 0),
        activity(2, "compute", 10, 20),
        activity(3, "compute", 30, 30),
    )
    (row,) = rows("gpu_timeline", kernels=drawn)
    assert (row["total_ns"], row["busy_ns"], row["idle_ns"]) == (30, 10, 20)


def test_percentages_of_an_empty_window_are_unknown():
    (row,) = rows("gpu_timeline", kernels=(activity(1, "compute", 5, 5),))
    assert (row["total_ns"], row["busy_ns"]) == (0, 0)
    assert {v for k, v in row.items() if k.endswith("_pct")} == {None}


def test_every_trace_has_a_row():
    rejected = {"trace_id": B, "status": "rejected"}
    idle, unknown = rows("trace_timeline", traces=(A, rejected))
    assert idle["trace_id"] == A
    assert set(times(idle).values()) == {0}
    assert idle["busy_pct"] is None
    assert set(times(unknown).values()) == {None}  # nothing is known of a file that wasn't read


def test_activities_without_a_device_share_a_row():
    lost = (activity(1, "compute", 0, 10, device=None), activity(2, "compute", 5, 20, device=None))
    known, unknown = rows("gpu_timeline", kernels=(*lost, activity(3, "compute", 0, 5)))
    assert (known["device"], known["busy_ns"]) == (0, 5)
    assert (unknown["device"], unknown["busy_ns"]) == (None, 20)


def test_times_at_the_ends_of_int64_do_not_fail():
    top = 2**63 - 1
    drawn = (
        {**activity(1, "compute", -top, 0), "dur_ns": 10},
        activity(2, "compute", top - 5, top),
    )
    (row,) = rows("gpu_timeline", kernels=drawn)
    assert row["busy_ns"] == 15
    assert row["total_ns"] is None  # 2 · (2⁶³ - 1) has no place in a BIGINT


# stream 7  |=====|     |==|               1: [0, 10)   3: [20, 25)
# stream 8     |=====|                |==|  2: [5, 15)   4: [40, 45)
GAPS = (
    activity(1, "compute", 0, 10),
    activity(2, "comm", 5, 15),
    activity(3, "memcpy", 20, 25),
    activity(4, "compute", 40, 45),
)


def test_gaps_lie_between_the_stretches_of_the_union():
    found = rows("idle_gaps", kernels=GAPS)
    assert [(g["prev_kernel_id"], g["next_kernel_id"], g["ts_ns"], g["dur_ns"]) for g in found] == [
        (2, 3, 15, 5),
        (3, 4, 25, 15),
    ]
    assert {g["cause"] for g in found} == {None}


def test_the_activity_that_ends_last_opens_the_gap():
    # 1: [0, 100) outlives 2: [10, 20), which started later.
    drawn = (
        activity(1, "compute", 0, 100),
        activity(2, "comm", 10, 20),
        activity(3, "compute", 130, 140),
    )
    (gap,) = rows("idle_gaps", kernels=drawn)
    assert (gap["prev_kernel_id"], gap["ts_ns"], gap["dur_ns"]) == (1, 100, 30)


def test_no_gap_between_the_lanes_of_a_trace_with_two_devices_and_the_next_trace():
    drawn = [{**row, "trace_id": t} for t in (A, B) for row in TWO_DEVICES]
    found = rows("idle_gaps", traces=(A, B), kernels=drawn)
    assert [(g["trace_id"], g["device"], g["next_kernel_id"]) for g in found] == [
        (A, 1, 3),  # [15, 20)
        (B, 1, 3),
    ]


def test_another_device_does_not_close_a_gap():
    busy_elsewhere = activity(9, "compute", 0, 45, device=1)
    found = rows("idle_gaps", kernels=(*GAPS, busy_elsewhere))
    assert [(g["device"], g["next_kernel_id"]) for g in found] == [(0, 3), (0, 4)]


# TP00, device 0  |=========|         |====|   [0, 10) [20, 25)
# TP01, device 0       |=========|             [5, 15)
TWO_RANKS = (
    activity(1, "compute", 0, 10, rank_label="TP00"),
    activity(2, "comm", 5, 15, rank_label="TP01"),
    activity(3, "memcpy", 20, 25, rank_label="TP00"),
)


def test_ranks_of_a_merged_file_have_devices_of_their_own():
    first, second = rows("gpu_timeline", kernels=TWO_RANKS)
    assert (first["rank_label"], first["device"], first["busy_ns"]) == ("TP00", 0, 15)
    assert (second["rank_label"], second["device"], second["busy_ns"]) == ("TP01", 0, 10)
    assert second["exposed_comm_ns"] == 10  # what hides half of it is on another rank's device
    (whole,) = rows("trace_timeline", kernels=TWO_RANKS)
    assert (whole["busy_ns"], whole["exposed_comm_ns"]) == (20, 5)
    (gap,) = rows("idle_gaps", kernels=TWO_RANKS)
    assert (gap["rank_label"], gap["ts_ns"], gap["dur_ns"]) == ("TP00", 10, 10)


# Many small traces in one part: an example costs about as much as one trace.
TRACES = [f"{i:016x}" for i in range(12)]
DRAWN = st.lists(
    st.tuples(
        st.sampled_from(TRACES),
        st.sampled_from([0, 0, 0, 1]),  # device
        st.sampled_from(["compute", "comm", "memcpy", "memset"]),
        st.integers(0, 60),  # start
        st.one_of(st.none(), st.integers(0, 12)),  # duration
    ),
    max_size=100,
)
few = settings(max_examples=20)


def evaluated(drawn, shift=0):
    kernels = [
        {"trace_id": trace, "event_id": i, "device": device, "kind": kind}
        | {"ts_ns": start + shift, "dur_ns": duration}
        for i, (trace, device, kind, start, duration) in enumerate(drawn)
    ]
    found = summaries.evaluated(part(traces=TRACES, kernels=kernels))
    return {name: table.to_pylist() for name, table in found.items()}


def counted(spans):
    """Count the ticks themselves: spans are (kind, start, duration)."""

    def ticks(*kinds):
        return {t for k, s, d in spans if k in kinds for t in range(s, s + d)}

    comp, comm, copies = ticks("compute", "memset"), ticks("comm"), ticks("memcpy")
    total = max(s + d for _, s, d in spans) - min(s for _, s, _ in spans)
    busy = comp | comm | copies
    return {
        "total": total,
        "busy": len(busy),
        "idle": total - len(busy),
        "computation": len(comp),
        "comm": len(comm),
        "exposed_comm": len(comm - comp),
        "memcpy": len(copies),
        "exposed_memcpy": len(copies - comp - comm),
    }


def expected(drawn, lane_of):
    lanes = {}
    for trace, device, kind, start, duration in drawn:
        if duration is not None:
            lanes.setdefault(lane_of(trace, device), []).append((kind, start, duration))
    return {lane: counted(spans) for lane, spans in lanes.items()}


@few
@given(DRAWN)
def test_timelines_equal_counted_ticks(drawn):
    found = evaluated(drawn)
    devices = {(r["trace_id"], r["device"]): times(r) for r in found["gpu_timeline"]}
    assert devices == expected(drawn, lambda trace, device: (trace, device))
    traces = {r["trace_id"]: times(r) for r in found["trace_timeline"]}
    nothing = dict.fromkeys(TRACES, dict.fromkeys(ONE_DEVICE_TIMES, 0))
    assert traces == nothing | expected(drawn, lambda trace, device: trace)


@few
@given(DRAWN)
def test_parts_sum_and_gaps_add_up_to_idle(drawn):
    found = evaluated(drawn)
    for row in found["gpu_timeline"]:
        lane = (row["trace_id"], row["device"])
        exposed = row["exposed_comm_ns"] + row["exposed_memcpy_ns"]
        assert row["computation_ns"] + exposed == row["busy_ns"]
        assert row["busy_ns"] + row["idle_ns"] == row["total_ns"]
        assert row["busy_ns"] <= sum(d or 0 for t, g, _, _, d in drawn if (t, g) == lane)
        gaps = [g for g in found["idle_gaps"] if (g["trace_id"], g["device"]) == lane]
        assert sum(g["dur_ns"] for g in gaps) == row["idle_ns"]


@few
@given(DRAWN)
def test_a_gap_is_empty_and_bounded_by_its_activities(drawn):
    for gap in evaluated(drawn)["idle_gaps"]:
        lane = (gap["trace_id"], gap["device"])
        at, end = gap["ts_ns"], gap["ts_ns"] + gap["dur_ns"]
        spans = [(s, s + d) for t, g, _, s, d in drawn if (t, g) == lane and d is not None]
        assert not any(max(s, at) < min(e, end) for s, e in spans)
        _, _, _, start, duration = drawn[gap["prev_kernel_id"]]
        assert start + duration == at
        assert drawn[gap["next_kernel_id"]][3] == end


@few
@given(DRAWN, st.integers(-(10**18), 10**18))
def test_only_clock_columns_move_with_the_clock(drawn, shift):
    at_zero, moved = evaluated(drawn), evaluated(drawn, shift)
    for view, clocks in (("gpu_timeline", ("start_ns", "end_ns")), ("idle_gaps", ("ts_ns",))):
        for row in at_zero[view]:
            row.update({clock: row[clock] + shift for clock in clocks})
        assert moved[view] == at_zero[view]
