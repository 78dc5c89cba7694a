"""Columns of a large trace in files instead of memory.

A column that is put away is written to a temporary file without a name, which goes when nobody
refers to it any more or the process ends, and comes back as the same values mapped into memory: the
system reads what is touched, and may forget it again. While a spill is off, and for small columns,
what is given comes back as it is. So the same code works on either, with equal results.
"""

from __future__ import annotations

import ctypes
import mmap
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

AFTER_ROWS = 1 << 18
LEAST_BYTES = 256 << 10  # a smaller column stays in memory; an empty file cannot be mapped
_DROP = getattr(mmap, "MADV_DONTNEED", None)  # of a mapped file: nothing is lost

_Scalar = TypeVar("_Scalar", bound=np.generic)


class SpillError(OSError):
    """The folder for temporary files, which it names, cannot be written."""


class Spill:
    """Where large columns go. The files are in the system's folder for temporary files.

    Raises SpillError if they cannot be written. Mapped arrays can be written to
    as far as numpy is concerned, so that compiled routines take them like any other; nobody does.
    """

    def __init__(self, after_rows: int = AFTER_ROWS) -> None:
        """`after_rows`: of a frame, with more of which it goes on, for good."""
        self.is_on = False
        self._after = after_rows
        self._maps: list[weakref.ref[mmap.mmap]] = []

    def reached(self, rows: int) -> None:
        """Note how many rows the frame of a trace has by now."""
        self.is_on = self.is_on or rows > self._after

    def array(self, values: NDArray[_Scalar]) -> NDArray[_Scalar]:
        """Put an array away."""
        if not self._takes(values):
            return values
        with _file() as file:
            _write(file, values)
            return self._array(file, values.dtype).reshape(values.shape)

    def column(self, values: pa.Array) -> pa.Array:
        """Put an Arrow array away."""
        if not self._takes(values):
            return values
        schema = pa.schema([pa.field("", values.type)])
        stored = self._batches(schema, [pa.RecordBatch.from_arrays([values], schema=schema)])
        return stored.column(0).chunk(0)

    def chunks(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Put an Arrow array of several chunks away."""
        return pa.chunked_array([self.column(chunk) for chunk in values.chunks], values.type)

    def table(self, table: pa.Table) -> pa.Table:
        """Put a table away, chunk by chunk."""
        if not self._takes(table):
            return table
        return self._batches(table.schema, table.to_batches())

    def batches(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        """Collect batches into a table."""
        if self.is_on:
            return self._batches(schema, batches)
        return pa.Table.from_batches(list(batches), schema)

    def growing(self) -> Growing:
        """Begin an array that comes in pieces."""
        return Growing(self)

    def rest(self) -> None:
        """Let the system forget which pages were touched; they are there again when they are."""
        self._maps = [ref for ref in self._maps if ref() is not None]
        for ref in self._maps:
            if (mapped := ref()) is not None and _DROP is not None:
                mapped.madvise(_DROP)

    def settle(self) -> None:
        """Rest, and return to the system what was freed: done when something large is finished."""
        if self.is_on:
            give_back()
            self.rest()

    def _takes(self, values: NDArray[Any] | pa.Array | pa.Table) -> bool:
        return self.is_on and values.nbytes >= LEAST_BYTES  # to sum a table up takes time

    def _batches(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        with _file() as file:
            with _telling(), pa.ipc.new_stream(file, schema) as stream:
                for batch in batches:
                    stream.write_batch(batch)
            return pa.ipc.open_stream(pa.py_buffer(self._mapped(file))).read_all()

    def _array(self, file: IO[bytes], dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.frombuffer(self._mapped(file), dtype)

    def _mapped(self, file: IO[bytes]) -> mmap.mmap:
        with _telling():
            file.flush()
        self.settle()
        with _telling():
            mapped = mmap.mmap(file.fileno(), 0)
        self._maps.append(weakref.ref(mapped))
        return mapped


class Growing:
    """An array under construction: pieces in memory, from when the spill is on in a file."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        self._pieces: list[NDArray[Any]] = []
        self._file: IO[bytes] | None = None

    def append(self, piece: NDArray[Any]) -> None:
        """Add a piece; all are of one type."""
        self._pieces.append(piece)
        if self._spill.is_on:
            self._flush()

    def take(self, dtype: type[_Scalar]) -> NDArray[_Scalar]:
        """Return the whole array, and let go of it."""
        pieces, file = self._pieces, self._file
        self._pieces, self._file = [], None
        if file is None:
            whole = np.concatenate(pieces) if pieces else np.empty(0, dtype)
            return self._spill.array(whole.astype(dtype, copy=False))
        with file:
            return cast("NDArray[_Scalar]", self._spill._array(file, np.dtype(dtype)))

    def _flush(self) -> None:
        pieces, self._pieces = [piece for piece in self._pieces if piece.nbytes], []
        if pieces and self._file is None:
            self._file = _file()
        for piece in pieces:
            assert self._file is not None
            _write(self._file, piece)


def give_back() -> None:
    """Return to the system what the C library holds of memory that was freed; glibc only."""
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _file() -> IO[bytes]:
    with _telling():
        return cast("IO[bytes]", tempfile.TemporaryFile())


def _write(file: IO[bytes], values: NDArray[Any]) -> None:
    with _telling():
        file.write(np.ascontiguousarray(values).data)


@contextmanager
def _telling() -> Iterator[None]:
    """Add to an error the folder that it happened in: the files have no names."""
    try:
        yield
    except OSError as error:
        raise SpillError(
            error.errno, error.strerror or str(error), tempfile.gettempdir()
        ) from error
