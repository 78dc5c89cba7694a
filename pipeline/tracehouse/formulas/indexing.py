"""Reads and writes by index: gather, index, embedding, scatter, index_add, embedding backward.

FLOPs = 0, also for those that add; bytes = the index, and the elements it reaches, never the rest
of a table. Source: perf_models A11. Where an index repeats, elements count as often as it names
them, but never more than the table holds.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.copy import MOVED, settle, stored, unusable
from tracehouse.formulas.dtypes import BYTES, INT64
from tracehouse.formulas.inputs import (
    Inputs,
    dim,
    dtype,
    is_tensor,
    member_dim,
    member_rank,
    members,
    number,
    numel,
    rank,
    touched,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_X, _INDEX, _DIM, _INDICES, _IS_ROWS, _IS_FILL = range(6)
_S_X, _S_INDEX, _S_SOURCE, _S_INDICES, _S_BY_SOURCE, _S_IS_COPY = range(6)
_B_GRAD, _B_INDEX, _B_ROWS, _B_X = range(4)


@njit
def gather(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate reads of some elements of a tensor.

    Slots:  x; index, a tensor with one number an element; dim: position of a number, then each one
            of index names a slice of x along it; is_rows: 1 if the slices are rows; indices: a list
            of tensors that name elements together; is_fill: 1 if what is named is overwritten, with
            a number.
    Units:  FLOPs, bytes.
    Needs:  shapes and types. Members of indices are taken as int64, as a list has no types; one
            that could be a mask leaves the size of the output unknown.
    Cost:   O(dimensions) a call.
    Source: perf_models A11: read n_out and the index, write n_out.
    """
    for i in range(calls.row.shape[0]):
        _gather(x, calls, work, i)


