"""Roofline on the command line, and the options that say what it is measured by."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tracegen import Trace

BF16 = "c10::BFloat16"


def drawn():
    product = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": [BF16, BF16]}
    return (
        Trace()
        .op("aten::mm", 0, 50, **product)
        .launch(5, 4, correlation=1)
        .kernel("gemm", 60, 200, correlation=1)
        .op("my::op", 60, 50, **product)
        .launch(65, 4, correlation=2)
        .kernel("mine", 300, 50, correlation=2)
    )


@pytest.fixture
def analysed(tracehouse, tmp_path):
    file = drawn().write(tmp_path / "in/run.json")

    def run(*options, code=0):
        result = tracehouse(
            "analyze", file.parent, "-o", tmp_path / "out", "--workers", "1", *options
        )
        assert result.returncode == code, result.stderr
        return result

    return run


@pytest.fixture
def work(tracehouse, tmp_path):
    def rows():
        query = "SELECT name, category, arch, flops, roofline_pct FROM roofline ORDER BY name"
        text = tracehouse("sql", tmp_path / "out", query, "--format", "csv").stdout
        return {row["name"]: row for row in csv.DictReader(io.StringIO(text))}

    return rows


def test_show_roofline(analysed, tracehouse, tmp_path):
    analysed()
    result = tracehouse("show", tmp_path / "out", "roofline")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[1].strip() == "H100-SXM, memory 3.35 TB/s"
    assert lines[2].strip() == (
        "GPU time 250.000 µs: 250.000 µs of recorded ops, 80.00 % of it with a formula"
    )
    assert lines[3].strip() == "without: my::op"
    assert lines[4].split() == (
        "op shape type count time time % TFLOPS/s TB/s % of roofline bound".split()
    )
    # 2 · 4096³ = 137.439 GFLOP in 200 µs; 3 · 4096² · 2 bytes; 137.439 / 989.5 ms = 138.9 µs
    assert (
        lines[5].split()
        == (
            "aten::mm [[4096,4096],[4096,4096]] bf16 1 200.000 µs 80.00 % "
            "687.19 0.503 69.45 % compute"
        ).split()
    )
    assert lines[6].split()[0] == "my::op"
    assert lines[6].endswith("[1]")
    assert lines[7].strip() == "[1] no formula for this op"


def test_show_roofline_for_machines(analysed, tracehouse, tmp_path):
    analysed()
    text = tracehouse("show", tmp_path / "out", "roofline", "--format", "json").stdout
    rows = {row["name"]: row for row in json.loads(text)}
    assert rows["aten::mm"]["flops"] == 2 * 4096**3
    assert rows["my::op"]["flops"] is None


def test_another_device_analyses_again(analysed, work):
    analysed()
    assert work()["aten::mm"]["arch"] == "H100-SXM"
    first = float(work()["aten::mm"]["roofline_pct"])
    assert "1 unchanged" in analysed().stderr
    assert "0 unchanged" in analysed("--arch", "mi300x").stderr
    row = work()["aten::mm"]
    assert row["arch"] == "MI300X"
    assert float(row["roofline_pct"]) == pytest.approx(first * 989.5 / 1307.4)
    assert "1 unchanged" in analysed("--arch", "MI300X").stderr


def test_a_device_of_ones_own(analysed, work, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps(
            {
                "name": "Mine",
                "vendor": "me",
                "mem_bw_gbps": 1000,
                "peak_tflops": {"matrix_bf16": 1000},
                "source": "measured",
            }
        ),
        encoding="utf-8",
    )
    analysed("--arch", path)
    row = work()["aten::mm"]
    assert row["arch"] == "Mine"
    assert float(row["roofline_pct"]) == pytest.approx(100 * 137.438953472 / 200)


def test_categories_of_ones_own(analysed, work, tmp_path):
    path = tmp_path / "categories.csv"
    path.write_text(
        "pattern,match,category,family\nmy::op,exact,my matmul,gemm\n^aten::m,regex,renamed,gemm\n",
        encoding="utf-8",
    )
    assert work_of(analysed, work, ())["my::op"]["category"] == "other"
    rows = work_of(analysed, work, ("--categories", path))
    assert (rows["my::op"]["category"], rows["aten::mm"]["category"]) == ("my matmul", "renamed")
    # The family gives it the formula of a product.
    assert rows["my::op"]["flops"] == rows["aten::mm"]["flops"] == str(2 * 4096**3)


def work_of(analysed, work, options):
    analysed(*options)
    return work()


def test_formulas_of_ones_own(analysed, work, tmp_path):
    path = tmp_path / "models.py"
    text = (
        "from tracehouse.formulas.user import OpWork\n"
        "MODELS = {'my::op': lambda call: OpWork(12, call.bytes(0), 'vector', 'bf16')}\n"
    )
    path.write_text(text, encoding="utf-8")
    assert work_of(analysed, work, ("--models", path))["my::op"]["flops"] == "12"
    path.write_text(text.replace("12", "13"), encoding="utf-8")
    assert work_of(analysed, work, ("--models", path))["my::op"]["flops"] == "13"


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--arch", None, "H100-SXM"),  # it lists the known names
        ("--arch", "{", "JSON"),
        ("--categories", None, "cannot read the categories"),
        ("--categories", "name,category\n", "has no column"),
        ("--categories", "pattern,match,category,family\nx,like,y,\n", "line 2"),
        ("--categories", "pattern,match,category,family\n(,regex,y,\n", "no regular expression"),
        ("--models", None, "cannot read the models"),
        ("--models", "raise ValueError('no')", "cannot be loaded: ValueError: no"),
    ],
)
def test_what_cannot_be_used_is_told_at_once(analysed, tmp_path, option, text, words):
    path = tmp_path / "given.file"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    result = analysed(option, path, code=2)
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()
