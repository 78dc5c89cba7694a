"""The H100 and MI300 traces of one model beside each other: right ops, right sums.

The times were worked from the files: `peer.events` reads them with Python's json, exact. The peer's
reports (unified_perf_summary.csv) say the same of each op and its inputs, in rounded µs.
"""

from __future__ import annotations

import ast
import csv
from collections import defaultdict

import pytest
from reference import peer

from tracehouse.commands.compare import compare

QWEN = "Qwen_Qwen1.5-0.5B-Chat__1016005"
BERT = "gaunernst_bert-small-uncased__1016001"
DEVICES = ("h100", "mi300")
SHAPES_OF_MM = "[8944, 1024], [1024, 2816]"
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


@pytest.fixture(scope="module")
def compared(archive, shared_traces):
    out = archive.warehouse.parent
    return {
        model: compare(
            [f"trace:{shared_traces}/{device}/{model}.json.gz" for device in DEVICES], within=out
        )
        for model in (QWEN, BERT)
    }


def parts(found, level):
    return {(row["name"], row["shapes"], row["types"]): row for row in
            found.of_level(level, "B").to_pylist()}  # fmt: skip


@pytest.mark.parametrize("model", [QWEN, BERT])
def test_parts_add_up_to_the_durations_in_the_files(compared, shared_traces, model):
    durations = []
    for device in DEVICES:
        events = peer.events(shared_traces / f"{device}/{model}.json.gz")
        durations.append(sum(int(e["dur"] * 1000) for e in events if e.get("cat") in GPU))
    a, b = durations
    for level in ("op", "kernel", "category", "phase"):
        rows = compared[model].of_level(level, "B").to_pylist()
        sums = [sum(row[key] for row in rows) for key in ("base_ns", "side_ns", "diff_ns")]
        assert sums == [a, b, b - a], level
    whole = compared[model].totals.to_pylist()[0]
    assert (whole["base_ns"], whole["side_ns"], whole["diff_ns"]) == (a, b, b - a)


@pytest.mark.parametrize("model", [QWEN, BERT])
def test_each_op_is_as_the_peer_reports_it(compared, shared_traces, model):
    reported = [reported_ops(shared_traces / f"{d}/{model}_perf_report_csvs") for d in DEVICES]
    rows = parts(compared[model], "op")
    checked = 0
    for side, expected in zip(("base", "side"), reported, strict=True):
        for key, (calls, us) in expected.items():
            if key not in rows:
                continue  # the peer takes another call of the stack for the op
            row = rows[key]
            assert row[f"{side}_calls"] == calls, key
            # the peer's times are differences of doubles, which resolve a quarter of a µs
            assert row[f"{side}_ns"] == pytest.approx(1000 * us, abs=250 * calls), key
            checked += 1
    assert checked >= 20


def reported_ops(folder):
    """Read calls and kernel time in µs by op, shapes and types."""
    sums = defaultdict(lambda: [0, 0.0])
    with (folder / "unified_perf_summary.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            shapes = ", ".join(listed(s) for s in ast.literal_eval(row["Input Dims"]))
            key = (row["name"], shapes, ", ".join(ast.literal_eval(row["Input type"])))
            sums[key][0] += int(row["operation_count"])
            sums[key][1] += float(row["Kernel Time (µs)_sum"])
    return sums


def listed(shape):
    return f"[{', '.join(listed(s) if isinstance(s, tuple) else str(s) for s in shape)}]"


def test_what_differs_most_in_qwen(compared):
    rows = compared[QWEN].of_level("op", "B").to_pylist()
    first, second, *_ = rows
    assert first["name"] == "aten::_scaled_dot_product_flash_attention"
    assert (first["base_ns"], first["side_ns"]) == (2_722_705, 4_016_343)
    assert (first["base_kernel"], first["side_kernel"]) == ("flash_fwd_kernel", "attn_fwd")
    assert (second["name"], second["shapes"]) == ("aten::mm", SHAPES_OF_MM)
    assert (second["base_ns"], second["side_ns"]) == (4_055_251, 5_308_273)
    assert (second["base_calls"], second["side_calls"], second["cause"]) == (48, 48, "slower")
    # 61.7 % and 35.7 % of the peaks: docs/architectures.md
    assert second["base_roofline_pct"] == pytest.approx(61.7, abs=0.05)
    assert second["side_roofline_pct"] == pytest.approx(35.7, abs=0.05)
    kernels = {
        row["base_kernel"]: row for row in compared[QWEN].of_level("kernel", "B").to_pylist()
    }
    flash = kernels["flash_fwd_kernel"]
    assert (flash["status"], flash["side_kernels"]) == ("renamed", ["attn_fwd"])
    (gemm,) = [row for name, row in kernels.items() if name and name.startswith("sm90_xmma_gemm")]
    assert gemm["status"] == "renamed"
    assert all(name.startswith("Cijk_") for name in gemm["side_kernels"])
    assert kernels["CatArrayBatchedCopy"]["status"] == "both"
    # cuBLAS clears a workspace before each product of matrices, hipBLASLt does not
    assert kernels["Memset"]["status"] == "vanished"
    assert set(kernels["Memset"]["ops"]) == {"aten::mm", "aten::addmm"}


def test_what_differs_most_in_bert(compared):
    first = compared[BERT].of_level("op", "B").to_pylist()[0]
    assert first["name"] == "aten::_scaled_dot_product_flash_attention"
    assert (first["base_ns"], first["side_ns"], first["diff_ns"]) == (37_408, 113_656, 76_248)
    assert first["explains_pct"] == pytest.approx(100 * 76_248 / 81_311)