@njit
def _gather(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a, index = calls.row[i], calls.slot[i, _X], calls.slot[i, _INDEX]
    work.flops[i] = 0.0
    why = unusable(x, r, a)
    if why == Why.KNOWN and calls.slot[i, _INDICES] == ABSENT:
        why = unusable(x, r, index)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    if calls.slot[i, _INDICES] != ABSENT:
        named, why = indexed(x, r, a, calls.slot[i, _INDICES])
        out, read = named, 0.0
        read = BYTES[INT64] * members_read(x, r, calls.slot[i, _INDICES])
    else:
        out, why = _selected(x, r, calls, i)
        read = stored(x, r, index)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    element = BYTES[dtype(x, r, a)]
    if calls.slot[i, _IS_FILL] != 1:
        read += min(out, touched(x, r, a)) * element
    else:
        out = min(out, touched(x, r, a))
    settle(work, i, dtype(x, r, a), read, out * element)


@njit
def _selected(x: Inputs, r: int, calls: Calls, i: int) -> tuple[float, int]:
    """Return how many elements a single index names, and why that is not known."""
    a, n = calls.slot[i, _X], numel(x, r, calls.slot[i, _INDEX])
    if calls.slot[i, _IS_ROWS] == 1:
        if rank(x, r, a) != 2:
            return math.nan, Why.MISFIT
        return n * dim(x, r, a, 1), Why.KNOWN
    if calls.slot[i, _DIM] == ABSENT:
        return n, Why.KNOWN
    along = number(x, r, calls.slot[i, _DIM])
    if rank(x, r, a) <= 1:
        along = 0.0  # the only one there is
    if math.isnan(along):
        return math.nan, Why.NO_VALUE
    if not (along >= -max(rank(x, r, a), 1) and along < max(rank(x, r, a), 1)):
        return math.nan, Why.MISFIT
    axis = int(along) % max(rank(x, r, a), 1)
    for d in range(rank(x, r, a)):
        if d != axis:
            n *= dim(x, r, a, d)
    return n, Why.KNOWN


@njit
def members_read(x: Inputs, r: int, i: int) -> float:
    """Return the elements of all members of the list that is input i."""
    total = 0.0
    for m in range(members(x, r, i)):
        size = 1.0
        for d in range(member_rank(x, r, i, m)):
            size *= member_dim(x, r, i, m, d)
        total += size
    return total


@njit
def indexed(x: Inputs, r: int, a: int, i: int) -> tuple[float, int]:
    """Return how many elements of tensor a the list of tensors i names, and why not.

    Member m stands for dimension m; together they broadcast, and the dimensions behind them stay.
    A member of no dimensions may be an absent one, one as long as its dimension may be a mask.
    """
    if members(x, r, i) == 0:
        return math.nan, Why.NO_SHAPE
    if members(x, r, i) > rank(x, r, a):
        return math.nan, Why.MISFIT
    dims = 0
    for m in range(members(x, r, i)):
        if member_rank(x, r, i, m) <= 0:
            return math.nan, Why.NO_VALUE
        if _may_be_mask(x, r, a, i, m):
            return math.nan, Why.NO_VALUE
        dims = max(dims, member_rank(x, r, i, m))
    named = 1.0
    for d in range(1, dims + 1):
        size = 1
        for m in range(members(x, r, i)):
            if d > member_rank(x, r, i, m):
                continue
            own = member_dim(x, r, i, m, -d)
            if own < 0 or (own != 1 and size != 1 and own != size):
                return math.nan, Why.MISFIT
            size = own if own != 1 else size
        named *= size
    for d in range(members(x, r, i), rank(x, r, a)):
        named *= dim(x, r, a, d)
    return named, Why.KNOWN


@njit
def _may_be_mask(x: Inputs, r: int, a: int, i: int, m: int) -> bool:
    if m + member_rank(x, r, i, m) > rank(x, r, a):
        return False
    for d in range(member_rank(x, r, i, m)):
        if member_dim(x, r, i, m, d) != dim(x, r, a, m + d):
            return False
    return True


@njit
def scatter(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate writes to some elements of a tensor.

    Slots:  x; index; source, a tensor or a number; indices: a list of tensors instead of index;
            by_source: 1 if as many elements are written as source has, else as index names;
            is_copy: 1 if a changed copy of x is the output, 0 if x itself is changed.
    Units:  FLOPs, bytes.
    Needs:  shapes and types, as for gather.
    Cost:   O(dimensions) a call.
    Source: perf_models A11: read index and source, read, modify and write what they name. A copy
            is read and written whole.
    """
    for i in range(calls.row.shape[0]):
        _scatter(x, calls, work, i)


@njit
def _scatter(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a = calls.row[i], calls.slot[i, _S_X]
    index, source, indices = (
        calls.slot[i, _S_INDEX],
        calls.slot[i, _S_SOURCE],
        calls.slot[i, _S_INDICES],
    )
    work.flops[i] = 0.0
    why = unusable(x, r, a)
    if why == Why.KNOWN and indices == ABSENT:
        why = unusable(x, r, index)
    has_source = rank(x, r, source) > 0 or is_tensor(x, r, source)
    if why == Why.KNOWN and (has_source or calls.slot[i, _S_BY_SOURCE] == 1):
        why = unusable(x, r, source)
    if why == Why.KNOWN and rank(x, r, source) < 0:
        why = Why.NO_SHAPE
    named, read = 0.0, 0.0
    if why == Why.KNOWN:
        if indices != ABSENT:
            named, why = indexed(x, r, a, indices)
            read = BYTES[INT64] * members_read(x, r, indices)
        else:
            named = numel(x, r, source if calls.slot[i, _S_BY_SOURCE] == 1 else index)
            read = stored(x, r, index)
    if why != Why.KNOWN:
        work.why[i] = why
        return
    if has_source:
        read += min(touched(x, r, source), named) * BYTES[dtype(x, r, source)]
    changed = min(named, touched(x, r, a))
    element = BYTES[dtype(x, r, a)]
    if calls.slot[i, _S_IS_COPY] == 1:
        settle(work, i, dtype(x, r, a), read + stored(x, r, a), numel(x, r, a) * element)
    else:
        settle(work, i, dtype(x, r, a), read + changed * element, changed * element)


@njit
def embedding_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the dense gradient of a table.

    Slots:  grad (…, D); index (…); rows: position of the number of rows V; or, of the forward call,
            x (V, D) and index.
    Units:  FLOPs, bytes.
    Needs:  shapes and types, and the value of V.
    Cost:   O(dimensions) a call.
    Source: perf_models A11: read grad and index, write V·D.
    """
    for i in range(calls.row.shape[0]):
        _embedding_bwd(x, calls, work, i)


@njit
def _embedding_bwd(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, index = calls.row[i], calls.slot[i, _B_INDEX]
    of_forward = calls.slot[i, _B_GRAD] == ABSENT
    a = calls.slot[i, _B_X] if of_forward else calls.slot[i, _B_GRAD]
    work.flops[i] = 0.0
    why = unusable(x, r, a)
    if why == Why.KNOWN:
        why = unusable(x, r, index)
    if why == Why.KNOWN and rank(x, r, a) < 1:
        why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    element, width = BYTES[dtype(x, r, a)], dim(x, r, a, -1)
    if of_forward:
        grad, table = numel(x, r, index) * width, numel(x, r, a)
    else:
        if numel(x, r, index) * width != numel(x, r, a):
            work.why[i] = Why.MISFIT
            return
        rows = number(x, r, calls.slot[i, _B_ROWS])
        grad, table = touched(x, r, a), rows * width
        if math.isnan(rows):
            work.why[i] = Why.NO_VALUE
            return
    settle(work, i, dtype(x, r, a), stored(x, r, index) + grad * element, table * element)


_BY_INDEX = {"x": 0, "index": 2, "source": 3}
_BY_SOURCE = {"x": 0, "index": 2, "source": 3, "by_source": 1}
_BY_INDICES = {"x": 0, "indices": 1, "source": 2}

MODELS = (
    Model(
        name="gather",
        kernel=gather,
        unit="",
        slots={
            "x": ABSENT,
            "index": ABSENT,
            "dim": ABSENT,
            "indices": ABSENT,
            "is_rows": 0,
            "is_fill": 0,
        },
        labels=MOVED,
        families={"gather": None, "embedding": None},
        ops={
            "aten::embedding": {"x": 0, "index": 1, "is_rows": 1},
            "aten::gather": {"x": 0, "index": 2},
            "aten::index": {"x": 0, "indices": 1},
            "aten::index_fill_": {"x": 0, "dim": 1, "index": 2, "is_fill": 1},
            "aten::index_select": {"x": 0, "dim": 1, "index": 2},
            "aten::take": {"x": 0, "index": 1},
        },
    ),
    Model(
        name="scatter",
        kernel=scatter,
        unit="",
        slots={
            "x": ABSENT,
            "index": ABSENT,
            "source": ABSENT,
            "indices": ABSENT,
            "by_source": 0,
            "is_copy": 0,
        },
        labels=MOVED,
        families={"scatter": None},
        ops={
            "aten::_index_put_impl_": _BY_INDICES,
            "aten::index_add": _BY_SOURCE | {"is_copy": 1},
            "aten::index_add_": _BY_SOURCE,
            "aten::index_copy": _BY_SOURCE | {"is_copy": 1},
            "aten::index_copy_": _BY_SOURCE,
            "aten::index_put_": _BY_INDICES,
            "aten::index_reduce_": _BY_SOURCE,
            "aten::put_": {"x": 0, "index": 1, "source": 2},
            "aten::scatter": _BY_INDEX | {"is_copy": 1},
            "aten::scatter_": _BY_INDEX,
            "aten::scatter_add": _BY_INDEX | {"is_copy": 1},
            "aten::scatter_add_": _BY_INDEX,
            "aten::scatter_reduce": _BY_INDEX | {"is_copy": 1},
            "aten::scatter_reduce_": _BY_INDEX,
        },
    ),
    Model(
        name="embedding_bwd",
        kernel=embedding_bwd,
        unit="",
        slots={"grad": ABSENT, "index": ABSENT, "rows": ABSENT, "x": ABSENT},
        labels=MOVED,
        families={"embedding_bwd": None},
        ops={"aten::embedding_dense_backward": {"grad": 0, "index": 1, "rows": 2}},
    ),
)
