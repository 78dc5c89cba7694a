"""Which steps are written out: windows worked by hand (inference.md §4.2 to §4.4)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.serving.steady_state import steady_state
from tracehouse.serving.step_windows import chosen_windows
from tracehouse.serving.window import workload

PHASES = {"P": "prefill", "M": "mixed", "D": "decode", ".": "idle", "x": "diffusion"}


def as_steps(letters, requests=8, process="p", first=0):
    """Make steps of one process, a letter each; `requests` of each, or one number for all."""
    rows = [requests] * len(letters) if isinstance(requests, int) else requests
    running = [0 if letter == "." else r for letter, r in zip(letters, rows, strict=True)]
    return pa.table(
        {
            "trace_id": pa.array(["t"] * len(letters), pa.string()),
            "step_id": pa.array(range(first, first + len(letters)), pa.int64()),
            "process": pa.array([process] * len(letters), pa.string()),
            "phase": pa.array([PHASES[letter] for letter in letters], pa.string()),
            "r": pa.array(running, pa.int64()),
        }
    )


def windows(table, num_steps=32, load=None):
    """Return per kind the first and last step, and how many were wanted."""
    found = chosen_windows(table, steady_state(table, load), num_steps, load)
    assert all((np.diff(w.steps) > 0).all() and len(w.steps) for w in found)
    return {w.kind: (int(w.steps[0]), int(w.steps[-1]), w.wanted) for w in found}


def test_a_run_shorter_than_the_window_is_all_of_it():
    # 13 steps, five with prefill; decode runs of 3, 2, 2 and 1, prefill runs of 2 at most
    assert windows(as_steps("MDDDMDDMMDDMD")) == {
        "mixed": (0, 12, 32),
        "decode_only": (1, 3, 32),
        "prefilldecode": (7, 8, 32),
    }


def test_the_share_of_prefills_is_as_close_as_can_be():
    # 5 of 13 = 0.385. Of four neighbours one (0.25) or two (0.5) have a prefill: 0.5 is closer,
    # and steps 4 to 7 are the first that have two
    found = windows(as_steps("MDDDMDDMMDDMD"), 4)
    assert found["mixed"] == (4, 7, 4)
    assert found["decode_only"] == (1, 3, 4)


def test_of_equal_shares_the_one_with_the_most_requests():
    # one prefill in eight: 1/8 wanted. Windows of eight hold exactly one wherever they start;
    # the band takes 9 requests and more, and the requests are 10 in steps 11 to 18 alone
    letters = "MDDDDDDD" * 4
    requests = [9] * 11 + [10] * 8 + [9] * 13
    assert windows(as_steps(letters, requests), 8)["mixed"] == (11, 18, 8)


def test_equally_far_shares_above_and_below_are_equal():
    # 6 prefills in 12 steps: a half. Of three neighbours 1/3 and 2/3 are equally far from it, so
    # that the first window, 2/3, is taken, however such fractions are rounded
    assert windows(as_steps("MMDDMDMDMDMD"), 3)["mixed"] == (0, 2, 3)


def test_a_window_with_prefill_goes_before_a_closer_one_without():
    # one prefill in 41 steps; windows are raised to 41 steps: the whole run
    assert windows(as_steps("D" * 20 + "M" + "D" * 20), 4)["mixed"] == (0, 40, 41)
    # with a benchmark that says 1/29, 29 of them; the first with the prefill
    load = workload(32, 1024, 0.8)
    found = windows(as_steps("D" * 40 + "M" + "D" * 40, 32), 16, load)
    assert found["mixed"] == (12, 40, 29)


def test_the_parameters_of_the_benchmark_raise_the_mixed_window_alone():
    # inference §4.4: CONC 32, OSL 1024, R 0.8: 2·32/(1024·1.8) = 0.0347, one in 28.8
    load = workload(32, 1024, 0.8)
    table = as_steps(("M" + "D" * 28) * 20, 32)
    assert windows(table, 16, load) == {
        "mixed": (0, 28, 29),
        "decode_only": (1, 16, 16),
        "prefilldecode": (0, 0, 16),
    }
    assert windows(table, 256, load)["mixed"][2] == 256


def test_256_steps_of_the_benchmark_hold_nine_prefills():
    # 8.9 are expected: of 8 (every 29th step, from step 1 on) and 9 the latter is closer
    load = workload(32, 1024, 0.8)
    table = as_steps(("M" + "D" * 28) * 20, 32)
    (first, last, _) = windows(table, 256, load)["mixed"]
    assert sum(step % 29 == 0 for step in range(first, last + 1)) == 9


def test_a_ratio_above_one_is_one():
    # CONC 256, OSL 128: two prefills a step; the window with the most steps with prefill
    load = workload(256, 128, 1)
    assert windows(as_steps("DDMDDMMDDD", 256), 3, load)["mixed"] == (4, 6, 3)


def test_idle_steps_are_in_no_share():
    # two idle steps within the run: it has 10 busy steps, five with prefill, a half; the first six
    # steps have four busy ones, two with prefill: a half too
    table = as_steps("MDMD..MMDDMD")
    assert windows(table, 6)["mixed"] == (0, 5, 6)
    assert windows(as_steps("DDDD..DDDDD"))["decode_only"] == (6, 10, 32)


def test_a_run_of_one_phase():
    assert windows(as_steps("D" * 40)) == {"decode_only": (0, 31, 32)}
    assert windows(as_steps("P" * 40)) == {"mixed": (0, 31, 32), "prefilldecode": (0, 31, 32)}
    assert windows(as_steps("x" * 9)) == {"mixed": (0, 8, 32)}


def test_the_largest_run_of_all_processes():
    # p: 10 steps, two with prefill; q: 20 steps, one with prefill; the reference is of both
    one, other = as_steps("MMDDDDDDDD"), as_steps("D" * 19 + "M", process="q", first=10)
    table = pa.concat_tables([one, other])
    (mixed, decode, prefill) = chosen_windows(table, steady_state(table), 4)
    assert (mixed.reference, mixed.wanted) == (Fraction(3, 30), 10)
    assert mixed.steps.tolist() == list(range(20, 30))
    assert decode.steps.tolist() == [10, 11, 12, 13]
    assert prefill.steps.tolist() == [29]


def test_without_a_steady_run_the_middle_third():
    table = as_steps("MDDDDDDDDDDDDDD", [9] * 5 + [1] * 10)  # 15 steps: [5, 10)
    (window,) = chosen_windows(table, steady_state(table), 32)
    assert (window.kind, window.steps.tolist(), window.fallback) == (
        "decode_only",
        [5, 6, 7, 8, 9],
        True,
    )


@pytest.mark.parametrize("letters", ["", ".....", "........."])
def test_nothing_runs(letters):
    assert windows(as_steps(letters)) == {}


@given(st.lists(st.sampled_from("MDD.P"), min_size=7, max_size=60), st.integers(1, 70))
def test_the_mixed_window_is_the_best_of_all(letters, num_steps):
    table = as_steps(letters)
    regions = steady_state(table)
    found = {w.kind: w for w in chosen_windows(table, regions, num_steps)}
    if "mixed" not in found:
        return
    window = found["mixed"]
    runs = [row for row in regions.to_pylist() if row["kind"] not in ("ramp_up", "ramp_down")]
    run = max(runs, key=lambda row: row["steps"])
    steps = range(run["first_step"], run["last_step"] + 1)

    def cost(first):
        own = [letters[i] for i in steps if first <= i < first + window.wanted]
        prefills = sum(letter in "MP" for letter in own)
        busy = max(sum(letter != "." for letter in own), 1)
        return prefills == 0, abs(Fraction(prefills, busy) - window.reference)

    starts = [i for i in steps if i + window.wanted <= steps.stop] or [steps.start]
    best = min(map(cost, starts))
    assert cost(window.steps[0]) == best
