"""What a call of an attention op says: its sizes, and the traffic of forward and backward alike.

Source: perf_models A5, C13.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, FIRST_TENSOR_TYPE, FP32, FP64, UNKNOWN, VALUES
from tracehouse.formulas.inputs import (
    A_BOOL,
    A_REAL,
    AN_INT,
    Inputs,
    Ints,
    count,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    rank,
    tensor_bytes,
)
from tracehouse.formulas.model import ABSENT, Calls, Why

# What the kernels of attention read; forward and backward name it alike.
SLOTS = {
    "q": ABSENT,
    "k": ABSENT,
    "v": ABSENT,
    "parts": 1,  # tensors that lie in q (3: qkv) or in k (2: kv), along dimension 2
    "dims": 4,  # dimensions of q, of which the first ones are batch
    "heads_first": 0,  # … H, N, d instead of … N, H, d
    "bias": ABSENT,
    "other_bias": ABSENT,
    "extra": ABSENT,  # first of the further tensors to read, up to the last input
    "out": ABSENT,
    "out_of_8_bits": UNKNOWN,  # type of the output where q has 8 bits
    "dout": ABSENT,
    "dbias": ABSENT,  # where the gradient of the bias is written
    "bias_grad": ABSENT,  # a flag, or a list of flags of which the last is for the bias
    "causal": ABSENT,
    "mask_type": ABSENT,  # 0 none, 1 causal from top left, 2 from bottom right
    "top_left": 0,
    "window": ABSENT,  # a pair
    "window_left": ABSENT,
    "window_right": ABSENT,
    "dropout": ABSENT,
    "returns_p": ABSENT,
    "lse": 1,  # 0 never written, 1 always, 2 if the flag is set, 3 if the first flag from there is
    "lse_flag": ABSENT,
    "cu_q": ABSENT,
    "cu_k": ABSENT,
    "max_q": ABSENT,
    "max_k": ABSENT,
    "odd": ABSENT,  # a tensor from here to odd_end changes the form of the op; out and cu apart
    "odd_end": ABSENT,
    "odd_number": ABSENT,  # a positive number here does
}
(
    Q,
    K,
    V,
    PARTS,
    DIMS,
    HEADS_FIRST,
    BIAS,
    OTHER_BIAS,
    EXTRA,
    OUT,
    OUT_OF_8_BITS,
    DOUT,
    DBIAS,
    BIAS_GRAD,
    CAUSAL,
    MASK_TYPE,
    TOP_LEFT,
    WINDOW,
    WINDOW_LEFT,
    WINDOW_RIGHT,
    DROPOUT,
    RETURNS_P,
    LSE,
    LSE_FLAG,
    CU_Q,
    CU_K,
    MAX_Q,
    MAX_K,
    ODD,
    ODD_END,
    ODD_NUMBER,
) = range(len(SLOTS))

LABELS = (
    *("B", "H_q", "H_kv", "N_q", "N_k", "d_qk", "d_v"),
    *("causal", "window_left", "window_right", "sequences", "max_q", "max_k", "estimate"),
)


class Sizes(NamedTuple):
    """Sizes of an attention call; why is not KNOWN where they do not fit each other."""

    why: int
    batch: float
    h_q: float
    h_kv: float
    n_q: float
    n_k: float
    d_qk: float
    d_v: float


@njit
def read_sizes(x: Inputs, calls: Calls, i: int) -> Sizes:
    """Read the sizes of call i; heads and lengths of q, k and v must fit each other."""
    r, slot = calls.row[i], calls.slot[i]
    q, k, v = slot[Q], slot[K], slot[V]
    parts = slot[PARTS]
    if parts == 3:
        k, v = q, q
    elif parts == 2:
        v = k
    unknown = Sizes(Why.NO_SHAPE, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if rank(x, r, q) <= 0 or rank(x, r, k) <= 0 or rank(x, r, v) <= 0:
        return unknown
    if _is_odd(x, r, slot):
        return Sizes(Why.NO_FORMULA, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    dims = slot[DIMS]
    if is_tensor(x, r, slot[CU_Q]):
        dims = 3 if rank(x, r, q) == 3 else 4
    first = slot[HEADS_FIRST] == 1
    b_q, n_q, h_q, d_q = _sizes(x, r, q, dims, first, 3 if parts == 3 else 1)
    b_k, n_k, h_k, d_k = _sizes(x, r, k, dims, first, parts)
    b_v, n_v, h_v, d_v = _sizes(x, r, v, dims, first, parts)
    misfit = Sizes(Why.MISFIT, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if b_q < 0 or b_k != b_q or b_v != b_q or h_k != h_v or n_k != n_v or d_q != d_k:
        return misfit
    if (h_k == 0 and h_q != 0) or (h_k > 0 and h_q % h_k != 0):
        return misfit
    return Sizes(Why.KNOWN, b_q, h_q, h_k, n_q, n_k, d_q, d_v)


@njit
def _is_odd(x: Inputs, r: int, slot: Ints) -> bool:
    """Tell whether pages, new keys, used lengths or the like make the shapes mean other things."""
    for at in range(max(slot[ODD], 0), slot[ODD_END] + 1):
        if is_tensor(x, r, at) and at != slot[OUT] and at != slot[CU_Q] and at != slot[CU_K]:
            return True
    return number(x, r, slot[ODD_NUMBER]) > 0


@njit
def _sizes(
    x: Inputs, r: int, i: int, dims: int, heads_first: bool, parts: int
) -> tuple[float, float, float, float]:
    """Return batch, length, heads and width of a tensor; batch -1 if it has other dimensions."""
    packed = parts > 1
    if rank(x, r, i) != dims + packed or (packed and dim(x, r, i, 2) != parts):
        return -1.0, -1.0, -1.0, -1.0
    batch = 1.0
    for d in range(dims - 3):
        batch = -1.0 if batch < 0 or dim(x, r, i, d) < 0 else batch * dim(x, r, i, d)
    n, h = float(dim(x, r, i, 1 if packed else -3)), float(dim(x, r, i, -2))
    if heads_first:
        n, h = h, n
    width = float(dim(x, r, i, -1) * VALUES[dtype(x, r, i)])
    if n < 0 or h < 0 or width < 0:
        batch = -1.0
    return batch, n, h, width


@njit
def out_type(x: Inputs, calls: Calls, i: int) -> int:
    """Return the type of the output: its own, or that of q."""
    r, slot = calls.row[i], calls.slot[i]
    if is_tensor(x, r, slot[OUT]):
        return dtype(x, r, slot[OUT])
    code = dtype(x, r, slot[Q])
    if code >= FIRST_TENSOR_TYPE and BYTES[code] == 1:
        return slot[OUT_OF_8_BITS]
    return code


@njit
def lse_bytes(x: Inputs, calls: Calls, i: int, sizes: Sizes) -> float:
    """Return the bytes of the logarithms of the softmax' sums, one a row and head."""
    wide = dtype(x, calls.row[i], calls.slot[i, Q]) == FP64
    return sizes.batch * sizes.h_q * sizes.n_q * BYTES[FP64 if wide else FP32]


