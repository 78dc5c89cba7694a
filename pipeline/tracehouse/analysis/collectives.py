"""Which collective a communication kernel carries out."""

from __future__ import annotations

import functools
import json
import re

import numpy as np

from tracehouse.analysis.columns import Ints, Words, pick, read_words, spread
from tracehouse.analysis.frame import Frame
from tracehouse.analysis.host import around
from tracehouse.analysis.launches import Launches, ops_by_external_id, ops_of_calls

# Words of collectives as they stand in `Collective name`, without `_` and in lower case. A name
# such as `_allgather_base` or `allreduce_coalesced` holds the word.
_WORDS = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "allreduce"),
    ("allgather", "allgather"),
    ("alltoall", "alltoall"),
    ("sendrecv", "sendrecv"),
    ("broadcast", "broadcast"),
)
_ALONE = frozenset({"reduce", "gather", "scatter", "send", "recv", "barrier"})
# Kernels that say which collective they are in other words.
_KERNELS = (
    (re.compile(r"nccl\w*Kernel_Reduce_", re.IGNORECASE), "reduce"),
    (re.compile(r"cross_device_reduce|quick_?reduce", re.IGNORECASE), "allreduce"),
)


@functools.lru_cache(8_192)
def collective_of_text(text: str) -> str | None:
    """Return the collective that the JSON text of `Collective name` states, NULL for none.

    An unknown one is returned in lower case, as it stands.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, str) or not value.strip():
        return None
    word = value.strip().lower()
    return _known(word) or word


@functools.lru_cache(8_192)
def collective_of_kernel(name: str) -> str | None:
    """Return the collective that a communication kernel's name states, NULL if none.

    Generic kernels such as `ncclDevKernel_Generic` state none (field_cases F31).
    """
    for pattern, word in _KERNELS:
        if pattern.search(name):
            return word
    return _known(name.lower())


def collectives(frame: Frame, ops: Ints, launches: Launches, activities: Ints) -> Words:
    """Return the collective of each activity (m,), were it a communication kernel.

    Its own metadata says so; else that of the innermost op with such metadata (record_param_comms)
    around its launch, or with the External id of the launch or the activity; else its name.
    """
    frame.spill.settle()
    stated = read_words(frame.table, "collective_name").each(collective_of_text)
    found = stated.codes[activities].astype(np.int64)
    named = ops[stated.codes[ops] >= 0]
    if len(named):
        by_call = around(frame, frame.thread, named, launches.rows)
        by_id = ops_of_calls(frame, named, launches.rows)
        rows = pick(np.where(by_call >= 0, by_call, by_id), launches.launch)
        own = ops_by_external_id(frame, named, activities)
        own[launches.ambiguous] = -1
        rows = np.where(rows >= 0, rows, own)
        found = np.where(found >= 0, found, pick(stated.codes.astype(np.int64), rows))
    by_name = frame.name.take(activities).each(collective_of_kernel)
    codes = np.where(found >= 0, found, by_name.codes + len(stated.values))
    codes = np.where((found < 0) & (by_name.codes < 0), -1, codes).astype(np.int32)
    return spread(codes, [*stated.values, *by_name.values])


def _known(word: str) -> str | None:
    plain = word.replace("_", "")
    if plain in _ALONE:
        return plain
    return next((name for part, name in _WORDS if part in plain), None)
