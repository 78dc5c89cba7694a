"""Layouts of random tensors, and evaluating a backward op by the inputs of its forward call."""

from __future__ import annotations

import math

import numpy as np
from formula_cases import Done, table
from hypothesis import strategies as st

from tracehouse.analysis import op_categories
from tracehouse.formulas.dtypes import DTYPES
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.model import NO_PARAMETER, WHY, Why
from tracehouse.formulas.registry import model_of


@st.composite
def layouts(draw, shape):
    """Strides of a tensor: dense in some order of its dimensions, some of them expanded."""
    order = draw(st.permutations(range(len(shape))))
    expanded = draw(st.sets(st.sampled_from(range(len(shape))), max_size=1)) if shape else set()
    strides, step = [0] * len(shape), 1
    for d in order:
        if d not in expanded:
            strides[d] = step
            step *= max(shape[d], 1)
    return strides


def work_of_backward(op, forward, dims=None, types=None, strides=None, values=None) -> Done:
    """Evaluate a call of the backward op by the inputs of a call of its forward op."""
    found, (row,) = table([{"dims": dims, "types": types, "strides": strides, "values": values}])
    rules = op_categories.load()
    model, of_forward = model_of(rules.family(op)), model_of(rules.family(forward))
    assert model is not None
    assert of_forward is not None
    slots = model.slots_of_forward(of_forward, forward, rules.family(forward))
    assert slots is not None
    work = evaluate(
        model,
        read_inputs(found),
        np.array([row]),
        np.array([slots], dtype=np.int64),
        np.array([math.nan]),
    )
    flops, moved = float(work.flops[0]), float(work.bytes[0])
    named = zip(model.labels, work.parameters[0], strict=True)
    return Done(
        None if math.isnan(flops) else flops,
        None if math.isnan(moved) else moved,
        DTYPES[work.dtype[0]].name,
        WHY[Why(work.why[0])],
        {label: int(value) for label, value in named if value != NO_PARAMETER},
    )
