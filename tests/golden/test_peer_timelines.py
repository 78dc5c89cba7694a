"""`trace_timeline` against the peer's gpu_timeline.csv; docs/differences.md has the exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import peer

# Types that differ by more than a millionth of the total, by the kind of difference.
BEFORE_WINDOW = {
    trace: {"computation_time", "busy_time", "idle_time", "total_time"}
    for trace in (
        "h100/Qwen_Qwen1.5-0.5B-Chat__1016005",
        "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005",
    )
}
ROUNDED = {"inference/vllm_decode_full/graph_execution": {"idle_time"}}


def times(activities, interval):
    """Every type of the peer's timeline, by the definitions of perf_models B4."""

    def busy(*kinds):
        return peer.covered(interval(a.span) for a in activities if a.kind in kinds)

    spans = [interval(activity.span) for activity in activities]
    computation, comm = busy("compute", "memset"), busy("comm")
    either, all_busy = (
        busy("compute", "memset", "comm"),
        busy("compute", "memset", "comm", "memcpy"),
    )
    total = max(end for _, end in spans) - min(start for start, _ in spans)
    return {
        "computation_time": computation,
        "exposed_comm_time": either - computation,
        "exposed_memcpy_time": all_busy - either,
        "busy_time": all_busy,
        "idle_time": total - all_busy,
        "total_time": total,
        "total_comm_time": comm,
        "total_memcpy_time": busy("memcpy"),
    }


def ours(case):
    (row,) = case.rows("trace_timeline")
    columns = {
        name: f"{name.removesuffix('_time').removeprefix('total_')}_ns"
        for name in peer.timeline(case.report)
    }
    return {name: row[column] for name, column in columns.items()}


def test_every_real_trace_is_analysed(shared_traces, archive):
    captures = [path for path in shared_traces.rglob("*") if path.parent.name == "capture_traces"]
    assert archive.captures == len(captures) == 6  # three traces and their lists
    files = {path.name for path in shared_traces.rglob("*.json.gz") if path not in captures}
    assert {Path(r.path).name: r.status for r in archive.results} == dict.fromkeys(files, "ok")


def test_every_report_is_compared(shared_traces):
    for name in ("gpu_timeline", "ops_summary"):
        found = {path.parent for path in shared_traces.rglob(f"{name}.csv")}
        assert found == {peer.report_folder(shared_traces, trace) for trace in peer.TRACES}


@pytest.mark.parametrize("trace", peer.TRACES)
def test_timeline(case_of, trace):
    case = case_of(trace)
    mine, theirs = ours(case), peer.timeline(case.report)
    linked = [activity for activity in case.activities if activity.link != "none"]
    # Ours counts every activity, in ns; the peer's those that have a launch, in doubles of µs.
    assert mine == times(case.activities, lambda span: span.exact)
    in_doubles = times(linked, lambda span: span.doubles)
    assert theirs == pytest.approx(in_doubles, rel=peer.EXACT, abs=peer.EXACT)
    # So the activities explain a difference if some have no launch, else the arithmetic does.
    room = peer.SIZE * mine["total_time"]
    differing = {name for name in theirs if abs(mine[name] - 1_000 * theirs[name]) > room}
    assert differing == BEFORE_WINDOW.get(trace, set()) | ROUNDED.get(trace, set())
    assert (len(linked) < len(case.activities)) == (trace in BEFORE_WINDOW)


@pytest.mark.parametrize(
    ("trace", "activities", "kernels", "time_ns", "ids", "first_id"),
    [
        # activities without launch and all, time, their correlation ids, the first id of any call
        (
            "h100/Qwen_Qwen1.5-0.5B-Chat__1016005",
            1_707,
            509,
            13_741_827,
            (675_771, 682_741),
            682_747,
        ),
        ("mi300/Qwen_Qwen1.5-0.5B-Chat__1016005", 1_517, 463, 13_318_864, (48_734, 49_484), 49_485),
    ],
)
def test_kernels_launched_before_the_window(
    case_of, trace, activities, kernels, time_ns, ids, first_id
):
    case = case_of(trace)
    before = [activity for activity in case.activities if activity.link == "none"]
    linked = [activity for activity in case.activities if activity.link != "none"]
    assert (len(case.activities), len(before)) == (activities, kernels)
    assert min(case.call_ids) == first_id
    assert (min(a.correlation for a in before), max(a.correlation for a in before)) == ids
    # They ran before the first linked one, and none overlaps another.
    assert max(a.span.exact[1] for a in before) <= min(a.span.exact[0] for a in linked)
    assert peer.covered(a.span.exact for a in before) == time_ns
    assert sum(int(1_000 * a.span.dur) for a in before) == time_ns
    assert ours(case)["busy_time"] - peer.covered(a.span.exact for a in linked) == time_ns


def test_the_idle_time_that_doubles_make(case_of):
    # 433 gaps: 430 of 1 ns, which a step of 0.977 ns makes 0, 1 or 2 steps, and three others
    case = case_of("inference/vllm_decode_full/graph_execution")
    assert ours(case)["idle_time"] == 430 * 1 + 10_081 + 11_681 + 3_281  # 25,473
    others = 10.0810546875 + 11.681640625 + 3.2802734375
    steps = (42 * 0 + 324 * 1 + 64 * 2) / 1_024
    assert peer.timeline(case.report)["idle_time"] == pytest.approx(others + steps, rel=peer.EXACT)
