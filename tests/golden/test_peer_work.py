"""`op_perf` against the peer's unified_perf_summary.csv, row by row.

Every row with a model of the peer is found by its name and inputs. FLOPs and bytes agree to a
millionth, or the difference is of one of the KINDS below, each a section of docs/differences.md:
the peer's number follows from the inputs by its own rule, which is recomputed here.
"""

from __future__ import annotations

import ast
import csv
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from reference import peer

import tracehouse
from tracehouse.analysis import op_categories
from tracehouse.formulas.dtypes import BYTES, dtype_code

KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
MIB = 2**20
DOUBLES = 5e-4  # what sums of doubles of µs lose at most, see differences.md 2


@dataclass(frozen=True)
class Row:
    """A row of the peer's report: name, inputs, and its numbers; None where it has none."""

    name: str
    args: tuple[Any, ...]
    gflops: float | None
    mib: float | None
    time_us: float

    @property
    def dims(self):
        return self.args[0]

    @property
    def widths(self):
        return [BYTES[dtype_code(word)] for word in self.args[1]]

    def numel(self, i):
        return math.prod(self.dims[i])

    def numel_touched(self, i):
        strides = self.args[2][i]
        return math.prod(n for n, s in zip(self.dims[i], strides, strict=True) if s)


@dataclass(frozen=True)
class Ours:
    """What Tracehouse says of the same call."""

    flops: int | None
    bytes: int | None


def tupled(value):
    return tuple(map(tupled, value)) if isinstance(value, list | tuple) else value


def number(text):
    return float(text) if text and not math.isnan(float(text)) else None


def report(shared_traces, trace):
    path = peer.report_folder(shared_traces, trace) / "unified_perf_summary.csv"
    before = csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    csv.field_size_limit(before)
    for row in rows:
        if row["has_perf_model"] == "True":
            yield Row(
                row["name"],
                tuple(tupled(ast.literal_eval(row[key])) if row[key] else () for key in KEYS),
                number(row["GFLOPS"]),
                number(row["Data Moved (MB)"]),
                float(row["Kernel Time (µs)_sum"]),
            )


def agrees(ours, theirs):
    return ours is not None and theirs is not None and abs(ours - theirs) <= 1e-6 * abs(theirs)


# Each kind tells whether it, and nothing else, explains the row.


def copies_compute_nothing(row, ours):
    return (
        row.name == "aten::copy_"
        and ours.flops == 0
        and agrees(row.numel(0), row.gflops * 1e9)
        and agrees(ours.bytes, mib_bytes(row))
    )


def mib_bytes(row):
    return None if row.mib is None else row.mib * MIB


def repeated_operands(row, ours):
    """Count operands of stride 0 whole, as the peer does, and its number comes out."""
    tensors = [i for i, strides in enumerate(row.args[2]) if strides]
    repeats = sum((row.numel(i) - row.numel_touched(i)) * row.widths[i] for i in tensors)
    return repeats > 0 and agrees(ours.bytes + repeats, mib_bytes(row))


def unknown_types(row, ours):
    """The peer has no bytes where a type is `bool`."""
    return row.mib is None and "bool" in row.args[1] and ours.bytes is not None


def one_element_results(row, ours):
    """The peer takes every reduction for one of all elements: a result of one."""
    if row.name not in ("aten::mean", "aten::linalg_norm", "aten::sum"):
        return False
    kept = math.prod(row.dims[0][:-1])  # they reduce the last dimension
    return agrees(ours.bytes - (kept - 1) * row.widths[0], mib_bytes(row))


def log_sum_exp(row, ours):
    """The statistics that a flash attention writes for its backward: 4 bytes a row of each head."""
    if row.name != "aten::_scaled_dot_product_flash_attention":
        return False
    batch, heads, queries, _ = row.dims[0]
    return agrees(ours.bytes - 4 * batch * heads * queries, mib_bytes(row))


def statistics_of_rows(row, ours):
    """The peer sizes the statistics by the normalised shape; there are two floats a row."""
    if row.name != "aten::layer_norm":
        return False
    n, width = row.numel(0), row.widths[0]
    normalised = math.prod(ast.literal_eval(row.args[3][1]))
    moved = 2 * n * width + 2 * normalised * width
    rows = n // normalised
    return agrees(ours.bytes, moved + 2 * rows * 4) and agrees(
        moved + 4 * normalised * width, mib_bytes(row)
    )


def in_place_results(row, ours):
    """The peer gives an in-place result the wider type of the operands; it keeps its own."""
    if not row.name.endswith("_") or row.name == "aten::copy_":
        return False
    wider = max(row.widths[:2]) - row.widths[0]
    return wider > 0 and agrees(ours.bytes + row.numel(0) * wider, mib_bytes(row))


