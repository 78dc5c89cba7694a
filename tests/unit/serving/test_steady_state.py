"""The steady state of sequences of requests (inference.md §4.3), and of drawn runs."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracehouse
from tracehouse.serving.steady_state import (
    analytic_regions,
    level_of,
    steady_runs,
    steady_state,
)
from tracehouse.serving.window import workload

RAMP = [*range(1, 33), *[32] * 40, *range(31, 0, -1)]
DIPS = [2] * 4 + [5 if i in (14, 20, 26, 32, 38, 44) else 20 for i in range(4, 50)]
TABLE = {
    "a start": ([2] * 4 + [20] * 30, [(4, 34)]),
    "alternating": ([20, 2] * 5, [(0, 9)]),  # all gaps are of one step
    "a ramp": (RAMP, [(28, 75)]),
    "a ramp with a burst": ([*RAMP[:51], 64, *RAMP[52:]], [(28, 75)]),
    "dips": (DIPS, [(4, 50)]),
    "one request": ([1] * 12, [(0, 12)]),
    "an idle gap": ([16] * 8 + [0] * 3 + [16] * 8, [(0, 8), (11, 19)]),
}


def runs(requests, conc=None):
    found, _, fallback = steady_runs(np.array(requests, dtype=np.int64), conc)
    return found, fallback


@pytest.mark.parametrize("name", TABLE)
def test_the_sequences_of_the_reference(name):
    requests, expected = TABLE[name]
    assert runs(requests) == (expected, False)


def test_gaps_of_two_steps_are_closed_and_of_three_are_not():
    assert runs([8] * 6 + [1] * 2 + [8] * 6) == ([(0, 14)], False)
    assert runs([8] * 6 + [1] * 3 + [8] * 6) == ([(0, 6), (9, 15)], False)


def test_the_band_is_a_tenth_and_at_least_one():
    assert runs([100] * 20 + [90] * 5 + [89] * 5) == ([(0, 25)], False)
    assert runs([4] * 20 + [3] * 5 + [2] * 5) == ([(0, 25)], False)


def test_five_steps_are_too_few_and_the_middle_third_stands_in():
    # level 9: [0, 5) alone is in band; of 15 steps the middle third is [5, 10)
    assert runs([9] * 5 + [1] * 10) == ([(5, 10)], True)
    assert runs([3]) == ([(0, 1)], True)


def test_nothing_runs():
    assert runs([0, 0, -1]) == ([], False)
    assert runs([]) == ([], False)


def test_conc_is_the_level_where_so_many_ran():
    assert runs([4] * 10 + [8] * 10, conc=4) == ([(0, 20)], False)
    assert runs([4] * 10 + [8] * 10, conc=9) == ([(10, 20)], False)


def test_a_burst_in_a_short_run_is_no_level():
    # of 12 values the 95th percentile is the largest, 64
    assert runs([2, 8, 8, 8, 64, 8, 8, 8, 8, 2, 1, 1]) == ([(1, 9)], False)


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 100, 103])
def test_level_is_the_nearest_rank(count):
    values = np.arange(1, count + 1)
    assert level_of(values) == math.ceil(0.95 * count)


def plain_runs(requests, level):
    """Do the same by marking steps, closing gaps and looking for runs."""
    marks = ["x" if r > 0 and r >= level - max(1, level / 10) else " " for r in requests]
    text = "".join(marks)
    for gap in (1, 2):
        for i in range(len(text)):
            inside = text[i : i + gap + 2]
            if inside == "x" + " " * gap + "x":
                text = text[:i] + "x" * (gap + 2) + text[i + gap + 2 :]
    found, start = [], None
    for i, mark in enumerate(text + " "):
        if mark == "x" and start is None:
            start = i
        if mark == " " and start is not None:
            if i - start >= 6:
                found.append((start, i))
            start = None
    return found


@given(st.lists(st.integers(-1, 12), max_size=60))
def test_runs_are_those_of_the_plain_way(requests):
    array = np.array(requests, dtype=np.int64)
    found, level, fallback = steady_runs(array)
    if found and not fallback:
        assert found == plain_runs(requests, level)
    if level_of(array) and not fallback and plain_runs(requests, level_of(array)):
        assert level == level_of(array)


def test_absurd_requests():
    huge = 999_999_999_999_999_999
    assert runs([huge] * 10) == ([(0, 10)], False)
    assert runs([1] * 30 + [huge]) == ([(0, 31)], False)


def as_steps(*rows):
    names = ("trace_id", "step_id", "process", "phase", "r")
    columns = list(zip(*rows, strict=True)) or [()] * 5
    types = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.int64())
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


def regions(table, *columns):
    return [tuple(row[c] for c in columns) for row in table.to_pylist()]


def test_processes_have_their_own_sequences():
    # two workers in turn: even steps are p's, odd ones q's, which runs half as many requests
    rows = [("t", i, "pq"[i % 2], "decode", 8 - 4 * (i % 2)) for i in range(24)]
    found = regions(
        steady_state(as_steps(*rows)),
        "region_id",
        "process",
        "kind",
        "first_step",
        "last_step",
        "steps",
        "concurrency",
    )
    assert found == [(0, "p", "decode", 0, 22, 12, 8), (1, "q", "decode", 1, 23, 12, 4)]


def test_steps_without_requests_have_no_steady_state():
    rows = [("t", i, "p", "training", None) for i in range(9)]
    assert steady_state(as_steps(*rows)).num_rows == 0
    assert steady_state(as_steps()).num_rows == 0


def test_a_prefill_server():
    rows = [("t", i, "p", "prefill", 4) for i in range(9)]
    assert regions(steady_state(as_steps(*rows)), "kind", "steps") == [("prefill", 9)]


def test_the_order_of_rows_does_not_matter():
    rows = [("ts"[i % 2], i // 2, "p", "decode", 1 + i % 7) for i in range(60)]
    assert steady_state(as_steps(*rows)).equals(steady_state(as_steps(*rows[::-1])))


# What the benchmark's parameters say


def test_the_analytic_regions_of_a_run():
    # 640 prompts, 64 at once, 1024 tokens, R 0.8: groups end in N·819.2 to N·1024
    found = analytic_regions(9216, workload(64, 1024, 0.8, 640))
    assert [(r.kind, r.first, r.end) for r in found[:3]] == [
        ("ramp_up", 0, 64),
        ("completion", 819, 1024),
        ("completion", 1638, 2048),
    ]
    assert len([r for r in found if r.kind == "completion"]) == 10
    assert (found[10].first, found[10].end) == (8192, 9216)  # 10240, cut to the run
    assert (found[-1].kind, found[-1].first, found[-1].end) == ("mixed", 4096, 5120)
    assert not found[-1].fallback


def test_too_few_steps_for_the_recommended_ones():
    found = analytic_regions(200, workload(64, 1024, 0.8, 640))
    assert [(r.kind, r.first, r.end, r.fallback) for r in found] == [
        ("ramp_up", 0, 64, False),
        ("mixed", 64, 200, True),
    ]
    assert [r.kind for r in analytic_regions(30, workload(64, 1024, 0.8))] == ["ramp_up"]


# Drawn runs


@pytest.fixture(scope="module")
def serving(repo_root):
    import sys

    sys.path.insert(0, str(repo_root / "data"))
    try:
        from generators import serving
    finally:
        sys.path.pop(0)
    return serving


def found_in(serving, folder, requests, steps=None):
    path = folder / "drawn.json"
    path.write_text(serving.draw(requests, steps or serving.STEPS).text(), encoding="utf-8")
    trace = tracehouse.read(path)
    rows = regions(trace.steady_state, "kind", "first_step", "last_step", "concurrency", "fallback")
    return {kind: tuple(rest) for kind, *rest in rows}


PLAIN = {
    "ramp_up": (0, 2, 8, False),
    "mixed": (3, 15, 8, False),
    "ramp_down": (16, 19, 8, False),
}


def essential(found):
    return {kind: found[kind] for kind in PLAIN}


def test_the_run_as_it_is(serving, tmp_path):
    found = found_in(serving, tmp_path, serving.REQUESTS)
    assert essential(found) == PLAIN
    assert found["decode"] == (4, 6, 8, False)  # the longest run of decode steps
    assert found["prefill"] == (10, 11, 8, False)


def test_a_burst(serving, tmp_path):
    # eight more requests in step 8, for their prefill alone: 16 run
    burst = [serving.Request(8, 512, 8)] * 8
    assert essential(found_in(serving, tmp_path, [*serving.REQUESTS, *burst])) == PLAIN


def test_one_stalled_request(serving, tmp_path):
    # request D of step 3 pauses in 5 to 13: seven run
    requests = list(serving.REQUESTS)
    requests[6] = serving.Request(3, 512, 16, stalled=range(5, 14))
    assert essential(found_in(serving, tmp_path, requests)) == PLAIN


def test_two_idle_requests(serving, tmp_path):
    # both requests D pause in 8 and 9: six run, for two steps
    requests = list(serving.REQUESTS)
    requests[6] = requests[7] = serving.Request(3, 512, 16, stalled=range(8, 10))
    assert essential(found_in(serving, tmp_path, requests)) == PLAIN


def test_two_steps_without_any_request(serving, tmp_path):
    requests = [
        serving.Request(r.first, r.prompt, r.last, stalled=range(8, 10)) for r in serving.REQUESTS
    ]
    assert essential(found_in(serving, tmp_path, requests)) == PLAIN


def test_the_parameters_of_the_run(serving, tmp_path, repo_root):
    from tracehouse.analysis.settings import Settings
    from tracehouse.commands.read import read

    path = repo_root / "data/samples/serving.json.gz"
    trace = read(str(path), settings=Settings(workload=workload(8, 8, 0.5, 16)))
    rows = regions(trace.steady_state, "kind", "rule", "first_step", "last_step", "fallback")
    # groups end in 4 to 8 and 8 to 16; of two the first is the middle one: behind the ramp-up of
    # 8 steps nothing of it is left, so all the rest stands in
    assert [row for row in rows if row[1] == "analytic"] == [
        ("ramp_up", "analytic", 0, 7, False),
        ("completion", "analytic", 4, 7, False),
        ("completion", "analytic", 8, 15, False),
        ("mixed", "analytic", 8, 19, True),
    ]


def test_what_to_look_at(repo_root):
    trace = tracehouse.read(repo_root / "data/samples/serving.json.gz")
    rows = trace.steady_steps.to_pylist()
    assert [row["step_id"] for row in rows] == list(range(3, 16))
    looks = {row["step_id"]: row["look"] for row in rows}
    assert [s for s, look in looks.items() if look == "prefill"] == [3, 7, 10, 11, 14]
    # mean contexts of 4, 5, 6, 8, 9, 12, 13, 15: 4116/8 … 4682/8, 4685/8; the third quartile is
    # 0.25 of the way from the sixth to the seventh: (4674 + 0.25 · 8) / 8
    assert [s for s, look in looks.items() if look == "large_context"] == [13, 15]
