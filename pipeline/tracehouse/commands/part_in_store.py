"""A part that is worked on where the folder of the run is not: its files go to the bucket."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from tracehouse.commands.part import run_part
from tracehouse.commands.part_task import PartOutcome, PartTask


def run_part_in_store(task: PartTask) -> PartOutcome:
    """As `run_part`, but stage the files in the bucket of the task, by way of a folder of its own.

    Raises OSError if that folder or the bucket cannot be written.
    """
    from tracehouse.storage.bucket import Bucket
    from tracehouse.storage.working_copy import put_staged

    assert task.store is not None
    with tempfile.TemporaryDirectory(prefix="tracehouse-") as name:
        outcome = run_part(replace(task, out=Path(name)))
        staged = put_staged(Bucket(task.store), Path(name), outcome.staged)
    return replace(outcome, staged=staged)
