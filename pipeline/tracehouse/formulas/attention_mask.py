"""Which pairs of queries and keys a call of an attention op computes.

Pairs are (query, key) pairs that the mask leaves. Convention for a causal mask:
- N_q = N_k and no window: half of the rectangle, N²/2, as the peer counts (the diagonal by half).
- otherwise the exact count. Row i sees keys up to i + N_k - N_q (bottom-right, flash attention) or
  up to i (top-left, as `is_causal` of PyTorch's other kernels): bottom-right with N_q <= N_k is
  N_q·N_k - N_q(N_q-1)/2. At N_q = N_k it would give N(N+1)/2, more than the half by 1/N of it.
A window lets row i see keys i + N_k - N_q - left … + right; negative is unlimited. Keys that no row
sees are not read.

Source: perf_models A5, C10-C13.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tracehouse.compiled import njit
from tracehouse.formulas.attention_call import (
    CAUSAL,
    CU_K,
    CU_Q,
    LABELS,
    MASK_TYPE,
    MAX_K,
    MAX_Q,
    TOP_LEFT,
    WINDOW,
    WINDOW_LEFT,
    WINDOW_RIGHT,
    Sizes,
)
from tracehouse.formulas.inputs import (
    A_BOOL,
    A_LIST,
    AN_INT,
    NO_VALUE,
    Inputs,
    dim,
    is_tensor,
    item,
    items,
    kind,
    number,
)
from tracehouse.formulas.model import NO_PARAMETER, Calls, Why, Work

_ESTIMATE = LABELS.index("estimate")
_LARGEST = 2.0**62


class Seen(NamedTuple):
    """The pairs of all sequences of a head, and the share of the keys that some query sees."""

    why: int
    pairs: float
    share: float


class _Mask(NamedTuple):
    why: int
    causal: bool
    top_left: bool
    left: float
    right: float


@njit
def _limit(x: Inputs, r: int, i: int) -> float:
    """Return a limit of the window, -1 without one; NaN if it cannot be read."""
    found = kind(x, r, i)
    if found == NO_VALUE:
        return -1.0
    return number(x, r, i) if found == AN_INT else math.nan


@njit
def _mask(x: Inputs, calls: Calls, i: int) -> _Mask:
    r, slot = calls.row[i], calls.slot[i]
    unknown = _Mask(Why.NO_VALUE, False, False, -1.0, -1.0)
    causal, top_left = False, slot[TOP_LEFT] == 1
    if slot[CAUSAL] >= 0:
        if kind(x, r, slot[CAUSAL]) != A_BOOL:
            return unknown
        causal = number(x, r, slot[CAUSAL]) == 1
    if slot[MASK_TYPE] >= 0:
        mask_type = number(x, r, slot[MASK_TYPE])
        if kind(x, r, slot[MASK_TYPE]) != AN_INT or not (mask_type >= 0 and mask_type <= 2):
            return unknown
        causal, top_left = mask_type > 0, mask_type == 1
    left, right = _limit(x, r, slot[WINDOW_LEFT]), _limit(x, r, slot[WINDOW_RIGHT])
    if kind(x, r, slot[WINDOW]) == A_LIST and items(x, r, slot[WINDOW]) == 2:
        left, right = item(x, r, slot[WINDOW], 0), item(x, r, slot[WINDOW], 1)
    if math.isnan(left) or math.isnan(right):
        return unknown
    return _Mask(Why.KNOWN, causal, top_left, left, 0.0 if causal else right)


@njit
def _sum_of_clamped(n: float, shift: float, most: float) -> float:
    """Return the sum over i < n of i + shift, each taken as 0 … most."""
    low = min(max(-shift, 0.0), n)
    high = max(min(max(most - shift, 0.0), n), low)
    return (high - low) * shift + (high - low) * (low + high - 1) / 2 + (n - high) * most


@njit
def pairs_of(n: float, m: float, top_left: bool, left: float, right: float) -> float:
    """Return the pairs of n queries and m keys; causal is right = 0. See the module's text."""
    diagonal = 0.0 if top_left else m - n
    until = n * m if right < 0 else _sum_of_clamped(n, diagonal + right + 1, m)
    before = 0.0 if left < 0 else _sum_of_clamped(n, diagonal - left, m)
    if n == m and right == 0 and before == 0:
        return n * m / 2
    return until - before


