"""Begin and end events as brackets, paired by taking out innermost pairs until none is left."""

from __future__ import annotations


def partners(events):
    """Return the place of each event's partner or -1; events: (thread, begins)."""
    found = [-1] * len(events)
    for thread in {thread for thread, _ in events}:
        left = [i for i, event in enumerate(events) if event[0] == thread]
        while True:
            pair = next(
                (k for k in range(len(left) - 1) if events[left[k]][1] > events[left[k + 1]][1]),
                None,
            )
            if pair is None:
                break
            begin, end = left[pair : pair + 2]
            found[begin], found[end] = end, begin
            del left[pair : pair + 2]
    return found
