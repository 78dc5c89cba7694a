"""Rotary position embeddings: each pair of elements is turned by the angle of its position.

FLOPs = 3 an element (two products and a sum), bytes = it is read and written; the tables of
cosines and sines stay in the cache and are not counted. Source: perf_models A14.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES
from tracehouse.formulas.inputs import Inputs, dim, dtype, is_tensor, number, numel, rank
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work

_X, _Y, _HEAD, _TABLE, _ROTATED, _PASSED, _PASSED_Y, _CACHE, _OUT = range(9)
_LARGEST = 2.0**62


@njit
def rope(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate rotary embeddings of one tensor or two, and their backward.

    Slots:  x, y: what is turned; head: width of a head, of which the width of `table`, or the
            number `rotated`, is turned, all of it where neither is given; passed, passed_y: parts
            of the heads of x and y that are not turned, then written beside those of x, in the
            type of `out`, and of y, in that of `cache`.
    Units:  FLOPs, bytes.
    Needs:  x; `head` where only a part is turned.
    Cost:   O(1) a call.
    Source: perf_models A14.
    """
    for i in range(calls.row.shape[0]):
        _rope(x, calls, work, i)


@njit
def _rope(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, slot = calls.row[i], calls.slot[i]
    a, b, passed, passed_b, cache = slot[_X], slot[_Y], slot[_PASSED], slot[_PASSED_Y], slot[_CACHE]
    work.dtype[i] = dtype(x, r, a)
    if rank(x, r, a) < 1:
        work.why[i] = Why.NO_SHAPE
        return
    n_a = numel(x, r, a)
    n_b = numel(x, r, b) if is_tensor(x, r, b) else 0.0
    if n_a < 0 or n_b < 0:
        work.why[i] = Why.MISFIT
        return
    turned_a, turned_b = n_a, n_b
    if slot[_TABLE] >= 0 or slot[_ROTATED] >= 0:
        head = number(x, r, slot[_HEAD])
        width = number(x, r, slot[_ROTATED])
        if slot[_TABLE] >= 0:
            if rank(x, r, slot[_TABLE]) != 2:
                work.why[i] = Why.NO_SHAPE
                return
            width = float(dim(x, r, slot[_TABLE], 1))
        if math.isnan(head) or math.isnan(width):
            work.why[i] = Why.NO_VALUE
            return
        if head <= 0 or width < 0 or width > head or n_a % head != 0 or n_b % head != 0:
            work.why[i] = Why.MISFIT
            return
        turned_a, turned_b = n_a / head * width, n_b / head * width
    work.flops[i] = 3.0 * (turned_a + turned_b)
    if turned_a + turned_b < _LARGEST:
        work.parameters[i, 0] = int(turned_a + turned_b)
    of_a = BYTES[dtype(x, r, a)]
    of_b = BYTES[dtype(x, r, b)] if is_tensor(x, r, b) else 0.0
    if passed >= 0:
        if rank(x, r, passed) < 1 or rank(x, r, passed_b) < 1 or not is_tensor(x, r, cache):
            work.why[i] = Why.NO_SHAPE
            return
        n_passed, n_passed_b = numel(x, r, passed), numel(x, r, passed_b)
        read = n_a * of_a + n_b * of_b + n_passed * BYTES[dtype(x, r, passed)]
        read += n_passed_b * BYTES[dtype(x, r, passed_b)]
        out = slot[_OUT] if is_tensor(x, r, slot[_OUT]) else a
        written = (n_a + n_passed) * BYTES[dtype(x, r, out)]
        written += (n_b + n_passed_b) * BYTES[dtype(x, r, cache)]
        work.bytes[i] = read + written
    else:
        work.bytes[i] = 2.0 * (turned_a * of_a + turned_b * of_b)
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


_SLOTS = {
    "x": ABSENT,
    "y": ABSENT,
    "head": ABSENT,
    "table": ABSENT,
    "rotated": ABSENT,
    "passed": ABSENT,
    "passed_y": ABSENT,
    "cache": ABSENT,
    "out": ABSENT,
}
_OF_POSITIONS = {"x": 1, "y": 2, "head": 3, "table": 4}
_LATENT = {"x": 1, "y": 3, "passed": 0, "passed_y": 2, "cache": 4}

MODELS = (
    Model(
        name="rope",
        kernel=rope,
        unit="vector",
        slots=_SLOTS,
        labels=("elements",),
        families={"rope": None},
        ops={
            "FusedRoPEFunc": {"x": 0},
            "LigerRopeFunction": {"x": 0, "y": 1},
            "_C::rotary_embedding": _OF_POSITIONS,
            "sgl_kernel::rotary_embedding": _OF_POSITIONS,
            "_C::batched_rotary_embedding": {"x": 1, "y": 2, "head": 3, "rotated": 6},
            "aiter::rope_fwd_impl": {"x": 1},
            "aiter::rope_cached_fwd_impl": {"x": 1},
            "aiter::rope_cached_positions_fwd_impl": {"x": 1},
            "aiter::rope_cached_positions_2c_fwd_impl": {"x": 2, "y": 3},
            "aiter::fused_qk_rope_cat_and_cache_mla": _LATENT,
            "aiter::fused_qk_rope_concat_and_cache_mla": {**_LATENT, "out": 5},
        },
    ),
    Model(
        name="rope_bwd",
        kernel=rope,
        unit="vector",
        slots=_SLOTS,
        labels=("elements",),
        families={"rope_bwd": {"x": 0, "y": 1}},
    ),
)
