"""Heads, widths and types of attention calls: from their inputs, else from the model's config.

They travel as the JSON text `params` of a call, so that `op_perf` shows them and
`attention_roofline` reads what was used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracehouse.analysis.columns import Ints
from tracehouse.formulas.dtypes import BYTES, CODE
from tracehouse.formulas.model_config import ModelConfig
from tracehouse.formulas.step_sums import ALL, EITHER, GENERATION
from tracehouse.formulas.step_work import Sizes

CONFIG = "model_config"  # key of params: heads and widths are those of the configuration
RANKS = "ranks"  # key of params: ranks that share the configuration's heads
UNPLACED = "window_unplaced"  # key of params: the model has a window in layers that are not known
_WIDTHS = ("H_q", "H_kv", "d_qk", "d_v")
NO_SPLIT = "the heads of --model-config do not divide among the ranks of the trace"

Params = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a call's surroundings add to its inputs.

    ranks: of the trace, None if unknown. window: keys that a token sees in its layer by the
    configuration, None for all. is_unplaced: whether the layer is not known, but some have a
    window. part: requests that the op's name says it is for.
    """

    ranks: int | None
    window: int | None
    is_unplaced: bool
    part: int


def completed(
    params: Params, has_inputs: bool, config: ModelConfig | None, setting: Setting
) -> Params | None:
    """Complete what a call's inputs say by the model's configuration.

    Args:
        params: what the formula took from the inputs.
        has_inputs: whether these have heads and widths.
        config: the configuration, None without.
        setting: of the call.

    Returns:
        The parameters; None if the configuration's heads do not divide among the ranks.
    """
    found = dict(params)
    if config is None:
        return found
    if not has_inputs:
        ranks = setting.ranks or 1
        if config.heads % ranks or (not config.latent and _kv_heads(config, ranks) == 0):
            return None
        found |= _of_config(config, ranks) | {CONFIG: 1}
        if setting.ranks:
            found[RANKS] = setting.ranks
        if setting.part != ALL:
            found["part"] = setting.part
    if "kv_bits" not in found and config.kv_bits:
        found["kv_bits"] = config.kv_bits
    if "window" not in found:
        if setting.window:
            found["window"] = setting.window
        elif setting.is_unplaced:
            found[UNPLACED] = 1
    return found


def _of_config(config: ModelConfig, ranks: int) -> dict[str, int]:
    sizes = {"H_q": config.heads // ranks, "H_kv": _kv_heads(config, ranks)}
    sizes |= {"d_qk": config.d_qk, "d_v": config.d_v}
    if config.latent:
        sizes |= {"H_kv": 1, "d_qk": config.latent + config.rope, "d_v": config.latent}
        sizes |= {"c_qk": config.d_qk, "c_v": config.d_v, "shared": 1}
    if config.dtype is not None:
        bits = int(8 * BYTES[CODE[config.dtype]])
        sizes |= {"q_bits": bits, "k_bits": bits}
    return sizes


def _kv_heads(config: ModelConfig, ranks: int) -> int:
    """Return the heads of keys on a rank; one may be on several. 0 if they cannot be shared."""
    if config.kv_heads % ranks == 0:
        return config.kv_heads // ranks
    return 1 if ranks % config.kv_heads == 0 else 0


def has_sizes(params: Params) -> bool:
    """Whether parameters have heads and widths."""
    return all(name in params for name in _WIDTHS)


def sizes_of(params: Sequence[Params], place: Ints) -> Sizes:
    """Return the sizes of calls, whose parameters stand at `place` (n,) of `params`."""

    def column(*names: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        values = [float(next((p[n] for n in names if n in p), np.nan)) for p in params]
        if len(values) == 1:
            return np.broadcast_to(values[0], len(place))
        return np.array(values, dtype=np.float64)[place]

    is_latent = np.array(["shared" in p and "c_qk" in p for p in params], dtype=np.bool_)[place]
    d_v = column("d_v")
    return Sizes(
        queries=column("N_q"),
        h_q=column("H_q"),
        h_kv=column("H_kv"),
        d_qk=column("d_qk"),
        d_v=d_v,
        c_qk=column("c_qk", "d_qk"),
        c_v=np.where(is_latent, column("c_v"), d_v),
        q_bytes=column("q_bits") / 8.0,
        kv_bytes=column("kv_bits", "k_bits") / 8.0,
        window=column("window"),
        shared=column("shared"),
    )


def parts_of(params: Sequence[Params], place: Ints) -> Ints:
    """Return the requests that calls are for by their op, as `step_sums.part_of` takes them."""
    return np.array([p.get("part", ALL) for p in params], dtype=np.int64)[place]


def part_of_name(name: str) -> int:
    """Return the requests that a call without inputs is for, as far as its name says it."""
    plain = name.rpartition("::")[2].lower()
    if "unified" in plain:
        return ALL
    is_decode = ("decode" in plain and "prefill" not in plain) or plain.startswith("pa_")
    return GENERATION if is_decode or "paged_attention" in plain else EITHER


def text_of(params: Params) -> str | None:
    """Return parameters as JSON text, None where there are none."""
    return json.dumps(dict(params)) if params else None


def params_of(text: str | None) -> Params:
    """Read parameters from their JSON text."""
    found: dict[str, int] = json.loads(text) if text else {}
    return found
