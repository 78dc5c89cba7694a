"""The trace builder of the tests says exactly what it was told."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracegen import Trace


def small() -> Trace:
    return (
        Trace(rank=3)
        .op("aten::mm", 0, 50, **{"Input Dims": [[2, 3], [3, 4]]})
        .launch(5, "4.5", correlation=1)
        .kernel("gemm", "1700000000000010.125", "20.000", correlation=1)
        .memset(40, 1)
        .flow(5, 10, 1)
    )


@pytest.mark.parametrize("layout", ["kineto", "compact"])
@pytest.mark.parametrize("place", ["before", "after", "around"])
def test_every_layout_says_the_same(layout: str, place: str) -> None:
    document = json.loads(small().text(layout, place), parse_float=Decimal)  # type: ignore[arg-type]
    assert document == small().document()
    keys = list(document)
    at = keys.index("traceEvents")
    assert at == {"before": len(keys) - 1, "after": 0, "around": 1}[place]


def test_bare_array() -> None:
    text = small().text("compact", "none")
    assert json.loads(text, parse_float=Decimal) == small().events()


def test_times_reach_the_text_digit_for_digit() -> None:
    text = small().text("compact")
    assert '"ts":1700000000000010.125,"dur":20.000' in text
    assert '"ts":5,"dur":4.5' in text


def test_rows() -> None:
    op, launch, kernel, fill, start, finish = small().events()
    assert op["cat"] == "cpu_op"
    assert op["args"]["Input Dims"] == [[2, 3], [3, 4]]
    assert launch["args"]["correlation"] == kernel["args"]["correlation"] == 1
    assert (kernel["pid"], kernel["tid"]) == (0, 7)
    assert "correlation" not in fill["args"]
    assert (start["ph"], finish["ph"], finish["bp"]) == ("s", "f", "e")


def test_raw_text_stays_as_it_is() -> None:
    assert '{"ph":"X",,}' in small().raw('{"ph":"X",,}').text()


def test_gz_is_compressed(tmp_path: Path) -> None:
    path = small().write(tmp_path / "deep" / "trace.json.gz")
    assert gzip.decompress(path.read_bytes()) == small().data()


@pytest.mark.parametrize("us", ["1e3", "", ".5", "1.", "NaN", "1 "])
def test_no_time_but_a_plain_one(us: str) -> None:
    with pytest.raises(TypeError, match="decimal"):
        Trace().op("a", us, 1)


@given(ns=st.integers(0, 2**62))
def test_any_nanosecond_survives(ns: int) -> None:
    us = f"{ns // 1000}.{ns % 1000:03d}"
    [event] = Trace().kernel("k", us, 1).events()
    assert event["ts"] * 1000 == ns
