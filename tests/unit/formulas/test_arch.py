"""Architectures: their peaks, and recognising the device of a trace."""

from __future__ import annotations

import gzip
import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.formulas.arch import SPECS, known, recognise

BY_NAME = {a.name: a for a in known()}
GIB = 2**30


def device(name, memory, capability, units, warp=32):
    """Return an entry as Kineto writes it; of memory in bytes."""
    major, minor = capability.split(".")
    return {
        "id": 0,
        "name": name,
        "totalGlobalMem": memory,
        "computeMajor": int(major),
        "computeMinor": int(minor),
        "maxThreadsPerBlock": 1024,
        "warpSize": warp,
        "numSms": units,
    }


# The first six stand so in real traces; memory of the others is as devices report it, or nearly.
REAL = [
    (device("NVIDIA H100 80GB HBM3", 85018279936, "9.0", 132), "H100-SXM"),
    (device("NVIDIA A100-PG509-200", 42297524224, "8.0", 108), "A100-SXM-40GB"),
    (device("AMD Instinct MI300X", 206141652992, "9.4", 304, 64), "MI300X"),
    (device("AMD Instinct MI300X VF", 205571227648, "9.4", 304, 64), "MI300X"),
    (device("", 206141652992, "9.4", 304, 64), "MI300X"),
    (device("AMD Radeon Graphics", 68702699520, "9.0", 104, 64), "MI210/MI250"),
    (device("A100-SXM4-40GB", 42505273344, "8.0", 108), "A100-SXM-40GB"),
    (device("NVIDIA A100-SXM4-80GB", 85167505408, "8.0", 108), "A100-SXM-80GB"),
    (device("NVIDIA A100 80GB PCIe", 85029158912, "8.0", 108), "A100-PCIe-80GB"),
    (device("NVIDIA A100-PCIE-40GB", 42298834944, "8.0", 108), "A100-PCIe-40GB"),
    (device("NVIDIA H100 PCIe", 85029158912, "9.0", 114), "H100-PCIe"),
    (device("NVIDIA H100 NVL", 100_000_000_000, "9.0", 132), "H100-NVL"),
    (device("NVIDIA H20", 97285 * 2**20, "9.0", 78), "H20"),
    (device("NVIDIA H200", 150_100_000_000, "9.0", 132), "H200-SXM"),
    (device("NVIDIA GH200 480GB", 97280 * 2**20, "9.0", 132), "GH200"),
    (device("NVIDIA B200", 191_500_000_000, "10.0", 148), "B200"),
    (device("NVIDIA GB200", 198_000_000_000, "10.0", 152), "GB200"),
    (device("NVIDIA B300 SXM6 AC", 288_000_000_000, "10.3", 148), "B300"),
    (device("Tesla V100-SXM2-16GB", 16945512448, "7.0", 80), "V100-SXM2-16GB"),
    (device("Tesla T4", 15655829504, "7.5", 40), "T4"),
    (device("NVIDIA A10", 23609475072, "8.6", 72), "A10"),
    (device("NVIDIA A10G", 22587 * 2**20, "8.6", 80), "A10G"),
    (device("NVIDIA L4", 23_600_000_000, "8.9", 58), "L4"),
    (device("NVIDIA L40S", 47_700_000_000, "8.9", 142), "L40S"),
    (device("NVIDIA GeForce RTX 3090", 25286672384, "8.6", 82), "RTX-3090"),
    (device("NVIDIA GeForce RTX 4090", 25_300_000_000, "8.9", 128), "RTX-4090"),
    (device("NVIDIA RTX 6000 Ada Generation", 51_000_000_000, "8.9", 142), "RTX-6000-Ada"),
    (device("AMD Instinct MI250X", 68702699520, "9.0", 110, 64), "MI250X"),
    (device("AMD Instinct MI250X/MI250", 68702699520, "9.0", 104, 64), "MI250"),
    (device("AMD Instinct MI250X / MI250", 68702699520, "9.0", 110, 64), "MI250X"),
    (device("AMD Instinct MI355X", 288 * GIB - 10**8, "9.5", 256, 64), "MI355X"),
]


