"""Views are evaluated over one part after another, by plans that are made once a process."""

from __future__ import annotations

import time

import duckdb
import pyarrow as pa
import pytest
from part_tables import A, B, activity, part

from tracehouse.analysis.summaries import evaluated
from tracehouse.schema.tables import STEP_GRAMMARS, TABLES
from tracehouse.warehouse import evaluation as module
from tracehouse.warehouse.connection import limit_memory
from tracehouse.warehouse.evaluation import Evaluation, evaluation
from tracehouse.warehouse.views import View, load_views

VIEWS = {view.name: view for view in load_views("trace")}
TWO = part(
    (A, B),
    kernels=[
        activity(1, "compute", 5, 9, name="a", op_id=3),
        activity(2, "comm", 7, 30, name="b", launch_id=4),
        activity(3, "memcpy", 40, 41, name="a", trace_id=B),
    ],
    ops=[
        {"trace_id": A, "event_id": 3, "name": "aten::mm", "category": "GEMM", "dur_ns": 2}
        | {"direct_kernel_count": 1, "direct_kernel_time_ns": 4, "kernel_time_ns": 4}
    ],
    launches=[{"trace_id": A, "event_id": 4, "name": "launch", "direct_kernel_count": 1}],
)
NONE = part(())


def schemas():
    known = TABLES | {STEP_GRAMMARS.name: STEP_GRAMMARS}
    return {name: known[name].schema for name in TWO}


@pytest.fixture
def lent():
    made = Evaluation("trace", schemas())
    made.begin()
    yield made
    made.close()


def test_nothing_is_left_of_a_part():
    first = evaluated(TWO)
    assert [row["busy_ns"] for row in first["trace_timeline"].to_pylist()] == [25, 1]
    assert all(table.num_rows == 0 for table in evaluated(NONE).values())
    assert evaluated(TWO) == first


def test_nothing_is_left_of_a_part_that_failed():
    without = TWO | {"kernels": TWO["kernels"].drop_columns(["kind"])}
    with pytest.raises(KeyError, match="kind"):
        evaluated(without)
    assert all(table.num_rows == 0 for table in evaluated(NONE).values())


def test_columns_may_come_in_another_order_and_spelling():
    kernels = TWO["kernels"].set_column(0, "trace_id", pa.array([A, A, B]))
    turned = kernels.select(kernels.column_names[::-1])
    assert turned.schema != TWO["kernels"].schema
    assert evaluated(TWO | {"kernels": turned}) == evaluated(TWO)


def test_rows_may_come_in_crumbs():
    kernels = TWO["kernels"]
    others = kernels.slice(2).set_column(  # with a dictionary of their own
        kernels.column_names.index("name"),
        kernels.schema.field("name"),
        pa.array(["a"]).dictionary_encode(),
    )
    crumbs = pa.concat_tables([kernels.slice(0, 1), kernels.slice(1, 1), others])
    assert crumbs["name"].num_chunks == 3
    assert evaluated(TWO | {"kernels": crumbs}) == evaluated(TWO)


def test_many_rows_are_planned_with_the_optimizer_and_give_the_same(monkeypatch):
    few = evaluated(TWO)
    monkeypatch.setattr(module, "_MANY_ROWS", 0)
    made = Evaluation("trace", schemas())
    monkeypatch.setattr(module, "_kept", lambda _: {"trace": [made]})
    assert evaluated(TWO) == few
    assert not made._planned


def test_a_view_that_is_not_evaluated_has_no_rows(lent):
    lent.give(TWO)
    lent.evaluate(VIEWS.values(), without_rows={"kernel_summary"})
    assert lent.rows(VIEWS["kernel_summary"]).num_rows == 0
    assert lent.rows(VIEWS["kernel_summary"]).column_names == [
        column.name for column in VIEWS["kernel_summary"].columns
    ]
    lent.forget()
    lent.begin()
    lent.give(TWO)
    lent.evaluate(VIEWS.values())
    assert lent.rows(VIEWS["kernel_summary"]).num_rows == 3


def test_plans_stay(lent):
    """What was planned is executed in a fraction of the time of planning it: measured, a sixth."""
    view = VIEWS["attention_summary"]

    def seconds():
        before = time.process_time()
        lent.evaluate([view])
        return time.process_time() - before

    planning, executing = [], []
    for _ in range(5):
        lent._planned.clear()
        planning.append(seconds())
        executing.append(seconds())
    assert min(executing) < min(planning) / 2


def test_two_at_once_do_not_share():
    with evaluation("trace", schemas()) as one, evaluation("trace", schemas()) as two:
        one.give(TWO)
        for each in (one, two):
            each.evaluate(VIEWS.values())
        assert one.rows(VIEWS["kernel_summary"]).num_rows == 3
        assert two.rows(VIEWS["kernel_summary"]).num_rows == 0


def test_one_that_failed_is_not_lent_again():
    with evaluation("trace", schemas()) as once:
        pass
    broken = View("no_such_view", "", ("x",), (), (), "", "SELECT 1 AS x")
    with pytest.raises(duckdb.Error), evaluation("trace", schemas()) as failed:
        failed.evaluate([broken])
    assert failed is once
    with evaluation("trace", schemas()) as other:
        assert other is not failed


def test_plans_give_way_to_a_limit_of_memory():
    with evaluation("trace", schemas()) as kept:
        kept.give(TWO)
        kept.evaluate(VIEWS.values())
    try:
        limit_memory(1 << 18)  # less than they hold
    finally:
        limit_memory(None)
    with evaluation("trace", schemas()) as other:
        assert other is not kept
