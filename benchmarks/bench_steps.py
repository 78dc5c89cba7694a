"""Time what serving steps cost: reading a million annotations, their columns, attention.

    python benchmarks/bench_steps.py [STEPS]

Every annotation is another one, as in a long run. Prints CPU seconds; compiling is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tracehouse.analysis import step_grammars
from tracehouse.analysis.attention_calls import Attention
from tracehouse.analysis.columns import Integers
from tracehouse.analysis.op_work import Results, Spec
from tracehouse.analysis.serving_work import with_steps
from tracehouse.analysis.step_grammars import Sayings
from tracehouse.analysis.step_lengths import StepLengths
from tracehouse.analysis.summaries import coded_steps
from tracehouse.formulas.model import WHY, Why
from tracehouse.schema import tables
from tracehouse.serving.steady_state import steady_state
from tracehouse.warehouse.evaluation import evaluation
from tracehouse.warehouse.views import load_views

CONC = 64
TRACE = "0" * 16


def make_names(steps: int) -> list[str]:
    """Annotations of a run at 64 requests, one step in fifteen with a prefill."""
    names = []
    for i in range(steps):
        keys = 60_000 + i
        if i % 15:
            context, generation = "0(sq0sk0sqsq0sqsk0)", f"64(sq64sk{keys}sqsq64sqsk{keys})"
        else:
            context = f"1(sq512sk{512 + i}sqsq262144sqsk{512 * (512 + i)})"
            generation = f"63(sq63sk{keys}sqsq63sqsk{keys})"
        names.append(f"execute_64_context_{context}_generation_{generation}")
    return names


def annotations(names: list[str], said: Sayings) -> pa.Table:
    """The table `annotations` of as many steps, 1 ms apart."""
    count = len(names)
    rules = [rule.name for rule in step_grammars.load().rules]
    given = {
        "trace_id": constant(TRACE, count),
        "event_id": pa.array(np.arange(count)),
        "side": constant("cpu", count),
        "name": pa.DictionaryArray.from_arrays(pa.array(np.arange(count), pa.int32()), names),
        "process": constant("1", count),
        "ts_ns": pa.array(np.arange(count) * 1_000_000),
        "dur_ns": pa.array(np.full(count, 900_000)),
        "role": constant("step", count),
        "step_id": pa.array(np.arange(count)),
        "rule": pa.DictionaryArray.from_arrays(pa.array(said.rule, pa.int32()), rules),
        "fields": said.fields,
        "numbers": said.numbers,
    }
    columns = [
        given.get(field.name, pa.nulls(count, field.type)) for field in tables.ANNOTATIONS.schema
    ]
    return pa.table(columns, schema=tables.ANNOTATIONS.schema)


def constant(word: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count), pa.int32()), [word])


def evaluated(notes: pa.Table) -> tuple[dict[str, float], pa.Table]:
    """CPU seconds of each view that `steps` needs, and what the steady state is found in."""
    schemas = {name: tables.TABLES[name].schema for name in ("ops", "kernels", "launches")}
    given = {"annotations": notes, "step_grammars": step_grammars.load().table()}
    seconds = {}
    with evaluation("trace", schemas | {n: table.schema for n, table in given.items()}) as part:
        part.give(given)
        for view in load_views("trace"):
            if view.name.startswith("_step_") or view.name == "steps":
                seconds[view.name] = cpu_of(lambda v=view: part.evaluate([v]))
        steps = next(view for view in load_views("trace") if view.name == "steps")
        return seconds, coded_steps(part.rows(steps))


def attention(steps: pa.Table) -> float:
    """CPU seconds of FLOPs and bytes of an attention call in every step: H 64/8, d 64."""
    count = len(steps)
    sizes = '{"N_q": 999, "H_q": 64, "H_kv": 8, "d_qk": 64, "d_v": 64, "q_bits": 16, "k_bits": 16}'
    spec = Spec("matrix", "bf16", "bf16", sizes, WHY[Why.NO_LENGTHS])
    unknown, zeros = np.full(count, np.nan), np.zeros(count, dtype=np.int64)
    step = Integers(steps["step_id"].to_numpy(), np.ones(count, dtype=np.bool_))
    calls = Attention(
        rows=np.arange(count),
        name=zeros.astype(np.int32),
        names=["vllm::unified_attention_with_output"],
        trace=zeros,
        step=step,
        layer=zeros,
        layers=zeros,
    )
    results = Results(unknown, unknown, zeros, [spec])

    def work() -> None:
        found = with_steps(results, calls, StepLengths(steps, zeros), {}, None)
        assert not np.isnan(found.flops).any()

    return cpu_of(work)


def cpu_of(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def measured(steps: int) -> dict[str, float]:
    """CPU seconds of each part of the work."""
    few = make_names(100)
    compiled = evaluated(annotations(few, step_grammars.load().read(few)))[1]
    steady_state(compiled)
    attention(compiled)
    names = make_names(steps)
    reading = cpu_of(lambda: step_grammars.load().read(names))
    views, rows = evaluated(annotations(names, step_grammars.load().read(names)))
    parsing = reading + views.pop("_step_forms") + views.pop("_step_names")
    return {
        "from annotations to counts and sums": parsing,
        "times, gaps and rates": sum(views.values()),
        "FLOPs and bytes of attention": attention(rows),
        "steady state": cpu_of(lambda: steady_state(rows)),
    }


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    used = measured(steps)
    for name, seconds in used.items():
        print(f"{name}: {seconds:.2f} s of CPU for {steps:,} steps")
    print(f"together: {sum(used.values()):.2f} s")


if __name__ == "__main__":
    main()
