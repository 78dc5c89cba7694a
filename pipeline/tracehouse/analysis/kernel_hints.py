"""What the names of GPU activities tell of the op that launched them.

The size of an element where the op's inputs are lists of tensors without a type, products in TF32,
and what does not go through device memory alone: copies to or from the host, collectives.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.analysis.columns import Ints, read_words
from tracehouse.formulas.dtypes import BYTES, FIRST_TENSOR_TYPE, dtype_code
from tracehouse.vocab import Category, Kind

SIZES = (1, 2, 4, 8, 16)  # bytes of an element: bit i says that a name tells SIZES[i]
TF32, HOST, NETWORK, MEMORY, CASTS = 32, 64, 128, 256, 512

_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_TYPED = re.compile(r"(?:Functor|CatArrayBatchedCopy\w*|Callable)<((?:c10::)?\w+(?: int)?)\s*[,>]")
_CAST = re.compile(r"CopyFunctor<([^,<>]+), ([^,<>]+),")  # of _foreach_copy_: to a type, from one
_TF32 = re.compile(r"tf32|s1688|xf32", re.IGNORECASE)
_HOST_COPY = re.compile(r"HtoD|DtoH|HtoH|host_?to|to_?host|PtoP|peer", re.IGNORECASE)


def hints(kernels: pa.Table) -> Ints:
    """Return the bits of each row of table `kernels` (n,): sizes and the flags above.

    MEMORY marks what goes through device memory: everything but HOST and NETWORK. CASTS marks a
    copy of lists whose two types the sizes are of.
    """
    names, categories = read_words(kernels, "name"), read_words(kernels, "category")
    used, position = names.used()
    told = np.array([*(_of_name(names.values[code]) for code in used), 0], dtype=np.int64)[position]
    is_copy = np.array([*(c == Category.MEMCPY for c in categories.values), False])
    is_host = np.array([*(bool(_HOST_COPY.search(names.values[c])) for c in used), False])
    kinds = read_words(kernels, "kind")
    is_comm = np.array([*(kind == Kind.COMM for kind in kinds.values), False])[kinds.codes]
    host = is_host[position] & is_copy[categories.codes]
    where = np.where(host, HOST, np.where(is_comm, NETWORK, MEMORY))
    return told | where


def _of_name(name: str) -> int:
    """Return the bits that a name alone tells."""
    bits = TF32 if _TF32.search(name) else 0
    for opaque in _OPAQUE.findall(name):
        bits |= _bit(float(opaque))
    if bits & (TF32 - 1):
        return bits
    cast = _CAST.search(name)
    codes = [dtype_code(word) for word in (cast.groups() if cast else _TYPED.findall(name))]
    if cast and min(codes) < FIRST_TENSOR_TYPE:
        return bits
    for code in codes:
        if code >= FIRST_TENSOR_TYPE:
            bits |= _bit(BYTES[code])
    return bits | (CASTS if cast else 0)


def _bit(size: float) -> int:
    return 1 << SIZES.index(size) if size in SIZES else 0


def element_bytes(bits: Ints) -> NDArray[np.float64]:
    """Return the bytes of an element (n,) that bits tell, NaN where they tell none or several.

    The mean of the two sizes of a copy that casts: it moves as much as one between tensors of that.
    """
    sizes, of_cast = np.full(TF32, np.nan), np.full(TF32, np.nan)
    for i, size in enumerate(SIZES):
        sizes[1 << i] = size
        for j, other in enumerate(SIZES):
            of_cast[1 << i | 1 << j] = (size + other) / 2
    told = bits & (TF32 - 1)
    return np.where(bits & CASTS != 0, of_cast[told], sizes[told])
