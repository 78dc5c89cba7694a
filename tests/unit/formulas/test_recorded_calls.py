"""Calls as PyTorch 2.13 records them, held against what they returned.

recorded_calls.json: calls of ops on tensors of all types, on a CPU under torch.profiler with
record_shapes. A row is the op, its four lists of inputs as in the trace, and type and shape of each
tensor that came back.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from formula_cases import table
from reference.formulas_elementwise import distinct

from tracehouse.analysis import op_categories
from tracehouse.formulas.dtypes import BYTES, CODE, FIRST_TENSOR_TYPE, dtype_code
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.registry import model_of

ROWS = json.loads(Path(__file__).with_name("recorded_calls.json").read_text())
BY_OP = {op: list(rows) for op, rows in itertools.groupby(ROWS, key=lambda row: row[0])}


def _expected(row):
    _, dims, types, strides, _, results = row
    moved = 0
    for shape, spelling, steps in zip(dims, types, strides, strict=True):
        code = dtype_code(spelling)
        if code >= FIRST_TENSOR_TYPE:
            moved += distinct(shape, steps) * BYTES[code]
    return moved + sum(BYTES[CODE[name]] * math.prod(shape) for name, shape in results)


@pytest.mark.parametrize("op", BY_OP)
def test_bytes_are_those_of_the_inputs_and_of_what_came_back(op):
    rows = BY_OP[op]
    family = op_categories.load().family(op)
    model = model_of(family)
    keys = ("dims", "types", "strides", "values")
    found, places = table([dict(zip(keys, row[1:5], strict=True)) for row in rows])
    slots = np.array([model.slots_of(op, family)] * len(rows), dtype=np.int64)
    elements = np.full(len(rows), math.nan)
    work = evaluate(model, read_inputs(found), np.array(places), slots, elements)
    told = {json.dumps(row): moved for row, moved in zip(rows, work.bytes.tolist(), strict=True)}
    assert told == {json.dumps(row): _expected(row) for row in rows}
