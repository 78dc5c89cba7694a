"""The sums of a comparison: parts add up to the whole, and a side does not differ from itself."""

from __future__ import annotations

from collections import Counter, defaultdict

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehouse.commands.compare_sums import LEVELS, compared
from tracehouse.warehouse.queries import load_queries

ARROW = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
}
KEY = ("level", "side", "name", "shapes", "types", "kind")


def table(name, rows):
    """Make a table with the columns that the query of that name states; what is not given: NULL."""
    columns = load_queries("compare_side")[name].view.columns
    return pa.table(
        {c.name: pa.array([row.get(c.name) for row in rows], ARROW[c.type]) for c in columns}
    )


def side(*traces):
    """Make a side of traces, each (trace_id, busy, window, steps, activities, calls)."""
    return {
        "traces": table(
            "traces",
            [
                {"trace_id": t, "busy_ns": busy, "window_ns": window, "steps": steps}
                for t, busy, window, steps, _, _ in traces
            ],
        ),
        "activities": table(
            "activities", [{"trace_id": t, **row} for t, *_, rows, _ in traces for row in rows]
        ),
        "calls": table("calls", [{"trace_id": t, **row} for t, *_, rows in traces for row in rows]),
        "phases": table("phases", []),
    }


def work(op, kernel, time_ns, activities=1, place=1, **more):
    has_op = op != "(no op)"
    row = {"op": op, "has_op": has_op, "kernel": kernel, "short_name": kernel, "kind": "compute"}
    row |= {"category": "c" if has_op else "(no op)", "phase": "(no step)", "untimed": 0}
    row |= {"place": place if has_op else None, "activities": activities, "time_ns": time_ns}
    return row | more


def call(op, calls=1, **more):
    row = {"op": op, "category": "c" if op != "(no op)" else "(no op)", "phase": "(no step)"}
    return row | {"calls": calls, "limited_calls": 0, "limited_ns": 0} | more


def parts_of(rows, level):
    return {row["name"]: row for row in rows.to_pylist() if row["level"] == level}


def test_a_worked_example():
    """Two traces a side.

             A1   A2   mean      B1   B2   mean     difference
    mm       10   11   10.5      20   20   20       9 or 10
    (no op)   4    4    4         -    -    -      -4

    Running sums of A by name: (no op) 8, mm 29; halves rounded up: 4, 15. So mm is 15 - 4 = 11.
    """
    a = side(
        ("a1", 12, 20, 0, [work("mm", "x", 10), work("(no op)", "z", 4)], [call("mm")]),
        ("a2", 15, 30, 0, [work("mm", "x", 11), work("(no op)", "z", 4)], [call("mm")]),
    )
    b = side(
        ("b1", 20, 40, 0, [work("mm", "y", 20, activities=2)], [call("mm", 2)]),
        ("b2", 20, 40, 0, [work("mm", "y", 20, activities=2)], [call("mm", 2)]),
    )
    totals, parts = compared([a, b])
    ops = parts_of(parts, "op")
    mm, none = ops["mm"], ops["(no op)"]
    assert (mm["base_ns"], mm["side_ns"], mm["diff_ns"], mm["place"]) == (11, 20, 9, 1)
    assert (none["base_ns"], none["side_ns"], none["diff_ns"]) == (4, 0, -4)
    assert (mm["status"], none["status"]) == ("both", "vanished")
    # 10.5 ns a call and one call more: 10 or 11 ns of the 9; the calls themselves are no slower
    assert (mm["base_calls"], mm["side_calls"]) == (1, 2)
    assert (mm["base_call_ns"], mm["side_call_ns"]) == (10.5, 10)
    assert (mm["from_calls_ns"] + mm["from_per_call_ns"], mm["cause"]) == (9, "more calls")
    assert mm["explains_pct"] == pytest.approx(100 * 9 / 5)
    assert (mm["base_median_ns"], mm["base_mad_ns"]) == (10.5, 0.5)
    assert (mm["base_min_ns"], mm["base_max_ns"], mm["is_apart"]) == (10, 11, True)
    assert (mm["base_sum_ns"], mm["side_sum_ns"]) == (21, 40)
    kernels = parts_of(parts, "kernel")
    assert (kernels["x"]["status"], kernels["x"]["side_kernels"]) == ("renamed", ["y"])
    assert kernels["z"]["status"] == "vanished"
    assert {row["part"]: (row["base_ns"], row["side_ns"]) for row in totals.to_pylist()} == {
        "kernel_time": (15, 20),
        "overlap": (-1, 0),  # (12 + 15) / 2 is 13.5, 14 when rounded
        "busy": (14, 20),
        "idle": (11, 20),
        "window": (25, 40),
    }


