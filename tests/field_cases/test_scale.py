"""field_cases J: large events and many rows."""

from __future__ import annotations

import tracemalloc
from functools import partial

import pytest
from case_file import both_readers, busy_ns, codes, column, read_events
from tracegen import Trace

import tracehouse
from tracehouse.findings import Findings
from tracehouse.ingest.limits import Limits
from tracehouse.ingest.read import read_file


def test_f67_a_file_is_streamed(tmp_path, monkeypatch):
    # 200 MB of events against the memory of Python and numpy at its peak: blocks and batches only.
    event = (
        b'{"ph":"X","cat":"python_function","name":"f","pid":5,"tid":5,"ts":1,"dur":1,'
        b'"args":{"x":"%s"}}' % (b"y" * 900)
    )
    count = 200_000
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.write(b'{"traceEvents":[' + event)
        for _ in range(count // 1_000):
            file.write(b",".join([b"", *[event] * 1_000]))
        file.write(b"]}")
    monkeypatch.setattr("tracehouse.ingest.read.HOLD_BYTES", 1 << 20)
    rows = []
    tracemalloc.start()
    [trace] = read_file(
        str(path),
        reader="scan",
        sink=lambda table: rows.append(table.num_rows),
        wanted=lambda _: True,
        findings=Findings(),
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert trace.events == sum(rows) == count + 1
    assert len(rows) > 10
    assert peak < path.stat().st_size * 0.5


@both_readers
@pytest.mark.parametrize("text", ["x", "é", "\\n"])
def test_f68_an_event_above_the_limit(tmp_path, reader, text, monkeypatch):
    # Limits a thousandth of the real ones: an event of 100 kB where 64 kB are allowed.
    small = partial(read_file, limits=Limits(event_bytes=64 << 10))
    monkeypatch.setattr("tracehouse.commands.read.read_file", small)
    monkeypatch.setattr("tracehouse.ingest.oversize.CUT_ABOVE", 1 << 10)
    monkeypatch.setattr("tracehouse.ingest.oversize.KEEP", 100)
    monkeypatch.setattr("tracehouse.ingest.containers.BLOCK_LENGTH", 10_000)
    monkeypatch.setattr("tracehouse.ingest.containers._SHORTEST_BLOCK", 10_000)
    long = text * 100_000
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7}},\n'
        f'{{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":5,"args":{{"s":"{long}",'
        '"stream":9},"dur":2},\n'
        '{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":9,"dur":2,"args":{"stream":7}}',
        reader,
    )
    assert codes(trace)["OVERSIZE_EVENT"] == 1
    assert column(trace.kernels, "name") == ["a", "b", "c"]
    assert column(trace.kernels, "stream") == [7, 9, 7]
    assert busy_ns(trace) == 6_000
    assert len(column(trace.events, "args")[1]) < 200
    assert not codes(trace).keys() & {"TRUNCATED", "DROPPED_EVENT"}


@both_readers
def test_f69_python_frames_change_nothing(tmp_path, reader):
    def drawn(frames: bool) -> Trace:
        trace = Trace().op("aten::mm", 0, 50)
        if frames:
            for i in range(200):
                trace.frame(f"f.py({i}): go", i % 40, 9)
        return trace.launch(5, 4, correlation=1).kernel("gemm", 10, 20, correlation=1)

    columns = ["name", "ts_ns", "dur_ns", "link", "device", "stream"]
    with_frames, without = (
        tracehouse.read(drawn(frames).write(tmp_path / f"{frames}.json"), reader=reader)
        for frames in (True, False)
    )
    assert with_frames.kernels.select(columns).equals(without.kernels.select(columns))
    assert with_frames.trace_timeline.column("busy_ns").equals(
        without.trace_timeline.column("busy_ns")
    )
    assert column(with_frames.op_summary, "direct_kernel_time_ns") == [20_000]
