"""What belongs to a step and what does not, on a drawn timeline; and files that cannot be split.

Steps k = 0 … 9 of process 100 start on thread 1 at 100·k µs and take 60; each launches kernel k,
which runs 150 µs later, during the next step. Steps 3 and 4 are split off, window
[300, 460).
"""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest
import splitting
from tracegen import Trace

from tracehouse.analysis.summaries import steps_alone
from tracehouse.commands.split import split
from tracehouse.errors import RejectedFile, TracehouseError, UsageError

STEP = "execute_context_0(0)_generation_8(8)"


def serving(steps=10, **envelope):
    trace = Trace(**envelope)
    for k in range(steps):
        at = 100 * k
        trace.annotation(STEP, at, 60).op(f"op {k}", at + 5, 20)
        trace.launch(at + 10, 5, correlation=10 + k, name=f"cudaLaunchKernel {k}")
        trace.kernel(f"kernel {k}", at + 150, 40, correlation=10 + k)
        trace.flow(at + 10, at + 150, 10 + k)
        trace.mirror(STEP, at + 150, 40)
    return trace


def written(trace, folder, steps="3:5", **options):
    """Split a drawn trace and return the document and the description of its only file."""
    path = trace if not isinstance(trace, Trace) else trace.write(folder / "run.json")
    report = split(str(path), folder / "out", steps=steps, **options)
    (file,) = report.files
    text = gzip.decompress((folder / "out" / file.name).read_bytes())
    return json.loads(text), file, text


def names(document, *phases):
    return {e["name"] for e in document["traceEvents"] if not phases or e["ph"] in phases}


def added(trace, folder, **options):
    """Return the names of what the split has beside the two bare steps."""
    bare, _, _ = written(serving(), folder / "bare")
    document, _, _ = written(trace, folder, **options)
    return names(document) - names(bare)


def test_a_step_has_its_calls_and_their_kernels_whenever_they_run(tmp_path):
    document, file, _ = written(serving(), tmp_path)
    expected = {STEP, "ac2g"}
    for k in (3, 4):
        expected |= {f"op {k}", f"cudaLaunchKernel {k}", f"kernel {k}"}
    assert names(document) == expected
    assert file.details["event_count"] == len(document["traceEvents"]) == 2 * 7
    assert file.details["num_gpu_events"] == 2  # mirrors are none
    assert file.details["gpu_duration"] == file.details["gpu_busy_duration"] == 80.0
    flows = [(e["ph"], e["id"]) for e in document["traceEvents"] if e["ph"] in "sf"]
    assert sorted(flows) == [("f", 13), ("f", 14), ("s", 13), ("s", 14)]


def test_other_threads_and_the_host_between_steps(tmp_path):
    trace = serving()
    trace.op("copy out", 320, 20, thread=2).launch(325, 5, correlation=70, thread=2, name="there")
    trace.kernel("copied", 800, 10, correlation=70, stream=9).flow(325, 800, 70, thread=2, stream=9)
    trace.op("sample", 370, 20).launch(375, 5, correlation=71, name="between")
    trace.kernel("sampled", 700, 10, correlation=71)
    trace.op("too early", 150, 20, thread=2).launch(155, 5, correlation=72, thread=2, name="early")
    trace.kernel("in the window", 330, 10, correlation=72)
    trace.op("behind", 465, 20).op("elsewhere", 320, 20).event(
        ph="X", cat="cpu_op", name="another process", pid=200, tid=1, ts=320, dur=5, args={}
    )
    trace.kernel("launched before", 340, 5)  # without a launch and of no step
    expected = {"copy out", "there", "copied", "sample", "between", "sampled", "elsewhere"}
    assert added(trace, tmp_path) == expected
    (file,) = json.loads((tmp_path / "out/execution_details.json").read_text())
    assert (file["num_gpu_events"], file["num_gpu_events_of_no_step"]) == (2, 2)


