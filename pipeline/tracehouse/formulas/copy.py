"""Copies: copy_, cat, roll, flip, repeat, tril, split_copy, and reading one value on the host.

FLOPs = 0; bytes = each distinct element of the source read once, the destination written once.
Source: perf_models A7, A11. `clone`, `contiguous`, `to`, `_to_copy` and `stack` have no formula:
the `copy_` or `cat` inside them does the work.

`unusable`, `stored`, `whole` and `settle` serve all families that only move data.
"""

from __future__ import annotations

import math

import numpy as np

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, FIRST_TENSOR_TYPE, NONE, UNKNOWN
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    item,
    items,
    member_dim,
    member_numel,
    member_rank,
    members,
    number,
    numel,
    rank,
    touched,
)
from tracehouse.formulas.model import ABSENT, NO_PARAMETER, Calls, Model, Why, Work

MOVED = ("bytes_read", "bytes_written")  # labels that `settle` reports
_MOST = 2.0**62

_DST, _SRC = range(2)
_PARTS, _OUT, _DIM, _CHUNKS = range(4)
_X, _SIZES, _REPEATS = range(3)


@njit
def unusable(x: Inputs, r: int, i: int) -> int:
    """Return why input i cannot be counted as a tensor, Why.KNOWN if it can.

    Source: perf_models A0: an absent tensor is a shape of no dimensions without a type.
    """
    if count(x, r) == 0:
        return Why.NO_INPUTS
    code = dtype(x, r, i)
    if rank(x, r, i) < 0 or code == NONE:
        return Why.NO_SHAPE
    if code < FIRST_TENSOR_TYPE and code != UNKNOWN:
        return Why.MISFIT
    for d in range(rank(x, r, i)):
        if dim(x, r, i, d) < 0:
            return Why.MISFIT
    return Why.KNOWN


@njit
def stored(x: Inputs, r: int, i: int) -> float:
    """Return the bytes of the distinct elements of tensor i, NaN if its type is unknown."""
    return touched(x, r, i) * BYTES[dtype(x, r, i)]


@njit
def whole(value: float) -> int:
    """Return a number as a parameter, NO_PARAMETER if it is none or out of range."""
    return int(value) if value >= 0 and value < _MOST else NO_PARAMETER


@njit
def settle(work: Work, i: int, code: int, read: float, written: float) -> None:
    """Set the bytes of call i, its type and its parameters MOVED; NaN is for want of a type."""
    work.bytes[i] = read + written
    work.dtype[i] = code
    work.parameters[i, 0] = whole(read)
    work.parameters[i, 1] = whole(written)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


