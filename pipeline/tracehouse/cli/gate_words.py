"""The verdict of a gate in words: text, Markdown, JSON and JUnit's XML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from tracehouse.cli.output import beside, cell, duration, percentage, printable
from tracehouse.commands.gate import GateReport, Outcome

_KERNELS = 4  # named below an op
_OTHERS = 5  # new and gone rows named


def text(report: GateReport) -> str:
    """Return what a person reads: the verdict, then each regression with what is behind it."""
    lines = [f"{report.outcome.upper()} {_sentence(report)}", *_runs(report)]
    for row in report.regressions:
        lines += ["", *_regression(report, row)]
    if report.outcome is Outcome.FAILED:
        lines += _changed(report)
    return "\n".join(lines)


def markdown(report: GateReport) -> str:
    """Return a short page for a comment on a change."""
    lines = [
        f"### tracehouse gate: {report.outcome}",
        "",
        _escaped(_sentence(report)),
        "",
        *(f"- {_escaped(line.strip())}" for line in _runs(report)),
    ]
    if report.regressions:
        lines += [
            "",
            "| what | now | before | change | share | behind it |",
            "|---|--:|--:|--:|--:|---|",
        ]
    for row in report.regressions:
        behind = "<br>".join(_escaped(line) for line in _kernels(report, row))
        cells = (
            _escaped(f"{row['metric']} {row['subject']}"),
            _value(row, row["value"]),
            _value(row, row["baseline"]),
            f"{row['change_pct']:+.1f} %",
            percentage(row["share_pct"]),
            behind,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def as_json(report: GateReport) -> str:
    """Return one object: outcome, reason, settings, runs, and every number with its verdict."""
    rows = [
        {**row, "explained_pct": report.explained_pct(row)}
        | ({"kernels": report.op_kernels[row["subject"]]} if _is_explained(report, row) else {})
        for row in report.rows
    ]
    return json.dumps(
        {
            "label": report.label,
            "against": report.against,
            "outcome": report.outcome,
            "reason": report.reason or None,
            "settings": report.settings,
            "runs": report.runs,
            "regressions": [row for row in rows if row["verdict"] == "regression"],
            "rows": rows,
        },
        ensure_ascii=False,
        default=lambda value: value.isoformat(),
        indent=1,
        allow_nan=False,
    )


def junit(report: GateReport) -> str:
    """Return a test suite: a case per number, failed if it is a regression, skipped if unjudged."""
    shown = [row for row in report.rows if row["verdict"] not in ("small", "unusable")]
    undecided = report.outcome is Outcome.UNDECIDED
    skipped = [row for row in shown if row["why"]]
    suite = ElementTree.Element(
        "testsuite",
        name=f"tracehouse gate {_xml(report.label)}",
        tests=str(len(shown) + undecided),
        failures=str(len(report.regressions)),
        errors=str(int(undecided)),
        skipped=str(len(skipped)),
    )
    if undecided:
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name="verdict")
        ElementTree.SubElement(case, "error", message=_xml(report.reason))
    for row in shown:
        case = ElementTree.SubElement(
            suite, "testcase", classname=row["metric"], name=_xml(row["subject"])
        )
        if row["verdict"] == "regression":
            failure = ElementTree.SubElement(case, "failure", message=_numbers(row))
            failure.text = "\n".join(map(_xml, _regression(report, row)))
        elif row["why"]:
            ElementTree.SubElement(case, "skipped", message=row["why"])
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, "unicode")


def _sentence(report: GateReport) -> str:
    label = printable(report.label)
    if report.outcome is Outcome.UNDECIDED:
        return f"{label}: {printable(report.reason)}"
    count = len(report.side("baseline"))
    base = "1 run" if count == 1 else f"{count} runs"
    judged = len(report.judged)
    limit = f"{report.settings['max_slowdown_pct']:g} % slower and beyond the noise"
    if report.outcome is Outcome.PASSED:
        return f"{label}: of {judged} numbers none is {limit}, compared with {base}"
    slower = len(report.regressions)
    verb = "is" if slower == 1 else "are"
    return f"{label}: of {judged} numbers {slower} {verb} {limit}, compared with {base}"


def _runs(report: GateReport) -> Iterator[str]:
    for side in ("unusable", "newest", "baseline"):
        runs = report.side(side)
        if not runs:
            continue
        last = _run(runs[0])
        if side != "baseline":
            yield f"  newest run: {last}"
        elif len(runs) == 1:
            assumed = f"{report.settings['noise_floor_pct']:g} %"
            yield f"  compared with: {last}; one run tells no noise, {assumed} is assumed"
        else:
            yield f"  compared with: {len(runs)} runs, {_run(runs[-1])} to {last}"


def _run(run: dict[str, Any]) -> str:
    words = {"recorded": "recorded", "file": "written", "analysed": "analysed"}
    name = printable(beside(run["path"] or run["run_id"]))
    return f"{name} ({words[run['time_source']]} {run['recorded_at']})"


def _regression(report: GateReport, row: dict[str, Any]) -> Iterator[str]:
    yield f"  {row['metric']} {printable(row['subject'])}"
    yield f"    {_numbers(row)}"
    explained = report.explained_pct(row)
    if explained is not None:
        yield (f"    its {_signed(row)} are {explained:.0f} % of what the busy time gained")
    for line in _kernels(report, row):
        yield f"    {line}"


def _numbers(row: dict[str, Any]) -> str:
    per = f" a {row['per']}" if row["per"] else ""
    share = "" if row["share_pct"] is None else f"; {row['share_pct']:.1f} % of the time"
    return (
        f"{_value(row, row['value'])}{per}, was {_value(row, row['baseline'])}: "
        f"{row['change_pct']:+.1f} %, {abs(row['z']):.1f} times the noise, "
        f"{row['z_needed']:.1f} needed{share}"
    )


def _kernels(report: GateReport, row: dict[str, Any]) -> Iterator[str]:
    """Word the kernels below an op that got slower; those whose time changed most come first."""
    if not _is_explained(report, row):
        return
    kernels = report.op_kernels[row["subject"]]
    for kernel in kernels[:_KERNELS]:
        name, now, before = printable(kernel["kernel"]), kernel["value"], kernel["baseline"]
        if before is None:
            yield f"new kernel {name}: {duration(now)}"
        elif now is None:
            yield f"no more kernel {name}: was {duration(before)}"
        else:
            yield f"kernel {name}: {duration(now)}, was {duration(before)}"
    if len(kernels) > _KERNELS:
        yield f"and {len(kernels) - _KERNELS} more kernels"


def _is_explained(report: GateReport, row: dict[str, Any]) -> bool:
    return row["metric"] == "op_ns" and row["subject"] in report.op_kernels


def _changed(report: GateReport) -> Iterator[str]:
    """Word the ops that came and went: what got slower may have been renamed."""
    least = report.settings["min_share_pct"]
    rows = [
        row
        for row in report.having("new", "gone")
        if row["metric"] == "op_ns" and (row["share_pct"] or 0) >= least
    ]
    if rows:
        yield ""
    for row in rows[:_OTHERS]:
        time = row["value"] if row["verdict"] == "new" else row["baseline"]
        yield f"  {row['verdict']}: {printable(row['subject'])}: {duration(time)} a {row['per']}"
    if len(rows) > _OTHERS:
        yield f"  and {len(rows) - _OTHERS} more ops that are new or gone"


def _value(row: dict[str, Any], value: float) -> str:
    if row["unit"] == "ns":
        return duration(value)
    return percentage(value) if row["unit"] == "pct" else f"{cell(value)} {row['unit']}"


def _signed(row: dict[str, Any]) -> str:
    return f"{'+' if row['change'] > 0 else ''}{duration(row['change'])} a {row['per']}"


def _xml(words: str) -> str:
    """Return text that XML can hold: beside what a terminal must not see, two characters."""
    return printable(words).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _escaped(words: str) -> str:
    """Return text that Markdown shows as it is, within a cell of a table too."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#&" else c for c in printable(words))