@pytest.mark.parametrize(
    ("properties", "name"), REAL, ids=lambda v: v if isinstance(v, str) else ""
)
def test_real_devices(properties, name):
    assert recognise(properties).name == name


def test_devices_of_the_real_traces(shared_traces):
    found = {}
    for path in shared_traces.rglob("*.json.gz"):
        with gzip.open(path) as file:
            head = file.read(2_000_000).decode("utf-8", "replace")
        at = re.search(r'"deviceProperties"\s*:\s*(?=\[)', head)
        if at:
            for entry in json.JSONDecoder().raw_decode(head, at.end())[0]:
                one = recognise(entry)
                found.setdefault(entry["name"], set()).add(one and one.name)
    assert found == {
        "": {"MI300X"},
        "AMD Instinct MI300X": {"MI300X"},
        "AMD Instinct MI300X VF": {"MI300X"},
        "AMD Radeon Graphics": {"MI210/MI250"},
        "NVIDIA A100-PG509-200": {"A100-SXM-40GB"},
        "NVIDIA H100 80GB HBM3": {"H100-SXM"},
    }


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 5090 D",
        "Quadro RTX 6000",
        "NVIDIA RTX 6000 Ada Generation Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA A100-SXM-64GB",
        "NVIDIA A100X",
        "GRID A100X-40C",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
        "NVIDIA H100",
        "NVIDIA H800 PCIe",
        "NVIDIA H20-3e",
        "NVIDIA GH200 144G HBM3e",
        "NVIDIA GB300",
        "NVIDIA GB10",
        "NVIDIA L20",
        "NVIDIA A10M",
        "NVIDIA T400",
        "Tesla V100-SXM3-32GB",
        "AMD Instinct MI300X HF",
        "AMD Instinct MI308X",
        "AMD Instinct MI100",
        "AMD Radeon PRO W7900",
        "Graphics Device",
        "xNVIDIA H100 PCIe",
        "NVIDIA H100 PCIe\nNVIDIA H200",
    ],
)
def test_near_misses_are_no_one(name):
    assert recognise({"name": name}) is None


def test_another_name_is_not_overruled_by_equal_facts():
    """MI308X and MI300X HF have 192 GiB and gfx942 too; an unknown name is an unknown part."""
    assert recognise(device("AMD Instinct MI300X HF", 206141652992, "9.4", 304, 64)) is None
    assert recognise(device("NVIDIA H100 64GB HBM2", 85018279936, "9.0", 132)) is None


def test_no_name_fits_two_files_but_that_of_both_dies():
    shared = "AMD Instinct MI250X/MI250"
    for properties, _ in REAL:
        fits = [a.name for a in known() if re.fullmatch(a.matches, properties["name"], re.I)]
        assert len(fits) <= 1 or properties["name"].replace(" / ", "/") == shared
    assert recognise({"name": shared}) is None


@pytest.mark.parametrize(
    "name",
    ["NVIDIA {}", "{}", "AMD Instinct {}", "Tesla {}", "NVIDIA GeForce {}"],
)
def test_names_of_files_written_as_devices_fit_their_own_file_at_most(name):
    for one in known():
        text = name.format(one.name.replace("-", " "))
        fits = [a.name for a in known() if re.fullmatch(a.matches, text, re.I)]
        assert set(fits) <= {one.name}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("numSms", 38),  # CPX: one of eight dies
        ("numSms", 152),  # DPX
        ("numSms", 303),
        ("totalGlobalMem", 206141652992 // 8),
        ("totalGlobalMem", 210 * GIB),
        ("computeMinor", 5),
        ("computeMajor", 8),
        ("warpSize", 32),
    ],
)
@pytest.mark.parametrize("name", ["AMD Instinct MI300X", "", "AMD Radeon Graphics"])
def test_a_fact_that_disagrees_rules_out(name, key, value):
    properties = device(name, 206141652992, "9.4", 304, 64)
    assert recognise(properties).name == "MI300X"
    assert recognise({**properties, key: value}) is None


