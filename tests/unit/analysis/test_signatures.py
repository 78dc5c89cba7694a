from __future__ import annotations

import json

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.analysis.columns import Words
from tracehouse.analysis.signatures import signature_id, signatures
from tracehouse.schema import tables

ABSENT = (None, None, None, None)


def words(texts):
    values = list(dict.fromkeys(text for text in texts if text is not None))
    codes = [-1 if text is None else values.index(text) for text in texts]
    return Words(np.array(codes, dtype=np.int32), values)


def run(*ops):
    """Return the ids of ops, given as their four texts, and the rows of the table."""
    columns = [words([op[i] for op in ops]) for i in range(4)]
    ids, table = signatures(columns, "0" * 16)
    assert table.schema.equals(tables.SIGNATURES.schema)
    return ids.arrow().to_pylist(), table.to_pylist()


def one(dims=None, types=None, strides=None, concrete=None):
    return run((dims, types, strides, concrete))[1][0]


def test_an_op_is_parsed():
    row = one("[[2,3],[],[5]]", '["float","Scalar","int"]', "[[3,1],[],[1]]", '["","0.5",""]')
    assert row["input_dims"] == [[2, 3], [], [5]]
    assert row["input_types"] == ["float", "Scalar", "int"]
    assert row["input_strides"] == [[3, 1], [], [1]]
    assert row["concrete_inputs"] == ["", "0.5", ""]
    assert json.loads(row["raw"]) == {
        "Input Dims": [[2, 3], [], [5]],
        "Input type": ["float", "Scalar", "int"],
        "Input Strides": [[3, 1], [], [1]],
        "Concrete Inputs": ["", "0.5", ""],
    }


def test_equal_inputs_share_a_row_in_order_of_first_use():
    a, b = ("[[1]]", None, None, None), ("[[2]]", None, None, None)
    ids, rows = run(b, a, ABSENT, b)
    assert ids == [rows[0]["signature_id"], rows[1]["signature_id"], None, ids[0]]
    assert [row["input_dims"] for row in rows] == [[[2]], [[1]]]


def test_nothing_recorded_is_no_signature():
    assert run(ABSENT, ABSENT) == ([None, None], [])
    assert run() == ([], [])


def test_an_id_is_the_same_in_every_trace():
    # each text: 1, its length as eight bytes, its bytes; an absent one: 0
    data = bytes([1, 2, 0, 0, 0, 0, 0, 0, 0]) + b"[]" + bytes([0, 0, 0])
    unsigned = xxhash.xxh3_64_intdigest(data)
    expected = unsigned - 2**64 if unsigned >= 2**63 else unsigned
    assert run(("[]", None, None, None))[0] == [expected]


def test_absent_is_not_empty_and_texts_do_not_run_together():
    texts = [("", None), (None, ""), ("", ""), ("ab", "c"), ("a", "bc"), (None, None)]
    assert len({signature_id((*pair, None, None)) for pair in texts}) == len(texts)


def test_lists_of_tensors_have_no_shape():
    # F61: members' shapes, and a long list recorded as []
    assert one("[[[2,3],[4,3]],[]]", '["TensorList","Scalar"]')["input_dims"] == [None, []]
    assert one("[[],[]]", '["TensorList","Scalar"]')["input_dims"] == [None, []]


def test_more_values_than_inputs_stay():
    row = one("[[64],[]]", '["float","Scalar"]', None, '["","4","128"]')  # F59
    assert row["concrete_inputs"] == ["", "4"]
    assert row["extra_inputs"] == ["128"]
    assert row["input_strides"] is None


@pytest.mark.parametrize(
    "text",
    ["", "[", "{}", "7", '"x"', "null", "[" * 100_000, "[1e999", "N/A", "\x00", "9" * 5_000],
)
def test_what_is_no_list_is_null(text):
    row = one(text, text, text, text)
    assert [row[name] for name in tables.SIGNATURE_TEXTS] == [None] * 4
    assert len(json.loads(row["raw"])) == 4 if text != "[" * 100_000 else text in row["raw"]


@pytest.mark.parametrize(
    ("dims", "parsed"),
    [
        ("[[1.5]]", [None]),
        ("[[true]]", [None]),
        ('[["2"]]', [None]),
        ("[[null],[3]]", [None, [3]]),
        ("[[9223372036854775808]]", [None]),
        ("[[9223372036854775807,-1]]", [[2**63 - 1, -1]]),
        ("[7]", [None]),
        ("[]", []),
    ],
)
def test_odd_dims(dims, parsed):
    assert one(dims)["input_dims"] == parsed


def test_odd_types_and_values():
    row = one(None, '[["float"],null,"int","","",""]', None, '[4,true,null,[1,2],"\\ud800",""]')
    assert row["input_types"] == [None, None, "int", "", "", ""]
    assert row["concrete_inputs"] == ["4", "true", None, "[1, 2]", "?", ""]


@given(st.lists(st.tuples(*[st.none() | st.sampled_from(["[]", "[[1]]", "x", "[[2],[3]]"])] * 4)))
def test_rows_and_ids_agree(ops):
    ids, rows = run(*ops)
    distinct = list(dict.fromkeys(op for op in ops if op != ABSENT))
    assert [row["signature_id"] for row in rows] == [signature_id(op) for op in distinct]
    assert ids == [None if op == ABSENT else signature_id(op) for op in ops]


def test_many_distinct_texts_are_kept_apart():
    # 4 columns of 47_000 words: the product of their numbers passes 2^62
    count = 47_000
    column = Words(np.arange(count, dtype=np.int32), [f"[[{i}]]" for i in range(count)])
    ids, table = signatures([column] * 4, "0" * 16)
    assert table.num_rows == len(set(ids.values.tolist())) == count
