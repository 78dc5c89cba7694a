"""The table op_perf of traces drawn here; peaks of the H100 SXM: 989.5 TFLOPS bf16, 3.35 TB/s."""

from __future__ import annotations

import pytest
from tracegen import Trace

import tracehouse

BF16 = "c10::BFloat16"


def mm(m, k, n, dtype=BF16):
    return {
        "Input Dims": [[m, k], [k, n]],
        "Input type": [dtype, dtype],
        "Input Strides": [[k, 1], [n, 1]],
        "Concrete Inputs": ["", ""],
    }


@pytest.fixture
def perf(tmp_path):
    def run(drawn, **options):
        read = tracehouse.read(drawn.write(tmp_path / "trace.json"), **options)
        return {row["event_id"]: row for row in read.op_perf.to_pylist()}, read

    return run


def test_a_product_by_hand(perf):
    rows, read = perf(
        Trace()
        .op("aten::mm", 0, 50, **mm(4096, 8192, 2048))
        .launch(5, 4, correlation=1)
        .kernel("nvjet", 60, 200, correlation=1)
    )
    row = rows[0]
    flops = 2 * 4096 * 8192 * 2048
    moved = 2 * (4096 * 8192 + 8192 * 2048 + 4096 * 2048)
    assert (row["flops"], row["bytes"]) == (flops, moved) == (137438953472, 117440512)
    assert (row["family"], row["category"], row["dtype"]) == ("gemm", "GEMM", "bf16")
    assert row["params"] == '{"B": 1, "M": 4096, "N": 2048, "K": 8192, "bias": 0}'
    assert (row["counted"], row["carrier_id"], row["kernel_time_ns"]) == (True, 0, 200_000)
    assert row["tflops_s"] == pytest.approx(687.19476736)  # 137.438953472 GFLOP in 0.2 ms
    assert row["tb_s"] == pytest.approx(0.58720256)
    assert row["flops_per_byte"] == pytest.approx(flops / moved)
    assert (row["arch"], row["compute_spec"]) == ("H100-SXM", "matrix_bf16")
    assert (row["peak_tflops"], row["peak_tb_s"]) == (989.5, 3.35)
    # 137438953472 / 989.5e12 s = 138.9 µs, above 117440512 / 3.35e12 s = 35.1 µs
    assert row["roofline_ns"] == pytest.approx(138_897.375, abs=0.01)
    assert row["roofline_pct"] == pytest.approx(69.4487, abs=1e-4)
    assert (row["bound"], row["why"], row["note"]) == ("compute", None, None)
    (line,) = read.roofline.to_pylist()
    assert (line["flops"], line["count"], line["pct"]) == (flops, 1, 100.0)
    (coverage,) = read.coverage.to_pylist()
    assert (coverage["modelled_pct"], coverage["unmodelled_names"]) == (100.0, [])


def test_memory_bounds_a_thin_product(perf):
    rows, _ = perf(
        Trace()
        .op("aten::mm", 0, 50, **mm(1, 8192, 8192))
        .launch(5, 4, correlation=1)
        .kernel("gemv", 60, 50, correlation=1)
    )
    moved = 2 * (8192 + 8192 * 8192 + 8192)
    assert rows[0]["bound"] == "memory"
    assert rows[0]["roofline_ns"] == pytest.approx(moved / 3350.0)


def test_the_outermost_known_call_carries_the_time(perf):
    rows, read = perf(
        Trace()
        .op("aten::mm", 0, 90, **mm(64, 64, 64))
        .op("aten::mm", 5, 30, **mm(64, 64, 32))
        .launch(10, 4, correlation=1)
        .launch(50, 4, correlation=2)
        .kernel("first", 100, 20, correlation=1)
        .kernel("second", 110, 20, correlation=2)
    )
    assert [(row["counted"], row["carrier_id"]) for row in rows.values()] == [(True, 0), (False, 0)]
    assert (rows[0]["kernel_time_ns"], rows[1]["kernel_time_ns"]) == (30_000, 20_000)
    assert rows[0]["kernel_count"] == 2
    (line,) = read.roofline.to_pylist()
    assert line["kernel_time_ns"] == 30_000


