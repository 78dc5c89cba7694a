"""The generator of data/samples: the same files every time, laid out and tied as Kineto does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

DRAWN = (
    "triton_block.json.gz",
    "serving.json.gz",
    "two_ranks/rank0.json.gz",
    "two_ranks/rank1.json.gz",
    "training.json.gz",
    "truncated.json.gz",
)
WHOLE = DRAWN[:-1]
CAPTURED = ("torch_cpu.json.gz",)


def inflated(data: bytes) -> str:
    """Decompress all there is, be the stream complete or cut off."""
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data).decode()


@pytest.fixture(scope="module")
def samples(repo_root: Path) -> Path:
    return repo_root / "data" / "samples"


@pytest.fixture(scope="module")
def rewritten(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    generator = repo_root / "data" / "generate.py"
    subprocess.run([sys.executable, "-B", generator, folder], check=True, cwd=folder)
    return folder


def events_of(samples: Path, name: str) -> list[dict[str, Any]]:
    text = inflated((samples / name).read_bytes())
    events: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return events


def test_folder_holds_what_is_made(samples: Path, rewritten: Path) -> None:
    here = {p.relative_to(samples).as_posix() for p in samples.rglob("*") if p.is_file()}
    made = {p.relative_to(rewritten).as_posix() for p in rewritten.rglob("*") if p.is_file()}
    assert made == set(DRAWN)
    assert here == made | set(CAPTURED)


@pytest.mark.parametrize("name", DRAWN)
def test_rewriting_changes_no_text(samples: Path, rewritten: Path, name: str) -> None:
    assert inflated((rewritten / name).read_bytes()) == inflated((samples / name).read_bytes())


@pytest.mark.parametrize("name", DRAWN)
def test_rewriting_changes_no_byte(samples: Path, rewritten: Path, name: str) -> None:
    if "ng" in zlib.ZLIB_RUNTIME_VERSION:
        pytest.skip("zlib-ng packs the same text differently; the samples were packed by zlib")
    assert (rewritten / name).read_bytes() == (samples / name).read_bytes()


@pytest.mark.parametrize("name", DRAWN + CAPTURED)
def test_small_and_free_of_times_and_places(samples: Path, name: str) -> None:
    data = (samples / name).read_bytes()
    assert len(data) <= 200_000
    assert data[3:8] == bytes(5), "no flags, no time in the gzip header"
    text = inflated(data)
    assert not re.findall(r'"(?:/|[A-Za-z]:\\\\)[^"]*"', text), "no absolute path"
    assert not re.findall(r'"(?:host_?name|user_?name)"', text)


def test_readme_knows_every_sample(repo_root: Path) -> None:
    readme = (repo_root / "data" / "README.md").read_text(encoding="utf-8")
    for name in DRAWN + CAPTURED:
        assert name.removeprefix("two_ranks/") in readme, name


@pytest.mark.parametrize("name", WHOLE)
def test_stream_is_whole(samples: Path, name: str) -> None:
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    stream.decompress((samples / name).read_bytes())
    assert stream.eof
    assert stream.unused_data == b""


def test_truncated_is_the_start_of_training(samples: Path) -> None:
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    text = stream.decompress((samples / "truncated.json.gz").read_bytes()).decode()
    assert not stream.eof, "the compressed stream ends early"
    whole = inflated((samples / "training.json.gz").read_bytes())
    assert whole.startswith(text)
    assert len(text) < len(whole)
    last = text[text.rindex("  {\n") :]
    assert last.count("}") == 0, "the text ends in the middle of an event"


@pytest.mark.parametrize("name", WHOLE)
def test_times_are_written_as_kineto_does(samples: Path, name: str) -> None:
    text = inflated((samples / name).read_bytes())
    times = re.findall(r'"(?:ts|dur)": ([^,\n ]+)', text)
    assert times
    assert not [t for t in times if not re.fullmatch(r"\d+\.\d{3}", t)]
    starts = [e["ts"] for e in events_of(samples, name)]
    assert min(starts) == 5_000_000_000_000


@pytest.mark.parametrize("name", WHOLE)
def test_flows_tie_launch_and_activity(samples: Path, name: str) -> None:
    events = events_of(samples, name)
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat", "").startswith("cuda_")}
    flows = [e for e in events if e.get("cat") == "ac2g"]
    starts = {e["id"]: e for e in flows if e["ph"] == "s"}
    ends = Counter((e["id"], e["pid"], e["tid"], e["ts"]) for e in flows if e["ph"] == "f")
    gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert len(starts) == sum(e["ph"] == "s" for e in flows)
    assert {e["args"]["correlation"] for e in gpu} == set(starts)
    assert ends == Counter((e["args"]["correlation"], e["pid"], e["tid"], e["ts"]) for e in gpu)
    for correlation, start in starts.items():
        call = calls[correlation]
        assert (start["pid"], start["tid"], start["ts"]) == (call["pid"], call["tid"], call["ts"])
    for e in gpu:
        assert e["ts"] > calls[e["args"]["correlation"]]["ts"], "a kernel follows its launch"
        assert (e["pid"], e["tid"]) == (e["args"]["device"], e["args"]["stream"])


@pytest.mark.parametrize("name", WHOLE)
def test_rows_of_a_thread_nest_and_rows_of_a_stream_follow(samples: Path, name: str) -> None:
    lanes: dict[tuple[bool, int, int], list[tuple[Decimal, Decimal]]] = {}
    for e in events_of(samples, name):
        if e["ph"] == "X" and e["cat"] not in ("Trace", "gpu_user_annotation"):
            on_gpu = "stream" in e["args"] and "correlation" in e["args"]
            span = (e["ts"], e["ts"] + e["dur"])
            lanes.setdefault((on_gpu, e["pid"], e["tid"]), []).append(span)
    assert {on_gpu for on_gpu, _, _ in lanes} == {True, False}
    for (on_gpu, _, _), spans in lanes.items():
        open_ends: list[Decimal] = []
        for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if on_gpu:
                assert not open_ends, "streams run one activity at a time"
            elif open_ends:
                assert end <= open_ends[-1], "a child ends within its parent"
            open_ends.append(end)


@pytest.mark.parametrize("name", WHOLE)
def test_calls_carry_the_id_of_their_op(samples: Path, name: str) -> None:
    events = events_of(samples, name)
    host = [e for e in events if e.get("cat") in ("cpu_op", "user_annotation")]
    by_id = {e["args"]["External id"]: e for e in host}
    assert len(by_id) == len(host)
    tied = [
        e for e in events if e.get("cat", "").startswith("cuda_") and "External id" in e["args"]
    ]
    assert tied
    for call in tied:
        op = by_id[call["args"]["External id"]]
        assert op["tid"] == call["tid"]
        assert op["ts"] <= call["ts"]
        assert call["ts"] + call["dur"] <= op["ts"] + op["dur"]


def test_backward_points_at_forward(samples: Path) -> None:
    events = events_of(samples, "training.json.gz")
    ops = [e for e in events if e.get("cat") == "cpu_op" and "Sequence number" in e["args"]]
    forward = {e["args"]["Sequence number"]: e for e in ops if e["args"]["Fwd thread id"] == 0}
    backward = [e for e in ops if e["args"]["Fwd thread id"] == 1]
    assert len(forward) == 8  # four a step
    assert len(backward) == 16  # the engine's call and the node itself
    for e in backward:
        origin = forward[e["args"]["Sequence number"]]
        assert origin["tid"] != e["tid"]
        assert origin["ts"] < e["ts"]


@pytest.mark.parametrize(
    ("us", "expected"),
    [(3, 3000), ("79.4", 79_400), ("0.001", 1), ("12740.9", 12_740_900), ("5.", 5000)],
)
def test_microseconds_become_nanoseconds(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch, us: int | str, expected: int
) -> None:
    monkeypatch.syspath_prepend(repo_root / "data")
    from generators.kineto import ns

    assert ns(us) == expected
