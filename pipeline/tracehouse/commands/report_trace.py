"""The report of one trace: what stands on its page, in order."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from tracehouse.commands.report_data import Source, known, quantity
from tracehouse.commands.show_triton import trace_walks
from tracehouse.commands.triton_words import kind_words, notes, walk_blocks
from tracehouse.pages.model import Block, Chart, Fact, Page, Section, Table

BEYOND_PCT = 105  # a share of the roofline that needs explaining, as in `op_perf.note`
WALKED = 200  # compiled kernels that are walked through, longest time first
_PARTS = [
    {"column": "computation_ns"},
    {"column": "exposed_comm_ns"},
    {"column": "exposed_memcpy_ns"},
    {"column": "idle_ns", "idle": True},
]
_SERVING = {"prefill", "decode", "mixed", "idle"}


def page(source: Source, trace_id: str) -> Page:
    """Return the page of a trace."""
    head = source.row("trace_headline", trace_id)
    found = (
        _timeline(source, trace_id),
        _categories(source, trace_id),
        _top(source, trace_id),
        _roofline(source, trace_id),
        _op_args(source, trace_id),
        _triton(source, trace_id),
        _steps(source, trace_id),
        _findings(source, trace_id),
    )
    return Page(
        title=PurePath(head["path"] or trace_id).name,
        subtitle=_subtitle(head),
        facts=_facts(head),
        warnings=_warnings(source, head),
        sections=[section for section in found if section is not None],
        footer=f"Trace {trace_id}. Written by Tracehouse; the trace was analysed by version "
        f"{head['pipeline_version']}. Every number is the result of a query; hover for all of it.",
        summary={
            "ops": (8, ("op", "category", "count", "gpu_time_ns", "share_pct")),
            "kernels": (5, ("kernel", "kind", "count", "gpu_time_ns", "share_pct")),
            "roofline": (
                5,
                ("op", "shapes", "dtype", "gpu_time_ns", "tflops_s", "tb_s", "roofline_pct"),
            ),
            "phases": (8, ("phase", "r", "steps", "gpu_median_ns", "tokens_per_s")),
        },
    )


def _subtitle(head: dict[str, Any]) -> str:
    recorded = f"recorded {head['recorded_at']} UTC" if head["recorded_at"] else ""
    rank = head["rank"]
    of = f" of {head['world_size']}" if head["world_size"] else ""
    parts = (
        head["path"],
        f"label {head['label']}" if head["label"] else "",
        recorded,
        f"rank {rank}{of}" if rank is not None else "",
    )
    return " · ".join(part for part in parts if part)


def _facts(head: dict[str, Any]) -> list[Fact]:
    versions = " ".join(
        part
        for part in (
            head["framework"],
            f"(torch {head['torch_version']})" if head["torch_version"] else "",
        )
        if part
    )
    device = head["devices"] or head["arch"]
    failing = "none" if not head["failing"] else f"{head['failing']:,}"
    is_read = head["status"] != "rejected"
    return known(
        Fact("status", head["status"], tone="ok" if head["status"] == "ok" else "bad"),
        Fact("device", device, _peaks(head)) if device else None,
        Fact("framework", versions) if versions else None,
        quantity("GPU busy", head["busy_pct"], "pct"),
        quantity("GPU time, first to last", head["total_ns"], "ns"),
        quantity("computation", head["computation_pct"], "pct"),
        quantity("exposed communication", head["exposed_comm_pct"], "pct"),
        quantity("exposed copies", head["exposed_memcpy_pct"], "pct"),
        quantity("modelled, of op time", head["modelled_pct"], "pct"),
        quantity(
            "of the roofline, where known",
            head["roofline_pct"],
            "pct",
            "bad" if _is_beyond(head["roofline_pct"]) else "",
        ),
        quantity("kernels", head["kernels"], ""),
        quantity("events", head["events"], ""),
        Fact("failed checks", failing, tone="bad" if head["failing"] else "ok")
        if is_read
        else None,
    )


def _peaks(head: dict[str, Any]) -> str:
    if head["arch"] is None:
        return "not in data/arch: no peaks; analyze --arch names one"
    return f"peaks of {head['arch']}, memory {head['peak_tb_s']:.2f} TB/s"


def _is_beyond(roofline_pct: float | None) -> bool:
    """Whether a share of the roofline is more than can be."""
    return roofline_pct is not None and roofline_pct > BEYOND_PCT


def _warnings(source: Source, head: dict[str, Any]) -> list[str]:
    warnings = []
    if head["status"] != "ok":
        warnings.append(f"The trace is {head['status']}: {head['reason'] or 'no reason recorded'}.")
    elif head["total_ns"] is None:
        warnings.append("The trace has no GPU activity.")
    elif head["arch"] is None and head["op_time_ns"]:
        named = head["devices"] or "the trace names none"
        warnings.append(f"The device is not known ({named}): rooflines are left out.")
    if _is_beyond(head["roofline_pct"]):
        warnings.append(
            f"The ops take less time than their device allows ({head['roofline_pct']:.0f} % of the "
            "roofline): the column why of the roofline says what may explain it."
        )
    failing = source.rows("trace_checks", head["trace_id"])
    for check in failing.to_pylist() if failing is not None else []:
        value = check["value"]
        shown = f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
        warnings.append(
            f"Check {check['name']} is {shown}, expected {check['expected']}: {check['meaning']}."
        )
    return warnings


def _timeline(source: Source, trace_id: str) -> Section | None:
    lanes = source.table("trace_lanes", trace_id, "Time of each device")
    slices = source.table("trace_strip", trace_id, "What the devices did over time")
    if lanes is None:
        return None
    spans = source.table("trace_spans", trace_id, "Steps on that axis")
    gaps = source.table(
        "trace_gaps", trace_id, "Longest idle gaps", note="The 300 longest; the strip shows them."
    )
    parts: list[Chart | Table] = [
        Chart(
            "stacked",
            "Where the GPU time went",
            "Stacked bars: computation, exposed communication, exposed copies and idle time of "
            "each device; the table below has the numbers.",
            {"table": "lanes", "label": "lane", "parts": _PARTS},
        )
    ]
    if slices is not None:
        options: dict[str, Any] = {
            **{"table": "strip", "lane": "lane", "from": "at_ns", "until": "until_ns"},
            "parts": _PARTS,
        }
        if spans is not None:
            options["spans"] = {
                **{"table": "spans", "from": "at_ns", "until": "until_ns", "group": "phase"},
                **{"title": "steps", "hover": ["step_id", "phase", "name", "at_ns", "until_ns"]},
            }
        if gaps is not None:
            options["gaps"] = {
                **{"table": "gaps", "from": "at_ns", "until": "until_ns", "title": "gaps"},
                "hover": ["gap_ns", "lane", "cause", "after_kernel", "before_kernel"],
            }
        parts.append(
            Chart(
                "strip",
                "Over time",
                "For each device and slice of time the share of computation, exposed "
                "communication, exposed copies and idle time, with steps and idle gaps above.",
                options,
            )
        )
    shown = [*parts, lanes, *([gaps] if gaps is not None else [])]
    hidden = [table for table in (slices, spans) if table is not None]
    return Section(
        "timeline",
        "GPU timeline",
        "Times are unions: work that overlaps on two streams counts once.",
        shown,
        hidden,
    )


def _categories(source: Source, trace_id: str) -> Section | None:
    table = source.table("trace_categories", trace_id, "Categories of ops")
    if table is None:
        return None
    chart = Chart(
        "bars",
        "GPU time by category",
        "Bars: GPU time of each category of ops; the table below has the numbers.",
        {"table": "categories", "label": "category", "value": "gpu_time_ns", "share": "share_pct"},
    )
    return Section("categories", "Categories", "", [chart, table])


def _top(source: Source, trace_id: str) -> Section | None:
    ops = source.table("trace_ops", trace_id, "Ops by GPU time")
    kernels = source.table("trace_kernels", trace_id, "Kernels by GPU time")
    parts = [table for table in (ops, kernels) if table is not None]
    note = "Longest time first; cumulative share is of a row and those before it."
    return Section("top", "Ops and kernels", note, parts) if parts else None


def _roofline(source: Source, trace_id: str) -> Section | None:
    table = source.table("trace_roofline", trace_id, "Ops and their limit")
    if table is None:
        return None
    peaks = source.table("trace_peaks", trace_id, "Limits of the device")
    unmodelled = source.table(
        "trace_unmodelled",
        trace_id,
        "Without a formula",
        note="The ten that took most time: their FLOPs or bytes are not known.",
    )
    parts: list[Chart | Table] = []
    if peaks is not None:
        parts.append(
            Chart(
                "roofline",
                "Achieved against arithmetic intensity",
                "Points: each op with its inputs, by FLOPs per byte and achieved TFLOPS/s, sized "
                "by its time, under the limits of the device; the table below has the numbers.",
                {
                    **{"table": "roofline", "x": "flops_per_byte", "y": "tflops_s"},
                    **{"size": "gpu_time_ns", "group": "category"},
                    "hover": [
                        *("op", "shapes", "dtype", "gpu_time_ns", "share_pct", "count"),
                        *("tflops_s", "tb_s", "roofline_pct", "bound"),
                    ],
                    "lines": {
                        **{"table": "peaks", "group": "compute_spec", "x": "flops_per_byte"},
                        **{"y": "tflops_s", "ridge": "ridge"},
                    },
                },
            )
        )
    parts.append(table)
    if unmodelled is not None:
        parts.append(unmodelled)
    note = (
        "Each point is an op with its inputs; the area of a point is its GPU time. The limit is "
        "the memory's bandwidth left of the ridge, the peak of its type right of it."
        if peaks is not None
        else "The device is not known, or no op has FLOPs: there is no limit to draw."
    )
    return Section("roofline", "Roofline", note, parts, [peaks] if peaks is not None else [])


def _op_args(source: Source, trace_id: str) -> Section | None:
    table = source.table("trace_op_args", trace_id, "Ops by inputs")
    note = "GPU time of each op by the shapes and types of its inputs."
    return Section("op-args", "Ops by inputs", note, [table]) if table is not None else None


def _triton(source: Source, trace_id: str) -> Section | None:
    table = source.table("trace_triton", trace_id, "Compiled kernels")
    if table is None:
        return None
    walks = trace_walks(source.warehouse, trace_id, WALKED)
    details = tuple(
        (
            Block(
                "first launch",
                (f"event {walk.launch['event_id']}: {kind_words(walk.launch['kind'])}",),
            ),
            *walk_blocks(walk),
            *((Block("notes", tuple(notes(walk.summary))),) if notes(walk.summary) else ()),
        )
        for walk in walks
    )
    note = "A click on a kernel goes through it step by step."
    if table.rows.num_rows > WALKED:
        note += f" The {WALKED} that took most time can be opened."
    shown = Table(table.name, table.title, table.columns, table.rows, table.note, details)
    return Section("triton", "Compiled kernels", note, [shown])


def _steps(source: Source, trace_id: str) -> Section | None:
    steps = source.table("trace_steps", trace_id, "Every step")
    if steps is None:
        return None
    phases = source.table("trace_phases", trace_id, "Steps by phase and requests")
    steady = source.table("trace_steady", trace_id, "Steady regions")
    attention = source.table("trace_attention", trace_id, "Attention against its limit")
    is_serving = bool(_SERVING & set(steps.rows["phase"].to_pylist()))
    parts: list[Chart | Table] = []
    if is_serving and steps.rows["r"].null_count < steps.rows.num_rows:
        band = {
            **{"table": "steady", "from": "first_step", "until": "last_step", "name": "kind"},
            "only": "is_steady",
        }
        parts.append(
            Chart(
                "series",
                "Concurrency of each step",
                "Lines: requests of each step, in prefill and in decode; steady regions shaded.",
                {
                    **{"table": "steps", "x": "step_id", "title": "requests"},
                    "ys": ["r", "context_requests", "generation_requests"],
                    **({"band": band} if steady is not None else {}),
                },
            )
        )
    if phases is not None and phases.rows["r"].null_count < phases.rows.num_rows:
        parts.append(
            Chart(
                "groups",
                "Step time by phase and requests",
                "Lines: median GPU time of a step over its number of requests, by phase.",
                {
                    **{"table": "phases", "x": "r", "y": "gpu_median_ns", "group": "phase"},
                    "hover": ["phase", "r", "steps", "gpu_median_ns", "gpu_p95_ns", "tokens_per_s"],
                },
            )
        )
    if attention is not None and attention.rows["roofline_pct"].null_count < len(attention.rows):
        parts.append(
            Chart(
                "bars",
                "Attention: achieved share of the limit",
                "Bars: how much of its roofline each attention op achieved.",
                {
                    **{"table": "attention", "label": "op", "value": "roofline_pct"},
                    **{"share": "roofline_pct", "also": ["phase", "part"]},
                },
            )
        )
    parts += [t for t in (phases, steady, attention, steps) if t is not None]
    return Section("steps", "Steps", "", parts)


def _findings(source: Source, trace_id: str) -> Section | None:
    table = source.table("trace_issues", trace_id, "What was odd in the file")
    note = "What was found while reading, and what was done about it."
    return Section("findings", "Findings", note, [table]) if table is not None else None
