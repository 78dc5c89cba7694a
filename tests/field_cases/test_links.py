"""field_cases E and F31 to F35: names, streams, links. Times in µs in, ns out."""

from __future__ import annotations

import pytest
from case_file import both_readers, busy_ns, codes, column, read_events


@both_readers
def test_f31_names_that_say_little(tmp_path, reader):
    names = [
        "",
        "unknown",
        "_ZN2at6native4foo_kernelIfEEvPf.kd",
        "ncclDevKernel_Generic(ncclDevComm*, ncclWork*)",
    ]
    event = '{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%d,"dur":5}'
    trace = read_events(
        tmp_path, ",".join(event % (name, 10 * i) for i, name in enumerate(names)), reader
    )
    assert codes(trace)["NAME_UNKNOWN"] == 2
    assert column(trace.kernels, "name") == names
    # Its name claims 4 letters where 10 stand: no part of it is a name.
    assert column(trace.kernels, "short_name")[2] == names[2]
    assert column(trace.kernels, "kind") == ["compute", "compute", "compute", "comm"]
    assert column(trace.kernels, "collective") == [None] * 4


GENERIC = """
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":5,"tid":5,"ts":1,"dur":20,
 "args":{"External id":7%s}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":%d,"ts":4,"dur":3,
 "args":{"External id":7,"correlation":8}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic(ncclDevComm*, ncclWork*)","pid":0,"tid":7,
 "ts":30,"dur":4,"args":{"correlation":8,"stream":7}}
"""


@both_readers
@pytest.mark.parametrize("thread", [5, 6])  # inside the op, or tied by the External id alone
def test_f31_the_kind_of_a_generic_collective(tmp_path, reader, thread):
    events = GENERIC % (',"Collective name":"_allgather_base"', thread)
    trace = read_events(tmp_path, events, reader)
    assert column(trace.kernels, "collective") == ["allgather"]


@both_readers
def test_f31_a_generic_collective_without_metadata(tmp_path, reader):
    trace = read_events(tmp_path, GENERIC % ("", 5), reader)
    assert column(trace.kernels, "collective") == [None]
    assert column(trace.kernels, "kind") == ["comm"]


@both_readers
def test_f32_copy_filed_as_a_kernel(tmp_path, reader):
    names = [
        "Memcpy HtoD (Host -> Device)",
        "Memset (Device)",
        "__amd_rocclr_copyBuffer",
        "__amd_rocclr_fillBufferAligned",
    ]
    event = '{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%d,"dur":5}'
    trace = read_events(
        tmp_path, ",".join(event % (name, 10 * i) for i, name in enumerate(names)), reader
    )
    assert codes(trace)["RECLASSIFIED"] == 2
    assert column(trace.kernels, "category") == ["gpu_memcpy", "gpu_memset", "kernel", "kernel"]
    assert column(trace.kernels, "kind") == ["memcpy", "memset", "memcpy", "memset"]
    assert busy_ns(trace) == 20_000


@both_readers
def test_f33_no_stream_grid_or_block(tmp_path, reader):
    event = """{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":%d,"ts":5,"dur":3,"args":
    {"device":0,"correlation":1023%s,"l0 queue":"0x55d0"}}"""
    trace = read_events(tmp_path, event % (9, ',"sycl queue":64'), reader)
    assert column(trace.kernels, "stream") == [64]
    assert busy_ns(trace) == 3_000
    assert not {"BAD_NUMBER", "DROPPED_EVENT"} & codes(trace).keys()
    trace = read_events(tmp_path, event % (65, ""), reader)
    assert column(trace.kernels, "stream") == [65]


@both_readers
def test_f34_stream_ids_of_64_bits(tmp_path, reader):
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":10,"args":%s}'
    streams = [94_837_465_220_096, 94_837_465_220_097]
    trace = read_events(
        tmp_path, ",".join(event % f'{{"stream":{stream}}}' for stream in streams), reader
    )
    assert column(trace.kernels, "stream") == streams
    assert busy_ns(trace) == 10_000
    assert "STREAM_OVERLAP" not in codes(trace)


@both_readers
def test_f35_triton_launch_listed_as_a_cpu_op(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cpu_op","name":"triton_poi_fused_add_0","pid":5,"tid":5,"ts":1,"dur":20,
         "args":{"External id":3,"Input Dims":[[64],[64],[]],"kernel_file":"a.py"}},
        {"ph":"X","cat":"kernel","name":"triton_poi_fused_add_0","pid":0,"tid":7,"ts":9,"dur":4,
         "args":{"External id":3,"stream":7}}
        """,
        reader,
    )
    assert column(trace.ops, "name") == ["triton_poi_fused_add_0"]
    assert column(trace.ops, "kernel_time_ns") == [4_000]
    assert column(trace.kernels, "op_id") == [0]
    assert column(trace.kernels, "link") == ["external_id"]
    assert busy_ns(trace) == 4_000


@both_readers
def test_f50_two_id_spaces(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,"ts":1,"dur":9,"args":{"External id":7}},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":5,"tid":5,"ts":20,"dur":9,
 "args":{"External id":8}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":2,"dur":3,
 "args":{"External id":7,"correlation":8}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":6,"dur":4,
 "args":{"External id":7,"correlation":8,"stream":7}}
        """,
        reader,
    )
    assert column(trace.kernels, "launch_id") == [2]
    assert column(trace.kernels, "op_id") == [0]
    assert column(trace.ops, "kernel_count") == [1, 0]


