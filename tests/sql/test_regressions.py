"""The view `regressions`: which runs are compared, what is noise, what is a regression."""

from __future__ import annotations

import random
from statistics import NormalDist

import pytest
from gate_tables import drawn, judged, session, with_settings
from hypothesis import given, settings
from hypothesis import strategies as st

BUSY = ("busy_ns", "(all)")
STEADY = [100.0, 101, 99, 100, 102, 98, 100]


def rows_of(values, edit=None, **changed):
    trends, runs = drawn(values)
    if edit:
        edit(trends, runs)
    with session(trends, runs) as connection:
        if changed:
            with_settings(connection, **changed)
        return judged(connection)


def verdict(series, **changed):
    (row,) = rows_of({"job": {BUSY: series}}, **changed)
    return row["verdict"]


def test_median_and_mad_by_hand():
    """Five baseline runs.

    sorted 100 101 102 104 110: median 102; deviations 2 1 0 2 8: MAD 2
    spread = 148.26 * 2 / 102 * 5 / 4.2 = 3.46079 %
    z = (120 / 102 - 1) * 100 / (3.46079 * sqrt(1 + 1.570796 / 5)) = 17.64706 / 3.96740 = 4.44802
    One test at 5 %: the normal quantile 1.6449.
    """
    (row,) = rows_of({"job": {BUSY: [104, 100, 110, 102, 101, 120]}})
    assert row["verdict"] == "regression"
    assert (row["value"], row["baseline"], row["change"]) == (120, 102, 18)
    assert (row["baseline_runs"], row["tests"], row["run_id"]) == (5, 1, "job-005")
    assert row["change_pct"] == pytest.approx(17.64706, abs=1e-5)
    assert row["spread_pct"] == row["noise_pct"] == pytest.approx(3.46079, abs=1e-5)
    assert row["z"] == pytest.approx(4.44802, abs=1e-4)
    assert row["z_needed"] == pytest.approx(1.6449, abs=5e-4)


def test_three_newest_are_judged_by_their_median():
    """Median of 105 130 110 is 110; c = 1.5708 / 3, so z = 10 / (1 * sqrt(0.5236 + 0.31416))."""
    (row,) = rows_of({"job": {BUSY: [100] * 5 + [105, 130, 110]}}, newest_runs=3)
    assert (row["value"], row["baseline_runs"]) == (110, 5)
    assert row["z"] == pytest.approx(10.9255, abs=1e-4)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([*STEADY, 104], "steady"),  # less than 5 %
        ([*STEADY, 108], "regression"),
        ([*STEADY, 92], "improvement"),
        ([*STEADY, None], "gone"),
        ([100, 130, 80, 115, 90, 70, 108], "steady"),  # 8 % is within its noise
        ([100, 100, 100, 100, 108], "too_few"),
        ([None] * 6 + [108], "new"),
        ([0.0] * 6 + [108], "zero"),
    ],
)
def test_verdicts(series, expected):
    rows = rows_of({"job": {BUSY: series, ("total_ns", "(all)"): [7] * len(series)}})
    (row,) = [row for row in rows if row["metric"] == "busy_ns"]
    assert row["verdict"] == expected
    assert (row["why"] is None) == (expected in ("steady", "regression", "improvement"))


def test_a_rate_is_worse_when_it_falls():
    """Tokens per second of 100: a step that takes 5 % longer gives 95.24."""

    def rates(trends, runs):
        for row in trends:
            row |= {"metric": "tokens_per_s", "unit": "tokens/s", "worse": "down"}

    for value, expected in ((95.3, "steady"), (95.2, "regression"), (106, "improvement")):
        (row,) = rows_of({"job": {BUSY: [100.0] * 6 + [value]}}, rates)
        assert row["verdict"] == expected


def test_small_shares_are_not_judged_but_grown_ones_are():
    def shares(trends, runs):
        for row in trends:
            grown = row["subject"] == "grown" and row["run_id"] == "job-006"
            row["share_pct"] = 1.5 if grown else 0.5

    numbers = {("op_ns", subject): [1.0] * 6 + [3.0] for subject in ("small", "grown")}
    verdicts = {r["subject"]: r["verdict"] for r in rows_of({"job": numbers}, shares)}
    assert verdicts == {"small": "small", "grown": "regression"}


