"""What `export` writes is what was read, for every trace there is and for events made to be odd."""

from __future__ import annotations

import io
import json
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_text

import tracehouse
from tracehouse.commands.analyze import analyze
from tracehouse.commands.export import export
from tracehouse.ingest.fields import WORD_KEYS
from tracehouse.ingest.writeback import EVENT_COLUMNS, EventWriter
from tracehouse.schema.tables import EVENTS
from tracehouse.storage import writer

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
# Of longer texts, fractions are compared as doubles, which parse five times as fast.
EXACT_LENGTH = 12 << 20


def parsed(text: str, length: int) -> Any:
    return json.loads(text, parse_float=Decimal if length < EXACT_LENGTH else None)


def text_of(path: Path) -> str:
    return zlib.decompress(path.read_bytes(), 31).decode()


def exported(out: Path, path: Path) -> str:
    target = io.BytesIO()
    export(out, str(path), target)
    return target.getvalue().decode()


def assert_equal(out: Path, path: Path) -> None:
    text = text_of(path)
    original, back = parsed(text, len(text)), parsed(exported(out, path), len(text))
    assert original.keys() == back.keys()
    for key, value in original.items():
        if key != "traceEvents":
            assert back[key] == value, key
    events = original["traceEvents"]
    assert len(back["traceEvents"]) == len(events)
    for number, (event, written) in enumerate(zip(events, back["traceEvents"], strict=True)):
        assert written == event, number


def test_samples(tmp_path):
    # One is cut off on purpose.
    paths = [p for p in sorted(SAMPLES.rglob("*.json.gz")) if p.name != "truncated.json.gz"]
    assert paths
    analyze([str(path) for path in paths], tmp_path / "out", workers=1)
    for path in paths:
        assert_equal(tmp_path / "out", path)


def test_a_trace_over_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_ROWS", 100)  # of 875, 240 and 86 events
    paths = [SAMPLES / f"{name}.json.gz" for name in ("serving", "training", "triton_block")]
    analyze([str(path) for path in paths], tmp_path / "out", workers=1)
    for path in paths:
        assert_equal(tmp_path / "out", path)


def test_real_traces(shared_traces, tmp_path):
    """Nothing in them is a secret, so that all of it comes back."""
    paths = sorted(shared_traces.rglob("*.json.gz"))
    out = tmp_path / "out"
    captures = [path for path in paths if path.parent.name == "capture_traces"]
    paths = [path for path in paths if path not in captures]
    analyze([str(path) for path in paths], out, workers=1)
    with tracehouse.open(out) as warehouse:
        assert warehouse.sql("FROM issues WHERE code = 'SECRET_REDACTED'").num_rows == 0
    for path in paths:
        assert_equal(out, path)
    beside = tmp_path / "captures"  # beside no trace they are traces like others
    analyze([str(path) for path in captures], beside, workers=1)
    for path in captures:
        assert_equal(beside, path)


# Events of all that JSON allows, more of it odd than in any trace.

texts = st.one_of(
    st.sampled_from(
        ["kernel", "X", "5", "-7", "007", "", "é", "𝄞", '"', "\\", '{"ts":1}', ',"ts":']
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(0, 10_000),
    st.sampled_from(["-0.5", "0.001", "1e3", "1.2345", "9223372036854775.807", "1e400"]).map(
        Decimal
    ),
    st.decimals(-(10**16), 10**16, allow_nan=False, allow_infinity=False, places=3),
)
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
keys = st.one_of(st.sampled_from([*WORD_KEYS, "ts", "dur", "id", "args", "tts"]), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)
events = st.lists(st.dictionaries(keys, st.one_of(scalars, values), max_size=8), max_size=6)


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def written_back(text: str) -> str:
    """The events of a document, read and written, with a comma before each."""
    table = read_text(text.encode(), "scan").events
    arrays = [pa.array(table[c].to_pylist(), EVENTS.schema.field(c).type) for c in EVENT_COLUMNS]
    rows = pa.RecordBatch.from_arrays(arrays, EVENT_COLUMNS)
    return b"".join(EventWriter().texts(rows).to_pylist()).decode()


@given(events)
def test_odd_events(drawn):
    text = written({"traceEvents": drawn})
    back = "[" + written_back(text).removeprefix(",") + "]"
    assert parsed(back, 0) == parsed(text, 0)["traceEvents"]


@pytest.mark.parametrize(
    ("ns", "us"),
    [(0, "0"), (5, "0.005"), (1_500, "1.5"), (-1, "-0.001"), (2**63 - 1, "9223372036854775.807"),
     (-(2**63), "-9223372036854775.808")],
)  # fmt: skip
def test_times_in_microseconds(ns, us):
    text = f'[{{"ph":"i","ts":{us}}}]'
    assert read_text(text.encode(), "scan").events["ts_ns"].to_pylist() == [ns]
    assert written_back(text) == f',\n{{"ph":"i","ts":{us}}}'
