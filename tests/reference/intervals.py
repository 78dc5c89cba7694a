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


def cut(rows, slack):
    """Return the ends by the words of the rule; rows are (group, start, end, exempt)."""
    ends = []
    for group, start, end, exempt in rows:
        later = [other for other in rows if other[0] == group and other[1] > start]
        runs_over = bool(later) and end - min(other[1] for other in later) > slack
        outlives = any(other[2] < end for other in later)
        is_cut = runs_over and outlives and not exempt
        ends.append(min(other[1] for other in later) if is_cut else end)
    return ends
