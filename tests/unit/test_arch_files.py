"""The hardware peaks: every file is whole, and a few figures are those of the datasheets."""

from __future__ import annotations

import json
import re

import pytest

NEEDED = {
    *("name", "vendor", "matches", "mem_bw_gbps", "memory_gb", "compute_units", "capability"),
    *("peak_tflops", "source"),
}
OPTIONAL = {"cache_mb", "clock_mhz"}
PRECISIONS = {
    *(f"matrix_{p}" for p in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8")),
    *(f"vector_{p}" for p in ("fp64", "fp32", "fp16", "bf16")),
}
BEFORE_BF16 = {"V100-SXM2-16GB", "V100-SXM2-32GB", "V100-PCIe-16GB", "V100-PCIe-32GB", "T4"}


@pytest.fixture(scope="module")
def archs(repo_root):
    files = sorted((repo_root / "data" / "arch").iterdir())
    return {path.stem: json.loads(path.read_text("utf-8")) for path in files}


def test_files_are_whole(archs):
    assert len(archs) == 41
    for name, arch in archs.items():
        assert arch["name"] == name
        assert NEEDED <= arch.keys() <= NEEDED | OPTIONAL, name
        assert arch["vendor"] in {"NVIDIA", "AMD"}
        assert arch["peak_tflops"].keys() <= PRECISIONS, name
        re.compile(arch["matches"])


def test_source_names_the_vendor(archs):
    assert [n for n, a in archs.items() if not a["source"].startswith(a["vendor"])] == []


def test_every_device_has_the_peaks_that_all_have(archs):
    needed = {"matrix_fp16", "vector_fp32", "vector_fp64"}
    assert [n for n, a in archs.items() if not needed <= a["peak_tflops"].keys()] == []


def test_peaks_are_of_one_piece(archs):
    """Narrower types are never slower, matrix units never slower than vector units."""
    orders = [
        ("vector_fp64", "vector_fp32"),
        ("vector_fp32", "vector_fp16"),
        ("vector_bf16", "vector_fp16"),
        ("vector_fp64", "matrix_fp64"),
        ("vector_fp32", "matrix_fp32"),
        ("vector_fp32", "matrix_tf32"),
        ("vector_fp16", "matrix_fp16"),
        ("vector_bf16", "matrix_bf16"),
        ("matrix_fp64", "matrix_tf32"),
        ("matrix_fp32", "matrix_tf32"),
        ("matrix_tf32", "matrix_fp16"),
        ("matrix_fp16", "matrix_fp8"),
        ("matrix_fp8", "matrix_fp6"),
        ("matrix_fp6", "matrix_fp4"),
        ("matrix_fp16", "matrix_int8"),
    ]
    wrong = [
        (name, low, high)
        for name, arch in archs.items()
        for low, high in orders
        if {low, high} <= (peaks := arch["peak_tflops"]).keys() and peaks[low] > peaks[high]
    ]
    assert wrong == []


def test_fp16_and_bf16_are_equal_on_matrix_units(archs):
    for name, arch in archs.items():
        peaks = arch["peak_tflops"]
        expected = None if name in BEFORE_BF16 else peaks["matrix_fp16"]
        assert peaks.get("matrix_bf16") == expected, name


def test_vector_fp32_follows_from_units_and_clock(archs):
    """Two operations a lane and cycle: 64 lanes on Volta, Turing, GA100 and CDNA 2, 128 elsewhere.

    CDNA 3 and 4 count packed fp32: their 128 lanes are 64 of two. Datasheets round and take boost
    clocks of their own, so 3 %, and 7 % of B200.
    """
    lanes_64 = {("NVIDIA", "7.0"), ("NVIDIA", "7.5"), ("NVIDIA", "8.0"), ("AMD", "9.0")}
    for name, arch in archs.items():
        if "clock_mhz" in arch:
            lanes = 64 if (arch["vendor"], arch["capability"]) in lanes_64 else 128
            tflops = 2 * lanes * arch["compute_units"] * arch["clock_mhz"] / 1e6
            tolerance = 0.08 if name == "B200" else 0.03
            assert arch["peak_tflops"]["vector_fp32"] == pytest.approx(tflops, rel=tolerance), name


def test_ieee_fp32_matrix_units_are_of_amd_alone(archs):
    has = {n for n, a in archs.items() if "matrix_fp32" in a["peak_tflops"]}
    assert has == {n for n, a in archs.items() if a["vendor"] == "AMD"}


@pytest.mark.parametrize(
    ("name", "gbps", "gb", "units", "fp32", "fp16", "fp8"),
    [
        ("V100-SXM2-16GB", 900, 16, 80, 15.7, 125, None),
        ("T4", 320, 16, 40, 8.1, 65, None),
        ("A100-SXM-40GB", 1555, 40, 108, 19.5, 312, None),
        ("A100-SXM-80GB", 2039, 80, 108, 19.5, 312, None),
        ("A100-PCIe-80GB", 1935, 80, 108, 19.5, 312, None),
        ("A10", 600, 24, 72, 31.2, 125, None),
        ("A10G", 600, 24, 80, 35, 70, None),
        ("L4", 300, 24, 58, 30.3, 121, 242.5),
        ("L40S", 864, 48, 142, 91.6, 362, 733),
        ("RTX-4090", 1008, 24, 128, 82.6, 165.2, 330.3),
        ("H100-SXM", 3350, 80, 132, 67, 989.5, 1979),
        ("H100-PCIe", 2000, 80, 114, 51, 756, 1513),
        ("H100-NVL", 3938, 94, 132, 60, 835.5, 1670.5),
        ("H200-SXM", 4800, 141, 132, 67, 989.5, 1979),
        ("H20", 4000, 96, 78, 44, 148, 296),
        ("B200", 8000, 180, 148, 80, 2250, 4500),
        ("MI250X", 1638.4, 64, 110, 23.9, 191.5, None),
        ("MI300A", 5300, 128, 228, 122.6, 980.6, 1961.2),
        ("MI300X", 5300, 192, 304, 163.4, 1307.4, 2614.9),
        ("MI325X", 6000, 256, 304, 163.4, 1307.4, 2614.9),
        ("MI355X", 8000, 288, 256, 157.3, 2516, 5033),
    ],
)
def test_figures_of_the_datasheets(archs, name, gbps, gb, units, fp32, fp16, fp8):
    arch, peaks = archs[name], archs[name]["peak_tflops"]
    assert (arch["mem_bw_gbps"], arch["memory_gb"], arch["compute_units"]) == (gbps, gb, units)
    assert (peaks["vector_fp32"], peaks["matrix_fp16"], peaks.get("matrix_fp8")) == (
        *(fp32, fp16),
        fp8,
    )


@pytest.mark.parametrize(
    ("name", "mb"),
    [("A100-SXM-40GB", 40), ("H100-SXM", 50), ("L4", 48), ("RTX-4090", 72), ("MI300X", 256)],
)
def test_last_level_caches(archs, name, mb):
    assert archs[name]["cache_mb"] == mb


def test_a_die_of_mi250x_is_half_the_card(archs):
    """The card: 383.0 TFLOPS of fp16, 95.7 of fp64 and fp32 on matrix units, 3,276.8 GB/s."""
    arch = archs["MI250X"]
    assert arch["peak_tflops"]["matrix_fp16"] == pytest.approx(383.0 / 2)
    assert arch["peak_tflops"]["matrix_fp64"] == pytest.approx(95.7 / 2, abs=0.06)
    assert arch["mem_bw_gbps"] == 3276.8 / 2
    assert "GCD" in arch["source"]


def test_the_page_lists_every_file(archs, repo_root):
    page = (repo_root / "docs/architectures.md").read_text("utf-8")
    assert [name for name in archs if f"`{name}`" not in page] == []
