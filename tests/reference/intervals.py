"""Intervals as sets of ticks: no interval logic at all."""

from __future__ import annotations


def ticks(start, end):
    return set(range(start, end))


def covered(spans):
    """Count the ticks that at least one of the (start, end) covers."""
    return len(set().union(*(ticks(*span) for span in spans)))


def overlapping(spans):
    """Tell for each (group, start, end) whether an earlier one of its group shares a tick."""
    return [
        any(ticks(*span[1:]) & ticks(*other[1:]) for other in spans[:i] if other[0] == span[0])
        for i, span in enumerate(spans)
    ]
