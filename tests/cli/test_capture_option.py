"""`tracehouse analyze --capture`, as a user runs it."""

from __future__ import annotations

import csv
import io

import pytest
from capture_cases import BLOCK, BLOCK_KERNELS, capture, replay

SHARES = "SELECT name, count, direct_kernel_time_ns AS ns FROM op_summary ORDER BY name"


@pytest.fixture
def files(tmp_path):
    trace = replay([[BLOCK_KERNELS], [BLOCK_KERNELS]]).write(tmp_path / "run/decode.json.gz")
    recorded = capture([BLOCK]).write(tmp_path / "recorded/bs_8_rank0.json.gz")
    return trace, recorded, tmp_path / "out"


def shares(tracehouse, out):
    result = tracehouse("sql", out, SHARES, "--format", "csv")
    assert result.returncode == 0, result.stderr
    return [tuple(row.values()) for row in csv.DictReader(io.StringIO(result.stdout))]


def test_a_folder_of_captures(tracehouse, files):
    trace, recorded, out = files
    given = ("analyze", trace, "-o", out, "--workers", "1")
    result = tracehouse(*given)
    assert result.returncode == 0, result.stderr
    assert "graph_without_op_pct is 100" in result.stderr
    assert "--capture" in result.stderr  # what to do about it
    assert shares(tracehouse, out) == [("hipGraphLaunch", "2", "18000")]
    result = tracehouse(*given, "--capture", recorded.parent)
    assert result.returncode == 0, result.stderr
    assert "1 files, 1 of graph captures: 0 unchanged, 0 partial, 0 rejected" in result.stderr
    assert "graph_without_op_pct" not in result.stderr
    # two launches: 3 us of aten::mm, 2 x 3 us of my::norm each
    assert shares(tracehouse, out) == [("aten::mm", "2", "6000"), ("my::norm", "2", "12000")]
    # a file does as well, and nothing is read again
    result = tracehouse(*given, "--capture", recorded)
    assert "1 files, 1 of graph captures: 1 unchanged" in result.stderr


def test_a_broken_capture_is_named(tracehouse, files):
    trace, recorded, out = files
    recorded.write_bytes(b"\x1f\x8b nothing")
    result = tracehouse("analyze", trace, "-o", out, "--workers", "1", "--capture", recorded)
    assert result.returncode == 1
    assert "bs_8_rank0.json.gz" in result.stderr
    assert "1 rejected" in result.stderr
    assert shares(tracehouse, out) == [("hipGraphLaunch", "2", "18000")]


def test_no_such_capture(tracehouse, files):
    trace, recorded, out = files
    for path in (recorded.parent / "nothing", recorded.parent.parent / "empty"):
        recorded.parent.parent.joinpath("empty").mkdir(exist_ok=True)
        result = tracehouse("analyze", trace, "-o", out, "--capture", path)
        assert result.returncode == 2
        assert str(path) in result.stderr