def renamed(base, other):
    """Return which kernel of a base each of another side stands beside, by name."""
    _, parts = compared([side(("a", 0, 0, 0, base, [])), side(("b", 0, 0, 0, other, []))])
    return {
        name: (row["status"], row["side_kernels"])
        for name, row in parts_of(parts, "kernel").items()
    }


def test_as_many_names_pair_by_place():
    found = renamed(
        [work("mm", "fill_a", 1, place=1), work("mm", "gemm_a", 9, place=2)],
        [work("mm", "fill_b", 8, place=1), work("mm", "gemm_b", 2, place=2)],
    )
    assert found == {"fill_a": ("renamed", ["fill_b"]), "gemm_a": ("renamed", ["gemm_b"])}


def test_more_names_pair_by_time():
    found = renamed(
        [work("mm", "gemm_a", 9, place=1)],
        [work("mm", "fill_b", 1, place=1), work("mm", "gemm_b", 8, place=2)],
    )
    assert found == {"gemm_a": ("renamed", ["gemm_b"]), "fill_b": ("appeared", ["fill_b"])}


def test_what_is_not_paired():
    """Other shapes, another kind, work without an op; the same name stays by itself."""
    found = renamed(
        [
            work("mm", "a", 1, shapes="[1]"),
            work("mm", "copy", 1, shapes="[2]", kind="memcpy"),
            work("(no op)", "n", 1),
            work("mm", "same", 1, shapes="[1]"),
        ],
        [
            work("mm", "b", 1, shapes="[3]"),
            work("mm", "c", 1, shapes="[2]"),
            work("(no op)", "m", 1),
            work("mm", "same", 1, shapes="[1]"),
        ],
    )
    assert {name: status for name, (status, _) in found.items()} == {
        **{"a": "vanished", "copy": "vanished", "n": "vanished", "same": "both"},
        **{"b": "appeared", "c": "appeared", "m": "appeared"},
    }


def test_without_an_op_a_kernel_follows_its_name():
    found = renamed(
        [work("mm", "gemm_a", 9), work("(no op)", "gemm_a", 5)],
        [work("mm", "gemm_b", 8), work("(no op)", "gemm_b", 4)],
    )
    assert found == {"gemm_a": ("renamed", ["gemm_b"])}


def test_roofline_of_an_op_needs_all_its_calls():
    def with_calls(limited):
        calls = [call("mm", 2, limited_calls=limited, limited_ns=50, roofline_ns=20.0)]
        return side(("t", 80, 80, 0, [work("mm", "x", 80)], calls))

    _, parts = compared([with_calls(2), with_calls(1)])
    op, category = parts_of(parts, "op")["mm"], parts_of(parts, "category")["c"]
    assert (op["base_roofline_pct"], op["side_roofline_pct"]) == (40, None)
    assert op["roofline_diff_pct"] is None
    assert category["side_roofline_pct"] == 40  # of the calls that have one


def test_per_step():
    a = side(("a", 30, 60, 3, [work("mm", "x", 30)], [call("mm", 3)]))
    b = side(("b", 20, 60, 4, [work("mm", "x", 20)], [call("mm", 4)]))
    totals, parts = compared([a, b], per="step")
    mm = parts_of(parts, "op")["mm"]
    assert (mm["base_ns"], mm["side_ns"], mm["base_calls"], mm["side_calls"]) == (10, 5, 1, 1)
    assert [row["base_ns"] for row in totals.to_pylist()] == [10, 0, 10, 10, 20]


