"""What `tracehouse show OUT triton` shows: compiled kernels, and one of them step by step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracehouse.commands.show import Rows, restriction
from tracehouse.errors import UsageError
from tracehouse.triton.operands import is_tensor
from tracehouse.triton.pointers import element_bytes
from tracehouse.triton.vocabulary import flops_per_element
from tracehouse.warehouse.query import Warehouse

_LAUNCHES = """
SELECT triton_kernels.*, traces.path
FROM triton_kernels LEFT JOIN traces USING (trace_id)
"""
_OF_TRACE = """
SELECT * FROM triton_summary WHERE trace_id = ?
ORDER BY kernel_time_ns DESC NULLS LAST, name, signature_id, kernel_hash
"""
_FIRST = f"""
{_LAUNCHES} WHERE trace_id = ?
QUALIFY row_number() OVER (
    PARTITION BY name, signature_id, kernel_hash ORDER BY kernel_time_ns IS NULL, event_id
) = 1
"""
_SIGNATURES = """
SELECT signature_id, input_dims, input_types, concrete_inputs, extra_inputs
FROM signatures
WHERE trace_id = ?
    AND signature_id IN (SELECT signature_id FROM triton_summary WHERE trace_id = ?)
"""
_SIGNATURE = """
SELECT input_dims, input_types, concrete_inputs, extra_inputs
FROM signatures WHERE trace_id = ? AND signature_id = ?
"""


@dataclass(frozen=True, slots=True)
class TraceKernels:
    """The compiled kernels of a trace: its path, first rows of `triton_summary`, their total."""

    path: str
    kernels: pa.Table
    total: int


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a kernel: its value if it is a scalar; bytes of an element, elements, bytes."""

    dims: list[int] | None
    type: str
    value: str
    element_bytes: int | None = None
    elements: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class OpFlops:
    """FLOPs per element of an op; None for a part of a name that is no known op."""

    op: str
    flops: int | None


@dataclass(frozen=True, slots=True)
class Walk:
    """One kernel step by step.

    launch: its row of `triton_kernels`, that of its first launch. summary: its row of
    `triton_summary`. operands: its inputs, () if none recorded. ops: what each element takes.
    """

    launch: dict[str, Any]
    summary: dict[str, Any]
    operands: tuple[Operand, ...]
    ops: tuple[OpFlops, ...]


def kernels_of_traces(out: Path, *, trace: str | None = None, limit: int = 0) -> list[TraceKernels]:
    """Return the compiled kernels of each trace that has some, longest time first.

    `trace` and `limit` as in `show.trace_rows`.
    """
    with Warehouse(out) as warehouse:
        where, parameters = restriction(warehouse, trace)
        query = f"SELECT trace_id, path FROM traces {where} ORDER BY path, trace_id"
        found = []
        for row in warehouse.arrow(query, parameters).to_pylist():
            rows = warehouse.arrow(_OF_TRACE, [row["trace_id"]])
            if rows.num_rows:
                first = rows.slice(0, limit) if limit else rows
                found.append(TraceKernels(row["path"] or "", first, rows.num_rows))
    return found


def kernel_rows(out: Path, kernel: str | None, *, trace: str | None = None, limit: int = 0) -> Rows:
    """Return rows of `triton_summary`, or those of `triton_kernels` that have the name `kernel`."""
    with Warehouse(out) as warehouse:
        where, parameters = restriction(warehouse, trace)
        given: list[Any] = list(parameters)
        if kernel is None:
            source = f"SELECT * FROM triton_summary {where} ORDER BY trace_id, name, signature_id"
        else:
            _check_name(warehouse, kernel)
            condition = f"{where} AND name = ?" if where else "WHERE name = ?"
            source = f"SELECT * FROM triton_kernels {condition} ORDER BY trace_id, event_id"
            given.append(kernel)
        rows = warehouse.arrow(source, given)
    return Rows(rows.slice(0, limit) if limit else rows, rows.num_rows)


