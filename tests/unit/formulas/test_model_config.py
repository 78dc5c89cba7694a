"""The attention of models, as their config.json says it."""

from __future__ import annotations

import json

import pytest

from tracehouse.errors import UsageError
from tracehouse.formulas.model_config import ModelConfig, parse_model_config, read_model_config

# Keys as the published configurations have them, what does not count left out.
LLAMA = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
GPT_OSS = {
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "hidden_size": 2880,
    "num_hidden_layers": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}
DEEPSEEK = {
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "hidden_size": 7168,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "kv_lora_rank": 512,
    "num_hidden_layers": 61,
    "dtype": "torch.bfloat16",
}


def parsed(**keys):
    return parse_model_config(keys, "config.json")


def test_grouped_heads():
    assert parsed(**LLAMA) == ModelConfig(
        *(32, 8, 128, 128), layers=32, dtype="bf16", longest=131072
    )
    alike = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert parsed(**alike).kv_heads == 32
    assert parsed(**LLAMA | {"head_dim": 96, "v_head_dim": 64}).d_v == 64
    assert parsed(**LLAMA | {"head_dim": 96}).d_qk == 96  # not hidden_size / heads


def test_latent_attention():
    found = parsed(**DEEPSEEK)
    assert (found.d_qk, found.d_v, found.latent, found.rope) == (192, 128, 512, 64)
    assert (found.heads, found.dtype) == (128, "bf16")


@pytest.mark.parametrize(
    ("keys", "window", "windowed"),
    [
        ({}, 128, (True, False, True, False)),
        ({"sliding_window": None}, None, None),
        ({"use_sliding_window": False}, None, None),
        ({"layer_types": None}, 128, (True,) * 4),
        ({"layer_types": None, "model_type": "gemma2"}, 128, None),
        ({"layer_types": None, "num_hidden_layers": None}, 128, None),
        ({"layer_types": None, "sliding_window_pattern": 3}, 128, (True, True, False, True)),
        (
            {"layer_types": None, "use_sliding_window": True, "max_window_layers": 3},
            *(128, (False, False, False, True)),
        ),
    ],
)
def test_windows(keys, window, windowed):
    found = parsed(**GPT_OSS | keys)
    assert (found.window, found.windowed) == (window, windowed)


@pytest.mark.parametrize(
    ("quantised", "bits"),
    [
        (None, None),
        ({"quant_method": "fp8"}, None),  # the weights', not the cache's
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 8),
        ({"kv_cache_scheme": None}, None),
        ({"kv_cache_quant_algo": "FP8"}, 8),
        ({"kv_cache_dtype": "fp8_e4m3"}, 8),
        ({"kv_cache_quant_algo": "NVFP4"}, 4),
    ],
)
def test_bits_of_the_cache(quantised, bits):
    assert parsed(**LLAMA | {"quantization_config": quantised}).kv_bits == bits


def test_the_language_model_of_several():
    found = parsed(text_config=GPT_OSS, num_attention_heads=16, torch_dtype="float16")
    assert (found.heads, found.d_qk, found.dtype) == (64, 64, "fp16")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"num_attention_heads": None}, "no num_attention_heads"),
        ({"num_attention_heads": "32"}, "num_attention_heads: '32' is no whole number above 0"),
        ({"num_attention_heads": True}, "num_attention_heads: True is no whole number above 0"),
        ({"num_key_value_heads": 0}, "num_key_value_heads: 0 is no whole number above 0"),
        ({"num_key_value_heads": 7}, "32 query heads do not divide among 7 of keys"),
        ({"hidden_size": 4097}, "hidden_size 4097 does not divide among 32 heads"),
        ({"hidden_size": None}, "no hidden_size"),
        ({"kv_lora_rank": 512}, "kv_lora_rank without qk_rope_head_dim"),
        ({"sliding_window": 128, "layer_types": ["full_attention"]}, "names 1 layers of 32"),
        ({"sliding_window": 128, "layer_types": "all"}, "layer_types: 'all' is no list of words"),
        ({"torch_dtype": "bloat16"}, "torch_dtype: 'bloat16' is no type"),
        ({"quantization_config": 8}, "quantization_config: 8 is no JSON object"),
        ({"quantization_config": {"kv_cache_scheme": {"num_bits": 9}}}, "is none of 4, 8, 16"),
    ],
)
def test_odd_configurations(keys, words):
    with pytest.raises(UsageError) as caught:
        parsed(**LLAMA | keys)
    assert words in str(caught.value)
    assert "config.json" in str(caught.value)
    assert caught.value.hint


def test_files(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert read_model_config(str(path)) == parsed(**LLAMA)
    for text, words in (("[1]", "not a JSON object"), ("{", "not JSON"), ("", "not JSON")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=words):
            read_model_config(str(path))
    path.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        read_model_config(str(path))
    with pytest.raises(UsageError, match="cannot read the model config"):
        read_model_config(str(tmp_path / "none.json"))
