"""Links, times, graphs and ranks beyond the cases of field_cases. Times in µs in, ns out."""

from __future__ import annotations

import pytest
from case_file import analyzed, both_readers, busy_ns, codes, column, read_events

OP = '{"ph":"X","cat":"cpu_op","name":"%s","pid":%s,"tid":5,"ts":%d,"dur":%d,"args":{%s}}'
CALL = '{"ph":"X","cat":"%s","name":"%s","pid":%s,"tid":%d,"ts":%d,"dur":%d,"args":{%s}}'
KERNEL = '{"ph":"X","cat":"kernel","name":"k","pid":%s,"tid":%s,"ts":%d,"dur":%d,"args":{%s}}'


def read(folder, reader, *events):
    return read_events(folder, ",\n".join(events), reader)


@both_readers
@pytest.mark.parametrize(
    ("cat", "call_cat"),
    [("kernel,gpu", "Runtime"), ("gpu, Kernel", "musa_runtime"), ("Kernel", "hip_driver")],
)
def test_lists_of_categories_and_other_vendors(tmp_path, reader, cat, call_cat):
    trace = read(
        tmp_path,
        reader,
        CALL % (call_cat, "musaLaunchKernel", "5", 5, 1, 2, '"correlation":3'),
        (KERNEL % (0, 7, 5, 4, '"correlation":3')).replace('"kernel"', f'"{cat}"'),
    )
    assert busy_ns(trace) == 4_000
    assert column(trace.kernels, "launch_id") == [0]
    assert "NO_GPU_EVENTS" not in codes(trace)


@both_readers
def test_devices_in_words(tmp_path, reader):
    # Two devices: [0, 10) and [5, 15) are 20 µs busy, not a union of 15.
    pids = ['"GPU:0"', '"GPU:1"', '"/device:GPU:2"', '"GPU 3"', '"-1"']
    trace = read(
        tmp_path, reader, *(KERNEL % (p, '"stream#7"', 5 * i, 10, "") for i, p in enumerate(pids))
    )
    assert column(trace.kernels, "device") == [0, 1, 2, 3, None]
    assert column(trace.kernels, "stream") == [7] * 5
    assert busy_ns(trace) == 50_000


@both_readers
@pytest.mark.parametrize("pid", ["rank{rank} {pid}", "{pid} (rank {rank})", "[rank{rank}] {pid}"])
def test_ranks_in_other_words(tmp_path, reader, pid):
    host, gpu = (
        [f'"{pid.format(rank=rank, pid=number)}"' for rank, number in pairs]
        for pairs in ([(0, 83), (1, 84)], [(0, 0), (1, 0)])
    )
    call = CALL % ("cuda_runtime", "cudaLaunchKernel", "%s", 8, 1, 2, '"correlation":5')
    kernel = KERNEL % ("%s", 7, 4, 6, '"correlation":5,"stream":7,"device":0')
    trace = read(tmp_path, reader, call % host[0], kernel % gpu[0], call % host[1], kernel % gpu[1])
    assert codes(trace)["RANKS_MERGED"] == 1
    assert column(trace.kernels, "launch_id") == [0, 2]
    assert column(trace.gpu_timeline, "busy_ns") == [6_000, 6_000]


@both_readers
def test_ids_of_two_processes_coincide(tmp_path, reader):
    # The kernels stand under the processes that launched them: each is linked within its own.
    events = [
        event
        for pid in (83, 84)
        for event in (
            OP % ("aten::mm", pid, 1, 5, '"External id":7'),
            CALL % ("cuda_runtime", "cudaLaunchKernel", pid, 5, 2, 2, '"correlation":5'),
            KERNEL % (pid, 7, 8, 6, f'"correlation":5,"device":{pid - 83},"stream":7'),
            KERNEL % (pid, 7, 20, 1, f'"External id":7,"device":{pid - 83},"stream":7'),
        )
    ]
    trace = read(tmp_path, reader, *events)
    assert column(trace.kernels, "launch_id") == [1, None, 5, None]
    assert column(trace.kernels, "op_id") == [0, 0, 4, 4]
    assert "CORRELATION_AMBIGUOUS" not in codes(trace)


@both_readers
def test_ids_of_two_processes_coincide_and_kernels_stand_under_devices(tmp_path, reader):
    call = CALL % ("cuda_runtime", "cudaLaunchKernel", "%d", 5, 2, 2, '"correlation":5')
    kernel = KERNEL % ("%d", 7, 8, 6, '"correlation":5')
    trace = read(tmp_path, reader, call % 83, call % 84, kernel % 0, kernel % 1)
    assert column(trace.kernels, "launch_id") == [None, None]
    assert codes(trace)["CORRELATION_AMBIGUOUS"] == 1
    assert busy_ns(trace) == 12_000


