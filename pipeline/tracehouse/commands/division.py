"""Dividing the files of a run into parts.

The division depends on the files and on how much memory a part may need, never on who works on it,
so that the lake is the same whoever did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracehouse.commands.part_task import PartTask
from tracehouse.ingest.discover import SourceFile
from tracehouse.storage import layout

# Text of the files after which a part is full; a compressed file counts for EXPANSION times its
# size, and each for FILE_BYTES more: what a tiny file costs. So a part has at most 2,048 files, and
# ten thousand tiny ones keep every worker busy and are committed as they come.
PART_BYTES = 512 << 20
_EXPANSION = 16
FILE_BYTES = 256 << 10
_COMPRESSED = (".gz", ".zst", ".zip")
# A small archive makes smaller parts, so that several workers have something to do; below this
# much text in a part, starting another worker costs more than it saves.
_SHARES = 4
_LEAST_BYTES = 128 << 20


def divide(files: Sequence[SourceFile], pattern: PartTask, most_text: int) -> list[PartTask]:
    """Divide the files, in their order, into parts of about equal text, numbered from the next on.

    `pattern` is a task with all but the files. `most_text`: bytes of text that a part may have, if
    it is of several files.
    """
    weights = [_weight(file) for file in files]
    limit = min(PART_BYTES, most_text, max(sum(weights) // _SHARES + 1, _LEAST_BYTES))
    batches: list[list[SourceFile]] = []
    room = 0
    for file, weight in zip(files, weights, strict=True):
        if not batches or weight > room:
            batches.append([])
            room = limit
        batches[-1].append(file)
        room -= weight
    first = layout.next_part_number(pattern.out)
    return [part_of(pattern, number, batch) for number, batch in enumerate(batches, first)]


def part_of(pattern: PartTask, number: int, files: Iterable[SourceFile]) -> PartTask:
    """Return the task of some files, as part `number`."""
    own = tuple(files)
    text = sum(map(_weight, own))
    return replace(
        pattern,
        part_id=layout.part_id(number),
        files=own,
        text_bytes=text,
        captures={f.path: pattern.captures[f.path] for f in own if f.path in pattern.captures},
    )


def _weight(file: SourceFile) -> int:
    """What a file counts for: a guess at the length of its text, and what any file costs."""
    return FILE_BYTES + file.size * (_EXPANSION if file.path.endswith(_COMPRESSED) else 1)
