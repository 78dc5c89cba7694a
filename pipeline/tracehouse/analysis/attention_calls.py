"""Which op calls are serving attention, and of which layer of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import Codes, Integers, Ints, Mask, Words, read_integers
from tracehouse.compute.forest import topmost

ATTENTION = ("infer_attention", "infer_latent_attention")
_LINEAR = "infer_linear_attention"


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention calls among n op calls.

    rows (m,): which of them. name (m,): code into `names`. trace (m,): number of the trace. step
    (m,): as in `ops`. layer, layers (m,): place of the call among the attention calls of its step,
    and how many these are; a call inside another has the place of that one.
    """

    rows: Ints
    name: Codes
    names: list[str]
    trace: Ints
    step: Integers
    layer: Ints
    layers: Ints


def attention_calls(
    ops: pa.Table,
    rows: Ints,
    name: Words,
    trace: Ints,
    parent: Ints,
    inner_first: Ints,
    family: Callable[[str], str],
) -> Attention | None:
    """Find the attention calls among n op calls, None if there are none.

    Args:
        ops: the table.
        rows: (n,), the calls' rows of it.
        name: (n,), their names.
        trace: (n,), numbers of their traces.
        parent: (n,), place of the call around each among them, -1 for none.
        inner_first: (n,), an order in which each stands before the call around it.
        family: of the op of a name.
    """
    used, _ = name.used()
    of_name = np.zeros(len(name.values) + 1, dtype=np.bool_)
    for code in used.tolist():
        of_name[code] = family(name.values[code]) in (*ATTENTION, _LINEAR)
    marked = of_name[name.codes]
    found = np.flatnonzero(marked)
    if not len(found):
        return None
    step = read_integers(ops, "step_id").take(rows[found])
    start = read_integers(ops, "ts_ns").values[rows[found]]
    outermost = topmost(parent, inner_first, marked)[found]
    layer, layers = places_in_steps(trace[found], step, start, outermost == found)
    position = np.zeros(len(rows), dtype=np.int64)
    position[found] = np.arange(len(found))
    of_outermost = position[outermost]
    return Attention(
        rows=found,
        name=name.codes[found],
        names=name.values,
        trace=trace[found],
        step=step,
        layer=layer[of_outermost],
        layers=layers[of_outermost],
    )


def places_in_steps(trace: Ints, step: Integers, start: Ints, counts: Mask) -> tuple[Ints, Ints]:
    """Return the place of each call in order of time within its step, and how many count there.

    Shapes: all (n,). `counts`: which calls count, the others come behind. Calls in no step have -1
    for how many.
    """
    order = np.lexsort((start, ~counts, step.values, trace))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (np.diff(trace[order]) != 0) | (np.diff(step.values[order]) != 0)
    group = np.cumsum(is_first) - 1
    begins = np.flatnonzero(is_first)
    layer, layers = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    layer[order] = np.arange(len(order)) - begins[group]
    layers[order] = np.add.reduceat(counts[order].astype(np.int64), begins)[group]
    return layer, np.where(step.known, layers, -1)
