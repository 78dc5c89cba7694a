"""The frame as numpy columns: categories, threads, spans and join keys of every row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Mask,
    Words,
    integers_of,
    numbered,
    pick,
    read_integers,
    read_words,
)
from tracehouse.analysis.gpu_names import actual_category
from tracehouse.spill import Spill
from tracehouse.vocab import GPU_CATEGORIES, Category, canonical_category

CATEGORIES = tuple(Category)
_CODE = {category: code for code, category in enumerate(CATEGORIES)}
_LATEST = np.iinfo(np.int64).max - 2**32  # leaves room for tolerances
# Merged ranks: "[TP00-DP01] 83" (field_cases F64), "rank1 83", "83 (rank 1)".
_RANK = re.compile(r"^\[([^\]]+)\]|(?<![a-z])(rank[ _:#-]?\d+)", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(?:.*(?:\s|\w[:#/_]))?(\d{1,18})", re.DOTALL)  # "stream 7", "GPU:0"


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of the frame's rows, all of one length (n,), in event order.

    A row without a start has start 0 and a thread and process of its own, so that nothing is
    around it; a row without a duration has end = start. `is_timed` is false for both. Ends that
    pass the range of int64 are cut.
    """

    table: pa.Table
    spill: Spill  # where its columns are, and what is made of them should go
    event_id: Ints
    category: NDArray[np.int8]  # place in CATEGORIES, -1 for none; a copy filed as kernel is a copy
    name: Words
    pid: Words
    tid: Words
    thread: Ints  # number of (pid, tid)
    process: Ints  # number of pid
    rank: Ints  # number of the rank that pid names, 0 for none
    ranks: list[str]  # what pids call ranks from number 1 on, without brackets
    start: Integers
    dur: Integers
    end: Ints
    is_timed: Mask
    correlation: Ints  # join key of args.correlation within the rank or process, 0 for none
    external_id: Ints  # join key of args.External id within the rank or process, 0 for none
    device: Integers  # args.device, else the number in pid (F64); means something on the GPU only
    stream: Integers  # args.stream, else the number in tid (F29); likewise

    def rows(self, *categories: Category) -> Ints:
        """Return the rows of some categories."""
        return _rows(self.category, *categories)

    def integers(self, name: str, rows: Ints) -> Integers:
        """Return an integer column of some rows."""
        return integers_of(self.table.column(name).take(pa.array(rows)))

    def rank_labels(self, rows: Ints) -> Words:
        """Return the prefixes of the process ids of some rows, NULL for none."""
        return Words((self.rank[rows] - 1).astype(np.int32), self.ranks)

    def events(self, rows: Ints) -> Integers:
        """Return the event ids of some rows, NULL where a row is -1."""
        return Integers(pick(self.event_id, rows), rows >= 0)


def read_frame(table: pa.Table, spill: Spill | None = None) -> Frame:
    """Read a table of FRAME_SCHEMA whose rows are all complete events (see `spans`)."""
    spill = Spill() if spill is None else spill
    name, pid, tid = (read_words(table, column).kept(spill) for column in ("name", "pid", "tid"))
    start, dur = (read_integers(table, column).kept(spill) for column in ("ts_ns", "dur_ns"))
    rank, ranks = _ranks(pid)
    rank = spill.array(rank)
    process = np.where(start.known, pid.codes, len(pid.values)).astype(np.int64)
    process = spill.array(process)
    category = spill.array(_categories(read_words(table, "cat"), name))
    scope = _join_scope(category, pid, rank)
    devices = Words(pid.codes, [_RANK.sub("", word) for word in pid.values])
    return Frame(
        table=table,
        spill=spill,
        event_id=spill.array(read_integers(table, "event_id").values),
        category=category,
        name=name,
        pid=pid,
        tid=tid,
        thread=spill.array(process * (len(tid.values) + 1) + tid.codes),
        process=process,
        rank=rank,
        ranks=ranks,
        start=start,
        dur=dur,
        end=spill.array(_ends(start, dur)),
        is_timed=spill.array(start.known & dur.known),
        correlation=spill.array(_join_key(read_integers(table, "correlation"), scope)),
        external_id=spill.array(_join_key(read_integers(table, "external_id"), scope)),
        device=_else_number(read_integers(table, "device"), devices).kept(spill),
        stream=_else_number(read_integers(table, "stream"), tid).kept(spill),
    )


def _ends(start: Integers, dur: Integers) -> Ints:
    length = np.where(start.known & dur.known, dur.values, 0)
    return start.values + np.clip(_LATEST - np.maximum(start.values, 0), 0, length)


def _per_word(words: Words, results: Sequence[int], absent: int) -> Ints:
    """Spread one result per distinct word over the rows."""
    return np.array([*results, absent], dtype=np.int64)[words.codes]


def _ranks(pid: Words) -> tuple[Ints, list[str]]:
    """Number the ranks that the process ids of a merged file name; 0 is none."""
    matches = [_RANK.search(word) for word in pid.values]
    prefixes = [match[1] or match[2] if match else "" for match in matches]
    number = {prefix: i for i, prefix in enumerate(dict.fromkeys(["", *prefixes]))}
    return _per_word(pid, [number[prefix] for prefix in prefixes], 0), list(number)[1:]


def _categories(cat: Words, name: Words) -> NDArray[np.int8]:
    found = [canonical_category(word) for word in cat.values]
    category = _per_word(cat, [-1 if c is None else _CODE[c] for c in found], -1)
    kernels = np.flatnonzero(category == _CODE[Category.KERNEL])
    used, position = name.take(kernels).used()
    actual = [_CODE[actual_category(Category.KERNEL, name.values[code])] for code in used]
    actual.append(_CODE[Category.KERNEL])  # for a kernel without name
    category[kernels] = np.array(actual, dtype=np.int64)[position]
    return category.astype(np.int8)


def _rows(category: NDArray[np.int8], *categories: Category) -> Ints:
    wanted = np.zeros(len(CATEGORIES) + 1, dtype=np.bool_)  # the last stands for none
    wanted[[_CODE[c] for c in categories]] = True
    return np.flatnonzero(wanted[category])


def _join_scope(category: NDArray[np.int8], pid: Words, rank: Ints) -> Ints:
    """Number what the ids of each row are unique in: the rank, and the process where it is known.

    The pid of GPU activities is a device as a rule, which says nothing of the process. It is the
    process if every one of them has that of a recorded call.
    """
    on_gpu, _ = pid.take(_rows(category, *GPU_CATEGORIES)).used()
    callers, _ = pid.take(_rows(category, Category.RUNTIME, Category.DRIVER)).used()
    if len(on_gpu) < 2 or not np.isin(on_gpu, callers).all():
        return rank
    return pid.codes.astype(np.int64) + 1  # it holds the rank too


def _join_key(column: Integers, scope: Ints) -> Ints:
    """Return a key that is equal for equal ids of one scope; 0 where the id is none (F51)."""
    ids = np.where(column.known & (column.values > 0), column.values, 0)
    if not scope.any():
        return ids
    number, distinct = numbered(ids)
    return np.where(ids > 0, scope * len(distinct) + number + 1, 0)


def _else_number(given: Integers, words: Words) -> Integers:
    """Return the given numbers if not negative, else those at the end of the words."""
    matches = [_LAST_NUMBER.fullmatch(word) for word in words.values]
    number = _per_word(words, [int(match[1]) if match else -1 for match in matches], -1)
    value = np.where(given.known & (given.values >= 0), given.values, number)
    return Integers(np.maximum(value, 0), value >= 0)