@njit
def keys_of(n: float, m: float, top_left: bool, left: float, right: float) -> float:
    """Return how many of m keys at least one of n queries sees."""
    if n == 0:
        return 0.0
    diagonal = 0.0 if top_left else m - n
    until = m if right < 0 else min(max(n + diagonal + right, 0.0), m)
    before = 0.0 if left < 0 else min(max(diagonal - left, 0.0), m)
    return max(until - before, 0.0)


@njit
def read_seen(x: Inputs, calls: Calls, work: Work, i: int, sizes: Sizes) -> Seen:
    """Read mask and lengths of call i, and report them with the sizes.

    Packed sequences: only their number, their sum and the longest are inputs. Counted as by the
    peer, the longest and the others of one length: an estimate, reported as such, exact for one
    sequence or equal ones, and a lower bound where keys are the queries' own.
    """
    parameters = work.parameters[i]
    for at, size in enumerate(
        (sizes.batch, sizes.h_q, sizes.h_kv, sizes.n_q, sizes.n_k, sizes.d_qk, sizes.d_v)
    ):
        parameters[at] = int(size) if size < _LARGEST else NO_PARAMETER
    mask = _mask(x, calls, i)
    if mask.why != Why.KNOWN:
        return Seen(mask.why, math.nan, math.nan)
    parameters[7] = mask.causal
    if mask.left >= 0:
        parameters[8] = int(min(mask.left, _LARGEST))
    if mask.right >= 0 and not mask.causal:
        parameters[9] = int(min(mask.right, _LARGEST))
    r, slot = calls.row[i], calls.slot[i]
    n, m = sizes.n_q, sizes.n_k
    top_left, left, right = mask.top_left, mask.left, mask.right
    if not is_tensor(x, r, slot[CU_Q]):
        pairs = sizes.batch * pairs_of(n, m, top_left, left, right)
        return Seen(Why.KNOWN, pairs, _share(keys_of(n, m, top_left, left, right), m))
    if sizes.batch != 1 or not is_tensor(x, r, slot[CU_K]):
        return Seen(Why.MISFIT, math.nan, math.nan)
    many = float(dim(x, r, slot[CU_Q], 0) - 1)
    max_n, max_m = number(x, r, slot[MAX_Q]), number(x, r, slot[MAX_K])
    if math.isnan(max_n) or math.isnan(max_m):
        return Seen(Why.NO_VALUE, math.nan, math.nan)
    if many < 1 or dim(x, r, slot[CU_K], 0) - 1 != many or max_n < 0 or max_m < 0:
        return Seen(Why.MISFIT, math.nan, math.nan)
    if max_n * many < n or max_m * many < m:
        return Seen(Why.MISFIT, math.nan, math.nan)
    parameters[10] = int(many)
    parameters[11] = int(min(max_n, _LARGEST))
    parameters[12] = int(min(max_m, _LARGEST))
    max_n, rest_n = _lengths(n, max_n, many)
    max_m, rest_m = _lengths(m, max_m, many)
    parameters[_ESTIMATE] = not (many == 1 or (max_n * many == n and max_m * many == m))
    pairs = pairs_of(max_n, max_m, top_left, left, right)
    pairs += (many - 1) * pairs_of(rest_n, rest_m, top_left, left, right)
    seen = keys_of(max_n, max_m, top_left, left, right)
    seen += (many - 1) * keys_of(rest_n, rest_m, top_left, left, right)
    return Seen(Why.KNOWN, pairs, _share(seen, max_m + (many - 1) * rest_m))


@njit
def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0


@njit
def _lengths(total: float, longest: float, many: float) -> tuple[float, float]:
    """Return the longest length and that of each other; all equal if the longest is padded."""
    if many == 1:
        return total, 0.0
    if longest > total:
        return math.floor(total / many), math.floor(total / many)
    return longest, math.floor((total - longest) / (many - 1))
