"""Attention kernels of steps that no op is known of: replayed graphs, Triton without an op.

Heads and widths can only be those of the model's configuration. Kernels that finish the work of an
attention kernel, reducing over its splits, belong to the call of the one before them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tracehouse.analysis.attention_calls import Attention, places_in_steps
from tracehouse.analysis.columns import (
    Ints,
    Mask,
    Words,
    constant,
    first_of,
    numbered,
    read_integers,
    read_words,
    real,
    spread,
    whole,
)
from tracehouse.analysis.kernel_hints import hints
from tracehouse.analysis.op_work import Results, Spec
from tracehouse.analysis.roofline import limits
from tracehouse.analysis.serving_work import with_steps
from tracehouse.analysis.step_lengths import StepLengths
from tracehouse.formulas.arch import Arch
from tracehouse.formulas.model import WHY, Why
from tracehouse.formulas.model_config import ModelConfig
from tracehouse.schema.tables import OP_PERF
from tracehouse.vocab import Kind

NO_OP = "no op is known of its kernel: pass --model-config, or the traces of the graphs' capture"
_FINISHES = re.compile(
    r"reduce_segments|(?:splitkv|FlashAttnFwd)_?combine|paged_attention\w*_reduce|MergeStates"
    r"|_fwd_kernel_stage2",
    re.IGNORECASE,
)
_ATTENDS = re.compile(
    r"unified_attention_[23]d|paged_attention|flash_fwd|FlashAttnFwd|fmha_\w*(?:fwd|prefill)"
    r"|FmhaFwd|FmhaBatchPrefill|Batch(?:Decode|Prefill)With\w*KVCache|(?:^|_)mla_(?:a8w8_|a16w16_)?"
    r"(?:decode|dec_stage|pfl)|^pa_(?:fwd|decode|bf16|fp16)|^_fwd_(?:grouped_)?kernel(?:_stage1)?$",
    re.IGNORECASE,
)


def attention_kernels(
    kernels: pa.Table,
    steps: pa.Table,
    archs: Mapping[str, Arch | None],
    ranks: Mapping[str, int],
    config: ModelConfig | None,
) -> pa.Table:
    """Return attention kernels in steps that have no op, as rows of `op_perf`.

    Args:
        kernels: the table.
        steps: the table.
        archs: the device of each trace, by trace_id.
        ranks: of the job of each trace, by trace_id, where known.
        config: the model's configuration, None without.

    Returns:
        OP_PERF, a row for each attention kernel; its event_id is the kernel's.
    """
    is_main, is_rest = _kinds(kernels)
    if not is_main.any():
        return OP_PERF.schema.empty_table()
    rows, counts, time = _calls(kernels, is_main, is_rest)
    used = kernels.take(rows)
    traces = read_words(used, "trace_id")
    number = {word: i for i, word in enumerate(traces.values)}
    trace, step = traces.codes.astype(np.int64), read_integers(used, "step_id")
    names = read_words(used, "short_name")
    start = read_integers(used, "ts_ns").values
    layer, layers = places_in_steps(trace, step, start, np.ones(len(rows), dtype=np.bool_))
    found = Attention(np.arange(len(rows)), names.codes, names.values, trace, step, layer, layers)
    of_steps = read_words(steps, "trace_id")
    of_step = np.array([*(number.get(w, -1) for w in of_steps.values), -1], dtype=np.int64)
    unknown = np.full(len(rows), np.nan)
    spec = Spec("", "", None, None, WHY[Why.NO_INPUTS])
    results = Results(unknown, unknown, np.zeros(len(rows), dtype=np.int64), [spec])
    lengths = StepLengths(steps, of_step[of_steps.codes])
    by_number = {number[word]: count for word, count in ranks.items() if word in number}
    results = with_steps(results, found, lengths, by_number, config)
    devices = [archs.get(word) for word in traces.values]
    return _table(used, results, trace, devices, counts, time)


def _kinds(kernels: pa.Table) -> tuple[Mask, Mask]:
    """Tell which kernels attend, and which finish another's work, of those in steps without op."""
    names, kinds = read_words(kernels, "short_name"), read_words(kernels, "kind")
    finishes = [bool(_FINISHES.search(word)) for word in names.values]
    attends = [
        bool(_ATTENDS.search(word)) and not rest
        for word, rest in zip(names.values, finishes, strict=True)
    ]
    computes = np.array([*(kind == Kind.COMPUTE for kind in kinds.values), False])[kinds.codes]
    alone = read_integers(kernels, "step_id").known & ~read_integers(kernels, "op_id").known
    alone &= computes & read_integers(kernels, "dur_ns").known
    is_main = np.array([*attends, False], dtype=np.bool_)[names.codes] & alone
    return is_main, np.array([*finishes, False], dtype=np.bool_)[names.codes] & alone


