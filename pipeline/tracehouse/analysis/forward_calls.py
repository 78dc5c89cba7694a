"""Which forward call a backward call belongs to: by autograd's sequence number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import Codes, Ints, Mask, numbered, read_integers, read_words

_MOST = 8  # calls of one number that are tried
_EVALUATED = "autograd::engine::evaluate_function: "


@dataclass(frozen=True, slots=True)
class Candidates:
    """One candidate for some backward calls.

    backward (k,): their positions in what was asked for. forward (k,): rows of `ops`.
    """

    backward: Ints
    forward: Ints


def number_bearers(names: list[str], name: Codes, has_number: Mask, parent: Ints) -> Ints:
    """Return the call (n,) whose sequence number is that of each call's forward, -1 for none.

    That is the innermost node around it that autograd's engine evaluates: the ops that a node calls
    have no number, or with `create_graph` that of their own backward. Without a node it is the
    nearest call that has a number. name, has_number, parent (n,): of the calls, -1 for no parent.
    """
    is_node = np.array([*(word.startswith(_EVALUATED) for word in names), False])[name]
    node = _nearest(is_node & has_number, parent)
    return np.where(node >= 0, node, _nearest(has_number, parent))


def _nearest(wanted: Mask, parent: Ints) -> Ints:
    """Return the nearest wanted call at or around each, -1 for none."""
    at = np.arange(len(parent), dtype=np.int64)
    while True:
        onward = np.flatnonzero((at >= 0) & ~wanted[at])
        if not len(onward):
            return at
        at[onward] = parent[at[onward]]


def forward_candidates(ops: pa.Table, backward: Ints, bearer: Ints) -> Iterator[Candidates]:
    """Yield the calls that may be the forward ones of `backward`, rows of `ops`; best ones first.

    They are of the same trace and process, have the sequence number of `bearer`, a row for each,
    and ended before the backward call began. Those of another thread come first, then the latest to
    begin: the innermost of nested calls (perf_models B2).
    """
    ranked = _ranked(ops, backward, bearer)
    for place in range(_MOST):
        having = [i for i, found in enumerate(ranked) if len(found) > place]
        if not having:
            return
        yield Candidates(
            np.array(having, dtype=np.int64),
            np.array([ranked[i][place] for i in having], dtype=np.int64),
        )


def _ranked(ops: pa.Table, backward: Ints, bearer: Ints) -> list[list[int]]:
    """Return the candidates of each backward call, best first."""
    group, start, end, thread = _columns(ops)
    wanted = np.unique(group[bearer])
    rows = np.flatnonzero(np.isin(group, wanted[wanted >= 0]))
    of_group: dict[int, list[int]] = {}
    for row in rows[np.argsort(-start[rows], kind="stable")].tolist():
        of_group.setdefault(int(group[row]), []).append(row)
    ranked: list[list[int]] = []
    for row, number in zip(backward.tolist(), group[bearer].tolist(), strict=True):
        ended = [r for r in of_group.get(number, ()) if end[r] <= start[row]]
        ranked.append(sorted(ended, key=lambda r: thread[r] == thread[row])[:_MOST])
    return ranked


def _columns(ops: pa.Table) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the group of each op (-1 for none), its start, its end and its thread."""
    sequence = read_integers(ops, "sequence_number")
    start, dur = read_integers(ops, "ts_ns"), read_integers(ops, "dur_ns")
    process, _ = numbered(
        read_words(ops, "trace_id").codes.astype(np.int64) << 32
        | (read_words(ops, "process").codes.astype(np.int64) + 1)
    )
    known = sequence.known & (sequence.values >= 0) & start.known & dur.known
    number, _ = numbered(sequence.values)
    group = np.where(known, process * (len(ops) + 1) + number, -1)
    thread = read_words(ops, "thread").codes.astype(np.int64)
    return group, start.values, start.values + dur.values, thread
