"""field_cases F: graph replays. Times in µs in, ns out."""

from __future__ import annotations

from case_file import both_readers, busy_ns, codes, column, read_events

F55 = """
{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":5,"tid":5,"ts":1,"dur":8,
 "args":{"External id":3,"correlation":90}},
{"ph":"X","cat":"kernel","name":"n0","pid":0,"tid":7,"ts":20,"dur":4,
 "args":{"correlation":90,"graph node id":1,"stream":7}},
{"ph":"X","cat":"kernel","name":"n1","pid":0,"tid":7,"ts":24,"dur":4,
 "args":{"correlation":90,"graph node id":2,"stream":7}},
{"ph":"X","cat":"kernel","name":"n2","pid":0,"tid":13,"ts":22,"dur":9,
 "args":{"correlation":90,"graph node id":3,"stream":13}}
"""


@both_readers
def test_f55_one_launch_hundreds_of_kernels(tmp_path, reader):
    trace = read_events(tmp_path, F55, reader)
    assert codes(trace)["GRAPH_REPLAY"] == 1
    assert "ORPHAN_KERNEL" not in codes(trace)
    assert column(trace.kernels, "graph") == [True] * 3
    assert busy_ns(trace) == 11_000
    assert column(trace.launches, "delay_ns") == [19_000]  # 20 - 1
    assert column(trace.launches, "dur_ns") == [8_000]
    assert column(trace.op_summary, "host_time_ns") == [8_000]


@both_readers
def test_f56_replay_knows_no_ops(tmp_path, reader):
    around = '{"ph":"X","cat":"cpu_op","name":"replay","pid":5,"tid":5,"ts":0,"dur":10},'
    trace = read_events(tmp_path, around + F55, reader)
    assert codes(trace)["SHAPES_MISSING"] == 1
    assert column(trace.kernels, "op_id") == [None] * 3
    assert column(trace.launches, "op_id") == [0]  # it is launched below that op
    assert column(trace.ops, "direct_kernel_time_ns") == [0]


@both_readers
def test_f57_node_ids_are_wide(tmp_path, reader):
    kernel = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":2,"args":%s}'
    args = ['{"graph id":17,"graph node id":73014444033}', "{}", '{"graph id":0,"graph node id":0}']
    trace = read_events(
        tmp_path, ",".join(kernel % (10 * i, text) for i, text in enumerate(args)), reader
    )
    assert column(trace.kernels, "graph_node_id") == [73_014_444_033, None, None]
    assert column(trace.kernels, "graph_id") == [17, None, None]
    assert column(trace.kernels, "graph") == [True, False, False]


@both_readers
def test_kernels_of_a_graph_are_not_clipped(tmp_path, reader):
    # "Overflow" in the rules: branches may run side by side on what the file calls one stream
    kernel = (
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":%d,'
        '"args":{"correlation":90,"stream":7}}'
    )
    launch = (
        '{"ph":"X","cat":"cuda_runtime","name":"%s","pid":5,"tid":5,"ts":1,"dur":8,'
        '"args":{"correlation":90}}'
    )
    rows = ",".join([launch, kernel % (20, 5000), kernel % (30, 10)])
    trace = read_events(tmp_path, rows % "cudaGraphLaunch", reader)
    assert "DUR_OVERFLOW" not in codes(trace)
    assert busy_ns(trace) == 5_000_000
    trace = read_events(tmp_path, rows % "cudaLaunchKernel", reader)
    assert codes(trace)["DUR_OVERFLOW"] == 1
    assert busy_ns(trace) == 20_000  # [20, 30) and [30, 40)
