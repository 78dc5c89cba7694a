"""field_cases F30 and D: spans, clocks, durations, overlaps. Times in µs in, ns out."""

from __future__ import annotations

import pytest
from case_file import analyzed, both_readers, busy_ns, codes, column, read_document, read_events

F30 = """
{"ph":"B","name":"outer","pid":5,"tid":5,"ts":1},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":5,"tid":5,"ts":2,
 "args":{"Bytes":-512,"Device Id":0}},
{"ph":"s","id":9,"cat":"ac2g","name":"ac2g","pid":5,"tid":5,"ts":2},
{"ph":"C","name":"util","pid":0,"ts":3,"args":{"GPU":88.5}},
{"ph":"E","pid":5,"tid":5,"ts":4},
{"ph":"B","name":"never closed","pid":5,"tid":5,"ts":6}
"""


@both_readers
def test_f30_other_phases(tmp_path, reader):
    trace = read_events(tmp_path, F30, reader)
    assert column(trace.spans, "name") == ["outer", "never closed"]
    assert column(trace.spans, "dur_ns") == [3_000, None]
    assert column(trace.spans, "end_id") == [4, None]
    assert column(trace.spans, "thread") == ["5", "5"]
    assert column(trace.events, "ph") == ["B", "i", "s", "C", "E", "B"]
    assert column(trace.events, "bytes")[1] == -512  # a free
    assert "BAD_NUMBER" not in codes(trace)
    assert codes(trace)["SPAN_UNPAIRED"] == 1
    assert (trace.kernels.num_rows, busy_ns(trace)) == (0, 0)


def test_f30_is_ok(tmp_path):
    with analyzed(tmp_path, {"a.json": '{"traceEvents":[' + F30 + "]}"}, "scan") as warehouse:
        assert warehouse.sql("SELECT status FROM traces")["status"].to_pylist() == ["ok"]
        assert warehouse.sql("SELECT sum(dur_ns) AS s FROM spans")["s"].to_pylist() == [3_000]


@both_readers
def test_f30_pairs_of_an_analysed_category(tmp_path, reader):
    # aten::mm [10, 30) with aten::mul [12, 15) inside; the kernel as a pair is no GPU time
    trace = read_events(
        tmp_path,
        """
        {"ph":"B","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,"ts":10},
        {"ph":"X","cat":"cpu_op","name":"aten::mul","pid":5,"tid":5,"ts":12,"dur":3},
        {"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"args":{"stream":7}},
        {"ph":"E","pid":0,"tid":7,"ts":50},
        {"ph":"E","pid":5,"tid":5,"ts":30},
        {"ph":"E","pid":5,"tid":5,"ts":40}
        """,
        reader,
    )
    assert column(trace.ops, "dur_ns") == [20_000, 3_000]
    assert column(trace.ops, "parent_id") == [None, 0]
    assert column(trace.ops, "self_ns") == [17_000, 3_000]
    assert column(trace.spans, "dur_ns") == [20_000, 30_000]
    assert (trace.kernels.num_rows, busy_ns(trace)) == (0, 0)
    assert codes(trace)["SPAN_UNPAIRED"] == 1  # the last end


