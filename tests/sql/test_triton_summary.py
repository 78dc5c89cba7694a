"""The view triton_summary: launches of one name and inputs, rates over all of their time."""

from __future__ import annotations

import pytest
from part_tables import A, B, part

from tracehouse.analysis.summaries import evaluated


def launch(event_id, time_ns, **more):
    row = {
        "trace_id": A,
        "event_id": event_id,
        "name": "triton_poi_fused_add_0",
        "kind": "poi",
        "aten_ops": ["add"],
        "signature_id": 1,
        "kernel_hash": "h",
        "kernel_count": 0 if time_ns is None else 1,
        "kernel_time_ns": time_ns,
        "flops": 1_000_000,
        "flops_is_partial": False,
        "bytes": 4 * 2**20,
        "bytes_min": 2 * 2**20,
        "roofline_ns": 10.0,
        "bound": "memory",
        "source": "v2",
        "check": "grid_ok",
        "arch": "X",
    }
    return row | more


def summary(*rows, **tables):
    return evaluated(part((A, B), triton_kernels=rows, **tables))["triton_summary"].to_pylist()


def test_rates_are_of_all_work_over_all_time():
    (row,) = summary(launch(1, 1_000), launch(2, 3_000))
    assert (row["count"], row["timed"], row["kernel_count"]) == (2, 2, 2)
    assert (row["kernel_time_ns"], row["mean_ns"], row["median_ns"]) == (4_000, 2_000, 2_000)
    assert (row["min_ns"], row["max_ns"]) == (1_000, 3_000)
    assert (row["flops"], row["gflops"], row["data_moved_mib"]) == (1_000_000, 0.001, 4)
    assert row["tflops_s"] == pytest.approx(2e6 / 4e-6 / 1e12)  # not the mean of both rates
    assert row["tb_s"] == pytest.approx(8 * 2**20 / 4e-6 / 1e12)
    assert row["flops_per_byte"] == pytest.approx(1e6 / (4 * 2**20))
    assert row["roofline_pct"] == pytest.approx(100 * 20 / 4_000)


def test_launches_without_activities_have_no_part_in_rates():
    (row,) = summary(launch(1, 1_000), launch(2, None), launch(3, None))
    assert (row["count"], row["timed"], row["mean_ns"]) == (3, 1, 1_000)
    assert row["tflops_s"] == pytest.approx(1e6 / 1e-6 / 1e12)
    assert row["roofline_pct"] == pytest.approx(1)


def test_none_has_activities():
    (row,) = summary(launch(1, None))
    assert (row["timed"], row["mean_ns"], row["tflops_s"], row["roofline_pct"]) == (
        *(0, None),
        *(None, None),
    )


def test_unknown_work_of_one_launch_makes_that_of_all_unknown():
    (row,) = summary(launch(1, 1_000), launch(2, 1_000, bytes=None, roofline_ns=None, why="w"))
    assert (row["bytes"], row["tb_s"], row["roofline_pct"], row["bound"]) == (None,) * 4
    assert row["flops"] == 1_000_000
    assert row["why"] == "w"


@pytest.mark.parametrize("other", [{"signature_id": 2}, {"kernel_hash": "i"}, {"name": "n"}])
def test_what_makes_a_row(other):
    assert len(summary(launch(1, 9), launch(2, 9, **other))) == 2


def test_launches_without_inputs_and_hash_are_one_row():
    rows = summary(*(launch(i, 9, signature_id=None, kernel_hash=None) for i in (1, 2)))
    assert [row["count"] for row in rows] == [2]
    assert rows[0]["input_dims"] is None


def test_one_mismatch_is_told():
    (row,) = summary(launch(1, 9), launch(2, 9, check="grid_mismatch"))
    assert row["check"] == "grid_mismatch"


def test_inputs_come_from_the_signature():
    signature = {"trace_id": A, "signature_id": 1, "input_dims": [[2, 3], []]}
    rows = summary(launch(1, 9), launch(2, 9, trace_id=B), signatures=[signature])
    assert {row["trace_id"]: row["input_dims"] for row in rows} == {A: "[[2, 3], []]", B: None}