@pytest.mark.parametrize(
    "key", ["numSms", "totalGlobalMem", "computeMajor", "computeMinor", "warpSize"]
)
@pytest.mark.parametrize("value", [None, "304", -1, 304.0, 10**400, True, [], {}, "missing"])
def test_without_a_fact_only_the_name_counts(key, value):
    properties = device("AMD Instinct MI300X", 206141652992, "9.4", 304, 64)
    properties[key] = value
    if value == "missing":
        del properties[key]
    assert recognise(properties).name == "MI300X"
    assert recognise({**properties, "name": ""}) is None
    assert recognise({key: v for key, v in properties.items() if key != "name"}) is None


@pytest.mark.parametrize("name", [None, 7, ["NVIDIA H200"], b"NVIDIA H200", "", "  "])
def test_no_name_at_all(name):
    assert recognise({"name": name}) is None
    facts = device(name, 206141652992, "9.4", 304, 64)
    assert recognise(facts).name == "MI300X"


def test_nothing_known_of_the_device():
    assert recognise({}) is None


def test_nvidia_needs_its_name():
    """82 SMs with 24 GB are a 3090, but 80 are an A10G or an RTX A5500."""
    assert recognise(device("", 85018279936, "9.0", 132)) is None
    assert recognise(device("", 22587 * 2**20, "8.6", 80)) is None


def test_facts_that_fit_parts_of_different_peaks_decide_nothing():
    """MI350X and MI355X differ by their clock alone."""
    assert recognise(device("", 288 * GIB - 10**8, "9.5", 256, 64)) is None


def test_parts_of_equal_figures_are_both_named():
    both = recognise(device("", 68702699520, "9.0", 104, 64))
    assert both.name == "MI210/MI250"
    assert both.peaks == BY_NAME["MI210"].peaks == BY_NAME["MI250"].peaks
    assert both.mem_bw_gbps == 1638.4


@given(
    st.dictionaries(
        st.sampled_from(
            ["name", "numSms", "totalGlobalMem", "computeMajor", "computeMinor", "warpSize"]
        ),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=30),
            st.sampled_from([a.name for a in known()]),
            st.lists(st.integers(), max_size=2),
        ),
    )
)
def test_anything_at_all_is_an_architecture_or_none(properties):
    assert recognise(properties) is None or recognise(properties).mem_bw_gbps > 0


def test_known_are_the_files(repo_root):
    files = {path.stem for path in (repo_root / "data/arch").glob("*.json")}
    assert {a.name for a in known()} == files
    assert known() is known()


def test_an_architecture_can_be_passed_between_processes_and_hashed():
    assert pickle.loads(pickle.dumps(known())) == known()
    assert len(set(known())) == len(known())


@pytest.mark.parametrize(
    ("name", "spec", "tflops"),
    [
        ("H100-SXM", "matrix_bf16", 989.5),
        ("H100-SXM", "matrix_tf32", 495),
        ("H100-SXM", "matrix_fp32", 67),  # IEEE: vector units
        ("H100-SXM", "matrix_fp64", 67),  # a matrix unit of its own
        ("T4", "matrix_fp64", 0.25),  # none: vector units
        ("MI300X", "matrix_fp32", 163.4),
        ("MI250X", "matrix_fp32", 47.9),  # twice the vector units' 23.9
        ("MI355X", "matrix_tf32", None),
        ("A100-SXM-40GB", "matrix_fp8", None),
        ("A100-SXM-40GB", "matrix_fp4", None),
        ("T4", "matrix_bf16", None),
        ("T4", "vector_bf16", None),
        ("H100-SXM", "vector_fp8", None),
        ("H100-SXM", "vector_int8", None),
        ("H100-SXM", "matrix_int32", None),
        ("H100-SXM", "vector_bfloat16", None),
        ("H100-SXM", "", None),
    ],
)
def test_peaks(name, spec, tflops):
    assert BY_NAME[name].peak_tflops(spec) == tflops


def test_specs_are_those_of_the_files():
    used = {spec for one in known() for spec in one.peaks}
    assert used == set(SPECS)
