"""Sums over the requests of serving steps, and which requests an attention call is for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

# Requests that a call is for. EITHER: those of one kind, and it is not known which.
ALL, CONTEXT, GENERATION, EITHER, UNCLEAR = 0, 1, 2, 3, -1


class Sums(NamedTuple):
    """Sums of the steps of n calls, each (n,), NaN where the annotation does not say.

    r: requests; sq: query tokens; sk: key tokens; sqsq: query²; sqsk: query · key. c_ of context,
    g_ of generation, t_ of all. Source: inference §1.
    """

    r_c: Reals
    r_g: Reals
    c_sq: Reals
    c_sk: Reals
    c_sqsq: Reals
    c_sqsk: Reals
    g_sq: Reals
    g_sk: Reals
    g_sqsq: Reals
    g_sqsk: Reals
    t_sq: Reals
    t_sk: Reals
    t_sqsq: Reals
    t_sqsk: Reals

    def of_part(self, part: Ints) -> Sums:
        """Return the sums of the requests that each call is for; nothing is known of UNCLEAR."""
        if not part.any():
            return self  # all calls are for all requests
        values = self._asdict()
        for side, other in ((CONTEXT, GENERATION), (GENERATION, CONTEXT)):
            own, rest = ("c_", "g_") if side == CONTEXT else ("g_", "c_")
            for name in ("sq", "sk", "sqsq", "sqsk"):
                values[f"t_{name}"] = np.where(
                    part == side, values[own + name], values[f"t_{name}"]
                )
                values[rest + name] = np.where(part == side, 0.0, values[rest + name])
            of_rest = "r_g" if other == GENERATION else "r_c"
            values[of_rest] = np.where(part == side, 0.0, values[of_rest])
        return Sums(**{name: np.where(part == UNCLEAR, np.nan, v) for name, v in values.items()})


def part_of(stated: Ints, queries: Reals, sums: Sums) -> Ints:
    """Tell which requests each call is for: ALL, CONTEXT, GENERATION, or UNCLEAR.

    Args:
        stated: what the op is for, ALL where it takes any, EITHER where that is in doubt.
        queries: tokens of its query tensor, which padding may raise; NaN if unknown.
        sums: of its step.

    A call with fewer queries than the step has tokens is for one of the two kinds alone, which its
    number tells if only one of them has as many.
    """
    with np.errstate(invalid="ignore"):
        is_mixed = ~(sums.c_sq == 0) & ~(sums.g_sq == 0)
        in_doubt = (stated == EITHER) & is_mixed & ~(queries >= sums.t_sq)
        fewer = ((queries < sums.t_sq) & (stated == ALL)) | in_doubt
        is_context, is_generation = queries == sums.c_sq, queries == sums.g_sq
    one = np.where(is_context & ~is_generation, CONTEXT, UNCLEAR)
    one = np.where(is_generation & ~is_context, GENERATION, one)
    return np.where(fewer, one, np.where(stated == EITHER, ALL, stated))
