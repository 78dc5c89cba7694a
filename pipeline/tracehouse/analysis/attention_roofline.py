"""The table `attention_roofline`: each attention call of a step, by the sums of that step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehouse.analysis.attention_calls import ATTENTION
from tracehouse.analysis.attention_sizes import (
    CONFIG,
    RANKS,
    UNPLACED,
    Params,
    has_sizes,
    params_of,
    parts_of,
    sizes_of,
)
from tracehouse.analysis.columns import (
    Ints,
    Reals,
    Words,
    combination,
    read_integers,
    read_words,
    spread,
    whole,
)
from tracehouse.analysis.step_lengths import StepLengths
from tracehouse.formulas.model_config import ModelConfig
from tracehouse.formulas.step_bounds import bounds
from tracehouse.formulas.step_sums import UNCLEAR, Sums, part_of
from tracehouse.formulas.step_work import attention
from tracehouse.schema.tables import ATTENTION_ROOFLINE

_PARTS = ("all", "context", "generation")
_SAME = (  # columns of op_perf
    *("trace_id", "step_id", "event_id", "name", "dtype", "flops", "bytes", "flops_per_byte"),
    *("kernel_count", "kernel_time_ns", "tflops_s", "tb_s", "compute_spec", "arch"),
    *("roofline_ns", "roofline_pct", "bound", "why"),
)
_OF_STEP = (
    *("phase", "framework", "r_c", "r_g", "c_sq", "c_sk", "c_sqsq", "c_sqsk"),
    *("g_sq", "g_sk", "g_sqsq", "g_sqsk", "tokens", "t_sk", "t_sqsk"),
)
_LARGEST = 2.0**62

WHOLE_MODEL = "heads of the whole model: how many ranks share them is not known"
SHARED_HEADS = "heads of one of {ranks} ranks, if all of them share each layer"
WINDOWED = "a window of {window} keys: flops and bytes are upper bounds, short requests see fewer"
UNPLACED_WINDOW = "some layers have a window, which is not applied: the call's layer is not known"
ASSUMED_CACHE = "the cache is taken to be of the new keys' type, {bits} bits"
VIOLATED = "the step's sums contradict each other: {what}"


def attention_roofline(
    op_perf: pa.Table, kernels: pa.Table, steps: pa.Table, config: ModelConfig | None
) -> pa.Table:
    """Make the table `attention_roofline` of some traces.

    Args:
        op_perf: the table, with the work by the steps' sums.
        kernels: further calls, each an attention kernel without an op, as rows of `op_perf`.
        steps: the table.
        config: the model's configuration, None without.

    Returns:
        ATTENTION_ROOFLINE, in the order of `op_perf` and then of `kernels`: the rows of attention
        that carry time and are in a step.
    """
    family = read_words(op_perf, "family")
    of_family = np.array([*(word in ATTENTION for word in family.values), False], dtype=np.bool_)
    wanted = of_family[family.codes]
    if not (wanted.any() or kernels.num_rows) or not steps.num_rows:
        return ATTENTION_ROOFLINE.schema.empty_table()
    wanted &= op_perf["counted"].to_numpy(zero_copy_only=False)
    calls = op_perf.take(np.flatnonzero(wanted & read_integers(op_perf, "step_id").known))
    calls = pa.concat_tables([calls, kernels]).unify_dictionaries().combine_chunks()
    traces = read_words(calls, "trace_id")
    place = {word: i for i, word in enumerate(traces.values)}
    of_steps = read_words(steps, "trace_id")
    number = np.array([*(place.get(word, -1) for word in of_steps.values), -1], dtype=np.int64)
    lengths = StepLengths(steps, number[of_steps.codes])
    row = lengths.rows(traces.codes.astype(np.int64), read_integers(calls, "step_id"))
    calls, row = calls.take(np.flatnonzero(row >= 0)), row[row >= 0]
    return _table(calls, steps, row, lengths.sums(row), config)


def _table(
    calls: pa.Table, steps: pa.Table, row: Ints, sums: Sums, config: ModelConfig | None
) -> pa.Table:
    texts = read_words(calls, "params")
    params = [*(params_of(text) for text in texts.values), params_of(None)]
    at = np.where(texts.codes < 0, len(texts.values), texts.codes).astype(np.int64)
    sizes = sizes_of(params, at)
    part = part_of(parts_of(params, at), sizes.queries, sums)
    own = sums.of_part(part)
    work = attention(sizes, own)
    longest = float(config.longest) if config is not None and config.longest else np.nan
    limit = bounds(sizes, own, longest)
    of_step = steps.select(_OF_STEP).take(row)
    source = ["model_config" if CONFIG in p else "inputs" if has_sizes(p) else None for p in params]
    columns = {name: calls[name] for name in _SAME}
    columns |= {name: of_step[name] for name in _OF_STEP}
    columns |= {
        "part": spread(np.where(part == UNCLEAR, -1, part).astype(np.int32), _PARTS).arrow(),
        "h_q": whole(sizes.h_q),
        "h_kv": whole(sizes.h_kv),
        "d_qk": whole(sizes.d_qk),
        "d_v": whole(sizes.d_v),
        "window_keys": whole(sizes.window),
        "kv_bits": whole(8.0 * sizes.kv_bytes),
        "source": spread(at.astype(np.int32), source).arrow(),
        "flops_seed": _whole(work.flops_seed),
        "bytes_seed": _whole(work.bytes_seed),
        "flops_min": _whole(limit.flops_min),
        "flops_max": _whole(limit.flops_max),
        "bytes_min": _whole(limit.bytes_min),
        "bytes_max": _whole(limit.bytes_max),
        "note": _notes(calls, params, at, steps, row).arrow(),
    }
    columns = {
        column.name: columns[column.name].cast(column.type) for column in ATTENTION_ROOFLINE.columns
    }
    return pa.table(columns, schema=ATTENTION_ROOFLINE.schema)


def _whole(values: Reals) -> pa.Array:
    return whole(np.where(values < _LARGEST, np.rint(values), np.nan))


def _notes(calls: pa.Table, params: list[Params], at: Ints, steps: pa.Table, row: Ints) -> Words:
    """Return what to know about each call's numbers, worded once for each distinct case."""
    of_sizes = Words(at.astype(np.int32), [""] * len(params))
    of_roofline = read_words(calls, "note")
    violated = pa.table({"violated": steps["violated"].take(row).dictionary_encode()})
    of_step = read_words(violated, "violated")
    number, first = combination([of_sizes, of_roofline, of_step])
    words = []
    for i in first.tolist():
        notes = _sizes_notes(params[at[i]])
        if of_step.codes[i] >= 0:
            notes.append(VIOLATED.format(what=of_step.values[of_step.codes[i]]))
        if of_roofline.codes[i] >= 0:
            notes.append(of_roofline.values[of_roofline.codes[i]])
        words.append("; ".join(notes) or None)
    return spread(number.astype(np.int32), words)


def _sizes_notes(params: Params) -> list[str]:
    notes = []
    if CONFIG in params:
        ranks = params.get(RANKS)
        if ranks != 1:
            notes.append(SHARED_HEADS.format(ranks=ranks) if ranks else WHOLE_MODEL)
    if "window" in params:
        notes.append(WINDOWED.format(window=params["window"]))
    if UNPLACED in params:
        notes.append(UNPLACED_WINDOW)
    if "kv_bits" not in params and "k_bits" in params:
        notes.append(ASSUMED_CACHE.format(bits=params["k_bits"]))
    return notes
