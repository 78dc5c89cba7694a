"""The worked examples of triton.md 6, as events of a trace; numbers are those of its table."""

from __future__ import annotations

import pytest
from compiled_cases import EXAMPLES, draw

import tracehouse
from tracehouse.triton.launches import read_name


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    drawn = draw([example.launch for example in EXAMPLES.values()])
    trace = tracehouse.read(drawn.write(tmp_path_factory.mktemp("examples") / "trace.json"))
    return dict(zip(EXAMPLES, trace.triton_kernels.to_pylist(), strict=True))


KNOWN = [number for number, example in EXAMPLES.items() if example.x is not None]
UNKNOWN = [15, 25]


@pytest.mark.parametrize("number", KNOWN)
def test_elements(rows, number):
    row, example = rows[number], EXAMPLES[number]
    assert (row["xnumel"], row["rnumel"]) == (example.x, example.r)
    assert row["elements"] == example.x * example.r
    assert row["check"] == example.check


@pytest.mark.parametrize("number", KNOWN)
def test_flops_by_the_published_weights(rows, number):
    row, example = rows[number], EXAMPLES[number]
    assert read_name(row["name"]).seed * row["elements"] == example.flops


@pytest.mark.parametrize("number", [n for n in KNOWN if EXAMPLES[n].refined is not None])
def test_bytes(rows, number):
    row, example = rows[number], EXAMPLES[number]
    assert row["bytes_min"] == example.refined
    assert row["in_place"] == example.in_place
    if example.in_place != "unknown":
        assert (row["bytes"], row["bytes_basis"]) == (example.refined, "trace_capped")
        return
    # The published formula's further write: b0 · x.
    width = {"c10::BFloat16": 2, "float": 4, "int": 4}[example.launch.tensors[0][0]]
    assert (row["bytes"], row["bytes_basis"]) == (example.refined + width * example.x, "compat")
    if number != 6:  # where nothing is larger than the kernel, that is the formula itself
        assert row["bytes"] == example.compat


# The published rule takes the last integer, or the last two, for the sizes.
TO_THE_LETTER = {
    1: (1_342_177_280, 1_610_612_736),
    2: (469_762_048, 268_439_552),
    3: (469_762_048, 402_657_280),
    4: (67_108_864, 536_870_912),
    5: (19 * 128, 221_025_024),  # y is lost
    6: (2 * 2432, 259_156_224 + 2 * 2432),
    7: (0, 2_097_280 + 2 * 16384),
    8: (0, 49_564_160),
    9: (637_534_208, 318_786_560),
    10: (139_460_608, 79_696_768),
    11: (7 * 128, 9_523_712 + 2 * 128),
    12: (2_359_296, 9_437_184),
    13: (3_552, 15_096),
    14: (0, 83_886_080),
    15: (None, None),
    16: (0, 577_536),
    17: (1024, 4_000_000 + 4 * 1024),  # takes the block for the size
    18: (2048, 25_182_208),
    19: (0, 10_485_760),
    20: (512, 2_359_296 + 2 * 512),
    21: (12 * 160, None),
    22: (56 * 56, 1_606_144),
    23: (512, 2_359_296 + 2 * 512),
    24: (1_048_576, 12_582_912),
    25: (None, None),
    26: (67_108_864, 402_653_184),
}


@pytest.mark.parametrize("number", EXAMPLES)
def test_the_published_formula_to_the_letter(rows, number):
    row = rows[number]
    assert (row["flops_seed"], row["bytes_seed"]) == TO_THE_LETTER[number]


@pytest.mark.parametrize("number", UNKNOWN)
def test_what_cannot_be_known(rows, number):
    row = rows[number]
    for column in ("xnumel", "elements", "flops", "bytes", "flops_seed", "bytes_seed", "dims"):
        assert row[column] is None, column
    assert row["why"]
    assert row["kernel_time_ns"] == 10_000


def test_kinds(rows):
    kinds = {number: row["kind"] for number, row in rows.items()}
    assert [kinds[n] for n in (1, 2, 10, 15, 25)] == ["poi", "red", "per", "poi", "user"]


def test_dims_of_several_kept_and_reduced(rows):
    assert rows[5]["dims"] == {"z": None, "y": 8192, "x": 19, "r0": 128, "r1": None}
    assert rows[22]["dims"] == {"z": None, "y": None, "x": 128, "r0": 56, "r1": 56}
    assert rows[24]["sizes"] == "assumed"  # neither block sizes nor a grid
    assert rows[23]["sizes"] == "args"


def test_inductors_own_count_of_bytes(rows):
    row = rows[26]
    assert (row["bytes"], row["bytes_min"]) == (125_829_120, 125_829_120)
    assert (row["bytes_basis"], row["source"]) == ("num_gb", "kernel_num_gb")
    assert row["flops"] == 67_108_864  # kernel_flop 0 says nothing


def test_refined_flops(rows):
    assert rows[19]["flops"] == 20_971_520  # _softmax 8, in no published table
    assert rows[10]["flops"] == 8 * 311_296 * 64  # and the bias of addmm
    assert rows[1]["flops"] == rows[1]["flops_seed"] == 1_342_177_280


def test_unknown_parts_make_it_partial(rows):
    assert rows[16]["flops_is_partial"]
    assert rows[16]["aten_ops"] == ["constant_pad_nd", "moe_forward"]
    assert not rows[1]["flops_is_partial"]
