"""Both readers make equal tables of every trace there is, and of traces made to be difficult."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import assert_same, read_text

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"


def traces(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*.json.gz"))


MOST = 12 << 20  # of a longer text its first events: ijson takes a second for 6 MB
NEXT_EVENT = re.compile(rb'\},\s*\{\s*"ph"')


def beginning(text: bytes) -> bytes:
    """Return a text of at most MOST bytes and a bit, its list of events closed."""
    if len(text) <= MOST:
        return text
    border = NEXT_EVENT.search(text, MOST)
    assert border is not None
    return text[: border.start() + 1] + b"]}"


def text_of(path: Path) -> bytes:
    """Decompress as much as there is."""
    return zlib.decompressobj(31).decompress(path.read_bytes())


@pytest.mark.parametrize("name", traces(SAMPLES))
def test_samples(name: str) -> None:
    text = text_of(SAMPLES / name)
    assert_same(read_text(text, "scan", 1000), read_text(text, "ijson"))


@pytest.mark.parametrize("name", traces(SHARED) or ["(none)"])
def test_real_traces(shared_traces: Path, name: str) -> None:
    text = beginning(gzip.decompress((shared_traces / name).read_bytes()))
    scan = read_text(text, "scan", 1 << 17)
    assert scan.is_complete
    assert scan.events.num_rows == len(json.loads(text)["traceEvents"])
    assert_same(scan, read_text(text, "ijson", 1 << 22))


# Events made of all that JSON allows, more of it odd than in any trace.

texts = st.one_of(
    st.sampled_from(
        ["aten::mm", "kernel", "cpu_op", "X", "5", "-7", "007", "", "é", "𝄞", '"', "\\", "/"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(0, 10_000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(min_value=-(10**16), max_value=10**16, allow_nan=False, places=5).map(
        lambda d: json.loads(str(d), parse_float=float)
    ),
)
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
arg_keys = st.one_of(
    st.sampled_from(
        [
            "correlation",
            "External id",
            "external id",
            "stream",
            "device",
            "bytes",
            "Input Dims",
            "Input type",
        ]
    ),
    texts,
)
args = st.one_of(st.dictionaries(arg_keys, values, max_size=6), scalars)
keys = st.one_of(
    st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp"]), texts
)
events = st.one_of(
    st.builds(
        lambda plain, more: plain | more,
        st.fixed_dictionaries(
            {
                "ph": st.just("X"),
                "cat": st.sampled_from(["cpu_op", "kernel"]),
                "ts": numbers,
                "dur": numbers,
            }
        ),
        st.fixed_dictionaries(
            {}, optional={"args": args, "pid": scalars, "tid": scalars, "name": scalars}
        ),
    ),
    st.builds(
        lambda a, b: a | ({} if b is None else {"args": b}),
        st.dictionaries(keys, values, max_size=6),
        st.one_of(st.none(), args),
    ),
)


@given(
    st.lists(events, max_size=12),
    st.booleans(),
    st.sampled_from([None, (",", ":"), (" ,\n", " :\t")]),
    st.integers(7, 400),
)
def test_any_events(
    made: list[dict[str, object]], is_ascii: bool, separators: tuple[str, str] | None, block: int
) -> None:
    document = {"before": 1, "traceEvents": made, "after": {"a": [1, 2.50]}}
    text = json.dumps(document, ensure_ascii=is_ascii, separators=separators).encode()
    scan = read_text(text, "scan", block)
    assert scan.events.num_rows == len(made)
    assert_same(scan, read_text(text, "ijson"))


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+|[{}\[\],:]')


@given(
    st.lists(events, min_size=1, max_size=4),
    st.lists(st.sampled_from(["", "", "", " ", "\n  ", "\r\n\t", " " * 31, " " * 70]), min_size=1),
    st.integers(7, 400),
)
def test_any_white_space(made: list[dict[str, object]], spaces: list[str], block: int) -> None:
    # The same keys again and again, each time with other space around them.
    tokens = TOKEN.findall(json.dumps({"traceEvents": made * 3}))
    text = "".join(token + spaces[i % len(spaces)] for i, token in enumerate(tokens)).encode()
    assert json.loads(text) == {"traceEvents": made * 3}
    scan = read_text(text, "scan", block)
    assert scan.events.num_rows == 3 * len(made)
    assert_same(scan, read_text(text, "ijson"))


@given(st.lists(events, min_size=1, max_size=6), st.data())
def test_text_cut_anywhere(made: list[dict[str, object]], data: st.DataObject) -> None:
    whole = json.dumps({"traceEvents": made}).encode()
    start = whole.index(b"[") + 1
    text = whole[: data.draw(st.integers(start, len(whole) - 1))]
    scan = read_text(text, "scan", 64)
    assert not scan.is_complete
    assert_same(scan, read_text(text, "ijson"))
    # Every event that is complete is there, as it is in the whole text.
    complete = 0
    decoder = json.JSONDecoder()
    rest = text[start:].decode(errors="ignore")
    while rest.startswith("{"):
        try:
            _, end = decoder.raw_decode(rest)
        except json.JSONDecodeError:
            break
        complete += 1
        rest = rest[end:].removeprefix(", ")
    assert scan.events.equals(read_text(whole, "scan").events.slice(0, complete))


@given(st.lists(events, max_size=6), st.lists(scalars, max_size=3), st.randoms())
def test_items_that_are_no_events(made: list[object], others: list[object], random: object) -> None:
    items = [*made, *others]
    random.shuffle(items)  # type: ignore[attr-defined]
    text = json.dumps({"traceEvents": items}).encode()
    scan = read_text(text, "scan", 50)
    assert scan.findings.get("DROPPED_EVENT", (0, None))[0] == len(others)
    assert scan.events["event_id"].to_pylist() == [
        i for i, item in enumerate(items) if isinstance(item, dict)
    ]
    assert_same(scan, read_text(text, "ijson"))


@pytest.mark.parametrize("block", [16, 50, 64])
def test_a_block_may_end_right_behind_the_event_list(block: int) -> None:
    for pad in range(600):
        text = json.dumps({"traceEvents": [{"ph": "X", "args": "", "b": "x" * pad}]}).encode()
        if len(text) % block == 1:  # the last block is the last brace alone
            assert_same(read_text(text, "scan", block), read_text(text, "ijson"))


@pytest.mark.parametrize("depth", [59, 60, 61, 200])
def test_deep_values(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    text = f'{{"traceEvents":[{{"ts":1,"args":{{"a":{nested}}}}},{{"ts":2}}]}}'.encode()
    scan = read_text(text, "scan")
    assert scan.events.num_rows == (2 if depth <= 60 else 1)  # deeper ones are dropped, and told
    assert scan.findings.get("DROPPED_EVENT") == (None if depth <= 60 else (1, 0))
    assert_same(scan, read_text(text, "ijson"))


def test_lone_surrogates() -> None:
    text = b'{"traceEvents":[{"name":"a\\ud800b\\ud83d\\ude00","args":{"a":"\\uD800x"}},{"n":1}]}'
    scan = read_text(text, "scan")
    assert scan.events["name"].to_pylist() == ["a?b😀", None]
    assert scan.events["args"].to_pylist() == ['{"a":"\\ud800x"}', None]
    assert_same(scan, read_text(text, "ijson"))