def test_an_op_without_formula_carries_what_it_launched_itself(perf):
    rows, read = perf(
        Trace()
        .op("my::op", 0, 90)
        .op("aten::mm", 5, 30, **mm(64, 64, 32))
        .launch(10, 4, correlation=1)
        .launch(50, 4, correlation=2)
        .kernel("first", 100, 20, correlation=1)
        .kernel("second", 130, 7, correlation=2)
    )
    own, product = rows.values()
    assert (own["counted"], own["kernel_time_ns"], own["kernel_count"]) == (True, 7_000, 1)
    assert (own["flops"], own["tflops_s"], own["roofline_pct"]) == (None, None, None)
    assert own["why"] == "no formula for this op"
    assert (product["counted"], product["kernel_time_ns"]) == (True, 20_000)
    (coverage,) = read.coverage.to_pylist()
    assert (coverage["modelled_ns"], coverage["unmodelled_ns"]) == (20_000, 7_000)
    assert coverage["unmodelled_names"] == ["my::op"]
    assert coverage["modelled_pct"] == pytest.approx(100 * 20 / 27)


def test_without_shapes_nothing_is_known_and_the_time_stays(perf):
    rows, _ = perf(
        Trace()
        .op("aten::mm", 0, 50)
        .launch(5, 4, correlation=1)
        .kernel("gemm", 60, 50, correlation=1)
    )
    assert (rows[0]["flops"], rows[0]["bytes"]) == (None, None)
    assert (
        rows[0]["why"]
        == "its inputs were not recorded: record_shapes was off, or the op states none"
    )
    assert (rows[0]["counted"], rows[0]["kernel_time_ns"]) == (True, 50_000)


def test_an_unknown_type_leaves_flops(perf):
    rows, _ = perf(
        Trace()
        .op("aten::mm", 0, 50, **mm(8, 8, 8, "my::Type"))
        .launch(5, 4, correlation=1)
        .kernel("gemm", 60, 50, correlation=1)
    )
    row = rows[0]
    assert (row["flops"], row["bytes"], row["roofline_ns"]) == (1024, None, None)
    assert row["why"] == "the type of an input was not recorded, or is not known"


def test_work_of_a_graph_is_no_ops(perf):
    rows, read = perf(
        Trace()
        .op("aten::mm", 0, 50, **mm(8, 8, 8))
        .launch(5, 4, correlation=1, name="cudaGraphLaunch")
        .launch(15, 4, correlation=2)
        .kernel("a", 60, 5, correlation=1)
        .kernel("b", 70, 5, correlation=1)
        .kernel("c", 80, 5, correlation=2)
    )
    assert (rows[0]["flops"], rows[0]["counted"], rows[0]["kernel_time_ns"]) == (None, True, 5_000)
    assert rows[0]["why"].startswith("a graph is launched below it")
    (coverage,) = read.coverage.to_pylist()
    assert (coverage["op_time_ns"], coverage["no_op_ns"]) == (5_000, 10_000)


def test_a_product_in_tf32_has_its_peak(perf):
    def drawn(kernel):
        return (
            Trace()
            .op("aten::mm", 0, 50, **mm(4096, 4096, 4096, "float"))
            .launch(5, 4, correlation=1)
            .kernel(kernel, 60, 900, correlation=1)
        )

    rows, _ = perf(drawn("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_stage4"))
    assert (rows[0]["compute_spec"], rows[0]["peak_tflops"]) == ("matrix_tf32", 495)
    rows, _ = perf(drawn("ampere_sgemm_128x64_nn"))
    # IEEE fp32 has no matrix unit on NVIDIA: the vector peak.
    assert (rows[0]["compute_spec"], rows[0]["peak_tflops"]) == ("matrix_fp32", 67)


