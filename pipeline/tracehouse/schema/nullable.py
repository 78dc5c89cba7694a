"""Arrow arrays on the memory of numpy arrays, NULL where a mask says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def nullable(type_: pa.DataType, values: NDArray[Any], present: NDArray[np.bool_]) -> pa.Array:
    """Return an array of `values`, NULL where not `present`.

    Shapes: values (n,) of the width that `type_` has, present (n,). Contiguous values are not
    copied: they must not change afterwards. What stands in them where they are absent is not read,
    but an index must be one all the same.
    """
    length = len(values)
    count = int(np.count_nonzero(present))
    if length and not count:
        return pa.nulls(length, type_)
    data = pa.py_buffer(np.ascontiguousarray(values))
    if count == length:
        return pa.Array.from_buffers(type_, length, [None, data], null_count=0)
    validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(type_, length, [validity, data], null_count=length - count)


def coded(codes: NDArray[np.int32], words: pa.StringArray) -> pa.DictionaryArray:
    """Return a dictionary array of `codes` (n,) into `words`, NULL where a code is negative."""
    indices = nullable(pa.int32(), np.maximum(codes, 0), codes >= 0)
    return pa.DictionaryArray.from_arrays(indices, words, safe=False)
