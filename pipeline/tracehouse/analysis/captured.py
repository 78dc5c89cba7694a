"""Graphs as they were captured: what was dispatched, in order, and the ops it came from.

A trace taken while CUDA or HIP graphs are captured has the calls that would launch kernels, between
a StreamBeginCapture and its StreamEndCapture, and the ops around them, but no kernel: those run
when the graph is launched, in another trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import xxhash

from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Words,
    numbered,
    pick,
    places,
    read_integers,
    read_words,
)
from tracehouse.analysis.compiled_calls import plain
from tracehouse.analysis.frame import CATEGORIES, Frame, read_frame
from tracehouse.analysis.host import around, nest_rows
from tracehouse.analysis.launches import ops_of_calls
from tracehouse.analysis.spans import pair_spans
from tracehouse.compute.aligning import ANY, COPY, FILL
from tracehouse.findings import Findings
from tracehouse.spill import Spill
from tracehouse.vocab import GRAPH_LAUNCH, Category

FULL, PIECEWISE = "FULL", "PIECEWISE"

_BEGIN = re.compile("StreamBeginCapture", re.IGNORECASE)
_END = re.compile("StreamEndCapture", re.IGNORECASE)
_COPIES = re.compile("memcpy", re.IGNORECASE)
_FILLS = re.compile("memset", re.IGNORECASE)
_LAUNCHES = re.compile("launch(?!HostFunc)", re.IGNORECASE)
_CAPTURE = re.compile(r"capture_(\d{1,15})_(.+)", re.ASCII)


class Vocabulary:
    """The names of dispatched kernels, numbered as they come."""

    def __init__(self) -> None:
        self.code: dict[str, int] = {}

    def add(self, name: str) -> int:
        """Return the code of a name, entered if it is new."""
        return self.code.setdefault(name, len(self.code))


@dataclass(frozen=True, eq=False)
class CapturedGraph:
    """One graph: its dispatches (n,) in order, and the ops (m,) below which they stand.

    kernel: code of what each dispatches. op: place of the innermost op around each, -1 for none.
    Ops are in preorder: `parent` is a place, -1 at a root; `compiled` is a row of the trace's
    `compiled_calls`, -1 for none.
    """

    kernel: Ints
    op: Ints
    parent: Ints
    depth: Ints
    name: Words
    signature: Integers
    compiled: Ints

    @cached_property
    def likeness(self) -> str:
        """A hash that graphs share if it makes no difference which of them was replayed."""
        names = [self.name.values[code] for code in self.name.codes.tolist()]
        digest = xxhash.xxh3_64("\0".join(names).encode("utf-8", "surrogatepass"))
        for column in (self.kernel, self.op, self.parent, self.signature.values):
            digest.update(np.ascontiguousarray(column).tobytes() + b"\0")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """The graphs of one capture, which are launched one after another for one batch.

    size: the batch, None if it is not known. mode: FULL or PIECEWISE. counts_requests: whether size
    counts requests, not tokens.
    """

    source: str
    size: int | None
    mode: str
    counts_requests: bool
    graphs: tuple[CapturedGraph, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaptureTrace:
    """A trace that holds captures, with the tables that its ops refer to."""

    rank: int | None
    captures: tuple[Capture, ...]
    signatures: pa.Table
    compiled_calls: pa.Table


def captured(
    frame: pa.Table,
    linked: Mapping[str, pa.Table],
    dispatched: Mapping[int, str],
    vocabulary: Vocabulary,
    *,
    source: str,
    rank: int | None,
    told: tuple[int, str] | None = None,
) -> CaptureTrace:
    """Find the graphs that were captured in a trace.

    Args:
        frame: FRAME_SCHEMA, as the trace was read.
        linked: what `link` makes of it.
        dispatched: name of the kernel that a call launches, by event_id, where recorded.
        vocabulary: numbers the names; of all traces that are used together.
        source: name of the file.
        rank: the trace's.
        told: batch and mode by the index beside the file, None if that says nothing.

    A capture without a name has the most frequent first dimension for its size, and the mode by the
    number of its graphs.

    Source: inference §8.
    """
    paired, _ = pair_spans(frame, "", findings=Findings(), spill=Spill())
    rows = read_frame(paired)
    reading = _Reading(rows, linked, dispatched, vocabulary)
    begin, end = reading.spans()
    graphs = reading.graphs(begin, end)
    captures = reading.grouped(begin, graphs, source, told)
    return CaptureTrace(rank, captures, linked["signatures"], reading.compiled_calls)


class _Reading:
    """The rows of a capture trace while its graphs are found."""

    def __init__(
        self,
        frame: Frame,
        linked: Mapping[str, pa.Table],
        dispatched: Mapping[int, str],
        vocabulary: Vocabulary,
    ) -> None:
        self.frame, self.linked = frame, linked
        self.ops = frame.rows(Category.CPU_OP)
        calls = frame.rows(Category.RUNTIME, Category.DRIVER)
        self.calls = self._outermost(calls[frame.start.known[calls]])
        self.dispatched, self.vocabulary = dispatched, vocabulary
        self.compiled_calls = linked["compiled_calls"]

    def _outermost(self, calls: Ints) -> Ints:
        """Leave out driver calls that a runtime call makes."""
        frame = self.frame
        is_driver = frame.category[calls] == CATEGORIES.index(Category.DRIVER)
        if not is_driver.any():
            return calls
        inside = np.zeros(len(calls), dtype=np.bool_)
        inside[is_driver] = around(frame, frame.thread, calls[~is_driver], calls[is_driver]) >= 0
        return calls[~inside]

    def _named(self, pattern: re.Pattern[str], rows: Ints) -> Ints:
        fits = np.array([*(bool(pattern.search(n)) for n in self.frame.name.values), False])
        return rows[fits[self.frame.name.codes[rows]]]

    def spans(self) -> tuple[Ints, Ints]:
        """Return the calls that begin and end each capture: per process, in turns."""
        frame = self.frame
        begin, end = self._named(_BEGIN, self.calls), self._named(_END, self.calls)
        both = np.concatenate([begin, end])
        order = np.lexsort((frame.start.values[both], frame.process[both]))
        both, is_begin = both[order], (np.arange(len(both)) < len(begin))[order]
        process = frame.process[both]
        follows = is_begin[:-1] & ~is_begin[1:] & (process[:-1] == process[1:])
        first = np.flatnonzero(follows)
        by_time = first[np.argsort(frame.start.values[both[first]], kind="stable")]
        return both[by_time], both[by_time + 1]

    def _dispatches(self) -> tuple[Ints, Ints]:
        """Return the calls that dispatch to the GPU but launched nothing, and their codes."""
        frame, calls = self.frame, self.calls
        done = read_integers(self.linked["launches"], "event_id").values
        calls = calls[places(done, frame.event_id[calls]) < 0]
        of_name = np.array([*(_kind_of_call(n) for n in frame.name.values), 0], dtype=np.int64)
        kind = of_name[frame.name.codes[calls]]
        calls, code = calls[kind < 0], kind[kind < 0]
        kernels = np.flatnonzero(code == ANY)
        for at in kernels.tolist():
            name = self.dispatched.get(int(frame.event_id[calls[at]]))
            if name is not None:
                code[at] = self.vocabulary.add(name)
        return calls, code

    def _grids(self, calls: Ints, op: Ints) -> None:
        """Take the grid of a compiled kernel from its first dispatch: no kernel tells it here."""
        events = read_integers(self.compiled_calls, "event_id").values
        place = np.where(op >= 0, places(events, pick(self.frame.event_id, op)), -1)
        first = np.full(len(events), -1, dtype=np.int64)
        known = np.flatnonzero(place >= 0)[::-1]
        first[place[known]] = calls[known]
        grids = read_words(self.frame.table, "grid")
        code = pick(grids.codes.astype(np.int64), first)
        stated = Words(code.astype(np.int32), grids.values).each(plain)
        at = self.compiled_calls.schema.get_field_index("gpu_grid")
        self.compiled_calls = self.compiled_calls.set_column(
            at, self.compiled_calls.schema.field(at), stated.arrow()
        )

    def graphs(self, begin: Ints, end: Ints) -> list[CapturedGraph]:
        """Read the graph between each pair of calls."""
        frame = self.frame
        calls, code = self._dispatches()
        op = around(frame, frame.thread, self.ops, calls)
        bare = np.flatnonzero(op < 0)
        op[bare] = ops_of_calls(frame, self.ops, calls[bare])
        start, process = frame.start.values[calls], frame.process[calls]
        order = np.argsort(start, kind="stable")
        calls, code, op, start, process = (
            column[order] for column in (calls, code, op, start, process)
        )
        self._grids(calls, op)
        nesting = nest_rows(frame, self.ops)
        preorder, parent = self.ops[nesting.order], nesting.parent
        place = np.full(len(frame.event_id), -1, dtype=np.int64)
        place[preorder] = np.arange(len(preorder))
        found = []
        for first, last in zip(begin.tolist(), end.tolist(), strict=True):
            opened, closed = frame.end[first], frame.start.values[last]
            low, high = np.searchsorted(start, [opened, closed])
            own = low + np.flatnonzero(process[low:high] == frame.process[first])
            forest = preorder, parent, frame.start.values[preorder]
            found.append(self._graph(code[own], pick(place, op[own]), forest, (opened, closed)))
        return found

    def _graph(
        self, code: Ints, op: Ints, forest: tuple[Ints, Ints, Ints], span: tuple[int, int]
    ) -> CapturedGraph:
        """Make a graph of its dispatches.

        `op` (n,) are places in the forest: rows of ops in preorder, their parents and starts. Ops
        that start outside of `span` are around the capture, and none of the graph's.
        """
        preorder, parent, start = forest
        is_kept = np.zeros(len(preorder), dtype=np.bool_)
        at = op
        while len(at):
            at = np.unique(at[at >= 0])
            at = at[~is_kept[at] & (start[at] >= span[0]) & (start[at] < span[1])]
            is_kept[at] = True
            at = parent[at]
        kept = np.flatnonzero(is_kept)
        op, above = places(kept, op), places(kept, parent[kept])
        depth = np.zeros(len(kept), dtype=np.int64)
        for i, up in enumerate(above.tolist()):  # ops of a graph, a few hundred
            depth[i] = 0 if up < 0 else depth[up] + 1
        events = self.frame.event_id[preorder[kept]]
        ops = self.linked["ops"]
        row = places(read_integers(ops, "event_id").values, events)
        of_compiled = read_integers(self.compiled_calls, "event_id").values
        return CapturedGraph(
            kernel=code,
            op=op,
            parent=above,
            depth=depth,
            name=read_words(ops, "name").take(row),
            signature=read_integers(ops, "signature_id").take(row),
            compiled=places(of_compiled, events),
        )

    def grouped(
        self,
        begin: Ints,
        graphs: list[CapturedGraph],
        source: str,
        told: tuple[int, str] | None,
    ) -> tuple[Capture, ...]:
        """Put the graphs of one capture annotation together; those outside of any are another."""
        frame = self.frame
        notes = frame.rows(Category.USER_ANNOTATION)
        notes = notes[
            np.array([*(bool(_CAPTURE.fullmatch(n)) for n in frame.name.values), False])[
                frame.name.codes[notes]
            ]
        ]
        note = around(frame, frame.process, notes, begin)
        number, distinct = numbered(note)
        captures = []
        for group, row in enumerate(distinct.tolist()):
            own = tuple(graphs[i] for i in np.flatnonzero(number == group).tolist())
            own = tuple(graph for graph in own if len(graph.kernel))
            if not own:
                continue
            name = frame.name.values[frame.name.codes[row]] if row >= 0 else ""
            captures.append(self._capture(source, name, own))
        if told is not None and len(captures) == 1:
            captures = [replace(captures[0], size=told[0], mode=told[1])]
        return tuple(captures)

    def _capture(self, source: str, name: str, graphs: tuple[CapturedGraph, ...]) -> Capture:
        match = _CAPTURE.fullmatch(name)
        mode = FULL if len(graphs) == 1 else PIECEWISE
        if match is None:
            return Capture(source, self._usual_size(graphs), mode, False, graphs)
        if match[2] in (FULL, PIECEWISE):
            mode = match[2]
        return Capture(source, int(match[1]), mode, match[2].lower().startswith("decode"), graphs)

    def _usual_size(self, graphs: tuple[CapturedGraph, ...]) -> int | None:
        """Return the most frequent first dimension of the inputs of ops; None if two are."""
        table = self.linked["signatures"]
        dims = dict(
            zip(table["signature_id"].to_pylist(), table["input_dims"].to_pylist(), strict=True)
        )
        votes: dict[int, int] = {}
        for graph in graphs:
            known = graph.signature.values[graph.signature.known]
            for key, count in zip(*np.unique(known, return_counts=True), strict=True):
                for shape in dims.get(int(key)) or ():
                    if shape:
                        votes[shape[0]] = votes.get(shape[0], 0) + int(count)
        most = [size for size, count in votes.items() if count == max(votes.values())]
        return most[0] if len(most) == 1 else None


def _kind_of_call(name: str) -> int:
    """Return what a call dispatches: COPY, FILL or ANY kernel; 0 for nothing."""
    if GRAPH_LAUNCH.match(name):
        return 0
    if _COPIES.search(name):
        return COPY
    if _FILLS.search(name):
        return FILL
    return ANY if _LAUNCHES.search(name) else 0
