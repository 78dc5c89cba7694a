"""`attention_roofline` against the peer's InferenceAttention_fwd.csv, row by row.

Every row agrees: FLOPs and bytes to a millionth, GPU time to what its sums of doubles lose.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections import defaultdict

import pytest

import tracehouse
from tracehouse.analysis import op_categories

MIB = 2**20
DOUBLES = 5e-4  # see differences.md 2
TRACES = {  # folder: file, calls of attention
    "vllm_decode_full": ("graph_execution.json.gz", 24),
    "vllm_prefilldecode_piecewise": ("graph_execution.json.gz", 24),
    "sglang_decode": ("sglang_Qwen3-8B_decode.json.gz", 36),
}
SIZES = {"h_q": "H_Q", "h_kv": "H_KV", "d_qk": "d_h_qk", "d_v": "d_h_v"}
SUMS = ("c_sq", "c_sk", "c_sqsq", "c_sqsk", "g_sq", "g_sk", "g_sqsq", "g_sqsk")


@pytest.fixture(scope="module", params=TRACES)
def compared(request, shared_traces):
    """The peer's rows of attention, and our calls by name and number of kernels."""
    folder = shared_traces / "inference" / request.param
    file, calls = TRACES[request.param]
    rows = tracehouse.read(folder / file).attention_roofline.to_pylist()
    assert len(rows) == calls
    ours = defaultdict(list)
    for row in rows:
        ours[op_categories.plain_name(row["name"]), row["kernel_count"]].append(row)
    before = csv.field_size_limit(1 << 30)
    with (folder / "perf_csvs/InferenceAttention_fwd.csv").open(newline="") as text:
        theirs = [row for row in csv.DictReader(text) if row["param: g_sq"]]
    csv.field_size_limit(before)
    return theirs, ours


def test_every_row_agrees(compared):
    theirs, ours = compared
    assert {(row["name"], int(row["num_kernels"])) for row in theirs} == set(ours)
    for row in theirs:
        calls = ours[row["name"], int(row["num_kernels"])]
        assert len(calls) == int(row["name_count"])
        for call in calls:
            for name, param in SIZES.items():
                assert call[name] == float(row[f"param: {param}"])
            for name in SUMS:
                assert call[name] == float(row[f"param: {name}"])
            assert call["flops"] / 1e9 == pytest.approx(float(row["GFLOPS_first"]), rel=1e-6)
            assert call["bytes"] / MIB == pytest.approx(
                float(row["Data Moved (MB)_first"]), rel=1e-6
            )
            assert call["flops_per_byte"] == pytest.approx(float(row["FLOPS/Byte_first"]), rel=1e-6)
        time = sum(call["kernel_time_ns"] for call in calls) / 1e3
        assert time == pytest.approx(float(row["Kernel Time (µs)_sum"]), rel=DOUBLES)
        for name in ("TFLOPS/s", "TB/s"):
            column = {"TFLOPS/s": "tflops_s", "TB/s": "tb_s"}[name]
            rates = [call[column] for call in calls]
            assert sum(rates) / len(rates) == pytest.approx(float(row[f"{name}_mean"]), rel=1e-3)


CONFIGS = {  # of the models that were served: gpt-oss of 24 layers, Qwen3-8B
    "vllm_decode_full": {
        **{"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64},
        **{"num_hidden_layers": 24, "torch_dtype": "bfloat16"},
    },
    "sglang_decode": {
        **{"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128},
        **{"num_hidden_layers": 36, "torch_dtype": "bfloat16"},
    },
}


@pytest.mark.parametrize("folder", CONFIGS)
def test_the_configuration_alone_gives_the_same(shared_traces, tmp_path, folder):
    """Without the capture's ops, from the replayed kernels: work and time of each row."""
    source = shared_traces / "inference" / folder / TRACES[folder][0]
    alone = shutil.copy(source, tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIGS[folder]), encoding="utf-8")
    kernels = tracehouse.read(alone, model_config=config).attention_roofline.to_pylist()
    ops = tracehouse.read(source).attention_roofline.to_pylist()

    def numbers(rows):
        names = ("flops", "bytes", "kernel_count", "kernel_time_ns", "roofline_ns")
        return sorted(tuple(row[name] for name in names) for row in rows)

    assert len(kernels) == TRACES[folder][1]
    assert numbers(kernels) == numbers(ops)
    assert {row["source"] for row in kernels} == {"model_config"}