def test_an_unknown_device_has_no_roofline(perf):
    drawn = (
        Trace(deviceProperties=[{"id": 0, "name": "Homemade 9000"}])
        .op("aten::mm", 0, 50, **mm(64, 64, 64))
        .launch(5, 4, correlation=1)
        .kernel("gemm", 60, 50, correlation=1)
    )
    rows, read = perf(drawn)
    assert (rows[0]["arch"], rows[0]["roofline_ns"], rows[0]["roofline_pct"]) == (None, None, None)
    assert rows[0]["why"] == "the device is not known: pass --arch"
    assert rows[0]["tflops_s"] == pytest.approx(2 * 64**3 / 50e-6 / 1e12)
    noted = {row["code"]: row["example"] for row in read.issues.to_pylist()}
    assert noted["UNKNOWN_DEVICE"] == "Homemade 9000"
    rows, read = perf(drawn, arch="MI300X")
    assert (rows[0]["arch"], rows[0]["peak_tflops"]) == ("MI300X", 1307.4)
    assert "UNKNOWN_DEVICE" not in read.issues["code"].to_pylist()


def test_backward_from_its_forward_call(perf):
    """FlashAttnFuncBackward records no inputs: sequence number 7 ties it to FlashAttnFunc."""
    shape = [2, 512, 8, 64]
    inputs = {
        "Input Dims": [shape] * 3 + [[]] * 3,
        "Input type": [BF16] * 3 + ["Scalar"] * 3,
        "Concrete Inputs": ["", "", "", "0.", "0.125", "False"],
    }
    rows, _ = perf(
        Trace()
        .op("FlashAttnFunc", 0, 50, **inputs, **{"Sequence number": 7})
        .launch(5, 4, correlation=1)
        .op("FlashAttnFuncBackward", 100, 50, thread=2, **{"Sequence number": 7})
        .launch(105, 4, correlation=2, thread=2)
        .op("FlashAttnFuncBackward", 200, 50, thread=2, **{"Sequence number": 8})
        .launch(205, 4, correlation=3, thread=2)
        .kernel("flash_fwd", 60, 10, correlation=1)
        .kernel("flash_bwd", 160, 25, correlation=2)
        .kernel("flash_bwd", 260, 25, correlation=3)
    )
    forward, backward, orphan = rows.values()
    assert forward["flops"] == 4 * 2 * 8 * 512 * 512 * 64
    assert backward["flops"] == 5 * forward["flops"] // 2
    assert (backward["forward_id"], forward["forward_id"]) == (0, None)
    assert (orphan["flops"], orphan["forward_id"]) == (None, None)


def convolution(channels):
    return {
        "Input Dims": [[2, 3, 8, 8], [channels, 3, 3, 3], [], [], [], [], [], [], []],
        "Input type": ["float"] * 2
        + [""]
        + ["ScalarList"] * 3
        + ["Scalar", "ScalarList", "Scalar"],
        "Concrete Inputs": ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"],
        "Sequence number": 5,
    }


def with_backward(drawn):
    """Draw a backward as the engine runs it: the nodes have the number, the op inside has none."""
    node = {"Sequence number": 5, "Fwd thread id": 1}
    return (
        drawn.op("autograd::engine::evaluate_function: ConvolutionBackward0", 50, 30, **node)
        .op("ConvolutionBackward0", 51, 28, **node)
        .op("aten::convolution_backward", 52, 20)
        .launch(53, 1, correlation=1)
        .kernel("dgrad", 60, 10, correlation=1)
    )


def test_the_node_around_a_backward_op_has_its_number(perf):
    drawn = Trace().op("aten::convolution", 0, 10, thread=2, **convolution(4))
    rows, _ = perf(with_backward(drawn))
    # outputs 2·4·6·6 = 288 of 27 products each, for dx and for dw
    assert rows[3]["flops"] == 2 * 2 * 288 * 27 == 31104
    assert (rows[3]["forward_id"], rows[3]["why"]) == (0, None)


