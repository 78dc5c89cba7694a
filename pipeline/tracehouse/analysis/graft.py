"""Giving the kernels of replayed graphs the ops that dispatched them when the graph was captured.

Each launch of a graph gets its own copy of the captured op calls that have kernels in it: rows of
`ops` below the op around the launch. Host times are not copied: those of a capture say nothing of
the replay. Every activity stays counted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tracehouse.analysis.captured import CaptureTrace, Vocabulary
from tracehouse.analysis.columns import Ints, read_integers
from tracehouse.analysis.graft_tables import Grafted, copies_of
from tracehouse.analysis.graph_choice import Choice
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.analysis.replays import Replays
from tracehouse.findings import Findings


@dataclass(frozen=True, slots=True, eq=False)
class Captures:
    """The capture traces that belong to a trace, and the numbers of their kernels' names."""

    traces: tuple[CaptureTrace, ...]
    vocabulary: Vocabulary

    def of_rank(self, rank: int | None) -> tuple[CaptureTrace, ...]:
        """Return those of a rank; of the lowest rank there is, if that one has none."""
        ranks = {trace.rank for trace in self.traces}
        if rank not in ranks or rank is None:
            rank = min((r for r in ranks if r is not None), default=None)
        return tuple(trace for trace in self.traces if trace.rank in (rank, None))


def graft(
    linked: Mapping[str, pa.Table],
    captures: Captures,
    rank: int | None,
    rules: OpCategories,
    *,
    findings: Findings,
) -> dict[str, pa.Table]:
    """Tie the kernels of graph launches to the ops of the captures.

    Args:
        linked: what `link` gives for the trace.
        captures: the captures that belong to it.
        rank: the trace's, None if it is not known.
        rules: the categories of ops.
        findings: gets GRAPH_UNMATCHED for each launch whose graph is not known.

    Returns:
        The tables with the rows of `ops`, `signatures` and `compiled_calls` that come from the
        captures added, and with `kernels` and `launches` telling what was tied.

    Cost: a graph is aligned once with each distinct sequence of kernels; the rest are arrays.

    Source: inference §8, field_cases F56.
    """
    replays = Replays(linked, captures.vocabulary)
    if not len(replays.rows):
        return dict(linked)
    traces = captures.of_rank(rank)
    choices = replays.chosen([capture for trace in traces for capture in trace.captures])
    copies = copies_of(choices, traces)
    grafted = Grafted(linked, replays, choices, copies)
    _note(findings, linked["launches"], replays.rows, choices)
    return {
        **linked,
        "ops": grafted.ops(rules),
        "signatures": grafted.signatures(traces),
        "compiled_calls": grafted.compiled_calls(traces),
        "kernels": grafted.kernels(),
        "launches": grafted.launches(),
    }


def _note(findings: Findings, launches: pa.Table, rows: Ints, choices: Sequence[Choice]) -> None:
    events = read_integers(launches, "event_id").values
    for row, choice in zip(rows.tolist(), choices, strict=True):
        if choice.why is not None:
            findings.add("GRAPH_UNMATCHED", 1, int(events[row]), choice.why)
