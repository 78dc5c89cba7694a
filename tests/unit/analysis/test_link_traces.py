"""Ops and their GPU time on real traces, against what the peer's own report says of them."""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict

import pytest
from reference.frames import frame_of

from tracehouse.analysis.link import link
from tracehouse.findings import Findings

EAGER = (
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "h100/gaunernst_bert-small-uncased__1016001",
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "mi300/gaunernst_bert-small-uncased__1016001",
    "torch_compile_triton/trace",
)


def linked(path):
    tables = link(frame_of(path), "0" * 16, findings=Findings())
    return {name: table.to_pylist() for name, table in tables.items()}


def report(folder):
    """Sum the peer's rows by name: ops that launch, direct and subtree time in µs."""
    sums = defaultdict(lambda: [0, 0.0, 0.0])
    with (folder / "ops_summary.csv").open() as file:
        for row in csv.DictReader(file):
            sums[row["name"]][0] += int(row["Count"])
            sums[row["name"]][1] += float(row["total_direct_kernel_time_sum"])
            sums[row["name"]][2] += float(row["total_subtree_kernel_time_sum"])
    return sums


@pytest.mark.parametrize("trace", EAGER)
def test_direct_and_subtree_time_of_ops(shared_traces, trace):
    # The peer computes (ts + dur) - ts in doubles: each kernel is off by up to a step of them.
    rows = linked(shared_traces / f"{trace}.json.gz")
    step_us = math.ulp(max(gpu["ts_ns"] for gpu in rows["kernels"]) / 1_000)
    mine = defaultdict(lambda: [0, 0, 0, 0])
    for op in rows["ops"]:
        if op["direct_kernel_count"]:
            sums = mine[op["name"]]
            sums[0] += 1
            sums[1] += op["direct_kernel_time_ns"]
            sums[2] += op["kernel_time_ns"]
            sums[3] += op["kernel_count"]
    theirs = report(shared_traces / f"{trace}_perf_report_csvs")
    assert {name: sums[0] for name, sums in mine.items()} == {n: s[0] for n, s in theirs.items()}
    for name, (_, direct, subtree, kernels) in mine.items():
        room = 1_000 * step_us * kernels
        assert direct == pytest.approx(1_000 * theirs[name][1], rel=1e-6, abs=room), name
        assert subtree == pytest.approx(1_000 * theirs[name][2], rel=1e-6, abs=room), name


def test_kernels_launched_before_the_window(shared_traces):
    # 509 of 1,707 activities; all their ids lie below the first recorded call's
    rows = linked(shared_traces / f"{EAGER[0]}.json.gz")
    links = Counter(gpu["link"] for gpu in rows["kernels"])
    assert links == {"correlation": 1_198, "none": 509}
    first = min(launch["correlation"] for launch in rows["launches"])
    assert all(g["correlation"] < first for g in rows["kernels"] if g["link"] == "none")


@pytest.mark.parametrize(
    ("trace", "graphs", "kernels", "activities"),
    [
        ("sglang_decode/sglang_Qwen3-8B_decode", 1, 544, 558),
        ("vllm_decode_full/graph_execution", 1, 421, 434),
        ("vllm_prefilldecode_piecewise/graph_execution", 25, 361, 423),
    ],
)
def test_graph_launches(shared_traces, trace, graphs, kernels, activities):
    # perf_models B3: 361 of the 423 activities of the piecewise trace come from graph launches
    rows = linked(shared_traces / "inference" / f"{trace}.json.gz")
    assert len(rows["kernels"]) == activities
    assert sum(gpu["graph"] for gpu in rows["kernels"]) == kernels
    launches = [launch for launch in rows["launches"] if launch["is_graph"]]
    assert len(launches) == graphs
    assert sum(launch["kernel_count"] for launch in launches) == kernels
    assert all(launch["op_id"] is None for launch in launches)  # no op is around any
