"""Which of the calls that share a correlation id is the launch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit


@njit
def innermost_calls(
    key: NDArray[np.int64],
    thread: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    tolerance: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the innermost call of each key, if the calls of the key nest in one another.

    A runtime call and the driver call below it share an id: the innermost is the launch. Calls on
    different threads, or one after the other, have nothing to do with each other.

    Shapes: key, thread, start, end (n,): int64. Out: keys (k,): int64, the distinct keys,
            ascending; chosen (k,): int64, the position of the innermost call, -1 if they do not
            nest.
    Units:  ns.
    Needs:  sorted by (key, thread, start, end descending); end[i] >= start[i];
            end[i] + tolerance < 2**63.
    Cost:   O(n) time, O(n) memory.
    Source: field_cases F53, F54.
    """
    n = key.shape[0]
    keys = np.empty(n, dtype=np.int64)
    chosen = np.empty(n, dtype=np.int64)
    k = -1
    for i in range(n):
        if i == 0 or key[i] != key[i - 1]:
            k += 1
            keys[k] = key[i]
            chosen[k] = i
        elif (
            chosen[k] >= 0
            and thread[i] == thread[i - 1]
            and start[i] < end[i - 1]
            and end[i] <= end[i - 1] + tolerance
        ):
            chosen[k] = i
        else:
            chosen[k] = -1
    return keys[: k + 1], chosen[: k + 1]