@both_readers
def test_f36_annotations_on_the_gpu_lane(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"gpu_user_annotation","name":"step","pid":0,"tid":7,"ts":0,"dur":100,
         "args":{"stream":7}},
        {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":10,"args":{"stream":7}},
        {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":60,"dur":30,"args":{"stream":7}}
        """,
        reader,
    )
    assert busy_ns(trace) == 40_000
    assert column(trace.annotations, "name") == ["step"]
    assert column(trace.kernels, "name") == ["a", "b"]


@both_readers
def test_f37_synchronisation_rows(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":5,
         "args":{"stream":7,"correlation":3}},
        {"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":-1,"ts":0,"dur":90,
         "args":{"stream":-1}},
        {"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":1000007,"ts":12,"dur":60,
         "args":{"stream":7}}
        """,
        reader,
    )
    assert busy_ns(trace) == 5_000
    assert column(trace.kernels, "stream") == [7]


@both_readers
def test_f38_unfinished_and_negative_durations(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cpu_op","name":"open","pid":5,"tid":5,"ts":100,"dur":-1},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":100,"dur":-1893456000000000},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":200,"dur":4}
        """,
        reader,
    )
    assert codes(trace)["DUR_INVALID"] == 2
    assert column(trace.ops, "dur_ns") == [None]
    assert column(trace.kernels, "dur_ns") == [None, 4_000]
    assert busy_ns(trace) == 4_000
    assert column(trace.gpu_timeline, "start_ns") == [200_000]
    assert column(trace.kernel_summary, "mean_ns") == [4_000.0]


F39 = """
{"ph":"X","cat":"kernel","name":"sgemm","pid":0,"tid":7,"ts":0,"dur":0,
 "args":{"stream":7,"correlation":61}},
{"ph":"X","cat":"kernel","name":"sgemm","pid":0,"tid":7,"ts":1893456000000100,"dur":4,
 "args":{"stream":7,"correlation":62}}
"""


@both_readers
def test_f39_records_without_timing(tmp_path, reader):
    trace = read_events(tmp_path, F39, reader)
    assert codes(trace)["CLOCK_ZERO"] == 1
    assert column(trace.kernels, "ts_ns") == [None, 1_893_456_000_000_100_000]
    assert column(trace.kernels, "dur_ns") == [None, 4_000]
    assert column(trace.kernels, "raw_dur_ns") == [0, None]
    assert busy_ns(trace) == 4_000
    assert column(trace.gpu_timeline, "total_ns") == [4_000]


@both_readers
def test_f39_the_trace_does_not_start_at_0(tmp_path, reader):
    with analyzed(tmp_path, {"a.json": '{"traceEvents":[' + F39 + "]}"}, reader) as warehouse:
        (row,) = warehouse.sql("SELECT status, kernels, start_ns FROM traces").to_pylist()
    assert row == {"status": "ok", "kernels": 2, "start_ns": 1_893_456_000_000_100_000}


@both_readers
@pytest.mark.parametrize(
    ("other", "flagged"),
    [
        ("1000000000.001", 1),  # just above 10^9 µs: an absolute clock
        ("1000000000", 0),
        ("50", 0),  # a relative trace, in which 0 is a fine start
    ],
)
def test_f39_a_start_of_0_with_a_duration(tmp_path, reader, other, flagged):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0,"dur":9},'
        '{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":' + other + ',"dur":4}',
        reader,
    )
    assert codes(trace).get("CLOCK_ZERO", 0) == flagged
    assert busy_ns(trace) == (4_000 if flagged else 13_000)


@both_readers
def test_f40_nanoseconds_on_an_absolute_clock(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"kernel","name":"A","pid":0,"tid":7,"ts":1692312345678901.234,"dur":0.766},
        {"ph":"X","cat":"kernel","name":"B","pid":0,"tid":7,"ts":1692312345678902.000,"dur":1.001}
        """,
        reader,
    )
    start = 1_692_312_345_678_900_000
    assert column(trace.kernels, "ts_ns") == [start + 1_234, start + 2_000]
    assert column(trace.kernels, "dur_ns") == [766, 1_001]
    assert busy_ns(trace) == 1_767
    assert "STREAM_OVERLAP" not in codes(trace)


@both_readers
def test_f41_base_time_and_display_unit(tmp_path, reader):
    text = """{"displayTimeUnit":"ns","traceEvents":[
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":2493828094901.425,"dur":2.415,"args":{}}],
 "baseTimeNanoseconds":"1759300074000000000"}"""
    with analyzed(tmp_path, {"a.json": text}, reader) as warehouse:
        (row,) = warehouse.sql(
            "SELECT status, ts_ns, base_time_ns + ts_ns AS absolute_ns, dur_ns"
            " FROM kernels JOIN traces USING (trace_id)"
        ).to_pylist()
    assert row == {
        "status": "ok",
        "ts_ns": 2_493_828_094_901_425,
        "absolute_ns": 1_761_793_902_094_901_425,
        "dur_ns": 2_415,
    }


@both_readers
def test_f42_sub_microsecond_kernels(tmp_path, reader):
    event = '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":100.7,"dur":0.2}'
    trace = read_events(tmp_path, event, reader)
    assert (column(trace.kernels, "ts_ns"), column(trace.kernels, "dur_ns")) == ([100_700], [200])


def other_clock(kernel_ts):
    return (
        '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,'
        '"ts":1890000000000000,"dur":20,"args":{"External id":7}},'
        '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,'
        '"ts":1890000000000002,"dur":3,"args":{"External id":7,"correlation":8}},'
        '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,'
        f'"ts":{kernel_ts},"dur":4,"args":{{"correlation":8,"stream":7}}}}'
    )


@both_readers
def test_f43_gpu_on_another_clock(tmp_path, reader):
    trace = read_events(tmp_path, other_clock("5000000"), reader)
    assert codes(trace)["CLOCK_DOMAIN"] == 1
    assert "LAUNCH_SKEW" not in codes(trace)
    assert busy_ns(trace) == 4_000
    assert (column(trace.kernels, "launch_id"), column(trace.kernels, "op_id")) == ([1], [0])
    assert column(trace.launches, "delay_ns") == [None]


