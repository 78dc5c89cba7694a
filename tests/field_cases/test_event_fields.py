"""field_cases C: event fields."""

from __future__ import annotations

from case_file import both_readers, busy_ns, codes, column, read_document, read_events


@both_readers
def test_f25_category_spellings(tmp_path, reader):
    events = ",".join(
        f'{{"ph":"X","cat":"{cat}","name":"n{i}","pid":0,"tid":7,"ts":{10 * i},"dur":1}}'
        for i, cat in enumerate(["Kernel", "kernel", "Memcpy", "gpu_memset", "Operator", "cpu_op"])
    )
    trace = read_events(tmp_path, events, reader)
    assert column(trace.kernels, "category") == ["kernel", "kernel", "gpu_memcpy", "gpu_memset"]
    assert trace.ops.num_rows == 2
    assert column(trace.events, "cat")[0] == "Kernel"


@both_readers
def test_f26_the_list_is_the_document(tmp_path, reader):
    trace = read_document(
        tmp_path,
        """[{"name":"mul","ph":"X","ts":101.524,"dur":134.49,"tid":1,"pid":"CPU functions"},
 {"name":"mul","ph":"X","ts":102.95699890136719,"dur":30.5,"tid":0,"pid":"CUDA functions"}]""",
        reader,
    )
    assert column(trace.events, "pid") == ["CPU functions", "CUDA functions"]
    assert column(trace.events, "ts_ns") == [101_524, 102_957]
    assert column(trace.events, "extra") == [None, '{"ts":102.95699890136719}']
    assert trace.kernels.num_rows == 0
    assert "NO_GPU_EVENTS" in codes(trace)


@both_readers
def test_f27_numbers_in_quotes(tmp_path, reader):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"kernel","name":"a","pid":"1001","tid":"3","ts":"1893456000000123.457",'
        '"dur":"7.001","args":{"stream":"3"}}',
        reader,
    )
    assert column(trace.kernels, "ts_ns") == [1_893_456_000_000_123_457]
    assert column(trace.kernels, "dur_ns") == [7_001]
    assert column(trace.kernels, "stream") == [3]
    assert "BAD_NUMBER" not in codes(trace)


@both_readers
def test_f28_words_where_a_number_belongs(tmp_path, reader):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":50,"dur":"N/A"},'
        '{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":60,"dur":2,"args":{"bytes":"12,5"}},'
        '{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"dur":2}',
        reader,
    )
    # The third has no time at all: it stays an event, but is no kernel.
    assert codes(trace)["BAD_NUMBER"] == 3
    assert column(trace.kernels, "name") == ["a", "b"]
    assert column(trace.kernels, "dur_ns") == [None, 2_000]
    assert column(trace.kernels, "bytes") == [None, None]
    assert busy_ns(trace) == 2_000


@both_readers
def test_f29_thread_and_process_ids_as_text(tmp_path, reader):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":"stream 7","ts":1,"dur":2},'
        '{"ph":"X","cat":"cpu_op","name":"x","pid":5,"tid":"3239786240","ts":1,"dur":9},'
        '{"ph":"X","cat":"cpu_op","name":"y","pid":5,"tid":3239786240,"ts":2,"dur":3}',
        reader,
    )
    assert column(trace.kernels, "stream") == [7]
    assert column(trace.ops, "thread") == ["3239786240", "3239786240"]
    assert column(trace.ops, "parent_id") == [None, 1]  # both spellings are one thread


@both_readers
def test_f34_stream_ids_of_64_bits(tmp_path, reader):
    events = ",".join(
        f'{{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":10,'
        f'"args":{{"stream":9483746522009{i}}}}}'
        for i in (6, 7)
    )
    trace = read_events(tmp_path, events, reader)
    assert column(trace.kernels, "stream") == [94837465220096, 94837465220097]
    assert busy_ns(trace) == 10_000
