"""The command line, on traces drawn here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import run

# us    100        150      200      230      260   270
# CPU    [ aten::mm  ]
#          launch 110-115
# GPU 0                      [ gemm  ]          [copy]
#
# total 200..270 = 70 µs; busy 30 + 10 = 40 µs = 57.142857 % of it; computation 30 µs, copies 10 µs.
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100, "dur": 50,
     "args": {"External id": 3}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 110,
     "dur": 5, "args": {"External id": 3, "correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "gemm\x1b[31m", "pid": 0, "tid": 7, "ts": 200, "dur": 30,
     "args": {"External id": 3, "correlation": 7, "device": 0, "stream": 7}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH", "pid": 0, "tid": 7, "ts": 260,
     "dur": 10, "args": {"correlation": 8, "device": 0, "stream": 7}},
]  # fmt: skip

Run = Callable[..., subprocess.CompletedProcess[str]]


def trace_text(**envelope: object) -> str:
    return json.dumps({"schemaVersion": 1, **envelope, "traceEvents": EVENTS})


@pytest.fixture(scope="session")
def tracehouse() -> Run:
    """Return a function that runs a command in this process."""
    return run


@pytest.fixture(scope="session")
def archive(tmp_path_factory) -> Path:
    """Return a folder of a whole trace, one that ends within its last event, and no trace."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "good.json").write_text(trace_text(), encoding="utf-8")
    (folder / "cut.json").write_text(trace_text(cut=True)[:-40], encoding="utf-8")
    (folder / "other.json").write_text('{"a": 1}', encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def warehouse(tracehouse, archive, tmp_path_factory) -> Path:
    """Return a warehouse of the two readable traces of the archive."""
    out = tmp_path_factory.mktemp("warehouse") / "out"
    result = tracehouse(
        "analyze", archive / "good.json", archive / "cut.json", "-o", out, "--workers", "1"
    )
    assert result.returncode == 0, result.stderr
    return out