@pytest.mark.parametrize("count", [1, 8, 60, 400])
def test_the_more_is_looked_at_the_further_out(count):
    """The quantile of 5 % / count; DuckDB has none, so that the view approximates it."""
    numbers = {("op_ns", f"op{i}"): STEADY for i in range(count)}
    (needed,) = {row["z_needed"] for row in rows_of({"job": numbers})}
    assert needed == pytest.approx(NormalDist().inv_cdf(1 - 0.05 / count), abs=5e-4)


def test_noise_is_at_least_that_of_the_other_ops():
    """An op whose few runs happened to agree is not taken for one without noise."""
    wide = [100.0, 110, 90, 105, 95, 100]
    numbers = {("op_ns", f"op{i}"): [*wide, 100] for i in range(2)}
    numbers["op_ns", "lucky"] = [100.0] * 6 + [107]
    rows = {row["subject"]: row for row in rows_of({"job": numbers})}
    assert rows["lucky"]["spread_pct"] == 0
    assert rows["lucky"]["noise_pct"] == rows["op0"]["spread_pct"] > 5
    assert rows["lucky"]["verdict"] == "steady"


def test_baseline_is_the_last_good_runs_alike():
    """Of seven earlier runs one was cut short, one is of another device; two are further back."""

    def edit(trends, runs):
        runs[5] |= {"is_good": False, "status": "partial"}
        runs[4]["arch"] = "Y"

    series = [1.0, 1.0, 100, 100, 500, 900, 100, 100]
    (row,) = rows_of({"job": {BUSY: series}}, edit, baseline_runs=3, min_runs=3)
    assert (row["baseline"], row["baseline_runs"], row["verdict"]) == (100, 3, "steady")


def test_a_newest_run_that_was_not_read_whole_is_not_passed_over():
    def edit(trends, runs):
        runs[-1] |= {"is_good": False, "status": "rejected", "reason": "empty file"}

    (row,) = rows_of({"job": {BUSY: [*STEADY, 100]}}, edit)
    assert (row["metric"], row["verdict"], row["subject"]) == ("run", "unusable", "/job/007")
    assert row["why"] == "rejected: empty file"


def test_labels_do_not_touch_each_other():
    numbers = {BUSY: [*STEADY, 108]}
    alone = rows_of({"b": numbers})
    beside = rows_of({"a": {BUSY: [9.0] * 12}, "b": numbers})
    assert [row for row in beside if row["label"] == "b"] == alone


def many(seed: int, labels: int = 60) -> dict[str, dict[tuple[str, str], list[float]]]:
    """Draw jobs of 7 to 12 runs and one to three ops, each with a noise of its own."""
    rolled = random.Random(seed)
    jobs: dict[str, dict[tuple[str, str], list[float]]] = {}
    for job in range(labels):
        runs, noise = rolled.randint(7, 12), rolled.choice((0.001, 0.02, 0.2))
        jobs[f"job{job}"] = {
            ("op_ns", f"op{op}"): [
                rolled.gauss(100, 100 * noise) * (1.1 if run == runs - 1 and op == 0 else 1)
                for run in range(runs)
            ]
            for op in range(rolled.randint(1, 3))
        }
    return jobs


@settings(max_examples=4)
@given(st.integers(0, 2**32))
def test_order_of_rows_does_not_matter(seed):
    def shuffle(trends, runs):
        rolled = random.Random(seed + 1)
        rolled.shuffle(trends)
        rolled.shuffle(runs)

    jobs = many(seed)
    assert rows_of(jobs, shuffle) == rows_of(jobs)


@settings(max_examples=4)
@given(st.integers(0, 2**32))
def test_units_do_not_matter(seed):
    """A power of two scales floats exactly, so that verdict and z are the same to the bit."""
    factors = (2.0**-20, 0.5, 4.0, 2.0**30)
    jobs = many(seed)
    scaled = {
        label: {key: [factors[i % 4] * v for v in series] for key, series in numbers.items()}
        for i, (label, numbers) in enumerate(jobs.items())
    }
    rows = rows_of(jobs)
    assert {"regression", "steady"} <= {row["verdict"] for row in rows}
    for one, two in zip(rows, rows_of(scaled), strict=True):
        for name in ("verdict", "z", "z_needed", "noise_pct", "change_pct"):
            assert one[name] == two[name]
