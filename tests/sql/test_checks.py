"""checks: each trust check on a trace drawn for it, its value worked by hand."""

from __future__ import annotations

import duckdb
import pytest
from part_tables import A, B, activity, part

from tracehouse.analysis.summaries import evaluated
from tracehouse.resources import sql_texts
from tracehouse.warehouse.views import load_views

SUMS = (
    "idle_difference_ns",
    "timeline_difference_ns",
    "op_kernels_difference",
    "op_time_difference_ns",
    "kernel_time_difference_ns",
)


def checks(trace=A, **tables):
    """Return the rows of one trace by name."""
    rows = evaluated(part(**tables))["checks"].to_pylist()
    return {row["name"]: row for row in rows if row["trace_id"] == trace}


def linked(event_id, start, end, **more):
    """Draw an activity of op 1, launched by call 2, unless told otherwise."""
    ids = {"op_id": 1, "launch_id": 2, "link": "correlation", "graph": False, "name": "k"}
    return activity(event_id, "compute", start, end, **{**ids, **more})


def lone(event_id, start, end, why):
    none = {"op_id": None, "launch_id": None}
    return linked(event_id, start, end, **none, link="none", why_unlinked=why)


def op(count, time, **more):
    columns = {"direct_kernel_count": count, "direct_kernel_time_ns": time}
    return {"trace_id": A, "event_id": 1, "name": "aten::mm", **columns, **more}


def issue(code, count):
    return {"trace_id": A, "code": code, "count": count}


# ns      0         10        20    26      30        40
# dev 0   [ 3: op 1 ]               [ 4: copy, pre-window ]    busy 10 + 14, gap 16
# dev 1        [ 5: op 1, to 15 ]                              busy 10
WHOLE = {
    "kernels": (
        linked(3, 0, 10),
        {**lone(4, 26, 40, "pre_window"), "kind": "memcpy"},
        {**linked(5, 5, 15), "device": 1},
    ),
    "ops": (op(2, 15),),  # the union of [0,10) and [5,15)
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_that_fit(name):
    row = checks(**WHOLE)[name]
    assert (row["ok"], row["value"], row["expected"]) == (True, 0.0, "0")


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"ops": (op(3, 15),)}, "op_kernels_difference", 1.0),  # 3 + 1 against 3 rows
        ({"ops": (op(2, 14),)}, "op_time_difference_ns", 1.0),  # 14 + 14 < busy 15 + 14
        ({"ops": (op(2, 24),)}, "op_time_difference_ns", 4.0),  # 24 + 14 > 10 + 14 + 10
    ],
)
def test_sums_that_do_not_fit(change, name, value):
    row = checks(**(WHOLE | change))[name]
    assert (row["ok"], row["value"]) == (False, value)


def test_a_gap_that_is_lost_is_found():
    """The views agree by construction, so their results are put in by hand here."""
    idle = values_of(
        idle_gaps="SELECT 'a' AS trace_id, 15::BIGINT AS dur_ns",
        gpu_timeline="SELECT 'a' AS trace_id, 40::BIGINT AS total_ns, 24::BIGINT AS busy_ns, "
        "10::BIGINT AS computation_ns, 0::BIGINT AS exposed_comm_ns, "
        "12::BIGINT AS exposed_memcpy_ns",
        kernel_summary="SELECT 'a' AS trace_id, 23::BIGINT AS time_ns",
    )
    assert idle["idle_difference_ns"] == 1.0  # 40 - 24 - 15
    assert idle["timeline_difference_ns"] == 2.0  # 24 - (10 + 12)
    assert idle["kernel_time_difference_ns"] == 1.0  # 24 - 23


