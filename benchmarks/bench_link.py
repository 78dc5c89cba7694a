"""Time linking and nesting of a made trace of a million events.

    python benchmarks/bench_link.py [EVENTS]

The mix is that of a real eager model: of eight events five are ops (one inside the other, below one
op a step), two are calls (one of them a launch) and one is a GPU activity. Prints events per second
and CPU seconds of the whole of `link` and of its routines; compiling is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tracehouse.analysis.frame import read_frame
from tracehouse.analysis.gpu_time import subtree_unions
from tracehouse.analysis.host import nest_rows
from tracehouse.analysis.launches import find_launches
from tracehouse.analysis.link import link
from tracehouse.findings import Findings
from tracehouse.schema import tables
from tracehouse.vocab import GPU_CATEGORIES, Category

UNIT = 8  # five ops, a launch, another call, a kernel
UNIT_NS = 10_000
UNITS_A_STEP = 1_000
RUNS = 3


def words(codes: np.ndarray, values: list[str]) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))


def make_frame(events: int, seed: int = 0) -> pa.Table:
    """Make a frame of about `events` rows."""
    rng = np.random.default_rng(seed)
    units = events // UNIT
    place = np.tile(
        np.arange(UNIT), units
    )  # 0-4 ops from the outside in, 5 launch, 6 call, 7 kernel
    unit = np.repeat(np.arange(units), UNIT)
    is_kernel, is_call, is_op = place == 7, (place == 5) | (place == 6), place < 5
    start = unit * UNIT_NS + np.where(is_kernel, 20_000, np.where(place == 6, 8_000, place * 1_000))
    dur = np.where(is_kernel, rng.integers(1_000, 14_000, len(unit)), 0)
    dur = np.where(is_op, UNIT_NS - 2 * place * 1_000, np.where(is_call, 1_000, dur))
    outer = (place == 0) & (unit % UNITS_A_STEP == 0)  # one op around each step's units
    dur = np.where(outer, UNITS_A_STEP * UNIT_NS, dur)
    name = np.where(is_op, unit % 200, np.where(is_call, 200 + place - 5, 202 + unit % 50))
    columns = {
        "event_id": np.arange(len(unit)),
        "ph": words(np.zeros(len(unit), np.int64), ["X"]),
        "cat": words(
            np.where(is_op, 0, np.where(is_call, 1, 2)), ["cpu_op", "cuda_runtime", "kernel"]
        ),
        "name": words(
            name,
            [f"aten::op_{i}" for i in range(200)]
            + ["cudaLaunchKernel", "cudaEventRecord"]
            + [f"void at::native::kernel_{i}<float, {i}>(float*)" for i in range(50)],
        ),
        "pid": words(np.where(is_kernel, 1, 0), ["4711", "0"]),
        "tid": words(np.where(is_kernel, 1, 0), ["4711", "7"]),
        "ts_ns": start,
        "dur_ns": dur,
        "correlation": pa.array(unit * 2 + np.where(place == 6, 2, 1), mask=is_op),
        "external_id": pa.array(unit * 5 + place + 1, mask=~is_op),
        "device": pa.array(np.zeros(len(unit), np.int64), mask=~is_kernel),
        "stream": pa.array(np.full(len(unit), 7), mask=~is_kernel),
        **{
            n: words(np.where(is_op, unit % 500, -1), [f"[[{i},64],[64,64]]" for i in range(500)])
            for n in tables.SIGNATURE_TEXTS
        },
    }
    blank = {f.name: pa.nulls(len(unit), f.type) for f in tables.FRAME_SCHEMA}  # the other columns
    return pa.table(blank | columns, schema=tables.FRAME_SCHEMA)


def report(label: str, events: int, work: Callable[[], object]) -> None:
    work()  # compile, and fill caches
    cpu, wall = [], []
    for _ in range(RUNS):
        before = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - before[0])
        wall.append(time.perf_counter() - before[1])
    rate = events / min(cpu)
    print(f"{label:<24} {min(cpu):7.3f} s CPU {min(wall):7.3f} s wall {rate:13,.0f} events/s")


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    table = make_frame(events)
    frame = read_frame(table)
    ops, activities = frame.rows(Category.CPU_OP), frame.rows(*GPU_CATEGORIES)
    calls = frame.rows(Category.RUNTIME, Category.DRIVER)
    nesting = nest_rows(frame, ops)
    place = np.arange(len(activities)) * 5 + 4
    print(f"{len(ops):,} ops, {len(calls):,} calls, {len(activities):,} kernels")
    report("read the frame", events, lambda: read_frame(table))
    report("nest ops", events, lambda: nest_rows(frame, ops))
    report("find launches", events, lambda: find_launches(frame, ops, calls, activities))
    report("unions below ops", events, lambda: subtree_unions(frame, activities, nesting, place))
    report("link, all tables", events, lambda: link(table, "0" * 16, findings=Findings()))


if __name__ == "__main__":
    main()
