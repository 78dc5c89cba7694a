"""The table triton_kernels of launches drawn here: traps, odd args, kinds without a model."""

from __future__ import annotations

import pytest
from cache_cases import MUL_SILU, hash_of, write
from compiled_cases import I64, B, F, Launch, bf16, draw
from tracegen import Trace

import tracehouse
from tracehouse.errors import UsageError


@pytest.fixture
def kernels(tmp_path):
    def run(*launches, **options):
        drawn = launches[0] if isinstance(launches[0], Trace) else draw(launches)
        trace = tracehouse.read(drawn.write(tmp_path / "trace.json"), **options)
        return trace.triton_kernels.to_pylist(), trace

    return run


def codes(trace):
    return {finding.code.word: finding.count for finding in trace.findings}


ADD = Launch("triton_poi_fused_add_0", bf16([1000], [1000], [1000]), (1000,), "XBLOCK=256")


def test_no_compiled_kernel_no_row(kernels):
    rows, _ = kernels(Trace().op("aten::mm", 0, 50).launch(5, 4, correlation=1).kernel("g", 60, 9))
    assert rows == []


def test_time_is_the_union_of_the_gpu_kernels_and_never_the_host_s(kernels):
    drawn = (
        Trace()
        .op(ADD.name, 0, 900, **ADD.args)
        .launch(5, 4, correlation=1)
        .launch(15, 4, correlation=2)
        .kernel("a", 1000, 20, correlation=1)
        .kernel("b", 1010, 20, correlation=2, stream=8)
    )
    (row,), _ = kernels(drawn)
    assert (row["kernel_time_ns"], row["kernel_count"]) == (30_000, 2)
    assert row["tb_s"] == pytest.approx(8000 / 30e-6 / 1e12)  # 3 · 1000 · 2 + 1000 · 2 bytes


def test_a_launch_without_gpu_rows_has_no_time(kernels):
    (row,), trace = kernels(Trace().op(ADD.name, 0, 50, **ADD.args))
    assert (row["kernel_count"], row["kernel_time_ns"], row["tb_s"]) == (0, None, None)
    assert (row["flops"], row["bytes"]) == (1000, 8000)
    (line,) = trace.triton_summary.to_pylist()
    assert (line["count"], line["timed"], line["tb_s"]) == (1, 0, None)


def test_benchmark_launches_of_autotuning_stay(kernels):
    rows, trace = kernels(*[ADD] * 5)
    assert len(rows) == 5
    (line,) = trace.triton_summary.to_pylist()
    assert (line["count"], line["kernel_time_ns"], line["flops"]) == (5, 50_000, 1000)


def test_the_same_name_of_two_graphs_is_two_kernels(kernels):
    other = Launch(ADD.name, bf16([50], [50]), (50,), "XBLOCK=256")
    rows, trace = kernels(ADD, other)
    assert [row["xnumel"] for row in rows] == [1000, 50]
    assert sorted(line["xnumel"] for line in trace.triton_summary.to_pylist()) == [50, 1000]


def test_nothing_to_do(kernels):
    empty = Launch("triton_poi_fused_add_0", bf16([0, 8], [0, 8]), (0,), "XBLOCK=256")
    (row,), _ = kernels(empty)
    assert (row["elements"], row["flops"], row["bytes"]) == (0, 0, 0)
    assert row["flops_per_byte"] is None


def test_sizes_beyond_32_bits(kernels):
    n = 3 * 2**31
    (row,), _ = kernels(Launch("triton_poi_fused_exp_0", bf16([n], [n]), (n,), "XBLOCK=1024"))
    assert (row["elements"], row["flops"]) == (6_442_450_944, 25_769_803_776)
    assert row["bytes"] == 3 * 2 * n


@pytest.mark.parametrize("scalars", [(2**62, 4), (10**30,), (-5,), (2**40, 2**40)])
def test_sizes_that_cannot_be(kernels, scalars):
    launch = Launch(
        "triton_poi_fused_add_0", bf16([8], [8]), scalars, "XBLOCK=16,YBLOCK=16"[: 9 * len(scalars)]
    )
    (row,), _ = kernels(launch)
    assert (row["elements"], row["flops"], row["bytes"]) == (None, None, None)
    assert row["why"]


