"""`tracehouse compare` as a user runs it, on traces drawn here."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import commandline
import pytest
from tracegen import Trace

from tracehouse.commands.compare_sides import find_side

DAY = 86_400_000_000_000
BASE = 1_752_796_800_000_000_000  # 2025-07-18 00:00 UTC


def old(day: int = 0, gemm: int = 30) -> Trace:
    """Draw a trace of two ops and a lone copy.

    us    0      20  30  40   50    60   70 75
    CPU   [ mm   ]   [add]
    GPU     [gemm 10-40]      [plus ]    [copy]
    """
    dims = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}
    return (
        Trace(baseTimeNanoseconds=BASE + day * DAY)
        .op("aten::mm", 0, 20, **dims)
        .launch(5, 2, correlation=1)
        .kernel("sm90_gemm", 10, gemm, correlation=1)
        .op("aten::add", 30, 10)
        .launch(32, 2, correlation=2)
        .kernel("plus", 50, 10, correlation=2)
        .memcpy(70, 5)
    )


def new(name: str = "aten::<script>\x1b[31m") -> Trace:
    """Draw a trace in which mm is slower, its kernel renamed, and another op for add.

    us    0      20  30  40   50       60
    CPU   [ mm   ]   [ ? ]
    GPU 7   [Cijk 10-55         ]      [copy 60-65]
    GPU 8                     [odd 50-60]
    """
    dims = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}
    return (
        Trace(baseTimeNanoseconds=BASE + 9 * DAY)
        .op("aten::mm", 0, 20, **dims)
        .launch(5, 2, correlation=1)
        .kernel("Cijk_gemm", 10, 45, correlation=1)
        .op(name, 30, 10)
        .launch(32, 2, correlation=2)
        .kernel("=odd()", 50, 10, correlation=2, stream=8)
        .memcpy(60, 5)
    )


def run(*arguments: object):
    return commandline.run("compare", *arguments)


def compared(*arguments: object):
    result = run(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    check_sums(found)
    return found


def check_sums(found):
    totals = {(row["side"], row["part"]): row for row in found["totals"]}
    for side in [row["side"] for row in found["sides"][1:]]:
        for key in ("base_ns", "side_ns", "diff_ns"):
            kernel, overlap, busy = (
                totals[side, part][key] for part in ("kernel_time", "overlap", "busy")
            )
            assert kernel + overlap == busy
            if (side, "window") in totals:
                assert busy + totals[side, "idle"][key] == totals[side, "window"][key]
            for level in {row["level"] for row in found["parts"]}:
                rows = [r for r in found["parts"] if (r["level"], r["side"]) == (level, side)]
                assert sum(row[key] for row in rows) == kernel, (level, key)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for day in range(3):
        old(day, gemm=30 + day).write(folder / "nightly" / f"run-{day}.json")
    new().write(folder / "candidate" / "run-9.json")
    Trace(baseTimeNanoseconds=BASE + 20 * DAY).op("aten::mm", 0, 20).write(folder / "cpu/host.json")
    (folder / "broken").mkdir()
    (folder / "broken/no.json").write_text('{"a": 1}', encoding="utf-8")
    (folder / "broken/cut.json").write_text(old(4).text()[:-90], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def out(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "out"
    result = commandline.run("analyze", str(folder), "-o", str(out), "--workers", "1")
    assert result.returncode == 1, result.stderr  # one is rejected
    return out


def test_two_files_for_people(folder):
    result = run(folder / "nightly/run-0.json", folder / "candidate/run-9.json", "--limit", "2")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    # 30 + 10 + 5 = 45 µs on one stream; 45 + 10 + 5 = 60 µs, of which 5 on both at once
    for line in (
        "kernel time 45.000 µs 60.000 µs +15.000 µs +33.33 %",
        "overlap 0 ns -5.000 µs -5.000 µs",
        "busy 45.000 µs 55.000 µs +10.000 µs +22.22 %",
        "idle 20.000 µs 0 ns -20.000 µs -100.00 %",
        "window 65.000 µs 55.000 µs -10.000 µs -15.38 %",
        "aten::mm [8,4] [4,2] fp32 30.000 µs 45.000 µs +15.000 µs +50.00 % 100.00 % 1 slower",
    ):
        words = line.split()
        assert any(set(words) <= set(found) and found[0] == words[0] for found in lines), line
    # not shown: add, 10 µs that vanished, and the copy
    others = ["2", "others", "15.000", "µs", "5.000", "µs", "-10.000", "µs", "-66.67", "%"]
    assert lines[-2] == others
    total = ["kernel", "time", "45.000", "µs", "60.000", "µs", "+15.000", "µs", "100.00", "%"]
    assert lines[-1] == total


@pytest.mark.parametrize(("columns", "dropped"), [(80, "calls"), (110, "roofline"), (200, None)])
def test_it_fits_a_terminal(out, monkeypatch, columns, dropped):
    """Columns go and labels are cut where there is no room; the differences stay."""
    from tracehouse.cli.compare_table import write_comparison
    from tracehouse.commands.compare import compare

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    found = compare(["nightly", "candidate"], within=out)
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", Terminal())
        write_comparison(found, ("op", "kernel"), "trace", None, 15)
        text = re.sub(r"\x1b\[[0-9;]*m", "", sys.stdout.getvalue())
    assert max(len(line) for line in text.splitlines()) <= columns
    assert "+14.000 µs" in text  # 45 µs of 31
    assert "aten::mm" in text
    assert dropped is None or f" {dropped} " not in text


def test_every_level_adds_up(folder):
    found = compared(folder / "nightly/run-0.json", folder / "candidate/run-9.json")
    rows = {(row["level"], row["name"]): row for row in found["parts"]}
    mm = rows["op", "aten::mm"]
    assert (mm["base_ns"], mm["side_ns"], mm["cause"]) == (30_000, 45_000, "slower")
    assert (mm["base_kernel"], mm["side_kernel"]) == ("sm90_gemm", "Cijk_gemm")
    assert rows["op", "aten::add"]["status"] == "vanished"
    assert rows["op", "aten::<script>\x1b[31m"]["status"] == "appeared"
    assert (rows["op", "(no op)"]["diff_ns"], rows["op", "(no op)"]["cause"]) == (0, None)
    gemm = rows["kernel", "sm90_gemm"]
    assert (gemm["status"], gemm["side_kernels"]) == ("renamed", ["Cijk_gemm"])
    assert gemm["ops"] == ["aten::mm"]
    assert rows["category", "GEMM"]["diff_ns"] == 15_000
    assert rows["phase", "(no step)"]["diff_ns"] == 15_000
    assert rows["phase", "(no step)"]["base_calls"] is None


def test_labels_and_what_is_in_them(out):
    found = compared("--in", out, "nightly", "label:candidate", "--by", "op")
    assert [(row["traces"], row["partial"], row["rejected"]) for row in found["sides"]] == [
        (3, 0, 0),
        (1, 0, 0),
    ]
    mm = next(row for row in found["parts"] if row["name"] == "aten::mm")
    # of 30, 31 and 32 µs; a single trace has no spread
    assert (mm["base_ns"], mm["base_median_ns"], mm["base_mad_ns"]) == (31_000, 31_000, 1_000)
    assert (mm["base_min_ns"], mm["base_max_ns"]) == (30_000, 32_000)
    assert (mm["side_ns"], mm["side_mad_ns"], mm["is_apart"]) == (45_000, None, None)
    text = run("--in", out, "nightly", "candidate").stdout
    assert "31.000 µs ± 1.000 µs → 45.000 µs" in text


@pytest.mark.parametrize(
    ("selector", "days"),
    [
        ("date:2025-07-18", [0]),
        ("date:2025-07-19..2025-07-20", [1, 2]),
        ("date:2025-07-20..", [2, 9]),
        ("date:..2025-07-19", [0, 1]),
        ("label:nightly,last:2", [1, 2]),
        ("last:3,date:2025-07-18..", None),
        ("run-1.json", [1]),
        ("trace:run-", [0, 1, 2, 9]),
        ("nightly", [0, 1, 2]),
    ],
)
def test_selectors(out, selector, days):
    side = find_side(f"{out}:{selector}", None, out / "unused")
    names = [path.rsplit("/", 1)[-1] for path in side.paths]
    if days is None:  # the newest are the CPU's, the candidate's, and the cut one
        assert names == ["cut.json", "run-9.json", "host.json"]
    else:
        assert [name for name in names if name.startswith("run")] == [
            f"run-{day}.json" for day in days
        ]


def test_three_sides_and_a_whole_warehouse(out, folder):
    found = compared("--in", out, "nightly", "candidate", out, folder / "nightly/run-2.json")
    assert [row["side"] for row in found["sides"]] == list("ABCD")
    assert [row["traces"] for row in found["sides"]] == [3, 1, 6, 1]
    assert found["sides"][2]["rejected"] == 1
    assert found["sides"][2]["partial"] == 1
    text = run("--in", out, "nightly", "candidate", out).stdout
    assert "by op, B against A" in text
    assert "by op, C against A" in text
    assert "1 partial trace, 1 rejected trace left out" in text


def test_a_side_against_itself(out):
    found = compared(out, out)
    assert {row["diff_ns"] for row in (*found["parts"], *found["totals"])} == {0}


def test_a_trace_without_gpu(folder, out):
    found = compared("--in", out, "cpu", "candidate")
    assert found["sides"][0]["activities"] == 0
    assert {row["status"] for row in found["parts"]} == {"appeared"}
    assert found["totals"][0]["base_ns"] == 0
    text = run("--in", out, "candidate", folder / "cpu/host.json").stdout
    assert "no GPU activity" in text
    assert "vanished" in text
    both = compared("--in", out, "cpu", "cpu")
    assert both["parts"] == []


def test_the_steps_of_a_phase(repo_root):
    serving = repo_root / "data/samples/serving.json.gz"
    found = compared(serving, serving, "--phase", "decode", "--per", "step")
    assert found["sides"][0]["steps"] == found["sides"][0]["divisor"] == 11
    parts = {row["part"]: row["base_ns"] for row in found["totals"]}
    assert parts == {"kernel_time": 225_000, "overlap": 0, "busy": 225_000}
    assert {row["name"] for row in found["parts"] if row["level"] == "phase"} == {"decode"}


def test_machines(out):
    arguments = ("--in", out, "nightly", "candidate")
    result = run(*arguments, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["level"] for row in rows} == {"op", "kernel", "category", "phase"}
    assert json.loads(next(r["side_kernels"] for r in rows if r["level"] == "kernel"))
    result = run(*arguments, "--format", "json", "--table", "totals")
    assert next(row["part"] for row in json.loads(result.stdout)) == "kernel_time"
    result = run(*arguments, "--format", "csv", "--table", "sides")
    assert result.stdout.splitlines()[1].startswith("A,nightly,3,")


def test_pages(out, tmp_path):
    arguments = ("--in", out, "nightly", "candidate")
    text = run(*arguments, "--format", "md", "--limit", "1").stdout
    assert "`aten::mm`" in text
    assert "first 1 of" in text
    html, book = tmp_path / "changes.html", tmp_path / "changes.xlsx"
    for path in (html, book):
        result = run(*arguments, "--format", path.suffix[1:], "-o", path)
        assert result.returncode == 0, result.stderr
    page = html.read_text(encoding="utf-8")
    assert "aten::mm" in page
    assert "aten::<script>" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["changes.html", "changes.xlsx"]
    openpyxl = pytest.importorskip("openpyxl")
    sheets = openpyxl.load_workbook(book)
    head, *rows = sheets["op-B"].values
    index = {name.replace("\n", " "): i for i, name in enumerate(head)}
    assert sum(row[index["diff [ns]"]] for row in rows) == 60_000 - 46_000
    kernels = {row[0] for row in list(sheets["kernel-B"].values)[1:]}
    assert "sm90_gemm" in kernels
    assert any("=odd()" in str(cell.value) and cell.data_type == "s"
               for row in sheets["kernel-B"].iter_rows() for cell in row)  # fmt: skip


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (["nightly"], "needs two to 26 sides; this one has 1"),
        (["nightly"] * 27, "needs two to 26"),
        (["nightly", "nope"], "Side 'nope' has no trace (none fits)"),
        (["nightly", "label:nope"], "of the labels broken, candidate, cpu, nightly"),
        (["nightly", "label:"], "says no label"),
        (["nightly", "date:soon"], "'soon' is no day"),
        (["nightly", "date:.."], "says no day"),
        (["nightly", "last:0"], "no number of traces"),
        (["nightly", "label:nightly,date:2024-01-01"], "none fits"),
        (["nightly", "trace:no.json"], "1 rejected"),
        (["nightly", "candidate", "--phase", "decode"], "has a step of phase decode"),
        (["nightly", "candidate", "--per", "step"], "--step-pattern"),
        (["nightly", "candidate", "--format", "html"], "needs a file"),
        (["nightly", "candidate", "--table", "sides"], "--table is for csv and json"),
        (["nightly", "candidate", "-o", "x"], "-o is for md, html and xlsx"),
    ],
)
def test_usage_errors(out, sides, words):
    result = run("--in", out, *sides)
    assert result.returncode == 2, result.stdout
    assert words in result.stderr
    assert result.stdout == ""


def test_sides_that_are_no_warehouse(folder, out, tmp_path):
    for side, words in (
        (folder / "broken/no.json", "can be read"),
        (tmp_path / "gone.json", "is no trace, folder or warehouse"),
        (tmp_path, "there is none"),
        (f"{tmp_path}:label:x", "is no trace, folder or warehouse"),
    ):
        result = run(out, side)
        assert result.returncode == 2, (side, result.stdout)
        assert words in result.stderr


def test_durations_beyond_64_bits(tmp_path):
    trace = Trace().op("aten::mm", 0, 50)
    for stream in (1, 2, 3):  # of 127 years each
        trace.launch(stream, 1, correlation=stream)
        trace.kernel("k", 100, 4 * 10**15, correlation=stream, stream=stream)
    path = trace.write(tmp_path / "long.json")
    result = run(path, path)
    assert result.returncode == 1
    assert "add up to more than 292 years" in result.stderr


def test_an_empty_warehouse_is_an_empty_side(out, tmp_path):
    from tracehouse.storage.manifest import LakeState
    from tracehouse.warehouse.build import build

    build(tmp_path, LakeState((), (), {}, {}))
    result = run(out, tmp_path)
    assert result.returncode == 2
    assert "holds no trace" in result.stderr


def test_a_warehouse_goes_before_a_path(out, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)  # nightly/ is a folder here, too
    assert find_side("nightly", out, tmp_path / "a").out == out
    monkeypatch.chdir(tmp_path)
    old(5).write(tmp_path / "elsewhere.json")
    side = find_side("elsewhere.json", out, tmp_path / "b")
    assert (side.out, len(side.trace_ids)) == (tmp_path / "b", 1)


def test_a_word_that_is_a_label_and_a_trace(tmp_path):
    old().write(tmp_path / "in/a/b.json")
    new().write(tmp_path / "in/b/c.json")
    out = tmp_path / "out"
    commandline.run("analyze", str(tmp_path / "in"), "-o", str(out), "--workers", "1")
    result = run("--in", out, "b", "a")
    assert result.returncode == 2
    assert "label:b or trace:b" in result.stderr
    assert [row["traces"] for row in compared("--in", out, "label:b", "trace:b")["sides"]] == [1, 1]
