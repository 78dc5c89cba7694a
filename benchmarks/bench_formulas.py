"""Time the formulas over ten million op calls on one core.

    python benchmarks/bench_formulas.py [CALLS]

Two ways, as an archive has them. *Dictionary*: calls of a few thousand distinct inputs, each
evaluated once and its result given to every call; the mix is of products, pointwise ops, softmax
and layer norms. *Straight*: every call evaluated by itself, for three formulas. Prints CPU seconds;
compiling is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tracehouse.analysis import op_categories
from tracehouse.analysis.op_work import Called, Formulas
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.registry import model_of
from tracehouse.schema.tables import SIGNATURES

DISTINCT = 4_000
BF16 = "c10::BFloat16"
OPS = ("aten::mm", "aten::mul", "aten::_softmax", "aten::layer_norm")
RUNS = 3


def inputs_of(op: str, m: int, n: int, k: int) -> dict[str, list]:
    """The inputs of a call of some size."""
    if op == "aten::mm":
        return {"dims": [[m, k], [k, n]], "types": [BF16] * 2, "values": ["", ""]}
    if op == "aten::mul":
        return {"dims": [[m, n], [n]], "types": [BF16] * 2, "values": ["", ""]}
    if op == "aten::_softmax":
        return {
            "dims": [[m, n], [], []],
            "types": [BF16, "Scalar", "Scalar"],
            "values": ["", "-1", "False"],
        }
    return {
        "dims": [[m, n], [], [n], [n], [], []],
        "types": [BF16, "ScalarList", BF16, BF16, "Scalar", "Scalar"],
        "values": ["", f"[{n}]", "", "", "1e-05", "True"],
    }


def make_signatures(distinct: int) -> tuple[pa.Table, np.ndarray]:
    """Make the table `signatures` of `distinct` inputs, and the op of each."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 8192, (distinct, 3)).tolist()
    op = np.arange(distinct) % len(OPS)
    made = [inputs_of(OPS[o], *size) for o, size in zip(op.tolist(), sizes, strict=True)]
    columns = {
        "trace_id": pa.array(["t"] * distinct).dictionary_encode(),
        "signature_id": list(range(distinct)),
        "input_dims": [inputs["dims"] for inputs in made],
        "member_dims": [None] * distinct,
        "input_types": [inputs["types"] for inputs in made],
        "input_strides": [None] * distinct,
        "concrete_inputs": [inputs["values"] for inputs in made],
        "extra_inputs": [None] * distinct,
        "raw": [""] * distinct,
    }
    return pa.table(columns, schema=SIGNATURES.schema), op


def cpu_of(work: Callable[[], object]) -> float:
    """Least CPU seconds of a few calls; the first one compiles and is not counted."""
    work()
    seconds = []
    for _ in range(RUNS):
        before = time.process_time()
        work()
        seconds.append(time.process_time() - before)
    return min(seconds)


def measured(calls: int) -> dict[str, float]:
    """CPU seconds of each way, for so many calls."""
    table, op = make_signatures(DISTINCT)
    rng = np.random.default_rng(1)
    row = rng.integers(0, DISTINCT, calls)
    called = Called(op[row].astype(np.int32), OPS, row, np.full(calls, np.nan))
    rules = op_categories.load()
    used = {"dictionary": cpu_of(lambda: Formulas(table, rules, {}).results(called))}
    inputs = read_inputs(table)
    for number, name in enumerate(OPS[:3]):
        model = model_of(rules.family(name))
        slots = np.array([model.slots_of(name, rules.family(name))], dtype=np.int64)
        rows = rng.choice(np.flatnonzero(op == number), calls)
        all_slots, element = np.repeat(slots, calls, axis=0), np.full(calls, np.nan)
        used[f"straight {name}"] = cpu_of(
            lambda m=model, r=rows, s=all_slots, e=element: evaluate(m, inputs, r, s, e)
        )
    return used


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    for name, seconds in measured(calls).items():
        print(f"{name}: {seconds:.2f} s of CPU for {calls:,} calls")


if __name__ == "__main__":
    main()
