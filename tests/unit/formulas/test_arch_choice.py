"""Architectures that the user chooses: a name, or a JSON file of one's own."""

from __future__ import annotations

import json
import os
import re

import pytest

from tracehouse.errors import UsageError
from tracehouse.formulas.arch import chosen, known

BY_NAME = {a.name: a for a in known()}


def test_chosen_by_name():
    assert chosen("mi300x") is BY_NAME["MI300X"]
    assert all(chosen(name) is one for name, one in BY_NAME.items())


@pytest.fixture
def write(tmp_path):
    """Return a function that writes an architecture's text and returns the path."""

    def written(content, name="mine.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return written


SMALL = {"name": "mine", "mem_bw_gbps": 1000, "peak_tflops": {"vector_fp32": 10}}


def test_chosen_by_file(write):
    whole = {**SMALL, "vendor": "ACME", "memory_gb": 16.5, "compute_units": 38, "cache_mb": 4}
    one = chosen(write(json.dumps(whole)))
    assert (one.name, one.vendor, one.mem_bw_gbps, one.memory_gb) == ("mine", "ACME", 1000, 16.5)
    assert (one.compute_units, one.cache_mb, one.clock_mhz) == (38, 4, None)
    assert one.peaks == {"vector_fp32": 10}
    assert one.peak_tflops("matrix_fp32") == 10
    assert one.source == "mine.json"


def test_a_file_with_a_byte_order_mark(write):
    assert chosen(write(b"\xef\xbb\xbf" + json.dumps(SMALL).encode())).name == "mine"


def test_a_packaged_file_can_be_the_start_of_ones_own(write, repo_root):
    for path in (repo_root / "data/arch").glob("*.json"):
        assert chosen(str(path)) == BY_NAME[path.stem]


def test_the_example_of_the_page_works(write, repo_root):
    page = (repo_root / "docs/architectures.md").read_text("utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    one = chosen(write(example))
    assert one.peak_tflops("matrix_bf16") == pytest.approx(1307.4 / 8, abs=0.05)
    assert one.peak_tflops("matrix_fp8") is None


def test_a_name_goes_before_a_file(write, monkeypatch, tmp_path):
    write(json.dumps(SMALL), name="MI300X")
    monkeypatch.chdir(tmp_path)
    assert chosen("MI300X").name == "MI300X"
    assert chosen("./MI300X").name == "mine"


def changed(**values):
    return json.dumps({**SMALL, **values})


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("", "no JSON: Expecting value in line 1, column 1", ""),
        ('{"name": "x",\n "mem_bw', "no JSON: .*line 2, column 2", ""),
        ("[]", "not a JSON object", ""),
        ("null", "not a JSON object", ""),
        ("{}", "key 'name' is missing", "architectures.md"),
        ('{"name": "x", "mem_bw_gbps": 1}', "key 'peak_tflops' is missing", ""),
        ('{"name": "x", "name": "y"}', "key 'name' is there 2 times", ""),
        (changed(name=7), "name: 7 is no line of text", ""),
        (changed(name=""), "name: empty", ""),
        (changed(name="a\x1b[2J"), "name: .* is no line of text", ""),
        (changed(name="n" * 501), "name: .* is no line of text", ""),
        (changed(source=["x"]), "source: .* is no line of text", ""),
        (changed(mem_bw_gbps="1000"), "mem_bw_gbps: '1000' is no positive finite number", ""),
        (changed(mem_bw_gbps=0), "mem_bw_gbps: 0 is no", ""),
        (changed(mem_bw_gbps=-1), "mem_bw_gbps: -1 is no", ""),
        (changed(mem_bw_gbps=True), "mem_bw_gbps: True is no", ""),
        (changed(mem_bw_gbps=None), "mem_bw_gbps: None is no", ""),
        (changed(mem_bw_gbps=float("nan")), "mem_bw_gbps: nan is no", ""),
        (changed(memory_gb=float("inf")), "memory_gb: inf is no", ""),
        (changed(cache_mb=10**400), "cache_mb: 1000.*… is no", ""),
        (changed(compute_units=1.5), "compute_units: 1.5 is no whole number", ""),
        (changed(capability="9"), "capability: '9': not major.minor", ""),
        (changed(matches="("), "matches: .*unterminated", ""),
        (changed(peak_tflops=5), "peak_tflops: not a JSON object", ""),
        (changed(peak_tflops={}), "peak_tflops: not a JSON object", ""),
        (changed(peak_tflops={"vector_fp32": "9"}), "peak_tflops: vector_fp32: '9' is no", ""),
        (changed(peak_tflops={"matrix_bfloat16": 9}), "matrix_bfloat16", "mean matrix_bf16?"),
        (changed(peak_tflops={"vector_fp8": 9}), "unknown key 'vector_fp8'", "mean vector_fp"),
        (changed(peak_tflops={"zzz": 9}), "unknown key 'zzz'", "keys: matrix_fp64"),
        (changed(mem_bw=1), "unknown key 'mem_bw'", "did you mean mem_bw_gbps?"),
        (changed(max_achievable_tflops={}), "unknown key", "did you mean peak_tflops?"),
        (changed(zzz=1), "unknown key 'zzz'", "keys: name, mem_bw_gbps"),
        ('{"name": ' + "1" * 5000 + "}", "no JSON of ours|no line of text", ""),
        ("[" * 60_000, "no JSON", ""),
        ("[" + " " * 2**16 + "]", "larger than 65,536 bytes", ""),
        (b"\xff{}", "not UTF-8 at byte 0", ""),
        (b"\x1f\x8b\x08\x00", "not UTF-8 at byte 1", ""),
    ],
)
def test_what_is_wrong_with_a_file(write, text, what, hint):
    path = write(text)
    with pytest.raises(UsageError, match=what) as caught:
        chosen(path)
    assert str(caught.value).startswith(path)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("h100", "did you mean H100-NVL or H100-PCIe or H100-SXM?"),
        ("MI300", "did you mean MI300A or MI300X?"),
        ("RTX4090", "did you mean RTX-4090"),
        ("nothing.json", "known: A10, A100-PCIe-40GB"),
        ("", "known: A10, A100-PCIe-40GB"),
        ("/", "known: A10"),
        ("a\0b", "known: A10"),
    ],
)
def test_neither_a_name_nor_a_file(text, near):
    with pytest.raises(
        UsageError, match="neither the name of an architecture nor a file"
    ) as caught:
        chosen(text)
    assert near in caught.value.hint
    assert "MI355X" in caught.value.hint


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match=r"cannot be read: .*too long"):
        chosen("x" * 5000)
    with pytest.raises(UsageError, match="nor a file"):
        chosen(str(tmp_path))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # opening it would wait for a writer
    with pytest.raises(UsageError, match="nor a file"):
        chosen(str(fifo))
