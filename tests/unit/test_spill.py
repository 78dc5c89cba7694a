"""Columns put away come back equal, cost no memory while nobody touches them, and leave nothing."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import typeof

from tracehouse import spill as spilling
from tracehouse.spill import Spill, SpillError

ARRAYS = [
    np.arange(-5, 5),
    np.array([True, False, True]),
    np.array([3, -1, 2], np.int32),
    np.array([[1, 2], [3, 4]], np.int8),
    np.array([0.5, np.nan, -np.inf]),
    np.empty(0, np.int64),
]
COLUMNS = [
    pa.array([1, None, 3]),
    pa.array([None, None], pa.int64()),
    pa.array(["é", None, ""]),
    pa.array([True, None, False]),
    pa.array(["a", "b", None, "a"]).dictionary_encode(),
    pa.array([[1, None], None, []], pa.list_(pa.int64())),
    pa.array([7, None, 9, None])[1:3],
    pa.array([], pa.string()),
]


@pytest.fixture
def spill(monkeypatch):
    monkeypatch.setattr(spilling, "LEAST_BYTES", 1)
    started = Spill(0)
    started.reached(1)
    return started


@pytest.mark.parametrize("values", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_an_array_comes_back_as_it_was(spill, values):
    stored = spill.array(values)
    np.testing.assert_array_equal(stored, values)
    assert stored.shape == values.shape
    assert typeof(stored) == typeof(values)  # compiled routines take it as they take the other
    spill.rest()
    spill.settle()
    np.testing.assert_array_equal(stored, values)


@pytest.mark.parametrize("values", COLUMNS, ids=lambda a: str(a.type))
def test_a_column_comes_back_as_it_was(spill, values):
    stored = spill.column(values)
    stored.validate(full=True)
    assert stored.equals(values)
    assert stored.type == values.type
    chunks = pa.chunked_array([values, values])
    assert spill.chunks(chunks).equals(chunks)
    table = pa.table({"a": chunks, "b": chunks})
    assert spill.table(table).equals(table)


def test_what_is_not_contiguous_is_written_in_its_order(spill):
    values = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(spill.array(values[:, ::2]), [[0, 2], [4, 6], [8, 10]])
    np.testing.assert_array_equal(spill.array(np.arange(6)[::-1]), [5, 4, 3, 2, 1, 0])


pieces = st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=6)


@given(before=pieces, after=pieces)
def test_an_array_grows_before_and_after_the_spill_goes_on(before, after):
    spill = Spill(3)
    growing = spill.growing()
    for piece in before:
        growing.append(np.array(piece, np.int64))
    spill.reached(4)
    for piece in after:
        growing.append(np.array(piece, np.int64))
    assert growing.take(np.int64).tolist() == [n for piece in before + after for n in piece]


def test_nothing_is_put_away_before_so_many_rows_nor_what_is_small():
    spill, values = Spill(1_000), np.zeros(spilling.LEAST_BYTES, np.int8)
    spill.reached(1_000)
    assert not spill.is_on
    assert spill.array(values) is values
    spill.reached(1_001)
    spill.reached(1)  # another trace
    assert spill.is_on
    assert spill.array(values) is not values
    assert spill.array(values[1:]).base is values


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what Linux lists")
def test_files_go_with_the_last_reference(spill, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = open_files()
    stored = [spill.array(np.arange(10)), spill.column(pa.array(["a", "b"]))]
    part = stored[0][2:4]
    assert list(tmp_path.iterdir()) == []  # they have no name that a killed process could leave
    del stored
    gc.collect()
    assert part.tolist() == [2, 3]
    del part
    gc.collect()
    spill.rest()
    assert open_files() == before


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="asks Linux")
def test_what_rests_is_not_resident():
    def resident() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        kinds = ("RssFile", "RssShmem")  # the second where the folder is in memory
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(kinds))

    spill = Spill(0)
    spill.reached(1)
    before = resident()
    stored = spill.array(np.ones(8 << 20))
    assert stored.sum() == 8 << 20
    assert resident() - before > 60 << 20
    spill.rest()
    assert resident() - before < 4 << 20
    assert stored.sum() == 8 << 20


def test_a_folder_that_takes_nothing_is_named(spill, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(SpillError, match="gone"):
        spill.array(np.arange(10))
    with pytest.raises(SpillError, match="gone"):
        spill.column(pa.array([1]))