def test_dims_and_types_of_unequal_length(kernels):
    more = {"Input Dims": [[1000], [1000]], "Input type": [B, B, B, "Scalar"]}
    (row,), _ = kernels(Launch(ADD.name, ADD.tensors, (1000,), "XBLOCK=256", more=more))
    assert row["xnumel"] == 1000
    assert row["bytes_min"] == 2 * 1000 * 2  # the shorter list counts


def test_a_number_of_the_kernel_s_options_that_is_none(kernels):
    kwargs = "XBLOCK=256,num_stages=None,EVEN_K=True,=,x=y=z"
    (row,), _ = kernels(Launch(ADD.name, ADD.tensors, (1000,), kwargs, grid=(4, 1, 1)))
    assert (row["xnumel"], row["check"]) == (1000, "grid_ok")


def test_a_float_beside_an_index_is_the_roofline_s_type(kernels):
    gather = Launch(
        "triton_poi_fused_embedding_0",
        ((I64, [64]), (B, [50257, 768]), (F, [64, 768])),
        (49152,),
        "XBLOCK=256",
    )
    (row,), _ = kernels(gather)
    assert (row["dtype"], row["compute_spec"]) == ("fp32", "vector_fp32")
    # 64 indices; of the table as many numbers as there are results: 64 · 768
    assert row["bytes"] == 64 * 8 + 49152 * 2 + 49152 * 4


def test_the_grid_speaks_against_the_sizes(kernels):
    (row,), _ = kernels(Launch(ADD.name, ADD.tensors, (1000,), "XBLOCK=256", grid=(7, 1, 1)))
    assert (row["xnumel"], row["check"]) == (1000, "grid_mismatch")


@pytest.mark.parametrize(
    ("scalars", "kwargs", "grid", "check"),
    [
        ((1000,), "XBLOCK=256,RSPLIT=4", (16, 1, 1), "grid_ok"),  # 4 · ceil(1000 / 256)
        ((200_001, 100), "XBLOCK=64,YBLOCK=1", (2, 50_001, 4), "grid_ok"),  # y goes on in z
        ((200_000, 100), "XBLOCK=64,YBLOCK=1", (2, 65_535, 1), "grid_mismatch"),
        ((3, 70, 100), "XBLOCK=64,YBLOCK=32,ZBLOCK=1", (2, 3, 3), "grid_ok"),
        ((1000,), "", (4, 1, 1), "none"),
    ],
)
def test_grids(kernels, scalars, kwargs, grid, check):
    launch = Launch("triton_poi_fused_add_0", (), scalars, kwargs, grid=grid)
    (row,), _ = kernels(launch)
    assert row["check"] == check


def test_block_sizes_behind_the_sizes_only_if_the_grid_agrees(kernels):
    """Two sizes that end like the block: stripped, x is 7; the grid says that it is 1024."""
    launch = Launch(
        "triton_poi_fused_add_0", (), (7, 1024), "XBLOCK=1024", named=False, grid=(1, 1, 1)
    )
    (row,), _ = kernels(launch)
    assert (row["xnumel"], row["check"]) == (7, "grid_ok")
    launch = Launch(
        "triton_poi_fused_add_0", (), (5000, 1024), "XBLOCK=1024", named=False, grid=(1, 1, 1)
    )
    (row,), _ = kernels(launch)
    assert (row["xnumel"], row["check"]) == (1024, "grid_ok")


@pytest.mark.parametrize(
    ("host_grid", "x"),
    [("grid(1000,)", 1000), ("grid((40, 25))", 1000), ("grid(2, 3, 4)", 24)],
)
def test_grids_of_the_launcher(kernels, host_grid, x):
    scalars = tuple(int(n) for n in host_grid.strip("grid(),").split(",") if n.strip(" ()"))
    (row,), _ = kernels(Launch(ADD.name, (), scalars, host_grid=host_grid))
    assert (row["xnumel"], row["check"], row["sizes"]) == (x, "grid_ok", "args")


def test_kernels_of_a_replayed_graph_are_no_op_s(kernels):
    drawn = (
        Trace()
        .launch(5, 4, correlation=1, name="cudaGraphLaunch")
        .kernel(ADD.name, 60, 5, correlation=1)
        .kernel(ADD.name, 70, 5, correlation=1)
    )
    rows, _ = kernels(drawn)
    assert rows == []