@both_readers
@pytest.mark.parametrize(
    ("kernel_ts", "delay_ns"),
    [
        # The op ends at …20: an hour behind it the GPU begins, or a nanosecond later.
        ("1890003600000020", 3_600_000_018_000),
        ("1890003600000020.001", None),
    ],
)
def test_f43_an_hour_is_the_limit(tmp_path, reader, kernel_ts, delay_ns):
    trace = read_events(tmp_path, other_clock(kernel_ts), reader)
    assert column(trace.launches, "delay_ns") == [delay_ns]
    assert ("CLOCK_DOMAIN" in codes(trace)) == (delay_ns is None)


@both_readers
def test_f44_kernel_before_its_launch(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":100,"dur":6,
         "args":{"correlation":8}},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":99.2,"dur":2,
         "args":{"correlation":8}}
        """,
        reader,
    )
    assert codes(trace)["LAUNCH_SKEW"] == 1
    assert column(trace.kernels, "link") == ["correlation"]
    assert column(trace.launches, "delay_ns") == [-800]


@both_readers
def test_f45_duration_runs_over_its_neighbours(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
{"ph":"X","cat":"kernel","name":"add","pid":2,"tid":0,"ts":1000,"dur":3400000,"args":{"stream":0}},
{"ph":"X","cat":"kernel","name":"gemm","pid":2,"tid":0,"ts":1040,"dur":20,"args":{"stream":0}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH","pid":2,"tid":0,"ts":1070,"dur":3150000,
 "args":{"stream":0}},
{"ph":"X","cat":"kernel","name":"gemm","pid":2,"tid":0,"ts":1100,"dur":20,"args":{"stream":0}}
        """,
        reader,
    )
    assert codes(trace)["DUR_OVERFLOW"] == 2
    assert "STREAM_OVERLAP" not in codes(trace)
    assert column(trace.kernels, "dur_ns") == [40_000, 20_000, 30_000, 20_000]
    assert column(trace.kernels, "raw_dur_ns") == [3_400_000_000, None, 3_150_000_000, None]
    assert busy_ns(trace) == 110_000
    assert sum(column(trace.kernel_summary, "time_ns")) == 110_000
    assert sum(column(trace.op_summary, "direct_kernel_time_ns")) == 110_000


@both_readers
def test_f45_another_stream_or_device_is_no_neighbour(tmp_path, reader):
    event = '{"ph":"X","cat":"kernel","name":"k","pid":%d,"tid":%d,"ts":%d,"dur":%d}'
    trace = read_events(
        tmp_path,
        ",".join(event % row for row in [(0, 7, 0, 9000), (0, 8, 10, 20), (1, 7, 10, 20)]),
        reader,
    )
    assert "DUR_OVERFLOW" not in codes(trace)
    assert busy_ns(trace) == 9_020_000  # device 0: 9 ms, device 1: 20 µs


@both_readers
def test_f46_plausible_overlap_on_a_stream(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"kernel","name":"A","pid":0,"tid":7,"ts":10,"dur":10,"args":{"stream":7}},
        {"ph":"X","cat":"kernel","name":"B","pid":0,"tid":7,"ts":17,"dur":12,"args":{"stream":7}}
        """,
        reader,
    )
    assert codes(trace)["STREAM_OVERLAP"] == 1
    assert "DUR_OVERFLOW" not in codes(trace)
    assert sum(column(trace.kernel_summary, "time_ns")) == 22_000
    assert busy_ns(trace) == 19_000


@both_readers
def test_f47_zero_length_and_touching_intervals(tmp_path, reader):
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":%d}'
    trace = read_events(
        tmp_path,
        ",".join(event % span for span in [(10, 0), (10, 5), (15, 5), (15, 0)]),
        reader,
    )
    assert trace.kernels.num_rows == 4
    assert busy_ns(trace) == 10_000
    assert "STREAM_OVERLAP" not in codes(trace)


@both_readers
def test_f48_child_ends_after_its_parent(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cpu_op","name":"P","pid":5,"tid":5,"ts":100.000,"dur":50.000},
        {"ph":"X","cat":"cpu_op","name":"C","pid":5,"tid":5,"ts":120.000,"dur":30.002}
        """,
        reader,
    )
    assert codes(trace)["NEST_TOLERANCE"] == 1
    assert column(trace.ops, "parent_id") == [None, 0]
    assert column(trace.ops, "self_ns")[0] == 20_000


