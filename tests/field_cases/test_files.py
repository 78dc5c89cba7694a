"""field_cases A: containers and encodings, through the whole pipeline."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest
from case_file import both_readers
from tracegen import Trace

import tracehouse


def kernels(count: int) -> bytes:
    """A trace of `count` kernels of 2 µs, one every 5 µs."""
    trace = Trace()
    for i in range(count):
        trace.kernel(f"k{i % 7}", 5 * i, 2)
    return trace.data()


def outcome(folder, files: dict[str, bytes], reader: str = "scan"):
    """Analyse files; per path below the folder: status, kernels, busy and codes of its trace."""
    archive = folder / "archive"
    for name, content in files.items():
        path = archive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    tracehouse.analyze(archive, folder / "warehouse", workers=1, reader=reader)
    with tracehouse.open(folder / "warehouse") as warehouse:
        rows = warehouse.sql(
            "SELECT path, status, kernels, busy_ns, list(code ORDER BY code) AS codes, trace_id"
            " FROM traces LEFT JOIN trace_timeline USING (trace_id)"
            " LEFT JOIN (SELECT * FROM issues WHERE code <> 'RANK_UNKNOWN') USING (trace_id)"
            " GROUP BY ALL"
        ).to_pylist()
    prefix = f"{archive}/"
    return {row.pop("path").removeprefix(prefix): row for row in rows}


def shown(row) -> tuple[object, ...]:
    codes = [c for c in row["codes"] if c not in (None, "ORPHAN_KERNEL", "SHAPES_MISSING")]
    return row["status"], row["kernels"], row["busy_ns"], codes


@both_readers
def test_f01_name_and_content_disagree(tmp_path, reader):
    text = kernels(3)
    found = outcome(
        tmp_path,
        {"rank0.pt.trace.json": gzip.compress(text), "rank1.pt.trace.json.gz": text + b" "},
        reader,
    )
    for row in found.values():
        assert shown(row) == ("ok", 3, 6_000, ["WRONG_SUFFIX"])


@both_readers
def test_f02_compressed_file_cut_off(tmp_path, reader):
    packed = gzip.compress(kernels(1_000))
    whole = outcome(tmp_path / "1", {"a.json.gz": packed[: len(packed) * 7 // 10]}, reader)
    status, count, busy, codes = shown(whole["a.json.gz"])
    assert (status, codes) == ("partial", ["TRUNCATED"])
    assert 500 < count < 1_000
    assert busy == 2_000 * count
    wrong = packed[:-8] + bytes(4) + packed[-4:]  # the checksum
    row = outcome(tmp_path / "2", {"a.json.gz": wrong}, reader)["a.json.gz"]
    assert shown(row) == ("partial", 1_000, 2_000_000, ["TRUNCATED"])


def test_f03_several_members(tmp_path):
    text = kernels(50)
    middle = text.index(b'"dur"') + 9  # inside a number
    found = outcome(
        tmp_path,
        {"a.json.gz": gzip.compress(text[:middle]) + gzip.compress(text[middle:])},
    )
    assert shown(found["a.json.gz"]) == ("ok", 50, 100_000, ["MULTI_MEMBER"])


@both_readers
def test_f04_documents_one_after_the_other(tmp_path, reader):
    text = b"".join(
        b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":10,"dur":5,'
        b'"args":{}}]}\n' % i
        for i in (0, 1)
    )
    found = outcome(tmp_path, {"a.json": text}, reader)
    assert sorted(found) == ["a.json", "a.json#1"]
    for row in found.values():
        assert shown(row) == ("repaired", 1, 5_000, ["MULTI_DOC"])
    assert len({row["trace_id"] for row in found.values()}) == 2


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"", mtime=0), b"", b" \n\t "],
    ids=["empty gzip", "no bytes", "blanks"],
)
def test_f05_nothing_inside(tmp_path, content):
    found = outcome(tmp_path, {"a.json": content})
    assert shown(found["a.json"])[0] == "rejected"
    assert "EMPTY_FILE" in found["a.json"]["codes"]


def test_f06_zip_of_everything(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.mkdir("run1")
        archive.writestr("run1/r0.json.gz", gzip.compress(kernels(1)))
        archive.writestr("run1/r1.json", kernels(2))
        archive.writestr("run2/r1.json", kernels(3))
        archive.writestr("run1/notes.txt", "hello")
        archive.writestr("__MACOSX/run1/._r1.json", b"\x00\x05")
        archive.writestr("../../evil.json", kernels(4))
    found = outcome(tmp_path, {"all.zip": packed.getvalue()})
    counts = {path: row["kernels"] for path, row in found.items()}
    assert counts == {
        "all.zip/run1/r0.json.gz": 1,
        "all.zip/run1/r1.json": 2,
        "all.zip/run2/r1.json": 3,
        "all.zip/../../evil.json": 4,
    }
    assert {row["status"] for row in found.values()} == {"ok"}
    assert any("MEMBER_SKIPPED" in row["codes"] for row in found.values())
    assert not list(tmp_path.rglob("evil*"))


def test_f07_half_written_neighbour(tmp_path):
    found = outcome(tmp_path, {"a.json": kernels(1), "b.json.tmp": kernels(2)[:-30]})
    assert {path: row["status"] for path, row in found.items()} == {"a.json": "ok"}


@both_readers
def test_f08_marks_and_wide_text(tmp_path, reader):
    text = kernels(2)
    found = outcome(
        tmp_path,
        {
            "mark.json": b"\xef\xbb\xbf" + text,
            "wide.json": b"\xff\xfe" + text.decode().encode("utf-16-le"),
        },
        reader,
    )
    assert shown(found["mark.json"]) == ("ok", 2, 4_000, ["ENCODING_BOM"])
    assert shown(found["wide.json"]) == ("repaired", 2, 4_000, ["ENCODING_FIXED"])


@both_readers
def test_f09_bytes_that_are_not_utf8(tmp_path, reader):
    text = (
        b'{"traceEvents":[\n{"ph":"X","cat":"cpu_op","name":"load \xe9\xff.bin","pid":9,"tid":9,'
        b'"ts":1.0,"dur":2.0,"args":{}},\n{"ph":"X","cat":"kernel","name":"copy_k","pid":0,"tid":7,'
        b'"ts":2.0,"dur":4.0,"args":{"stream":7}}\n]}'
    )
    found = outcome(tmp_path, {"a.json": text}, reader)
    assert shown(found["a.json"]) == ("repaired", 1, 4_000, ["ENCODING_FIXED"])
    with tracehouse.open(tmp_path / "warehouse") as warehouse:
        assert warehouse.table("ops")["name"].to_pylist() == ["load ��.bin"]


def test_f10_json_but_no_trace(tmp_path):
    other = b'{"schema":"1.1.1-chakra.0.0.4","pid":41,"nodes":[{"id":1,"name":"process"}]}'
    listed = b'[{"file":"traceEvents","mode":"FULL"}]'
    found = outcome(tmp_path, {"et.json": other, "list.json": listed, "t.json": kernels(1)})
    assert found["t.json"]["status"] == "ok"
    for name in ("et.json", "list.json"):
        assert found[name]["status"] == "rejected"
        assert "NOT_A_TRACE" in found[name]["codes"]
