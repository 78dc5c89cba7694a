"""Compiled kernels on the command line: the published table, one kernel step by step, the cache."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from cache_cases import (
    MUL_SILU,
    MUL_SILU_COMMENT,
    RMS_NORM,
    RMS_NORM_COMMENT,
    block,
    hash_of,
    wrapper,
    write,
)
from compiled_cases import Launch, bf16, draw

SWIGLU = "triton_poi_fused__unsafe_view_mul_silu_2"
NORM = "triton_red_fused_add_mean_mul_pow_rsqrt_0"
RESIDUAL_NORM = "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1"
RESIDUAL = "triton_poi_fused__unsafe_view_add_3"

# The table of the published page: GFLOPS, data moved, FLOPS/Byte, TB/s, TFLOPS/s.
PUBLISHED = {
    NORM: ["0.470", "256", "1.75", "3.38", "5.92"],
    RESIDUAL_NORM: ["0.470", "384", "1.17", "4.32", "5.04"],
    SWIGLU: ["1.342", "1,536", "0.83", "3.19", "2.66"],
    RESIDUAL: ["0.067", "512", "0.12", "3.81", "0.48"],
}


@pytest.fixture(scope="module")
def block_warehouse(tracehouse, repo_root, tmp_path_factory):
    """The block of the page, with its times: 79.4, 93.2, 505.3 and 140.9 µs."""
    out = tmp_path_factory.mktemp("block") / "out"
    sample = repo_root / "data/samples/triton_block.json.gz"
    result = tracehouse("analyze", sample, "-o", out, "--workers", "1")
    assert result.returncode == 0, result.stderr
    return out


def table(tracehouse, out, *options):
    text = tracehouse("show", out, "triton", "--format", "csv", *options).stdout
    return {row["name"]: row for row in csv.DictReader(io.StringIO(text))}


def test_the_published_table(tracehouse, block_warehouse):
    result = tracehouse("show", block_warehouse, "triton")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == [lines[0][0]]
    assert " ".join(lines[1]).startswith(
        "Kernel GFLOPS Data Moved (MB) FLOPS/Byte TB/s TFLOPS/s calls mean time"
    )
    assert {line[0]: line[1:6] for line in lines[2:6]} == PUBLISHED


def test_the_published_pointwise_example(tracehouse, block_warehouse):
    result = tracehouse("show", block_warehouse, "triton", "--kernel", SWIGLU)
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stdout.split())
    for expected in (
        f"{SWIGLU} (pointwise)",
        "xnumel = 268,435,456 rnumel = 1",
        "the grid agrees",
        "0 [8, 4096, 8192] c10::BFloat16 2 268,435,456 536,870,912",
        "1 [32768, 8192] c10::BFloat16 2 268,435,456 536,870,912",
        "2 268435456 Scalar skipped",
        "input_bytes = 268,435,456 * 2 + 268,435,456 * 2 = 1,073,741,824",
        "output_write = 536,870,912",
        "bytes_moved = 1,610,612,736 = 1,536 MB",
        "_unsafe_view 0 mul 1 silu 4 total 5",
        "flops = 5 * 268,435,456 * 1 = 1,342,177,280 GFLOPS = 1.342",
        "TB/s = 1,610,612,736 B / 505.300 us = 3.19",
        "TFLOPS/s = 1.342 GFLOPS / 505.300 us = 2.66",
        "FLOPS/Byte = 0.833",
    ):
        assert expected in words


def test_the_published_reduction_example(tracehouse, block_warehouse):
    result = tracehouse("show", block_warehouse, "triton", "--kernel", NORM)
    words = " ".join(result.stdout.split())
    for expected in (
        f"{NORM} (reduction)",
        "xnumel = 32,768 rnumel = 2,048",
        "1 [2048] c10::BFloat16 2 2,048 4,096",
        "= 268,439,552 bytes_moved = 268,439,552 = 256 MB",
        "add 1 mean 1 mul 1 pow 2 rsqrt 2 total 7",
        "flops = 7 * 32,768 * 2,048 = 469,762,048 GFLOPS = 0.470",
        "268,439,552 B / 79.400 us = 3.38",
        "0.470 GFLOPS / 79.400 us = 5.92",
    ):
        assert expected in words
    assert "output_write" not in words


def test_for_machines(tracehouse, block_warehouse):
    rows = json.loads(tracehouse("show", block_warehouse, "triton", "--format", "json").stdout)
    assert {row["name"]: row["bytes"] for row in rows}[NORM] == 268_439_552
    text = tracehouse(
        "show", block_warehouse, "triton", "--kernel", SWIGLU, "--format", "json"
    ).stdout
    (row,) = json.loads(text)
    assert row["dims"] == {"z": None, "y": None, "x": 268_435_456, "r0": None, "r1": None}
    assert row["aten_ops"] == ["_unsafe_view", "mul", "silu"]


def test_coverage_counts_them(tracehouse, block_warehouse):
    query = "SELECT modelled_pct FROM coverage"
    text = tracehouse("sql", block_warehouse, query, "--format", "csv").stdout
    assert text.split() == ["modelled_pct", "100.0"]


def test_wrong_words(tracehouse, block_warehouse, warehouse):
    result = tracehouse("show", block_warehouse, "triton", "--kernel", "triton_poi_fused_no_9")
    assert result.returncode == 2
    assert "There is no compiled kernel 'triton_poi_fused_no_9'" in result.stderr
    assert tracehouse("show", block_warehouse, "ops", "--kernel", SWIGLU).returncode == 2
    result = tracehouse("show", warehouse, "triton")
    assert (result.returncode, result.stdout) == (0, "")
    assert "No trace has compiled kernels." in result.stderr
    assert tracehouse("show", warehouse, "triton", "--kernel", "x").returncode == 2


# The real trace: its times are 77.074, 90.653, 527.382 and 140.848 µs.
GOLDEN = {
    NORM: (0.469762048, 256.00390625, 3.483, 6.095),
    RESIDUAL_NORM: (0.469762048, 384.00390625, 4.442, 5.182),
    SWIGLU: (1.34217728, 1536.0, 3.054, 2.545),
    RESIDUAL: (0.067108864, 512.0, 3.812, 0.476),
}


def test_the_real_trace(tracehouse, shared_traces, tmp_path):
    trace = shared_traces / "torch_compile_triton/trace.json.gz"
    assert tracehouse("analyze", trace, "-o", tmp_path / "out", "--workers", "1").returncode == 0
    rows = table(tracehouse, tmp_path / "out")
    assert rows.keys() == GOLDEN.keys()
    for name, (gflops, mib, tb_s, tflops_s) in GOLDEN.items():
        row = rows[name]
        assert float(row["gflops"]) == pytest.approx(gflops, rel=1e-6)
        assert float(row["data_moved_mib"]) == pytest.approx(mib, rel=1e-6)
        assert round(float(row["tb_s"]), 3) == tb_s
        assert round(float(row["tflops_s"]), 3) == tflops_s
        assert row["check"] == "grid_ok"


# The Inductor cache, where the launch tells nothing (record_shapes off)

NORM_OF_THE_PAGE = replace(
    RMS_NORM,
    hints={"x": 32768, "r0_": 2048},
    body=RMS_NORM.body.replace("6000", "32768").replace("1000", "2048"),
)


@pytest.fixture
def analysed(tracehouse, tmp_path):
    def run(launch, *options, code=0, **env):
        file = draw([launch]).write(tmp_path / "in/run.json")
        out = tmp_path / "out"
        result = tracehouse("analyze", file, "-o", out, "--workers", "1", *options)
        assert result.returncode == code, result.stderr
        if code:
            return result
        query = "SELECT * FROM triton_kernels"
        text = tracehouse("sql", out, query, "--format", "json").stdout
        (row,) = json.loads(text)
        return row

    return run


def silent(name, **more):
    """A launch of a trace without shapes."""
    return Launch(name, shapes=False, us="79.4", more=more)


@pytest.mark.parametrize("layout", ["2.6", "new"])
def test_the_published_reduction_from_the_cache(analysed, tmp_path, layout):
    comment = RMS_NORM_COMMENT.split("# Source node to")[0]
    write(tmp_path / "cache", hash_of("w"), wrapper(block(NORM_OF_THE_PAGE, comment, layout)))
    row = analysed(silent(NORM), "--inductor-cache-dir", tmp_path / "cache")
    assert (row["xnumel"], row["rnumel"], row["sizes"]) == (32_768, 2_048, "cache")
    assert row["bytes_seed"] == 268_500_992  # (2 + 2) · 32,768 · 2,048 + 2 · 32,768
    assert (row["flops"], row["flops_seed"]) == (469_762_048, 469_762_048)
    assert (row["source"], row["bytes_basis"]) == ("v1", "cache_roles")
    # It stores each element: two pointers read and one written, of 2 bytes.
    assert row["bytes"] == 3 * 2 * 32_768 * 2_048
    assert row["why"] is None


@pytest.mark.parametrize(
    ("layout", "hints", "unique"),
    [
        ("2.2", [1048576], True),
        ("2.5", [1048576], False),
        ("2.6", {"x": 1048576}, True),
        ("new", {"x": 1048576}, True),
    ],
)
def test_every_layout_of_a_pointwise_kernel(analysed, tmp_path, layout, hints, unique):
    kernel = replace(MUL_SILU, hints=hints)
    text = wrapper(block(kernel, MUL_SILU_COMMENT, layout, unique))
    write(tmp_path / "cache", hash_of("w"), text)
    row = analysed(silent(MUL_SILU.name), "--inductor-cache-dir", tmp_path / "cache")
    # 786,432 in its body, not the hint of 1,048,576; (2 + 2 + 2) bytes an element; mul 1, silu 4
    assert (row["xnumel"], row["rnumel"], row["sizes"]) == (786_432, 1, "cache")
    assert (row["bytes"], row["bytes_seed"]) == (6 * 786_432, 6 * 786_432)
    assert (row["flops"], row["flops_seed"]) == (5 * 786_432, 5 * 786_432)
    assert (row["aten_ops"], row["in_place"]) == (["mul", "silu"], "yes")


def test_hints_are_told(analysed, tmp_path):
    write(tmp_path / "cache", hash_of("k"), replace(MUL_SILU, body="    pass\n").text())
    row = analysed(silent(MUL_SILU.name), "--inductor-cache-dir", tmp_path / "cache")
    assert (row["xnumel"], row["sizes"], row["check"]) == (1_048_576, "hints", "none")


def test_by_hash_before_name(analysed, tmp_path):
    cache = tmp_path / "cache"
    write(cache, hash_of("a"), MUL_SILU.text())
    write(cache, hash_of("b"), replace(MUL_SILU, body="    xnumel = 64\n").text())
    row = analysed(silent(MUL_SILU.name, kernel_hash=hash_of("b")), "--inductor-cache-dir", cache)
    assert row["xnumel"] == 64
    row = analysed(
        silent(MUL_SILU.name, kernel_file=f"/elsewhere/aa/{hash_of('a')}.py"),
        "--inductor-cache-dir",
        cache,
    )
    assert row["xnumel"] == 786_432
    row = analysed(silent(MUL_SILU.name), "--inductor-cache-dir", cache)
    assert (row["xnumel"], row["flops"]) == (None, None)
    assert row["why"].endswith("several kernels of this name are in the Inductor cache")


def test_the_cache_settles_what_is_written_in_place(analysed, tmp_path):
    launch = Launch(
        MUL_SILU.name,
        bf16([786432], [786432]),
        (786432,),
        "XBLOCK=1024",
        more={"kernel_hash": hash_of("a")},
    )
    row = analysed(launch)
    assert (row["in_place"], row["bytes_basis"]) == ("unknown", "compat")
    apart = {"in_ptr0": "*bf16", "out_ptr0": "*bf16", "xnumel": "i32"}
    cache = tmp_path / "cache"
    write(cache, hash_of("a"), replace(MUL_SILU, types=apart).text())
    row = analysed(launch, "--inductor-cache-dir", cache)
    assert (row["in_place"], row["bytes"]) == ("no", 4 * 786_432)
    assert (row["bytes_basis"], row["source"]) == ("cache_roles", "v2")
    other = tmp_path / "other"
    write(other, hash_of("a"), MUL_SILU.text())
    row = analysed(launch, "--inductor-cache-dir", other)
    assert (row["in_place"], row["bytes"], row["bytes_min"]) == (
        *("yes", 6 * 786_432),
        6 * 786_432,
    )
    # A kernel of other pointers says nothing of this launch.
    alien = tmp_path / "alien"
    write(alien, hash_of("a"), replace(MUL_SILU, types={"in_ptr0": "*i8", "xnumel": "i32"}).text())
    assert analysed(launch, "--inductor-cache-dir", alien)["bytes_basis"] == "compat"


def test_the_cache_names_the_ops_of_a_number(analysed, tmp_path):
    cache = tmp_path / "cache"
    text = wrapper(block(MUL_SILU, f"# kernel path: /x/{hash_of('a')}.py\n{MUL_SILU_COMMENT}"))
    write(cache, hash_of("w"), text)
    launch = Launch(
        "triton_4", bf16([786432], [786432]), (786432,), more={"kernel_hash": hash_of("a")}
    )
    row = analysed(launch, "--inductor-cache-dir", cache)
    assert (row["aten_ops"], row["flops"]) == (["mul", "silu"], 5 * 786_432)
    assert (row["flops_seed"], row["flops_is_partial"]) == (0, False)


def test_the_environment_s_cache(analysed, tmp_path, monkeypatch):
    write(tmp_path / "env", hash_of("a"), MUL_SILU.text())
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "env"))
    assert analysed(silent(MUL_SILU.name))["source"] == "v1"


def test_neither_args_nor_cache(analysed, tmp_path):
    (tmp_path / "empty").mkdir()
    row = analysed(silent(NORM), "--inductor-cache-dir", tmp_path / "empty")
    assert (row["flops"], row["bytes"], row["source"]) == (None, None, None)
    assert row["why"] == (
        "its inputs were not recorded: record_shapes was off; "
        "the kernel is not in the Inductor cache"
    )
    assert row["kernel_time_ns"] == 79_400


def test_another_cache_analyses_again(analysed, tracehouse, tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "cache", hash_of("a"), MUL_SILU.text())
    assert analysed(silent(MUL_SILU.name), "--inductor-cache-dir", tmp_path / "empty")["why"]
    row = analysed(silent(MUL_SILU.name), "--inductor-cache-dir", tmp_path / "cache")
    assert row["source"] == "v1"


def test_no_such_folder(analysed, tmp_path):
    result = analysed(silent(NORM), "--inductor-cache-dir", tmp_path / "none", code=2)
    assert "there is no folder" in result.stderr
    assert not (tmp_path / "out").exists()


EVIL = "__import__('os').system('touch {}')"


@pytest.mark.parametrize("where", ["size_hints", "signature"])
def test_an_expression_in_the_cache_is_never_run(analysed, tracehouse, tmp_path, where):
    evil = EVIL.format(tmp_path / "owned")
    text = MUL_SILU.text()
    if where == "size_hints":
        text = text.replace("size_hints=[1048576]", f"size_hints={evil}").replace("786432", "ks0")
    else:
        text = text.replace("'signature': {", f"'signature': {{{evil}: 1, ")
    write(tmp_path / "cache", hash_of("a"), text)
    row = analysed(silent(MUL_SILU.name), "--inductor-cache-dir", tmp_path / "cache")
    assert (row["bytes"], row["bytes_seed"]) == (None, None)
    assert row["why"]
    codes = tracehouse("sql", tmp_path / "out", "SELECT code FROM issues", "--format", "csv").stdout
    assert "KERNEL_ARGS_ODD" in codes
    assert not (tmp_path / "owned").exists()
