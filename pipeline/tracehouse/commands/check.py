"""`tracehouse check`: whether a warehouse is as it was written, and what to do if not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from tracehouse.errors import TracehouseError
from tracehouse.ingest.recognise import is_url
from tracehouse.storage import layout
from tracehouse.storage.address import url_of
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.manifest import all_files, load_state, shown_path, unusable_manifests
from tracehouse.storage.place import Place, check_lake, looking, writing
from tracehouse.storage.repair import Repair, take_out, take_out_records
from tracehouse.storage.runs import record_faults
from tracehouse.storage.unreadable import UNREAD, UNREADABLE
from tracehouse.storage.verify import Fault, lake_faults, unheld_files
from tracehouse.warehouse.build import copied_tables
from tracehouse.warehouse.connection import open_file
from tracehouse.warehouse.faults import lake_columns, warehouse_faults
from tracehouse.warehouse.publish import publish


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found.

    faults: all that is wrong. parts, files, bytes: Parquet files that were read. forgotten:
    traces' files that a repair made the lake forget, `lost` those of them that are no longer there
    to be read again; returned: files that count again as an earlier run had read them, because the
    manifest that replaced or dropped them is damaged. set_aside: files moved to lake/damaged.
    left: faults that are there still, all of them if nothing was repaired. is_repaired: a repair
    was asked for and there was something to do.
    """

    faults: tuple[Fault, ...]
    parts: int
    files: int
    bytes: int
    forgotten: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    left: tuple[Fault, ...] = ()
    is_repaired: bool = False


def check(out: Path, *, repair: bool = False) -> CheckReport:
    """Read every file of the lake in `out` and compare it with its manifest; then the warehouse.

    `repair`: take out what is damaged, so that the next `analyze` reads those traces again, and
    build the warehouse anew, and look again. What this process cannot read now may be intact: it is
    left as it is. Without `repair` nothing is written.

    Raises UsageError where `out` holds no lake, or a run is writing to it (`repair`);
    TracehouseError LAKE_UNREADABLE if the folder of the manifests cannot be read; OSError.
    """
    if url_of(out) is not None:
        return _checked_bucket(out, repair=repair)
    check_lake(out)
    if not repair:
        return _found(out)
    with writing(out) as place:
        report = _found(place.folder)
        return _repaired(place, report) if report.faults else report


def _checked_bucket(out: Path, *, repair: bool) -> CheckReport:
    """The same of a bucket, all of whose objects are fetched anew."""
    from tracehouse.storage.bucket import StoreError

    if not repair:
        try:
            report = _look_anew(out)
        except StoreError:  # a run has removed an object between the listing and the fetching
            report = _look_anew(out)
        return _look_anew(out) if report.faults else report
    with writing(out, kept=copied_tables(), is_fresh=True) as place:
        state = load_state(place.folder, passing_over=unusable_manifests(place.folder))
        place.need(all_files(state), is_checked=False)
        place.fetch_runs()
        report = _look(place.folder)
        return _repaired(place, report) if report.faults else report


def _look_anew(out: Path) -> CheckReport:
    with looking(out) as folder:
        return _look(folder)


def _found(out: Path) -> CheckReport:
    for _ in range(2):
        names = layout.manifest_paths(out)
        report = _look(out)
        if not report.faults or names == layout.manifest_paths(out):
            return report
    return report  # a run goes on writing: what is wrong may be what it replaced meanwhile


def _look(out: Path, *, whole: Collection[str] = ()) -> CheckReport:
    """Look at everything; of the parts in `whole`, not at their files again."""
    unusable = unusable_manifests(out)
    state = load_state(out, passing_over=unusable)
    faults = [
        Fault(_relative(path, out), _word(error), str(error), path.stem)
        for path, error in unusable.items()
    ]
    hides_traces = any(fault.fault == UNREAD for fault in faults)
    faults += lake_faults(out, [p for p in state.parts if p.id not in whole], lake_columns())
    if not hides_traces:
        faults += unheld_files(state)
    faults += (Fault(_relative(path, out), *found) for path, found in record_faults(out).items())
    faults += warehouse_faults(out, state, is_whole=not faults)
    files = [file for part in state.parts for file in part.tables.values()]
    return CheckReport(
        tuple(faults),
        len(state.parts),
        len(files),
        sum(file.bytes for file in files),
        left=tuple(faults),
    )