@both_readers
@pytest.mark.parametrize(("pid", "op_id"), [(83, 0), (84, 1), (85, None)])
def test_an_external_id_is_one_of_its_process(tmp_path, reader, pid, op_id):
    # Two processes have an op 7, 85 has another: the launch, on a thread of its own, is of its own.
    args = '"correlation":5,"External id":7'
    trace = read(
        tmp_path,
        reader,
        OP % ("a", 83, 1, 5, '"External id":7'),
        OP % ("b", 84, 1, 5, '"External id":7'),
        OP % ("c", 85, 1, 5, '"External id":8'),
        CALL % ("cuda_runtime", "cudaLaunchKernel", pid, 9, 2, 2, args),
        KERNEL % (0, 7, 8, 6, '"correlation":5'),
    )
    assert column(trace.kernels, "op_id") == [op_id]


@both_readers
def test_a_driver_row_without_external_id(tmp_path, reader):
    # The call, on a thread without ops, names no op: its kernel does.
    trace = read(
        tmp_path,
        reader,
        OP % ("aten::mm", 5, 1, 5, '"External id":7'),
        CALL % ("cuda_driver", "cuLaunchKernelEx", 5, 9, 2, 2, '"correlation":3'),
        KERNEL % (0, 7, 8, 6, '"correlation":3,"External id":7'),
    )
    assert column(trace.kernels, "op_id") == [0]
    assert column(trace.launches, "op_id") == [0]
    assert column(trace.op_summary, "name") == ["aten::mm"]
    assert column(trace.op_summary, "kernel_count") == [1]
    assert "ORPHAN_KERNEL" not in codes(trace)


@both_readers
@pytest.mark.parametrize("inner", ["cudaFuncGetAttributes", "cudaStreamIsCapturing"])
@pytest.mark.parametrize("thread", [5, 6])
def test_the_innermost_launch_row_gives_the_name(tmp_path, reader, inner, thread):
    # A call that starts no work is no launch, whatever its id, inside the launch or elsewhere.
    trace = read(
        tmp_path,
        reader,
        CALL % ("cuda_runtime", "cudaLaunchKernel", 5, 5, 1, 8, '"correlation":3'),
        CALL % ("cuda_driver", inner, 5, thread, 2, 1, '"correlation":3'),
        KERNEL % (0, 7, 12, 6, '"correlation":3'),
    )
    assert column(trace.launches, "name") == ["cudaLaunchKernel"]
    assert column(trace.launches, "delay_ns") == [11_000]
    assert "CORRELATION_AMBIGUOUS" not in codes(trace)


@both_readers
def test_the_driver_row_is_the_inner_one_in_any_order(tmp_path, reader):
    rows = [
        CALL % ("cuda_driver", "cuLaunchKernel", 5, 5, 1, 8, '"correlation":3'),
        CALL % ("cuda_runtime", "cudaLaunchKernel", 5, 5, 1, 8, '"correlation":3'),
        KERNEL % (0, 7, 12, 6, '"correlation":3'),
    ]
    for events in (rows, rows[::-1]):
        trace = read(tmp_path, reader, *events)
        assert column(trace.launches, "name") == ["cuLaunchKernel"]


@both_readers
def test_ops_of_equal_times_nest_by_external_id_in_any_order(tmp_path, reader):
    # A clock of 1 µs: the op that began first has the lower id.
    rows = [
        OP % ("aten::linear", 5, 1, 9, '"External id":7'),
        OP % ("aten::addmm", 5, 1, 9, '"External id":8'),
        CALL % ("cuda_runtime", "cudaLaunchKernel", 5, 5, 2, 2, '"correlation":3'),
        KERNEL % (0, 7, 12, 6, '"correlation":3'),
    ]
    for events in (rows, rows[::-1]):
        trace = read(tmp_path, reader, *events)
        depth = dict(zip(column(trace.ops, "name"), column(trace.ops, "depth"), strict=True))
        assert depth == {"aten::linear": 0, "aten::addmm": 1}
        assert column(trace.op_summary, "name") == ["aten::addmm"]