def test_the_cache_from_python(kernels, tmp_path):
    write(tmp_path / "cache", hash_of("a"), MUL_SILU.text())
    launch = Launch(MUL_SILU.name, shapes=False, more={"kernel_hash": hash_of("a")})
    (row,), _ = kernels(launch, inductor_cache_dir=tmp_path / "cache")
    assert (row["source"], row["xnumel"]) == ("v1", 786_432)
    with pytest.raises(UsageError, match="there is no folder"):
        kernels(launch, inductor_cache_dir=tmp_path / "none")


# Kinds without a model


@pytest.mark.parametrize(
    ("name", "kind", "x"),
    [
        ("triton_for_fused_add_0", "for", None),
        ("triton_spl_fused_cumsum_0", "spl", 100),
        ("triton_unk_fused_add_0", "unk", None),
        ("triton_mine", "user", None),
    ],
)
def test_kinds_without_a_model_keep_their_time(kernels, name, kind, x):
    (row,), trace = kernels(Launch(name, bf16([100, 8], [100, 8]), (100, 8)))
    assert (row["kind"], row["xnumel"], row["kernel_time_ns"]) == (kind, x, 10_000)
    assert (row["flops"], row["bytes"]) == (None, None)
    assert row["why"]
    (perf,) = trace.op_perf.to_pylist()
    assert (perf["counted"], perf["flops"], perf["why"]) == (True, None, row["why"])


def test_a_kernel_of_unknown_kind_with_a_reduced_block_is_a_reduction(kernels):
    launch = Launch(
        "triton_unk_fused_sum_0", bf16([100, 8], [100]), (100, 8), "XBLOCK=1,R0_BLOCK=8"
    )
    (row,), _ = kernels(launch)
    assert (row["xnumel"], row["rnumel"], row["flops"]) == (100, 8, 800)


@pytest.mark.parametrize(
    ("scalars", "kwargs", "grid", "sizes"),
    [
        ((64,), None, None, (64, 1)),  # a number for one dimension only
        ((4, 64), None, None, (None, None)),  # 64 elements, or 4 sums of 64: 4× the bytes
        ((4, 64), "XBLOCK=1,R0_BLOCK=64", None, (4, 64)),
        ((4, 64), "XBLOCK=64", (4, 1, 1), (None, None)),  # 4 · 64 bears out neither
        ((4, 640), "XBLOCK=64", (10, 1, 1), (640, 1)),
    ],
)
def test_a_name_without_a_kind_needs_what_tells_a_reduction(kernels, scalars, kwargs, grid, sizes):
    (row,), _ = kernels(Launch("triton_7", bf16([4, 64], [4]), scalars, kwargs, grid=grid))
    assert (row["xnumel"], row["rnumel"]) == sizes
    assert (row["bytes"] is None) == (row["why"] is not None and "kind" in row["why"])
    assert (row["bytes"] is None) == (sizes[0] is None)


def test_a_template_has_the_product_s_model(kernels):
    product = Launch("triton_tem_fused_mm_0", bf16([64, 32], [32, 16], [64, 16]), ())
    (row,), trace = kernels(product)
    assert row["flops"] == 2 * 64 * 32 * 16
    assert row["bytes"] == 2 * (64 * 32 + 32 * 16 + 64 * 16)
    assert (row["source"], row["compute_spec"], row["kind"]) == ("model", "matrix_bf16", "tem")
    assert row["flops_is_partial"] is False
    (perf,) = trace.op_perf.to_pylist()
    assert (perf["flops"], perf["compute_spec"]) == (row["flops"], "matrix_bf16")


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("triton_tem_fused_mm_0", ([64, 32], [16, 32], [64, 16])),
        ("triton_tem_fused_mm_0", ([64, 32], [32, 16], [64, 16], [64, 16])),
        ("triton_tem_fused_flex_attention_0", ([2, 64, 32],) * 3),
        ("triton_tem_fused_convolution_0", ([2, 3, 8, 8], [4, 3, 3, 3], [2, 4, 6, 6])),
    ],
)
def test_a_template_whose_inputs_do_not_fit(kernels, name, shapes):
    (row,), _ = kernels(Launch(name, bf16(*shapes), ()))
    assert (row["flops"], row["bytes"]) == (None, None)
    assert row["why"] == "a template: the formula of its op does not fit its inputs"