@both_readers
@pytest.mark.parametrize(("child_dur", "parent"), [("31.000", 0), ("31.001", None)])
def test_f48_up_to_a_microsecond(tmp_path, reader, child_dur, parent):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"cpu_op","name":"P","pid":5,"tid":5,"ts":100.000,"dur":50.000},'
        '{"ph":"X","cat":"cpu_op","name":"C","pid":5,"tid":5,"ts":120.000,"dur":' + child_dur + "}",
        reader,
    )
    assert column(trace.ops, "parent_id") == [None, parent]


@both_readers
def test_f49_wrapped_differences(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1893456000000100,"dur":7},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,
         "ts":1893456000000200,"dur":18446744073709551.000}
        """,
        reader,
    )
    assert codes(trace)["DUR_INVALID"] == 1
    assert column(trace.kernels, "dur_ns") == [7_000, None]
    assert busy_ns(trace) == 7_000


@both_readers
def test_f70_cpu_only(tmp_path, reader):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"cpu_op","name":"aten::add","pid":5,"tid":5,"ts":1,"dur":2,"args":{}}',
        reader,
    )
    assert codes(trace)["NO_GPU_EVENTS"] == 1
    assert column(trace.ops, "name") == ["aten::add"]
    assert column(trace.trace_timeline, "busy_ns") == [0]
    assert column(trace.trace_timeline, "busy_pct") == [None]


@both_readers
def test_f70_nothing(tmp_path, reader):
    text = '{"schemaVersion":1,"traceEvents":[]}'
    trace = read_document(tmp_path, text, reader)
    assert codes(trace)["NO_EVENTS"] == 1
    assert "NO_GPU_EVENTS" not in codes(trace)
    assert column(trace.trace_timeline, "busy_pct") == [None]
    with analyzed(tmp_path, {"a.json": text}, reader) as warehouse:
        assert warehouse.sql("SELECT status FROM traces")["status"].to_pylist() == ["ok"]


@both_readers
def test_f65_step_wording(tmp_path, reader):
    names = [
        *("execute_context_2(1025)_generation_62(62)", "execute_new_3_cached_5"),
        *("step[EXTEND bs=1 toks=1025]", "step[DECODE bs=64 g_sq=64 g_sk=100032]"),
        *("step[MIXED bs=66 c=2 g=64]", "ProfilerStep#12", "step(13)"),
    ]
    note = '{"ph":"X","cat":"user_annotation","name":"%s","pid":5,"tid":5,"ts":%d,"dur":9}'
    rows = ",".join(note % (name, 10 * i) for i, name in enumerate(names))
    trace = read_events(tmp_path, rows, reader)
    steps = trace.steps
    assert column(steps, "annotation") == names
    assert column(steps, "phase") == [
        *("mixed", "mixed", "prefill", "decode", "mixed", "other", "other"),
    ]
    assert column(steps, "r_c") == [2, 3, 1, 0, 2, None, None]
    assert column(steps, "r_g") == [62, 5, 0, 64, 64, None, None]
    assert column(steps, "c_sq") == [1025, None, 1025, 0, None, None, None]
    assert column(steps, "g_sq") == [62, None, 0, 64, None, None, None]
    assert column(steps, "g_sk") == [None, None, 0, 100_032, None, None, None]
    assert codes(trace)["STEP_UNPARSED"] == 1
    assert column(trace.annotations, "fields")[4] == "r r_c r_g"


@both_readers
def test_f66_steps_that_repeat_nest_or_mislead(tmp_path, reader):
    span = '{"ph":"X","cat":"%s","name":"%s","pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":{%s}}'
    rows = [
        span % ("user_annotation", "ProfilerStep#3", 5, 5, 0, 100, ""),
        span % ("user_annotation", "step[DECODE bs=8]", 5, 5, 10, 80, ""),
        span % ("gpu_user_annotation", "ProfilerStep#3", 0, 7, 20, 2, '"stream":7'),
        span % ("cuda_runtime", "cudaLaunchKernel", 5, 5, 12, 2, '"correlation":1'),
        span % ("kernel", "a", 0, 7, 20, 10, '"correlation":1,"stream":7'),
        span % ("cuda_runtime", "cudaGraphLaunch", 5, 5, 30, 2, '"correlation":2'),
        span % ("kernel", "b", 0, 7, 110, 20, '"correlation":2,"stream":7'),
    ]
    trace = read_events(tmp_path, ",".join(rows), reader)
    assert codes(trace)["STEP_NESTED"] == 1
    assert column(trace.steps, "gpu_busy_ns") == [30_000]
    assert column(trace.steps, "kernels") == [2]
    assert column(trace.steps, "annotation") == ["step[DECODE bs=8]"]
    assert column(trace.steps, "ts_ns") == [0]
    assert column(trace.kernels, "step_id") == [0, 0]
