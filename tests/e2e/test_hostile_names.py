"""Names made to harm, wherever a trace holds a text, through every command and format.

A terminal, a browser, a spreadsheet, Markdown and SQL each show them and do nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from xml.etree import ElementTree

import openpyxl
import pytest
from commandline import run
from tracegen import Trace
from warehouses import analyse, query

BAD = (
    "=cmd|' /C calc'!A0</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\x1b]0;owned\x07\x1b[31m'; DROP TABLE traces; --\"\u202e|`x`](javascript:alert(3))\n# head"
)
FILE = BAD.replace("/", "\u2215")  # a name of a file holds any letter but one


def hostile(day: int, gemm: int) -> Trace:
    """Draw a trace in which every text is hostile.

    us   0    5  9  10          40     50    60
    CPU  [ bad op: launch ]     [ ncclish op ]
    GPU          [ bad kernel   ]       [copy]
    """
    dims = {"Input Dims": [[8, 4], [4, 2]], "Input type": [BAD, BAD], "Concrete Inputs": [BAD, BAD]}
    group = {
        "Collective name": BAD,
        "Process Group Name": BAD,
        "Process Group Description": BAD,
        "dtype": BAD,
    }
    trace = Trace(
        baseTimeNanoseconds=1_700_000_000_000_000_000 + day * 86_400 * 10**9,
        deviceProperties=[{"id": 0, "name": BAD}],
        distributedInfo={"backend": BAD, "rank": 0, "world_size": 2, "pg_config": BAD},
        traceName=BAD,
        hostname=BAD,
        **{BAD: BAD, "Trace Id": BAD},
    )
    return (
        trace.event(ph="M", name="process_name", pid=100, args={"name": BAD})
        .event(ph="M", name="thread_name", pid=100, tid=1, args={"name": BAD})
        .annotation(f"ProfilerStep#{day}", 0, 100)
        .annotation(BAD, 1, 90)
        .op(BAD, 2, 30, **dims)
        .op("aten::mm", 3, 20, **dims)
        .launch(5, 4, correlation=1)
        .kernel(BAD, 10, gemm, correlation=1, **group)
        .op("record_param_comms", 40, 10, **group, **dims)
        .launch(42, 2, correlation=2)
        .kernel(f"ncclDevKernel_AllReduce_{BAD}", 60, 20, correlation=2, **group)
        .op(
            "triton_poi_fused_" + BAD,
            90,
            8,
            **{"kernel_backend": "triton", "kernel_hash": BAD, **dims},
        )
        .launch(92, 2, correlation=3, name="cuLaunchKernel", cat="cuda_driver")
        .kernel("triton_poi_fused_" + BAD, 94, 5, correlation=3)
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return a warehouse of four nights, its label as hostile as its traces."""
    folder = tmp_path_factory.mktemp("hostile")
    for day, gemm in enumerate((30, 31, 30, 45)):
        hostile(day, gemm).write(folder / "in" / f"{day}{FILE}.json")
    assert analyse(folder / "in", out=folder / "out", label=BAD).rejected == 0
    (folder / f"{FILE}.json").write_text(BAD)
    assert analyse(folder / f"{FILE}.json", out=folder / "out", label=f"other {BAD}").rejected == 1
    return folder / "out"


def is_safe(shown: str) -> bool:
    steering = {"Cc", "Cf", "Cs"}
    return all(c == "\n" or unicodedata.category(c) not in steering for c in shown)


TABLES = "ops op_summary collectives triton annotations traces issues checks trends roofline runs"


def for_people(out):
    yield ("show", out)
    for table in TABLES.split():
        yield ("show", out, table)
    yield ("show", out, "--trace", FILE)
    yield ("show", out, "--trace", BAD)
    yield ("show", out, BAD)
    yield ("sql", out, "SELECT args, extra FROM events")
    yield ("sql", out, BAD)
    yield ("schema", BAD)
    yield ("steps", out)
    yield ("steps", out, "--trace", FILE)
    file = query(out, "SELECT path FROM files WHERE status <> 'rejected' ORDER BY path LIMIT 1")[0][
        0
    ]
    yield ("steps", file)
    yield ("doctor", file)
    yield ("compare", "--in", out, "last:1", f"label:{BAD}")
    yield ("compare", file, f"{out}:last:1", "--by", "all")
    yield ("compare", "--in", out, BAD, "last:1")
    yield ("gate", out, "--label", BAD, "--min-runs", 1)
    yield ("gate", out, "--label", f"{BAD}x")
    yield ("gate", out, "--metric", BAD)
    yield ("export", out, BAD, "-o", "x.json")
    yield ("export", out, "--tables", BAD, "-o", "x")
    yield ("report", out, "--trace", BAD, "-o", "x.html")
    yield ("check", out)
    yield ("prune", out, "--older-than", "1d", "--dry-run")
    yield ("prune", out, "--older-than", "1d", "--label", BAD, "--dry-run")


