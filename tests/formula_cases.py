"""Evaluating one op call as a trace records it, and the golden examples of the peer."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracehouse.analysis import op_categories
from tracehouse.analysis.columns import Words
from tracehouse.analysis.signatures import signatures
from tracehouse.formulas.dtypes import DTYPES
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.model import NO_PARAMETER, WHY, Why
from tracehouse.formulas.registry import model_of

MIB = 2**20


@dataclass(frozen=True)
class Done:
    """What a call does; None where it is not known."""

    flops: float | None
    bytes: float | None
    dtype: str
    why: str | None
    parameters: dict[str, int]

    @property
    def gflop(self) -> float | None:
        return None if self.flops is None else self.flops / 1e9

    @property
    def mib(self) -> float | None:
        return None if self.bytes is None else self.bytes / MIB


def table(calls: Sequence[dict[str, Any]]):
    """The table `signatures` of calls, each with the keys dims, types, strides, values."""
    columns = []
    for key in ("dims", "types", "strides", "values"):
        texts = [
            None if call.get(key) is None else json.dumps(call[key], separators=(",", ":"))
            for call in calls
        ]
        values = list(dict.fromkeys(text for text in texts if text is not None))
        codes = [-1 if text is None else values.index(text) for text in texts]
        columns.append(Words(np.array(codes, dtype=np.int32), values))
    ids, found = signatures(columns, "t")
    places = {key: place for place, key in enumerate(found["signature_id"].to_pylist())}
    rows = [
        places[key] if known else -1
        for key, known in zip(ids.values.tolist(), ids.known, strict=True)
    ]
    return found, rows


def work_of(op, dims=None, types=None, strides=None, values=None, element=math.nan) -> Done:
    """Evaluate one call of `op`; the four args are lists as json.loads makes them of a trace."""
    args = {"dims": dims, "types": types, "strides": strides, "values": values}
    found, (row,) = table([args])
    family = op_categories.load().family(op)
    model = model_of(family)
    assert model is not None, f"{op}: no model of family {family}"
    slots = model.slots_of(op, family)
    assert slots is not None, f"{op}: no slots"
    work = evaluate(
        model,
        read_inputs(found),
        np.array([row]),
        np.array([slots], dtype=np.int64),
        np.array([element]),
    )
    flops, moved = work.flops[0], work.bytes[0]
    return Done(
        None if math.isnan(flops) else flops,
        None if math.isnan(moved) else moved,
        DTYPES[work.dtype[0]].name,
        WHY[Why(work.why[0])],
        {
            label: int(value)
            for label, value in zip(model.labels, work.parameters[0], strict=True)
            if value != NO_PARAMETER
        },
    )
