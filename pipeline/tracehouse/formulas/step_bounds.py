"""Bounds of attention's FLOPs and bytes where a step says only how many tokens it has.

A request with n queries has at least n keys, for they are among them, and at least one query.

- Context, twice the pairs, Σ(2·n·k - n²) over r requests with Σn = c_sq: with k = n + p it is
  Σn² + 2·Σn·p. At least c_sq²/r, all alike, or c_sqsq where that is said, and twice the cached keys
  Σp where c_sk is. At most (c_sq - r + 1)² + r - 1, all but one with one query, and the cached keys
  with the longest; without c_sk, 2·c_sq·L - c_sq²/r, where L is the most positions that the model
  has.
- Generation, 2·Σn·k: at least 2·(Σn² + Σp), at most 2·(g_sq - r + 1)·g_sk or 2·g_sq·L.
- Keys: at least as many as queries, at most r·L.
- A window w caps all from above at 2·w a query; from below a request with n queries has n², or
  w·n - w²/4 beyond n = w/2, which is below the truth and convex, so that requests alike have least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracehouse.formulas.step_sums import Reals, Sums
from tracehouse.formulas.step_work import Sizes, by_width, known, rows_moved, seen_most


class Bounds(NamedTuple):
    """Least and most FLOPs and bytes of n calls, each (n,), NaN if there is no bound."""

    flops_min: Reals
    flops_max: Reals
    bytes_min: Reals
    bytes_max: Reals


def bounds(sizes: Sizes, sums: Sums, longest: float) -> Bounds:
    """Return bounds on the work of attention calls.

    Args:
        sizes: of the calls.
        sums: of their step; those of the requests that they are for.
        longest: positions of the model, NaN if unknown: then there may be no upper bound.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        context, generation, total = _least_pairs(sums, sizes.window)
        low = by_width(sizes, context, generation, np.fmax(context + generation, total))
        context, generation, total = _most_pairs(sums, sizes.window, longest)
        high = by_width(sizes, context, generation, np.fmin(context + generation, total))
        rows = rows_moved(sizes, sums) * sizes.q_bytes
        width = np.where(sizes.shared == 1, sizes.d_qk, sizes.d_qk + sizes.d_v)
        of_key = sizes.h_kv * width * sizes.kv_bytes
        least = rows + _least_keys(sums, sizes.window) * of_key
        return Bounds(low, high, least, rows + _most_keys(sums, sizes.window, longest) * of_key)


def _least_pairs(sums: Sums, window: Reals) -> tuple[Reals, Reals, Reals]:
    context = known(
        2.0 * sums.c_sqsk - sums.c_sqsq,
        _least_squares(sums.c_sqsq, sums.c_sq, sums.r_c)
        + 2.0 * known(sums.c_sk - sums.c_sq, np.zeros_like(window)),
    )
    generation = 2.0 * known(
        sums.g_sqsk,
        _least_squares(sums.g_sqsq, sums.g_sq, sums.r_g)
        + known(sums.g_sk - sums.g_sq, np.zeros_like(window)),
    )
    total = known(2.0 * sums.t_sqsk - sums.c_sqsq, 2.0 * sums.t_sqsk - sums.t_sqsq)
    total = known(known(total, sums.t_sqsk), sums.t_sq)
    has_window = ~np.isnan(window)
    return (
        np.where(has_window, _least_windowed(sums.c_sq, sums.r_c, window), context),
        np.where(has_window, 2.0 * sums.g_sq, generation),
        np.where(has_window, sums.t_sq, total),
    )


def _least_squares(squares: Reals, queries: Reals, requests: Reals) -> Reals:
    alike = np.where(queries == 0, 0.0, queries * queries / known(requests, queries))
    return known(squares, alike)


def _least_windowed(queries: Reals, requests: Reals, window: Reals) -> Reals:
    requests = known(requests, queries)
    mean = queries / requests
    each = np.where(mean <= window / 2, mean * mean, window * mean - window * window / 4)
    return np.where(queries == 0, 0.0, requests * each)


def _most_pairs(sums: Sums, window: Reals, longest: float) -> tuple[Reals, Reals, Reals]:
    one = np.ones_like(window)
    most_c = np.maximum(sums.c_sq - known(sums.r_c, one) + 1.0, one)  # of the longest chunk
    most_g = np.maximum(sums.g_sq - known(sums.r_g, one) + 1.0, one)
    squares = known(sums.c_sqsq, most_c * most_c + known(sums.r_c, one) - 1.0)
    by_keys = squares + 2.0 * most_c * (sums.c_sk - sums.c_sq)
    least = _least_squares(sums.c_sqsq, sums.c_sq, sums.r_c)
    context = known(
        known(2.0 * sums.c_sqsk - sums.c_sqsq, by_keys), 2.0 * sums.c_sq * longest - least
    )
    generation = 2.0 * known(known(sums.g_sqsk, most_g * sums.g_sk), sums.g_sq * longest)
    total = known(2.0 * sums.t_sqsk - sums.c_sqsq, 2.0 * known(sums.t_sqsk, sums.t_sq * longest))
    return (
        np.where(sums.c_sq == 0, 0.0, np.fmin(context, 2.0 * sums.c_sq * window)),
        np.where(sums.g_sq == 0, 0.0, np.fmin(generation, 2.0 * sums.g_sq * window)),
        np.fmin(total, 2.0 * sums.t_sq * window),
    )


def _least_keys(sums: Sums, window: Reals) -> Reals:
    has_window = ~np.isnan(window)
    apart = known(sums.c_sk, sums.c_sq) + known(sums.g_sk, sums.g_sq)
    every = known(sums.t_sk, known(apart, sums.t_sq))
    return np.where(has_window, sums.t_sq, every)


def _most_keys(sums: Sums, window: Reals, longest: float) -> Reals:
    def of(keys: Reals, queries: Reals, requests: Reals) -> Reals:
        most = known(keys, known(requests, queries) * longest)
        seen = np.fmin(most, seen_most(queries, requests, window))
        return np.where(queries == 0, 0.0, seen)

    apart = of(sums.c_sk, sums.c_sq, sums.r_c) + of(sums.g_sk, sums.g_sq, sums.r_g)
    return known(apart, of(sums.t_sk, sums.t_sq, sums.r_c + sums.r_g))
