from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
import zlib
from pathlib import Path

import fsspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.errors import RejectedFile
from tracehouse.findings import Findings
from tracehouse.ingest.containers import Member, members

TRACE = b'{"traceEvents": []}'
_random = random.Random(7)
LONG = b"".join(
    b'{"ph":"X","name":"k%d","ts":%d},\n' % (_random.randrange(90), _random.randrange(10**12))
    for _ in range(30_000)
)


def opened(data: bytes, name: str) -> tuple[list[Member], Findings]:
    findings = Findings()
    return list(members(io.BytesIO(data), name, findings)), findings


def read(data: bytes, name: str = "x") -> tuple[bytes, Findings]:
    """Decode a file of one text; its findings and the file's together."""
    (member,), findings = opened(data, name)
    text = b"".join(member.blocks())
    findings.merge(member.findings)
    return text, findings


def words(findings: Findings) -> list[str]:
    return [f.code.word for f in findings]


def example(findings: Findings, word: str) -> str | None:
    return next(f.example for f in findings if f.code.word == word)


def outcome(source: str | io.BytesIO) -> tuple[list[bytes], set[str]]:
    """Read all that a file gives: texts, and the words of its findings and rejections."""
    findings = Findings()
    texts, codes = [], set()
    try:
        for member in members(source, "x", findings):
            try:
                texts.append(b"".join(member.blocks()))
            except RejectedFile as error:
                codes.add(error.code)
            findings.merge(member.findings)
    except RejectedFile as error:
        codes.add(error.code)
    return texts, codes | set(words(findings))