def test_no_command_lets_one_steer_a_terminal(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = 0
    for arguments in for_people(out):
        done = run(*arguments)
        assert is_safe(done.stdout), arguments
        assert is_safe(done.stderr), arguments
        shown += "DROP TABLE" in done.stdout + done.stderr
    assert shown > 20  # they were there to be shown
    # And none was taken for SQL.
    assert query(out, "SELECT count(*) FROM traces") == [(5,)]


def written(out, tmp_path):
    """Write every report and comparison there is; return the files by suffix."""
    trace = query(out, "SELECT trace_id FROM traces WHERE kernels > 0 ORDER BY path LIMIT 1")[0][0]
    for suffix in ("html", "xlsx", "md"):
        for name, words in (
            ("all", ("report", out, "--label", BAD)),
            ("one", ("report", out, "--trace", trace)),
            ("compared", ("compare", "--in", out, "last:1", f"label:{BAD}", "--format", suffix)),
        ):
            file = tmp_path / f"{name}.{suffix}"
            done = run(*words, "-o", file)
            assert done.returncode == 0, done.stderr
            yield file


def test_no_report_holds_markup_or_a_formula(out, tmp_path):
    for file in written(out, tmp_path):
        if file.suffix == ".xlsx":
            for sheet in openpyxl.load_workbook(file):
                cells = [cell for row in sheet.iter_rows() for cell in row]
                assert {cell.data_type for cell in cells} <= {"s", "n", "b", "d"}, file
                assert not [cell for cell in cells if cell.hyperlink], file
                assert all(is_safe(str(cell.value)) for cell in cells), file
            continue
        text = file.read_text(encoding="utf-8")
        assert "script" in text, file
        assert "\x1b" not in text, file
        if file.suffix == ".md":
            text = re.sub(r"(`+).*?\1", "", text)  # code is shown as it is
            assert "# head" not in text.splitlines(), file
        assert not re.search(r"(?<!\\)<(script>alert|img)", text), file
        assert "</script><script>alert" not in text, file


def test_data_formats_hold_every_letter(out, tmp_path):
    for fmt in ("csv", "json"):
        done = run("sql", out, "SELECT name FROM ops ORDER BY event_id LIMIT 1", "--format", fmt)
        read = (
            json.loads(done.stdout) if fmt == "json" else csv.DictReader(io.StringIO(done.stdout))
        )
        assert [row["name"] for row in read] == [BAD]
    tables = tmp_path / "tables"
    words = (
        "export",
        out,
        "--tables",
        "all",
        "--format",
        "csv",
        "--for-spreadsheets",
        "-o",
        tables,
    )
    assert run(*words).returncode == 0
    texts = [
        cell
        for file in tables.iterdir()
        for row in csv.reader(file.open(encoding="utf-8", newline=""))
        for cell in row
    ]
    assert f"'{BAD}" in texts
    assert [t for t in texts if re.match(r"[=+@\t\r]|-(?!\d|inf)", t)] == []


def test_a_gate_writes_them_as_text(out):
    words = ("gate", out, "--label", BAD, "--min-runs", 1)
    assert "DROP TABLE" in json.dumps(json.loads(run(*words, "--format", "json").stdout))
    suite = ElementTree.fromstring(run(*words, "--format", "junit").stdout)
    assert any("DROP TABLE" in case.get("name") for case in suite.iter("testcase"))
    text = run(*words, "--format", "md").stdout
    assert not re.search(r"(?<!\\)<(script|img)", re.sub(r"(`+).*?\1", "", text))


def test_files_that_are_written_lie_where_they_should(out, tmp_path):
    """No name is a path: neither of a trace that is written back nor of one that is split."""
    trace = query(out, "SELECT trace_id FROM traces WHERE kernels > 0 ORDER BY path LIMIT 1")[0][0]
    before = set(tmp_path.parent.rglob("*"))
    assert run("export", out, trace, "--scrub", "-o", tmp_path / "a.json").returncode == 0
    assert json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    run("split", tmp_path / "a.json", "-o", tmp_path / "split", "--steps", "0:1")
    new = set(tmp_path.parent.rglob("*")) - before
    assert {p for p in new if p.parent != tmp_path / "split"} <= {
        tmp_path / "a.json",
        tmp_path / "split",
    }
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in new)
