"""The views `job_runs` and `trends`: which traces are one run, and the numbers of a run."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import tracehouse
from tracehouse.resources import sql_texts
from tracehouse.warehouse.catalogue import relations

S = 1_000_000_000
YEAR_2026 = 1_767_225_600 * S  # 2026-01-01 00:00:00 UTC
FILE_TIME = 1_767_312_000_000_000  # µs: 2026-01-02 00:00:00 UTC


@pytest.fixture(scope="module")
def samples(repo_root, tmp_path_factory):
    """Analyse the samples of training and of two ranks."""
    out = tmp_path_factory.mktemp("samples")
    paths = [repo_root / "data/samples" / name for name in ("training.json.gz", "two_ranks")]
    tracehouse.analyze(paths, out, workers=1)
    with tracehouse.open(out) as warehouse:
        yield warehouse


def values(warehouse, label):
    query = "SELECT metric, subject, value, per FROM trends WHERE label = ?"
    rows = warehouse.sql(query, [label]).to_pylist()
    return {(row["metric"], row["subject"]): (row["value"], row["per"]) for row in rows}


def test_the_training_sample_per_step(samples):
    """By data/README.md: two steps, 2.4 ms busy of 3.32 ms, six aten::mm of 200 µs each."""
    found = values(samples, "samples")
    assert found["busy_ns", "(all)"] == (1_200_000, "step")
    assert found["total_ns", "(all)"] == (1_660_000, "step")
    assert found["idle_ns", "(all)"] == (460_000, "step")
    assert found["step_ns", "training"] == (1_200_000, "step")
    assert found["step_span_ns", "training"] == (1_320_000, "step")  # 100 to 1420 µs
    float_ = "[[8192, 4096], [4096, 4096]] [float, float]"
    assert found["op_ns", f"aten::mm {float_}"] == (600_000, "step")
    assert found["op_call_ns", f"aten::mm {float_}"] == (200_000, "call")
    gemm = next(s for m, s in found if m == "kernel_ns" and "gemm" in s)
    assert found["kernel_ns", gemm] == (1_000_000, "step")  # ten of 200 µs in two steps
    assert not [metric for metric, _ in found if metric == "tokens_per_s"]


def test_ranks_of_one_job_are_one_run_with_their_mean(samples):
    """By data/generators/two_ranks.py: mm takes 200 + 200 µs on rank 0 and 260 + 200 on rank 1."""
    (run,) = samples.sql("SELECT * FROM job_runs WHERE label = 'two_ranks'").to_pylist()
    assert (run["traces"], run["divisor"], run["per"], run["is_good"]) == (2, 2, "step", True)
    bf16 = "[[4096, 4096], [4096, 4096]] ['c10::BFloat16', 'c10::BFloat16']"
    found = values(samples, "two_ranks")
    assert found["op_ns", f"aten::mm {bf16}"] == (430_000, "step")
    assert found["op_call_ns", f"aten::mm {bf16}"] == (215_000, "call")
    assert found["busy_ns", "(all)"] == (790_000, "step")


def test_shares_of_a_metric_make_a_whole(samples):
    rows = samples.sql(
        "SELECT run_id, metric, sum(share_pct) AS whole FROM trends "
        "WHERE metric IN ('op_ns', 'kernel_ns', 'step_ns') GROUP BY ALL"
    ).to_pylist()
    assert len(rows) == 6
    assert all(row["whole"] == pytest.approx(100) for row in rows)


@pytest.mark.parametrize(
    ("metric", "table", "time"),
    [("op_ns", "op_summary", "direct_kernel_time_ns"), ("kernel_ns", "kernel_summary", "time_ns")],
)
def test_the_parts_add_up_to_the_summaries(samples, metric, table, time):
    """Nothing is lost between the summaries of the traces and the numbers of their runs."""
    (row,) = samples.sql(
        "SELECT (SELECT sum(trends.value * job_runs.divisor)"
        " FROM trends JOIN job_runs USING (run_id) "
        f"WHERE metric = '{metric}') AS found, (SELECT sum({time}) FROM {table}) AS expected"
    ).to_pylist()
    assert row["found"] == pytest.approx(float(row["expected"]), rel=1e-12)


def test_efficiency_is_that_of_the_roofline(samples):
    (row,) = samples.sql(
        "SELECT trends.value, roofline.roofline_pct FROM trends JOIN roofline "
        "ON roofline.trace_id = trends.run_id AND roofline.name = trends.name "
        "AND roofline.input_dims = trends.input_dims "
        "WHERE trends.metric = 'op_roofline_pct' AND trends.name = 'aten::addmm'"
    ).to_pylist()
    assert row["value"] == pytest.approx(row["roofline_pct"])


def runs_of(traces, files=()):
    """Evaluate `job_runs` over rows of `traces` and `files`; NULL for what they leave out."""
    columns = {relation.name: relation.columns for relation in relations()}
    with duckdb.connect() as connection:
        for name, rows in (("traces", traces), ("files", files), ("step_summary", ())):
            typed = ", ".join(f'"{c.name}" {c.type}' for c in columns[name])
            connection.execute(f"CREATE TABLE {name} ({typed})")
            if rows:
                connection.register("_rows", pa.Table.from_pylist(list(rows)))
                connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM _rows")
        for name in ("_trace_runs", "job_runs"):
            connection.execute(sql_texts("warehouse")[name])
        query = (
            "SELECT run_id, position, traces, status, is_good, time_source, label, "
            "epoch_us(run_time) AS at FROM job_runs ORDER BY label, position"
        )
        return connection.sql(query).to_arrow_table().to_pylist()


def trace(trace_id, start_s, **more):
    """Draw a trace that was recorded for a second from `start_s` seconds into 2026 on."""
    return {
        "trace_id": trace_id,
        "path": f"/{trace_id}",
        "label": "job",
        "status": "ok",
        "base_time_ns": YEAR_2026,
        "start_ns": start_s * S,
        "end_ns": (start_s + 1) * S,
        "rank": None,
        "world_size": None,
        "reason": None,
    } | more


def test_ranks_whose_times_touch_are_a_run():
    """Rank 1 starts half of a second after rank 0, on two nights."""
    rows = [
        trace(f"{night}{rank}", 0, rank=rank, world_size=2)
        | {"start_ns": (100_000 * night) * S + rank * S // 2}
        | {"end_ns": (100_000 * night) * S + rank * S // 2 + S}
        for night in (1, 2)
        for rank in (0, 1)
    ]
    found = runs_of(rows)
    assert [(r["run_id"], r["position"], r["traces"]) for r in found] == [
        ("20", 1, 2),
        ("10", 2, 2),
    ]


def test_traces_without_a_rank_are_runs_of_their_own():
    found = runs_of([trace("a", 0), trace("b", 0), trace("c", 5)])
    assert [(r["run_id"], r["traces"]) for r in found] == [("c", 1), ("a", 1), ("b", 1)]


def test_the_time_of_a_run_says_where_it_is_from():
    """Without a base time a start of 5 s cannot be placed: the file's time counts."""
    day = FILE_TIME - 86_400_000_000  # 2026-01-01
    rows = [
        trace("recorded", 5),
        trace("file", 5, base_time_ns=None),
        trace("since1970", 0, base_time_ns=None, start_ns=YEAR_2026 + 7 * S),
    ]
    files = [{"path": "/file", "traces": ["file"], "mtime": None}]
    files[0]["mtime"] = pa.scalar(FILE_TIME, pa.timestamp("us", "UTC")).as_py()
    found = {r["run_id"]: (r["time_source"], r["at"]) for r in runs_of(rows, files)}
    assert found == {
        "recorded": ("recorded", day + 5_000_000),
        "since1970": ("recorded", day + 7_000_000),
        "file": ("file", FILE_TIME),
    }


def test_the_worst_trace_of_a_run_counts():
    rows = [
        trace("0", 0, rank=0, world_size=2),
        trace("1", 0, rank=1, world_size=2, status="partial", reason="cut short"),
        trace("x", 0, label="other", status="repaired"),
    ]
    found = runs_of(rows)
    assert [(r["label"], r["status"], r["is_good"]) for r in found] == [
        ("job", "partial", False),
        ("other", "repaired", True),
    ]
