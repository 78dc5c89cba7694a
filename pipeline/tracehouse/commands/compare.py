"""`tracehouse compare`: where the GPU time of one side differs from that of another.

The sums are SQL: sql/compare_side over the tables of each warehouse, sql/compare over what they
give for all sides together.
"""

from __future__ import annotations

import string
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.commands.compare_sides import Side, find_side
from tracehouse.commands.compare_sums import LEVELS, TABLES, compared, divisor
from tracehouse.errors import TracehouseError, UsageError
from tracehouse.warehouse.queries import load_queries
from tracehouse.warehouse.query import Warehouse

NAMES = string.ascii_uppercase


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between sides.

    sides: a row per side: name (A, B …), given, traces, of them partial ones; steps, GPU
    activities; divisor, the traces or steps that times are of; rejected and without_steps, traces
    left out; devices. totals, parts: the rows of the views compare_totals and compare_parts, with
    the names of both sides in front. parts: by level, then side, the largest difference first.
    """

    sides: pa.Table
    totals: pa.Table
    parts: pa.Table

    def of_level(self, level: str, side: str) -> pa.Table:
        """Return the parts of one level and side, the largest difference first."""
        fits = pc.and_(
            pc.equal(self.parts["level"], level),
            pc.equal(self.parts["side"], side),
        )
        return self.parts.filter(fits)


def compare(
    given: Sequence[str],
    *,
    within: Path | None = None,
    levels: Sequence[str] = LEVELS,
    per: str = "trace",
    phase: str | None = None,
) -> Comparison:
    """Compare every side but the first with the first.

    Args:
        given: two sides or more, as in `compare_sides.find_side`.
        within: the warehouse that selectors without one are of.
        levels: which of LEVELS `parts` has.
        per: trace or step: times and calls are means over the traces of a side, or its sums by the
            number of its steps.
        phase: only the work of steps of this phase, e.g. decode; None for all.

    Raises:
        UsageError: there are fewer than two sides or more than 26, a side means nothing, or none of
            its traces has a step, or one of `phase`, where that is asked for.
    """
    if not 2 <= len(given) <= len(NAMES):
        raise UsageError(
            f"A comparison needs two to {len(NAMES)} sides; this one has {len(given)}.",
            hint="Try: tracehouse compare --help",
        )
    with tempfile.TemporaryDirectory(prefix="tracehouse-compare-") as scratch:
        sides = [
            find_side(text, within, Path(scratch) / name)
            for text, name in zip(given, NAMES, strict=False)
        ]
        if per == "step" or phase is not None:
            tables = [_with_steps(side, _tables(side, phase), phase) for side in sides]
        else:
            tables = [_tables(side, phase) for side in sides]
    return _compared(sides, tables, levels, per)


def _tables(side: Side, phase: str | None) -> dict[str, pa.Table]:
    """Return what the queries of sql/compare_side give for a side, by name."""
    queries = load_queries("compare_side")
    parameters = {"traces": list(side.trace_ids), "phase": phase}
    with Warehouse(side.out) as warehouse:
        try:
            return {name: warehouse.arrow(queries[name].sql, parameters) for name in TABLES}
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            raise UsageError(
                f"{side.out} is of another version of tracehouse: {str(error).splitlines()[0]}",
                hint=f"Analyse it again: tracehouse analyze TRACES -o {side.out}",
            ) from error
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise _too_large(side.given) from error


def _with_steps(side: Side, tables: dict[str, pa.Table], phase: str | None) -> dict[str, pa.Table]:
    """Leave out the traces without a step (of `phase`); UsageError if none is left."""
    traces = tables["traces"]
    kept = traces.filter(pc.greater(traces["steps"], 0))["trace_id"]
    if len(kept):
        return {
            name: rows.filter(pc.is_in(rows["trace_id"], kept)) for name, rows in tables.items()
        }
    there_are = _phases(side) if phase is not None else []
    raise UsageError(
        f"No trace of side {side.given!r} has a step{f' of phase {phase}' if phase else ''}.",
        hint=f"Its phases are {', '.join(there_are)}"
        if there_are
        else "tracehouse analyze --step-pattern says what a step is",
    )


def _phases(side: Side) -> list[str]:
    with Warehouse(side.out) as warehouse:
        parameters = {"traces": list(side.trace_ids), "phase": None}
        rows = warehouse.arrow(load_queries("compare_side")["phases"].sql, parameters)
    return sorted(set(rows["phase"].to_pylist()))


def _compared(
    sides: Sequence[Side],
    tables: Sequence[dict[str, pa.Table]],
    levels: Sequence[str],
    per: str,
) -> Comparison:
    try:
        totals, parts = compared(tables, per=per)
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise _too_large(", ".join(side.given for side in sides)) from error
    wanted = parts.filter(pc.is_in(parts["level"], pa.array(levels, pa.string())))
    return Comparison(_side_rows(sides, tables, per), _named(totals), _named(wanted))


def _named(rows: pa.Table) -> pa.Table:
    """Replace the number of the side by its name, beside the name of the base."""
    column = rows.column_names.index("side")
    names = pa.array([NAMES[number] for number in rows["side"].to_pylist()], pa.string())
    base = pa.array([NAMES[0]] * rows.num_rows, pa.string())
    return rows.set_column(column, "side", names).add_column(column, "base", base)


def _side_rows(sides: Sequence[Side], tables: Sequence[dict[str, pa.Table]], per: str) -> pa.Table:
    kept = [of_side["traces"] for of_side in tables]
    return pa.table(
        {
            "side": pa.array(list(NAMES[: len(sides)]), pa.string()),
            "given": pa.array([side.given for side in sides], pa.string()),
            "traces": pa.array([t.num_rows for t in kept], pa.int64()),
            "steps": pa.array([pc.sum(t["steps"]).as_py() or 0 for t in kept], pa.int64()),
            "activities": pa.array(
                [pc.sum(t["activities"]["activities"]).as_py() or 0 for t in tables], pa.int64()
            ),
            "divisor": pa.array([divisor(t, per) for t in kept], pa.int64()),
            "partial": pa.array([side.partial for side in sides], pa.int64()),
            "rejected": pa.array([side.rejected for side in sides], pa.int64()),
            "without_steps": pa.array(
                [len(side.trace_ids) - t.num_rows for side, t in zip(sides, kept, strict=True)],
                pa.int64(),
            ),
            "devices": pa.array(
                [sorted({a for a in t["arch"].to_pylist() if a}) for t in kept],
                pa.list_(pa.string()),
            ),
        }
    )


def _too_large(given: str) -> TracehouseError:
    return TracehouseError(
        f"Durations in {given} add up to more than 292 years.",
        code="DUR_OVERFLOW",
        hint="Try: tracehouse doctor FILE",
    )
