"""Which spans that look like steps count as one, and which recordings of them belong together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

GENERIC, SPECIFIC, BARRIER = 0, 1, 2  # kinds of spans


@njit
def keep_steps(
    parent: NDArray[np.int64], kind: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the span that each one counts as part of.

    A specific span is kept, and all below it are part of it. A generic one (a cycle of a profiler,
    say) is part of what is above it; where nothing is, the specific spans below it are named in
    `holder`, for the caller to choose between it and them. A barrier and all below it are nothing.

    Shapes: parent (n,) int64, -1 at a root; kind (n,) int8. Out (n,) int64 each: keeper, position
            of the span that it is part of (itself, if kept), -1 if barred; holder, position of the
            generic span around a kept specific one, else -1; barrier, position of the outermost
            barrier that it is or lies in, else -1.
    Needs:  preorder: parent[i] < i.
    Cost:   O(n) time, O(n) memory.
    Source: inference §2.
    """
    n = parent.shape[0]
    keeper = np.full(n, -1, dtype=np.int64)
    holder = np.full(n, -1, dtype=np.int64)
    barrier = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        above = parent[i]
        if above >= 0 and barrier[above] >= 0:
            barrier[i] = barrier[above]
        elif kind[i] == BARRIER:
            barrier[i] = i
        elif above < 0 or keeper[above] < 0:
            keeper[i] = i
        elif kind[keeper[above]] == GENERIC and kind[i] == SPECIFIC:
            keeper[i] = i
            holder[i] = keeper[above]
        else:
            keeper[i] = keeper[above]
    return keeper, holder, barrier


@njit
def overlapping_runs(
    key: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], touching: bool
) -> NDArray[np.int64]:
    """Find, for each span, the first of the run of overlapping spans of its key that it is in.

    Spans that only touch are of one run if `touching` says so.

    Shapes: key, start, end (n,) int64. Out (n,) int64, a position, its own for the first.
    Units:  ns.
    Needs:  sorted by (key, start); end[i] >= start[i].
    Cost:   O(n) time, O(n) memory.
    Source: inference §2 (one occurrence per name over all streams), §1 (ranges printed twice).
    """
    n = key.shape[0]
    first = np.empty(n, dtype=np.int64)
    reach = np.int64(0)
    for i in range(n):
        same = i > 0 and key[i] == key[i - 1]
        if same and (start[i] < reach or (touching and start[i] == reach)):
            first[i] = first[i - 1]
            reach = max(reach, end[i])
        else:
            first[i] = i
            reach = end[i]
    return first


@njit
def pair_in_order(
    key: NDArray[np.int64],
    start: NDArray[np.int64],
    wanted: NDArray[np.int64],
    not_before: NDArray[np.int64],
    in_time: bool,
) -> NDArray[np.int64]:
    """Pair the k-th occurrence of a key on one side with its k-th on the other.

    If `in_time`, an occurrence that begins before the next one due on the other side has its
    partner outside of the recording: it gets none, and none is used up.

    Shapes: key, start (n,) int64; wanted, not_before (m,) int64, keys and starts of the other side.
            Out (n,) int64, a position in `wanted`, -1 for none.
    Units:  ns.
    Needs:  each side sorted by (key, start).
    Cost:   O(n + m) time.
    Source: inference §3 (gpu_user_annotation of the same name).
    """
    n, m = key.shape[0], wanted.shape[0]
    found = np.full(n, -1, dtype=np.int64)
    j = 0
    for i in range(n):
        while j < m and wanted[j] < key[i]:
            j += 1
        if j < m and wanted[j] == key[i] and not (in_time and start[i] < not_before[j]):
            found[i] = j
            j += 1
    return found
