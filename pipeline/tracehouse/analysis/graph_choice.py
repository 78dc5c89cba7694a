"""Which captured graph each graph launch replays: by its step's batch, else by its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis.captured import FULL, PIECEWISE, Capture, CapturedGraph
from tracehouse.analysis.columns import Ints, places, read_integers, read_words
from tracehouse.analysis.graph_match import EXACT, Alignment, Replay, align
from tracehouse.vocab import Role

NO_SIZE = "no graph was captured for a batch of {}"
OTHER_COUNT = "the step launches {} graphs, its capture has {}"
NO_MATCH = "its kernels are not those of the captured graph"
NOWHERE = "its kernels are those of no captured graph"
_FEW = 20  # one in so many dispatches may be passed over where only the kernels tell the graph
SEVERAL = "its kernels are those of several captured graphs whose ops differ"


@dataclass(frozen=True, slots=True)
class Choice:
    """The graph that a launch replays and how its kernels align; or why there is none."""

    capture: Capture | None
    graph: CapturedGraph | None
    alignment: Alignment | None
    why: str | None


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Batches of the steps (s,) of a trace, -1 where unknown.

    step: ascending step ids. padded: what the annotation says that the graph is padded to.
    """

    step: Ints
    tokens: Ints
    requests: Ints
    padded: Ints


class Chooser:
    """Finds the graph of each launch; replays of one form are aligned with a graph once."""

    def __init__(self, captures: Sequence[Capture]) -> None:
        self._captures = captures
        self._aligned: dict[tuple[int, bytes], Alignment | None] = {}
        self._searched: dict[tuple[bytes, int], Choice] = {}

    def of_step(
        self, replays: Sequence[Replay], tokens: int, requests: int, padded: int
    ) -> list[Choice]:
        """Choose for the launches of one step, in order; a size is -1 where it is not known.

        The capture is the smallest that holds the batch; of captures for full and for piecewise
        graphs the full one, if the step launches one graph. One graph stands for all launches,
        several for as many launches, in order.
        """
        wanted = [self._wanted(c, tokens, requests, padded) for c in self._captures]
        if max(wanted, default=-1) < 0 or all(c.size is None for c in self._captures):
            return [self._search(replay, 0) for replay in replays]
        pool = [
            (c.size, c)
            for c, least in zip(self._captures, wanted, strict=True)
            if c.size is not None and c.size >= least
        ]
        if {capture.mode for capture in self._captures} == {FULL, PIECEWISE}:
            mode = FULL if len(replays) == 1 else PIECEWISE
            pool = [(size, capture) for size, capture in pool if capture.mode == mode]
        if not pool:
            why = NO_SIZE.format(f"{max(wanted):,} or more")
            return [Choice(None, None, None, why)] * len(replays)
        smallest = min(size for size, _ in pool)
        sets = [capture for size, capture in pool if size == smallest]
        return [
            self._of_sets(sets, place, len(replays), replay, smallest)
            for place, replay in enumerate(replays)
        ]

    def _wanted(self, capture: Capture, tokens: int, requests: int, padded: int) -> int:
        """Return the least size that a capture must have, -1 if that is not known."""
        if padded >= 0:
            return padded
        first, second = (requests, tokens) if capture.counts_requests else (tokens, requests)
        return first if first >= 0 else second

    def _of_sets(
        self, sets: list[Capture], place: int, launches: int, replay: Replay, least: int
    ) -> Choice:
        """Choose among captures of one size; where none fits, another may by all its names."""
        usable = [c for c in sets if len(c.graphs) in (1, launches)]
        found = self._agreed(
            [(c, c.graphs[place if len(c.graphs) > 1 else 0]) for c in usable], replay
        )
        if found.graph is not None:
            return found
        other = self._search(replay, least)
        if other.alignment is not None and other.alignment.worst == EXACT:
            return other
        if not usable:
            counts = f"{len(sets[0].graphs):,}"
            return Choice(None, None, None, OTHER_COUNT.format(f"{launches:,}", counts))
        return Choice(None, None, None, SEVERAL if found.why == SEVERAL else NO_MATCH)

    def _search(self, replay: Replay, least: int) -> Choice:
        """Look for the one graph, of captures of `least` and more, that a replay's kernels tell."""
        key = replay.key, least
        if key not in self._searched:
            pool = [
                (capture, graph)
                for capture in self._captures
                if capture.size is None or capture.size >= least
                for graph in capture.graphs
                if 0 <= _FEW * (len(graph.kernel) - len(replay.kernel)) <= len(graph.kernel)
            ]
            self._searched[key] = self._agreed(pool, replay)
        return self._searched[key]

    def _agreed(self, pool: list[tuple[Capture, CapturedGraph]], replay: Replay) -> Choice:
        """Return the graph that fits best; none if several do and their ops differ."""
        fitting = []
        for capture, graph in pool:
            alignment = self._align(graph, replay)
            if alignment is not None:
                fitting.append((alignment.worst, capture, graph, alignment))
        if not fitting:
            return Choice(None, None, None, NOWHERE)
        best = min(worst for worst, *_ in fitting)
        first, *others = [fit[1:] for fit in fitting if fit[0] == best]
        if any(graph.likeness != first[1].likeness for _, graph, _ in others):
            return Choice(None, None, None, SEVERAL)
        return Choice(*first, None)

    def _align(self, graph: CapturedGraph, replay: Replay) -> Alignment | None:
        key = id(graph), replay.key
        if key not in self._aligned:
            self._aligned[key] = align(graph, replay)
        return self._aligned[key]


