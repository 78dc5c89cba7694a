"""`op_summary` against the peer's ops_summary.csv; docs/differences.md has the exceptions."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from reference import peer

from tracehouse.analysis.op_categories import plain_name

# Ops whose time differs by more than a millionth because the peer's sums are of doubles.
ROUNDED = {
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005": """
        aten::_local_scalar_dense aten::add aten::all aten::arange aten::bmm aten::cos aten::eq
        aten::index_select aten::neg aten::rsqrt aten::sin
    """,
    "h100/gaunernst_bert-small-uncased__1016001": """
        aten::_flash_attention_forward aten::_local_scalar_dense aten::add aten::add_ aten::all
        aten::eq aten::gelu aten::index_select aten::native_layer_norm
    """,
    "h100/google_owlv2-large-patch14-ensemble__1016001": """
        aten::add aten::add_ aten::arange aten::argmax aten::div aten::elu aten::eq aten::exp
        aten::fill_ aten::gelu aten::gt aten::index aten::linalg_vector_norm aten::lt
        aten::masked_fill_ aten::mm aten::sub aten::where
    """,
    "inference/sglang_decode/sglang_Qwen3-8B_decode": """
        aiter::add_rmsnorm aiter::rmsnorm aten::_foreach_copy_ aten::arange aten::argmax
        aten::cumsum aten::gather aten::neg hipLaunchKernel hipModuleLaunchKernel
        sgl_kernel::rotary_embedding sglang::store_cache
        sglang_profiler::attention_paged_attention_ragged
    """,
    "inference/vllm_decode_full/graph_execution": """
        SortTokens TopK _C::rotary_embedding _C_cache_ops::reshape_and_cache_flash aiter::rms_norm
        aiter::rmsnorm2d_fwd_with_add_ck aten::addmm aten::copy_ aten::index aten::sub
        triton_poi_fused_0 triton_poi_fused__to_copy_1
        triton_poi_fused_constant_pad_nd_moe_forward_0 vllm::unified_attention_with_output
    """,
    "inference/vllm_prefilldecode_piecewise/graph_execution": """
        SortTokens TopK aiter::rms_norm aten::copy_ aten::index aten::sub triton_poi_fused_0
        triton_poi_fused__to_copy_1
    """,
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005": """
        aten::_local_scalar_dense aten::add aten::all aten::arange aten::bmm aten::cos aten::eq
        aten::index_select aten::mean aten::neg aten::pow aten::rsqrt aten::sin
    """,
    "mi300/gaunernst_bert-small-uncased__1016001": """
        aten::_flash_attention_forward aten::_local_scalar_dense aten::add aten::add_ aten::addmm
        aten::all aten::eq aten::gelu aten::index_select aten::native_layer_norm
    """,
    "torch_compile_triton/trace": """
        triton_poi_fused__unsafe_view_add_3 triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1
        triton_red_fused_add_mean_mul_pow_rsqrt_0
    """,
}

# Traces whose kernels are mostly of replayed graphs: the ops are in the trace of the capture.
REPLAYED = (
    "inference/sglang_decode/sglang_Qwen3-8B_decode",
    "inference/vllm_decode_full/graph_execution",
    "inference/vllm_prefilldecode_piecewise/graph_execution",
)

# Rows of ours that the peer has not.
ONLY_OURS = {
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005": {"(no op)"},
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005": {"(no op)"},
}
ROUNDED = {trace: set(names.split()) for trace, names in ROUNDED.items()}


def ours(case):
    """Calls, direct and subtree time in ns of each row of op_summary."""
    return {
        plain_name(row["name"]): (
            row["count"],
            row["direct_kernel_time_ns"],
            row["kernel_time_ns"],
        )
        for row in case.rows("op_summary")
    }


def sums(case, interval):
    """The same in plain Python, from the op or the launch of each activity."""
    names = {
        row["event_id"]: plain_name(row["name"])
        for t in ("launches", "ops")
        for row in case.rows(t)
    }
    parents = {row["event_id"]: row["parent_id"] for row in case.rows("ops")}
    direct, below = defaultdict(list), defaultdict(list)
    for activity in case.activities:
        call = activity.launch_id if activity.op_id is None else activity.op_id
        if call is None:
            continue
        direct[call].append(interval(activity.span))
        while call is not None:
            below[call].append(interval(activity.span))
            call = parents.get(call)
    found = defaultdict(lambda: (0, 0, 0))
    for call, spans in direct.items():
        calls, time, subtree = found[names[call]]
        time += peer.covered(spans)
        found[names[call]] = calls + 1, time, subtree + peer.covered(below[call])
    return found


@pytest.mark.parametrize("trace", peer.TRACES)
def test_ops(case_of, trace):
    case = case_of(trace)
    mine, theirs = ours(case), peer.ops(case.report)
    assert mine.keys() - theirs.keys() == ONLY_OURS.get(trace, set())
    exact, in_doubles = sums(case, lambda span: span.exact), sums(case, lambda span: span.doubles)
    lone = [activity.span for activity in case.activities if activity.link == "none"]
    if lone:
        time = sum(int(1_000 * span.dur) for span in lone)
        exact["(no op)"] = len(lone), time, time
    assert mine == exact
    # The peer put the same kernels down to the same calls, in doubles.
    differing = set()
    for name in theirs:
        assert theirs[name] == pytest.approx(in_doubles[name], rel=peer.EXACT), name
        assert mine[name][0] == theirs[name][0], name
        in_ns = [1_000 * time for time in theirs[name][1:]]
        if list(mine[name][1:]) != pytest.approx(in_ns, rel=peer.SIZE):
            differing.add(name)
    assert differing == ROUNDED[trace]


@pytest.mark.parametrize(
    ("trace", "graphs", "kernels", "size"),
    [
        (REPLAYED[0], 1, 544, 32),  # of 558 activities
        (REPLAYED[1], 1, 421, 32),  # of 434
        (REPLAYED[2], 25, 361, 8192),  # of 423 (perf_models B3)
    ],
)
def test_kernels_of_replayed_graphs(case_of, trace, graphs, kernels, size):
    case = case_of(trace)
    launches = [row for row in case.rows("launches") if row["is_graph"]]
    assert [row["capture_size"] for row in launches] == [size] * graphs
    assert sum(row["kernel_count"] for row in launches) == kernels
    assert sum(row["direct_kernel_count"] for row in launches) == 0
    replayed = [activity for activity in case.activities if activity.replayed]
    assert len(replayed) == kernels
    assert {(activity.link, activity.graft) for activity in replayed} == {("capture", "exact")}
    # The peer's report says, by kernel name, which of its ops each of them went to: to the same.
    names = {row["event_id"]: plain_name(row["name"]) for row in case.rows("ops")}
    mine = Counter((activity.name, names[activity.op_id]) for activity in replayed)
    for kernel, by_op in peer.kernels_of_ops(case.report).items():
        for op, count in by_op.items():
            if any(name == kernel for name, _ in mine):
                assert mine.pop((kernel, op)) == count
    assert not mine
