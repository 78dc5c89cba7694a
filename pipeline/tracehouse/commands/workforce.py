"""Choosing what runs the parts of a run."""

from __future__ import annotations

from collections.abc import Sequence

from tracehouse.commands import division, memory
from tracehouse.commands.executors import DaskCluster, ThisProcess, Workers
from tracehouse.commands.part_task import PartTask
from tracehouse.commands.pool import Pool


def choose_workers(
    tasks: Sequence[PartTask], asked: int | None, dask: str | None, limit: int, *, apart: bool
) -> Workers:
    """Choose what runs the tasks: as many processes as there are cores, tasks and memory for.

    `apart`: not this process, in which one that kills its process would end the run; nor, unless
    one was asked for, where the text of a part may need more than half of the memory.
    """
    if dask is not None:
        return DaskCluster(dask, tasks[0]) if tasks else ThisProcess()
    is_large = any(memory.need(t.text_bytes) - memory.need(0) > limit // 2 for t in tasks)
    apart = apart or (asked is None and is_large)
    # A larger part is of one file: it runs by itself if it must.
    largest = min(max((task.text_bytes for task in tasks), default=0), division.PART_BYTES)
    by_memory = max(limit // memory.need(largest), 1)
    count = min(asked or min(memory.cores(), by_memory), len(tasks))
    if count > 1 or (apart and tasks):
        return Pool(max(count, 1))
    return ThisProcess()
