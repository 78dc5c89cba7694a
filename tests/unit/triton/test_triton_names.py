from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import triton_names as slow

from tracehouse.triton import names
from tracehouse.triton.names import MAX_NAME_LENGTH, TOO_LONG, KernelName, parse_name, segment
from tracehouse.triton.vocabulary import vocabulary

TABLE = {  # triton.md 5
    "triton_poi_fused__unsafe_view_mul_silu_2": "_unsafe_view, mul, silu",
    "triton_red_fused_add_mean_mul_pow_rsqrt_0": "add, mean, mul, pow, rsqrt",
    "triton_poi_fused__to_copy_1": "_to_copy",
    "triton_poi_fused_arange_cat_cos_div_exp_mul_sin_unsqueeze_0": (
        "arange, cat, cos, div, exp, mul, sin, unsqueeze"
    ),
    "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10": (
        "_scaled_dot_product_flash_attention, cat, transpose, view"
    ),
    "triton_red_fused__unsafe_view_add_clone_convolution_native_layer_norm_"
    "slice_transpose_view_4": (
        "_unsafe_view, add, clone, convolution, native_layer_norm, slice, transpose, view"
    ),
    "triton_per_fused__to_copy_add_addmm_mean_mul_pow_rsqrt_transpose_view_8": (
        "_to_copy, add, addmm, mean, mul, pow, rsqrt, transpose, view"
    ),
    "triton_poi_fused__to_copy_div_empty_like_zeros_19": "_to_copy, div, empty_like, zeros",
    "triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0": (
        "add, bitwise_and, bitwise_not, bitwise_or, ge, lt, mul, sub"
    ),
    "triton_poi_fused_constant_pad_nd_moe_forward_0": "constant_pad_nd, moe_forward",
    "triton_poi_fused_0": "",
    "triton_red_fused_add_native_layer_norm_native_layer_norm_backward_11": (
        "add, native_layer_norm, native_layer_norm_backward"
    ),
    "triton_red_fused__log_softmax_nll_loss_forward_3": "_log_softmax, nll_loss_forward",
    "triton_poi_fused_convert_element_type_mul_sub_8": "convert_element_type, mul, sub",
    "triton_red_fused_convolution_var_mean_6": "convolution, var_mean",
    "triton_per_fused__native_batch_norm_legit_functional_relu_2": (
        "_native_batch_norm_legit_functional, relu"
    ),
    "triton_poi_fused_add__mul__0": "add_, mul_",
    "triton_poi_fused_all_to_all_single_clone_0": "all_to_all_single, clone",
    "triton_poi_fused_new_zeros_scatter_add_0": "new_zeros, scatter_add",
    "triton_poi_fused_clamp_min_mul_4": "clamp_min, mul",
    "triton_poi_fused_gelu_gelu_backward_3": "gelu, gelu_backward",
    "triton_poi_fused_max_pool2d_with_indices_relu_4": "max_pool2d_with_indices, relu",
    "triton_per_fused__softmax_add_masked_fill_7": "_softmax, add, masked_fill",
    # names elsewhere in triton.md and in the seed
    "triton_poi_fused_relu6_0": "relu6",
    "triton_poi_fused_add_index_0": "add, index",
    "triton_poi_fused_mul_silu_4": "mul, silu",
    "triton_poi_fused_add__mul_3": "add_, mul",
    "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1": (
        "_unsafe_view, add, mean, mul, pow, rsqrt"
    ),
    "triton_poi_fused__unsafe_view_add_3": "_unsafe_view, add",
    "triton_poi_fused_add_mul_silu_0": "add, mul, silu",
    "triton_poi_fused_addmm_clone_permute_view_25": "addmm, clone, permute, view",
    "triton_poi_fused_addmm_gelu_view_15": "addmm, gelu, view",
    "triton_poi_fused__unsafe_view_clone_slice_transpose_13": (
        "_unsafe_view, clone, slice, transpose"
    ),
    "triton_poi_fused_add_cos_sin_0": "add, cos, sin",
}
AMBIGUOUS = (  # sorted either way: the compound has fewer ops
    "index_select clamp_min clamp_max alias_copy copy_to as_strided_copy as_strided_scatter "
    "diagonal_scatter count_nonzero all_gather log_normal log_sigmoid_backward collapse_view"
).split()
UNSORTED = (  # as two ops out of order
    "var_mean std_mean slice_scatter select_scatter scatter_add squeeze_copy expand_copy"
).split()
TRICKY = [
    *("", "add", "as", "strided", "copy", "to", "index", "select", "scatter", "log", "softmax"),
    *("foo", "bar", "var", "mean", "clamp", "min", "relu", "foreach", "backward", "mul", "all"),
]


def listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


@pytest.mark.parametrize("name", TABLE)
def test_names_come_apart_as_the_reference_says(name):
    parsed = parse_name(name)
    assert parsed is not None
    assert parsed.is_unique
    assert (parsed.kind, parsed.index) == (name[7:10], int(name.rpartition("_")[2]))
    assert segment(parsed.fused) == names.Segmentation(listed(TABLE[name]))


@pytest.mark.parametrize("word", AMBIGUOUS)
def test_an_ambiguous_word_is_the_compound(word):
    assert segment(word).ops == (word,)
    assert segment(f"_to_copy_{word}_view").ops == ("_to_copy", word, "view")


