"""`tracehouse doctor`: what a file is, what is odd in it, what that costs, how to do better."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracehouse.analysis.settings import DEFAULT
from tracehouse.commands.advice import Evidence, advices
from tracehouse.commands.captures import forget_captures, read_captures
from tracehouse.commands.first_bytes import kind_of_bytes, shown_bytes
from tracehouse.commands.linked_trace import issue_rows
from tracehouse.commands.read import Trace, analysed
from tracehouse.errors import CODES, RejectedFile, Severity, UsageError
from tracehouse.findings import Findings
from tracehouse.ingest.capture_folders import divide
from tracehouse.ingest.containers import members
from tracehouse.ingest.discover import SourceFile, discover
from tracehouse.ingest.read import RejectedMember, check_reader, read_file
from tracehouse.ingest.recognise import HEAD_LENGTH, container_of, is_url
from tracehouse.schema.tables import EVENTS
from tracehouse.vocab import Kind, Role

_FLAGS = ("record_shapes", "with_stack", "with_modules", "with_flops", "profile_memory")
_PHASES = {
    "M": "metadata",
    "C": "counter",
    "i": "instant",
    "I": "instant",
    "s": "flow start",
    "f": "flow end",
    "B": "begin",
    "E": "end",
    "X": "complete, no category",
}
_COMPLAINT = 200  # characters
_VERSION = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A start in this range without a base time is itself counted from 1970: 2001 to 2100.
_SINCE_1970_NS = range(10**18, 4_102_444_800 * 10**9)
# Names that Inductor gives when it may not say what a kernel fuses: triton_, triton__0d1d2de.
_GENERIC_TRITON = re.compile(r"triton_{1,2}(\d+(d\d*e?)*[a-z\d]*)?(\.kd)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FilePage:
    """The file as a whole.

    bytes: its length. container: gzip, zstd, zip or text. encoding: in words, None where no
    text was read. first_bytes: as text,
    else in hex. kind: what these bytes may be. findings: rows of `issues` of the archive itself.
    """

    path: str
    bytes: int
    container: str
    encoding: str | None
    kind: str
    first_bytes: str
    findings: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class TracePage:
    """One trace of the file, or a member that holds none (status rejected: facts are empty).

    facts: in words, by name, in the order to show them. categories: events by category, most first.
    gpu: rows of `trace_timeline` and the counts; None without GPU activity. findings: rows of
    `issues`, with the meaning of each code. failing: name, value, expected
    and meaning of `checks` that are not ok. advices: what to do, in words.
    """

    path: str
    trace_id: str | None
    status: str
    reason: str | None
    facts: dict[str, str]
    start: str | None
    end: str | None
    duration_ns: int | None
    events: int | None
    categories: dict[str, int]
    gpu: dict[str, Any] | None
    findings: tuple[dict[str, Any], ...]
    failing: tuple[dict[str, Any], ...]
    advices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """The pages of a file."""

    file: FilePage
    traces: tuple[TracePage, ...]

    @property
    def is_rejected(self) -> bool:
        """Whether the file, or a member of it, is of no use."""
        return any(page.status == "rejected" for page in self.traces)


def examine(path: str, *, reader: str = "scan") -> Examination:
    """Examine a file, storing nothing.

    A file or member that cannot be used has a page of status rejected. UsageError if the path does
    not exist, is a folder, or names several files.
    """
    check_reader(reader)
    source = _one_file(path)
    forget_captures()
    captures = read_captures(divide([source]).shared, reader, DEFAULT)
    archive = Findings()
    counts: Counter[str] = Counter()
    pages: list[TracePage] = []
    codes: set[str] = set()
    try:
        for trace in read_file(
            source.path,
            reader=reader,
            sink=lambda rows: _count_categories(rows, counts),
            wanted=lambda _: True,
            findings=archive,
        ):
            if isinstance(trace, RejectedMember):
                pages.append(_rejected(trace.path, trace.error))
                continue
            table = analysed(trace, EVENTS.schema.empty_table(), DEFAULT, captures)
            codes |= {finding.code.word for finding in table.findings}
            pages.append(_page(table, Counter(counts)))
            counts.clear()
    except RejectedFile as error:
        pages.append(_rejected(source.path, error))
    has_text = any(page.trace_id is not None for page in pages)
    return Examination(_file_page(source, archive, codes if has_text else None), tuple(pages))


def _one_file(path: str) -> SourceFile:
    if not is_url(path) and Path(path).is_dir():
        raise UsageError(f"{path} is a folder.", hint="Name one file of it.")
    files = discover([path]).files
    if len(files) != 1:
        raise UsageError(f"{path} names {len(files):,} files.", hint="Name one of them.")
    return files[0]


def _count_categories(rows: pa.Table, counts: Counter[str]) -> None:
    """Add the events of some rows by category; one without is counted under its phase."""
    keys = rows.select(["ph", "cat"]).unify_dictionaries()
    for row in keys.group_by(["ph", "cat"]).aggregate([([], "count_all")]).to_pylist():
        phase = row["ph"] or "no phase"
        counts[row["cat"] or f"({_PHASES.get(phase, phase)})"] += row["count_all"]


def _file_page(source: SourceFile, archive: Findings, codes: set[str] | None) -> FilePage:
    """Describe the file; `codes`: of its traces, None if it has none."""
    head = _head(source.path)
    text = _text_head(source.path) or head
    return FilePage(
        path=source.path,
        bytes=source.size,
        container=container_of(head).value,
        encoding=None if codes is None else _encoding(text, codes),
        kind=kind_of_bytes(text),
        first_bytes=shown_bytes(text),
        findings=_findings(archive),
    )


def _head(path: str) -> bytes:
    """Return the first bytes of the file as it is; empty if it cannot be read."""
    try:
        if is_url(path):
            from tracehouse.ingest.remote import open_remote

            with open_remote(path) as remote:
                return remote.read(HEAD_LENGTH)
        with Path(path).open("rb") as file:
            return file.read(HEAD_LENGTH)
    except OSError:
        return b""


def _text_head(path: str) -> bytes:
    """Return the first decompressed bytes of the file's first text; empty if there are none."""
    try:
        for member in members(path, path, Findings()):
            for block in member.blocks():
                return block[:HEAD_LENGTH]
    except RejectedFile:
        pass
    return b""


