"""Captured graphs of the real serving traces (inference §8, "Worked facts")."""

from __future__ import annotations

from collections import Counter

import pytest

FULL = "inference/vllm_decode_full/graph_execution"
PIECEWISE = "inference/vllm_prefilldecode_piecewise/graph_execution"
SGLANG = "inference/sglang_decode/sglang_Qwen3-8B_decode"


@pytest.mark.parametrize(
    ("trace", "kernels_of_launches", "with_op"),
    [
        # activities with an op: those of the graphs, and of the calls outside of them
        (FULL, [421], 434),
        (PIECEWISE, [4, *[15] * 23, 12], 423),
        # three are launched outside of any op: flashinfer's indices, the future's ids, the clamp
        (SGLANG, [544], 558 - 3),
    ],
)
def test_every_kernel_of_a_graph_has_an_op(case_of, trace, kernels_of_launches, with_op):
    case = case_of(trace)
    launches = sorted((r for r in case.rows("launches") if r["is_graph"]), key=lambda r: r["ts_ns"])
    assert [row["kernel_count"] for row in launches] == kernels_of_launches
    assert sum(activity.op_id is not None for activity in case.activities) == with_op
    # all rows of the graph's ops are in the step of their launch, and stand at 2^40 or more
    grafted = [op for op in case.rows("ops") if op["origin"] == "capture"]
    assert {op["step_id"] for op in grafted} == {row["step_id"] for row in launches} == {0}
    assert min(op["event_id"] for op in grafted) == 2**40
    assert sum(op["direct_kernel_count"] for op in grafted) == sum(kernels_of_launches)
    (coverage,) = case.rows("coverage")
    without = [a for a in case.activities if a.op_id is None]
    assert coverage["no_op_ns"] == sum(int(1_000 * a.span.dur) for a in without)


def test_an_op_by_hand(case_of):
    # 24 calls of SortTokens, each of _sum_bitmatrix_rows, _combined_routing_memset and
    # _combined_routing_compute; by name their times in the file are 120.856, 122.775, 131.496 us
    rows = {row["name"]: row for row in case_of(FULL).rows("op_summary")}
    sort = rows["SortTokens"]
    assert (sort["count"], sort["kernel_count"]) == (24, 72)
    assert sort["direct_kernel_time_ns"] == 120_856 + 122_775 + 131_496


@pytest.mark.parametrize(("trace", "sizes"), [(FULL, (98_304, 8_388_608)), (PIECEWISE, None)])
def test_compiled_kernels_of_a_graph(case_of, trace, sizes):
    # By hand, vllm_decode_full: 32 * 3072 = 98,304 elements in 48 blocks of 2,048, and
    # 131,072 * 64 = 8,388,608 in 1,024 of 8,192: the grids of the captured dispatches.
    rows = case_of(trace).rows("triton_kernels")
    found = Counter((row["check"], row["kernel_count"]) for row in rows)
    assert found == {("grid_ok", 1): 47, ("none", 1): 1}
    if sizes:
        assert {row["xnumel"] for row in rows} == {*sizes, None}