@both_readers
def test_f51_correlation_0(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":5,"tid":5,"ts":1,"dur":2,
         "args":{"correlation":0}},
        {"ph":"X","cat":"kernel","name":"rccl_a","pid":0,"tid":7,"ts":4,"dur":2,
         "args":{"correlation":0}},
        {"ph":"X","cat":"kernel","name":"rccl_b","pid":0,"tid":7,"ts":8,"dur":2,"args":{}}
        """,
        reader,
    )
    assert codes(trace)["ORPHAN_KERNEL"] == 2
    assert column(trace.kernels, "launch_id") == [None, None]
    assert column(trace.kernels, "link") == ["none", "none"]
    assert column(trace.kernels, "why_unlinked") == ["no_correlation", "no_correlation"]
    assert trace.launches.num_rows == 0


@both_readers
def test_f52_work_without_host_rows(tmp_path, reader):
    # 5 µs below aten::mm, 7 + 3 µs of kernels whose launch was not recorded
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,"ts":1,"dur":9},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":2,"dur":3,
         "args":{"correlation":8}},
        {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":5,
         "args":{"correlation":8}},
        {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":20,"dur":7,
         "args":{"correlation":9}},
        {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":30,"dur":3,"args":{}}
        """,
        reader,
    )
    assert codes(trace)["ORPHAN_KERNEL"] == 2
    rows = {r["name"]: r["direct_kernel_time_ns"] for r in trace.op_summary.to_pylist()}
    assert rows == {"aten::mm": 5_000, "(no op)": 10_000}
    assert sum(column(trace.kernels, "dur_ns")) == 15_000


@both_readers
def test_f52_launched_outside_of_any_op(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":2,"dur":3,
         "args":{"correlation":8}},
        {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":5,
         "args":{"correlation":8}}
        """,
        reader,
    )
    assert codes(trace)["ORPHAN_KERNEL"] == 1
    assert column(trace.kernels, "op_id") == [None]
    assert column(trace.kernels, "why_unlinked") == [None]


@both_readers
def test_launched_before_the_window(tmp_path, reader):
    # ids 12 and 20 are recorded: 5 was launched earlier, the call of 15 was lost
    call = (
        '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":%d,'
        '"dur":1,"args":{"correlation":%d}}'
    )
    kernel = (
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":1,'
        '"args":{"correlation":%d}}'
    )
    calls = [call % pair for pair in [(20, 20), (10, 12)]]
    kernels = [kernel % pair for pair in [(5, 5), (30, 12), (32, 15), (34, 20)]]
    trace = read_events(tmp_path, ",".join(calls + kernels), reader)
    assert column(trace.kernels, "why_unlinked") == ["pre_window", None, "missing", None]
    assert column(trace.kernels, "link") == ["none", "correlation", "none", "correlation"]


@both_readers
def test_a_graph_launched_before_the_window(tmp_path, reader):
    # 77: three kernels and no call, so a graph, whose branches overlap by more than an overflow may
    # (busy 0.5–5000.5); 78 and 79 are of one kernel a device each; 90 has its op's External id
    kernel = (
        '{"ph":"X","cat":"kernel","name":"k","pid":%d,"tid":7,"ts":%s,"dur":%d,'
        '"args":{"stream":%d,"device":%d,"correlation":%d%s}}'
    )
    kernels = [
        *(kernel % (0, ts, dur, 7, 0, 77, "") for ts, dur in [("0.5", 5000), ("100", 50)]),
        kernel % (0, "200", 50, 8, 0, 77, ""),
        *(kernel % (device, "6000", 5, 7, device, 78, "") for device in (0, 1)),
        kernel % (0, "6010", 5, 7, 0, 79, ""),
        *(kernel % (0, ts, 5, 7, 0, 90, ',"External id":4') for ts in ("6020", "6030")),
    ]
    trace = read_events(tmp_path, ",".join(kernels), reader)
    assert column(trace.kernels, "graph") == [True] * 3 + [False] * 5
    assert column(trace.kernels, "dur_ns")[:3] == [5_000_000, 50_000, 50_000]
    assert "DUR_OVERFLOW" not in codes(trace)


@both_readers
def test_f53_an_id_used_twice(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":5,"tid":5,"ts":1,"dur":2,
         "args":{"correlation":40}},
        {"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":5,"tid":6,"ts":1,"dur":2,
         "args":{"correlation":40}},
        {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":4,"dur":2,
         "args":{"correlation":40}},
        {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":8,"dur":2,
         "args":{"correlation":40}},
        {"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":12,"dur":2,
         "args":{"correlation":40}}
        """,
        reader,
    )
    assert codes(trace)["CORRELATION_AMBIGUOUS"] == 1  # one id
    assert column(trace.kernels, "name") == ["a", "b", "c"]
    assert column(trace.kernels, "launch_id") == [None] * 3
    assert column(trace.kernels, "why_unlinked") == ["ambiguous"] * 3


@both_readers
def test_f54_runtime_and_driver_row_for_one_launch(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":1,"dur":6,
         "args":{"correlation":8}},
        {"ph":"X","cat":"cuda_driver","name":"cuLaunchKernel","pid":5,"tid":5,"ts":3,"dur":2,
         "args":{"correlation":8}},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":2,
         "args":{"correlation":8}}
        """,
        reader,
    )
    assert column(trace.launches, "name") == ["cuLaunchKernel"]
    assert column(trace.launches, "delay_ns") == [7_000]  # 10 - 3
    assert trace.kernels.num_rows == 1
    assert "CORRELATION_AMBIGUOUS" not in codes(trace)