def zipped(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


class Unseekable(io.RawIOBase):
    """Makes zipfile write sizes behind the data, as programs that stream do."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def streamed_zip(*entries: tuple[str, bytes]) -> bytes:
    file = Unseekable()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return bytes(file.data)


def skippable(data: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A53, len(data)) + data


PACKED = {"gz": gzip.compress, "zst": zstandard.compress, "zip": lambda d: zipped(("t.json", d))}


# --- what a file is -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["gz", "zst", "zip", ""])
def test_content_and_suffix_agree(suffix):
    name = f"t.json.{suffix}" if suffix else "t.json"
    text, findings = read(PACKED.get(suffix, bytes)(LONG), name)
    assert text == LONG
    assert words(findings) == []


@pytest.mark.parametrize(
    ("name", "suffix", "said"),
    [
        ("rank0.pt.trace.json", "gz", "rank0.pt.trace.json is gzip"),  # F01
        ("rank1.pt.trace.json.gz", "", "rank1.pt.trace.json.gz is text"),  # F01
        ("a/x.zip", "zst", "x.zip is zstd"),
        ("x.gz", "zip", "x.gz is zip"),
    ],
)
def test_content_decides_against_the_suffix(name, suffix, said):
    text, findings = read(PACKED.get(suffix, bytes)(TRACE), name)
    assert text == TRACE
    assert words(findings) == ["WRONG_SUFFIX"]
    assert example(findings, "WRONG_SUFFIX") == said


def test_a_name_that_promises_nothing_is_never_wrong():
    assert words(read(gzip.compress(TRACE), "trace.1774")[1]) == []


def test_blocks_are_large_and_can_be_read_again():
    text = LONG * 20  # about 20 MB
    for pack in (gzip.compress, zstandard.compress, bytes):
        (member,), _ = opened(pack(text), "x")
        first = list(member.blocks())
        assert b"".join(first) == text
        assert all(2 << 20 <= len(block) <= 8 << 20 for block in first[:-1])
        assert list(member.blocks()) == first


def test_findings_count_once_however_often_it_is_read():
    (member,), _ = opened(gzip.compress(LONG)[:-50_000], "x.gz")
    next(member.blocks())
    assert words(member.findings) == []
    for _ in range(2):
        list(member.blocks())
        assert member.findings.count("TRUNCATED") == 1


def test_path_and_url(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(TRACE))
    (member,) = members(str(path), str(path), Findings())
    assert b"".join(member.blocks()) == TRACE
    url = f"memory:///{tmp_path.name}/t.zip"
    fsspec.filesystem("memory").pipe_file(url, zipped(("a.json", TRACE)))
    (member,) = members(url, url, Findings())
    assert (member.name, b"".join(member.blocks())) == ("a.json", TRACE)


def test_read_errors_are_rejections_in_the_systems_words(tmp_path):
    for path, said in ((tmp_path / "gone.json", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(RejectedFile, match=said) as caught:
            list(members(str(path), path.name, Findings()))
        assert caught.value.code == "READ_FAILED"


# --- nothing inside -----------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("text", [b"", b" \n\t\r\n"])
def test_no_bytes_or_blanks_are_an_empty_file(pack, text):  # F05
    with pytest.raises(RejectedFile) as caught:
        read(pack(text))
    assert caught.value.code == "EMPTY_FILE"


def test_archives_without_a_trace():
    for data, code in (
        (zipped(), "EMPTY_FILE"),
        (zipped(("notes.txt", b"hi"), ("README", b"# hi")), "NOT_A_TRACE"),
        (b"PK\x03\x04 and then nonsense", "BAD_CONTAINER"),
    ):
        with pytest.raises(RejectedFile) as caught:
            read(data)
        assert caught.value.code == code


@pytest.mark.parametrize(
    "data",
    [
        b"\x1f\x8b",
        gzip.compress(LONG, mtime=0)[:10],
        gzip.compress(LONG, mtime=0)[:10] + b"\xff" * 100,
        b"\x1f\x8b\x07" + bytes(50),
        zstandard.compress(LONG)[:12],
        b"\x28\xb5\x2f\xfd" + b"\xff" * 60,
        skippable(b"abc")[:9],
    ],
)
def test_nothing_decodes(data):
    with pytest.raises(RejectedFile, match=r"stream|header") as caught:
        read(data)
    assert caught.value.code == "BAD_CONTAINER"


# --- gzip ---------------------------------------------------------------------------------------


def test_members_are_joined():  # F03: cut in the middle of a number
    text, findings = read(gzip.compress(LONG[:1001]) + gzip.compress(LONG[1001:]), "x.gz")
    assert text == LONG
    assert words(findings) == ["MULTI_MEMBER"]
    assert example(findings, "MULTI_MEMBER") == "2 gzip members"


def test_hundreds_of_members():
    parts = [LONG[i : i + 3000] for i in range(0, len(LONG), 3000)]
    text, findings = read(b"".join(map(gzip.compress, parts)))
    assert text == LONG
    assert words(findings) == ["MULTI_MEMBER"]


def test_header_fields_are_skipped():
    body = gzip.compress(TRACE)[10:]
    flags = 4 | 8 | 16 | 2  # extra field, name, comment, header checksum
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    fields = b"\x03\x00abc" + b"name.json\0" + b"a comment\0" + b"\x12\x34"
    text, findings = read(head + fields + body)
    assert text == TRACE
    assert words(findings) == []


def test_zeros_behind_are_padding():
    text, findings = read(gzip.compress(TRACE) + bytes(700_000))
    assert text == TRACE
    assert words(findings) == []
    text, findings = read(gzip.compress(TRACE) + bytes(512) + gzip.compress(b"\n[]"))
    assert text == TRACE + b"\n[]"
    assert words(findings) == ["MULTI_MEMBER"]


def test_other_bytes_behind_may_be_a_lost_trace():
    for lost in (b'{"traceEvents": [', gzip.compress(TRACE)[:2] + b"\7" + bytes(30)):
        text, findings = read(gzip.compress(TRACE) + lost)
        assert text == TRACE
        assert words(findings) == ["TRUNCATED"]
        said = "bytes behind the last gzip member look like another trace, but do not decode"
        assert example(findings, "TRUNCATED") == said


@pytest.mark.parametrize("rest", [b"x", b"garbage here", bytes(700_000) + b"\xff\0\xff"])
def test_bytes_behind_that_are_no_trace_cost_nothing(rest):
    text, findings = read(gzip.compress(TRACE) + rest)
    assert text == TRACE
    assert words(findings) == ["REPAIRED_SYNTAX"]
    said = "bytes behind the last gzip member are no trace"
    assert example(findings, "REPAIRED_SYNTAX") == said
    text, findings = read(gzip.compress(TRACE)[:-6] + rest)  # not whole: then that is said
    assert "TRUNCATED" in words(findings)


def test_a_cut_stream_keeps_what_decodes():  # F02
    packed = gzip.compress(LONG)
    cut = packed[: len(packed) * 7 // 10]
    # The standard library's decoder, given all at once, yields every byte that can be decoded.
    expected = zlib.decompressobj(31).decompress(cut)
    text, findings = read(cut, "x.gz")
    assert text == expected
    assert words(findings) == ["TRUNCATED"]
    said = f"gzip stream ends early after {len(expected):,} bytes"
    assert example(findings, "TRUNCATED") == said


@pytest.mark.parametrize("missing", [1, 7, 8])
def test_a_cut_trailer_costs_nothing(missing):
    text, findings = read(gzip.compress(LONG)[:-missing])
    assert text == LONG
    assert words(findings) == ["TRUNCATED"]


@pytest.mark.parametrize("at", [-8, -1])  # the checksum, the length
def test_a_wrong_trailer_costs_nothing(at):
    packed = bytearray(gzip.compress(LONG))
    packed[at] ^= 0x55
    text, findings = read(bytes(packed) + gzip.compress(b"[]"))
    assert text == LONG + b"[]"
    assert words(findings) == ["MULTI_MEMBER", "TRUNCATED"]


def test_damage_keeps_every_byte_before_it():
    # Two stored deflate blocks by hand: the second has a length that its complement denies.
    whole = b"\x00" + struct.pack("<HH", 5, 0xFFFF ^ 5) + b"01234"
    broken = b"\x00" + struct.pack("<HH", 5, 0) + b"56789"
    head = gzip.compress(b"")[:10]
    text, findings = read(head + whole * 100 + broken)
    assert text == b"01234" * 100
    assert example(findings, "TRUNCATED") == "gzip stream is damaged after 500 bytes"


def test_damage_far_into_a_stream_of_many_blocks():
    text = LONG * 12  # about 12 MB: several pieces are out before the damage
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    packed = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    got, findings = read(packed + b"\xff" * 40)  # block type 3 does not exist
    assert got == text
    assert example(findings, "TRUNCATED") == f"gzip stream is damaged after {len(text):,} bytes"


# --- zstd ---------------------------------------------------------------------------------------


def test_frames_are_joined_and_skippable_ones_skipped():
    frames = [zstandard.compress(LONG[:999]), skippable(b"note"), zstandard.compress(LONG[999:])]
    text, findings = read(skippable(bytes(5)) + b"".join(frames), "x.zst")
    assert text == LONG
    assert words(findings) == ["MULTI_MEMBER"]


@pytest.mark.parametrize(
    "options",
    [
        {"write_checksum": True},
        {"write_content_size": False},
        {"level": 19, "write_checksum": True},
        {"level": -5},
    ],
)
def test_frame_headers(options):
    for text in (TRACE, b"[" + b" " * 3_000_000 + b"]", LONG * 5, _random.randbytes(300_000)):
        packed = zstandard.ZstdCompressor(**options).compress(text)
        assert read(packed)[0] == text


def test_zstd_of_unknown_length():
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    packed = packer.compress(LONG) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
    assert read(packed)[0] == LONG


def test_a_cut_zstd_stream_keeps_whole_blocks():
    packed = zstandard.compress(LONG)
    text, findings = read(packed[: len(packed) * 7 // 10])
    assert LONG.startswith(text)
    assert len(text) % (128 << 10) == 0  # a block holds at most 128 KiB, and all but the last do
    assert len(text) > len(LONG) // 2
    assert words(findings) == ["TRUNCATED"]


@pytest.mark.parametrize("rest", [b"x", b"garbage here"])
def test_other_bytes_behind_a_zstd_frame(rest):  # fewer than a magic number has, and more
    text, findings = read(zstandard.compress(TRACE) + rest)
    assert text == TRACE
    said = f"zstd stream is followed by other bytes after {len(TRACE):,} bytes"
    assert example(findings, "TRUNCATED") == said


def test_a_wrong_zstd_checksum_costs_nothing():
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(LONG))
    packed[-1] ^= 1
    text, findings = read(bytes(packed))
    assert text == LONG
    assert words(findings) == ["TRUNCATED"]


def test_a_huge_ratio_stays_small():
    text = bytes(200 << 20)
    packed = zstandard.compress(text)
    (member,), _ = opened(packed, "x")
    assert max(map(len, member.blocks())) <= 8 << 20


# --- zip ----------------------------------------------------------------------------------------


def test_zip_of_everything():  # F06
    data = zipped(
        ("run1/r0.json.gz", gzip.compress(TRACE)),
        ("run1/", b""),
        ("run1/notes.txt", b"hello"),
        ("run1/r1.json", LONG),
        ("__MACOSX/run1/._r1.json", b"x"),
        ("run2/r1.json", TRACE),
        ("run2/empty.json", b""),
        ("run2/b.json.tmp", TRACE[:9]),
        ("../../etc/passwd.json", b"[]"),
        ("LICENSE", b"MIT"),
        ("trace-without-suffix", TRACE),
    )
    found, findings = opened(data, "all.zip")
    assert [(m.name, b"".join(m.blocks())) for m in found] == [
        ("run1/r0.json.gz", TRACE),
        ("run1/r1.json", LONG),
        ("run2/r1.json", TRACE),
        ("../../etc/passwd.json", b"[]"),
        ("trace-without-suffix", TRACE),
    ]
    assert findings.count("MEMBER_SKIPPED") == 6
    assert words(findings) == ["MEMBER_SKIPPED"]
    assert all(words(m.findings) == [] for m in found)


def test_members_can_be_read_in_turns():
    data = zipped(("a.json", LONG * 9), ("b.json", LONG[::-1] * 9))
    (a, b), _ = opened(data, "x.zip")
    pairs = list(zip(a.blocks(), b.blocks(), strict=True))
    assert b"".join(x for x, _ in pairs) == LONG * 9
    assert b"".join(y for _, y in pairs) == LONG[::-1] * 9


@pytest.mark.parametrize("make", [zipped, streamed_zip])
def test_a_cut_zip_keeps_its_members(make):
    data = make(("a.json", TRACE), ("b.json", LONG), ("c.json", LONG))
    found, findings = opened(data[: len(data) * 3 // 4], "x.zip")
    a, b, c = (b"".join(m.blocks()) for m in found)
    assert (a, b) == (TRACE, LONG)
    assert LONG.startswith(c)
    assert len(c) > 1000
    assert words(findings) == ["TRUNCATED"]  # of the directory
    assert [words(m.findings) for m in found] == [[], [], ["TRUNCATED"]]


@pytest.mark.parametrize("change", [1000, -7])
def test_a_directory_that_points_nowhere(tmp_path, change):
    data = bytearray(zipped(("a.json", TRACE), ("b.json", LONG)))
    at = data.rindex(b"PK\x05\x06") + 16  # offset of the directory: members move with it
    (offset,) = struct.unpack_from("<L", data, at)
    struct.pack_into("<L", data, at, offset + change)
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    for source in (str(path), io.BytesIO(data)):
        texts, codes = outcome(source)
        assert set(texts) <= {TRACE, LONG}
        assert codes


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_wrong_member_checksum(method):
    data = bytearray(zipped(("a.json", LONG), method=method))
    at = data.rindex(b"PK\x01\x02") + 16  # CRC-32 in the directory
    data[at] ^= 1
    (member,), _ = opened(bytes(data), "x.zip")
    assert b"".join(member.blocks()) == LONG
    assert words(member.findings) == ["TRUNCATED"]


def test_one_bad_member_never_costs_the_others():
    data = bytearray(
        zipped(("locked.json", TRACE), ("bad.zip", b"PK\x03\x04" + bytes(40)), ("ok.json", LONG))
    )
    data[6] |= 1  # encrypted, in the first header …
    data[data.index(b"PK\x01\x02") + 8] |= 1  # … and in its directory record
    found, _ = opened(bytes(data), "x.zip")
    assert [m.name for m in found] == ["locked.json", "bad.zip", "ok.json"]
    for member in found[:2]:
        with pytest.raises(RejectedFile) as caught:
            list(member.blocks())
        assert caught.value.code == "BAD_CONTAINER"
    assert b"".join(found[2].blocks()) == LONG


def test_other_methods_are_said():
    (member,), _ = opened(zipped(("a.json", TRACE), method=zipfile.ZIP_LZMA), "x.zip")
    with pytest.raises(RejectedFile, match="method 14"):
        list(member.blocks())


# --- containers in containers -------------------------------------------------------------------


def test_nesting():
    inner = zipped(("r0.json.gz", gzip.compress(TRACE)))
    found, findings = opened(zipped(("deep.zip", inner), ("r1.json", LONG)), "x.zip")
    assert [(m.name, b"".join(m.blocks())) for m in found] == [
        ("deep.zip/r0.json.gz", TRACE),
        ("r1.json", LONG),
    ]
    assert words(findings) == []
    assert read(gzip.compress(zstandard.compress(TRACE)), "x.json.zst.gz")[0] == TRACE
    found, _ = opened(gzip.compress(zipped(("a.json", TRACE), ("b.json", LONG))), "x.zip.gz")
    assert [b"".join(m.blocks()) for m in found] == [TRACE, LONG]


def test_nesting_ends():
    data = TRACE
    for _ in range(3):
        data = gzip.compress(data)
    assert read(data)[0] == TRACE
    with pytest.raises(RejectedFile, match="3 containers") as caught:
        read(gzip.compress(data))
    assert caught.value.code == "BAD_CONTAINER"


def test_a_cut_outer_stream_is_the_texts_finding():
    text, findings = read(gzip.compress(zstandard.compress(LONG))[:-9_000], "x.zst.gz")
    assert LONG.startswith(text)
    assert findings.count("TRUNCATED") == 2  # gzip's end, and so zstd's


# --- anything -----------------------------------------------------------------------------------


TOLD = {
    "TRUNCATED",
    "REPAIRED_SYNTAX",
    "MULTI_MEMBER",
    "MEMBER_SKIPPED",
    "WRONG_SUFFIX",
    "EMPTY_FILE",
    "BAD_CONTAINER",
    "NOT_A_TRACE",
}
CHECKED = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "zip": PACKED["zip"],
}


@given(
    st.sampled_from(sorted(CHECKED)),
    st.integers(4, 900),
    st.binary(max_size=6),
    st.integers(0, 900),
)
def test_damage_is_always_told(kind, at, noise, cut):
    """Whatever is done behind the magic number, it is the text or something is said."""
    text = LONG[:3000]
    data = CHECKED[kind](text)
    hurt = data[:at] + noise + data[at + len(noise) :]
    texts, codes = outcome(io.BytesIO(hurt[: max(len(hurt) - cut, 4)]))
    assert texts == [text] or codes
    assert codes <= TOLD


def test_real_traces(shared_traces: Path):
    for path in sorted(shared_traces.rglob("*.json.gz")):
        (member,) = members(str(path), path.name, Findings())
        assert zlib.crc32(b"".join(member.blocks())) == zlib.crc32(
            gzip.decompress(path.read_bytes())
        )
        assert words(member.findings) == []
