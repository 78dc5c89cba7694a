"""Call-stack nesting of spans on threads, and the innermost span around a moment.

Spans are sorted by (thread, start ascending, end descending, event order), so that a parent comes
before its children, and an op's descendants follow it without a gap (preorder).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracehouse.compiled import njit


@njit
def nest(
    thread: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    leaf: NDArray[np.bool_],
    tolerance: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
    """Find the parent, the depth and the self time of each span.

    The parent is the innermost earlier span of the thread that is open at the start and ends at
    most `tolerance` before the end; a span that overhangs an open one by more is its sibling. Self
    time is the length less the union of the children, each clipped to its parent: never negative.
    A leaf stands for a span of unknown length: it has a parent, but is none.

    Shapes: thread, start, end (n,): int64; leaf (n,): bool. Out: parent (n,): int64, the position
            of the parent, -1 at a root; depth (n,): int32; self (n,): int64; overhang (n,): bool,
            whether the span ends after its parent.
    Units:  ns.
    Needs:  sorted as the module says; end[i] >= start[i]; end[i] == start[i] where leaf;
            end[i] + tolerance < 2**63.
    Cost:   O(n) time, O(n) memory.
    Source: perf_models B2, field_cases F48.
    """
    n = thread.shape[0]
    parent = np.full(n, -1, dtype=np.int64)
    depth = np.zeros(n, dtype=np.int32)
    self_time = np.empty(n, dtype=np.int64)  # `end - start` loads all operators of numpy: 40 ms
    overhang = np.zeros(n, dtype=np.bool_)
    reach = start.copy()  # up to where the children seen so far cover a span
    stack = np.empty(n, dtype=np.int64)
    height = 0
    for i in range(n):
        if i > 0 and thread[i] != thread[i - 1]:
            height = 0
        while height > 0:
            top = stack[height - 1]
            if end[top] > start[i] and end[i] <= end[top] + tolerance:
                break
            height -= 1
        depth[i] = height
        self_time[i] = end[i] - start[i]
        if height > 0:
            top = stack[height - 1]
            parent[i] = top
            overhang[i] = end[i] > end[top]
            clipped = min(end[i], end[top])
            if clipped > reach[top]:
                self_time[top] -= clipped - max(start[i], reach[top])
                reach[top] = clipped
        if not leaf[i]:
            stack[height] = i
            height += 1
    return parent, depth, self_time, overhang


@njit
def innermost(
    group: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    moment_group: NDArray[np.int64],
    moment: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Find the span around each moment that starts last (of equals the shortest, then the last).

    Spans need not nest: one that is popped ends before a later span of its group does, so that it
    can never be the answer again.

    Shapes: group, start, end (n,): int64; moment_group, moment (m,): int64. Out (m,): int64, the
            position of the span, -1 if none is open.
    Units:  ns. A span is open in [start, end).
    Needs:  spans sorted by (group, start, end descending), moments by (group, moment);
            end[i] >= start[i].
    Cost:   O(n + m) time, O(n + m) memory.
    Source: perf_models B3, C31 (innermost match and interval join).
    """
    n = group.shape[0]
    found = np.full(moment.shape[0], -1, dtype=np.int64)
    stack = np.empty(n, dtype=np.int64)
    height = 0
    i = 0
    for j in range(moment.shape[0]):
        while i < n and (
            group[i] < moment_group[j] or (group[i] == moment_group[j] and start[i] <= moment[j])
        ):
            while height > 0 and (
                group[stack[height - 1]] != group[i] or end[stack[height - 1]] <= end[i]
            ):
                height -= 1
            stack[height] = i
            height += 1
            i += 1
        while height > 0 and (
            group[stack[height - 1]] != moment_group[j] or end[stack[height - 1]] <= moment[j]
        ):
            height -= 1
        if height > 0:
            found[j] = stack[height - 1]
    return found
