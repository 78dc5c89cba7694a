"""The numbers in texts, against Python's own way."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.compute.digits import read_numbers


def read(texts):
    array = pa.array(texts, pa.large_string())
    _, offsets, data = array.buffers()
    first, value, known, form, example = read_numbers(
        np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64, len(texts) + 1)
    )
    numbers = [
        [int(v) if k else None for v, k in zip(value[a:b], known[a:b], strict=True)]
        for a, b in pairwise(first)
    ]
    return numbers, form.tolist(), example.tolist()


def plainly(texts):
    runs = [re.findall("[0-9]+", text) for text in texts]
    numbers = [[int(run) if len(run) <= 18 else None for run in found] for found in runs]
    forms = [re.sub("[0-9]+", "0", text) for text in texts]
    distinct = list(dict.fromkeys(forms))
    return numbers, [distinct.index(f) for f in forms], [forms.index(f) for f in distinct]


def test_numbers_and_forms():
    texts = ["a12b3", "a7b00", "a7b", "", "12", "9" * 19, "x9"]
    assert read(texts) == (
        [[12, 3], [7, 0], [7], [], [12], [None], [9]],
        [0, 0, 1, 2, 3, 3, 4],  # "12" and nineteen nines are of one form
        [0, 2, 3, 4, 6],
    )


@given(st.lists(st.text(alphabet="ab0123456789٣é", max_size=40), max_size=40))
def test_any_texts(texts):
    assert read(texts) == plainly(texts)


def test_texts_of_many_numbers():
    text = ",".join("5" for _ in range(5_000))
    numbers, form, _ = read([text, text])
    assert numbers == [[5] * 5_000] * 2
    assert form == [0, 0]
