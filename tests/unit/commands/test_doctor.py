"""examine: what a file is, what is odd, what that costs, and what to do better."""

from __future__ import annotations

import gzip
import zipfile

import pytest
from tracegen import Trace

from tracehouse.commands.advice import ADVICES, Evidence, advices
from tracehouse.commands.doctor import examine
from tracehouse.commands.first_bytes import kind_of_bytes, shown_bytes
from tracehouse.errors import UsageError

SHAPES = {"Input Dims": [[2, 2]]}


def drawn(**envelope):
    """Draw an op with a kernel of 20 µs, and a step around them: nothing is odd but the rank."""
    trace = Trace(record_shapes=1, with_stack=1, **envelope).annotation("ProfilerStep#1", 0, 60)
    trace.frame("train.py(1): main", 0, 60)
    trace.op("aten::mm", 1, 50, **SHAPES).launch(5, 4, correlation=1)
    return trace.kernel("gemm", 10, 20, correlation=1)


def only(path, **options):
    (page,) = examine(str(path), **options).traces
    return page


@pytest.mark.parametrize("reader", ["scan", "ijson"])
def test_a_good_trace(tmp_path, reader):
    trace = drawn(
        cuda_runtime_version=12040,
        distributedInfo={"rank": 3, "world_size": 8},
    )
    found = examine(str(trace.write(tmp_path / "x.json.gz")), reader=reader)
    (page,) = found.traces
    assert (found.file.container, found.file.encoding, found.file.findings) == ("gzip", "UTF-8", ())
    assert (page.status, page.findings, page.failing, page.advices) == ("ok", (), (), ())
    assert page.facts == {
        "producer": "pytorch",
        "versions": "CUDA 12.4, Kineto schema 1",
        "recorded with": "record_shapes, with_stack",
        "devices": "1 x NVIDIA H100 80GB HBM3",
        "rank": "3 of 8",
    }
    assert page.categories == {
        "user_annotation": 1,
        "python_function": 1,
        "cpu_op": 1,
        "cuda_runtime": 1,
        "kernel": 1,
    }
    assert page.gpu == {
        "activities": 1,
        "kernels": 1,
        "devices": 1,
        "total_ns": 20_000,
        "busy_ns": 20_000,
        "busy_pct": 100.0,
    }


def test_times_are_absolute_where_the_file_says_so(tmp_path):
    # base 1.7e18 ns is 2023-11-14T22:13:20Z; the first event starts 1 µs later and ends at 51 µs.
    trace = Trace().op("a", 1, 50)
    page = only(trace.write(tmp_path / "x.json"))
    assert page.start == "2023-11-14T22:13:20.000001+00:00"
    assert page.end == "2023-11-14T22:13:20.000051+00:00"
    assert page.duration_ns == 50_000


def test_times_from_1970_need_no_base(tmp_path):
    trace = Trace().op("a", "1700000000000001.5", 1)
    del trace.envelope["baseTimeNanoseconds"]
    page = only(trace.write(tmp_path / "x.json"))
    assert page.start == "2023-11-14T22:13:20.000001+00:00"


def test_times_on_an_unknown_clock_stay_unknown(tmp_path):
    trace = Trace().op("a", 1, 50)
    del trace.envelope["baseTimeNanoseconds"]
    page = only(trace.write(tmp_path / "x.json"))
    assert (page.start, page.end, page.duration_ns) == (None, None, 50_000)


def test_versions_of_hip(tmp_path):
    page = only(drawn(hip_runtime_version=70226015).write(tmp_path / "x.json"))
    assert "HIP 7.2.26015" in page.facts["versions"]


def test_events_without_category_are_counted_by_phase(tmp_path):
    trace = Trace().op("a", 1, 2).event(ph="M", name="process_name", pid=1, ts=0)
    page = only(trace.event(ph="Q", name="?", pid=1, ts=0).write(tmp_path / "x.json"))
    assert page.categories == {"cpu_op": 1, "(metadata)": 1, "(Q)": 1}


def words(page):
    return " ".join(page.advices)


def test_what_is_odd_what_it_costs_and_what_to_do(tmp_path):
    """Half of the GPU time has no launch in the file, and the kernels' op has no shapes."""
    trace = Trace().op("aten::mm", 1, 50).launch(5, 4, correlation=1)
    trace.kernel("gemm", 10, 20, correlation=1).kernel("gemm", 30, 20)
    page = only(trace.write(tmp_path / "x.json"))
    assert {row["code"] for row in page.findings} >= {"ORPHAN_KERNEL", "SHAPES_MISSING"}
    assert all(row["meaning"] and row["action"] for row in page.findings)
    failing = {row["name"]: row["value"] for row in page.failing}
    assert failing == {"unlinked_pct": 50.0, "without_shapes_pct": 100.0}
    assert "record_shapes=True" in words(page)
    assert "ProfilerActivity.CPU" in words(page)


def test_shapes_that_were_asked_for_are_not_asked_for_again(tmp_path):
    trace = Trace(record_shapes=1).op("custom", 1, 50).launch(5, 4, correlation=1)
    page = only(trace.kernel("gemm", 10, 20, correlation=1).write(tmp_path / "x.json"))
    assert [row["name"] for row in page.failing] == ["without_shapes_pct"]
    assert "record_shapes" not in words(page)


