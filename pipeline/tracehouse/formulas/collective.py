"""Collectives: c10d, NCCL and functional ones, and all-reduces of serving libraries.

FLOPs = 0: the sums are a part of the transfer; bytes = messages as device memory sees them, what
this rank sends read once and what it receives written once. Source: perf_models A16.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.copy import stored, unusable, whole
from tracehouse.formulas.dtypes import LIST, NONE
from tracehouse.formulas.inputs import (
    Inputs,
    count,
    dim,
    dtype,
    item,
    items,
    member_dim,
    member_rank,
    members,
    number,
    rank,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_IN, _OUT, _TIMES, _GROUP, _IS_SHARE, _SPLITS = range(6)


@njit
def collective(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate collectives.

    Slots:  in: a tensor or a list of tensors; out: likewise, or ABSENT where it is no input: then
            times: how often `in` counts, 2 if as much is received as is sent; group: position of
            the number of ranks, times which `in` is received, or, if is_share, that part of it;
            splits: position of how many rows are received from each rank, none for equal parts.
    Units:  FLOPs, bytes.
    Needs:  shapes and types; of lists the shapes of the members, and the size of an element from a
            kernel's name.
    Cost:   O(members) a call.
    Source: perf_models A16: messages in and out.
    """
    for i in range(calls.row.shape[0]):
        _collective(x, calls, work, i)


