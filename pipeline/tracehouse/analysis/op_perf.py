"""The table `op_perf`: work, GPU time and distance from the roofline of each op call.

Every activity that an op launched is carried by exactly one row, `counted`: the outermost op around
it whose work is known, or the op that launched it where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.analysis.attention_calls import attention_calls
from tracehouse.analysis.columns import (
    Columns,
    Integers,
    Ints,
    Mask,
    Reals,
    Words,
    combination,
    first_of,
    numbered,
    pick,
    places,
    read_integers,
    read_words,
    real,
    spread,
    table_of,
    whole,
)
from tracehouse.analysis.forward_calls import forward_candidates, number_bearers
from tracehouse.analysis.kernel_hints import element_bytes, hints
from tracehouse.analysis.op_work import Called, Formulas, Results, Spec
from tracehouse.analysis.roofline import in_cache, limits
from tracehouse.analysis.serving_work import ranks_of, with_steps
from tracehouse.analysis.settings import Settings
from tracehouse.analysis.signatures import rows_of_ids
from tracehouse.analysis.step_lengths import StepLengths
from tracehouse.compute.forest import add_upward, or_upward, topmost
from tracehouse.formulas.arch import Arch
from tracehouse.schema.tables import OP_PERF
from tracehouse.spill import Spill

_EVENTS = 1 << 42  # more than a trace has
GRAPH_BELOW = "a graph is launched below it: which of its activities are this call's is unknown"
TWO_FORWARDS = "calls of several threads have the sequence number of its forward call"
MOST_PCT = 105.0  # of a roofline: more needs an explanation
CACHED = "above the roofline: what it reads and writes fits the device's last-level cache"
BEYOND = (
    "above the roofline: it does less than its inputs say, or the device does more than its table"
)


@dataclass(frozen=True, slots=True)
class _Ops:
    """The op calls that have GPU work below them, a row each."""

    rows: Ints  # of table ops
    key: Ints  # of the call, ascending: its trace and event
    number: dict[str, int]  # of each trace, by trace_id
    trace: Ints  # number of its trace
    parent: Ints  # place of the call around it, -1 for none
    inner_first: Ints
    name: Words
    bits: Ints  # hints of the activities below it
    direct: Ints  # activities that it launched itself
    has_graph: Mask  # whether a graph launch is below it, whose activities are no op's


def op_perf(
    linked: Mapping[str, pa.Table],
    archs: Mapping[str, Arch | None],
    settings: Settings,
    spill: Spill | None = None,
) -> pa.Table:
    """Make the table `op_perf` of some traces.

    Args:
        linked: the tables `ops`, `signatures`, `kernels` and `triton_kernels` of the traces, in the
            order of one another's traces; `traces` and `steps` of any order.
        archs: the device of each trace by trace_id, None if it is not known.
        settings: the user's choices.
        spill: where columns go, if not into memory.

    Returns:
        OP_PERF, in the order of `ops`.
    """
    ops = linked["ops"]
    spill = Spill() if spill is None else spill
    found = _ops(ops, linked["kernels"], spill)
    formulas = Formulas(linked["signatures"], settings.rules, settings.user_models)
    called = Called(
        found.name.codes,
        found.name.values,
        spill.array(
            rows_of_ids(linked["signatures"], read_integers(ops, "signature_id").take(found.rows))
        ),
        spill.array(element_bytes(found.bits)),
    )
    results = formulas.results(called).kept(spill)
    results, forward = _with_forward(ops, found, called, formulas, results, linked["signatures"])
    results, forward = results.kept(spill), spill.array(forward)
    results = _with_compiled(found, formulas, results, linked["triton_kernels"])
    results = _with_steps(linked, found, formulas, results, settings)
    results = results.without(np.flatnonzero(found.has_graph), GRAPH_BELOW).kept(spill)
    devices = _devices(found, archs, settings)
    return _table(ops, found, formulas, results, forward, devices, spill)


def _devices(
    found: _Ops, archs: Mapping[str, Arch | None], settings: Settings
) -> tuple[Ints, list[Arch | None]]:
    """Return the place of each trace's device, by the trace's number, and the devices."""
    traces = len(found.number)
    if settings.arch is not None:
        return np.zeros(traces, dtype=np.int64), [settings.arch]
    return np.arange(traces, dtype=np.int64), [archs.get(trace_id) for trace_id in found.number]


def _ops(ops: pa.Table, kernels: pa.Table, spill: Spill) -> _Ops:
    rows = spill.array(np.flatnonzero(read_integers(ops, "kernel_count").values > 0))
    traces, number = _traces(ops)
    trace = spill.array(_numbers(traces.take(rows), number))
    key = spill.array(trace * _EVENTS + read_integers(ops, "event_id").values[rows])
    parents = read_integers(ops, "parent_id").take(rows)
    above = np.where(parents.known, trace * _EVENTS + parents.values, -1)
    parent = spill.array(places(key, above))
    del parents, above
    of_kernels = read_integers(kernels, "op_id")
    owner_trace = _numbers(read_words(kernels, "trace_id"), number)
    owners = np.where(of_kernels.known, owner_trace * _EVENTS + of_kernels.values, -1)
    owner = places(key, owners)
    depth = np.asarray(ops["depth"].to_numpy())[rows]
    inner_first = spill.array(np.argsort(-depth, kind="stable"))
    bits = np.zeros(len(rows), dtype=np.int64)
    has_op = owner >= 0
    np.bitwise_or.at(bits, owner[has_op], hints(kernels)[has_op])
    or_upward(parent, inner_first, bits)
    direct = read_integers(ops, "direct_kernel_count").values[rows]
    of_ops = direct.copy()
    add_upward(parent, inner_first, of_ops)
    return _Ops(
        rows=rows,
        key=key,
        number=number,
        trace=trace,
        parent=parent,
        inner_first=inner_first,
        name=read_words(ops, "name").take(rows).kept(spill),
        bits=spill.array(bits),
        direct=spill.array(direct),
        has_graph=read_integers(ops, "kernel_count").values[rows] > of_ops,
    )


def _traces(ops: pa.Table) -> tuple[Words, dict[str, int]]:
    """Return the trace of each op, and the number of each trace in order of occurrence."""
    words = read_words(ops, "trace_id")
    begins = words.codes[np.flatnonzero(np.diff(words.codes, prepend=-2))]
    distinct = dict.fromkeys(words.values[code] for code in begins.tolist())
    return words, {word: number for number, word in enumerate(distinct)}


def _numbers(words: Words, number: Mapping[str, int]) -> Ints:
    of_word = np.array([*(number.get(word, -1) for word in words.values), -1], dtype=np.int64)
    return of_word[words.codes]


def _with_forward(
    ops: pa.Table,
    found: _Ops,
    called: Called,
    formulas: Formulas,
    results: Results,
    signatures: pa.Table,
) -> tuple[Results, Ints]:
    """Evaluate backward calls that lack inputs by those of their forward calls.

    Returns the results, and for each call the row of `ops` of the forward call used, -1 for none.
    """
    forward = np.full(len(found.rows), -1, dtype=np.int64)
    is_backward = np.array(
        [*(formulas.is_backward(name) for name in found.name.values), False], dtype=np.bool_
    )[found.name.codes]
    lacking = np.flatnonzero(is_backward & np.isnan(results.flops))
    if not len(lacking):
        return results, forward
    numbers = read_integers(ops, "sequence_number").take(found.rows)
    bearer = number_bearers(
        found.name.values, found.name.codes, numbers.known & (numbers.values >= 0), found.parent
    )[lacking]
    lacking, bearer = lacking[bearer >= 0], bearer[bearer >= 0]
    thread = read_words(ops, "thread").codes
    is_open = np.zeros(len(found.rows), dtype=np.bool_)
    for candidate in forward_candidates(ops, found.rows[lacking], found.rows[bearer]):
        open_, rows = lacking[candidate.backward], candidate.forward
        words = read_words(ops, "name").take(rows)
        ids = read_integers(ops, "signature_id").take(rows)
        calls = Called(
            words.codes, words.values, rows_of_ids(signatures, ids), called.element[open_]
        )
        names = [found.name.values[code] for code in found.name.codes[open_].tolist()]
        tried = formulas.backward_results(calls, names)
        good = ~np.isnan(tried.flops)
        taken = np.flatnonzero(good & (forward[open_] < 0))
        results = results.replaced(open_[taken], tried.take(taken))
        forward[open_[taken]] = rows[taken]
        differs = (tried.flops != results.flops[open_]) | ~_equal(tried.bytes, results.bytes[open_])
        is_open[open_[good & differs & (thread[rows] != thread[forward[open_]])]] = True
    forward[is_open] = -1
    results = results.without(np.flatnonzero(is_open), TWO_FORWARDS)
    return results, forward


def _equal(first: Reals, second: Reals) -> NDArray[np.bool_]:
    return (first == second) | (np.isnan(first) & np.isnan(second))


def _with_steps(
    linked: Mapping[str, pa.Table],
    found: _Ops,
    formulas: Formulas,
    results: Results,
    settings: Settings,
) -> Results:
    """Give serving attention the work that the sums of its step tell."""
    calls = attention_calls(
        linked["ops"],
        found.rows,
        found.name,
        found.trace,
        found.parent,
        found.inner_first,
        formulas.family,
    )
    if calls is None:
        return results
    steps = linked["steps"]
    lengths = StepLengths(steps, _numbers(read_words(steps, "trace_id"), found.number))
    ranks = {
        found.number[word]: count
        for word, count in ranks_of(linked["traces"]).items()
        if word in found.number
    }
    return with_steps(results, calls, lengths, ranks, settings.model_config)


def _with_compiled(
    found: _Ops,
    formulas: Formulas,
    results: Results,
    kernels: pa.Table,
) -> Results:
    """Give calls of compiled kernels, which have no formula, the work of `triton_kernels`."""
    if not kernels.num_rows:
        return results
    trace = _numbers(read_words(kernels, "trace_id"), found.number)
    key = trace * _EVENTS + read_integers(kernels, "event_id").values
    place = places(found.key, key)
    rows = np.flatnonzero(place >= 0)
    rows = rows[~_have_model(found, formulas)[place[rows]]]
    place = place[rows]
    words = [read_words(kernels, name).take(rows) for name in ("compute_spec", "dtype", "why")]
    sizes = [read_integers(kernels, name).take(rows) for name in ("xnumel", "rnumel")]
    numbers = [numbered(np.where(size.known, size.values, -1))[0] for size in sizes]
    columns = [Words(n.astype(np.int32), [""] * (int(n.max(initial=-1)) + 1)) for n in numbers]
    spec, first = combination([*words, *columns])
    specs = []
    for row in first.tolist():
        peak, dtype, why = (w.values[w.codes[row]] if w.codes[row] >= 0 else None for w in words)
        unit, _, precision = (peak or "").partition("_")
        x, r = (int(size.values[row]) for size in sizes)
        params = json.dumps({"x": x, "r": r}) if sizes[0].known[row] else None
        specs.append(Spec(unit, precision, dtype, params, why))
    flops, moved = (_reals(kernels, name)[rows] for name in ("flops", "bytes"))
    return results.replaced(place, Results(flops, moved, spec, specs))


def _reals(table: pa.Table, name: str) -> Reals:
    column = read_integers(table, name)
    return np.where(column.known, column.values, np.nan)


def _have_model(found: _Ops, formulas: Formulas) -> Mask:
    """Tell which calls are of an op that has a formula."""
    of_name = np.array([*map(formulas.has_model, found.name.values), False], dtype=np.bool_)
    return of_name[found.name.codes]


def _table(
    ops: pa.Table,
    found: _Ops,
    formulas: Formulas,
    results: Results,
    forward: Ints,
    devices: tuple[Ints, list[Arch | None]],
    spill: Spill,
) -> pa.Table:
    """Make the table: rows of ops that have a formula or launched GPU work themselves."""
    known = ~np.isnan(results.flops)
    carrier = topmost(found.parent, found.inner_first, known)
    direct = found.direct
    shown = np.flatnonzero((direct > 0) | _have_model(found, formulas) | known)
    rows, results = spill.array(found.rows[shown]), results.take(shown).kept(spill)
    arch, archs = spill.array(devices[0][found.trace[shown]]), devices[1]
    limit = limits(results, found.bits[shown], arch, archs).kept(spill)

    is_whole = known[shown] | (direct[shown] == 0)  # it stands for all below it
    kernels = _either(ops, rows, is_whole, "kernel_count", "direct_kernel_count")
    time = _either(ops, rows, is_whole, "kernel_time_ns", "direct_kernel_time_ns")
    kernels, time = spill.array(kernels), spill.array(time)
    own = np.where(carrier[shown] >= 0, carrier[shown], np.where(direct[shown] > 0, shown, -1))
    own = spill.array(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        timed = spill.array(np.where(time > 0, time, np.nan).astype(np.float64))
        pct = spill.array(100.0 * limit.roofline_ns / timed)
        intensity = spill.array(results.flops / np.where(results.bytes > 0, results.bytes, np.nan))
    names = found.name.take(shown)
    words = [spec.why for spec in results.specs]
    why = spread(results.spec.astype(np.int32), words).kept(spill)
    arch_names = [None if a is None else a.name for a in archs]

    def columns() -> Columns:
        yield "trace_id", read_words(ops, "trace_id").take(rows).arrow()
        yield "event_id", _events(ops, rows).arrow()
        yield "name", names.arrow()
        yield "category", read_words(ops, "category").take(rows).arrow()
        yield "family", names.each(formulas.family).arrow()
        yield "signature_id", read_integers(ops, "signature_id").take(rows).arrow()
        yield "forward_id", _events(ops, forward[shown]).arrow()
        yield "step_id", read_integers(ops, "step_id").take(rows).arrow()
        yield "params", _of_specs(results, [spec.params for spec in results.specs]).arrow()
        yield "dtype", _of_specs(results, [spec.dtype for spec in results.specs]).arrow()
        yield "flops", whole(results.flops)
        yield "bytes", whole(results.bytes)
        yield "flops_per_byte", real(intensity)
        yield "compute_spec", limit.spec.arrow()
        yield "counted", pa.array(own == shown)
        yield "carrier_id", _events(ops, pick(found.rows, own)).arrow()
        yield "kernel_count", pa.array(kernels)
        yield "kernel_time_ns", pa.array(time)
        yield "tflops_s", real(results.flops / timed / 1e3)
        yield "tb_s", real(results.bytes / timed / 1e3)
        yield "arch", spread(arch.astype(np.int32), arch_names).arrow()
        yield "peak_tflops", real(limit.peak_tflops)
        yield "peak_tb_s", real(limit.peak_tb_s)
        yield "roofline_ns", real(limit.roofline_ns)
        yield "roofline_pct", real(pct)
        yield "bound", limit.bound.arrow()
        yield "why", first_of(why, limit.why).arrow()
        yield "note", _notes(pct, in_cache(results, arch, archs)).arrow()

    return table_of(OP_PERF, columns(), spill)


def _events(ops: pa.Table, rows: Ints) -> Integers:
    """Return the event ids of rows of ops, NULL where a row is -1."""
    return Integers(pick(read_integers(ops, "event_id").values, rows), rows >= 0)


def _either(ops: pa.Table, rows: Ints, is_first: Mask, first: str, second: str) -> Ints:
    return np.where(
        is_first, read_integers(ops, first).values[rows], read_integers(ops, second).values[rows]
    )


def _of_specs(results: Results, words: list[str | None]) -> Words:
    return spread(results.spec.astype(np.int32), words)


def _notes(pct: Reals, is_cached: Mask) -> Words:
    with np.errstate(invalid="ignore"):
        over = pct > MOST_PCT
    code = np.where(over, np.where(is_cached, 0, 1), -1).astype(np.int32)
    return spread(code, [CACHED, BEYOND])
