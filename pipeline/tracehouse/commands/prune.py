"""`tracehouse prune`: dropping traces for their age."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from tracehouse.errors import UsageError
from tracehouse.storage import compaction, upkeep
from tracehouse.storage.manifest import load_state, shown_path
from tracehouse.storage.place import check_lake, writing
from tracehouse.warehouse.build import copied_tables
from tracehouse.warehouse.publish import publish
from tracehouse.warehouse.query import Warehouse

_AGE = re.compile(r"(\d{1,6})([hdw])", re.ASCII)
_UNIT = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}

RECORDED, ANALYSED = "recorded", "analysed"

# A clock that counts from 1970 shows a time of this century; one that counts from the start of the
# machine does not. The time of a file is no time where it is a store's ETag.
_FILES = """
WITH
    timed AS (
        SELECT
            trace_id,
            CAST(coalesce(base_time_ns, 0) AS HUGEINT) + start_ns AS recorded_ns,
            CAST(epoch_ns(analysed_at) AS BIGINT) AS analysed_ns
        FROM traces
    ),
    held AS (
        SELECT path, label, mtime, unnest(traces) AS trace_id FROM files
    )
SELECT
    held.path,
    any_value(held.label) AS label,
    count(*) AS traces,
    max(
        CASE WHEN recorded_ns BETWEEN $low AND $high THEN CAST(recorded_ns AS BIGINT) END
    ) AS recorded_ns,
    any_value(
        CASE
            WHEN NOT contains(held.path, '://') AND epoch_ns(held.mtime) BETWEEN $low AND $high
            THEN CAST(epoch_ns(held.mtime) AS BIGINT)
        END
    ) AS file_ns,
    max(analysed_ns) AS analysed_ns
FROM held JOIN timed USING (trace_id)
WHERE $label IS NULL OR held.label = $label
GROUP BY held.path
ORDER BY held.path
"""
_LOW_NS = 1_000_000_000 * 10**9  # 2001-09-09


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a prune dropped, or would drop.

    files: a row each: path, label, traces, time (UTC) and time_of, what that time is of: recorded
    (first event), file (last change) or analysed. kept: files that are young enough.
    """

    files: pa.Table
    kept: int


def parse_age(text: str) -> timedelta:
    """Return the age that a text such as 90d, 12w or 36h means. UsageError if it means none."""
    match = _AGE.fullmatch(text)
    if match is None or not int(match[1]):
        raise UsageError(f"no age: {text!r}", hint="give hours, days or weeks: 36h, 90d, 12w")
    return int(match[1]) * _UNIT[match[2]]


def prune(
    out: Path,
    older_than: timedelta,
    *,
    label: str | None = None,
    by: str = RECORDED,
    dry_run: bool = False,
    wait: float = 0.0,
    now: datetime | None = None,
) -> PruneReport:
    """Drop the traces of files that are older than an age; only those of `label`, if it is given.

    `by`: `recorded`, the time of a trace's first event; where its clock does not tell that, the
    file's last change, and for a URL the analysis. Or `analysed`. A file with several traces is as
    old as the youngest. The file is then passed over by `analyze` as long as it does not change.
    `dry_run`: only say what would be dropped.

    Raises UsageError where `out` holds no lake or another run writes to it; TracehouseError
    LAKE_DAMAGED; OSError.
    """
    moment = now or datetime.now(UTC)
    if dry_run:
        check_lake(out)
        return _old_files(out, moment, older_than, label, by)
    with writing(out, wait=wait, kept=copied_tables()) as place:
        upkeep.clean(place.folder)
        publish(place, load_state(place.folder))
        report = _old_files(place.folder, moment, older_than, label, by)
        reason = f"dropped for its age by prune at {moment.isoformat(timespec='seconds')}"
        shown = set(report.files["path"].to_pylist())
        files = load_state(place.folder).files
        paths = [entry.path for entry in files if shown_path(entry.path) in shown]
        if upkeep.retire(place.folder, paths, reason):
            place.need(compaction.files_read(load_state(place.folder), 0))
            compaction.compact(place.folder)
            publish(place, load_state(place.folder))
    return report


def _old_files(
    out: Path, now: datetime, older_than: timedelta, label: str | None, by: str
) -> PruneReport:
    limit = _ns(now - older_than)
    with Warehouse(out) as warehouse:
        values = {"low": _LOW_NS, "high": _ns(now + timedelta(days=1)), "label": label}
        rows = warehouse.arrow(_FILES, values).to_pylist()
    sources = {RECORDED: ("recorded", "file", "analysed"), ANALYSED: ("analysed",)}[by]
    found = []
    for row in rows:
        time_of = next((s for s in sources if row[f"{s}_ns"] is not None), None)
        if time_of is not None and row[f"{time_of}_ns"] < limit:
            found.append((row["path"], row["label"], row["traces"], row[f"{time_of}_ns"], time_of))
    names = ("path", "label", "traces", "time", "time_of")
    types = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string())
    columns = list(zip(*found, strict=True)) or [()] * len(names)
    table = pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})
    times = pa.array([ns // 1_000 for ns in table["time"].to_pylist()], pa.timestamp("us", "UTC"))
    return PruneReport(table.set_column(3, "time", times), len(rows) - len(found))


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000
