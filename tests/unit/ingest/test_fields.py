"""What a value of any kind becomes in its column."""

import json
from decimal import Decimal

from tracehouse.ingest.fields import json_text, row_of


def row(text: str):
    return row_of(json.loads(text, parse_float=Decimal))


def test_an_ordinary_event_leaves_nothing_over():
    made = row(
        '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10.5,"dur":2,'
        '"args":{"External id":3,"stream":7,"grid":[1,1,1]}}'
    )
    words = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": "0", "tid": "7"}
    assert made.words == words | {"grid": "[1,1,1]"}
    assert made.numbers == {"ts_ns": 10_500, "dur_ns": 2_000, "external_id": 3, "stream": 7}
    assert made.args == '{"External id":3,"stream":7,"grid":[1,1,1]}'
    assert made.extra is None
    assert made.findings == []


def test_what_a_column_cannot_give_back_stays_in_extra():
    # An id in quotes would come back as a number; a time with more digits than ns would come back
    # shorter.
    made = row('{"pid":"5","tid":"stream 7","ts":"1.5","dur":0.12345,"cname":"good","name":null}')
    assert made.words == {"pid": "5", "tid": "stream 7"}
    assert made.numbers == {"ts_ns": 1_500, "dur_ns": 123}
    assert made.extra == '{"pid":"5","ts":"1.5","dur":0.12345,"cname":"good","name":null}'
    assert made.findings == []


def test_durations_that_cannot_be():
    for text in ("-1", "-1893456000000000", "18446744073709551.000"):  # F38, F49
        made = row(f'{{"ts":100,"dur":{text}}}')
        assert made.numbers == {"ts_ns": 100_000}
        assert made.findings == ["DUR_INVALID"]
        assert made.extra == f'{{"dur":{text}}}'


def test_words_where_a_number_belongs():
    made = row('{"ts":50,"dur":"N/A","args":{"correlation":"12,5","stream":"3","device":null}}')
    assert made.numbers == {"ts_ns": 50_000, "stream": 3}
    assert made.findings == ["BAD_NUMBER", "BAD_NUMBER"]


def test_keys_of_args_match_in_any_case_and_the_last_wins():
    assert row('{"args":{"external id":5}}').numbers == {"external_id": 5}
    assert row('{"args":{"external id":5,"External id":6}}').numbers == {"external_id": 6}
    assert row('{"args":{"Bytes":-512}}').numbers == {"bytes": -512}
    assert row('{"Name":"a","name":"b"}').words == {"name": "b"}


def test_a_stream_may_be_a_handle():
    assert row('{"args":{"stream":"0x0"}}').numbers == {"stream": 0}  # HIP's null stream
    assert row('{"args":{"stream":94837465220097}}').numbers == {"stream": 94837465220097}


def test_numbers_beyond_63_bits_stay_exact_in_args():
    made = row('{"args":{"Comms Id":18233445566778899001,"correlation":18233445566778899001}}')
    assert made.numbers == {}
    assert made.args == '{"Comms Id":18233445566778899001,"correlation":18233445566778899001}'
    assert made.findings == ["BAD_NUMBER"]


def test_one_text_a_value():
    assert json_text({"a": [1, Decimal("2.50"), None, True]}) == '{"a":[1,2.50,null,true]}'
    assert json_text(Decimal("1E+5")) == "1E+5"
    assert json_text(Decimal("1e-7")) == json_text(Decimal("0.0000001")) == "0.0000001"
    assert json_text("é\u2028\x1f\n\ud800/") == '"é\u2028\\u001f\\n\\ud800/"'