@pytest.mark.parametrize(("other", "flops"), [(8, None), (4, 31104)])
def test_forward_calls_of_two_threads_must_agree(perf, other, flops):
    """Each thread counts by itself: which one the number is of is not known."""
    drawn = Trace().op("aten::convolution", 0, 10, thread=2, **convolution(4))
    rows, _ = perf(
        with_backward(drawn.op("aten::convolution", 20, 9, thread=3, **convolution(other)))
    )
    assert rows[4]["flops"] == flops
    if flops is None:
        assert rows[4]["forward_id"] is None
        assert rows[4]["why"].startswith("calls of several threads")


def test_copies_to_the_host_have_no_roofline_in_memory(perf):
    rows, _ = perf(
        Trace()
        .op(
            "aten::copy_",
            0,
            50,
            **{"Input Dims": [[1024], [1024], []], "Input type": ["float", "float", "Scalar"]},
        )
        .launch(5, 4, correlation=1, name="cudaMemcpyAsync")
        .memcpy(60, 5, kind="DtoH (Device -> Pageable)", correlation=1)
    )
    assert (rows[0]["flops"], rows[0]["bytes"]) == (0, 8192)
    assert rows[0]["roofline_ns"] is None
    assert rows[0]["why"].startswith("a copy to or from the host")


def test_a_copy_that_passes_a_link_in_part_has_no_roofline_in_memory(perf):
    """A copy of a view to the host: gathered on the device first, then sent."""
    copy = {"Input Dims": [[1024], [1024], []], "Input type": ["float", "float", "Scalar"]}
    rows, _ = perf(
        Trace()
        .op("aten::copy_", 0, 50, **copy)
        .launch(5, 4, correlation=1)
        .launch(15, 4, correlation=2, name="cudaMemcpyAsync")
        .kernel("gather", 60, 5, correlation=1)
        .memcpy(70, 50, kind="DtoH (Device -> Pageable)", correlation=2)
        .op("c10d::_allgather_base_", 200, 50, **{"Input Dims": [[8192], [1024]]}
            | {"Input type": ["float", "float"]})
        .launch(205, 4, correlation=3)
        .launch(215, 4, correlation=4)
        .kernel("copy", 260, 5, correlation=3)
        .kernel("ncclDevKernel_AllGather_RING_LL", 270, 50, correlation=4)
    )  # fmt: skip
    assert [row["roofline_ns"] for row in rows.values()] == [None, None]
    assert rows[0]["why"].startswith("a copy to or from the host")
    assert list(rows.values())[1]["why"].startswith("communication")


def test_above_the_roofline_is_explained(perf):
    def drawn(n):
        shapes = {"Input Dims": [[n], [n], []], "Input type": ["float", "float", "Scalar"]}
        return (
            Trace()
            .op("aten::copy_", 0, 50, **shapes)
            .launch(5, 4, correlation=1)
            .kernel("copy", 60, "0.500", correlation=1)
        )

    rows, _ = perf(drawn(1 << 20))  # 8 MiB in 0.5 µs are 16.8 TB/s
    assert rows[0]["roofline_pct"] > 105
    assert "cache" in rows[0]["note"]
    rows, _ = perf(drawn(1 << 26))
    assert "does less than its inputs say" in rows[0]["note"]
    rows, _ = perf(drawn(1 << 10))
    assert rows[0]["note"] is None


@pytest.mark.parametrize("dims", [[[-4, -8], [-8, 2]], [[4, 8], None], [[4, 8]], [[4], [8]]])
def test_shapes_that_cannot_be_give_no_number(perf, dims):
    args = {"Input Dims": dims, "Input type": ["float", "float"]}
    rows, _ = perf(
        Trace()
        .op("aten::mm", 0, 50, **args)
        .launch(5, 4, correlation=1)
        .kernel("gemm", 60, 50, correlation=1)
    )
    assert (rows[0]["flops"], rows[0]["bytes"]) == (None, None)
    assert rows[0]["why"]
