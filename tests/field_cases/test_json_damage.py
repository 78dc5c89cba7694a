"""field_cases B: JSON damage, event by event. Each input is the one of the case."""

from __future__ import annotations

import pytest
from case_file import both_readers, busy_ns, codes, column, read_document, read_events

DAMAGE = (
    "REPAIRED_ESCAPE",
    "REPAIRED_CONTROL",
    "REPAIRED_SYNTAX",
    "REPAIRED_NUMBER",
    "REPAIRED_METADATA",
    "DROPPED_EVENT",
    "TRUNCATED",
    "INTERLEAVED_WRITERS",
    "DUPLICATE_KEY",
    "BAD_NUMBER",
)


def damage(trace):
    return {code: count for code, count in codes(trace).items() if code in DAMAGE}


@both_readers
def test_f11_bare_quotes_in_a_name(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """  {
    "ph": "X", "cat": "python_function", "name": "{"device": "cpu", "dtype": "half"}(3): go", "pid": 5, "tid": 5,
    "ts": 100.000, "dur": 9.000, "args": {"Python id": 1}
  },
  {
    "ph": "X", "cat": "kernel", "name": "call_target="my_fn"", "pid": 0, "tid": 7,
    "ts": 101.000, "dur": 3.000, "args": {"stream": 7}
  }""",  # noqa: E501 (as it stands there)
        reader,
    )
    assert damage(trace) == {"REPAIRED_ESCAPE": 2}
    assert column(trace.events, "name") == [
        '{"device": "cpu", "dtype": "half"}(3): go',
        'call_target="my_fn"',
    ]
    assert (trace.kernels.num_rows, busy_ns(trace)) == (1, 3_000)


@both_readers
def test_f12_bare_quotes_in_labels(tmp_path, reader):
    trace = read_events(
        tmp_path,
        """  {
    "name": "thread_name", "ph": "M", "ts": 7.000, "pid": 5, "tid": 6,
    "args": { "name": "worker "A"" }
  },
  {"name": "b", "ph": "X", "ts": 8, "dur": 1}""",
        reader,
    )
    assert damage(trace) == {"REPAIRED_ESCAPE": 1}
    assert column(trace.events, "args") == ['{"name":"worker \\"A\\""}', None]
    assert trace.events.num_rows == 2


@both_readers
def test_f13_raw_control_characters(tmp_path, reader):
    events = ",\n".join(
        f'{{"ph":"X","cat":"cpu_op","name":"gen{c}(1): <module>","pid":5,"tid":5,"ts":1,"dur":1}}'
        for c in "\x01\t\n"
    )
    trace = read_events(tmp_path, events, reader)
    assert damage(trace) == {"REPAIRED_CONTROL": 3}
    assert column(trace.events, "name") == [f"gen{c}(1): <module>" for c in "\x01\t\n"]


@both_readers
def test_f14_wrong_backslashes(tmp_path, reader):
    trace = read_events(
        tmp_path,
        r"""{"ph":"X","cat":"python_function","name":"lib\cuda\__init__.py(21): _go","pid":5,"tid":5,"ts":1,"dur":1,"args":{}},
  {"ph":"X","cat":"user_annotation","name":"D:\new\table","pid":5,"tid":5,"ts":3,"dur":1,"args":{}}""",  # noqa: E501
        reader,
    )
    assert damage(trace) == {"REPAIRED_ESCAPE": 1}
    # The second holds legal escapes only: what it says is what it says.
    assert column(trace.events, "name") == [r"lib\cuda\__init__.py(21): _go", "D:\new\table"]


@both_readers
def test_f15_escapes_already_flattened(tmp_path, reader):
    trace = read_events(tmp_path, '{"ph":"X","name": "say /"hi/" now", "pid": 5, "ts": 1}', reader)
    assert damage(trace) == {"REPAIRED_ESCAPE": 1}
    assert column(trace.events, "name") == ['say /"hi/" now']


@both_readers
def test_f16_text_ends_early(tmp_path, reader):
    whole = """{"traceEvents":[
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":5,"dur":2,"args":{"stream":7}}"""
    third = ',\n{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":9,"du'
    for text in (whole + third, whole, whole + "]", whole + third + 'r":2,"args":{"str'):
        trace = read_document(tmp_path, text, reader)
        assert damage(trace) == {"TRUNCATED": 1}
        assert column(trace.kernels, "name") == ["a", "b"]
        assert busy_ns(trace) == 4_000


@both_readers
def test_f17_a_key_without_its_opening_quote(tmp_path, reader):
    trace = read_document(
        tmp_path,
        """[{"name":"a","ph":"X","cat":"kernel","ts":1,"dur":2,"tid":0,"pid":0,"args":{}},
 {"name":"b","ph":"X","cat":"kernel","ts":4,"dur":2,tid":0,"pid":0,"args":{}},
 {"name":"c","ph":"X","cat":"kernel","ts":7,"dur":2,"tid":0,"pid":0,"args":{}}]""",
        reader,
    )
    assert damage(trace) == {"REPAIRED_SYNTAX": 1}
    assert column(trace.kernels, "name") == ["a", "b", "c"]


@both_readers
def test_f17_an_event_beyond_repair(tmp_path, reader):
    trace = read_document(
        tmp_path,
        """[{"name":"a","ph":"X","cat":"kernel","ts":1,"dur":2,"tid":0,"pid":0,"args":{}},
 {"name":"b","ph":"X"|"cat":"kernel","ts"=4},
 {"name":"c","ph":"X","cat":"kernel","ts":7,"dur":2,"tid":0,"pid":0,"args":{}}]""",
        reader,
    )
    assert damage(trace) == {"DROPPED_EVENT": 1}
    assert column(trace.kernels, "name") == ["a", "c"]
    assert column(trace.kernels, "event_id") == [0, 2]  # a lost event keeps its place