@njit
def flag_from(x: Inputs, r: int, i: int) -> float:
    """Return the first value from input i on that is True or False; NaN if there is none.

    Versions of an op differ in how many integers and tensors stand before the flag.
    """
    for at in range(i, count(x, r)):
        if kind(x, r, at) == A_BOOL:
            return number(x, r, at)
    return math.nan


@njit
def read_bytes(x: Inputs, calls: Calls, i: int, sizes: Sizes, share: float) -> float:
    """Return the bytes of q, of the keys and values that are seen, and of what masks them."""
    r, slot = calls.row[i], calls.slot[i]
    total = tensor_bytes(x, r, slot[Q]) * (1.0 if slot[PARTS] != 3 else (1.0 + 2.0 * share) / 3.0)
    total += (tensor_bytes(x, r, slot[K]) + tensor_bytes(x, r, slot[V])) * share
    total += tensor_bytes(x, r, slot[BIAS]) + tensor_bytes(x, r, slot[OTHER_BIAS])
    total += tensor_bytes(x, r, slot[CU_Q]) + tensor_bytes(x, r, slot[CU_K])
    if slot[EXTRA] >= 0:
        for at in range(slot[EXTRA], count(x, r)):
            if is_tensor(x, r, at) and not _like_output(x, r, at, sizes):
                total += tensor_bytes(x, r, at)
    return total


@njit
def _like_output(x: Inputs, r: int, i: int, sizes: Sizes) -> bool:
    return (
        rank(x, r, i) == 4
        and dim(x, r, i, 0) == sizes.batch
        and dim(x, r, i, 1) == sizes.n_q
        and dim(x, r, i, 2) == sizes.h_q
        and dim(x, r, i, 3) == sizes.d_v
    )


@njit
def returns_p(x: Inputs, calls: Calls, i: int) -> bool:
    """Tell whether the op also writes the matrix of probabilities, as for debugging dropout."""
    r, slot = calls.row[i], calls.slot[i]
    rate = number(x, r, slot[DROPOUT])
    is_rate = kind(x, r, slot[DROPOUT]) == AN_INT or kind(x, r, slot[DROPOUT]) == A_REAL
    return number(x, r, slot[RETURNS_P]) == 1 and is_rate and rate > 0
