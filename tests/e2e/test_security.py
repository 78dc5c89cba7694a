"""Files made to harm: each is bounded, costs no other file and no intact event, and steers nothing.

Limits here are a thousandth of the real ones. docs/limits.md lists them with their options.
"""

from __future__ import annotations

import dataclasses
import gzip
import inspect
import io
import json
import os
import tarfile
import unicodedata
import zipfile
from pathlib import Path

import pytest
import zstandard
from commandline import run
from warehouses import analyse, drawn, query

import tracehouse
from tracehouse.cli.main import main
from tracehouse.cli.output import emit
from tracehouse.errors import UsageError
from tracehouse.ingest import limits as limits_module
from tracehouse.ingest.limits import Limits, parse_size

SMALL = Limits(
    text_bytes=4 << 20, ratio=100, members=20, metadata_bytes=64 << 10, event_bytes=64 << 10
)


# --- archives ----------------------------------------------------------------------------------


def zipped(*entries: tuple[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return raw.getvalue()


def overlapping(count: int) -> bytes:
    """Return a zip archive whose directory names the same data `count` times."""
    packed = bytearray(zipped(("a.json", b"[" + b" " * (900 << 10))))
    start = int.from_bytes(packed[-6:-2], "little")
    record, end = packed[start:-22], packed[-22:]
    directory = bytearray()
    for number in range(count):
        record[46:52] = b"%c.json" % (97 + number)
        directory += record
    end[8:10] = end[10:12] = count.to_bytes(2, "little")
    end[12:16] = len(directory).to_bytes(4, "little")
    return bytes(packed[:start] + directory + end)


def tar_of(count: int) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for number in range(count):
            archive.addfile(tarfile.TarInfo(f"{number}.json"))
    return raw.getvalue()


BLANKS = b"[" + b" " * (3 << 20)  # packed to 3 kB
LARGE = b'{"traceEvents":[' + b" " * (5 << 20) + b"]}"  # more than text_bytes
BOMBS = {
    "ratio.json.gz": gzip.compress(BLANKS),
    "ratio.json.zst": zstandard.compress(BLANKS),
    "size.json.gz": gzip.compress(LARGE),
    "twice.json.gz.gz": gzip.compress(gzip.compress(BLANKS)),
    "inner.tar.gz": gzip.compress(b"x.json".ljust(257, b"\0") + b"ustar\x0000" + BLANKS),
    "members.tar": tar_of(21),
}
# In an archive only the member goes.
PARTLY = {
    "bomb.zip": zipped(("good.json", drawn(21).data()), ("bomb.json", BLANKS)),
    "packed.zip": zipped(("good.json", drawn(22).data()), ("b.json.gz", gzip.compress(BLANKS))),
}


def test_bombs_are_rejected_and_cost_no_other_file(tmp_path, monkeypatch):
    monkeypatch.setattr(limits_module, "_FREE_BYTES", 1 << 20)
    folder, out = tmp_path / "in", tmp_path / "out"
    drawn(1).write(folder / "good.json")
    many = zipped(*((f"{n}.json", b"[]") for n in range(21)))
    for name, data in (BOMBS | PARTLY | {"members.zip": many, "flat.zip": overlapping(9)}).items():
        (folder / name).write_bytes(data)
    report = analyse(folder, out=out, limits=SMALL)
    status = {os.path.relpath(r.path, folder): r.status for r in report.results}
    reasons = {os.path.relpath(r.path, folder): r.reason or "" for r in report.results}
    for name in (*BOMBS, "members.zip"):
        assert status[name] == "rejected", name
    assert status["bomb.zip/good.json"] == status["packed.zip/good.json"] == "ok"
    assert status["bomb.zip/bomb.json"] == status["packed.zip/b.json.gz"] == "rejected"
    assert status["good.json"] == "ok"
    assert "far more than what it is packed in" in reasons["ratio.json.gz"]
    assert "more than 20 members" in reasons["members.zip"]
    assert "more than 20 members" in reasons["members.tar"]
    # Nine times 900 KiB, where all members together may have 4 MiB.
    assert [r for n, r in reasons.items() if n.startswith("flat.zip/") and "4,194,304" in r]
    codes = query(out, "SELECT DISTINCT code FROM issues WHERE severity = 'error'")
    assert ("TOO_LARGE",) in codes
    assert query(out, "SELECT count(*) FROM kernels") == [(6,)]  # two of each good one

    # Not read again as they are; those that were too large are, once the limits are others.
    assert analyse(folder, out=out, limits=SMALL).unchanged == report.total
    raised = analyse(folder, out=out)
    assert raised.unchanged < report.total
    # Within the limits: a document of blanks that is no trace.
    assert "NOT_A_TRACE" in dict(query(out, "SELECT path, code FROM traces JOIN issues USING "
        "(trace_id) WHERE severity = 'error'")).values()  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("4GB", 4 * 10**9), ("64MiB", 64 << 20), ("2g", 2 * 10**9)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4XB", "1e9", "GB", "1.5GB"])
def test_what_is_no_size(text):
    with pytest.raises(UsageError, match="no size"):
        parse_size(text)


def test_the_limits_are_options(tmp_path):
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(drawn(1).data()))
    done = run("analyze", file, "-o", tmp_path / "out", "--workers", 1, "--max-text", "100")
    assert done.returncode == 1
    assert "more than 100 bytes" in done.stderr
    assert run("analyze", file, "-o", tmp_path / "out", "--max-text", "1kB").returncode == 0
    assert run("analyze", file, "-o", tmp_path / "out", "--max-event", "no").returncode == 2


def test_the_limits_are_parameters_in_python(tmp_path):
    file, out = tmp_path / "a.json", tmp_path / "out"
    long = KERNEL % (1, 100, 1) + "," + event('{"x":"' + "y" * (20 << 20) + '"}')
    file.write_text('{"traceEvents":[' + long + '],"more":"' + "z" * (6 << 20) + '"}')
    (tmp_path / "two.zip").write_bytes(zipped(*((f"{n}.json", drawn(n).data()) for n in (1, 2))))

    def status(path, **limits):
        (result,) = tracehouse.analyze(path, out, workers=1, **limits).results
        return result.status

    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert status(packed, max_text=1_000_000) == "rejected"
    assert status(packed, max_text="40MB") == "ok"
    length = "SELECT max(length(args)) FROM events"
    assert query(out, length)[0][0] > 20 << 20
    for name, limits, expected in (
        ("event", {"max_event": "8MiB"}, "ok"),
        ("metadata", {"max_metadata": 1_000}, "repaired"),
    ):
        found = tracehouse.analyze(file, tmp_path / name, workers=1, **limits)
        assert [r.status for r in found.results] == [expected], name
    assert 1_000 < query(tmp_path / "event", length)[0][0] < 2_000
    many = tracehouse.analyze(tmp_path / "two.zip", tmp_path / "many", workers=1, max_members=1)
    assert "more than 1 members" in many.results[0].reason
    for wrong in (
        {"max_text": "much"},
        {"max_event": "64KiB"},
        {"max_ratio": 0},
        {"max_members": -1},
    ):
        with pytest.raises(UsageError, match=r"is no (size|ratio|number)|is too short"):
            tracehouse.analyze(file, tmp_path / "wrong", **wrong)
    assert not (tmp_path / "wrong").exists()


def test_the_command_and_python_take_the_same_limits():
    options = {p.name for p in main.commands["analyze"].params if p.name.startswith("max_")}
    parameters = inspect.signature(tracehouse.analyze).parameters
    assert options == {name for name in parameters if name.startswith("max_")}
    assert len(options) == len(dataclasses.fields(Limits))


# --- texts -------------------------------------------------------------------------------------

KERNEL = (
    '{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d,"dur":5,'
    '"args":{"device":0,"stream":7,"correlation":%d}}'
)
DEEP = 10**6
NAME = "\x1b]0;owned\x07\x1b[31m<script>alert(1)</script>'; DROP TABLE ops; --\x9b2J\u202e\x00"
PICKLE = "cposix\nsystem\n(S'touch pwned'\ntR."


def event(args: str, name: str = '"n"', times: str = '"ts":1,"dur":5') -> str:
    return f'{{"ph":"X","cat":"cpu_op","name":{name},"pid":1,"tid":1,{times},"args":{args}}}'


def text(item: str, before: str = "", behind: str = "") -> str:
    """Return a trace in which `item` stands between two kernels."""
    first, last = KERNEL % (1, 100, 1), KERNEL % (2, 200, 2)
    return f'{{{before}"traceEvents":[{first},{item},{last}]{behind}}}'


NINES = "9" * 5000
HARMFUL = {
    "string": text(event('{"x":"' + "y" * (2 << 20) + '"}')),
    "name": text(event("{}", '"' + "y" * (2 << 20) + '"')),
    "string_behind": text(event("{}"), behind=',"big":"' + "y" * (1 << 20) + '"'),
    "lists": text(event('{"x":' + "[" * DEEP + "]" * DEEP + "}")),
    "objects": text(event('{"x":' + '{"a":' * DEEP + "1" + "}" * DEEP + "}")),
    "open": text(event('{"x":' + "[" * DEEP + "}")),
    "metadata": text(event("{}"), behind=',"deep":' + "[" * 9_000 + "]" * 9_000),
    "keys": text(event("{" + ",".join(f'"k{i}":{i}' for i in range(6_000)) + "}")),
    "top_keys": text(event("{}")[:-1] + "," + ",".join(f'"k{i}":1' for i in range(6_000)) + "}"),
    "digits": text(event(f'{{"x":{NINES},"correlation":{NINES},"stream":{NINES}}}')),
    "times": text(event("{}", times=f'"ts":{NINES},"dur":-{NINES}')),
    "exponents": text(event('{"correlation":1e999999}', times='"ts":1e999999999,"dur":5')),
    "edges": text(
        event('{"stream":-9223372036854775808}', times=f'"ts":-{2**63},"dur":{2**63 - 1}')
    ),
    "shapes": text(
        event(
            f'{{"Input Dims":[[{2**63 - 1},{2**63 - 1}],[{2**63 - 1},{NINES}]],'
            '"Input type":["float","float"]}',
            '"aten::mm"',
        )
    ),
    "base": text(event("{}"), before=f'"baseTimeNanoseconds":{NINES},'),
    "names": text(event(json.dumps({NAME: NAME}), json.dumps(NAME))),
    "pickle": text(
        event(
            json.dumps({"__reduce__": ["os.system", ["touch pwned"]], "py/object": "os.system"}),
            json.dumps(PICKLE),
        ),
        before='"__class__":"os.system","traceName":"../../../../tmp/pwned",',
    ),
}


@pytest.mark.parametrize("reader", ["scan", "ijson"])
def test_harmful_texts_cost_no_intact_kernel(tmp_path, monkeypatch, reader):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    for name, content in HARMFUL.items():
        (folder / f"{name}.json").write_text(content, encoding="utf-8")
    report = analyse(folder, out=out, reader=reader, limits=SMALL)
    found = {Path(r.path).stem: (r.status, r.kernels) for r in report.results}
    dropped = {"lists", "objects", "open"}  # an event that nobody can read
    mended = {"string_behind", "metadata", "base"}  # a key beside the events
    assert {n for n, (_, kernels) in found.items() if kernels != 2} == set()
    assert {n for n, (status, _) in found.items() if status == "partial"} == dropped
    assert {n for n, (status, _) in found.items() if status == "repaired"} <= mended
    assert query(out, "SELECT count(*) FROM issues WHERE code = 'ANALYSIS_FAILED'") == [(0,)]
    assert query(out, "SELECT max(length(args)) < 3000000 FROM events") == [(True,)]
    assert not list(tmp_path.rglob("*pwned*"))


def test_names_of_members_are_labels_never_paths(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    names = ("../../evil.json", "/etc/evil.json", "a/../../evil.json", "C:\\evil.json")
    data = zipped(*((name, drawn(n).data()) for n, name in enumerate(names)))
    (folder / "a.zip").write_bytes(data)
    (tmp_path / "secret.json").write_bytes(drawn(9).data())
    with tarfile.open(folder / "b.tar.gz", "w:gz") as archive:
        for number, name in enumerate(names, len(names)):
            info = tarfile.TarInfo(name)
            info.size = len(drawn(number).data())
            archive.addfile(info, io.BytesIO(drawn(number).data()))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):  # to a file beside the archive's folder
            link = tarfile.TarInfo(f"link{kind.decode()}.json")
            link.type, link.linkname = kind, "../secret.json"
            archive.addfile(link)
    before = {path for path in tmp_path.parent.rglob("*") if out not in path.parents}
    report = analyse(folder, out=out)
    assert [r.status for r in report.results if r.status != "rejected"] == ["ok"] * 8
    assert query(out, "SELECT count(*) FROM ops WHERE name = 'aten::op9'") == [(0,)]  # not followed
    after = {path for path in tmp_path.parent.rglob("*") if out not in path.parents}
    assert after - before <= {out}
    assert not [path for path in out.rglob("*") if "evil" in path.name]


def is_safe(shown: str) -> bool:
    """Whether a terminal shows a text and does nothing else."""
    steering = {"Cc", "Cf", "Cs"}
    return all(c == "\n" or unicodedata.category(c) not in steering for c in shown)


def test_no_name_steers_a_terminal(tmp_path, monkeypatch):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    trace = drawn(1).op(NAME, 10, 5).annotation(NAME, 12, 1).kernel(NAME, 60, 5, correlation=9)
    (folder / "\x1b[2Ja.json").write_bytes(trace.data())
    (folder / "\x1b[31mbad.json").write_text(NAME)
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ("analyze", folder, "-o", out, "--workers", 1, "--label", NAME.strip("\x00")),
        ("show", out),
        ("show", out, "ops"),
        ("show", out, "issues"),
        ("sql", out, "SELECT name, args FROM events"),
        ("sql", out, 'SELECT name AS "\x1b[31m" FROM ops'),
        ("prune", out, "--older-than", "1d", "--dry-run"),
        ("check", out),
        ("doctor", folder / "\x1b[2Ja.json"),
        ("doctor", folder / "\x1b[31mbad.json"),
        ("show", out, "--trace", "\x1b[31mnone"),
    ):
        done = run(*arguments)
        assert is_safe(done.stdout), arguments
        assert is_safe(done.stderr), arguments
    # Data formats hold every character, but not on a terminal.
    import pyarrow as pa

    table = pa.table({"name": [NAME]})
    for fmt in ("csv", "json"):
        shown = io.StringIO()
        shown.isatty = lambda: True
        monkeypatch.setattr("sys.stdout", shown)
        emit(table, fmt)
        assert is_safe(shown.getvalue())
