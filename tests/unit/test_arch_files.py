"""The hardware peaks: every file is whole, and a few figures are those of the datasheets."""

from __future__ import annotations

import json
import re

import pytest

KEYS = {"name", "vendor", "matches", "mem_bw_gbps", "memory_gb", "compute_units", "peak_tflops"}
PRECISIONS = {
    *(f"matrix_{p}" for p in ("fp64", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8")),
    *(f"vector_{p}" for p in ("fp64", "fp32", "fp16", "bf16")),
}


@pytest.fixture(scope="module")
def archs(repo_root):
    files = sorted((repo_root / "data" / "arch").glob("*.json"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in files}


def test_files_are_whole(archs):
    assert archs
    for name, arch in archs.items():
        assert arch["name"] == name
        assert KEYS | {"source"} == arch.keys()
        re.compile(arch["matches"])
        assert arch["peak_tflops"].keys() <= PRECISIONS
        assert arch["peak_tflops"]["matrix_fp16"] == arch["peak_tflops"]["matrix_bf16"]


@pytest.mark.parametrize(
    ("name", "gbps", "bf16"),
    [("H100-SXM", 3350, 989.5), ("H200-SXM", 4800, 989.5), ("MI300X", 5300, 1307.4)],
)
def test_known_figures(archs, name, gbps, bf16):
    assert archs[name]["mem_bw_gbps"] == gbps
    assert archs[name]["peak_tflops"]["matrix_bf16"] == bf16


def test_devices_of_real_traces_are_told_apart(archs):
    devices = {"NVIDIA H100 80GB HBM3": ["H100-SXM"], "AMD Instinct MI300X VF": ["MI300X"]}
    for device, expected in devices.items():
        assert [n for n, a in archs.items() if re.search(a["matches"], device)] == expected