def _encoding(head: bytes, codes: set[str]) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if head.startswith(b"\xef\xbb\xbf"):
        return "UTF-8 with a byte-order mark"
    return "UTF-8 with invalid bytes" if "ENCODING_FIXED" in codes else "UTF-8"


def _rejected(path: str, error: RejectedFile) -> TracePage:
    findings = Findings()
    findings.add(error.code, example=str(error))
    return TracePage(
        path=path,
        trace_id=None,
        status="rejected",
        reason=str(error),
        facts={},
        start=None,
        end=None,
        duration_ns=None,
        events=None,
        categories={},
        gpu=None,
        findings=_findings(findings),
        failing=(),
        advices=(f"{error.hint[:1].upper()}{error.hint[1:]}.",) if error.hint else (),
    )


def _page(trace: Trace, counts: Counter[str]) -> TracePage:
    (row,) = trace.traces.to_pylist()
    words = ("name", "value", "expected", "meaning")
    checks = trace.checks.to_pylist()
    failing = [{key: check[key] for key in words} for check in checks if check["ok"] is False]
    seen = _evidence(trace, row, counts, failing)
    start, end = row["start_ns"], row["end_ns"]
    return TracePage(
        path=trace.path,
        trace_id=trace.trace_id,
        status=row["status"],
        reason=row["reason"],
        facts=_facts(trace.envelope, row),
        start=_moment(start, row["base_time_ns"]),
        end=_moment(end, row["base_time_ns"]),
        duration_ns=None if start is None or end is None else end - start,
        events=row["events"],
        categories=dict(counts.most_common()),
        gpu=_gpu(trace, row),
        findings=_findings(trace.findings),
        failing=tuple(failing),
        advices=tuple(advice.words for advice in advices(seen)),
    )