def test_python_frames_and_those_around_the_window(tmp_path):
    trace = serving()
    trace.frame("main", 0, 1000).frame("serve", 290, 200).frame("inner", 310, 5)
    trace.frame("between", 370, 20).frame("waiting", 100, 800, thread=2)
    trace.frame("before", 200, 90).frame("up to it", 250, 50).frame("behind", 460, 5)
    trace.event(
        ph="X", cat="python_function", name="another process", pid=200, tid=1, ts=0, dur=999
    )
    assert added(trace, tmp_path) == {"main", "serve", "inner", "between", "waiting"}


def test_calls_and_ranges_around_the_steps(tmp_path):
    # an op and a plain annotation hold both steps: without them op 3 would be a root
    trace = serving().op("engine", 280, 200).annotation("loop", 270, 220)
    trace.op("of others", 480, 120).annotation("later", 490, 100)
    assert added(trace, tmp_path) == {"engine", "loop"}


def test_an_annotation_of_several_steps_is_left_out(tmp_path):
    # alone with step 3 in it, ProfilerStep#1 would be taken for the step, and be longer than it
    trace = serving().annotation("ProfilerStep#0", 80, 200).annotation("ProfilerStep#1", 290, 90)
    assert len(splitting.measures(trace.write(tmp_path / "whole.json"))) == 10
    assert added(trace, tmp_path) == set()
    assert (
        added(trace, tmp_path / "wide", steps="0:5") & {"ProfilerStep#0", "ProfilerStep#1"} == set()
    )


def test_what_is_launched_in_a_draft_before_its_step(tmp_path):
    # a draft model's work belongs to the step behind it
    trace = serving().annotation("step[DRAFT bs=8]", 270, 20).op("guess", 275, 10)
    trace.launch(280, 2, correlation=80, name="draft launch").kernel(
        "draft", 600, 5, correlation=80
    )
    assert added(trace, tmp_path) == {"step[DRAFT bs=8]", "guess", "draft launch", "draft"}


def test_a_flow_needs_both_its_ends(tmp_path):
    trace = serving()
    for name, start, end in (("both", 310, 420), ("one", 320, 720), ("other", 120, 430)):
        for ph, ts in (("s", start), ("f", end)):
            trace.event(ph=ph, cat="fwdbwd", name=name, id=1, pid=100, tid=1, ts=ts, bp="e")
    trace.event(ph="s", cat="lone", name="alone", id=5, pid=100, tid=1, ts=330)
    trace.event(ph="t", cat="lone", name="alone too", id="0x1f", pid=100, tid=1, ts=340)
    assert added(trace, tmp_path) == {"both", "alone", "alone too"}


def test_what_has_no_duration(tmp_path):
    trace = serving()
    marks = {"kept": (100, 350), "late": (100, 700), "a rank's": (200, 350), "device's": (0, 350)}
    trace.op("of rank 200", 0, 5)
    trace.event(ph="X", cat="cpu_op", name="rank 200", pid=200, tid=1, ts=0, dur=5, args={})
    for name, (pid, ts) in marks.items():
        trace.event(ph="C", name=f"{name} counter", pid=pid, tid=0, ts=ts, args={"bytes": 1})
        trace.event(ph="i", name=f"{name} instant", pid=pid, tid=1, ts=ts, s="t")
    trace.event(ph="M", name="process_name", pid=100, args={"name": "python"})
    trace.event(ph="M", name="thread_name", pid=9, tid=9, ts=0, args={"name": "far"})
    trace.event(ph="i", name="without a time", pid=100, tid=1)
    trace.event(ph="b", cat="async", id=3, name="begun", pid=100, tid=1, ts=350)
    found = {f"{name} {kind}" for name in ("kept", "device's") for kind in ("counter", "instant")}
    found |= {"process_name", "thread_name", "without a time", "begun"}
    assert added(trace, tmp_path) == found


def test_begin_and_end_events(tmp_path):
    trace = serving()
    for name, begin, end in (("in", 310, 340), ("out", 110, 140), ("around", 250, 700)):
        trace.event(ph="B", cat="x", name=name, pid=100, tid=1, ts=begin)
        trace.event(ph="E", cat="x", name=name, pid=100, tid=1, ts=end)
    trace._events.sort(key=lambda e: float(e["ts"]))  # as they would be written
    document, _, _ = written(trace, tmp_path)
    assert [e["ph"] for e in document["traceEvents"] if e["name"] in ("in", "out", "around")] == [
        "B",
        "E",
    ]


