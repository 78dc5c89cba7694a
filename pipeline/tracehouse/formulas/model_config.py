"""What a model's configuration (`config.json` of Hugging Face) says of its attention."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tracehouse.errors import UsageError
from tracehouse.formulas.dtypes import DTYPES, FIRST_TENSOR_TYPE, dtype_code

_LARGEST_FILE = 4 * 1024 * 1024
_LARGEST = 2**31
_NESTED = ("text_config", "language_config", "llm_config")
_SLIDING = "sliding_attention"
_CACHE_BITS = {"fp8": 8, "float8": 8, "int8": 8, "nvfp4": 4, "fp4": 4, "int4": 4}
_HINT = "give the config.json that stands beside the model's weights"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Attention of a model.

    heads, kv_heads: of all ranks together. d_qk, d_v: widths of a key and a value; latent: the
    width of MLA's latent, and rope of the position beside it, 0 without MLA. window: keys that a
    token sees in the layers of `windowed`; None for all. layers: how many there are. windowed:
    which of them have the window, None if that is not said. dtype: name of the type of its
    activations, None if not said. kv_bits: of a number in the cache, None if it is not said.
    longest: positions it is made for, None if not said.
    """

    heads: int
    kv_heads: int
    d_qk: int
    d_v: int
    latent: int = 0
    rope: int = 0
    window: int | None = None
    layers: int | None = None
    windowed: tuple[bool, ...] | None = None
    dtype: str | None = None
    kv_bits: int | None = None
    longest: int | None = None