def values_of(**views):
    """Evaluate _check_values for trace `a` of 24 ns of GPU time, over some made-up views."""
    view = next(v for v in load_views("trace") if v.name == "_check_values")
    kernels = [{**linked(3, 0, 24), "trace_id": "a"}]
    tables = part(traces=("a",), kernels=kernels)
    results = evaluated(tables)
    with duckdb.connect() as session:
        for name in view.reads:
            if name in views:
                session.execute(f"CREATE VIEW {name} AS {views[name]}")
            else:
                session.register(name, (tables | results)[name])
        return session.sql(view.query).to_arrow_table().to_pylist()[0]


# 100 ns in all. 3 is linked, the others are what their names say.
def test_shares_of_gpu_time():
    found = checks(
        kernels=(
            linked(3, 0, 40),
            lone(4, 40, 46, "missing"),
            lone(5, 46, 66, "pre_window"),
            linked(6, 66, 80, op_id=None, graph=True),
            linked(7, 80, 90, op_id=None),
            {**linked(8, 90, 100, launch_id=None), "link": "external_id"},
        )
    )
    assert {
        name: (row["value"], row["ok"], row["expected"])
        for name, row in found.items()
        if name in ("unlinked_pct", "pre_window_pct", "graph_without_op_pct")
        or name == "launch_without_op_pct"
    } == {
        "unlinked_pct": (6.0, False, "at most 5"),
        "pre_window_pct": (20.0, False, "at most 5"),
        "graph_without_op_pct": (14.0, False, "at most 10"),
        "launch_without_op_pct": (10.0, True, "at most 10"),
    }


def test_a_share_at_its_limit_is_ok():
    found = checks(kernels=(linked(3, 0, 95), lone(4, 95, 100, "missing")))
    assert (found["unlinked_pct"]["value"], found["unlinked_pct"]["ok"]) == (5.0, True)


def test_clipped_and_untimed_activities_are_counted():
    found = checks(
        kernels=(
            linked(3, 0, 10),
            linked(4, 10, 20, raw_dur_ns=9_000),  # cut at the next start
            linked(5, 20, None, raw_dur_ns=-1),  # no duration at all: not cut, but untimed
            linked(6, None, None),
        )
    )
    assert (found["clipped_kernels"]["value"], found["clipped_kernels"]["ok"]) == (1.0, False)
    assert (found["untimed_kernels"]["value"], found["untimed_kernels"]["ok"]) == (2.0, False)


SIGNATURE = {"trace_id": A, "signature_id": 7, "input_dims": [[2, 3]]}
NO_DIMS = {"trace_id": A, "signature_id": 8, "input_types": ["float"]}


def test_shapes_are_weighed_by_gpu_time():
    found = checks(
        kernels=(linked(3, 0, 100),),
        signatures=(SIGNATURE, NO_DIMS),
        ops=(
            op(1, 70, signature_id=7, self_ns=1),
            {**op(1, 20, signature_id=8, self_ns=1), "event_id": 11},  # types, but no dims
            {**op(1, 10, self_ns=999), "event_id": 12},
            {**op(1, 500), "event_id": 13, "category": "collective"},  # does not count
        ),
    )["without_shapes_pct"]
    assert (found["value"], found["ok"]) == (30.0, False)  # (20 + 10) / 100


def test_shapes_are_weighed_by_host_time_where_nothing_was_launched():
    ops = (op(0, 0, signature_id=7, self_ns=95), {**op(0, 0, self_ns=5), "event_id": 11})
    found = checks(signatures=(SIGNATURE,), ops=ops)["without_shapes_pct"]
    assert (found["value"], found["ok"]) == (5.0, True)


def test_launches_after_their_kernel():
    launches = [
        {"trace_id": A, "event_id": i, "name": "cudaLaunchKernel", "delay_ns": delay}
        for i, delay in enumerate((-800, 5, 5, 5, None))  # the unknown one does not count
    ]
    found = checks(kernels=(linked(9, 0, 10),), launches=launches)["early_kernels_pct"]
    assert (found["value"], found["ok"], found["expected"]) == (25.0, False, "at most 1")