@njit
def copy(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate copies of one tensor into another.

    Slots:  dst; src of any shape that broadcasts to it, and of any type.
    Units:  FLOPs, bytes.
    Needs:  shapes and types of both; strides tell elements that a view repeats.
    Cost:   O(dimensions) a call.
    Source: perf_models A7: dims[0] is the destination; 0 FLOPs, where the peer says one an element.
    """
    for i in range(calls.row.shape[0]):
        _copy(x, calls, work, i)


@njit
def _copy(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    dst, src = calls.slot[i, _DST], calls.slot[i, _SRC]
    work.flops[i] = 0.0
    why = unusable(x, r, dst)
    if why == Why.KNOWN:
        why = unusable(x, r, src)
    if why == Why.KNOWN and not _broadcasts(x, r, src, dst):
        why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    settle(work, i, dtype(x, r, dst), stored(x, r, src), stored(x, r, dst))


@njit
def _broadcasts(x: Inputs, r: int, src: int, dst: int) -> bool:
    if rank(x, r, src) > rank(x, r, dst):
        return False
    for d in range(1, rank(x, r, src) + 1):
        size = dim(x, r, src, -d)
        if size not in (1, dim(x, r, dst, -d)):
            return False
    return True


@njit
def cat(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate concatenations of a list of tensors.

    Slots:  parts: a list of tensors; out; dim and chunks: positions of numbers, for parts that are
            each padded along dim to a multiple of chunks.
    Units:  FLOPs, bytes.
    Needs:  the shapes of the members, and the size of an element from a kernel's name, as the types
            of a list are not recorded; out may have a type of its own.
    Cost:   O(members) a call.
    Source: perf_models A11: read Σ, write Σ.
    """
    for i in range(calls.row.shape[0]):
        _cat(x, calls, work, i)


@njit
def _cat(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r = calls.row[i]
    parts, chunks = calls.slot[i, _PARTS], 1.0
    work.flops[i] = 0.0
    if members(x, r, parts) == 0:
        work.why[i] = Why.NO_INPUTS if count(x, r) == 0 else Why.NO_SHAPE
        return
    along = 0.0
    if calls.slot[i, _CHUNKS] != ABSENT:
        chunks, along = number(x, r, calls.slot[i, _CHUNKS]), number(x, r, calls.slot[i, _DIM])
        if not (chunks >= 1 and math.isfinite(along)):
            work.why[i] = Why.NO_VALUE
            return
    read, written = 0.0, 0.0
    for m in range(members(x, r, parts)):
        for d in range(member_rank(x, r, parts, m)):
            if member_dim(x, r, parts, m, d) < 0:
                work.why[i] = Why.MISFIT
                return
        size, length = member_numel(x, r, parts, m), member_dim(x, r, parts, m, int(along))
        if calls.slot[i, _CHUNKS] != ABSENT and length < 0:
            work.why[i] = Why.MISFIT
            return
        read += size
        written += size if length <= 0 else size / length * np.ceil(length / chunks) * chunks
    if math.isnan(read):
        work.why[i] = Why.NO_SHAPE
        return
    element, out = calls.element[i], calls.slot[i, _OUT]
    out_type = dtype(x, r, out) if is_tensor(x, r, out) else NONE
    out_element = element if out_type == NONE else BYTES[out_type]
    settle(work, i, out_type, read * element, written * out_element)


@njit
def rearrange(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate ops that write the elements of a tensor in another order, or several times.

    Slots:  x; sizes: position of the shape of the output, or repeats: position of the number of
            times along each dimension; without either the output has the shape of x.
    Units:  FLOPs, bytes.
    Needs:  shape and type of x; the output has its type.
    Cost:   O(dimensions) a call.
    Source: perf_models A11: `roll`, `flip`, `tril`, `triu`, `repeat`: read and write.
    """
    for i in range(calls.row.shape[0]):
        _rearrange(x, calls, work, i)


@njit
def _rearrange(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a = calls.row[i], calls.slot[i, _X]
    sizes, repeats = calls.slot[i, _SIZES], calls.slot[i, _REPEATS]
    work.flops[i] = 0.0
    why = unusable(x, r, a)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    out = numel(x, r, a)
    if sizes != ABSENT:
        out = product(x, r, sizes)
    elif repeats != ABSENT:
        out *= product(x, r, repeats)
    if math.isnan(out):
        work.why[i] = Why.NO_VALUE
        return
    code = dtype(x, r, a)
    read = touched(x, r, a) if out > 0 else 0.0
    settle(work, i, code, read * BYTES[code], out * BYTES[code])


@njit
def product(x: Inputs, r: int, i: int) -> float:
    """Return the product of the list that is the concrete value of input i.

    NaN if it is no list, or one with a negative number.
    """
    if items(x, r, i) < 0:
        return math.nan
    total = 1.0
    for k in range(items(x, r, i)):
        size = item(x, r, i, k)
        total *= size if size >= 0 else math.nan
    return total


@njit
def sync(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate reads of one value by the host.

    Slots:  x, a tensor of one element.
    Units:  FLOPs, bytes.
    Needs:  shape and type of x.
    Cost:   O(dimensions) a call.
    Source: perf_models A11: a device-to-host copy of one element.
    """
    for i in range(calls.row.shape[0]):
        _sync(x, calls, work, i)


@njit
def _sync(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a = calls.row[i], calls.slot[i, 0]
    work.flops[i] = 0.0
    why = unusable(x, r, a)
    if why == Why.KNOWN and numel(x, r, a) != 1:
        why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    settle(work, i, dtype(x, r, a), BYTES[dtype(x, r, a)], 0.0)


_LIKE_X = {"x": 0}

MODELS = (
    Model(
        name="copy",
        kernel=copy,
        unit="",
        slots={"dst": ABSENT, "src": ABSENT},
        labels=MOVED,
        families={"copy": None},
        ops={"aten::copy_": {"dst": 0, "src": 1}},
    ),
    Model(
        name="cat",
        kernel=cat,
        unit="",
        slots={"parts": ABSENT, "out": ABSENT, "dim": ABSENT, "chunks": ABSENT},
        labels=MOVED,
        families={"cat": None},
        ops={
            "aten::cat": {"parts": 0, "out": 2},
            "aten::_chunk_cat": {"parts": 0, "dim": 1, "chunks": 2, "out": 3},
        },
    ),
    Model(
        name="rearrange",
        kernel=rearrange,
        unit="",
        slots={"x": ABSENT, "sizes": ABSENT, "repeats": ABSENT},
        labels=MOVED,
        families={"rearrange": None, "split_copy": _LIKE_X},
        ops={
            "aten::_reshape_copy": _LIKE_X,
            "aten::channel_shuffle": _LIKE_X,
            "aten::flip": _LIKE_X,
            "aten::pixel_shuffle": _LIKE_X,
            "aten::pixel_unshuffle": _LIKE_X,
            "aten::repeat": {"x": 0, "repeats": 1},
            "aten::roll": _LIKE_X,
            "aten::rot90": _LIKE_X,
            "aten::tile": {"x": 0, "repeats": 1},
            "aten::tril": _LIKE_X,
            "aten::tril_": _LIKE_X,
            "aten::triu": _LIKE_X,
            "aten::triu_": _LIKE_X,
            "aten::unfold_backward": {"x": 0, "sizes": 1},
        },
    ),
    Model(
        name="sync",
        kernel=sync,
        unit="",
        slots=_LIKE_X,
        labels=MOVED,
        families={"sync": _LIKE_X},
    ),
)
