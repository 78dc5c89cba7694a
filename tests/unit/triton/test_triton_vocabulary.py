from __future__ import annotations

import csv

import pytest

from tracehouse.triton.names import parse_name, segment
from tracehouse.triton.vocabulary import Weights, flops_per_element, vocabulary

SEED = {
    1: "add sub mul div abs neg relu mean sum ne eq lt gt",
    2: "pow sqrt rsqrt reciprocal var",
    4: "exp log sigmoid tanh silu",
    8: "gelu",
    0: "_to_copy copy_ clone embedding",
}
REFINED = {  # triton.md 5
    4: (
        "sin cos erf log2 log10 log1p expm1 exp2 asin hardsigmoid hardswish elu softplus "
        "_softmax_backward_data _log_softmax_backward_data"
    ),
    8: (
        "tan sinh cosh atan2 mish silu_backward _softmax _log_softmax native_layer_norm "
        "native_group_norm native_batch_norm"
    ),
    1: (
        "square clamp clamp_min clamp_max maximum minimum max min amax amin argmax argmin where ge "
        "le logical_and logical_or bitwise_and bitwise_not sign floor ceil round trunc "
        "threshold_backward masked_fill cumsum prod any all nll_loss_forward addmm baddbmm "
        "convolution scatter_add index_add"
    ),
    2: (
        "lerp addcmul addcdiv floor_divide remainder fmod rsub leaky_relu hardtanh var_mean std "
        "linalg_vector_norm native_dropout"
    ),
    3: "sigmoid_backward tanh_backward mse_loss",
    6: "rms_norm _fused_rms_norm",
    12: "native_layer_norm_backward",
    14: "gelu_backward",
    0: (
        "view cat index gather scatter arange zeros full expand permute transpose slice select "
        "split stack unbind unsqueeze constant_pad_nd convert_element_type"
    ),
}
REQUIRED = (
    "convert_element_type iota device_put inductor_random rms_norm softmax log_softmax group_norm "
    "layer_norm scaled_dot_product_attention silu_and_mul rotary_embedding moe_forward foreach_add "
    "_foreach_add all_reduce wait_tensor all_to_all_single _unsafe_view add_ flex_attention"
).split()
NOISE = "name dim size count pop update clear item".split()
WORKED = [  # triton.md 6: the name's ops, w, refined w where it is given
    ("triton_poi_fused__unsafe_view_mul_silu_2", 5),
    ("triton_red_fused_add_mean_mul_pow_rsqrt_0", 7),
    ("triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1", 7),
    ("triton_poi_fused__unsafe_view_add_3", 1),
    (
        "triton_red_fused__unsafe_view_add_clone_convolution_native_layer_norm_slice_transpose_view_4",
        1,
    ),
    ("triton_poi_fused_addmm_clone_permute_view_25", 0),
    ("triton_poi_fused__unsafe_view_clone_slice_transpose_13", 0),
    ("triton_poi_fused_addmm_gelu_view_15", 8),
    ("triton_per_fused__to_copy_add_addmm_mean_mul_pow_rsqrt_transpose_view_8", 7),
    ("triton_poi_fused__to_copy_add_addmm_cat_mean_mul_pow_rsqrt_view_9", 7),
    ("triton_poi_fused__to_copy_div_empty_like_zeros_19", 1),
    ("triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0", 4),
    ("triton_poi_fused__to_copy_1", 0),
    ("triton_poi_fused_0", 0),
    ("triton_poi_fused_constant_pad_nd_moe_forward_0", 0),
    ("triton_poi_fused_relu_0", 1),
    ("triton_red_fused_sum_0", 1),
    ("triton_per_fused__softmax_0", 0),
]


def weights_of(name: str) -> Weights:
    parsed = parse_name(name)
    assert parsed is not None
    cut = segment(parsed.fused)
    return flops_per_element(cut.ops, cut.unknown)


def test_the_list_is_complete_and_free_of_attributes():
    known = vocabulary()
    assert len(known.namespaces) > 1_500
    assert [word for word in REQUIRED if word not in known] == []
    assert [word for word in NOISE if word in known] == []
    assert known.longest <= 12  # what a step of the cutting looks at is bounded


def test_the_list_is_sorted_and_without_repeats(repo_root):
    with (repo_root / "data/triton/known_ops.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["name"], row["namespace"]) for row in csv.DictReader(file)]
    assert rows == sorted({name: namespace for name, namespace in rows}.items())


@pytest.mark.parametrize(("weight", "ops"), SEED.items())
def test_weights_of_the_published_table(weight, ops):
    for op in ops.split():
        assert flops_per_element([op]) == Weights(weight, weight, False, ()), op


@pytest.mark.parametrize(("weight", "ops"), REFINED.items())
def test_weights_beyond_the_published_table(weight, ops):
    for op in ops.split():
        assert flops_per_element([op]) == Weights(0, weight, False, ()), op


def test_every_op_with_a_weight_is_a_known_one(repo_root):
    with (repo_root / "data/triton/flops_per_element.csv").open(newline="") as file:
        ops = [row["op"] for row in csv.DictReader(file)]
    assert ops == sorted(set(ops))
    assert [op for op in ops if op not in vocabulary()] == []


@pytest.mark.parametrize(("name", "weight"), WORKED)
def test_worked_examples(name, weight):
    assert weights_of(name).seed == weight


def test_softmax_has_a_refined_weight_only():
    # example 19: 4096 · 640 elements
    assert weights_of("triton_per_fused__softmax_0").refined * 4_096 * 640 == 20_971_520


def test_in_place_ops_have_the_weight_of_their_base():
    assert flops_per_element(["add_", "mul_", "gelu_"]).seed == 10
    assert flops_per_element(["copy_"]).seed == 0


def test_ops_may_occur_more_than_once():
    assert flops_per_element(["mul", "mul", "pow"]).seed == 4


def test_work_of_custom_ops_is_not_known():
    assert weights_of("triton_poi_fused_constant_pad_nd_moe_forward_0").is_partial
    assert weights_of("triton_poi_fused_add_frobnicate_0") == Weights(1, 1, True, ())
    assert weights_of("triton_poi_fused_add_flex_attention_0").is_partial
    assert not weights_of("triton_poi_fused_add_mul_0").is_partial


def test_ops_without_a_refined_weight_are_named():
    found = flops_per_element(["add", "cdist"])
    assert found == Weights(1, 1, False, ("cdist",))
