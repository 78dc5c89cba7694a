"""Captures beside traces, and named: what becomes an op, and when a trace is read anew."""

from __future__ import annotations

import json
import os

import pytest
from capture_cases import (
    BLOCK,
    BLOCK_KERNELS,
    COPY,
    FILL,
    capture,
    ops_of_kernels,
    replay,
    write,
)
from tracegen import Trace
from warehouses import analyse, contents, query

import tracehouse
from tracehouse.errors import UsageError

OPS = ["aten::mm", "my::norm", "my::norm"]
OTHER = [("aten::add", 8, ["add"])]


def codes(trace):
    return {issue["code"]: issue["count"] for issue in trace.issues.to_pylist()}


def why(trace):
    return [row["why_no_capture"] for row in trace.launches.to_pylist() if row["is_graph"]]


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Two steps, each of which launches the captured graph below an op."""
    path = write(
        tmp_path_factory.mktemp("twice"),
        replay([[BLOCK_KERNELS], [BLOCK_KERNELS]], op="my::run"),
        capture([BLOCK]),
    )
    return tracehouse.read(path)


def test_each_launch_has_its_own_ops(twice):
    # Events 0 to 5: my::run, launch, 3 kernels, step; 6 to 11 again. Each kernel has 3 us.
    grafted = [op for op in twice.ops.to_pylist() if op["origin"] == "capture"]
    first = 1 << 40
    assert [(op["event_id"] - first, op["name"], op["parent_id"]) for op in grafted] == [
        (0, "aten::mm", 0),
        (1, "my::norm", 0),
        (2, "aten::mm", 6),
        (3, "my::norm", 6),
    ]
    assert [op["step_id"] for op in grafted] == [0, 0, 1, 1]
    assert {op["depth"] for op in grafted} == {1}
    assert {op[name] for op in grafted for name in ("ts_ns", "dur_ns", "self_ns")} == {None}
    counts = [(op["kernel_count"], op["direct_kernel_count"]) for op in grafted]
    assert counts == [(1, 1), (2, 2)] * 2
    times = [(op["kernel_time_ns"], op["direct_kernel_time_ns"]) for op in grafted]
    assert times == [(3_000, 3_000), (6_000, 6_000)] * 2
    (one, other) = [op for op in twice.ops.to_pylist() if op["origin"] == "trace"]
    assert one["kernel_count"] == other["kernel_count"] == 3
    assert one["direct_kernel_count"] == 0


def test_kernels_and_launches_say_how(twice):
    assert ops_of_kernels(twice) == OPS * 2
    assert {(k["link"], k["graft"]) for k in twice.kernels.to_pylist()} == {("capture", "exact")}
    for launch in twice.launches.to_pylist():
        assert (launch["capture"], launch["capture_size"]) == ("capture_0.json", 8)
        assert (launch["kernel_count"], launch["direct_kernel_count"]) == (3, 0)
        assert launch["why_no_capture"] is None
    assert "GRAPH_UNMATCHED" not in codes(twice)


def test_what_follows_from_ops_follows(twice):
    rows = {row["name"]: row for row in twice.op_summary.to_pylist()}
    assert set(rows) == {"aten::mm", "my::norm"}
    assert (rows["aten::mm"]["count"], rows["my::norm"]["direct_kernel_time_ns"]) == (2, 12_000)
    assert rows["aten::mm"]["host_time_ns"] is None
    work = [row for row in twice.op_perf.to_pylist() if row["name"] == "aten::mm"]
    # (8, 4) x (4, 4): 2 * 8 * 4 * 4
    assert [row["flops"] for row in work] == [256, 256]
    (coverage,) = twice.coverage.to_pylist()
    assert coverage["no_op_ns"] == 0
    failing = [check["name"] for check in twice.checks.to_pylist() if check["ok"] is False]
    assert not any(name.endswith("difference") or "difference_" in name for name in failing)
    assert "graph_without_op_pct" not in failing


def test_an_op_around_dispatches_without_an_op(tmp_path):
    # A dispatch outside of any op: its kernel has none, and stays with the launch.
    recorded = capture([[*BLOCK]])
    recorded.launch(43, 1, name="hipLaunchKernel", correlation=90, kernel="bare")
    trace = tracehouse.read(write(tmp_path, replay([[[*BLOCK_KERNELS, "bare"]]]), recorded))
    assert ops_of_kernels(trace) == [*OPS, None]
    assert [k["graft"] for k in trace.kernels.to_pylist()] == ["exact"] * 4
    rows = {r["name"]: r["direct_kernel_time_ns"] for r in trace.op_summary.to_pylist()}
    assert rows == {"aten::mm": 3_000, "my::norm": 6_000, "hipGraphLaunch": 3_000}
    assert all(
        check["value"] == 0
        for check in trace.checks.to_pylist()
        if check["name"] in ("op_kernels_difference", "op_time_difference_ns")
    )


def test_copies_and_fills_by_kind(tmp_path):
    calls = [("aten::copy_", 8, [COPY]), ("aten::zero_", 8, [FILL]), *BLOCK]
    path = write(tmp_path, replay([[[COPY, FILL, *BLOCK_KERNELS]]]), capture([calls]))
    assert ops_of_kernels(tracehouse.read(path)) == ["aten::copy_", "aten::zero_", *OPS]


def test_one_dispatch_more_than_ran(tmp_path):
    # As in the peer's xDiT trace: 1 capture of 1,567 dispatches, 4 launches of 1,566 kernels
    layer = [("aten::mm", 8, ["gemm"]), ("my::norm", 8, ["norm"]), ("aten::add", 8, ["add"])]
    calls = layer * 40 + [("aten::addmm", 8, ["other_gemm"])] + layer * 40
    kernels = ["gemm", "norm", "add"] * 80
    note = "execute_diffusion_8_256x256"
    recorded = capture([calls], "capture_8_mixed")
    trace = tracehouse.read(write(tmp_path, replay([[kernels] * 4], note), recorded))
    assert ops_of_kernels(trace) == ["aten::mm", "my::norm", "aten::add"] * 320
    assert {k["graft"] for k in trace.kernels.to_pylist()} == {"aligned"}


# Which capture


def sized(batch, *kernels):
    return [[("aten::mm", batch, kernels)]]


@pytest.mark.parametrize(
    ("annotation", "batch"),
    [
        ("execute_context_0(0)_generation_9(9)", 16),  # the smallest that holds 9 tokens
        ("execute_context_1(20)_generation_4(4)", 24),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_8(sq8sk55sqsq8sqsk55)", 16),
        ("decode[bs=9/24 tok=9 d=9]", 24),  # it says which
        ("step[DECODE bs=24]", 24),
        ("execute_context_1(25)_generation_0(0)", None),  # none holds 25
    ],
)
def test_the_size_of_the_step_decides(tmp_path, annotation, batch):
    captures = [capture(sized(n, "gemm"), f"capture_{n}_FULL") for n in (16, 24)]
    trace = tracehouse.read(write(tmp_path, replay([[["gemm"]]], annotation), *captures))
    (launch,) = trace.launches.to_pylist()
    assert launch["capture_size"] == batch
    shapes = [row["input_dims"][0] for row in trace.signatures.to_pylist()]
    assert shapes == ([[batch, 4]] if batch else [])
    if batch is None:
        assert why(trace) == ["no graph was captured for a batch of 25 or more"]
        assert codes(trace)["GRAPH_UNMATCHED"] == 1


def test_one_file_of_two_captures(tmp_path):
    # us  capture 8: 5..35 around Begin 10 and End 32; capture 16: 40..70 around 42 and 64
    recorded = capture([*sized(8, "gemm"), *sized(16, "gemm")], None)
    recorded.annotation("capture_8_FULL", 5, 30).annotation("capture_16_FULL", 40, 30)
    for tokens, batch in ((8, 8), (9, 16)):
        note = f"execute_context_0(0)_generation_{tokens}({tokens})"
        path = write(tmp_path / str(tokens), replay([[["gemm"]]], note), recorded)
        assert tracehouse.read(path).launches["capture_size"].to_pylist() == [batch]


def test_another_capture_by_all_of_its_names(tmp_path):
    # A draft model's graph, launched in the same step: the batch alone would give it the other one
    captures = [capture([BLOCK]), capture([OTHER], "capture_16_FULL")]
    trace = tracehouse.read(write(tmp_path, replay([[BLOCK_KERNELS, ["add"]]]), *captures))
    assert ops_of_kernels(trace) == [*OPS, "aten::add"]
    assert trace.launches["capture_size"].to_pylist() == [8, 16]


def test_requests_or_tokens(tmp_path):
    # 8 requests that verify 4 tokens each: SGLang's decode graphs count requests, vLLM's tokens
    note = "step[DECODE bs=8 g_sq=32 g_sqsq=128 g_sqsk=4096 g_sk=1024]"
    for mode, batch in (("DECODE", 8), ("FULL", 32)):
        captures = [capture(sized(n, "gemm"), f"capture_{n}_{mode}") for n in (8, 32)]
        trace = tracehouse.read(write(tmp_path / mode, replay([[["gemm"]]], note), *captures))
        assert trace.launches["capture_size"].to_pylist() == [batch]


def test_full_and_piecewise(tmp_path):
    pieces = [[("aten::mm", 8, ["gemm"])], [("aten::add", 8, ["gemm"])]]
    captures = [
        capture([[("my::whole", 8, ["gemm"])]], "capture_8_FULL"),
        capture(pieces, "capture_8_PIECEWISE"),
    ]
    steps = [[["gemm"]], [["gemm"], ["gemm"]], [["gemm"]] * 3]
    trace = tracehouse.read(write(tmp_path, replay(steps), *captures))
    # one launch: the full graph; two: the pieces in order; three: neither
    assert ops_of_kernels(trace) == ["my::whole", "aten::mm", "aten::add", None, None, None]
    assert why(trace)[3:] == ["the step launches 3 graphs, its capture has 2"] * 3


def test_the_index_goes_first(tmp_path):
    # The file does not say what it holds; by the inputs it would be a batch of 8.
    path = write(tmp_path, replay([[BLOCK_KERNELS]]), capture([BLOCK], note=None))
    index = path.parent / "capture_traces/execution_details.json"
    assert tracehouse.read(path).launches["capture_size"].to_pylist() == [8]
    entry = {"file": "/made/there/capture_0.json", "batch_size": 64, "mode": "FULL"}
    index.write_text(json.dumps([entry]))
    assert tracehouse.read(path).launches["capture_size"].to_pylist() == [64]
    index.write_text('[{"file": 1}]')
    trace = tracehouse.read(path)
    assert trace.launches["capture_size"].to_pylist() == [8]
    assert codes(trace)["CAPTURE_UNUSABLE"] == 1


def test_the_rank_decides(tmp_path):
    path = write(tmp_path, replay([[["gemm"]]]))
    for rank, op in (("0", "my::zero"), ("1", "my::one")):
        recorded = capture([[(op, 8, ["gemm"])]])
        recorded.write(tmp_path / f"capture_traces/bs_8_rank{rank}.json")
    ranked = path.rename(tmp_path / "trace_rank1.json")
    assert ops_of_kernels(tracehouse.read(ranked)) == ["my::one"]


# Without a step


def test_kernels_alone_tell_the_graph(tmp_path):
    graphs = [BLOCK, OTHER]
    path = write(tmp_path, replay([[["add"], BLOCK_KERNELS, ["add"]]], None), capture(graphs, None))
    assert ops_of_kernels(tracehouse.read(path)) == ["aten::add", *OPS, "aten::add"]


def test_equal_graphs_are_one(tmp_path):
    path = write(tmp_path, replay([[["add"]]], None), capture([OTHER, OTHER], None))
    assert ops_of_kernels(tracehouse.read(path)) == ["aten::add"]


def test_kernels_of_several_graphs_stay_unmatched(tmp_path):
    graphs = [OTHER, [("aten::add", 16, ["add"])]]
    trace = tracehouse.read(write(tmp_path, replay([[["add"]]], None), capture(graphs, None)))
    assert ops_of_kernels(trace) == [None]
    assert why(trace) == ["its kernels are those of several captured graphs whose ops differ"]
    assert [k["link"] for k in trace.kernels.to_pylist()] == ["correlation"]


def test_kernels_of_no_graph_stay_unmatched(tmp_path):
    steps = [[BLOCK_KERNELS[:2]], [["unknown"]]]
    trace = tracehouse.read(write(tmp_path, replay(steps, None), capture([BLOCK])))
    assert ops_of_kernels(trace) == [None] * 3
    assert why(trace) == ["its kernels are those of no captured graph"] * 2
    assert codes(trace)["GRAPH_UNMATCHED"] == 2
    # F56: the launch call stands for itself
    assert trace.op_summary["name"].to_pylist() == ["hipGraphLaunch"]


def test_cuda_does_not_name_kernels(tmp_path):
    path = write(tmp_path, replay([[BLOCK_KERNELS]]), capture([BLOCK], named=False))
    trace = tracehouse.read(path)
    assert ops_of_kernels(trace) == OPS
    assert {k["graft"] for k in trace.kernels.to_pylist()} == {"position"}


# Files


def test_captures_are_files_but_no_traces(tmp_path):
    write(tmp_path / "run", replay([[BLOCK_KERNELS]]), capture([BLOCK]))
    (tmp_path / "run/capture_traces/execution_details.json").write_text("[]")
    out = tmp_path / "out"
    report = analyse(tmp_path / "run", out=out)
    assert (report.total, report.captures, report.rejected) == (1, 2, 0)
    assert [r.status for r in report.results] == ["ok"]
    rows = query(
        out, "SELECT parse_filename(path), role, status, len(traces) FROM files ORDER BY 1"
    )
    assert rows == [
        ("capture_0.json", "capture", "ok", 0),
        ("execution_details.json", "capture", "ok", 0),
        ("trace.json", "trace", "ok", 1),
    ]
    assert query(out, "SELECT count(*), sum((origin = 'capture')::int) FROM ops") == [(2, 2)]


def test_the_file_alone_finds_them_and_captures_alone_are_traces(tmp_path):
    path = write(tmp_path / "run", replay([[BLOCK_KERNELS]]), capture([BLOCK]))
    report = analyse(path, out=tmp_path / "out")
    assert (report.total, report.captures) == (1, 1)
    folder = path.parent / "capture_traces"
    report = analyse(folder, out=tmp_path / "other")
    assert (report.total, report.captures) == (1, 0)
    assert query(tmp_path / "other", "SELECT role, len(traces) FROM files") == [("trace", 1)]


def test_a_named_folder_serves_all_traces(tmp_path):
    runs = [write(tmp_path / name, replay([[BLOCK_KERNELS]], op=name)) for name in ("a", "b")]
    recorded = capture([BLOCK]).write(tmp_path / "elsewhere/bs_8.json")
    out = tmp_path / "out"
    report = analyse(*runs, out=out, capture=str(recorded.parent))
    assert (report.total, report.captures) == (2, 1)
    grafted = "SELECT count(*) FROM kernels WHERE graft = 'exact'"
    assert query(out, grafted) == [(6,)]
    with pytest.raises(UsageError, match="every file of PATHS is a capture"):
        analyse(recorded, out=out, capture=str(recorded))
    with pytest.raises(UsageError, match="no such file or folder"):
        analyse(*runs, out=out, capture=str(tmp_path / "nowhere"))


def grafts(out):
    return query(out, "SELECT graft, count(*) FROM kernels GROUP BY 1 ORDER BY 1")


def test_a_trace_is_read_anew_when_its_captures_change(tmp_path):
    path = write(tmp_path / "run", replay([[BLOCK_KERNELS]]), capture([OTHER]))
    recorded, out = path.parent / "capture_traces/capture_0.json", tmp_path / "out"
    assert analyse(path, out=out).unchanged == 0
    assert grafts(out) == [(None, 3)]
    assert analyse(path, out=out).unchanged == 1
    # changed
    capture([BLOCK]).write(recorded)
    assert analyse(path, out=out).unchanged == 0
    assert grafts(out) == [("exact", 3)]
    before = contents(out)
    assert analyse(path, out=out).unchanged == 1
    assert contents(out) == before
    # touched
    os.utime(recorded, ns=(1, 1))
    assert analyse(path, out=out).unchanged == 0
    # gone
    recorded.unlink()
    assert analyse(path, out=out).unchanged == 0
    assert grafts(out) == [(None, 3)]
    assert analyse(path, out=out).unchanged == 1
    # back
    capture([BLOCK]).write(recorded)
    assert analyse(path, out=out).unchanged == 0
    assert grafts(out) == [("exact", 3)]
    # read as a trace in between
    analyse(recorded, out=out)
    assert query(out, "SELECT count(*) FROM traces") == [(2,)]
    assert analyse(path.parent, out=out).unchanged == 0
    assert query(out, "SELECT count(*) FROM traces") == [(1,)]
    assert analyse(path.parent, out=out).unchanged == 1


def test_a_copy_without_captures_does_not_undo_them(tmp_path):
    path = write(tmp_path / "a", replay([[BLOCK_KERNELS]]), capture([BLOCK]))
    out = tmp_path / "out"
    analyse(tmp_path / "a", out=out)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/trace.json").write_bytes(path.read_bytes())
    analyse(tmp_path / "a", tmp_path / "b", out=out)
    assert grafts(out) == [("exact", 3)]


@pytest.mark.parametrize("broken", [b"", b"\x1f\x8b no gzip", b'{"a": 1}', Trace().data()])
def test_a_broken_capture_costs_the_trace_only_its_ops(tmp_path, broken):
    path = write(tmp_path / "run", replay([[BLOCK_KERNELS]]))
    recorded, out = path.parent / "capture_traces/bs_8.json", tmp_path / "out"
    recorded.parent.mkdir()
    recorded.write_bytes(broken)
    report = analyse(tmp_path / "run", out=out)
    is_trace = broken == Trace().data()  # but one without a capture
    assert report.rejected == (0 if is_trace else 1)
    (status, reason) = query(out, "SELECT status, reason FROM files WHERE role = 'capture'")[0]
    assert status == ("ok" if is_trace else "rejected")
    assert reason
    assert query(out, "SELECT code, count FROM issues WHERE code = 'CAPTURE_UNUSABLE'") == [
        ("CAPTURE_UNUSABLE", 1)
    ]
    assert grafts(out) == [(None, 3)]
    again = analyse(tmp_path / "run", out=out)
    assert (again.unchanged, again.rejected) == (1, report.rejected)


def test_the_result_is_the_same_whoever_computes_it(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "runs" / name, replay([[BLOCK_KERNELS]], op=name), capture([BLOCK]))
    analyse(tmp_path / "runs", out=tmp_path / "one", workers=1)
    analyse(tmp_path / "runs", out=tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