def _evidence(
    trace: Trace, row: dict[str, Any], counts: Counter[str], failing: list[dict[str, Any]]
) -> Evidence:
    kernels = trace.kernel_summary
    names = set(kernels["name"].to_pylist())
    return Evidence(
        codes=frozenset(finding.code.word for finding in trace.findings),
        failing=frozenset(check["name"] for check in failing),
        categories=counts,
        framework=row["framework"],
        world_size=row["world_size"],
        records_shapes=trace.envelope.get("record_shapes") in (1, True),
        generic_kernels=sum(bool(_GENERIC_TRITON.fullmatch(name or "")) for name in names),
        has_comm=Kind.COMM.value in kernels["kind"].to_pylist(),
        has_ops=trace.ops.num_rows > 0,
        has_steps=Role.STEP.value in trace.annotations["role"].unique().to_pylist(),
    )


def _gpu(trace: Trace, row: dict[str, Any]) -> dict[str, Any] | None:
    if not row["gpu_events"]:
        return None
    (timeline,) = trace.trace_timeline.to_pylist()
    return {
        "activities": row["gpu_events"],
        "kernels": row["kernels"],
        "devices": trace.gpu_timeline.num_rows,
        **{name: timeline[name] for name in ("total_ns", "busy_ns", "busy_pct")},
    }


def _facts(envelope: dict[str, Any], row: dict[str, Any]) -> dict[str, str]:
    """Say what the trace tells of its making; what it does not tell is left out."""
    versions = [
        f"torch {row['torch_version']}" if row["torch_version"] else "",
        _version(envelope, "cuda_runtime_version", "CUDA", _cuda),
        _version(envelope, "cuda_driver_version", "driver for CUDA", _cuda),
        _version(envelope, "hip_runtime_version", "HIP", _hip),
        _version(envelope, "cupti_version", "CUPTI", str),
        _version(envelope, "roctracer_version", "roctracer", str),
        _version(envelope, "schemaVersion", "Kineto schema", str),
    ]
    size = row["world_size"]
    rank = "unknown" if row["rank"] is None else f"{row['rank']:,}"
    devices = Counter(row["devices"] or ())
    facts = {
        "producer": row["framework"] or "",
        "versions": ", ".join(version for version in versions if version),
        "recorded with": ", ".join(flag for flag in _FLAGS if envelope.get(flag) in (1, True)),
        "devices": ", ".join(f"{count} x {name or 'unnamed'}" for name, count in devices.items()),
        "rank": rank if size is None else f"{rank} of {size:,}",
        "profiler said": _complaints(envelope),
    }
    return {name: words for name, words in facts.items() if words}


def _version(envelope: dict[str, Any], key: str, name: str, form: Any) -> str:
    value = envelope.get(key)
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return ""
    return f"{name} {str(form(value))[:_VERSION]}"


def _cuda(value: int | Decimal | str) -> str:
    """12040 is CUDA 12.4."""
    return f"{value // 1000}.{value % 1000 // 10}" if isinstance(value, int) else str(value)


def _hip(value: int | Decimal | str) -> str:
    """70226015 is HIP 7.2.26015."""
    if not isinstance(value, int):
        return str(value)
    return f"{value // 10**7}.{value // 10**5 % 100}.{value % 10**5}"


def _complaints(envelope: dict[str, Any]) -> str:
    """The warnings and errors that the profiler wrote into the file, shortened."""
    found = [envelope.get(key) for key in ("WARNING", "ERROR")]
    lines = [str(line) for value in found if isinstance(value, list) for line in value]
    return "; ".join(line[:_COMPLAINT] for line in lines[:3])


def _moment(ns: int | None, base_ns: int | None) -> str | None:
    """Return a time since 1970 in UTC, to the µs; None if the trace's clock is not known."""
    if ns is None:
        return None
    since = ns + base_ns if base_ns is not None else ns
    if since not in _SINCE_1970_NS:
        return None
    return (_EPOCH + timedelta(microseconds=since // 1_000)).isoformat(timespec="microseconds")


def _findings(findings: Findings) -> tuple[dict[str, Any], ...]:
    """Return the rows of `issues` with the meaning of their code, the most severe first."""
    rows = [
        {key: value for key, value in row.items() if key != "trace_id"}
        | {"meaning": CODES[row["code"]].meaning}
        for row in issue_rows("", findings)
    ]
    severities = [severity.value for severity in reversed(Severity)]
    return tuple(sorted(rows, key=lambda row: severities.index(row["severity"])))
