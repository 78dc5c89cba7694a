"""The steady state of serving traces: found in the steps, and worked out from the benchmark.

Found: steps in which nearly as many requests run as in the fullest. The level is the 95th
percentile, so that a burst is no level; short dips within are closed, so that a stalled request
ends nothing. Worked out: which steps of the whole run its parameters say are steady.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.compute.regions import longest_run, runs_near_level
from tracehouse.schema.tables import STEADY_STATE
from tracehouse.serving.window import Workload

LEVEL_PCT = 95
WIDEST_GAP, SHORTEST_RUN = 2, 6  # steps
FOUND, ANALYTIC = "found", "analytic"
RAMP_UP, MIXED, DECODE, PREFILL, RAMP_DOWN, COMPLETION = (
    "ramp_up",
    "mixed",
    "decode",
    "prefill",
    "ramp_down",
    "completion",
)
_MOST_COMPLETIONS = 1_000
_LARGEST = 1 << 50  # requests; more are nonsense
_SERVING = ("prefill", "decode", "mixed", "idle", "diffusion", "other")
_PHASE = {phase: code for code, phase in enumerate(_SERVING)}

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Region:
    """Steps [first, end) of a sequence, why they are a region, and how many requests run."""

    kind: str
    rule: str
    first: int
    end: int
    concurrency: int | None
    fallback: bool = False


def level_of(requests: Ints) -> int:
    """Return the concurrency: the nearest-rank 95th percentile of what runs; 0 if nothing does."""
    running = np.sort(requests[requests > 0])
    if not len(running):
        return 0
    return int(running[-(-LEVEL_PCT * len(running) // 100) - 1])


def steady_runs(requests: Ints, conc: int | None = None) -> tuple[list[tuple[int, int]], int, bool]:
    """Return the steady runs [first, end) of a sequence, their level, and whether none was found.

    `requests` (n,) is the number of each step, negative where unknown. `conc` is the level where it
    does not pass the most that run. Of fewer than 20 values the 95th percentile is the largest:
    where that finds nothing, the second largest is tried. The last resort is the middle third.

    Source: inference §4.3.
    """
    requests = np.minimum(requests, _LARGEST)
    level = level_of(requests)
    if not level:
        return [], 0, False
    running = np.sort(requests[requests > 0])
    levels = [level]
    if conc is not None and conc <= running[-1]:
        levels = [conc]
    elif level == running[-1] and 1 < len(running):
        levels.append(int(running[-2]))
    for tried in levels:
        first, end = runs_near_level(requests, tried, WIDEST_GAP, SHORTEST_RUN)
        if len(first):
            return list(zip(first.tolist(), end.tolist(), strict=True)), tried, False
    third, count = len(requests) // 3, len(requests)
    return [(third, max(third + 1, count - third))], levels[0], True


def found_regions(requests: Ints, phases: Codes, conc: int | None = None) -> list[Region]:
    """Return the regions of one sequence of steps.

    What is before the first steady run is the ramp-up, what is after the last the ramp-down. A run
    of steps of one phase has that phase's kind; else it is mixed, and its longest runs of decode
    steps and of steps with prefill are regions too.
    """
    runs, level, is_fallback = steady_runs(requests, conc)
    if not runs:
        return []
    with_prefill = (phases == _PHASE["prefill"]) | (phases == _PHASE["mixed"])
    decode = phases == _PHASE["decode"]

    def region(kind: str, first: int, end: int) -> Region:
        return Region(kind, FOUND, int(first), int(end), level, is_fallback)

    found = [region(RAMP_UP, 0, runs[0][0])]
    for first, end in runs:
        kind = _kind(phases[first:end])
        found.append(region(kind, first, end))
        if kind == MIXED:
            found.append(region(DECODE, *longest_run(decode, first, end)))
            found.append(region(PREFILL, *longest_run(with_prefill, first, end)))
    found.append(region(RAMP_DOWN, runs[-1][1], len(requests)))
    return [r for r in found if r.end > r.first]


def _kind(phases: Codes) -> str:
    busy = set(np.unique(phases[phases != _PHASE["idle"]]).tolist())
    if busy == {_PHASE["decode"]}:
        return DECODE
    return PREFILL if busy == {_PHASE["prefill"]} else MIXED


def analytic_regions(steps: int, load: Workload) -> list[Region]:
    """Return what the parameters of a benchmark say of its first `steps` steps.

    The ramp-up, the steps between which each group of requests ends, and the steps to look at: the
    range of the fifth group (or the middle one of fewer), cut to those that there are. Where they
    are too few for it, all after the ramp-up stand in for it.

    Source: inference §4.1.
    """
    regions = [Region(RAMP_UP, ANALYTIC, 0, min(load.conc, steps), load.conc)]
    for group in range(1, min(load.groups, _MOST_COMPLETIONS) + 1):
        first, end = _range(load, group)
        if first >= steps:
            break
        regions.append(Region(COMPLETION, ANALYTIC, first, min(end, steps), load.conc))
    first, end = _range(load, load.group)
    first = max(first, load.conc)
    fallback = first >= min(end, steps)
    if fallback:
        first, end = load.conc, steps
    regions.append(Region(MIXED, ANALYTIC, first, min(end, steps), load.conc, fallback))
    return [r for r in regions if r.end > r.first]


def _range(load: Workload, group: int) -> tuple[int, int]:
    first, end = load.completion_range(group)
    return math.floor(first), max(math.floor(first) + 1, math.ceil(end))


def steady_state(steps: pa.Table, load: Workload | None = None) -> pa.Table:
    """Make the table STEADY_STATE of rows of the view `steps`.

    Each process of a trace has its own sequence. One without a step whose requests are known, as in
    training, has no rows.
    """
    columns: dict[str, list[object]] = {name: [] for name in STEADY_STATE.names}
    for trace_id, sequences in _sequences(steps):
        number = 0
        for sequence in sequences:
            for region in _regions(sequence, load):
                ids = sequence.step_id[region.first : region.end]
                steps_of = (int(ids[0]), int(ids[-1]), len(ids))
                row: tuple[object, ...] = (trace_id, number, region.kind, region.rule, *steps_of)
                row += (region.concurrency, region.fallback, sequence.process)
                for name, value in zip(STEADY_STATE.names, row, strict=True):
                    columns[name].append(value)
                number += 1
    return pa.table(
        [_column(columns[f.name], f.type) for f in STEADY_STATE.schema], schema=STEADY_STATE.schema
    )


def _regions(sequence: _Sequence, load: Workload | None) -> list[Region]:
    found = found_regions(sequence.requests, sequence.phase, load.conc if load else None)
    if found and load:
        found += analytic_regions(len(sequence.requests), load)
    return found


@dataclass(frozen=True, slots=True)
class _Sequence:
    """The steps of one process, in order."""

    process: str | None
    step_id: Ints
    requests: Ints
    phase: Codes


def _sequences(steps: pa.Table) -> Iterator[tuple[str, list[_Sequence]]]:
    """Give for each trace, in order of ids, the sequences of its processes, by their first step."""
    if not steps.num_rows:
        return
    trace, traces = _coded(steps["trace_id"])
    process, processes = _coded(steps["process"])
    phase, phases = _coded(steps["phase"])
    code = np.array([_PHASE.get(word, _PHASE["other"]) for word in phases] + [0], dtype=np.int8)
    step_id = steps["step_id"].to_numpy()
    requests = steps["r"].fill_null(-1).to_numpy()
    order = np.lexsort((step_id, process, np.argsort(np.argsort(traces))[trace]))
    cuts = np.flatnonzero((np.diff(trace[order]) != 0) | (np.diff(process[order]) != 0))
    pieces = np.split(order, cuts + 1)
    at = 0
    while at < len(pieces):
        own = trace[pieces[at][0]]
        stop = at
        while stop < len(pieces) and trace[pieces[stop][0]] == own:
            stop += 1
        sequences = [
            _Sequence(
                processes[process[p[0]]] if process[p[0]] >= 0 else None,
                step_id[p],
                requests[p],
                code[phase[p]],
            )
            for p in pieces[at:stop]
        ]
        yield traces[own], sorted(sequences, key=lambda s: int(s.step_id[0]))
        at = stop


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return (
        encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64),
        encoded.dictionary.to_pylist(),
    )


def _column(values: list[object], type_: pa.DataType) -> pa.Array:
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    return pa.array(values, plain).cast(type_)
