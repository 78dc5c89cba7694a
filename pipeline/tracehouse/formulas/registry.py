"""Which model an op has: by its family, as data/op_categories.csv names it.

The module that holds the model of a family is imported once an op of that family is met.
"""

from __future__ import annotations

import functools
import importlib

from tracehouse.formulas.model import Model

# The modules of formulas, and the families of each. A test holds them to the modules' MODELS.
MODULES: dict[str, tuple[str, ...]] = {
    "attention": (
        *("sdpa_aten", "sdpa_leaf", "sdpa_flash", "sdpa_varlen", "sdpa_fa3", "sdpa_aiter"),
        *("sdpa_aiter_wrap", "sdpa_evoformer", "sdpa_sage", "sdpa_te"),
    ),
    "attention_bwd": (
        *("sdpa_aten_bwd", "sdpa_leaf_bwd", "sdpa_flash_bwd", "sdpa_varlen_bwd", "sdpa_fa3_bwd"),
        *("sdpa_aiter_bwd", "sdpa_aiter_wrap_bwd", "sdpa_evoformer_bwd"),
    ),
    "rope": ("rope", "rope_bwd"),
    "serving_attention": (
        *("infer_attention", "infer_latent_attention", "infer_linear_attention", "kv_cache"),
    ),
    "elementwise": ("unary", "binary", "ternary"),
    "elementwise_bwd": ("binary_bwd",),
    "gated": ("gated_act",),
    "reduce": ("reduce", "scan"),
    "softmax": ("softmax", "softmax_bwd"),
    "optimizer": ("foreach", "fused_optim"),
    "gemm": ("gemm", "gemm_batched"),
    "gemm_vendor": ("gemm_nt", "gemm_scaled", "gemm_a8w8", "gemm_batched_quant", "gemm_te_pseudo"),
    "gemm_flags": ("gemm_fp4", "gemm_fp8_trans", "gemm_te"),
    "gemm_grouped": ("gemm_grouped", "gemm_grouped_wgrad"),
    "convolution": ("conv", "conv_leaf", "conv_fused"),
    "convolution_bwd": ("conv_bwd", "conv_bwd_leaf", "conv_fused_bwd"),
    "loss": ("loss", "loss_bwd", "cross_entropy", "cross_entropy_bwd"),
    "fused_norm": ("rms_norm_fused", "allreduce_rmsnorm"),
    "channel_norm": ("batch_norm", "instance_norm", "group_norm"),
    "channel_norm_bwd": ("batch_norm_bwd", "instance_norm_bwd", "group_norm_bwd"),
    "norm": ("layer_norm", "rms_norm", "ln_modulate"),
    "norm_bwd": ("layer_norm_bwd", "rms_norm_bwd", "ln_modulate_bwd"),
    "pooling": ("pool", "pool_bwd"),
    "quant": ("quant", "quant_group"),
    "resampling": ("upsample", "upsample_bwd", "pad"),
    "state_space": ("causal_conv1d", "mamba_ssd", "mamba_ssd_bwd"),
    "copy": ("copy", "cat", "rearrange", "split_copy", "sync"),
    "indexing": ("gather", "embedding", "scatter", "embedding_bwd"),
    "fill": ("fill", "random", "dropout", "dropout_bwd"),
    "sort": ("sort",),
    "moe": ("moe_fused", "moe_unfused"),
    "moe_aux": ("moe_aux", "moe_comm"),
    "collective": ("collective", "custom_collective"),
}

# Families that have no formula, with the reason that is shown.
WITHOUT_FORMULA: dict[str, str] = {
    "none": "no formula for this op",
    "graph_replay": "a graph's kernels are its launch's",
    **dict.fromkeys(
        (
            "triton_foreach",
            "triton_pointwise",
            "triton_reduction",
            "triton_scan",
            "triton_template",
            "triton_user",
        ),
        "a compiled kernel: its work stands in triton_kernels, where it is known",
    ),
    "composite": "its parts have the models",
    "norm_other": "the type of what its kernel keeps is not documented",
    "linalg": "the work of a factorisation depends on its algorithm",
    "fft": "the work of a transform depends on its plan",
    "rnn": "its layers are not all in its inputs",
    "rnn_bwd": "its layers are not all in its inputs",
    "mhc": "what its kernel computes is not documented",
    "sample": "what its arguments mean is not known",
}


@functools.cache
def _modules() -> dict[str, str]:
    return {family: module for module, families in MODULES.items() for family in families}


def models() -> tuple[Model, ...]:
    """Return all models, module by module."""
    found = (importlib.import_module(f"tracehouse.formulas.{module}") for module in MODULES)
    return tuple(model for module in found for model in module.MODELS)


@functools.cache
def model_of(family: str) -> Model | None:
    """Return the model of a family of ops, None if it has none."""
    module = _modules().get(family)
    if module is None:
        return None
    of_module = importlib.import_module(f"tracehouse.formulas.{module}").MODELS
    return next(model for model in of_module if family in model.families)
