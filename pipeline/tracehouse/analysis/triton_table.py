"""The columns of the table `triton_kernels` from the work of distinct launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import (
    Codes,
    Integers,
    Ints,
    Words,
    first_of,
    places,
    read_integers,
    read_words,
    real,
    spread,
    whole,
)
from tracehouse.analysis.kernel_hints import hints
from tracehouse.analysis.op_work import Results, Spec
from tracehouse.analysis.roofline import limits
from tracehouse.formulas.arch import Arch
from tracehouse.formulas.dtypes import DTYPES
from tracehouse.schema.tables import SIZES, TRITON_KERNELS
from tracehouse.triton.elements import ABSENT
from tracehouse.triton.kernel_work import (
    BASES,
    CHECKS,
    IN_PLACE,
    SIZES_FROM,
    SOURCES,
    UNITS,
    Ops,
    Unit,
    Work,
)
from tracehouse.triton.launch_facts import read_count
from tracehouse.triton.launches import read_name

_MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Calls:
    """The launches of a trace.

    linked: its tables. at (n,): row of `ops`. number (n,): place among the distinct launches. name,
    texts: of each call.
    """

    linked: Mapping[str, pa.Table]
    at: Ints
    number: Ints
    name: Words
    texts: Mapping[str, Words]


def kernels_table(calls: Calls, work: Work, ops: Ops, arch: Arch | None) -> pa.Table:
    """Make the table; `work` is that of the distinct launches, `ops` their lists of ops."""
    table_ops, number = calls.linked["ops"], calls.number
    count = read_integers(table_ops, "kernel_count").values[calls.at]
    time = read_integers(table_ops, "kernel_time_ns").values[calls.at]
    results = _results(work)
    limit = limits(
        results.take(number),
        _bits(calls, work),
        np.zeros(len(number), dtype=np.int64),
        [arch],
    )
    timed = np.where((count > 0) & (time > 0), time, np.nan).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        intensity = work.flops / np.where(work.bytes > 0, work.bytes, np.nan)
        of_calls = {
            "tflops_s": real(work.flops[number] / timed / 1e3),
            "tb_s": real(work.bytes[number] / timed / 1e3),
            "roofline_pct": real(100.0 * limit.roofline_ns / timed),
        }
    of_calls |= {
        "trace_id": read_words(table_ops, "trace_id").take(calls.at).arrow(),
        "event_id": read_integers(table_ops, "event_id").take(calls.at).arrow(),
        "name": calls.name.arrow(),
        "kind": calls.name.each(lambda name: read_name(name).kind).arrow(),
        "signature_id": read_integers(table_ops, "signature_id").take(calls.at).arrow(),
        "step_id": read_integers(table_ops, "step_id").take(calls.at).arrow(),
        "kernel_count": pa.array(count),
        "kernel_time_ns": Integers(time, count > 0).arrow(),
        "compute_spec": limit.spec.arrow(),
        "arch": spread(
            np.zeros(len(number), np.int32), [None if arch is None else arch.name]
        ).arrow(),
        "roofline_ns": real(limit.roofline_ns),
        "bound": limit.bound.arrow(),
        "why": first_of(spread(work.why[number].astype(np.int32), work.words), limit.why).arrow(),
        "kernel_hash": calls.texts["kernel_hash"].arrow(),
        "num_warps": _counts(calls.texts["num_warps"]),
        "num_stages": _counts(calls.texts["num_stages"]),
    }
    of_launches = {
        "aten_ops": _lists([list(fused) for fused in ops.known], work.ops),
        "ops_unknown": _lists([list(parts) or None for parts in ops.unknown], work.ops),
        "xnumel": whole(work.x),
        "rnumel": whole(np.where(np.isnan(work.x), np.nan, work.r)),
        "dims": _dims(work.size),
        "elements": whole(work.elements),
        "sizes": _words(work.sizes, SIZES_FROM),
        "flops": whole(np.rint(work.flops)),
        "flops_is_partial": pa.array(work.partial, mask=np.isnan(work.flops)),
        "bytes": whole(np.rint(work.bytes)),
        "bytes_min": whole(np.rint(work.least)),
        "bytes_basis": _words(np.where(np.isnan(work.bytes), -1, work.basis), BASES),
        "in_place": _words(work.in_place, IN_PLACE),
        "flops_seed": whole(work.seed_flops),
        "bytes_seed": whole(work.seed_bytes),
        "flops_per_byte": real(intensity),
        "data_moved_mib": real(work.bytes / _MIB),
        "dtype": _words(work.dtype, [dtype.name or None for dtype in DTYPES]),
        "source": _words(work.source, SOURCES),
        "check": _words(work.check, CHECKS),
    }
    place = pa.array(number)
    columns = of_calls | {name: column.take(place) for name, column in of_launches.items()}
    return pa.table([columns[name] for name in TRITON_KERNELS.names], schema=TRITON_KERNELS.schema)


def _results(work: Work) -> Results:
    """Return the work as the results of formulas."""
    pairs = [(unit, code) for unit in range(len(UNITS)) for code in range(len(DTYPES))]
    specs = [
        Spec(UNITS[unit], DTYPES[code].precision, DTYPES[code].name or None, None, None)
        for unit, code in pairs
    ]
    return Results(work.flops, work.bytes, work.unit * len(DTYPES) + work.dtype, specs)


def _bits(calls: Calls, work: Work) -> Ints:
    """Return what the names of each call's activities tell (kernel_hints), if it is a product."""
    kernels = calls.linked["kernels"]
    products = np.flatnonzero((work.unit == Unit.MATRIX)[calls.number])
    bits = np.zeros(len(calls.number), dtype=np.int64)
    if not len(products):
        return bits
    events = read_integers(calls.linked["ops"], "event_id").values[calls.at[products]]
    owner = read_integers(kernels, "op_id")
    place = np.where(owner.known, places(events, owner.values), -1)
    own = np.flatnonzero(place >= 0)
    np.bitwise_or.at(bits, products[place[own]], hints(kernels)[own])
    return bits


def _lists(lists: Sequence[list[str] | None], codes: Ints) -> pa.Array:
    values = pa.array([*lists, None], pa.list_(pa.string()))
    return values.take(pa.array(np.where(codes < 0, len(lists), codes)))


def _dims(size: Ints) -> pa.Array:
    parts = [
        pa.array(size[:, d], pa.int64(), mask=size[:, d] == ABSENT) for d in range(SIZES.num_fields)
    ]
    unknown = pa.array((size == ABSENT).all(axis=1))
    return pa.StructArray.from_arrays(parts, fields=list(SIZES), mask=unknown)


def _words(codes: Ints, words: Sequence[str | None]) -> pa.Array:
    return spread(codes.astype(np.int32), words).arrow()


def _counts(words: Words) -> pa.Array:
    values = [read_count(word) for word in words.values]
    value = np.array([*(v or 0 for v in values), 0], dtype=np.int64)
    known = np.array([*(v is not None for v in values), False], dtype=np.bool_)
    codes: Codes = words.codes
    return pa.array(value[codes], pa.int64(), mask=~known[codes])
