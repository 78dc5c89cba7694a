"""Which end event closes which begin event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit


@njit
def pair_ends(thread: NDArray[np.int64], begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Pair begin and end events: an end closes the begin opened last on its thread.

    Shapes: thread (n,): int64; begins (n,): bool, whether the event begins a span or ends one. Out
            (n,): int64, the position of the other event of the pair, -1 if there is none.
    Needs:  sorted by (thread, time, event order).
    Cost:   O(n) time, O(n) memory.
    Source: field_cases F30.
    """
    n = thread.shape[0]
    partner = np.full(n, -1, dtype=np.int64)
    stack = np.empty(n, dtype=np.int64)
    height = 0
    for i in range(n):
        if i > 0 and thread[i] != thread[i - 1]:
            height = 0
        if begins[i]:
            stack[height] = i
            height += 1
        elif height > 0:
            height -= 1
            partner[i] = stack[height]
            partner[stack[height]] = i
    return partner