def test_an_unknown_window_stays_unknown():
    a = side(("a", 30, None, 0, [], []))
    totals, parts = compared([a, side(("b", 20, 40, 0, [], []))])
    rows = {row["part"]: (row["base_ns"], row["side_ns"], row["diff_ns"]) for row in
            totals.to_pylist()}  # fmt: skip
    assert rows["window"] == (None, 40, None)
    assert rows["idle"] == (None, 20, None)
    assert parts.num_rows == 0


WORD = st.sampled_from(["p", "q", "r"])
MAYBE = st.sampled_from([None, "[1]", "[2]"])
TIME = st.integers(0, 10**15)


@st.composite
def sides(draw, most_traces=3):
    traces = []
    for number in range(draw(st.integers(1, most_traces))):
        keyed = {}
        for _ in range(draw(st.integers(0, 6))):
            op = draw(st.sampled_from(["mm", "add", "(no op)"]))
            shapes = draw(MAYBE) if op != "(no op)" else None
            more = {"shapes": shapes, "phase": draw(st.sampled_from(["decode", "(no step)"]))}
            more |= {"kind": draw(st.sampled_from(["compute", "memset"]))}
            row = work(op, draw(WORD), draw(TIME), draw(st.integers(1, 5)), draw(st.integers(1, 3)))
            row |= more
            keyed[tuple(row[k] for k in ("op", "kernel", *more))] = row
        calls = {
            (row["op"], row["shapes"], row["phase"]): call(
                row["op"], shapes=row["shapes"], phase=row["phase"]
            )
            for row in keyed.values()
        }
        busy = draw(TIME)
        traces.append(
            (f"t{number}", busy, busy + draw(TIME), draw(st.integers(1, 9)), [*keyed.values()],
             [*calls.values()])
        )  # fmt: skip
    return side(*traces)


PER = st.sampled_from(["trace", "step"])
FEWER = settings(max_examples=max(1, settings.default.max_examples // 4))  # each is dear


def sums(parts, column):
    found = defaultdict(int)
    for row in parts.to_pylist():
        found[row["level"], row["side"]] += row[column]
    return found


@FEWER
@given(st.lists(sides(), min_size=2, max_size=3), PER, st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole_whatever_the_order_of_rows(given_sides, per, draw):
    totals, parts = compared(given_sides, per=per)
    whole = {(row["side"], row["part"]): row for row in totals.to_pylist()}
    keys = Counter(tuple(row[k] for k in KEY) for row in parts.to_pylist())
    assert set(keys.values()) <= {1}
    for column in ("base_ns", "side_ns", "diff_ns"):
        of_parts = sums(parts, column)
        for number in range(1, len(given_sides)):
            kernel, overlap, busy, idle, window = (
                whole[number, part][column]
                for part in ("kernel_time", "overlap", "busy", "idle", "window")
            )
            assert {of_parts[level, number] for level in LEVELS} == {kernel}
            assert (kernel + overlap, busy + idle) == (busy, window)
    check_means(given_sides, parts, per)
    shuffled = [
        {name: rows.take(order(draw, rows.num_rows)) for name, rows in tables.items()}
        for tables in given_sides
    ]
    assert compared(shuffled, per=per) == (totals, parts)


def order(draw, count):
    return pa.array(draw.sample(range(count), count), pa.int64())


def check_means(given_sides, parts, per):
    """Each mean is within a nanosecond, and a difference is of calls and of time per call."""
    divisors = [
        sum(s["traces"]["steps"].to_pylist()) if per == "step" else s["traces"].num_rows
        for s in given_sides
    ]
    for row in parts.to_pylist():
        for name, divisor in (("base", divisors[0]), ("side", divisors[row["side"]])):
            assert abs(row[f"{name}_ns"] * divisor - row[f"{name}_sum_ns"]) <= divisor
        if row["from_calls_ns"] is not None:
            assert row["from_calls_ns"] + row["from_per_call_ns"] == row["diff_ns"]


@FEWER
@given(sides(), PER)
def test_a_side_does_not_differ_from_itself(one, per):
    totals, parts = compared([one, one], per=per)
    assert {row["diff_ns"] for row in totals.to_pylist()} == {0}
    for row in parts.to_pylist():
        assert (row["diff_ns"], row["status"], row["cause"]) == (0, "both", None)
        assert row["explains_pct"] is None