def step_sizes(annotations: pa.Table) -> StepSizes:
    """Return the batch of each step, by its own annotation and those nested in it.

    `annotations` is the table of one trace. Tokens are those of context and generation together;
    where a mode states its requests only, each has a token.
    """
    role, why = read_words(annotations, "role"), read_words(annotations, "why")
    step = read_integers(annotations, "step_id")
    is_step = np.array([*(w == Role.STEP for w in role.values), False])[role.codes]
    is_inner = np.array([*(w == "nested" for w in why.values), False])[why.codes]
    rows = np.flatnonzero(step.known & (is_step | is_inner))
    fields = read_words(annotations, "fields").take(rows)
    steps = np.unique(step.values[rows])
    place = places(steps, step.values[rows])
    found = np.full((3, len(steps)), -1, dtype=np.int64)
    numbers = annotations["numbers"].combine_chunks().take(pa.array(rows))
    offsets = numbers.offsets.to_numpy().astype(np.int64)
    flat = numbers.values.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    for is_own in (True, False):  # what the step's annotation leaves out, those in it may say
        of_kind = (is_step[rows] == is_own) & (fields.codes >= 0)
        for code in np.unique(fields.codes[of_kind]).tolist():
            at = np.flatnonzero(of_kind & (fields.codes == code))
            words = fields.values[code].split(" ")
            value = {
                word: flat[offsets[at] + words.index(word)]
                if word in words
                else np.full(len(at), -1, dtype=np.int64)
                for word in _SIZE_WORDS
            }
            for row, sizes in zip(found, _sizes(value), strict=True):
                is_open = row[place[at]] < 0
                row[place[at[is_open]]] = sizes[is_open]
    return StepSizes(steps, *found)


_SIZE_WORDS = ("c_sq", "g_sq", "t", "r", "r_c", "r_g", "graph_size")


def _sizes(value: dict[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """Return tokens, requests and the padded batch of annotations of one form, -1 if unknown."""
    requests = np.where(value["r"] >= 0, value["r"], _sum(value["r_c"], value["r_g"]))
    # A request in generation that states no tokens has one.
    generation = np.where(value["g_sq"] >= 0, value["g_sq"], value["r_g"])
    says_tokens = (value["c_sq"] >= 0) | (value["g_sq"] >= 0)
    both = np.where(says_tokens, _sum(value["c_sq"], generation), -1)
    return np.where(both >= 0, both, value["t"]), requests, value["graph_size"]


def _sum(first: Ints, second: Ints) -> Ints:
    """Add what is known of two numbers, -1 where none is."""
    total = np.maximum(first, 0) + np.maximum(second, 0)
    return np.where((first >= 0) | (second >= 0), total, -1)
