"""Real serving traces, and variants of the generated run, split and measured again."""

from __future__ import annotations

import json
import sys

import pytest
import splitting

from tracehouse.commands.split import split

# folder, file: windows, GPU events of the step and its sum of launches (inference.md §3)
REAL = {
    ("sglang_decode", "sglang_Qwen3-8B_decode.json.gz"): (["decode_only"], 558),
    ("vllm_decode_full", "graph_execution.json.gz"): (["decode_only"], 434),
    ("vllm_prefilldecode_piecewise", "graph_execution.json.gz"): (["mixed", "prefilldecode"], 423),
}


@pytest.mark.parametrize("source", REAL, ids=[folder for folder, _ in REAL])
def test_a_real_trace(shared_traces, tmp_path, source):
    # one step each, which is all of the trace: every event belongs
    path = shared_traces / "inference" / source[0] / source[1]
    kinds, gpu_events = REAL[source]
    report = split(str(path), tmp_path)
    assert [file.window.kind for file in report.files] == kinds
    assert "no run of steps is steady" in report.notes[0]
    whole, texts = splitting.measures(path), splitting.event_texts(path)
    envelope = {k: v for k, v in json.loads(splitting.text_of(path)).items() if k != "traceEvents"}
    for file in report.files:
        written = tmp_path / file.name
        assert splitting.event_texts(written) == texts
        assert splitting.measures(written) == whole
        assert file.details["num_gpu_events"] == whole[0]["kernels"] == gpu_events
        assert file.details["gpu_duration"] == whole[0]["gpu_span_ns"] / 1000
        assert file.details["gpu_busy_duration"] == whole[0]["gpu_busy_ns"] / 1000
        document = json.loads(splitting.text_of(written))
        assert {k: v for k, v in document.items() if k != "traceEvents"} == envelope


@pytest.mark.parametrize("steps", ["0:1", "1:2"])
def test_a_step_of_real_training(shared_traces, tmp_path, steps):
    # two ProfilerSteps on one clock; the work of one is in no other
    path = shared_traces / "hta/timeline_analysis/sampled_rank-0.json.gz"
    whole, texts = splitting.measures(path), splitting.event_texts(path)
    (file,) = split(str(path), tmp_path, steps=steps).files
    written = tmp_path / file.name
    assert splitting.measures(written) == whole[int(steps[0]) : int(steps[0]) + 1]
    some = splitting.event_texts(written)
    assert len(some) < len(texts)
    assert splitting.are_in_order(some, texts)


# Variants of the generated run (data/README.md): steady from 3 to 15 in each


@pytest.fixture(scope="module")
def serving(repo_root):
    sys.path.insert(0, str(repo_root / "data"))
    try:
        from generators import serving
    finally:
        sys.path.pop(0)
    return serving


def variant(serving, name):
    requests = list(serving.REQUESTS)
    if name == "burst":  # eight more requests in step 8, for their prefill alone
        requests += [serving.Request(8, 512, 8)] * 8
    elif name == "stalled":  # request D pauses in 5 to 13
        requests[6] = serving.Request(3, 512, 16, stalled=range(5, 14))
    elif name == "idle":  # nothing runs in 8 and 9
        requests = [
            serving.Request(r.first, r.prompt, r.last, stalled=range(8, 10)) for r in requests
        ]
    return serving.draw(requests, serving.STEPS)


# windows as first and last step; decode and prefill steps of the mixed one
VARIANTS = {
    "plain": ((3, 15), (4, 6), (10, 11), 8, 5),
    "burst": ((3, 15), (4, 6), (7, 8), 7, 6),
    "stalled": ((3, 15), (4, 6), (10, 11), 8, 5),
    "idle": ((3, 15), (4, 6), (10, 11), 6, 5),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_the_generated_run(serving, tmp_path, name):
    path = tmp_path / "drawn.json"
    path.write_text(variant(serving, name).text(), encoding="utf-8")
    *windows, decodes, prefills = VARIANTS[name]
    report = split(str(path), tmp_path / "out")
    found = [(f.details["first_step"], f.details["last_step"]) for f in report.files]
    assert found == windows
    phase = report.files[0].details["phase"]
    assert (phase["num_decode"], phase["num_prefilldecode"]) == (decodes, prefills)
    whole, texts = splitting.measures(path), splitting.event_texts(path)
    for file, (first, last) in zip(report.files, windows, strict=True):
        written = tmp_path / "out" / file.name
        assert splitting.measures(written) == whole[first : last + 1]
        some = splitting.event_texts(written)
        assert splitting.are_in_order(some, texts)
        flows = [json.loads(text) for text in some if '"ac2g"' in text]
        ends = {phase: {f["id"] for f in flows if f["ph"] == phase} for phase in "sf"}
        assert ends["s"] == ends["f"] != set()
