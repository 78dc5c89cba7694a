"""The tables of a trace with the calls of captured graphs in them: one copy a graph launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.analysis.captured import CapturedGraph, CaptureTrace
from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Words,
    constant,
    pick,
    places,
    read_integers,
    read_words,
    spread,
)
from tracehouse.analysis.graph_choice import Choice
from tracehouse.analysis.graph_match import GRAFTS
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.analysis.replays import Replays
from tracehouse.compute.intervals import union_by_group
from tracehouse.compute.subtree import add_to_parents, subtree_union
from tracehouse.schema import tables
from tracehouse.vocab import Link

FIRST_ID = 1 << 40
"""event_id of the first op call that comes from a capture: more than a file has events."""


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """A captured graph as some launches replay it, which all align in one way.

    launches: their places. kept: ops with kernels below them, by place in the graph. op: of each
    kernel, place among the kept, -1 for none. graft: of each kernel. trace: that it comes from.
    """

    graph: CapturedGraph
    trace: int
    launches: Ints
    kept: Ints
    op: Ints
    graft: Ints


def copies_of(choices: Sequence[Choice], traces: Sequence[CaptureTrace]) -> list[Copy]:
    """Put launches of one graph and one alignment together."""
    of_graph = {
        id(graph): number
        for number, trace in enumerate(traces)
        for capture in trace.captures
        for graph in capture.graphs
    }
    groups: dict[tuple[int, int], list[int]] = {}
    for at, choice in enumerate(choices):
        if choice.graph is not None:
            groups.setdefault((id(choice.graph), id(choice.alignment)), []).append(at)
    copies = []
    for launches in groups.values():
        choice = choices[launches[0]]
        if choice.graph is None or choice.alignment is None:
            continue
        graph, alignment = choice.graph, choice.alignment
        op = pick(graph.op, alignment.dispatch)
        has_kernels = np.zeros(len(graph.parent), dtype=np.int64)
        np.add.at(has_kernels, op[op >= 0], 1)
        add_to_parents(graph.parent, has_kernels)
        kept = np.flatnonzero(has_kernels)
        copies.append(
            Copy(
                graph,
                of_graph[id(graph)],
                np.array(launches, dtype=np.int64),
                kept,
                places(kept, op),
                alignment.graft,
            )
        )
    return copies


class Grafted:
    """The rows that the copies of captured graphs make (n,): launch by launch, each in preorder."""

    def __init__(
        self,
        linked: Mapping[str, pa.Table],
        replays: Replays,
        choices: Sequence[Choice],
        copies: list[Copy],
    ) -> None:
        self.linked, self.replays, self.choices, self.copies = linked, replays, choices, copies
        sizes = np.zeros(len(replays.rows), dtype=np.int64)
        for copy in copies:
            sizes[copy.launches] = len(copy.kept)
        self.first = np.concatenate([[0], np.cumsum(sizes)])
        self.count = int(self.first[-1])
        self.launch = np.repeat(np.arange(len(sizes)), sizes)
        self.op = np.full(len(replays.kernels), -1, dtype=np.int64)  # of each kernel: a row
        self.graft = np.full(len(replays.kernels), -1, dtype=np.int64)
        for copy in copies:
            kernels = replays.bounds[copy.launches][:, None] + np.arange(len(copy.op))
            self.graft[kernels] = copy.graft
            rows = self.first[copy.launches][:, None] + copy.op
            self.op[kernels] = np.where(copy.op >= 0, rows, -1)

    def _spread(self, of_copy: Sequence[Ints]) -> Ints:
        """Spread one column a copy, of its kept ops, over the rows."""
        values = np.full(self.count, -1, dtype=np.int64)
        for copy, column in zip(self.copies, of_copy, strict=True):
            rows = self.first[copy.launches][:, None] + np.arange(len(copy.kept))
            values[rows] = column
        return values

    def ops(self, rules: OpCategories) -> pa.Table:
        """Return the table `ops` with the grafted calls behind the trace's own."""
        own, launches = self.linked["ops"], self.linked["launches"]
        rows = self.replays.rows[self.launch]
        above = self._spread([places(c.kept, c.graph.parent[c.kept]) for c in self.copies])
        parent = np.where(above >= 0, self.first[self.launch] + above, -1)
        around = read_integers(launches, "op_id").take(rows)
        names, signature = self._names(), self._signatures()
        event = np.where(parent >= 0, FIRST_ID + parent, around.values)
        unknown = Integers(np.zeros(self.count, np.int64), np.zeros(self.count, np.bool_)).arrow()
        columns = {
            "trace_id": self._trace_id().arrow(),
            "event_id": pa.array(FIRST_ID + np.arange(self.count)),
            "parent_id": Integers(event, (parent >= 0) | around.known).arrow(),
            "depth": self._depths(around).astype(np.int32),
            "name": names.arrow(),
            "category": names.each(rules.category).arrow(),
            "process": read_words(launches, "process").take(rows).arrow(),
            "thread": read_words(launches, "thread").take(rows).arrow(),
            "signature_id": signature.arrow(),
            "step_id": read_integers(launches, "step_id").take(rows).arrow(),
            **dict.fromkeys(
                ("ts_ns", "dur_ns", "self_ns", "external_id", "sequence_number"), unknown
            ),
            **self._gpu_time(parent),
            "origin": constant("capture", self.count).arrow(),
        }
        table = tables.OPS
        grafted = pa.table([columns[name] for name in table.names], schema=table.schema)
        return _joined(own, grafted)

    def _trace_id(self) -> Words:
        words = read_words(self.linked["launches"], "trace_id")
        return words.take(self.replays.rows[self.launch])

    def _names(self) -> Words:
        words: list[str] = []
        columns = []
        for copy in self.copies:
            columns.append(copy.graph.name.codes[copy.kept].astype(np.int64) + len(words))
            words += copy.graph.name.values
        return spread(self._spread(columns).astype(np.int32), words)

    def _signatures(self) -> Integers:
        known = self._spread(
            [c.graph.signature.known[c.kept].astype(np.int64) for c in self.copies]
        )
        values = self._spread([c.graph.signature.values[c.kept] for c in self.copies])
        return Integers(values, known > 0)

    def _depths(self, around: Integers) -> Ints:
        ops = self.linked["ops"]
        depth = np.asarray(ops["depth"].to_numpy()).astype(np.int64)
        row = np.where(
            around.known, places(read_integers(ops, "event_id").values, around.values), -1
        )
        return pick(depth, row) + 1 + self._spread([c.graph.depth[c.kept] for c in self.copies])

    def _gpu_time(self, parent: Ints) -> dict[str, pa.Array]:
        """Return counts and unions of the kernels of each row, and of those below it."""
        kernels = self.linked["kernels"].select(["ts_ns", "dur_ns"]).take(self.replays.kernels)
        start, dur = read_integers(kernels, "ts_ns"), read_integers(kernels, "dur_ns")
        count = np.bincount(self.op[self.op >= 0], minlength=self.count).astype(np.int64)
        timed = np.flatnonzero((self.op >= 0) & start.known & dur.known & (dur.values > 0))
        node = self.op[timed]
        order = np.lexsort((start.values[timed], node))
        node, begun = node[order], start.values[timed[order]]
        ended = begun + dur.values[timed[order]]
        by_start, by_end = np.argsort(begun, kind="stable"), np.argsort(ended, kind="stable")
        total = count.copy()
        add_to_parents(parent, total)
        return {
            "kernel_count": pa.array(total),
            "kernel_time_ns": pa.array(subtree_union(parent, node, begun, ended, by_start, by_end)),
            "direct_kernel_count": pa.array(count),
            "direct_kernel_time_ns": pa.array(union_by_group(node, begun, ended, self.count)),
        }

    def signatures(self, traces: Sequence[CaptureTrace]) -> pa.Table:
        """Return the table `signatures` with those that only the grafted calls have."""
        own = self.linked["signatures"]
        seen = own["signature_id"].to_numpy()
        added = [own]
        for number, trace in enumerate(traces):
            used = [c.graph.signature for c in self.copies if c.trace == number]
            kept = [c.kept for c in self.copies if c.trace == number]
            ids = [s.values[k][s.known[k]] for s, k in zip(used, kept, strict=True)]
            wanted = np.setdiff1d(np.concatenate([*ids, np.empty(0, np.int64)]), seen)
            rows = trace.signatures.filter(
                pc.is_in(trace.signatures["signature_id"], pa.array(wanted))
            )
            seen = np.union1d(seen, wanted)
            added.append(rows.set_column(0, rows.schema.field(0), self._constant(rows.num_rows)))
        return _joined(*added)

    def _constant(self, size: int) -> pa.Array:
        return constant(self.linked["launches"]["trace_id"][0].as_py(), size).arrow()

    def compiled_calls(self, traces: Sequence[CaptureTrace]) -> pa.Table:
        """Return what the launchers of compiled kernels say, of the grafted calls too."""
        own = self.linked["compiled_calls"]
        added = [own]
        compiled = self._spread([c.graph.compiled[c.kept] for c in self.copies])
        of_trace = self._spread([np.full(len(c.kept), c.trace) for c in self.copies])
        at = np.flatnonzero(compiled >= 0)
        for number, trace in enumerate(traces):
            rows = at[of_trace[at] == number]
            if len(rows):
                calls = trace.compiled_calls.take(pa.array(compiled[rows]))
                ids = {
                    "trace_id": self._constant(len(rows)),
                    "event_id": pa.array(FIRST_ID + rows),
                }
                columns = [ids.get(name, calls[name]) for name in calls.column_names]
                added.append(pa.table(columns, schema=own.schema))
        if len(added) == 1:
            return own
        calls = _joined(*added)
        return calls.take(pc.sort_indices(calls["event_id"]))

    def kernels(self) -> pa.Table:
        """Return the table `kernels` with the ops of those that were tied."""
        table = self.linked["kernels"]
        rows = self.replays.kernels
        op = read_integers(table, "op_id")
        values, known = op.values.copy(), op.known.copy()
        is_tied = self.op >= 0
        values[rows[is_tied]], known[rows[is_tied]] = FIRST_ID + self.op[is_tied], True
        graft = np.full(table.num_rows, -1, dtype=np.int64)
        graft[rows] = self.graft
        link = read_words(table, "link")
        codes = link.codes.copy()
        codes[rows[is_tied]] = len(link.values)
        return _replaced(
            table,
            op_id=Integers(values, known).arrow(),
            link=spread(codes, [*link.values, Link.CAPTURE.value]).arrow(),
            graft=spread(graft.astype(np.int32), GRAFTS).arrow(),
        )

    def launches(self) -> pa.Table:
        """Return the table `launches` with the captures used, or why there is none."""
        table, rows = self.linked["launches"], self.replays.rows
        size = np.full(table.num_rows, -1, dtype=np.int64)
        source, why = size.copy(), size.copy()
        for row, (place, choice) in zip(rows.tolist(), enumerate(self.choices), strict=True):
            source[row] = why[row] = place
            if choice.capture is not None and choice.capture.size is not None:
                size[row] = choice.capture.size
        sources = [None if c.capture is None else c.capture.source for c in self.choices]
        count = read_integers(table, "direct_kernel_count").values.copy()
        time = read_integers(table, "direct_kernel_time_ns").values.copy()
        count[rows], time[rows] = self._left_over()
        return _replaced(
            table,
            direct_kernel_count=pa.array(count),
            direct_kernel_time_ns=pa.array(time),
            capture=spread(source.astype(np.int32), sources).arrow(),
            capture_size=Integers(size, size >= 0).arrow(),
            why_no_capture=spread(why.astype(np.int32), [c.why for c in self.choices]).arrow(),
        )

    def _left_over(self) -> tuple[Ints, Ints]:
        """Return count and union of the kernels of each graph launch that have no op."""
        own = np.flatnonzero(self.op < 0)
        launch = self.replays.launch[own]
        kernels = self.linked["kernels"].select(["ts_ns", "dur_ns"])
        kernels = kernels.take(self.replays.kernels[own])
        start, dur = read_integers(kernels, "ts_ns"), read_integers(kernels, "dur_ns")
        count = np.bincount(launch, minlength=len(self.replays.rows)).astype(np.int64)
        timed = start.known & dur.known  # by launch and time already
        begun = start.values[timed]
        ended = begun + dur.values[timed]
        return count, union_by_group(launch[timed], begun, ended, len(self.replays.rows))


def _joined(*parts: pa.Table) -> pa.Table:
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _replaced(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), column)
    return table
