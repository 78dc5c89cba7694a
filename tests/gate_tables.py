"""Drawn rows of `trends` and `job_runs`, and the views of the gate over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from tracehouse.resources import sql_texts
from tracehouse.warehouse.views import load_views

DAY_US = 86_400_000_000
_DEFAULTS = {"unit": "ns", "per": "trace", "worse": "up", "is_good": True}


def drawn(
    values: Mapping[str, Mapping[tuple[str, str], Sequence[float | None]]], **more: object
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Draw `trends` and `job_runs`: by label, by (metric, subject) the values, newest run last.

    A run without a value of a subject has None. more: columns of every row of trends.
    """
    trends, runs = [], []
    for label, numbers in values.items():
        count = max(len(series) for series in numbers.values())
        for i in range(count):
            run = {
                "run_id": f"{label}-{i:03d}",
                "label": label,
                "position": count - i,
                "run_time": (i + 1) * DAY_US,
                "path": f"/{label}/{i:03d}",
                "traces": 1,
                "per": "trace",
                "is_good": True,
                "arch": "X",
                "status": "ok",
                "reason": None,
            }
            runs.append(run)
            trends += [
                _DEFAULTS
                | {"label": label, "metric": metric, "subject": subject}
                | {"run_id": run["run_id"], "value": series[i]}
                | more
                for (metric, subject), series in numbers.items()
                if series[i] is not None
            ]
    return trends, runs


def session(trends, runs) -> duckdb.DuckDBPyConnection:
    """Install the views of the gate over rows of `trends` and `job_runs`, or over Arrow tables."""
    connection = duckdb.connect()
    views = {view.name: view for view in load_views("warehouse")}
    for name, rows in (("trends", trends), ("job_runs", runs)):
        given = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
        connection.register("_given", given)
        columns = ", ".join(
            f'{_typed(c, given.column_names)} AS "{c.name}"' for c in views[name].columns
        )
        connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM _given")
        connection.unregister("_given")
    for name in ("_gate_settings", "_gate_runs", "regressions"):
        connection.execute(sql_texts("warehouse")[name])
    return connection


def with_settings(connection: duckdb.DuckDBPyConnection, **settings: float) -> None:
    """Change settings of the gate."""
    view = next(v for v in load_views("warehouse") if v.name == "_gate_settings")
    columns = ", ".join(
        f"{settings[c.name]}::{c.type} AS {c.name}" if c.name in settings else c.name
        for c in view.columns
    )
    connection.execute(
        f"CREATE OR REPLACE VIEW _gate_settings AS SELECT {columns} FROM ({view.query})"
    )


def judged(connection: duckdb.DuckDBPyConnection) -> list[dict[str, object]]:
    """Return the rows of `regressions` by label, metric and subject."""
    query = "SELECT * FROM regressions ORDER BY label, metric, subject"
    return connection.sql(query).to_arrow_table().to_pylist()


def archives(count: int, runs: int, *, shares, noise: float, run_noise: float, slow, seed: int):
    """Draw the op times of many archives at once: (archives, runs, ops), 1 by mean.

    noise: of an op in a run; run_noise: of all ops of a run. slow: op, factor, how many last runs.
    """
    draw = np.random.default_rng(seed)
    ops = len(shares)
    values = 1 + noise * draw.standard_normal((count, runs, ops))
    values *= 1 + run_noise * draw.standard_normal((count, runs, 1))
    op, factor, last = slow
    values[:, runs - last :, op] *= factor
    return values * np.asarray(shares)


def _typed(column, given: Sequence[str]) -> str:
    if column.name not in given:
        return f"CAST(NULL AS {column.type})"
    if column.name == "run_time":
        return "make_timestamptz(run_time)"
    return f'CAST("{column.name}" AS {column.type})'
