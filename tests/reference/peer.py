"""The peer's report on a real trace, and its sums over the same events, in plain Python.

The peer adds and subtracts times as doubles, in µs; a trace states them as decimals with three
digits, which are whole ns. Every sum here can be made both ways from the events of the file.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

TRACES = (
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "h100/gaunernst_bert-small-uncased__1016001",
    "h100/google_owlv2-large-patch14-ensemble__1016001",
    "inference/sglang_decode/sglang_Qwen3-8B_decode",
    "inference/vllm_decode_full/graph_execution",
    "inference/vllm_prefilldecode_piecewise/graph_execution",
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "mi300/gaunernst_bert-small-uncased__1016001",
    "torch_compile_triton/trace",
)
SIZE = 1e-6  # what may differ, as a part of the whole
EXACT = 1e-12  # the same number, written as decimal text in ms and in µs


def report_folder(folder: Path, trace: str) -> Path:
    """Return the folder of the peer's report on a trace."""
    inference = (folder / trace).parent / "perf_csvs"
    return inference if inference.is_dir() else folder / f"{trace}_perf_report_csvs"


def _rows(report: Path, name: str) -> list[dict[str, str]]:
    with (report / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def timeline(report: Path) -> dict[str, float]:
    """Return the peer's time of each type, in µs."""
    return {row["type"]: 1_000 * float(row["time ms"]) for row in _rows(report, "gpu_timeline")}


def ops(report: Path) -> dict[str, tuple[int, float, float]]:
    """Return calls, direct and subtree time of each op, in µs; the modules an op is in together."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
    for row in _rows(report, "ops_summary"):
        of_op = sums[row["name"]]
        of_op[0] += int(row["Count"])
        of_op[1] += float(row["total_direct_kernel_time_sum"])
        of_op[2] += float(row["total_subtree_kernel_time_sum"])
    return {name: (int(calls), direct, below) for name, (calls, direct, below) in sums.items()}


def kernels_of_ops(report: Path) -> dict[str, Counter[str]]:
    """Return how many activities of each kernel name the peer put down to which op."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in _rows(report, "ops_unique_args"):
        details = row["kernel_details_summary"]
        for kernel, count in re.findall(r"'name': '(.*?)', 'stream': \d+, 'count': (\d+)", details):
            found[kernel][row["name"]] += int(count)
    return found


@dataclass(frozen=True)
class Span:
    """An interval as the file states it, in µs."""

    ts: Decimal
    dur: Decimal

    @property
    def exact(self) -> tuple[int, int]:
        return int(1_000 * self.ts), int(1_000 * (self.ts + self.dur))

    @property
    def doubles(self) -> tuple[float, float]:
        return float(self.ts), float(self.ts) + float(self.dur)


def events(path: Path) -> list[dict]:
    """Return the events of a trace in file order, its numbers to the last digit."""
    return json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]


def covered(spans):
    """Measure the union of intervals, in whichever numbers they come."""
    length, reach = 0, float("-inf")
    for start, end in sorted(spans):
        if end > reach:
            length += end - max(start, reach)
            reach = end
    return length
