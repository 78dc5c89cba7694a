"""What a formula reads of a signature, from the table's Python lists."""

from __future__ import annotations

import math

from tracehouse.formulas.dtypes import BYTES, DTYPES, FIRST_TENSOR_TYPE, NONE, UNKNOWN, dtype_code


def _of(row, column, i):
    """Return element i of a list column; None where there is none."""
    values = row[column] or []
    return values[i] if 0 <= i < len(values) else None


def _sizes(shape):
    return [-1 if size is None else size for size in shape]


def count(row):
    return len(row["input_dims"] or [])


def rank(row, i):
    if not 0 <= i < count(row):
        return -1
    return len(_of(row, "input_dims", i) or [])


def dim(row, i, d):
    shape = _sizes(_of(row, "input_dims", i) or [])
    return shape[d] if -len(shape) <= d < len(shape) else -1


def dtype(row, i):
    if not row["input_types"]:
        return UNKNOWN
    return dtype_code(_of(row, "input_types", i)) if i >= 0 else NONE


def is_tensor(row, i):
    if rank(row, i) < 0:
        return False
    code = dtype(row, i)
    return rank(row, i) > 0 if code == UNKNOWN else code >= FIRST_TENSOR_TYPE


def numel(row, i):
    return math.prod(_sizes(_of(row, "input_dims", i) or [])) if rank(row, i) >= 0 else math.nan


def touched(row, i):
    """Count the distinct places of a tensor, at most those up to its last element."""
    shape = _of(row, "input_dims", i) or []
    strides = _of(row, "input_strides", i)
    if strides is None or len(strides) != len(shape) or not shape or 0 in shape:
        return numel(row, i)
    steps = [abs(-1 if s is None else s) for s in strides]
    own = math.prod(size for size, step in zip(_sizes(shape), steps, strict=True) if step)
    last = sum((size - 1) * step for size, step in zip(_sizes(shape), steps, strict=True))
    return min(own, last + 1)


def tensor_bytes(row, i):
    return touched(row, i) * BYTES[dtype(row, i)] if is_tensor(row, i) else 0


def member_shapes(row, i):
    return _of(row, "member_dims", i) or []


def text(row, i):
    return _of(row, "concrete_inputs", i)


def names():
    return [spelling for dtype in DTYPES for spelling in dtype.spellings]
