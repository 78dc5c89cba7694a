"""Aligning the kernels of a replayed graph with the dispatches that were recorded at its capture.

Both are sequences of codes: a kernel's name, or one of COPY and FILL for what has a kind only. A
dispatch may be ANY, a kernel whose name was not recorded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit

Ints = NDArray[np.int64]

ANY, COPY, FILL, FOREIGN = -1, -2, -3, -4  # FOREIGN: a name that no capture has
_LONGEST_RUN = 256  # how far streams are compared where several could take a dispatch


@njit
def _fits(dispatch: int, kernel: int) -> bool:
    return dispatch == kernel or (dispatch == ANY and kernel != COPY and kernel != FILL)


@njit
def fit_in_order(dispatch: Ints, kernel: Ints) -> bool:
    """Tell whether two sequences of one length fit place by place.

    Shapes: dispatch, kernel (n,): int64 codes.
    Cost:   O(n) time, O(1) memory.
    Source: inference §8, alignment a.
    """
    for i in range(kernel.shape[0]):
        if not _fits(dispatch[i], kernel[i]):
            return False
    return True


@njit
def first_fit(dispatch: Ints, kernel: Ints) -> Ints:
    """Give each kernel, in order, the first dispatch behind the one before that fits.

    Shapes: dispatch (n,), kernel (m,): int64 codes. Out (m,): places among the dispatches,
            ascending; all -1 if one kernel finds none.
    Cost:   O(n + m) time, O(m) memory.
    Source: inference §8, alignment c.
    """
    found = np.full(kernel.shape[0], -1, dtype=np.int64)
    at = 0
    for i in range(kernel.shape[0]):
        while at < dispatch.shape[0] and not _fits(dispatch[at], kernel[i]):
            at += 1
        if at == dispatch.shape[0]:
            found[:] = -1
            return found
        found[i] = at
        at += 1
    return found


@njit
def _run(dispatch: Ints, at: int, kernel: Ints, begin: int, end: int) -> int:
    """Count how many dispatches from `at` on fit the kernels from `begin` on, one by one."""
    length = 0
    while (
        length < _LONGEST_RUN
        and at + length < dispatch.shape[0]
        and begin + length < end
        and _fits(dispatch[at + length], kernel[begin + length])
    ):
        length += 1
    return length


@njit
def fit_by_stream(dispatch: Ints, kernel: Ints, stream: Ints, streams: int) -> Ints:
    """Deal the dispatches out to streams, each of which keeps its own order.

    A dispatch goes to the stream whose next kernel fits; of several to the one in which the longest
    run of dispatches fits, the lowest if they are even. One that fits none is passed over.

    Shapes: dispatch (n,), kernel, stream (m,): int64; kernels in order of time, 0 <= stream <
            streams. Out (m,): places among the dispatches; all -1 if a kernel is left over.
    Cost:   O(n * streams + ties) time, O(m + streams) memory.
    Source: inference §8, alignment d.
    """
    order = np.argsort(stream, kind="mergesort")
    queue = kernel[order]
    end = np.zeros(streams, dtype=np.int64)
    for i in range(stream.shape[0]):
        end[stream[i]] += 1
    end = np.cumsum(end)
    head = np.zeros(streams, dtype=np.int64)
    head[1:] = end[:-1]
    found = np.full(kernel.shape[0], -1, dtype=np.int64)
    taken = 0
    for at in range(dispatch.shape[0]):
        best, best_run, fitting = -1, 0, 0
        for s in range(streams):
            if head[s] < end[s] and _fits(dispatch[at], queue[head[s]]):
                fitting += 1
                best = s if best < 0 else best
        if fitting > 1:
            for s in range(streams):
                run = _run(dispatch, at, queue, head[s], end[s])
                if run > best_run:
                    best, best_run = s, run
        if best >= 0:
            found[order[head[best]]] = at
            head[best] += 1
            taken += 1
    if taken < kernel.shape[0]:
        found[:] = -1
    return found
