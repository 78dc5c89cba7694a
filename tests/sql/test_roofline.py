"""The views over op_perf: sums over the counted rows, work of all calls over time of all calls."""

from __future__ import annotations

import pytest
from part_tables import A, part

from tracehouse.analysis.summaries import evaluated


def row(event_id, name="aten::mm", **more):
    return {
        "trace_id": A,
        "event_id": event_id,
        "name": name,
        "category": "GEMM",
        "family": "gemm",
        "signature_id": 1,
        "compute_spec": "matrix_bf16",
        "counted": True,
        "carrier_id": event_id,
        "kernel_count": 1,
        "kernel_time_ns": 1000,
        "flops": 400_000_000,
        "bytes": 2_000_000,
        "peak_tflops": 1000.0,
        "peak_tb_s": 4.0,
        "roofline_ns": 500.0,
        "roofline_pct": 50.0,
        "bound": "memory",
        "arch": "X",
    } | more


def views(*rows, **tables):
    found = evaluated(part(op_perf=rows, **tables))
    return {name: table.to_pylist() for name, table in found.items()}


def test_calls_of_equal_inputs_are_one_row():
    found = views(row(1), row(2, kernel_time_ns=3000), row(3, counted=False, carrier_id=1))
    (line,) = found["roofline"]
    assert (line["count"], line["kernel_count"], line["kernel_time_ns"]) == (2, 2, 4000)
    assert (line["flops"], line["bytes"]) == (800_000_000, 4_000_000)
    assert (line["mean_flops"], line["mean_bytes"], line["mean_ns"]) == (4e8, 2e6, 2000)
    assert line["tflops_s"] == pytest.approx(200.0)  # 0.8 GFLOP in 4 µs
    assert line["tb_s"] == pytest.approx(1.0)  # 4 MB in 4 µs
    assert line["flops_per_byte"] == pytest.approx(200.0)
    # 1000 of 4000 ns: not the mean of 50 and 16.7 pct.
    assert (line["roofline_ns"], line["roofline_pct"]) == (1000.0, 25.0)
    assert (line["pct"], line["cumulative_pct"]) == (100.0, 100.0)


def test_unknown_work_of_one_call_makes_the_sum_unknown():
    unknown = row(2, flops=None, bytes=None, roofline_ns=None, why="no shape")
    (line,) = views(row(1), unknown)["roofline"]
    assert [line[k] for k in ("flops", "bytes", "tflops_s", "roofline_ns", "roofline_pct")] == (
        [None] * 5
    )
    assert (line["kernel_time_ns"], line["why"]) == (2000, "no shape")


def test_no_bound_without_a_roofline():
    (line,) = views(row(1), row(2, roofline_ns=None, bound=None, why="a host copy"))["roofline"]
    assert (line["roofline_ns"], line["bound"], line["why"]) == (None, None, "a host copy")


@pytest.mark.parametrize(("other", "note"), [(900.0, "cached"), (500.0, None)])
def test_a_note_is_of_the_row_above_its_roofline(other, note):
    """1200 and 900 of 2000 ns are 105 pct; one call above does not make a row above."""
    found = views(row(1, roofline_ns=1201.0, note="cached"), row(2, roofline_ns=other))
    assert [line["note"] for line in found["roofline"]] == [note]


def test_rows_in_order_of_time_with_shares_of_all_gpu_time():
    lone = {"trace_id": A, "event_id": 9, "device": 0, "kind": "compute", "ts_ns": 0}
    found = views(
        row(1, signature_id=1, kernel_time_ns=1000),
        row(2, signature_id=2, kernel_time_ns=6000),
        kernels=[lone | {"dur_ns": 3000}],
    )
    assert [line["signature_id"] for line in found["roofline"]] == [2, 1]
    assert [line["pct"] for line in found["roofline"]] == [60.0, 10.0]
    assert [line["cumulative_pct"] for line in found["roofline"]] == [60.0, 70.0]


def test_coverage_names_what_has_no_formula():
    lone = {"trace_id": A, "event_id": 9, "device": 0, "kind": "compute", "ts_ns": 0}
    unknown = {"flops": None, "bytes": None, "roofline_ns": None, "why": "no formula for this op"}
    found = views(
        row(1, kernel_time_ns=700),
        row(2, "my::small", kernel_time_ns=100, **unknown),
        row(3, "my::large", kernel_time_ns=200, **unknown),
        row(4, "my::inner", kernel_time_ns=50, counted=False, **unknown),
        kernels=[lone | {"dur_ns": 1000}],
    )
    (line,) = found["coverage"]
    assert line == {
        "trace_id": A,
        "op_time_ns": 1000,
        "modelled_ns": 700,
        "unmodelled_ns": 300,
        "no_op_ns": 1000,
        "modelled_pct": 70.0,
        "modelled_of_all_pct": 35.0,
        "limited_pct": 70.0,
        "unmodelled_names": ["my::large", "my::small"],
        "unmodelled_names_ns": [200, 100],
        "unmodelled_why": ["no formula for this op"] * 2,
    }


def test_a_copy_of_unknown_size_is_not_modelled():
    """Nothing is computed, but how much is moved is what its formula is for."""
    unsized = {"flops": 0, "bytes": None, "roofline_ns": None, "why": "no shape"}
    (line,) = views(row(1, kernel_time_ns=700), row(2, "aten::cat", kernel_time_ns=300, **unsized))[
        "coverage"
    ]
    assert (line["modelled_ns"], line["unmodelled_ns"], line["modelled_pct"]) == (700, 300, 70.0)
    assert (line["unmodelled_names"], line["unmodelled_why"]) == (["aten::cat"], ["no shape"])


def test_coverage_without_any_op():
    lone = {"trace_id": A, "event_id": 9, "device": 0, "kind": "compute", "ts_ns": 0, "dur_ns": 5}
    (line,) = views(kernels=[lone])["coverage"]
    assert (line["op_time_ns"], line["no_op_ns"]) == (0, 5)
    assert (line["modelled_pct"], line["modelled_of_all_pct"]) == (None, 0.0)
    assert line["unmodelled_names"] == []
    assert views()["coverage"] == []


def test_categories_weigh_by_time():
    found = views(
        row(1, kernel_time_ns=1000, roofline_ns=900.0),
        row(2, kernel_time_ns=3000, roofline_ns=300.0),
        row(3, kernel_time_ns=1000, flops=None, bytes=None, roofline_ns=None),
        row(4, category="copy", kernel_time_ns=500, flops=0, roofline_ns=500.0, peak_tflops=None),
    )
    gemm, copy = sorted(found["roofline_categories"], key=lambda line: line["category"])
    assert (gemm["count"], gemm["kernel_time_ns"], gemm["modelled_ns"]) == (3, 5000, 4000)
    assert (gemm["limited_ns"], gemm["roofline_pct"]) == (4000, 30.0)
    # 2 · 400 MFLOP at 1000 TFLOPS/s are 800 ns, 2 · 2 MB at 4 TB/s 1000 ns, of 4000 ns
    assert gemm["compute_pct"] == pytest.approx(20.0)
    assert gemm["memory_pct"] == pytest.approx(25.0)
    assert (copy["roofline_pct"], copy["compute_pct"], copy["flops"]) == (100.0, 0.0, 0)