def walks(out: Path, kernel: str, *, trace: str | None = None, limit: int = 0) -> list[Walk]:
    """Go through the kernels of that name: one for each row of `triton_summary`.

    UsageError if no kernel has that name; `trace` and `limit` as in `show.trace_rows`.
    """
    with Warehouse(out) as warehouse:
        _check_name(warehouse, kernel)
        where, parameters = restriction(warehouse, trace)
        condition = f"{where} AND name = ?" if where else "WHERE name = ?"
        summaries = warehouse.arrow(
            f"SELECT * FROM triton_summary {condition}"
            " ORDER BY trace_id, kernel_time_ns DESC NULLS LAST, signature_id, kernel_hash",
            [*parameters, kernel],
        ).to_pylist()
        return [_walk(warehouse, row) for row in (summaries[:limit] if limit else summaries)]


def trace_walks(warehouse: Warehouse, trace_id: str, limit: int) -> list[Walk]:
    """Go through the first `limit` kernels of a trace, in the order of `kernels_of_traces`."""
    summaries = warehouse.arrow(f"{_OF_TRACE} LIMIT {limit:d}", [trace_id]).to_pylist()
    if not summaries:
        return []
    launches = {_key(row): row for row in warehouse.arrow(_FIRST, [trace_id]).to_pylist()}
    recorded = {
        row["signature_id"]: row
        for row in warehouse.arrow(_SIGNATURES, [trace_id, trace_id]).to_pylist()
    }
    return [
        _walked(launches[_key(row)], row, recorded.get(row["signature_id"])) for row in summaries
    ]


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["name"], row["signature_id"], row["kernel_hash"]


def _walk(warehouse: Warehouse, summary: dict[str, Any]) -> Walk:
    key = [summary[name] for name in ("trace_id", "name", "signature_id", "kernel_hash")]
    (launch,) = warehouse.arrow(
        f"{_LAUNCHES} WHERE trace_id = ? AND name = ? AND signature_id IS NOT DISTINCT FROM ?"
        " AND kernel_hash IS NOT DISTINCT FROM ?"
        " ORDER BY kernel_time_ns IS NULL, event_id LIMIT 1",
        key,
    ).to_pylist()
    recorded = warehouse.arrow(_SIGNATURE, [summary["trace_id"], summary["signature_id"]])
    return _walked(launch, summary, recorded.to_pylist()[0] if recorded.num_rows else None)


def _walked(
    launch: dict[str, Any], summary: dict[str, Any], recorded: dict[str, Any] | None
) -> Walk:
    operands = () if recorded is None else _operands(recorded)
    ops = [OpFlops(op, flops_per_element((op,)).refined) for op in launch["aten_ops"] or ()]
    ops += [OpFlops(part, None) for part in launch["ops_unknown"] or ()]
    return Walk(launch, summary, operands, tuple(ops))


def _operands(recorded: dict[str, Any]) -> tuple[Operand, ...]:
    dims = recorded["input_dims"] or []
    types = recorded["input_types"] or []
    values = recorded["concrete_inputs"] or []
    found = []
    for place, type_ in enumerate(types):
        shape = dims[place] if place < len(dims) else None
        value = values[place] if place < len(values) else None
        if not is_tensor(type_) or shape is None:
            found.append(Operand(shape, type_ or "", value or ""))
            continue
        width, elements = element_bytes(type_), 1
        for size in shape:
            elements *= size
        moved = None if width is None else width * elements
        found.append(Operand(shape, type_, value or "", width, elements, moved))
    found += [
        Operand(None, "(beyond the declared)", v or "") for v in recorded["extra_inputs"] or ()
    ]
    return tuple(found)


def _check_name(warehouse: Warehouse, kernel: str) -> None:
    names = warehouse.arrow("SELECT DISTINCT name FROM triton_kernels ORDER BY name")["name"]
    known = names.to_pylist()
    if kernel not in known:
        near = [name for name in known if kernel in name][:5] or known[:5]
        raise UsageError(
            f"There is no compiled kernel {kernel!r}.",
            hint=f"There are: {', '.join(near)} …" if near else "Try: tracehouse show OUT triton",
        )
