"""Which steps of a serving benchmark to profile: the reference's table, and what always holds."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.errors import UsageError
from tracehouse.serving.window import raised_steps, window_of, workload

# NUM_PROMPTS, CONC, OSL, R; avg, total, prompts, decode-only raw and shown, ratio raw and shown,
# ceil(1/ratio), max_iters raw and clamped, delay_iters raw and clamped, the recommended region.
ROWS = [
    (640, 64, 1024, 0.8,
     "921.6", 9216, 640, 8576, 8576, "5/72", "5/72", 15, 256, 256, 4480, 4480, (4096, 5120)),
    (320, 32, 1024, 0.8,
     "921.6", 9216, 320, 8896, 8896, "5/144", "5/144", 29, 512, 512, 4352, 4352, (4096, 5120)),
    (2560, 256, 128, 1,
     128, 1280, 2560, -1280, 0, 2, 1, 1, 8, 32, 636, 624, (640, 640)),
    (20480, 2048, 1024, 0.8,
     "921.6", 9216, 20480, -11264, 0, "20/9", 1, 1, 8, 32, 4604, 4592, (4096, 5120)),
    (10, 1, 4096, 0.5,
     3072, 30720, 10, 30710, 30710, "1/3072", "1/3072", 3072, 65536, 1024, -17408, 14848,
     (10240, 20480)),
    (10, 1, 8, 0,
     4, 40, 10, 30, 30, "1/4", "1/4", 4, 128, 40, -44, 1, (0, 40)),
    (40, 4, 512, 0.5,
     384, 3840, 40, 3800, 3800, "1/96", "1/96", 96, 2048, 1024, 896, 1408, (1280, 2560)),
    (1280, 128, 8192, 1,
     8192, 81920, 1280, 80640, 80640, "1/64", "1/64", 64, 1024, 1024, 40448, 40448,
     (40960, 40960)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row[:4])))
def test_every_column_of_the_table(row):
    prompts, conc, osl, r, avg, total, prefills, raw_decode, decode, raw_ratio, ratio = row[:11]
    least, raw_max, max_iters, raw_delay, delay, region = row[11:]
    load = workload(conc, osl, r, prompts)
    assert load.avg_osl == Fraction(avg)
    assert load.total_steps == total
    assert load.num_prompts == prefills
    assert load.prefill_decode_steps == min(prefills, total)
    assert (load.decode_only_steps_raw, load.decode_only_steps) == (raw_decode, decode)
    assert (load.ratio_raw, load.ratio) == (Fraction(raw_ratio), Fraction(ratio))
    assert load.min_window_steps == least
    window = window_of(load)
    assert (window.max_iters_raw, window.max_iters) == (raw_max, max_iters)
    assert (window.delay_iters_raw, window.delay_iters) == (raw_delay, delay)
    assert load.group == 5
    assert load.completion_range(load.group) == region


def test_the_ratios_of_the_table_in_decimals():
    ratios = [f"{float(workload(c, o, r, n).ratio_raw):.6f}" for n, c, o, r, *_ in ROWS]
    assert ratios == [
        "0.069444", "0.034722", "2.000000", "2.222222", "0.000326", "0.250000", "0.010417",
        "0.015625",
    ]  # fmt: skip


def test_completion_ranges_of_the_first_row():
    load = workload(64, 1024, 0.8, 640)
    assert load.groups == 10
    assert [tuple(map(float, load.completion_range(n))) for n in (1, 2, 3, 10)] == [
        (819.2, 1024), (1638.4, 2048), (2457.6, 3072), (8192, 10240),
    ]  # fmt: skip


def test_steps_with_a_prefill_in_the_first_rows_window():
    load = workload(64, 1024, 0.8, 640)
    window = window_of(load)
    assert (window.delay_iters, window.delay_iters + window.max_iters) == (4480, 4736)
    assert window.max_iters * load.ratio == Fraction(160, 9)  # 256 · 5/72 = 17.78
    assert (window.max_reason, window.delay_reason) == ("", "")


def test_a_window_that_could_miss_every_prefill_is_raised():
    load = workload(32, 1024, 0.8)  # 921.6 / 32 = 28.8
    assert raised_steps(16, load) == 29
    assert raised_steps(256, load) == 256
    assert round(float(256 * load.ratio), 1) == 8.9
    assert raised_steps(16, workload(256, 128, 1)) == 16  # a prefill in every step


def test_ten_prompts_a_slot_by_default():
    assert workload(64, 1024, 0.8) == workload(64, 1024, 0.8, 640)


def test_r_is_the_share_of_the_shortest_output():
    assert workload(1, 100, 1).avg_osl == 100  # every output is OSL long
    assert workload(1, 100, 0).avg_osl == 50  # uniform from 0 to OSL


@pytest.mark.parametrize(
    ("prompts", "groups", "group"),
    [(3, 0, 1), (4, 1, 1), (8, 2, 1), (12, 3, 2), (19, 4, 2), (20, 5, 5), (400, 100, 5)],
)
def test_the_middle_group_of_fewer_than_five(prompts, groups, group):
    load = workload(4, 1000, 1, prompts)
    assert (load.groups, load.group) == (groups, group)
    # 16·1000/4 = 4,000 → 1,024, at most the 250 steps a prompt
    window = window_of(load)
    assert window.max_iters == min(1024, 250 * prompts)
    assert window.delay_iters_raw == 1000 * group - 2000


@pytest.mark.parametrize(("given_r", "r"), [(1.5, 1), (-0.25, 0), (1, 1), (0, 0), (0.1, "1/10")])
def test_r_outside_0_to_1_is_clamped(given_r, r):
    load = workload(8, 100, given_r)
    assert load.r == Fraction(r)
    assert load.is_r_clamped == (load.r != Fraction(str(given_r)))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 1, 1), "CONC"), ((-4, 1, 1), "CONC"), ((1, 0, 1), "OSL"), ((1, -1, 1), "OSL"),
        ((1, 1, 1, 0), "NUM_PROMPTS"), ((1, 1, 1, -3), "NUM_PROMPTS"), ((10**10, 1, 1), "CONC"),
        ((1, 1, math.nan), "R"), ((1, 1, math.inf), "R"),
    ],
)  # fmt: skip
def test_what_is_no_benchmark(arguments, name):
    with pytest.raises(UsageError, match=f"^{name} must be "):
        workload(*arguments)


def test_why_a_value_was_clamped():
    assert window_of(workload(256, 128, 1)).max_reason == "at least 32 steps"
    assert "half of the clamped" in window_of(workload(256, 128, 1)).delay_reason
    assert window_of(workload(1, 4096, 0.5)).max_reason.startswith("at most 1,024 steps")
    short = window_of(workload(1, 8, 0))
    assert short.max_reason == "the whole run has 40 steps"
    assert short.delay_reason == "the first CONC = 1 steps are the ramp-up"
    # 2 groups of 100 tokens, 200 steps; 16·100/10 = 160 → delay 1·100 − 80 = 20
    assert window_of(workload(10, 100, 1, 20)).delay_reason == ""
    # 1.9 groups, 19·55/10 = 104 steps (R 0.1); 160 → 104; delay 55 − 52 = 3, raised to CONC
    late = window_of(workload(10, 100, 0.1, 19))
    assert (late.max_iters, late.delay_iters) == (104, 10)
    assert "ramp-up" in late.delay_reason
    # 4 prompts, 1 at once, of 64 to 64 tokens: 256 steps, group 2 ends at 128; 1,024 → 256;
    # delay 128 − 128 = 0, raised to CONC = 1
    assert window_of(workload(1, 64, 1, 4)).delay_iters == 1
    # one group of 999/500 slots: 64·1.998 = 127 steps; 32 of them; delay 64 − 16 = 48 → CONC = 500
    assert window_of(workload(500, 64, 1, 999)).delay_iters == 500


def test_a_window_that_would_pass_the_end_is_moved_back():
    # 12 prompts, 10 at once, 100 tokens each: 120 steps, 1 group, ends at 100;
    # 160 → 120 steps fill the run, and none is left after the ramp-up of 10
    window = window_of(workload(10, 100, 1, 12))
    assert (window.max_iters, window.delay_iters) == (120, 10)
    # 49 prompts, 49 at once, 100 each: 100 steps; 33 of them around step 100: 83.5 → 84 → 67
    window = window_of(workload(49, 100, 1, 49))
    assert (window.max_iters, window.delay_iters) == (33, 67)
    assert window.delay_reason == "the window must end with the run"


loads = st.builds(
    workload,
    conc=st.integers(1, 5_000),
    osl=st.integers(1, 100_000),
    r=st.floats(0, 1) | st.sampled_from([0, 1, 0.5, 0.8]),
    num_prompts=st.none() | st.integers(1, 100_000),
)


@given(loads)
def test_the_kinds_of_steps_sum_to_all(load):
    assert load.num_prompts + load.decode_only_steps_raw == load.total_steps
    assert load.prefill_decode_steps + load.decode_only_steps == load.total_steps
    assert load.prefill_decode_steps / load.total_steps == load.ratio


@given(loads)
def test_the_clamps_hold(load):
    window = window_of(load)
    total = math.floor(load.total_steps)
    assert 1 <= window.max_iters <= min(1024, max(1, total))
    assert window.max_iters >= min(32, max(1, total))
    assert load.conc <= window.delay_iters <= max(load.conc, total - window.max_iters)
    assert 0 < load.ratio <= 1
    assert (load.min_window_steps - 1) * load.ratio < 1 <= load.min_window_steps * load.ratio
    assert bool(window.max_reason) == (window.max_iters != round(window.max_iters_raw))
    rounded = math.floor(window.delay_iters_raw + Fraction(1, 2))
    assert bool(window.delay_reason) == (window.delay_iters != rounded)


@given(loads, st.integers(1, 50))
def test_completion_ranges_grow(load, group):
    start, end = load.completion_range(group)
    assert start == group * load.completion_range(1)[0]
    assert start <= group * load.avg_osl <= end
