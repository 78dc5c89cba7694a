"""The graph launches of a trace, each with its kernels in order, and the graph that it replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tracehouse.analysis.captured import Capture, Vocabulary
from tracehouse.analysis.columns import Ints, numbered, places, read_integers, read_words
from tracehouse.analysis.graph_choice import Choice, Chooser, step_sizes
from tracehouse.analysis.graph_match import Replay
from tracehouse.compute.aligning import COPY, FILL, FOREIGN
from tracehouse.vocab import Kind


class Replays:
    """The graph launches of a trace (l,) with their kernels (k,), by launch and time."""

    def __init__(self, linked: Mapping[str, pa.Table], vocabulary: Vocabulary) -> None:
        self.linked = linked
        launches, kernels = linked["launches"], linked["kernels"]
        is_graph = np.asarray(launches["is_graph"].to_numpy())
        self.rows = np.flatnonzero(is_graph & (read_integers(launches, "kernel_count").values > 0))
        events = read_integers(launches, "event_id").values[self.rows]
        launch_id = read_integers(kernels, "launch_id")
        of_kernel = np.where(launch_id.known, places(events, launch_id.values), -1)
        own = np.flatnonzero(of_kernel >= 0)
        start = read_integers(kernels, "ts_ns")
        order = np.lexsort((start.values[own], ~start.known[own], of_kernel[own]))
        self.kernels = own[order]
        self.launch = of_kernel[self.kernels]
        self.bounds = np.searchsorted(self.launch, np.arange(len(self.rows) + 1))
        self.code = _codes(kernels, self.kernels, vocabulary)

    def replay(self, at: int) -> Replay:
        """Return the kernels of one launch."""
        own = slice(self.bounds[at], self.bounds[at + 1])
        node = self._node.values[own]
        is_known = bool(self._node.known[own].all()) and len(np.unique(node)) == len(node)
        by_node = np.argsort(node, kind="stable") if is_known else None
        if by_node is not None and (by_node[1:] > by_node[:-1]).all():
            by_node = None
        stream = self._stream[own]
        return Replay(self.code[own], numbered(stream)[0], by_node)

    def chosen(self, captures: Sequence[Capture]) -> list[Choice]:
        """Choose the graph of each launch."""
        kernels, launches = self.linked["kernels"], self.linked["launches"]
        self._node = read_integers(kernels, "graph_node_id").take(self.kernels)
        device = read_integers(kernels, "device").take(self.kernels).values
        stream = read_integers(kernels, "stream").take(self.kernels)
        self._stream, _ = numbered((device << 32) + np.where(stream.known, stream.values + 1, 0))
        chooser = Chooser(captures)
        sizes = step_sizes(self.linked["annotations"])
        step = read_integers(launches, "step_id").take(self.rows)
        place = np.where(step.known, places(sizes.step, step.values), -1)
        start = read_integers(launches, "ts_ns").values[self.rows]
        order = np.lexsort((start, place))
        choices: list[Choice | None] = [None] * len(self.rows)
        borders = np.flatnonzero(np.diff(place[order], prepend=-2, append=-2))
        for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            own = order[first:last].tolist()
            at = int(place[own[0]])
            size = (
                (-1, -1, -1)
                if at < 0
                else (int(sizes.tokens[at]), int(sizes.requests[at]), int(sizes.padded[at]))
            )
            found = chooser.of_step([self.replay(i) for i in own], *size)
            for i, choice in zip(own, found, strict=True):
                choices[i] = choice
        return [choice for choice in choices if choice is not None]


def _codes(kernels: pa.Table, rows: Ints, vocabulary: Vocabulary) -> Ints:
    """Return the code of each kernel: its name's, or its kind's if it is a copy or fill."""
    name, kind = read_words(kernels, "name"), read_words(kernels, "kind")
    of_name = np.array(
        [*(vocabulary.code.get(word, FOREIGN) for word in name.values), FOREIGN], dtype=np.int64
    )
    of_kind = {Kind.MEMCPY.value: COPY, Kind.MEMSET.value: FILL}
    by_kind = np.array([*(of_kind.get(word, 0) for word in kind.values), 0], dtype=np.int64)
    moved = by_kind[kind.codes[rows]]
    return np.where(moved < 0, moved, of_name[name.codes[rows]])