@pytest.mark.parametrize("word", UNSORTED)
def test_order_keeps_a_word_whole(word):
    assert segment(f"abs_{word}_view").ops == ("abs", word, "view")


def test_order_beats_fewer_ops():
    # `log_softmax` after `mul` would be out of order, but so is `log`: one violation either way.
    assert segment("mul_log_softmax").ops == ("mul", "log_softmax")
    # clamp, max, max_pool2d is not sorted less than clamp_max, max_pool2d; both are, fewer wins
    assert segment("clamp_max_max_pool2d").ops == ("clamp_max", "max_pool2d")
    # index_select before select is sorted; index, select, select is not
    assert segment("index_select_select").ops == ("index_select", "select")


def test_an_op_may_come_twice_only_where_nothing_else_fits():
    assert segment("_to_copy_add_add_mean").ops == ("_to_copy", "add", "add", "mean")
    assert segment("add__add").ops == ("add_", "add")


def test_an_in_place_op_at_the_end_keeps_its_underscore():
    parsed = parse_name("triton_poi_fused_relu__0")
    assert parsed == KernelName("poi", "relu_", 0)
    assert segment("relu_").ops == ("relu_",)


def test_unknown_parts_are_kept_and_the_rest_is_known():
    assert segment("add_frobnicate_mul") == names.Segmentation(("add", "mul"), ("frobnicate",))
    assert segment("_frob_add_nicate_").ops == ("add",)
    assert segment("_frob_add_nicate_").unknown == ("_frob", "nicate_")
    assert segment("mul_17") == names.Segmentation(("mul",), ("17",))  # names of fx nodes


def test_kinds():
    for kind in names.KINDS:
        assert parse_name(f"triton_{kind}_fused_mul_3") == KernelName(kind, "mul", 3)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("triton_0", 0),
        ("triton_1", 1),
        ("triton_", None),
        ("triton__0d1d2d3de", None),
        ("triton kernel", None),
        ("Placeholder.DESCRIPTIVE_NAME", None),
    ],
)
def test_unique_names_off(name, index):
    parsed = parse_name(name)
    assert parsed == KernelName("unk", "", index, is_unique=False)
    assert segment(parsed.fused).ops == ()


def test_the_suffix_of_old_triton_is_no_index():
    assert parse_name("triton_poi_fused_add_7_0d1d2d3de") == KernelName("poi", "add", 7)


@pytest.mark.parametrize(
    "name",
    [
        "my_attn_kernel_0",
        "triton_npu_persistent_mm",
        "triton_mm",
        "triton_xyz_fused_add_0",
        "triton_poi_fused_add",
        "triton_poi_fused_add_0\n",
        "xtriton_poi_fused_add_0",
        "triton_poi_fused_add_٣",
        "triton__foo",
        "attn_fwd",
        "",
    ],
)
def test_other_names_are_none_of_these(name):
    assert parse_name(name) is None


def test_an_index_without_end_is_no_number():
    parsed = parse_name("triton_poi_fused_add_" + "9" * 5_000)
    assert parsed == KernelName("poi", "add", None)
    assert parse_name("triton_" + "9" * 5_000) == KernelName("unk", "", None, is_unique=False)


def test_a_hostile_name_is_one_unknown_part():
    text = "add_" * (MAX_NAME_LENGTH // 4 + 1)
    assert segment(text) == names.Segmentation((), (text,), TOO_LONG)
    assert segment("_" * MAX_NAME_LENGTH).ops == ()
    assert segment("__import__('os').system('x')").ops == ()


@pytest.mark.parametrize("unit", ["as_strided_copy_to", "foo", "", "log_softmax__backward"])
def test_work_grows_with_the_name_and_no_faster(unit):
    class Counting:
        longest = vocabulary().longest
        asked = 0

        def __contains__(self, word):
            self.asked += 1
            return word in vocabulary()

    def asked(times):
        known = Counting()
        names._cheapest("_".join([unit] * times).split("_"), known)
        return known.asked

    assert 0 < asked(400) < 2.2 * asked(200)


@given(st.sets(st.sampled_from(sorted(vocabulary().namespaces)), min_size=1, max_size=6))
def test_sorted_known_words_leave_nothing_unknown(words):
    text = "_".join(sorted(words))
    found = segment(text)
    assert found.unknown == ()
    assert "_".join(found.ops) == text
    assert len(found.ops) <= len(words)
    assert list(found.ops) == sorted(set(found.ops))


@given(st.lists(st.sampled_from(TRICKY), min_size=1, max_size=8))
def test_every_way_to_cut_agrees(tokens):
    text = "_".join(tokens)
    if not text:
        return
    found = segment(text)
    ops, unknown = slow.segment(text, vocabulary())
    assert found.ops == ops
    assert [t for part in found.unknown for t in part.split("_") if t] == unknown


@given(st.sets(st.sampled_from(sorted(vocabulary().namespaces)), min_size=1, max_size=3))
def test_every_way_to_cut_real_words_agrees(words):
    text = "_".join(sorted(words))
    assert segment(text).ops == slow.segment(text, vocabulary())[0]


@given(st.text(max_size=60))
def test_no_text_raises(text):
    parse_name(text)
    segment(text)