@both_readers
@pytest.mark.parametrize(
    ("name", "node", "replays"),
    [
        ("musaGraphLaunch", "", True),
        ("aclmdlRIExecuteAsync", ',"graph node id":4', True),
        ("aclmdlRIExecuteAsync", ',"graph id":4', True),
        ("aclmdlRIExecuteAsync", ',"graph id":0,"graph node id":0', False),
    ],
)
def test_graphs_of_other_makers_know_no_op(tmp_path, reader, name, node, replays):
    trace = read(
        tmp_path,
        reader,
        OP % ("replay", 5, 1, 9, '"External id":7'),
        CALL % ("cuda_runtime", name, 5, 5, 2, 2, '"correlation":3,"External id":7'),
        KERNEL % (0, 7, 12, 6, '"correlation":3,"External id":7' + node),
        KERNEL % (0, 7, 20, 5, '"correlation":3,"External id":7'),
    )
    assert column(trace.kernels, "op_id") == ([None] * 2 if replays else [0] * 2)
    assert column(trace.launches, "is_graph") == [replays]
    assert column(trace.op_summary, "name") == [name if replays else "replay"]
    assert column(trace.op_summary, "kernel_count") == [2]
    assert column(trace.ops, "kernel_time_ns") == [11_000]


@both_readers
def test_a_graph_kernel_without_launch_does_not_borrow_the_op_of_its_external_id(tmp_path, reader):
    trace = read(
        tmp_path,
        reader,
        OP % ("replay", 5, 1, 9, '"External id":7'),
        KERNEL % (0, 7, 12, 6, '"correlation":3,"External id":7,"graph node id":4'),
    )
    assert column(trace.kernels, "op_id") == [None]
    assert column(trace.ops, "direct_kernel_count") == [0]
    assert column(trace.op_summary, "name") == ["(no op)"]


@both_readers
def test_one_launch_on_another_clock(tmp_path, reader):
    # A call at 0 makes the range of the host reach from 1970: only its own delay is nonsense.
    at = 1_893_456_000_000_000
    trace = read(
        tmp_path,
        reader,
        CALL % ("cuda_runtime", "cudaLaunchKernel", 5, 5, 0, 2, '"correlation":3'),
        KERNEL % (0, 7, at, 6, '"correlation":3'),
        CALL % ("cuda_runtime", "cudaLaunchKernel", 5, 5, at + 10, 2, '"correlation":4'),
        KERNEL % (0, 7, at + 14, 6, '"correlation":4'),
    )
    assert codes(trace)["CLOCK_DOMAIN"] == 1
    assert column(trace.launches, "delay_ns") == [None, 4_000]
    assert column(trace.kernels, "launch_id") == [0, 2]
    assert "LAUNCH_SKEW" not in codes(trace)


@both_readers
def test_a_begin_without_a_time_has_no_duration(tmp_path, reader):
    # The inner begin has no time: its end at 4 must not close the outer one.
    trace = read(
        tmp_path,
        reader,
        '{"ph":"B","cat":"cpu_op","name":"outer","pid":5,"tid":5,"ts":1}',
        '{"ph":"B","cat":"cpu_op","name":"inner","pid":5,"tid":5,"ts":"N/A"}',
        '{"ph":"E","pid":5,"tid":5,"ts":4}',
        '{"ph":"E","pid":5,"tid":5,"ts":9}',
    )
    assert column(trace.spans, "name") == ["outer", "inner"]
    assert column(trace.spans, "dur_ns") == [8_000, None]
    assert column(trace.ops, "dur_ns") == [8_000]
    assert "SPAN_UNPAIRED" not in codes(trace)
    assert codes(trace)["BAD_NUMBER"] == 1


@both_readers
def test_a_step_that_is_filed_as_an_op(tmp_path, reader):
    # PyTorch 1.8 knows one category for both.
    step = OP % ("ProfilerStep#3", 5, 0, 20, "")
    trace = read(
        tmp_path,
        reader,
        step.replace("cpu_op", "Operator"),
        (OP % ("aten::mm", 5, 1, 9, '"External id":"7"')).replace("cpu_op", "Operator"),
        CALL % ("Runtime", "cudaLaunchKernel", 5, 5, 2, 2, '"correlation":"3"'),
        KERNEL % (0, '"stream 7"', 12, 6, '"correlation":"3","External id":"7"'),
    )
    assert column(trace.annotations, "role") == ["step"]
    assert column(trace.kernels, "step_id") == [0]
    assert column(trace.kernels, "op_id") == [1]
    assert column(trace.ops, "name") == ["ProfilerStep#3", "aten::mm"]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("node1_local_rank0_global_rank8.json", 8),
        ("local_rank1.json", None),
        ("rank=7.json", 7),
        ("dp0_pp0_tp1_rank3.12.json", 3),
    ],
)
def test_a_local_rank_is_no_rank(tmp_path, name, rank):
    text = '{"traceEvents":[%s],"distributedInfo":{"rank":-1}}' % (KERNEL % (0, 7, 1, 2, ""))
    with analyzed(tmp_path, {name: text}, "scan") as warehouse:
        assert warehouse.sql("SELECT rank FROM traces")["rank"].to_pylist() == [rank]