def _calls(kernels: pa.Table, is_main: Mask, is_rest: Mask) -> tuple[Ints, Ints, Ints]:
    """Return the row of each attention kernel, its kernels with those that finish it, their time.

    What finishes a call follows it on its stream, in its step.
    """
    rows = np.flatnonzero(is_main | is_rest)
    lane = read_words(kernels, "trace_id").codes[rows].astype(np.int64)
    for name in ("step_id", "device", "stream"):
        codes, distinct = numbered(read_integers(kernels, name).values[rows])
        lane = numbered(lane * (len(distinct) + 1) + codes)[0]
    order = np.lexsort((rows, read_integers(kernels, "ts_ns").values[rows], lane))
    rows, lane = rows[order], lane[order]
    starts = is_main[rows]
    call = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    belongs = (call >= 0) & (lane == lane[first[np.maximum(call, 0)]])
    time = np.zeros(len(first), dtype=np.int64)
    np.add.at(time, call[belongs], read_integers(kernels, "dur_ns").values[rows[belongs]])
    counts = np.bincount(call[belongs], minlength=len(first))
    order = np.argsort(rows[first])
    return rows[first][order], counts[order], time[order]


def _table(
    used: pa.Table,
    results: Results,
    trace: Ints,
    devices: list[Arch | None],
    counts: Ints,
    time: Ints,
) -> pa.Table:
    limit = limits(results, hints(used), trace, devices)
    size = len(time)
    spec = results.spec.astype(np.int32)
    timed = np.where(time > 0, time, np.nan).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        intensity = results.flops / np.where(results.bytes > 0, results.bytes, np.nan)
    reasons = [NO_OP if s.why == WHY[Why.NO_INPUTS] else s.why for s in results.specs]
    columns = {
        "trace_id": used["trace_id"],
        "event_id": used["event_id"],
        "step_id": used["step_id"],
        "name": read_words(used, "short_name").arrow(),
        "family": constant("infer_attention", size).arrow(),
        "params": spread(spec, [s.params for s in results.specs]).arrow(),
        "dtype": spread(spec, [s.dtype for s in results.specs]).arrow(),
        "flops": whole(results.flops),
        "bytes": whole(results.bytes),
        "flops_per_byte": real(intensity),
        "compute_spec": limit.spec.arrow(),
        "counted": pa.array(np.ones(size, dtype=np.bool_)),
        "kernel_count": pa.array(counts, pa.int64()),
        "kernel_time_ns": pa.array(time, pa.int64()),
        "tflops_s": real(results.flops / timed / 1e3),
        "tb_s": real(results.bytes / timed / 1e3),
        "arch": spread(
            trace.astype(np.int32), [None if a is None else a.name for a in devices]
        ).arrow(),
        "roofline_ns": real(limit.roofline_ns),
        "roofline_pct": real(100.0 * limit.roofline_ns / timed),
        "bound": limit.bound.arrow(),
        "why": first_of(spread(spec, reasons), limit.why).arrow(),
    }
    empty = Words(np.full(size, -1, dtype=np.int32), []).arrow()
    filled = []
    for field in OP_PERF.schema:
        plain = empty if pa.types.is_dictionary(field.type) else pa.nulls(size, field.type)
        column = columns.get(field.name, plain)
        filled.append(column.cast(field.type))
    return pa.table(filled, schema=OP_PERF.schema)