@pytest.mark.parametrize(
    ("name", "is_generic"),
    [
        ("triton_", True),
        ("triton__0d1d2de", True),
        ("triton_poi_fused_add_0", False),
        ("triton_attention_kernel", False),
    ],
)
def test_generic_triton_names(tmp_path, name, is_generic):
    trace = Trace().op("x", 1, 50).launch(5, 4, correlation=1).kernel(name, 10, 20, correlation=1)
    page = only(trace.write(tmp_path / "x.json"))
    assert ("TORCHINDUCTOR_UNIQUE_KERNEL_NAMES=1" in words(page)) == is_generic


def test_a_rank_is_asked_of_jobs_only(tmp_path):
    alone = only(drawn().write(tmp_path / "x.json"))
    assert [row["code"] for row in alone.findings] == ["RANK_UNKNOWN"]
    assert alone.advices == ()
    job = drawn().launch(50, 1, correlation=2).kernel("ncclDevKernel", 51, 9, correlation=2)
    assert "which rank this is" in words(only(job.write(tmp_path / "y.json")))


def test_a_file_that_was_cut_off(tmp_path):
    data = gzip.compress(drawn().data())
    (tmp_path / "x.json.gz").write_bytes(data[:-20])
    page = only(tmp_path / "x.json.gz")
    assert page.status == "partial"
    assert "cut_short" in [row["name"] for row in page.failing]
    assert "full disk" in words(page)


def test_an_archive_has_a_page_a_member(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.json", drawn(distributedInfo={"rank": 0}).text())
        archive.writestr("b.json", '{"nodes": []}')
        archive.writestr("c.json", drawn(distributedInfo={"rank": 1}).op("more", 90, 1).text())
        archive.writestr("notes.txt", "hello")
    found = examine(str(tmp_path / "x.zip"))
    assert found.is_rejected
    assert [page.path.rpartition("/")[2] for page in found.traces] == ["a.json", "b.json", "c.json"]
    assert [page.status for page in found.traces] == ["ok", "rejected", "ok"]
    assert [page.categories.get("cpu_op") for page in found.traces] == [1, None, 2]
    assert [row["code"] for row in found.file.findings] == ["MEMBER_SKIPPED"]


def test_members_of_one_content_are_counted_each(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.json", drawn().text())
        archive.writestr("b.json", drawn().text())
    pages = examine(str(tmp_path / "x.zip")).traces
    assert [page.categories["cpu_op"] for page in pages] == [1, 1]


def test_a_rejected_file_has_its_page(tmp_path):
    (tmp_path / "x.json").write_text('{"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1}]}')
    found = examine(str(tmp_path / "x.json"))
    (page,) = found.traces
    assert found.is_rejected
    assert (page.status, page.trace_id) == ("rejected", None)
    assert [row["code"] for row in page.findings] == ["NOT_A_TRACE"]
    assert found.file.kind.startswith("a PyTorch execution trace")
    assert found.file.first_bytes.startswith('{"schema"')
    assert page.advices


@pytest.mark.parametrize("name", ["", "none.json"])
def test_what_is_no_file_is_a_usage_error(tmp_path, name):
    with pytest.raises(UsageError):
        examine(str(tmp_path / name))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"", "nothing"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"  {", "JSON"),
        (b"\xef\xbb\xbf[", "JSON"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b"a/b" + bytes(254) + b"ustar", "a tar archive"),
        (b"hello", "text"),
        (b"\x00\xff", "unknown"),
    ],
)
def test_kinds_of_first_bytes(head, words):
    assert kind_of_bytes(head).startswith(words)


def test_first_bytes_are_shown_as_text_or_hex():
    assert shown_bytes(b'{"a": 1}') == '{"a": 1}'
    assert shown_bytes(b"\x00\x01\xff") == "00 01 ff"


def test_every_advice_can_apply_and_can_be_silent():
    silent = Evidence(
        codes=frozenset(),
        failing=frozenset(),
        categories={"python_function": 1},
        framework="pytorch",
        world_size=None,
        records_shapes=True,
        generic_kernels=0,
        has_comm=False,
        has_ops=True,
        has_steps=True,
    )
    assert advices(silent) == ()
    everything = Evidence(
        codes=frozenset(
            "NO_GPU_EVENTS TRUNCATED MULTI_DOC REPAIRED_ESCAPE RANK_UNKNOWN SECRET_REDACTED "
            "WRONG_SUFFIX".split()
        ),
        failing=frozenset(
            "pre_window_pct unlinked_pct graph_without_op_pct launch_without_op_pct "
            "without_shapes_pct clock_domains".split()
        ),
        categories={},
        framework="pytorch",
        world_size=2,
        records_shapes=False,
        generic_kernels=1,
        has_comm=True,
        has_ops=True,
        has_steps=False,
    )
    applied = {advice.name for advice in advices(everything)}
    assert {advice.name for advice in ADVICES} - applied == {"no_events"}  # excludes no_gpu