def _word(error: TracehouseError) -> str:
    return UNREAD if error.code == UNREADABLE else "manifest"


def _relative(path: Path, out: Path) -> str:
    return path.relative_to(out).as_posix()


def _repaired(place: Place, report: CheckReport) -> CheckReport:
    """Repair what can be without losing what this process merely cannot read, and look again."""
    out = place.folder
    unusable = unusable_manifests(out)
    unread = [
        fault for fault in report.faults if fault.fault == UNREAD and fault.where != WAREHOUSE
    ]
    if len(unread) == len(report.faults) or any(_word(e) == UNREAD for e in unusable.values()):
        # Nothing else is wrong; or what the lake holds is not known, so that nothing may be moved.
        return replace(report, is_repaired=True)
    before = _known_files(out)
    damaged = list(unusable)
    kept = {fault.part for fault in unread}
    bad = {fault.part for fault in report.faults if fault.part is not None}
    bad -= {path.stem for path in damaged} | kept
    done = Repair((), ())
    if bad or damaged or any(fault.fault == "unheld" for fault in report.faults):
        done = take_out(out, bad, damaged)
    records = take_out_records(out, [out / f.where for f in report.faults if f.fault == "record"])
    state = load_state(out)
    try:
        publish(place, state, is_forced=True)
    except TracehouseError as error:
        if not unread or error.code not in (UNREADABLE, "LAKE_DAMAGED"):
            raise  # else the database stays as it is: it cannot be built from what is left
        place.publish()
    whole = {part.id for part in state.parts} - {fault.part for fault in report.faults}
    after = {shown_path(entry.path): entry.content_hash for entry in state.files}
    forgotten = sorted(
        {*map(shown_path, done.forgotten), *(path for path in before if path not in after)}
    )
    returned = {p for p, content in after.items() if p not in before or before[p] != content}
    return CheckReport(
        report.faults,
        report.parts,
        report.files,
        report.bytes,
        forgotten=tuple(forgotten),
        lost=tuple(path for path in forgotten if not is_url(path) and not Path(path).is_file()),
        returned=tuple(sorted(returned)) if damaged and before else (),
        set_aside=done.set_aside + records,
        left=_look(out, whole=whole).faults,
        is_repaired=True,
    )


def _known_files(out: Path) -> dict[str, str | None]:
    """The files that the warehouse knows, with the hash of their content; none if it is damaged."""
    try:
        with open_file(out / WAREHOUSE, read_only=True) as connection:
            return dict(connection.execute("SELECT path, content_hash FROM files").fetchall())
    except duckdb.Error:
        return {}


def fault_rows(report: CheckReport) -> pa.Table:
    """Return a row per fault: where it is, its word, what it is and what to do."""
    return pa.table(
        {
            "where": pa.array([f.where for f in report.faults], pa.string()),
            "fault": pa.array([f.fault for f in report.faults], pa.string()),
            "what": pa.array([f.what for f in report.faults], pa.string()),
            "what_to_do": pa.array([_what_to_do(f) for f in report.faults], pa.string()),
        }
    )


def _what_to_do(fault: Fault) -> str:
    if fault.where == WAREHOUSE:
        return "refresh: it is built anew from the lake"
    if fault.fault == UNREAD:
        return "give this user the right to read it, or mend the disk or mount; it may be intact"
    if fault.fault == "record":
        return "restore it from a backup, or check --repair: table runs does without it"
    return "restore it from a backup, or check --repair and analyze"