@pytest.mark.parametrize(
    ("name", "issues", "value"),
    [
        ("ambiguous_correlations", [issue("CORRELATION_AMBIGUOUS", 3)], 3.0),
        ("clock_domains", [issue("CLOCK_DOMAIN", 900)], 1.0),
        ("dropped_events", [issue("DROPPED_EVENT", 4)], 4.0),
        ("cut_short", [issue("TRUNCATED", 1), issue("INTERLEAVED_WRITERS", 1)], 2.0),
    ],
)
def test_what_the_issues_tell(name, issues, value):
    found = checks(kernels=(linked(3, 0, 10),), issues=issues)[name]
    assert (found["value"], found["ok"], found["expected"]) == (value, False, "0")
    clean = checks(kernels=(linked(3, 0, 10),))[name]
    assert (clean["value"], clean["ok"]) == (0.0, True)


def test_without_gpu_activity_only_the_text_is_checked():
    known = {name for name, row in checks().items() if row["ok"] is not None}
    assert known == {"dropped_events", "cut_short"}


def test_a_rejected_trace_has_nothing_to_check():
    rows = checks(traces=({"trace_id": A, "status": "rejected"},))
    assert rows
    assert {(row["ok"], row["value"]) for row in rows.values()} == {(None, None)}


def test_traces_do_not_meet():
    other = {**lone(1, 0, 10, "missing"), "trace_id": B}
    tables = {"traces": (A, B), "kernels": (linked(3, 0, 10), other)}
    assert checks(A, **tables)["unlinked_pct"]["value"] == 0.0
    assert checks(B, **tables)["unlinked_pct"]["value"] == 100.0


def test_every_check_says_what_it_means():
    for row in checks().values():
        assert len(row["meaning"]) > 40
        assert not row["meaning"].endswith(".")


def test_every_value_has_a_limit():
    view = next(v for v in load_views("trace") if v.name == "_check_values")
    assert set(checks()) == {c.name for c in view.columns} - {"trace_id"}


# Ranks, over the archive
RANKS = next(v for v in load_views("warehouse") if v.name == "_rank_checks")


def ranks(*rows):
    """Evaluate _rank_checks over traces of (label, world_size, rank); give the values in order."""
    view = RANKS
    with duckdb.connect() as session:
        session.execute(
            "CREATE TABLE traces (trace_id VARCHAR, label VARCHAR, world_size BIGINT, rank BIGINT)"
        )
        for number, row in enumerate(rows):
            session.execute("INSERT INTO traces VALUES (?, ?, ?, ?)", [f"{number}", *row])
        found = session.sql(f"FROM ({view.query}) ORDER BY CAST(trace_id AS INT)").to_arrow_table()
    assert [f.name for f in found.schema] == [c.name for c in view.columns]
    return [(row["value"], row["ok"]) for row in found.to_pylist()]


def test_a_whole_job_misses_no_rank():
    assert ranks(("x", 2, 0), ("x", 2, 1), ("x", 2, 1)) == [(0.0, True)] * 3


def test_missing_ranks_are_counted_by_label():
    assert ranks(("x", 4, 0), ("x", 4, 3), ("y", 4, 1)) == [
        (2.0, False),
        (2.0, False),
        (3.0, False),
    ]


def test_a_rank_that_is_unknown_or_impossible_is_not_there():
    assert ranks(("x", 2, None), ("x", 2, 7)) == [(2.0, False)] * 2


def test_no_world_size_nothing_to_check():
    assert ranks(("x", None, 0), (None, 0, 0), (None, 1, 0)) == [
        (None, None),
        (None, None),
        (0.0, True),
    ]


def test_the_rank_check_is_laid_out_as_checks():
    view = RANKS
    table = next(v for v in load_views("trace") if v.name == "checks")
    assert [(c.name, c.type) for c in view.columns] == [(c.name, c.type) for c in table.columns]
    assert max(len(line) for line in sql_texts("warehouse")[view.name].splitlines()) <= 100