def sums_of_integers(row, ours):
    """A running sum of int32 is int64; the peer keeps the type."""
    wider = 8 - row.widths[0]
    return (
        row.name == "aten::cumsum"
        and row.args[1][0] == "int"
        and agrees(ours.bytes - row.numel(0) * wider, mib_bytes(row))
    )


def compiled_kernels(row, ours):
    """The peer has no bytes for C++'s own types and adds a write to every pointwise kernel.

    A first tensor of another size than the kernel is not what it writes.
    """
    if not row.name.startswith("triton_poi_"):
        return False
    x = int(row.args[3][-1])
    tensors = [i for i, word in enumerate(row.args[1]) if word != "Scalar"]
    theirs = [row.widths[i] if row.args[1][i].startswith("c10::") else 0 for i in tensors]
    moved = sum(row.numel(i) * width for i, width in zip(tensors, theirs, strict=True))
    written = row.widths[0] * x if row.numel(0) == x else 0
    ours_by_hand = sum(row.numel(i) * row.widths[i] for i in tensors) + written
    return agrees(moved + theirs[0] * x, mib_bytes(row)) and ours.bytes == ours_by_hand


KINDS = {
    copies_compute_nothing: "Copies compute nothing",
    repeated_operands: "Repeated operands are read once",
    unknown_types: "Types the peer does not know",
    one_element_results: "Results of reductions",
    log_sum_exp: "What attention writes for its backward",
    statistics_of_rows: "Statistics of a layer norm",
    in_place_results: "Results in place keep their type",
    sums_of_integers: "Running sums of int32 are int64",
    compiled_kernels: "Compiled kernels",
}
PSEUDO = "Ops that no trace records"


@cache
def calls_of(path):
    """The calls of a trace with GPU work, by name and inputs, and every call's inputs."""
    trace = tracehouse.read(path)
    raw = {row["signature_id"]: json.loads(row["raw"]) for row in trace.signatures.to_pylist()}
    found = defaultdict(list)
    rows = {row["event_id"]: row for row in trace.op_perf.to_pylist()}
    for row in rows.values():
        args = raw.get(row["signature_id"], {})
        carrier = rows.get(row["carrier_id"])
        if carrier is row or carrier is None or carrier["name"] != row["name"]:
            name = op_categories.plain_name(row["name"])
            found[name, *(tupled(args.get(key, ())) for key in KEYS)].append(row)
    return trace, found


def kind_of(row, ours):
    if agrees(ours.flops, row.gflops and row.gflops * 1e9) and agrees(ours.bytes, mib_bytes(row)):
        return None
    if row.gflops == 0 == ours.flops and agrees(ours.bytes, mib_bytes(row)):
        return None
    kinds = [
        words
        for explains, words in KINDS.items()
        if (ours.flops is None or agrees(ours.flops, row.gflops * 1e9) or "copy_" in row.name)
        and explains(row, ours)
    ]
    assert kinds, f"not explained: {row} {ours}"
    return kinds[0]


@pytest.fixture(scope="session")
def compared(shared_traces):
    """For each row of the peer: its trace, the row, our numbers, our time, and the kind."""
    rows = []
    for trace in peer.TRACES:
        _, found = calls_of(shared_traces / f"{trace}.json.gz")
        for row in report(shared_traces, trace):
            mine = found.get((row.name, *row.args))
            if mine:
                ours = Ours(mine[0]["flops"], mine[0]["bytes"])
                assert {(call["flops"], call["bytes"]) for call in mine} == {
                    (ours.flops, ours.bytes)
                }
                time = sum(call["kernel_time_ns"] for call in mine)
                rows.append((trace, row, ours, time, kind_of(row, ours)))
            else:
                assert row.name.startswith("pseudo_op::"), row
                rows.append((trace, row, None, None, PSEUDO))
    return rows


def test_every_row_agrees_or_is_of_a_kind(compared):
    assert len(compared) > 200  # 0 would be no comparison
    assert sum(kind is None for *_, kind in compared) > 90


def test_every_kind_is_there_and_in_the_docs(compared, repo_root):
    text = (repo_root / "docs/differences.md").read_text(encoding="utf-8")
    seen = {kind for *_, kind in compared if kind is not None}
    assert seen == {*KINDS.values(), PSEUDO}
    for words in seen:
        assert f" {words}\n" in text, words


def test_kernel_time_of_each_row(compared):
    """To a millionth, or to what sums of doubles lose: see test_peer_ops.py."""
    timed = [(row, time) for _, row, _, time, kind in compared if kind != PSEUDO]
    assert len(timed) > 200
    for row, time in timed:
        assert abs(time / 1e3 - row.time_us) <= DOUBLES * row.time_us, row
    close = [row for row, time in timed if abs(time / 1e3 - row.time_us) <= 1e-6 * row.time_us]
    long = [row for row, time in timed if time > 5_000_000]
    assert len(close) > 50
    assert all(row in close for row in long)
