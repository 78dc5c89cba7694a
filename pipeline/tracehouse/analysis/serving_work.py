"""The work of serving attention: what a call's inputs say, with the sums of the step it is in.

An op with the same inputs does other work in another step, so nothing here is done once per inputs
but reading them: FLOPs and bytes are arithmetic on arrays of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.analysis.attention_calls import Attention
from tracehouse.analysis.attention_sizes import (
    NO_SPLIT,
    Params,
    Setting,
    completed,
    has_sizes,
    params_of,
    part_of_name,
    parts_of,
    sizes_of,
    text_of,
)
from tracehouse.analysis.columns import Ints, Mask, Words, combination, numbered
from tracehouse.analysis.op_work import Results, Spec
from tracehouse.analysis.step_lengths import StepLengths
from tracehouse.formulas.dtypes import CODE, DTYPES
from tracehouse.formulas.model import WHY, Why
from tracehouse.formulas.model_config import ModelConfig
from tracehouse.formulas.step_sums import UNCLEAR, part_of
from tracehouse.formulas.step_work import attention

UNSAID = "the step's annotation does not say the lengths: attention_roofline has bounds"
PARTLY = "its queries are not all of the step's, and which requests they are of is not known"
_WITHOUT_HEADS = {WHY[why] for why in (Why.NO_INPUTS, Why.NO_SHAPE, Why.NO_FORMULA, Why.NO_HEADS)}
_LARGEST = float(2**62)
_KNOWN, _OUTSIDE, _UNSAID, _PARTLY, _NO_TYPE, _TOO_LARGE = range(6)
_REASONS = (None, WHY[Why.NO_LENGTHS], UNSAID, PARTLY, WHY[Why.NO_TYPE], WHY[Why.TOO_LARGE])


def with_steps(
    results: Results,
    found: Attention,
    lengths: StepLengths,
    ranks: Mapping[int, int],
    config: ModelConfig | None,
) -> Results:
    """Return results with the work of attention calls by the sums of their steps.

    Args:
        results: of n op calls; those of attention know what their inputs say.
        found: the attention calls among them.
        lengths: the sums of the steps.
        ranks: that the job of a trace has, by the trace's number, where known.
        config: the model's configuration, None without.
    """
    lacking = np.isnan(results.flops[found.rows]) | np.isnan(results.bytes[found.rows])
    at = np.flatnonzero(lacking)
    variants = _variants(results, found, at, ranks, config)
    params = [variant.params for variant in variants.specs]
    place = variants.place
    sums = lengths.sums(step := lengths.rows(found.trace[at], found.step.take(at)))
    sizes = sizes_of(params, place)
    part = part_of(parts_of(params, place), sizes.queries, sums)
    flops, moved, _, _ = attention(sizes, sums.of_part(part))
    is_linear = np.array(["H_v" in p for p in params], dtype=np.bool_)[place]
    for amount, of_linear in zip((flops, moved), _linear(params, place, sums.t_sq), strict=True):
        amount[is_linear] = of_linear[is_linear]
    reason = _reasons(flops, moved, step >= 0, part == UNCLEAR)
    for amount in (flops, moved):
        amount[~(amount < _LARGEST)] = np.nan
    usable = np.array([variant.is_usable for variant in variants.specs], dtype=np.bool_)[place]
    flops[~usable] = moved[~usable] = np.nan
    spec, specs = _specs(variants, np.where(usable, reason, _KNOWN))
    return results.replaced(found.rows[at], Results(np.rint(flops), np.rint(moved), spec, specs))


def ranks_of(traces: pa.Table) -> dict[str, int]:
    """Return the ranks of the job of each trace that says them, by trace_id."""
    sizes = traces["world_size"].to_pylist()
    words = traces["trace_id"].to_pylist()
    return {word: size for word, size in zip(words, sizes, strict=True) if size and size > 0}


def _reasons(
    flops: NDArray[np.float64], moved: NDArray[np.float64], in_step: Mask, is_unclear: Mask
) -> Ints:
    """Return why flops or bytes are unknown, a place in _REASONS."""
    too_large = (flops >= _LARGEST) | (moved >= _LARGEST)
    unknown = np.where(
        ~in_step, _OUTSIDE, np.where(is_unclear, _PARTLY, np.where(np.isnan(flops), _UNSAID, -1))
    )
    unknown = np.where(unknown < 0, np.where(np.isnan(moved), _NO_TYPE, _KNOWN), unknown)
    is_known = ~np.isnan(flops) & ~np.isnan(moved)
    return np.where(is_known, np.where(too_large, _TOO_LARGE, _KNOWN), unknown)


def _linear(
    params: list[Params], place: Ints, tokens: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return FLOPs and bytes of gated delta networks: decayed, updated and queried a token.

    FLOPs = tokens·H_v·7·d_v·d_k; bytes of q, k, v, the two gates and the output; the state is not
    counted. Source: perf_models A6.
    """
    heads, d_k, d_v, bits = (
        np.array([p.get(name, np.nan) for p in params], dtype=np.float64)[place]
        for name in ("H_v", "d_k", "d_v", "q_bits")
    )
    return tokens * heads * 7.0 * d_v * d_k, tokens * heads * (d_k + 2.0 * d_v + 2.0) * bits / 8.0


