"""FLOPs and bytes of attention from the sums of its step: exact, to the letter of the seed.

Source: inference §6. Nothing of a single request is needed, only sums over requests:
FLOPs = H_q·(d_qk + d_v)·(2·c_sqsk - c_sqsq + 2·g_sqsk), causal by half inside a chunk of context
and full elsewhere; bytes = queries and outputs in the type of q, keys and values of each request
once in the type of the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracehouse.formulas.step_sums import Reals, Sums


class Sizes(NamedTuple):
    """What the inputs of n calls, or the model's configuration, say; each (n,), NaN if unknown.

    queries: tokens of the query tensor. h_q, h_kv: heads on this rank. d_qk, d_v: widths of a key
    and a value; c_qk, c_v: those of context, which differ where generation works on MLA's latent.
    q_bytes, kv_bytes: of an element. window: keys that a token sees, NaN for all. shared: 1 where
    the values are columns of the keys, so that the cache holds d_qk numbers a token.
    """

    queries: Reals
    h_q: Reals
    h_kv: Reals
    d_qk: Reals
    d_v: Reals
    c_qk: Reals
    c_v: Reals
    q_bytes: Reals
    kv_bytes: Reals
    window: Reals
    shared: Reals


class StepWork(NamedTuple):
    """FLOPs and bytes of n calls, each (n,), NaN if unknown; seed: the published formula."""

    flops: Reals
    bytes: Reals
    flops_seed: Reals
    bytes_seed: Reals


def attention(sizes: Sizes, sums: Sums) -> StepWork:
    """Return the work of attention calls by the sums of their step.

    A window caps the keys of each query, which makes flops and bytes an upper bound: shorter
    requests see fewer. The seed knows no window, one type of element, and reads values apart from
    keys.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        pairs = _pairs(sums, sizes.window)
        flops = by_width(sizes, *pairs)
        rows = rows_moved(sizes, sums)
        width = np.where(sizes.shared == 1, sizes.d_qk, sizes.d_qk + sizes.d_v)
        moved = rows * sizes.q_bytes + keys_seen(sums, sizes.window) * sizes.h_kv * width * (
            sizes.kv_bytes
        )
        elements = rows + sums.t_sk * sizes.h_kv * (sizes.d_qk + sizes.d_v)
        flops_seed = flops
        if not np.isnan(sizes.window).all():
            flops_seed = by_width(sizes, *_pairs(sums, np.full_like(flops, np.nan)))
        return StepWork(flops, moved, flops_seed, elements * sizes.q_bytes)


def rows_moved(sizes: Sizes, sums: Sums) -> Reals:
    """Return the elements of queries and outputs."""
    of_context = np.where(sums.c_sq == 0, 0.0, sizes.c_qk + sizes.c_v)
    apart = sums.c_sq * of_context + sums.g_sq * (sizes.d_qk + sizes.d_v)
    together = sums.t_sq * (sizes.d_qk + sizes.d_v)
    return np.asarray(sizes.h_q * np.where(is_one_width(sizes), together, apart))


def is_one_width(sizes: Sizes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell where context and generation work on heads of equal widths."""
    return np.asarray((sizes.c_qk == sizes.d_qk) & (sizes.c_v == sizes.d_v))


def keys_seen(sums: Sums, window: Reals) -> Reals:
    """Return the keys that are read, Σ over requests; at most, where a window caps them.

    n consecutive queries see n + window - 1 keys at most.
    """
    context = capped(sums.c_sk, seen_most(sums.c_sq, sums.r_c, window))
    generation = capped(sums.g_sk, seen_most(sums.g_sq, sums.r_g, window))
    together = capped(sums.t_sk, seen_most(sums.t_sq, sums.r_c + sums.r_g, window))
    return known(context + generation, together)


def seen_most(queries: Reals, requests: Reals, window: Reals) -> Reals:
    """Return the most keys that queries of so many requests see; each alone, if these are unknown.

    Shapes: all (n,). NaN without a window.
    """
    return known(queries + requests * (window - 1.0), queries * window)


def known(first: Reals, second: Reals) -> Reals:
    """Return the first numbers, the second where they are NaN."""
    return np.where(np.isnan(first), second, first)


def capped(value: Reals, most: Reals) -> Reals:
    """Return the values, `most` where it is known and less; an unknown value stays so."""
    return np.where(most < value, most, value)


def _pairs(sums: Sums, window: Reals) -> tuple[Reals, Reals, Reals]:
    """Return twice the pairs of query and key: of context, of generation, of all."""
    context = capped(2.0 * sums.c_sqsk - sums.c_sqsq, 2.0 * sums.c_sq * window)
    generation = capped(2.0 * sums.g_sqsk, 2.0 * sums.g_sq * window)
    total = capped(2.0 * sums.t_sqsk - sums.c_sqsq, 2.0 * sums.t_sq * window)
    return context, generation, known(context + generation, total)


def by_width(sizes: Sizes, context: Reals, generation: Reals, total: Reals) -> Reals:
    """Return FLOPs by twice the pairs of context, of generation and of all."""
    of_context = np.where(context == 0, 0.0, context * (sizes.c_qk + sizes.c_v))
    apart = of_context + generation * (sizes.d_qk + sizes.d_v)
    together = total * (sizes.d_qk + sizes.d_v)
    return np.asarray(sizes.h_q * np.where(is_one_width(sizes), together, apart))
