"""The status of a trace, by what was found in its text."""

from __future__ import annotations

from tracehouse.findings import Findings
from tracehouse.vocab import Status

WORST_FIRST = (Status.REJECTED, Status.PARTIAL, Status.REPAIRED, Status.OK)
_STATUS_OF = {
    "TRUNCATED": Status.PARTIAL,
    "DROPPED_EVENT": Status.PARTIAL,
    "INTERLEAVED_WRITERS": Status.PARTIAL,
    "REPAIRED_ESCAPE": Status.REPAIRED,
    "REPAIRED_CONTROL": Status.REPAIRED,
    "REPAIRED_NUMBER": Status.REPAIRED,
    "ENCODING_FIXED": Status.REPAIRED,
    "MULTI_DOC": Status.REPAIRED,
    "REPAIRED_SYNTAX": Status.REPAIRED,
    "REPAIRED_METADATA": Status.REPAIRED,
}


def status_of(findings: Findings) -> tuple[Status, str | None]:
    """Return the status that the findings give a trace, and why.

    Source: field_cases.md, "Status of a file".
    """
    telling = [f for f in findings if f.code.word in _STATUS_OF]
    if not telling:
        return Status.OK, None
    status = min((_STATUS_OF[f.code.word] for f in telling), key=WORST_FIRST.index)
    reasons = [
        f"{f.code.meaning} ({f.code.word} x{f.count}: {f.example or f.code.action})"
        for f in telling
    ]
    return status, "; ".join(reasons)
