"""Query an archive of many kernels: op_summary by label and week, and the building before it.

    python benchmarks/bench_query.py TRACE [KERNELS]

The archive is made from one analysed trace: its rows of `traces` and `op_summary` again and again,
each time under another trace_id, path, label and time, until its traces hold KERNELS kernels.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tracehouse
from tracehouse.storage import layout
from tracehouse.storage.manifest import FileEntry, TraceRef, load_state
from tracehouse.storage.writer import PartWriter, commit_staged
from tracehouse.warehouse.build import build

LABELS, WEEKS, A_PART, REPEATS = 50, 52, 500, 5
TABLES = ("traces", "op_summary")
QUERY = """
SELECT
    traces.label,
    date_trunc('week', traces.analysed_at) AS week,
    op_summary.name,
    sum(op_summary.direct_kernel_time_ns) AS time_ns,
    sum(op_summary.count) AS calls
FROM op_summary
JOIN traces USING (trace_id)
GROUP BY ALL
ORDER BY ALL
"""


def again(table: pa.Table, ids: list[str], first: int) -> pa.Table:
    """Return the rows of one trace once for each of `ids`: the archive's from the `first` on."""
    count, rows = len(ids), table.num_rows
    repeated = table.take(pa.array(np.tile(np.arange(rows), count)))
    place = table.schema.get_field_index("trace_id")
    codes = pa.array(np.repeat(np.arange(count, dtype=np.int32), rows))
    field = table.schema.field(place)
    column = pa.DictionaryArray.from_arrays(codes, pa.array(ids)).cast(field.type)
    repeated = repeated.set_column(place, field, column)
    if "analysed_at" not in table.column_names:
        return repeated
    started = table["analysed_at"][0].as_py()
    times = [started - timedelta(weeks=(first + i) % WEEKS) for i in range(count)]
    place = table.schema.get_field_index("analysed_at")
    field = table.schema.field(place)
    return repeated.set_column(place, field, pa.array(times, field.type))


def fill(out: Path, tables: dict[str, pa.Table], traces: int) -> None:
    """Write the archive's parts."""
    for number, first in enumerate(range(0, traces, A_PART), 1):
        ids = [f"{i:016x}" for i in range(first, min(first + A_PART, traces))]
        with PartWriter(out, layout.part_id(number)) as writer:
            for name, table in tables.items():
                writer.append(name, again(table, ids, first))
            files = [
                FileEntry(path, 1, 1, one, "ok", None, label, (TraceRef(one, path),))
                for i, one in enumerate(ids, first)
                for label in (f"job{i % LABELS:02}",)
                for path in (f"/archive/{label}/{one}.json.gz",)
            ]
            commit_staged(out, writer.stage(files, ids))


def measured(path: str, kernels: int) -> dict[str, float]:
    """Return seconds of the query (median) and of the build, kernels, traces and rows found."""
    with tempfile.TemporaryDirectory() as folder:
        one, out = Path(folder) / "one", Path(folder) / "many"
        tracehouse.analyze([path], one, workers=1)
        (part,) = load_state(one).parts
        tables = {name: pq.read_table(one / part.tables[name].path) for name in TABLES}
        held = tables["traces"]["kernels"][0].as_py()
        traces = -(-kernels // held)
        fill(out, tables, traces)
        started = time.perf_counter()
        build(out, load_state(out))
        building = time.perf_counter() - started
        seconds = []
        with tracehouse.open(out) as warehouse:
            for _ in range(REPEATS):
                started = time.perf_counter()
                rows = warehouse.sql(QUERY).num_rows
                seconds.append(time.perf_counter() - started)
            assert warehouse.sql("SELECT sum(kernels) AS n FROM traces").to_pylist() == [
                {"n": traces * held}
            ]
        return {
            "query": statistics.median(seconds),
            "build": building,
            "kernels": traces * held,
            "traces": traces,
            "rows": rows,
        }


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000_000)))
