"""field_cases H: ranks unknown, twice, and merged into one file."""

from __future__ import annotations

import pytest
from case_file import analyzed, both_readers, codes, column, read_events

KERNEL = (
    '{"traceEvents":[{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":10,"dur":5}]%s}'
)
RANK = ',"distributedInfo":{"rank":%d,"world_size":4}'


@both_readers
def test_f63_rank_of_the_metadata_the_name_or_none(tmp_path, reader):
    texts = {
        "a/rank3.json": KERNEL % (0, RANK % 2),
        "b/job_rank3.json": KERNEL % (1, ""),
        "c/x-TP-1-DP-0.trace.json": KERNEL % (2, ""),
        "d/t_rank0.json": KERNEL % (3, ""),
        "e/trace.json": KERNEL % (4, ""),
    }
    with analyzed(tmp_path, texts, reader) as warehouse:
        rows = warehouse.sql("SELECT path, rank FROM traces ORDER BY path").to_pylist()
        unknown = warehouse.sql(
            "SELECT path FROM issues JOIN traces USING (trace_id) WHERE code = 'RANK_UNKNOWN'"
        )["path"].to_pylist()
    assert [row["rank"] for row in rows] == [2, 3, 1, 0, None]
    assert [path.rpartition("archive/")[2] for path in unknown] == ["e/trace.json"]


@both_readers
def test_f63_the_same_rank_twice_is_kept_twice(tmp_path, reader):
    texts = {"a.json": KERNEL % (0, RANK % 1), "b.json": KERNEL % (1, RANK % 1)}
    with analyzed(tmp_path, texts, reader) as warehouse:
        rows = warehouse.sql(
            "SELECT trace_id, rank, busy_ns FROM traces JOIN gpu_timeline USING (trace_id)"
        ).to_pylist()
        issues = warehouse.sql(
            "SELECT path, example FROM issues JOIN traces USING (trace_id)"
            " WHERE code = 'RANK_DUPLICATE' ORDER BY path"
        ).to_pylist()
    assert len({row["trace_id"] for row in rows}) == 2
    assert [(row["rank"], row["busy_ns"]) for row in rows] == [(1, 5_000), (1, 5_000)]
    pairs = [tuple(row[k].rpartition("/")[2] for k in ("path", "example")) for row in issues]
    assert pairs == [("a.json", "b.json"), ("b.json", "a.json")]


NIGHT = RANK + ',"baseTimeNanoseconds":%d'


@pytest.mark.parametrize(
    ("texts", "duplicates"),
    [
        # 15 µs: where the first ends; 15.001: behind it, as the next night is
        ({"a": KERNEL % (0, NIGHT % (1, 0)), "b": KERNEL % (1, NIGHT % (1, 5_000))}, 2),
        ({"a": KERNEL % (0, NIGHT % (1, 0)), "b": KERNEL % (1, NIGHT % (1, 5_001))}, 0),
        ({"a": KERNEL % (0, NIGHT % (1, 0)), "b": KERNEL % (1, NIGHT % (2, 0))}, 0),
        ({"a": KERNEL % (0, NIGHT % (1, 0)), "b": KERNEL % (0, NIGHT % (1, 0))}, 0),  # one content
        ({"x/a": KERNEL % (0, RANK % 1), "y/b": KERNEL % (1, RANK % 1)}, 0),  # two labels
        ({"a": KERNEL % (0, ""), "b": KERNEL % (1, "")}, 0),  # no rank
        ({name: KERNEL % (i, RANK % 1) for i, name in enumerate("abc")}, 3),
    ],
)
def test_f63_a_rank_is_a_duplicate_within_its_job_and_time(tmp_path, texts, duplicates):
    texts = {f"{name}.json": text for name, text in texts.items()}
    with analyzed(tmp_path, texts, "scan") as warehouse:
        found = warehouse.sql("SELECT trace_id FROM issues WHERE code = 'RANK_DUPLICATE'")
        assert found.num_rows == duplicates


F64 = """
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":"[TP00] 83","tid":83,"ts":1,"dur":2,
 "args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"a","pid":"[TP00] 0","tid":7,"ts":4,"dur":6,
 "args":{"correlation":5,"stream":7,"device":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":"[TP01] 84","tid":84,"ts":1,"dur":2,
 "args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"b","pid":"[TP01] 0","tid":7,"ts":4,"dur":6,
 "args":{"correlation":5,"stream":7,"device":0}}
"""


@both_readers
def test_f64_ranks_merged_into_one_file(tmp_path, reader):
    trace = read_events(tmp_path, F64, reader)
    assert codes(trace)["RANKS_MERGED"] == 1
    assert "CORRELATION_AMBIGUOUS" not in codes(trace)
    assert "STREAM_OVERLAP" not in codes(trace)
    assert column(trace.kernels, "rank_label") == ["TP00", "TP01"]
    assert column(trace.kernels, "launch_id") == [0, 2]
    assert column(trace.gpu_timeline, "rank_label") == ["TP00", "TP01"]
    assert column(trace.gpu_timeline, "device") == [0, 0]
    assert column(trace.gpu_timeline, "busy_ns") == [6_000, 6_000]
    assert column(trace.trace_timeline, "busy_ns") == [6_000]  # any GPU busy: [4, 10)


def test_f64_is_ok(tmp_path):
    with analyzed(tmp_path, {"a.json": '{"traceEvents":[' + F64 + "]}"}, "scan") as warehouse:
        assert warehouse.sql("SELECT status FROM traces")["status"].to_pylist() == ["ok"]
        total = warehouse.sql("SELECT CAST(sum(busy_ns) AS BIGINT) AS s FROM gpu_timeline")
        assert total["s"].to_pylist() == [12_000]


@both_readers
@pytest.mark.parametrize(("label", "gaps"), [("TP00", [20]), ("TP01", [40])])
def test_f64_gaps_and_windows_of_each_rank(tmp_path, reader, label, gaps):
    # TP00: [0, 10) [30, 40); TP01: [5, 10) [50, 55). Launches: TP01 records 9, so 4 came before.
    kernel = (
        '{"ph":"X","cat":"kernel","name":"k","pid":"[%s] 0","tid":7,"ts":%d,"dur":%d,'
        '"args":{"correlation":%d}}'
    )
    rows = [("TP00", 0, 10, 4), ("TP00", 30, 10, 9), ("TP01", 5, 5, 4), ("TP01", 50, 5, 9)]
    call = (
        '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":"[TP01] 84","tid":84,'
        '"ts":1,"dur":2,"args":{"correlation":9}}'
    )
    trace = read_events(tmp_path, ",".join([call, *(kernel % row for row in rows)]), reader)
    found = [r["dur_ns"] for r in trace.idle_gaps.to_pylist() if r["rank_label"] == label]
    assert found == [1_000 * gap for gap in gaps]
    assert column(trace.kernels, "why_unlinked") == ["missing", "missing", "pre_window", None]


@both_readers
def test_one_prefix_is_no_merged_file(tmp_path, reader):
    event = '{"ph":"X","cat":"kernel","name":"k","pid":%s,"tid":7,"ts":1,"dur":2}'
    for pid in ("0", '"[TP00] 0"'):
        trace = read_events(tmp_path, event % pid, reader)
        assert "RANKS_MERGED" not in codes(trace)
        assert column(trace.kernels, "device") == [0]