@njit
def _collective(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, a, out = calls.row[i], calls.slot[i, _IN], calls.slot[i, _OUT]
    work.flops[i] = 0.0
    if calls.slot[i, _TIMES] == 0:
        work.bytes[i] = 0.0
        return
    if a == ABSENT:
        work.why[i] = Why.NO_INPUTS if count(x, r) == 0 else Why.NO_VALUE
        return
    sent, why = _message(x, r, a, calls.element[i])
    received = 0.0
    if why == Why.KNOWN and out != ABSENT:
        received, why = _message(x, r, out, calls.element[i])
    elif why == Why.KNOWN:
        factor = _received(x, r, calls, i)
        if math.isnan(factor):
            why = Why.NO_VALUE
        received = sent * factor
    if why != Why.KNOWN:
        work.why[i] = why
        return
    work.bytes[i] = sent + received
    code = dtype(x, r, a)
    work.dtype[i] = NONE if code == LIST else code
    work.parameters[i, 0] = whole(sent)
    work.parameters[i, 1] = whole(received)


@njit
def _message(x: Inputs, r: int, i: int, element: float) -> tuple[float, int]:
    """Return the bytes of a tensor or of all members of a list, and why they are not known."""
    if dtype(x, r, i) != LIST:
        why = unusable(x, r, i)
        size = stored(x, r, i) if why == Why.KNOWN else math.nan
        if why == Why.KNOWN and math.isnan(size):
            why = Why.NO_TYPE
        return size, why
    if members(x, r, i) == 0:
        return math.nan, Why.NO_SHAPE
    elements = 0.0
    for m in range(members(x, r, i)):
        if member_rank(x, r, i, m) < 0:
            return math.nan, Why.NO_SHAPE
        size = 1.0
        for d in range(member_rank(x, r, i, m)):
            if member_dim(x, r, i, m, d) < 0:
                return math.nan, Why.MISFIT
            size *= member_dim(x, r, i, m, d)
        elements += size
    if math.isnan(element):
        return math.nan, Why.NO_TYPE
    return elements * element, Why.KNOWN


@njit
def _received(x: Inputs, r: int, calls: Calls, i: int) -> float:
    """Return how many times what is sent is received, NaN if that is not known."""
    if calls.slot[i, _SPLITS] != ABSENT:
        return _exchanged(x, r, calls.slot[i, _IN], calls.slot[i, _SPLITS])
    if calls.slot[i, _GROUP] == ABSENT:
        return calls.slot[i, _TIMES] - 1.0
    ranks = number(x, r, calls.slot[i, _GROUP])
    if not ranks >= 1:
        return math.nan
    return 1.0 / ranks if calls.slot[i, _IS_SHARE] == 1 else ranks


@njit
def _exchanged(x: Inputs, r: int, a: int, splits: int) -> float:
    """Return the rows received as a multiple of the rows of tensor a."""
    if items(x, r, splits) < 0:
        return math.nan
    if items(x, r, splits) == 0:
        return 1.0
    rows = 0.0
    for k in range(items(x, r, splits)):
        rows += item(x, r, splits, k)
    own = dim(x, r, a, 0) if rank(x, r, a) > 0 else 1
    return rows / own if own > 0 and rows >= 0 else math.nan


_IN_PLACE = {"in": 0, "times": 2}
_ONE_WAY = {"in": 0, "times": 1}
_OUT_FIRST = {"out": 0, "in": 1}
_AFTER_HANDLE = {"in": 1, "out": 2}

MODELS = (
    Model(
        name="collective",
        kernel=collective,
        unit="",
        slots={
            "in": ABSENT,
            "out": ABSENT,
            "times": 1,
            "group": ABSENT,
            "is_share": 0,
            "splits": ABSENT,
        },
        labels=("bytes_in", "bytes_out"),
        families={"collective": {}, "custom_collective": None},
        ops={
            "_c10d_functional::all_gather_into_tensor": {"in": 0, "group": 1},
            "_c10d_functional::all_reduce": _IN_PLACE,
            "_c10d_functional::all_to_all_single": {"in": 0, "splits": 1},
            "_c10d_functional::broadcast": _IN_PLACE,
            "_c10d_functional::reduce_scatter_tensor": {"in": 0, "group": 2, "is_share": 1},
            "_c10d_functional::wait_tensor": {"times": 0},
            "c10d::_allgather_base_": _OUT_FIRST,
            "c10d::_reduce_scatter_base_": _OUT_FIRST,
            "c10d::allgather_into_tensor_coalesced_": _OUT_FIRST,
            "c10d::allreduce_": _IN_PLACE,
            "c10d::allreduce_coalesced_": _IN_PLACE,
            "c10d::alltoall_": _OUT_FIRST,
            "c10d::alltoall_base_": _OUT_FIRST,
            "c10d::broadcast_": _ONE_WAY,
            "c10d::recv_": _ONE_WAY,
            "c10d::recv_any_source_": _ONE_WAY,
            "c10d::reduce_scatter_tensor_coalesced_": _OUT_FIRST,
            "c10d::send": _ONE_WAY,
            "nccl:all_reduce": _IN_PLACE,
            "nccl:broadcast": _ONE_WAY,
            "_C_custom_ar::all_reduce": _AFTER_HANDLE,
            "_C_custom_ar::qr_all_reduce": _AFTER_HANDLE,
            "aiter::all_gather_reg": _AFTER_HANDLE,
            "aiter::all_reduce": _AFTER_HANDLE,
            "aiter::all_reduce_reg": _AFTER_HANDLE,
            "aiter::reduce_scatter": _AFTER_HANDLE,
            "sgl_kernel::all_reduce": _AFTER_HANDLE,
            "sgl_kernel::all_reduce_reg": _AFTER_HANDLE,
            "sgl_kernel::qr_all_reduce": _AFTER_HANDLE,
            "sglang::inplace_all_reduce": _IN_PLACE,
            "sglang::outplace_all_reduce": _IN_PLACE,
            "sglang::reg_all_gather_into_tensor": _OUT_FIRST,
            "symm_mem::multimem_all_reduce_": _IN_PLACE,
            "symm_mem::one_shot_all_reduce": _IN_PLACE,
            "symm_mem::two_shot_all_reduce_": _IN_PLACE,
            "vllm::all_gather": {"in": 0, "group": 2},
            "vllm::all_reduce": _IN_PLACE,
            "vllm::reduce_scatter": {"in": 0, "group": 2, "is_share": 1},
        },
    ),
)
