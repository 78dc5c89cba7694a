"""Write a trace back from the lake: the events and values that were read, as Chrome trace JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracehouse.commands.output_file import opened
from tracehouse.commands.show import trace_rows
from tracehouse.errors import UsageError
from tracehouse.ingest.envelope import EVENT_LIST
from tracehouse.ingest.fields import json_text, parsed_json
from tracehouse.ingest.scrub import Scrubber
from tracehouse.ingest.writeback import EVENT_COLUMNS, EventWriter
from tracehouse.schema.tables import EVENTS
from tracehouse.storage.manifest import TableFile, load_state
from tracehouse.storage.place import reading
from tracehouse.storage.verify import check_files
from tracehouse.vocab import Status
from tracehouse.warehouse.query import Warehouse

_BATCH_ROWS = 1 << 16
_MANY = 5  # traces that a message names


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the trace, its path as analysed, and how many events."""

    trace_id: str
    path: str
    events: int


def export(out: Path, trace: str, target: Path | BinaryIO, *, scrub: bool = False) -> Exported:
    """Write one trace of the warehouse in `out` as JSON, equal to what was read.

    Events stand in their order with their values; numbers are equal by value, keys may stand in
    another order. What was repaired on reading is repaired in it. `trace`: an id, path or file
    name, or the start of one. `target`: a path, compressed if it ends in .gz or .zst, written
    beside it and renamed; or a binary stream. `scrub`: as `ingest.scrub` says. Memory: a batch of
    events.

    Raises UsageError if `trace` fits no trace, several, or one that was rejected; OSError if
    `target` cannot be written; TracehouseError LAKE_DAMAGED if its events are gone or have changed.
    """
    trace_id, path = _the_trace(out, trace)
    envelope = _envelope(out, trace_id)
    scrubber = Scrubber(envelope or {}) if scrub else None
    if scrubber is not None and envelope is not None:
        envelope = scrubber.envelope(envelope)
    with reading(out) as (folder, need):
        source = _events_file(folder, need, trace_id)
        with opened(target) as file:
            count = _write(file, envelope, _batches(source, trace_id), scrubber)
    return Exported(trace_id, path, count)


def _the_trace(out: Path, trace: str) -> tuple[str, str]:
    """The id and path of the one trace that is meant; a full id, path or name comes first."""
    rows = trace_rows(out, trace=trace).table.select(["trace_id", "path", "status", "reason"])
    found = rows.to_pylist()
    absolute = os.path.abspath(trace)  # noqa: PTH100 - resolve() would follow links
    for row in found:
        path = row["path"] or ""
        row["is_whole"] = trace in (row["trace_id"], path, Path(path).name) or path == absolute
    found = [row for row in found if row["is_whole"]] or found
    if len(found) > 1:
        some = ", ".join(f"{row['trace_id']} ({row['path']})" for row in found[:_MANY])
        raise UsageError(
            f"{len(found)} traces start with {trace!r}: {some}.", hint="Name one of them."
        )
    (row,) = found
    if row["status"] == Status.REJECTED:
        raise UsageError(
            f"{row['path']} was rejected, so that nothing of it is there to export:"
            f" {row['reason']}.",
            hint="tracehouse show OUT says which traces were read.",
        )
    return row["trace_id"], row["path"]


def _envelope(out: Path, trace_id: str) -> dict[str, Any] | None:
    """The keys beside the event list, with exact numbers; None if the file was a bare list."""
    with Warehouse(out) as warehouse:
        rows = warehouse.arrow("SELECT envelope FROM traces WHERE trace_id = ?", [trace_id])
    text = rows["envelope"][0].as_py()
    return None if text is None else dict(parsed_json(text))


def _events_file(
    out: Path, need: Callable[[Iterable[TableFile]], None], trace_id: str
) -> Path | None:
    """The Parquet file that holds the events of a trace, as written; None if it has none."""
    state = load_state(out)
    owner = state.owners.get(trace_id)
    for part in state.parts:
        if part.id == owner and EVENTS.name in part.tables:
            need([part.tables[EVENTS.name]])
            check_files(out, [part.tables[EVENTS.name]])
            return out / part.tables[EVENTS.name].path
    return None


def _batches(path: Path | None, trace_id: str) -> Iterator[pa.RecordBatch]:
    """Yield the events of a trace in their order; only the row groups that hold it are read."""
    if path is None:
        return
    with pq.ParquetFile(path) as parquet:
        for group in range(parquet.num_row_groups):
            if not _may_hold(parquet.metadata.row_group(group), trace_id):
                continue
            columns = ["trace_id", *EVENT_COLUMNS]
            for rows in parquet.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
                yield _of_trace(rows, trace_id)


def _may_hold(group: pq.RowGroupMetaData, trace_id: str) -> bool:
    statistics = next(
        group.column(i).statistics
        for i in range(group.num_columns)
        if group.column(i).path_in_schema == "trace_id"
    )
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= trace_id <= statistics.max)


def _of_trace(rows: pa.RecordBatch, trace_id: str) -> pa.RecordBatch:
    ids = rows["trace_id"]
    position = ids.dictionary.index(trace_id).as_py()
    if position >= 0 and len(ids.dictionary) == 1:
        return rows
    return rows.filter(pc.equal(ids.indices, position))


def _write(
    file: BinaryIO,
    envelope: dict[str, Any] | None,
    batches: Iterator[pa.RecordBatch],
    scrubber: Scrubber | None,
) -> int:
    """Write the document and return the number of its events."""
    head, tail = "[", "\n]\n"
    if envelope is not None:
        keys = json_text(envelope)[1:-1]
        head = f'{{{keys}{"," if keys else ""}\n"{EVENT_LIST.decode()}":['
        tail = "\n]}\n"
    file.write(head.encode())
    writer = EventWriter(None if scrubber is None else scrubber.text)
    count = 0
    for rows in batches:
        if len(rows) == 0:
            continue
        if scrubber is not None:
            for name in ("args", "extra"):
                at = rows.schema.get_field_index(name)
                rows = rows.set_column(at, rows.schema.field(at), scrubber.json_texts(rows[name]))
        text = _contiguous(writer.texts(rows))
        file.write(text if count else text[1:])  # the first event has no comma before it
        count += len(rows)
    file.write(tail.encode())
    return count


def _contiguous(texts: pa.LargeBinaryArray) -> memoryview:
    """The texts of an array, one behind the other, as they lie in memory."""
    first, last = (
        memoryview(texts.buffers()[1]).cast("q")[texts.offset + i] for i in (0, len(texts))
    )
    return memoryview(texts.buffers()[2])[first:last]