def read_model_config(path: str) -> ModelConfig:
    """Read the configuration at `path`; UsageError if it cannot be used, which says why."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"cannot read the model config {path}: {error}", hint=_HINT) from error
    if len(content) > _LARGEST_FILE:
        _wrong(path, "larger than 4 MiB")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        _wrong(path, f"not JSON: {error}")
    if not isinstance(found, dict):
        _wrong(path, "not a JSON object")
    return parse_model_config(found, path)


def parse_model_config(found: Mapping[str, Any], where: str) -> ModelConfig:
    """Read a configuration from its keys; `where` is named in the UsageError of an odd one."""
    keys = _Keys(found, where)
    heads = keys.needed("num_attention_heads", "n_head", "n_heads")
    kv_heads = keys.number("num_key_value_heads", "num_kv_heads", "n_head_kv") or heads
    latent, rope = keys.number("kv_lora_rank") or 0, keys.number("qk_rope_head_dim") or 0
    if heads % kv_heads:
        _wrong(where, f"{heads} query heads do not divide among {kv_heads} of keys")
    if latent and not rope:
        _wrong(where, "kv_lora_rank without qk_rope_head_dim")
    if latent:
        d_qk = keys.needed("qk_nope_head_dim") + rope
        d_v = keys.needed("v_head_dim")
    else:
        d_qk = keys.number("head_dim") or _head_dim(keys, heads)
        d_v = keys.number("v_head_dim") or d_qk
    layers = keys.number("num_hidden_layers", "n_layer", "n_layers")
    window, windowed = _window(keys, layers)
    return ModelConfig(
        heads=heads,
        kv_heads=kv_heads,
        d_qk=d_qk,
        d_v=d_v,
        latent=latent,
        rope=rope,
        window=window,
        layers=layers,
        windowed=windowed,
        dtype=_dtype(keys),
        kv_bits=_kv_bits(keys),
        longest=keys.number("max_position_embeddings", "n_positions", "max_seq_len"),
    )


class _Keys:
    """Keys of a configuration: those of its language model, where it nests one, go first."""

    def __init__(self, found: Mapping[str, Any], where: str) -> None:
        self.where = where
        nested: Mapping[str, Any] = next(
            (found[key] for key in _NESTED if isinstance(found.get(key), dict)), {}
        )
        self._found = {**found, **{k: v for k, v in nested.items() if v is not None}}

    def get(self, *names: str) -> Any:
        """Return the value of the first of `names` that is there and not null; else None."""
        return next((self._found[n] for n in names if self._found.get(n) is not None), None)

    def number(self, *names: str) -> int | None:
        """Return a whole number above 0, None where it is absent; UsageError for anything else."""
        value = self.get(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST:
            _wrong(self.where, f"{names[0]}: {_shown(value)} is no whole number above 0")
        return value

    def needed(self, *names: str) -> int:
        """Return a whole number above 0; UsageError where it is absent."""
        value = self.number(*names)
        if value is None:
            _wrong(self.where, f"no {names[0]}")
        return value


def _head_dim(keys: _Keys, heads: int) -> int:
    hidden = keys.needed("hidden_size", "n_embd", "d_model")
    if hidden % heads:
        _wrong(keys.where, f"hidden_size {hidden} does not divide among {heads} heads: no head_dim")
    return hidden // heads


def _window(keys: _Keys, layers: int | None) -> tuple[int | None, tuple[bool, ...] | None]:
    """Return the window, and which layers have it, None if that is not said."""
    if keys.get("use_sliding_window") is False or keys.get("sliding_window") in (0, -1):
        return None, None
    window = keys.number("sliding_window")
    if window is None:
        return None, None
    types = keys.get("layer_types")
    if types is not None:
        if not isinstance(types, list) or not all(isinstance(word, str) for word in types):
            _wrong(keys.where, f"layer_types: {_shown(types)} is no list of words")
        if layers is not None and len(types) != layers:
            _wrong(keys.where, f"layer_types names {len(types)} layers of {layers}")
        return window, tuple(word == _SLIDING for word in types)
    pattern = keys.number("sliding_window_pattern", "_sliding_window_pattern")
    first = keys.get("max_window_layers")
    if layers is None:
        return window, None
    if pattern is not None:
        return window, tuple((layer + 1) % pattern != 0 for layer in range(layers))
    if keys.get("use_sliding_window") is True and isinstance(first, int):
        return window, tuple(layer >= first for layer in range(layers))
    if keys.get("model_type") in ("gemma2", "gpt_oss", "cohere2"):
        return window, None  # some layers have it, and the file does not say which
    return window, (True,) * layers


def _dtype(keys: _Keys) -> str | None:
    word = keys.get("torch_dtype", "dtype")
    if word is None:
        return None
    if not isinstance(word, str):
        _wrong(keys.where, f"torch_dtype: {_shown(word)} is no type")
    code = dtype_code(word.removeprefix("torch."))
    if code < FIRST_TENSOR_TYPE:
        _wrong(keys.where, f"torch_dtype: {_shown(word)} is no type")
    return DTYPES[code].name


def _kv_bits(keys: _Keys) -> int | None:
    """Return the bits of a number in the cache by the model's quantisation, None if not said."""
    found = keys.get("quantization_config", "compression_config")
    if found is None:
        return None
    if not isinstance(found, dict):
        _wrong(keys.where, f"quantization_config: {_shown(found)} is no JSON object")
    scheme = found.get("kv_cache_scheme")
    if isinstance(scheme, dict):
        bits = scheme.get("num_bits")
        if bits not in (4, 8, 16):
            _wrong(keys.where, f"kv_cache_scheme.num_bits: {_shown(bits)} is none of 4, 8, 16")
        return int(bits)
    word = next(
        (
            found[key]
            for key in ("kv_cache_quant_algo", "kv_cache_dtype", "kv_cache_quant_method")
            if isinstance(found.get(key), str)
        ),
        scheme if isinstance(scheme, str) else "",
    ).lower()
    return next((bits for start, bits in _CACHE_BITS.items() if word.startswith(start)), None)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _wrong(where: str, what: str) -> NoReturn:
    raise UsageError(f"the model config {where} cannot be used: {what}", hint=_HINT)