def test_ranges_and_waits_on_the_gpu(tmp_path):
    trace = serving().mirror("sampling", 449, 50).mirror("none of it", 900, 200)
    for name, call, correlation in (("waited", 330, 55), ("waited later", 730, 56)):
        trace.launch(call, 4, correlation=correlation, name=f"call of {name}")
        trace.complete("cuda_sync", name, 0, 7, call, 3, {"correlation": correlation, "stream": 7})
    trace.complete("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 0, 999)
    assert added(trace, tmp_path) == {"sampling", "call of waited", "waited"}


def test_bytes_and_keys_are_those_of_the_source(tmp_path):
    # envelope before, around and behind the list; spellings that a JSON library would not keep
    odd = '{"ph":"X", "cat":"cpu_op","name":"\\u00e9\\/","pid":100,"tid":1,"ts":3.1E2,"dur":1.000}'
    for place in ("before", "around", "after"):
        trace = serving(distributedInfo={"rank": 3}, token="sk-0123456789abcdefghijklmnop").raw(odd)
        path = trace.write(tmp_path / place / "run.json", envelope=place)
        document, _, text = written(path, tmp_path / place)
        whole = path.read_bytes()
        assert {k: v for k, v in document.items() if k != "traceEvents"} == trace.envelope
        assert odd.encode() in text
        head, _, _ = whole.partition(b'"traceEvents"')
        assert text.startswith(head)
        at = 0
        for event in document["traceEvents"]:  # each stands in the source, in this order
            name = json.dumps(event["name"]).encode() if event["name"] != "é/" else b'"\\u00e9'
            at = whole.index(name, at) + 1


@pytest.mark.parametrize("layout", ["list", "lines"])
def test_a_trace_without_an_envelope(tmp_path, layout):
    trace = serving()
    text = trace.text("compact", "none")
    if layout == "lines":
        text = "\n".join(json.dumps(e) for e in json.loads(text))
    (tmp_path / "run.json").write_text(text)
    document, file, _ = written(tmp_path / "run.json", tmp_path)
    assert isinstance(document, list)
    assert len(document) == file.details["event_count"] == 14


def test_damaged_events_are_written_as_mended(tmp_path):
    trace = serving(wrong=1)
    trace.raw('{"ph":"X","cat":"cpu_op","name":"C:\\Users","pid":100,"tid":1,"ts":310,"dur":NaN}')
    text = trace.text().replace('"wrong": 1', '"wrong": NaN')
    (tmp_path / "run.json").write_text(text)
    report = split(str(tmp_path / "run.json"), tmp_path / "out", steps="3:5")
    written_text = gzip.decompress((tmp_path / "out" / report.files[0].name).read_bytes())
    document = json.loads(written_text, parse_constant=pytest.fail)
    assert "C:\\Users" in names(document)
    assert document["wrong"] is None
    assert document["schemaVersion"] == 1
    assert any("REPAIRED" in note for note in report.notes)


def test_a_text_that_ends_early(tmp_path):
    # cut within kernel 8: steps 3 and 4 are whole
    text = serving().text(envelope="before")
    (tmp_path / "run.json").write_text(text[: text.index("kernel 8")])
    report = split(str(tmp_path / "run.json"), tmp_path / "out", steps="3:5")
    document = json.loads(gzip.decompress((tmp_path / "out" / report.files[0].name).read_bytes()))
    assert len(document["traceEvents"]) == 14
    assert document["baseTimeNanoseconds"] == 1_700_000_000_000_000_000
    assert "TRUNCATED" in report.notes[0]


def test_a_text_in_utf_16(tmp_path):
    (tmp_path / "run.json").write_bytes(serving().text().encode("utf-16"))
    document, _, _ = written(tmp_path / "run.json", tmp_path)
    assert len(document["traceEvents"]) == 14


def test_steps_that_only_the_gpu_has(tmp_path):
    trace = Trace()
    for k in range(6):
        trace.mirror(STEP, 100 * k, 60).launch(1000 + 10 * k, 4, correlation=k + 1)
        trace.op(f"op {k}", 999 + 10 * k, 7)
        trace.kernel(f"kernel {k}", 100 * k + 5, 30, correlation=k + 1)
    document, file, _ = written(trace, tmp_path, steps="2:4")
    kept = {STEP, "cudaLaunchKernel", "op 2", "op 3", "kernel 2", "kernel 3"}
    assert names(document) == kept
    assert file.details["gpu_busy_duration"] == 60.0


def test_steps_keep_their_measures(tmp_path):
    trace = serving().op("engine", 280, 200).annotation("ProfilerStep#0", 80, 200)
    path = trace.write(tmp_path / "run.json")
    whole = splitting.measures(path)
    report = split(str(path), tmp_path / "out", steps="3:6")
    assert splitting.measures(tmp_path / "out" / report.files[0].name) == whole[3:6]


# What cannot be split


@pytest.mark.parametrize("steps", ["5:3", "3:3", "3", "3:", ":4", "-1:4", "a:b", "0:1e9", "10:12"])
def test_ranges_that_name_no_step(tmp_path, steps):
    path = serving().write(tmp_path / "run.json")
    with pytest.raises(UsageError):
        split(str(path), tmp_path / "out", steps=steps)
    assert not (tmp_path / "out").exists()


def test_the_end_of_a_range_may_be_too_large(tmp_path):
    _, file, _ = written(serving(), tmp_path, steps="8:99")
    assert (file.details["first_step"], file.details["last_step"]) == (8, 9)


def test_a_trace_without_steps(tmp_path):
    path = Trace().op("aten::mm", 0, 5).write(tmp_path / "run.json")
    for steps in (None, "0:1"):
        with pytest.raises(TracehouseError, match="no steps") as caught:
            split(str(path), tmp_path / "out", steps=steps)
        assert caught.value.code == "NO_STEPS"
    assert not (tmp_path / "out").exists()


def test_a_trace_that_is_never_steady(tmp_path):
    path = Trace().annotation("ProfilerStep#1", 0, 50).write(tmp_path / "run.json")
    with pytest.raises(TracehouseError, match="steady") as caught:
        split(str(path), tmp_path / "out")
    assert caught.value.code == "NOT_STEADY"
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_empty(tmp_path):
    path = serving().write(tmp_path / "run.json")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/other.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        split(str(path), tmp_path / "out")
    split(str(path), tmp_path / "out", overwrite=True)
    split(str(path), tmp_path / "out", overwrite=True)
    assert (tmp_path / "out/other.txt").read_text() == "mine"
    assert len(list((tmp_path / "out").iterdir())) == 4


def test_the_index_of_captures_is_not_lost(tmp_path):
    path = serving().write(tmp_path / "run.json")
    index = tmp_path / "capture_traces/execution_details.json"
    index.parent.mkdir()
    index.write_text('[{"file": "a.json", "batch_size": 32, "mode": "FULL"}]')
    with pytest.raises(UsageError, match="none of split's"):
        split(str(path), index.parent, overwrite=True)
    assert "batch_size" in index.read_text()


def test_a_file_that_changes_meanwhile_leaves_nothing(tmp_path, monkeypatch):
    path = serving().write(tmp_path / "run.json")

    def changed(linked, settings):
        path.write_text(serving().text().replace("kernel 3", "kernel X"))
        return steps_alone(linked, settings)

    monkeypatch.setattr("tracehouse.commands.split.steps_alone", changed)
    with pytest.raises(RejectedFile, match="has changed"):
        split(str(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    path = serving().write(tmp_path / "run.json")
    monkeypatch.setattr(
        "tracehouse.commands.output_file.durable.sync",
        lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    with pytest.raises(OSError, match="No space"):
        split(str(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_archive_of_several_traces(tmp_path):
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        for name in ("one.json", "two.json"):
            archive.writestr(name, serving(mark=name).text())
    with pytest.raises(UsageError, match=r"holds 2 traces: .*one\.json, .*two\.json"):
        split(str(tmp_path / "runs.zip"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