def test_inductors_count_of_flops(kernels):
    launch = Launch("triton_tem_fused_mm_0", (), (), more={"kernel_flop": "65536"})
    (row,), _ = kernels(launch)
    assert (row["flops"], row["flops_is_partial"]) == (65_536, False)


# Unique names off


def test_a_number_for_a_name(kernels):
    rows, trace = kernels(
        Launch("triton_0", bf16([1000], [1000]), (1000,), host_grid="grid(1000,)"),
        Launch("triton_1", bf16([100, 8], [100]), (100, 8), host_grid="grid(100,)"),
    )
    assert [(row["xnumel"], row["rnumel"]) for row in rows] == [(1000, 1), (100, 8)]
    assert [(row["flops"], row["flops_is_partial"]) for row in rows] == [(0, True)] * 2
    assert [row["aten_ops"] for row in rows] == [None, None]
    assert [row["flops_seed"] for row in rows] == [0, 0]
    assert [row["bytes"] for row in rows] == [6000, 1800]
    assert codes(trace)["NO_UNIQUE_KERNEL_NAMES"] == 2
    (issue,) = [r for r in trace.issues.to_pylist() if r["code"] == "NO_UNIQUE_KERNEL_NAMES"]
    assert "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES=1" in issue["action"]


# Hostile texts

EVIL = "__import__('os').system('touch /tmp/owned')"


def test_an_expression_for_a_size_is_no_size(kernels):
    (row,), trace = kernels(Launch(ADD.name, ADD.tensors, (EVIL,), "XBLOCK=256"))
    assert (row["elements"], row["flops"], row["bytes"]) == (None, None, None)
    assert row["why"].startswith("its sizes are not among its arguments")
    assert codes(trace)["KERNEL_ARGS_ODD"] == 1


def test_an_expression_for_a_type_is_no_type(kernels):
    (row,), trace = kernels(Launch(ADD.name, ((EVIL, [1000]), (B, [1000])), (1000,), "XBLOCK=256"))
    assert (row["flops"], row["bytes"], row["bytes_seed"]) == (1000, None, None)
    assert row["why"].startswith("the type of a tensor")
    assert codes(trace)["KERNEL_ARGS_ODD"] == 1


KEYS = ("kernel_kwargs", "grid", "num_warps", "kernel_num_gb", "kernel_flop")
ODD = (EVIL, "NaN", "-1", "1e400", [1, [2]], {"a": 1}, True, None, 1e99)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", ODD)
def test_odd_values_of_the_launcher_say_nothing(kernels, key, value):
    (row,), _ = kernels(Launch(ADD.name, ADD.tensors, (1000,), more={key: value}))
    assert (row["flops"], row["bytes"], row["num_warps"]) == (1000, 8000, None)


def test_rows_of_op_perf_and_coverage(kernels):
    (row,), trace = kernels(ADD)
    (perf,) = trace.op_perf.to_pylist()
    for column in ("flops", "bytes", "dtype", "compute_spec", "kernel_time_ns", "roofline_pct"):
        assert perf[column] == row[column], column
    assert (perf["family"], perf["params"]) == ("triton_pointwise", '{"x": 1000, "r": 1}')
    (coverage,) = trace.coverage.to_pylist()
    assert (coverage["modelled_pct"], coverage["unmodelled_names"]) == (100.0, [])


def test_a_formula_of_the_user_s_goes_first(kernels, tmp_path):
    path = tmp_path / "models.py"
    path.write_text(
        "from tracehouse.formulas.user import OpWork\n"
        f"MODELS = {{{ADD.name!r}: lambda call: OpWork(12, 34, 'vector', 'bf16')}}\n",
        encoding="utf-8",
    )
    _, trace = kernels(ADD, models=[path])
    (perf,) = trace.op_perf.to_pylist()
    assert (perf["flops"], perf["bytes"]) == (12, 34)


def test_roofline_of_the_device(kernels):
    n = 1 << 26
    (row,), _ = kernels(
        Launch("triton_poi_fused_add_0", bf16([n], [n], [n]), (n,), "XBLOCK=256", us=200)
    )
    # 8 · 2^26 bytes at 3.35 TB/s, H100
    assert row["roofline_ns"] == pytest.approx(8 * n / 3350)
    assert row["roofline_pct"] == pytest.approx(100 * 8 * n / 3350 / 200_000)
    assert (row["bound"], row["arch"]) == ("memory", "H100-SXM")
