"""The report of a warehouse, or of one label: what stands on its page, in order."""

from __future__ import annotations

from typing import Any

from tracehouse.commands.report_data import Source, known, quantity
from tracehouse.pages.model import Chart, Fact, Page, Section, Table

_PARTS = [
    {"column": "computation_ns"},
    {"column": "exposed_comm_ns"},
    {"column": "exposed_memcpy_ns"},
    {"column": "idle_ns", "idle": True},
]


def page(source: Source, out: str, label: str | None) -> Page:
    """Return the page of the warehouse in the folder `out`; label: of its traces only."""
    head = source.row("archive_headline", label)
    found = (
        _labels(source, label),
        _changes(source, label),
        _traces(source, label),
        _time(source, label),
        _coverage(source, label),
        _failures(source, label),
    )
    return Page(
        title="Traces" if label is None else f"Traces of {label}",
        subtitle=f"warehouse {out}",
        facts=_facts(head),
        warnings=_warnings(head),
        sections=[section for section in found if section is not None],
        footer="Written by Tracehouse. Every number is the result of a query; hover for all of it.",
        summary={
            "labels": (10, ("label", "traces", "rejected", "busy_pct", "modelled_pct")),
            "regressions": (10, ("subject", "metric", "verdict", "change_pct", "share_pct")),
            "ops": (8, ("op", "label", "gpu_time_ns", "share_pct")),
            "files": (5, ("path", "status", "reason")),
        },
    )


def _facts(head: dict[str, Any]) -> list[Fact]:
    rejected = head["rejected"]
    return known(
        quantity("traces", head["traces"], ""),
        quantity("labels", head["labels"], ""),
        quantity("rejected", rejected, "", "bad" if rejected else "ok"),
        quantity("repaired or partial", head["damaged"], ""),
        quantity("failing a check", head["failing"], ""),
        quantity("GPU busy", head["busy_pct"], "pct"),
        quantity("GPU time, first to last", head["total_ns"], "ns"),
        quantity("modelled, of op time", head["modelled_pct"], "pct"),
        quantity("of the roofline, where known", head["roofline_pct"], "pct"),
        quantity("kernels", head["kernels"], ""),
        quantity("events", head["events"], ""),
        Fact("last analysed, UTC", head["analysed_at"]) if head["analysed_at"] else None,
    )


def _warnings(head: dict[str, Any]) -> list[str]:
    if not head["traces"]:
        return ["The warehouse holds no traces."]
    if head["rejected"]:
        verb = "files were" if head["rejected"] > 1 else "file was"
        return [f"{head['rejected']:,} {verb} rejected; see Failures."]
    return []


def _labels(source: Source, label: str | None) -> Section | None:
    table = source.table("archive_labels", label, "Traces by label")
    if table is None:
        return None
    parts: list[Chart | Table] = [table]
    if table.rows["total_ns"].null_count < table.rows.num_rows:
        chart = Chart(
            "stacked",
            "Where the GPU time went",
            "Stacked bars: computation, exposed communication, exposed copies and idle time of "
            "the traces of each label; the table below has the numbers.",
            {"table": "labels", "label": "label", "parts": _PARTS, "share": True},
        )
        parts.insert(0, chart)
    return Section("labels", "Labels", "", parts)


def _changes(source: Source, label: str | None) -> Section | None:
    regressions = source.table("archive_regressions", label, "What changed in the newest runs")
    verdicts = source.table("archive_verdicts", label, "How the newest runs were judged")
    trends = source.table("archive_trends", label, "Runs over time")
    parts: list[Chart | Table] = []
    if trends is not None:
        parts.append(
            Chart(
                "trend",
                "Runs over time",
                "Lines: a number of each run over time, by label; the newest is at the right.",
                {
                    **{"table": "trends", "x": "position", "y": "value", "unit": "unit"},
                    **{"group": "line", "choose": "metric"},
                    "hover": ["line", "run_time", "position", "per", "run_id"],
                },
            )
        )
    parts += [table for table in (regressions, verdicts) if table is not None]
    if not parts:
        return None
    note = "The newest run of each label against the runs before it, beyond the noise."
    return Section("changes", "Trends and regressions", note, parts, [trends] if trends else [])


def _traces(source: Source, label: str | None) -> Section | None:
    table = source.table("archive_traces", label, "Every trace")
    note = "tracehouse report OUT --trace ID shows one in full."
    return Section("traces", "Traces", note, [table]) if table is not None else None


def _time(source: Source, label: str | None) -> Section | None:
    categories = source.table("archive_categories", label, "Categories by label")
    ops = source.table("archive_ops", label, "Ops by label")
    parts = [table for table in (categories, ops) if table is not None]
    note = "GPU time, summed over the traces of a label; shares are of the label."
    return Section("time", "Where the time went", note, parts) if parts else None


def _coverage(source: Source, label: str | None) -> Section | None:
    table = source.table("archive_unmodelled", label, "Ops without a formula")
    note = "Ops whose FLOPs or bytes are not known, and why: no roofline covers their time."
    return Section("coverage", "Coverage", note, [table]) if table is not None else None


def _failures(source: Source, label: str | None) -> Section | None:
    found = (
        source.table("archive_files", label, "Files that could not be read whole"),
        source.table("archive_checks", label, "Checks that traces fail"),
        source.table("archive_issues", label, "Findings"),
    )
    parts = [table for table in found if table is not None]
    return Section("failures", "Failures", "", parts) if parts else None
