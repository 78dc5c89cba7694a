"""Attention, backward: worked values, a slow twin, the forward call's inputs, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from formula_cases import table, work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.formulas_attention import Attention

from tracehouse.analysis import op_categories
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.model import WHY, Why
from tracehouse.formulas.registry import model_of

BF16 = "c10::BFloat16"
FLASH = "aten::_scaled_dot_product_flash_attention_backward"
EFFICIENT = "aten::_scaled_dot_product_efficient_attention_backward"
FLASH_ATTN = "flash_attn::_flash_attn_backward"


def call(op, tensors, scalars, total, kind=BF16):
    dims, types, values = [[]] * total, [""] * total, [""] * total
    for at, what in tensors.items():
        shape, of = what if isinstance(what, tuple) else (what, kind)
        dims[at], types[at] = list(shape), of
    for at, text in scalars.items():
        types[at], values[at] = "Scalar", text
    return work_of(op, dims, types, None, values)


def from_forward(forward, backward, dims, values):
    """FLOPs, bytes and reason of an autograd node, from the inputs of its forward call."""
    rules = op_categories.load()
    of_forward, of_backward = rules.family(forward), rules.family(backward)
    model, other = model_of(of_backward), model_of(of_forward)
    assert model is not None
    assert other is not None
    assert model.slots_of(backward, of_backward) is None  # its own inputs are gradients only
    slots = model.slots_of_forward(other, forward, of_forward)
    types = [BF16 if shape else "Scalar" for shape in dims]
    found, (row,) = table([{"dims": dims, "types": types, "values": values}])
    work = evaluate(
        model, read_inputs(found), np.array([row]), np.array([slots]), np.array([math.nan])
    )
    return work.flops[0], work.bytes[0], WHY[Why(work.why[0])]


def flash_attn(q, k, causal, total=17):
    n = {0: q, 1: q, 2: k, 3: k, 4: q, 5: ([q[0], q[2], q[1]], "float"), 6: q, 7: k, 8: k}
    scalars = {9: "0.", 10: "0.088388347648318433", 11: causal, 12: "-1", 13: "-1", 14: "0."}
    return call(FLASH_ATTN, n, scalars, total)


def test_five_halves_of_the_forward():
    q = [16, 16, 559, 64]
    tensors = dict.fromkeys(range(5), q) | {5: ([16, 16, 559], "float")}
    scalars = {8: "559", 9: "559", 10: "0.", 11: "True", 14: "0.125"}
    done = call(FLASH, tensors, scalars, 15)
    assert done.flops == 2.5 * 10239377408  # of the forward call of h100/Qwen1.5-0.5B-Chat
    n = 16 * 16 * 559
    # q, k, v, output and its gradient read, three gradients written, row sums in 4 bytes.
    assert done.bytes == 8 * n * 64 * 2 + n * 4
    assert done.dtype == "bf16"


def test_the_scale_is_not_the_causal_flag():
    # The peer reads one input too early: 0.088… is true, so all is halved, or it raises (C10).
    q = [1, 64, 4, 32]
    assert flash_attn(q, q, "False").flops == 2.5 * (2 * 4 * 64 * 64 * 64)
    assert flash_attn(q, q, "True").flops == 2.5 * (2 * 4 * 64 * 64 * 64) / 2


def test_query_heads_that_share_a_key_head():
    # 8 heads on 2: dK and dV of 8 heads are summed to 2: 64·(32 + 32)·(8 - 2) additions.
    done = flash_attn([1, 64, 8, 32], [1, 64, 2, 32], "False")
    assert done.flops == 2 * 8 * 64 * 64 * 5 * 32 + 64 * 64 * 6
    q, k = 64 * 8 * 32, 64 * 2 * 32
    assert done.bytes == (3 * q + 2 * k + q + 2 * k) * 2 + 8 * 64 * 4


def test_widths_of_keys_and_values_differ():
    n = {0: [1, 4, 2, 8], 1: [1, 4, 2, 16], 2: [1, 4, 2, 16], 3: [1, 4, 2, 8]}
    scalars = {9: "0.", 10: "1.", 11: "False", 12: "-1", 13: "-1"}
    done = call(FLASH_ATTN, n, scalars, 17)
    assert done.flops == 2 * 2 * 16 * (3 * 16 + 2 * 8)


def test_aiter_reads_the_gradient_first():
    # The peer takes inputs 0-2 for q, k, v, which raises here (C10).
    q, k = [1, 8, 4, 16], [1, 8, 2, 16]
    tensors = {0: q, 1: q, 2: k, 3: k, 4: q, 5: ([1, 4, 8], "float"), 6: q, 7: k, 8: k}
    scalars = {10: "0.", 11: "0.25", 12: "True", 13: "-1", 14: "-1"}
    done = call("aiter::_flash_attn_backward", tensors, scalars, 19)
    assert done.flops == 2 * 4 * 32 * 80 + 8 * 32 * 2
    scalars = {6: "0.", 7: "0.25", 8: "True", 9: "-1", 10: "-1", 11: "False"}
    tensors = {0: q, 1: q, 2: k, 3: k, 4: q, 5: ([1, 4, 8], "float")}
    assert call("aiter::mha_bwd", tensors, scalars, 18).flops == done.flops
    tensors = {at + 1: shape for at, shape in tensors.items()} | {0: [1]}
    scalars = {at + 1: text for at, text in scalars.items()}
    assert call("aiter::wrapper_fmha_v3_bwd", tensors, scalars, 19).flops == done.flops


@pytest.mark.parametrize(("mask", "gradients"), [("True", 1), ("False", 0)])
def test_gradient_of_the_bias(mask, gradients):
    q, bias = [1, 2, 8, 4], [1, 2, 8, 8]
    tensors = {0: q, 1: q, 2: q, 3: q, 4: bias, 5: q, 6: ([1, 2, 8], "float")}
    scalars = {9: "0.", 10: f"[True, True, True, {mask}]", 11: "False"}
    done = call(EFFICIENT, tensors, scalars, 13)
    assert done.flops == 2 * 2 * 64 * 20
    assert done.bytes == (8 * 64 + 128 + gradients * 128) * 2 + 16 * 4
    unknown = call(EFFICIENT, tensors, scalars | {10: ""}, 13)
    assert (unknown.flops, unknown.bytes) == (done.flops, None)
    assert unknown.why == "a value that the formula depends on was not recorded"


def test_autograd_node_takes_the_inputs_of_the_forward():
    q = [1, 64, 4, 32]
    dims, values = [q, q, q, [], [], []], ["", "", "", "0.", "", "True"]
    own = flash_attn(q, q, "True")
    done = from_forward("FlashAttnFunc", "FlashAttnFuncBackward", dims, values)
    assert done == (own.flops, own.bytes, None)


def test_evoformer_from_the_forward():
    q = [1, 3, 16, 4, 8]
    dims = [q, q, q, [1, 3, 1, 1, 16], []]
    done = from_forward("EvoformerAttention", "EvoformerAttentionBackward", dims, [""] * 5)
    assert done == (2 * 3 * 4 * 256 * 40, (8 * 3 * 16 * 32 + 48) * 2, None)
    dims[4] = [1, 1, 4, 16, 16]
    flops, moved, why = from_forward(
        "EvoformerAttention", "EvoformerAttentionBackward", dims, [""] * 5
    )
    assert flops == done[0]
    assert math.isnan(moved)
    assert why == "a value that the formula depends on was not recorded"


def test_packed_sequences():
    q = [10, 2, 8]
    tensors = dict.fromkeys(range(5), q) | {5: ([2, 10], "float"), 6: q, 7: q, 8: q}
    tensors |= {9: ([4], "int"), 10: ([4], "int")}
    scalars = {11: "4", 12: "4", 13: "0.", 14: "1.", 15: "False", 16: "-1", 17: "-1"}
    done = call("flash_attn::_flash_attn_varlen_backward", tensors, scalars, 21)
    assert done.flops == 2 * 2 * 34 * 40
    assert done.bytes == 8 * 160 * 2 + 20 * 4 + 2 * 4 * 4
    assert done.parameters["estimate"] == 1


SMALL = st.integers(1, 6)


@given(
    *(SMALL, SMALL, st.integers(1, 3), st.integers(1, 3), SMALL, SMALL),
    *(st.booleans(), st.integers(-1, 7), st.sampled_from([BF16, "float", "double"])),
)
@settings(deadline=None)
def test_equals_the_twin(n_q, n_k, h_kv, group, d_qk, d_v, causal, left, kind):
    a = Attention(2, h_kv * group, h_kv, n_q, n_k, d_qk, d_v, type=kind, causal=causal, left=left)
    out = [2, n_q, a.h_q, d_v]
    tensors = {0: out, 1: [2, n_q, a.h_q, d_qk], 2: [2, n_k, h_kv, d_qk], 3: [2, n_k, h_kv, d_v]}
    scalars = {9: "0.", 10: "1.", 11: str(causal), 12: str(left), 13: "-1"}
    done = call(FLASH_ATTN, tensors, scalars, 17, kind)
    assert done.flops == a.flops_bwd()
    assert done.bytes == pytest.approx(a.bytes_bwd(), rel=1e-12)


def test_bad_input():
    q = [1, 64, 4, 32]
    assert work_of(FLASH_ATTN).flops is None
    assert work_of(FLASH_ATTN, [q, q], [BF16, BF16], None, ["", ""]).why == (
        "the shape of an input it depends on was not recorded"
    )
    unknown = flash_attn(q, q, "0.088")
    assert (unknown.flops, unknown.bytes) == (None, None)
    assert unknown.why == "a value that the formula depends on was not recorded"
    assert (
        flash_attn(q, [1, 64, 3, 32], "False").why == "the shapes do not fit the op's declaration"
    )
    values = [""] * 11 + ["False", "-1", "-1", "0.", "", "False"]
    done = work_of(FLASH_ATTN, [q] * 4 + [q, [1, 4, 64]] + [[]] * 11, None, None, values)
    assert done.flops == 5 * 4 * 64 * 64 * 64
    assert (done.bytes, done.why) == (
        None,
        "the type of an input was not recorded, or is not known",
    )
    huge = [2**40, 2**40, 2**20, 2**40]
    assert flash_attn(huge, huge, "True").why == "the product of the shapes is out of range"
    none = flash_attn([0, 4, 2, 8], [0, 4, 2, 8], "True")
    assert (none.flops, none.bytes) == (0, 0)
