"""The benchmarks measure what they say: traces enlarged, frames linked, archives queried."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracehouse.analysis.link import link
from tracehouse.findings import Findings

# An op launches a kernel, with a flow between them, then a second op. From 1000.5 to 1050.5 µs.
EVENTS = """
  {"ph": "M", "name": "process_name", "pid": 1, "ts": 990.000, "args": {"name": "id"}},
  {"ph": "X", "cat": "cpu_op", "name": "say \\"ts\\": 5", "pid": 1, "tid": 1, "ts": 1000.500,
   "dur": 9, "args": {"External id": 3, "Ev Idx": 0, "Record function id": 0}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1002.251,
   "dur": 1, "args": {"External id": 3, "correlation": 7}},
  {"ph": "s", "id": 7, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 1002.251},
  {"ph": "X", "cat": "cpu_op", "name": "later", "pid": 1, "tid": 1, "ts": 1012, "dur": 2,
   "args": {"External id": 4, "Ev Idx": 1, "Python id": 12}},
  {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1020.125, "dur": 30.375,
   "args": {"External id": 3, "correlation": 7, "bytes": 64}},
  {"ph": "f", "id": 7, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 1020.125, "bp": "e"}
"""
TRACE = f'{{"schemaVersion": 1, "traceEvents": [{EVENTS}], "traceName": "a]b", "id": 5}}'


@pytest.fixture
def enlarge(repo_root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(repo_root / "benchmarks")
    import enlarge

    return enlarge


def exact(text: str) -> Any:
    """Parse JSON with fractions as their text."""
    return json.loads(text, parse_float=str)


def test_a_copy_has_its_own_times_and_ids(enlarge: ModuleType, tmp_path: Path) -> None:
    source = enlarge.Source(TRACE)
    text = source.template().copy(2)
    op, launch, start, later, kernel, finish = exact(f"[{text}]")
    # The trace takes 50 µs: the next begins 50 + 1 + 1000 = 1051 µs later, the one behind it 2102.
    assert (op["ts"], launch["ts"], kernel["ts"]) == ("3102.500", "3104.251", "3122.125")
    assert (start["ts"], later["ts"], finish["ts"]) == ("3104.251", 3114, "3122.125")
    # The largest id is 12: ids go up by 100 a copy. 0 as a link id means none, and stays.
    assert op["args"] == {"External id": 203, "Ev Idx": 200, "Record function id": 0}
    assert later["args"] == {"External id": 204, "Ev Idx": 201, "Python id": 212}
    assert launch["args"] == {"External id": 203, "correlation": 207}
    assert kernel["args"] == {"External id": 203, "correlation": 207, "bytes": 64}
    assert start["id"] == finish["id"] == 207
    # Nothing else changes.
    assert op["name"] == 'say "ts": 5'
    assert (kernel["dur"], kernel["tid"]) == ("30.375", 7)


def test_a_large_trace_is_whole_copies_in_one_envelope(enlarge: ModuleType, tmp_path: Path) -> None:
    target = tmp_path / "large.json"
    copies = enlarge.Source(TRACE).write(target, 5_000)
    assert target.stat().st_size >= 5_000
    large, small = exact(target.read_text()), exact(TRACE)
    events, original = large.pop("traceEvents"), small.pop("traceEvents")
    assert large == small
    assert events[: len(original)] == original  # the metadata event comes first there, too
    assert copies > 1
    assert len(events) == 1 + 6 * copies
    kernels = [event["args"]["correlation"] for event in events if event.get("cat") == "kernel"]
    assert kernels == [7 + 100 * copy for copy in range(copies)]


def test_a_window_takes_along_what_its_calls_started(enlarge: ModuleType) -> None:
    source = enlarge.Source(TRACE)
    # In time: the op, the launch, the later op. Kernel and flows belong to the launch.
    names = [exact(event.text)["name"] for event in source.window(0, 2)]
    assert sorted(names) == sorted(['say "ts": 5', "cudaLaunchKernel", "k", "ac2g", "ac2g"])
    assert [exact(event.text)["name"] for event in source.window(2, 1)] == ["later"]


def test_traces_of_an_archive_differ(enlarge: ModuleType, tmp_path: Path) -> None:
    enlarge.Source(TRACE).write_archive(tmp_path / "archive", 3, 1, 3)
    texts = [enlarge.read_text(path) for path in sorted((tmp_path / "archive").iterdir())]
    assert len(set(texts)) == 3
    for text in texts:
        assert exact(text)["traceName"] == "a]b"


def test_a_bare_list_is_a_trace(enlarge: ModuleType, tmp_path: Path) -> None:
    enlarge.Source(f"[{EVENTS}]").write(tmp_path / "large.json", 1)
    assert exact((tmp_path / "large.json").read_text()) == exact(f"[{EVENTS}]")


def test_the_frame_to_link_has_every_column_and_link(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(repo_root / "benchmarks")
    from bench_link import make_frame

    linked = link(make_frame(800), "0" * 16, findings=Findings())
    assert linked["kernels"]["op_id"].null_count == 0
    assert linked["kernels"].num_rows == linked["launches"].num_rows == 100


def test_an_archive_to_query_holds_its_kernels(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(repo_root / "benchmarks")
    import bench_query

    path = str(repo_root / "data" / "samples" / "training.json.gz")
    found = bench_query.measured(path, 240)  # of 24 kernels, in 8 rows of op_summary
    assert (found["traces"], found["kernels"]) == (10, 240)
    assert found["rows"] % 10 == 0 < found["rows"]
