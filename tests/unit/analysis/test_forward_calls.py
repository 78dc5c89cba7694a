from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tracehouse.analysis.forward_calls import forward_candidates, number_bearers
from tracehouse.schema.tables import OPS


def ops(*rows):
    """Make the table ops of (sequence number, thread, start, duration); a fifth word the trace."""
    columns = []
    for column in OPS.columns:
        values = [
            {
                "trace_id": row[4] if len(row) > 4 else "t",
                "event_id": i,
                "process": "1",
                "thread": row[1],
                "ts_ns": row[2],
                "dur_ns": row[3],
                "sequence_number": row[0],
            }.get(column.name)
            for i, row in enumerate(rows)
        ]
        plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        columns.append(pa.array(values, plain).cast(column.type))
    return pa.table(columns, schema=OPS.schema)


def candidates(table, *backward):
    found = [[] for _ in backward]
    for candidate in forward_candidates(table, np.array(backward), np.array(backward)):
        for place, row in zip(candidate.backward, candidate.forward, strict=True):
            found[place].append(int(row))
    return found


def test_the_innermost_call_of_the_number_comes_first():
    table = ops((7, "1", 0, 50), (7, "1", 10, 30), (8, "1", 20, 5), (7, "2", 100, 40))
    assert candidates(table, 3) == [[1, 0]]


def test_another_thread_goes_before_ones_own():
    table = ops((7, "1", 0, 10), (7, "2", 20, 10), (7, "2", 100, 40))
    assert candidates(table, 2) == [[0, 1]]


@pytest.mark.parametrize(
    "rows",
    [
        ((7, "1", 200, 50), (7, "2", 100, 40)),  # begins later
        ((7, "1", 0, 150), (7, "2", 100, 40)),  # still runs
        ((7, "1", 0, 50, "u"), (7, "2", 100, 40)),  # of another trace
        ((-1, "1", 0, 50), (-1, "2", 100, 40)),  # no number
        ((None, "1", 0, 50), (None, "2", 100, 40)),
        ((7, "1", None, 50), (7, "2", 100, 40)),
    ],
)
def test_no_candidate(rows):
    assert candidates(ops(*rows), 1) == [[]]


def test_many_calls_of_one_number_are_bounded():
    rows = [(7, "1", i, 1) for i in range(100)]
    (found,) = candidates(ops(*rows, (7, "2", 1000, 40)), 100)
    assert found == [99, 98, 97, 96, 95, 94, 93, 92]


@pytest.mark.parametrize(
    ("calls", "bearer"),
    [
        # name, has a number, parent; of the last one
        ([("autograd::engine::evaluate_function: X", 1, -1), ("X", 1, 0), ("aten::x", 0, 1)], 0),
        ([("autograd::engine::evaluate_function: X", 1, -1), ("X", 1, 0), ("aten::x", 1, 1)], 0),
        ([("CompiledFunctionBackward", 1, -1), ("aten::x", 0, 0)], 0),
        ([("aten::x", 1, -1)], 0),
        ([("aten::x", 0, -1)], -1),
        (
            [
                ("autograd::engine::evaluate_function: Checkpoint", 1, -1),
                ("autograd::engine::evaluate_function: X", 1, 0),
                ("aten::x", 0, 1),
            ],
            1,
        ),
    ],
)
def test_the_node_bears_the_number(calls, bearer):
    names = [name for name, _, _ in calls]
    found = number_bearers(
        names,
        np.arange(len(calls)),
        np.array([bool(has) for _, has, _ in calls]),
        np.array([parent for _, _, parent in calls]),
    )
    assert found[-1] == bearer