@dataclass(frozen=True, slots=True)
class _Variant:
    """What is known of calls with the same inputs and surroundings."""

    spec: Spec
    params: Params
    is_usable: bool  # heads and widths are known


@dataclass(frozen=True, slots=True)
class _Variants:
    """The variants of calls, and the place (m,) of each call's among them."""

    specs: list[_Variant]
    place: Ints


def _variants(
    results: Results,
    found: Attention,
    at: Ints,
    ranks: Mapping[int, int],
    config: ModelConfig | None,
) -> _Variants:
    """Complete what the inputs say by the configuration, once for each distinct case."""
    rows, trace, name = found.rows[at], found.trace[at], found.name[at]
    layer = _layers(found, at, config)
    by_trace = trace if config is not None else np.zeros(len(at), dtype=np.int64)
    columns = []
    for values in (results.spec[rows], name.astype(np.int64), by_trace, layer):
        numbers, distinct = numbered(values)
        columns.append(Words(numbers.astype(np.int32), [""] * len(distinct)))
    place, first = combination(columns)
    specs = []
    for i in first.tolist():
        spec = results.specs[int(results.spec[rows[i]])]
        setting = Setting(
            ranks=ranks.get(int(trace[i])),
            window=config.window if config is not None and layer[i] == _WINDOWED else None,
            is_unplaced=bool(layer[i] == _UNPLACED),
            part=part_of_name(found.names[int(name[i])]),
        )
        specs.append(_variant(spec, config, setting))
    return _Variants(specs, place)


def _variant(spec: Spec, config: ModelConfig | None, setting: Setting) -> _Variant:
    params = params_of(spec.params)
    if "H_v" in params:
        return _Variant(spec, params, is_usable=True)
    has_inputs = has_sizes(params)
    if not has_inputs and spec.why not in _WITHOUT_HEADS:
        return _Variant(spec, params, is_usable=False)  # its inputs are odd
    complete = completed(params, has_inputs, config, setting)
    if complete is None:
        return _Variant(replace(spec, why=NO_SPLIT), params, is_usable=False)
    if not has_sizes(complete):
        return _Variant(spec, params, is_usable=False)
    if not has_inputs and config is not None and config.dtype is not None and not spec.dtype:
        precision = DTYPES[CODE[config.dtype]].precision
        spec = replace(spec, dtype=config.dtype, precision=precision)
    return _Variant(replace(spec, unit="matrix", params=text_of(complete)), complete, True)


_PLAIN, _WINDOWED, _UNPLACED = 0, 1, 2


def _layers(found: Attention, at: Ints, config: ModelConfig | None) -> Ints:
    """Tell of each call whether its layer has the configuration's window.

    Where some layers have it, the k-th attention call of a step is of the k-th layer, if it has as
    many calls as the model has layers.
    """
    if config is None or config.window is None:
        return np.full(len(at), _PLAIN, dtype=np.int64)
    if config.windowed is None:
        return np.full(len(at), _UNPLACED, dtype=np.int64)
    if all(config.windowed):
        return np.full(len(at), _WINDOWED, dtype=np.int64)
    known = found.layers[at] == len(config.windowed)
    layer = np.where(known, found.layer[at], 0)
    of_layer = np.where(np.array(config.windowed), _WINDOWED, _PLAIN)
    return np.where(known, of_layer[layer], _UNPLACED)


def _specs(variants: _Variants, reason: Ints) -> tuple[Ints, list[Spec]]:
    """Return the place of each call's words, and the words: those of its variant, and why."""
    count = len(_REASONS)
    spec, keys = numbered(variants.place * count + reason)
    specs = []
    for key in keys.tolist():
        variant, why = variants.specs[key // count], _REASONS[key % count]
        specs.append(replace(variant.spec, why=why) if variant.is_usable else variant.spec)
    return spec, specs
