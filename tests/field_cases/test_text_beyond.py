"""Texts and containers beyond the cases of field_cases A and B; both readers, any block size."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib

import pytest
from case_file import both_readers, codes, column, read_document, read_events
from reading import assert_same, read_text

import tracehouse
from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.decompress import unzstd
from tracehouse.ingest.text import utf8_blocks

TOLD = ("ORPHAN_KERNEL", "SHAPES_MISSING", "RANK_UNKNOWN")


def kernel(name: str, ts: object, args: str = '{"stream":7}') -> str:
    return (
        f'{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{ts},"dur":2,'
        f'"args":{args}}}'
    )


A, B, C = kernel("a", 1), kernel("b", 5), kernel("c", 9)
TEXT = '{"schemaVersion":1,"traceEvents":[\n' + ",\n".join([A, B, C]) + "\n]}"


def odd(trace):
    return {code: count for code, count in codes(trace).items() if code not in TOLD}


def names(trace):
    return column(trace.events, "name")


def in_blocks(text: str | bytes):
    """Read with both readers in blocks of several sizes: the one outcome."""
    data = text.encode() if isinstance(text, str) else text
    readings = [read_text(data, r, b) for r in ("scan", "ijson") for b in (1 << 20, 64, 7, 1)]
    for reading in readings[1:]:
        assert_same(readings[0], reading)
    return readings[0]


@both_readers
def test_a_number_of_thousands_of_digits(tmp_path, reader):
    # ijson's parser crashed the process on one.
    args = '{"x":1' + "0" * 5_000 + "}"
    trace = read_events(tmp_path, f"{A},{kernel('b', 5, args)},{C}", reader)
    assert (names(trace), odd(trace)) == (["a", "b", "c"], {})
    assert column(trace.events, "args")[1] == args


@pytest.mark.parametrize("first", [A, ""])
def test_a_second_list_is_found_at_any_block_border(first):
    reading = in_blocks(f'{{"traceEvents":[{first}],"x":1,"traceEvents":[{B}]}}')
    assert [row["name"] for row in reading.rows] == (["a", "b"] if first else ["b"])
    assert list(reading.findings) == ["REPAIRED_SYNTAX"]


def test_a_bare_list_that_goes_on_at_any_block_border():
    reading = in_blocks(f"[{A}],\n{B},{C}]")
    assert [row["name"] for row in reading.rows] == ["a", "b", "c"]


def test_many_commas_at_any_block_border():
    reading = in_blocks(f'{{"traceEvents":[{A},{"," * 10_000}{B},]}}')
    assert [row["name"] for row in reading.rows] == ["a", "b"]
    assert reading.findings == {"REPAIRED_SYNTAX": (10_001, 1)}


@pytest.mark.parametrize("hole", [4_096, 3 << 20])
def test_a_hole_of_zeros_costs_only_the_events_in_it(hole):
    events = [kernel(f"k{i}", 5 * i) for i in range(200)]
    text = ('{"traceEvents":[' + ",".join(events) + "]}").encode()
    holed = text[:4_000] + bytes(hole) + text[8_096:]
    scan, reference = (read_text(holed, r) for r in ("scan", "ijson"))
    assert_same(scan, reference)
    lost = {name for name in range(200) if f'"k{name}"' not in holed.decode()}
    kept = {int(row["name"][1:]) for row in scan.rows}
    assert len(set(range(200)) - kept - lost) <= 2  # the two at its borders
    assert scan.findings["DROPPED_EVENT"][0] <= 2


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_text_with_or_without_a_mark(encoding):
    text = TEXT.replace('"b"', '"é€😀"')
    data = text.encode(encoding)
    for block in (len(data), 7, 1):
        findings = Findings()
        blocks = (data[i : i + block] for i in range(0, len(data), block))
        assert b"".join(utf8_blocks(blocks, findings)) == text.encode()
        assert {f.code.word: f.count for f in findings} == {"ENCODING_FIXED": 1}


@both_readers
@pytest.mark.parametrize(
    ("mark", "count"),
    [("// a comment\n", 1), ("\ufeff", 1), ("<<<<<<< HEAD\n", 1), ("rank0: ", 1)],
)
def test_what_tools_put_between_events_costs_none(tmp_path, reader, mark, count):
    trace = read_events(tmp_path, f"{A},\n{mark}{B},\n{C}", reader)
    assert (column(trace.events, "event_id"), names(trace)) == ([0, 1, 2], ["a", "b", "c"])
    assert odd(trace) == {"REPAIRED_SYNTAX": count}


@both_readers
def test_every_line_has_the_prefix_of_a_tool(tmp_path, reader):
    trace = read_document(tmp_path, TEXT.replace("\n{", "\nrank0: {"), reader)
    assert (names(trace), odd(trace)) == (["a", "b", "c"], {"REPAIRED_SYNTAX": 3})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"{A}\n{B}\n{C}\n", 3),  # no list around, two commas missing
        (f"{A},\n{B},\n{C},\n", 2),  # no list around, a comma at the end
        (f"{A}\n", 1),
    ],
)
@both_readers
def test_json_lines(tmp_path, reader, text, count):
    trace = read_document(tmp_path, text, reader)
    assert names(trace) == (["a", "b", "c"] if B in text else ["a"])
    assert odd(trace) == {"REPAIRED_SYNTAX": count}
    assert in_blocks(text).is_complete


@both_readers
def test_json_lines_cut_off(tmp_path, reader):
    trace = read_document(tmp_path, f"{A}\n{B}\n{C[:-9]}", reader)
    assert names(trace) == ["a", "b"]
    assert odd(trace) == {"REPAIRED_SYNTAX": 3, "TRUNCATED": 1}


@both_readers
@pytest.mark.parametrize("before", ['{"a":1}\n', "INFO start\n", "// x\n", "\0" * 50, "trace = "])
@pytest.mark.parametrize("block", [1 << 22, 5])
def test_text_before_the_document(tmp_path, reader, before, block, monkeypatch):
    monkeypatch.setattr("tracehouse.ingest.containers.BLOCK_LENGTH", block)
    monkeypatch.setattr("tracehouse.ingest.containers._SHORTEST_BLOCK", block)
    trace = read_document(tmp_path, before + TEXT, reader)
    assert (names(trace), odd(trace)) == (["a", "b", "c"], {"REPAIRED_SYNTAX": 1})
    assert trace.envelope == {"schemaVersion": 1}


@both_readers
def test_events_lost_behind_the_document_are_told(tmp_path, reader):
    trace = read_document(tmp_path, TEXT + "]] x " + C, reader)
    assert (names(trace), odd(trace)) == (["a", "b", "c"], {"DROPPED_EVENT": 1})


@both_readers
@pytest.mark.parametrize("name", ["C:\\tmp\\", "D:\\new\\table\\", "lib\\cuda\\", 'a\\"b\\'])
def test_a_path_that_ends_in_a_backslash(tmp_path, reader, name):
    trace = read_events(tmp_path, f"{A},{kernel(name, 5)},{C}", reader)
    assert (names(trace), odd(trace)) == (["a", name, "c"], {"REPAIRED_ESCAPE": 1})


@both_readers
def test_single_quotes(tmp_path, reader):
    quoted = kernel("b", 5, "{'x':'it is','y':None}")
    trace = read_events(tmp_path, f"{A},{quoted},{C}", reader)
    assert column(trace.events, "args")[1] == '{"x":"it is","y":null}'
    assert odd(trace) == {"REPAIRED_SYNTAX": 3, "REPAIRED_NUMBER": 1}
    whole = B.replace('"', "'")
    trace = read_events(tmp_path, f"{A},{whole},{C}", reader)
    assert names(trace) == ["a", "b", "c"]


@both_readers
def test_spaces_that_are_none_in_json(tmp_path, reader):
    spaced = B.replace(":", ":\u00a0")
    trace = read_events(tmp_path, f"{A},{spaced},{C}", reader)
    assert (names(trace), column(trace.events, "ts_ns")) == (["a", "b", "c"], [1_000, 5_000, 9_000])
    assert odd(trace) == {"REPAIRED_CONTROL": 9}


@both_readers
def test_a_time_that_is_null(tmp_path, reader):
    trace = read_events(tmp_path, f"{A},{kernel('b', 'null')}", reader)
    assert (trace.events.num_rows, odd(trace)) == (2, {"BAD_NUMBER": 1})


def tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_tar(tmp_path, pack):
    path = tmp_path / "runs.tar.gz"
    path.write_bytes(
        pack(
            tar(
                {"r0.json": TEXT.encode(), "n.txt": b"x", "s/r1.json.gz": gzip.compress(A.encode())}
            )
        )
    )
    tracehouse.analyze(path, tmp_path / "out", workers=1)
    with tracehouse.open(tmp_path / "out") as warehouse:
        rows = warehouse.sql("SELECT path, kernels FROM traces ORDER BY path").to_pylist()
    assert [(r["path"].split("runs.tar.gz/")[1], r["kernels"]) for r in rows] == [
        ("r0.json", 3),
        ("s/r1.json.gz", 1),
    ]


@pytest.mark.parametrize(
    ("head", "name"),
    [(b"BZh91AY", "bzip2"), (b"\xfd7zXZ\0\0", "xz"), (b"7z\xbc\xaf\x27\x1c", "7z")],
)
def test_a_container_that_is_not_read_is_named(tmp_path, head, name):
    path = tmp_path / "a.json"
    path.write_bytes(head + bytes(100))
    with pytest.raises(RejectedFile, match=name) as caught:
        tracehouse.read(path)
    assert caught.value.code == "BAD_CONTAINER"


def test_zstd_that_needs_a_dictionary():
    findings = Findings()
    frame = b"\x28\xb5\x2f\xfd\x21\x07\x05" + zlib.compress(b"x")
    assert list(unzstd(lambda _: iter([frame]), findings)) == []
    assert "dictionary" in next(iter(findings)).example


@both_readers
@pytest.mark.parametrize(
    "name",
    [
        '{"name": "cpu", "dtype": "half"}(3): go',
        '{"name": "cpu", "id": 3}(3): go',
        'he said "go", "ts": done',
    ],
)
@pytest.mark.parametrize("is_alone", [False, True])
def test_a_name_that_holds_keys_of_events(tmp_path, reader, name, is_alone):
    event = kernel(name, 5)
    trace = read_events(tmp_path, event if is_alone else f"{A},{event},{C}", reader)
    assert names(trace) == ([name] if is_alone else ["a", name, "c"])
    assert odd(trace) == {"REPAIRED_ESCAPE": 1}
    assert 5_000 in column(trace.kernels, "ts_ns")


@both_readers
def test_an_event_is_not_mended_by_losing_a_key(tmp_path, reader):
    broken = '{"name":"b","ts"=1,"cat":"kernel","pid":0,"tid":7}'
    trace = read_events(tmp_path, f"{A},{broken},{C}", reader)
    assert (names(trace), odd(trace)) == (["a", "c"], {"DROPPED_EVENT": 1})