@both_readers
def test_f18_broken_metadata_before_the_list(tmp_path, reader):
    trace = read_document(
        tmp_path,
        """{"schemaVersion": 1, "deviceProperties": [],
  "run_config": {lr: 0.1, tag: 'x'},
  "note": he said "go",
  "traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":2,"args":{}}]}""",
        reader,
    )
    assert damage(trace) == {"REPAIRED_METADATA": 2}
    assert trace.envelope == {"schemaVersion": 1, "deviceProperties": []}
    assert trace.kernels.num_rows == 1


@both_readers
def test_f18_the_list_is_a_key_not_a_text(tmp_path, reader):
    trace = read_document(
        tmp_path,
        """{"a": "\\"traceEvents\\": [", "b": {"traceEvents": [1]}, "traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":2}]}""",
        reader,
    )
    assert damage(trace) == {}
    assert trace.kernels.num_rows == 1


@both_readers
def test_f19_comma_trouble(tmp_path, reader):
    e1, e2, e3, e4 = (
        f'{{"ph":"X","cat":"kernel","name":"{i}","pid":0,"tid":7,"ts":{i},"dur":1}}'
        for i in range(1, 5)
    )
    text = f'{{"traceEvents":[ {e1}, {e2} {e3}, , {e4}, ],}}'
    trace = read_document(tmp_path, text, reader)
    # one missing, one doubled, one behind the last event, one behind the list
    assert damage(trace) == {"REPAIRED_SYNTAX": 4}
    assert column(trace.kernels, "name") == ["1", "2", "3", "4"]


@both_readers
def test_f20_nan_and_infinity(tmp_path, reader):
    trace = read_events(
        tmp_path,
        '{"ph":"X","cat":"kernel","name":"a NaN","pid":0,"tid":7,"ts":1,"dur":2,'
        '"args":{"est. achieved occupancy %":NaN,"warps per SM":-Infinity,"x":"NaN"}}',
        reader,
    )
    assert damage(trace) == {"REPAIRED_NUMBER": 2}
    assert column(trace.events, "args") == [
        '{"est. achieved occupancy %":null,"warps per SM":null,"x":"NaN"}'
    ]
    assert (column(trace.events, "name"), busy_ns(trace)) == (["a NaN"], 2_000)


@both_readers
def test_f21_numbers_beyond_63_bits(tmp_path, reader):
    args = '{"Comms Id":18233445566778899001,"Addr":140012345678912,"correlation":12}'
    trace = read_events(tmp_path, f'{{"ph":"X","ts":1,"dur":2,"args":{args}}}', reader)
    assert damage(trace) == {}
    assert column(trace.events, "args") == [args]
    assert column(trace.events, "correlation") == [12]


def test_f22_same_key_twice(tmp_path):
    trace = read_events(
        tmp_path,
        '{"ph":"X","ts":1,"dur":2,"args":{"External id":5,"stream":7,"External id":6}}',
        "scan",
    )
    assert damage(trace) == {"DUPLICATE_KEY": 1}
    assert column(trace.events, "external_id") == [6]


@both_readers
def test_f23_keys_that_differ_in_case(tmp_path, reader):
    trace = read_events(
        tmp_path,
        '{"ph":"X","ts":1,"args":{"external id":5}},{"ph":"X","ts":2,"args":{"External id":6}},'
        '{"ph":"X","ts":3,"Name":"a","name":"b","args":{"x":1,"X":2}}',
        reader,
    )
    assert column(trace.events, "external_id") == [5, 6, None]
    assert column(trace.events, "name") == [None, None, "b"]
    assert column(trace.events, "args")[2] == '{"x":1,"X":2}'


@both_readers
def test_f24_two_writers(tmp_path, reader):
    trace = read_document(
        tmp_path,
        """{"traceEvents":[
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":2,"args":{}},
{"ph":"X","cat":"ker{"schemaVersion": 1,
"traceEvents":[
{"ph":"X","cat":"kernel","name":"b","pid":1,"tid":7,"ts":1,"dur":2,"args":{}}]}""",
        reader,
    )
    assert damage(trace) == {"INTERLEAVED_WRITERS": 1}
    assert column(trace.kernels, "name") == ["a"]


@both_readers
@pytest.mark.parametrize("block", [1 << 22, 97])
def test_thousands_of_repairs_lose_nothing_else(tmp_path, reader, block, monkeypatch):
    # Every third event has a bare quote, every hundredth is beyond repair.
    monkeypatch.setattr("tracehouse.ingest.containers.BLOCK_LENGTH", block)
    count = 3_000
    events = []
    for i in range(count):
        name = f"k{i}" if i % 3 else f'k"{i}'
        event = f'{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{5 * i},"dur":2}}'
        events.append(event if i % 100 else event.replace('"dur":', '"dur"!'))
    trace = read_events(tmp_path, ",\n".join(events), reader)
    kept = [i for i in range(count) if i % 100]
    assert column(trace.kernels, "event_id") == kept
    quoted = sum(1 for i in kept if i % 3 == 0)
    assert damage(trace) == {"REPAIRED_ESCAPE": quoted, "DROPPED_EVENT": count // 100}
    assert busy_ns(trace) == 2_000 * len(kept)
