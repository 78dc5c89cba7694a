"""What `split` says of each file that it writes; names and fields are those of the peer."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehouse.compute.intervals import union_by_group
from tracehouse.serving.step_windows import RANGE, StepWindow

DETAILS = "execution_details"
_SUFFIXES = (".gz", ".zst", ".zip", ".json", ".trace", ".pt")
_LONGEST_BASE = 120  # characters: a name may have 255 bytes
_STEP_FIELDS = (
    *("step_id", "annotation", "phase", "r", "tokens", "kernels"),
    *("ts_ns", "cpu_dur_ns", "gpu_busy_ns", "gpu_span_ns"),
)
_COUNTED = {"num_prefill": "prefill", "num_prefilldecode": "mixed", "num_decode": "decode"}

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One file: its place in the list, the window it holds, its name and its figures.

    details: as in execution_details.json.
    """

    window: StepWindow
    name: str
    details: dict[str, Any]

    def with_events(self, count: int) -> SplitFile:
        """Return the same with the number of events that were written."""
        return replace(self, details={**self.details, "event_count": count})

    @property
    def row(self) -> dict[str, Any]:
        """The figures as one flat row; the steps are its first and last."""
        flat = {k: v for k, v in self.details.items() if k not in ("steps", "phase")}
        return flat | self.details["phase"]


def split_file(
    number: int, window: StepWindow, steps: pa.Table, kernels: pa.Table, ids: Ints, source: str
) -> SplitFile:
    """Describe the file of a window.

    `steps`, `kernels`: rows of these tables of the whole trace. `ids`: events that the file gets.
    `source`: name of the trace's file.
    """
    own = steps.filter(pc.is_in(steps["step_id"], pa.array(window.steps)))
    phases = own["phase"].to_pylist()
    counts = {name: phases.count(phase) for name, phase in _COUNTED.items()}
    phase = counts | {"avg_bs": _average(own["tokens"]), "avg_conc": _average(own["r"])}
    in_steps = kernels.filter(pc.is_in(kernels["step_id"], pa.array(window.steps)))
    in_file = pc.sum(pc.is_in(kernels["event_id"], pa.array(ids))).as_py() or 0
    name = _name(window, phase, _base(source))
    details: dict[str, Any] = {
        "idx": number,
        "output_path": name,
        "window": window.kind,
        "first_step": int(window.steps[0]),
        "last_step": int(window.steps[-1]),
        "num_steps": len(window.steps),
        "num_steps_wanted": window.wanted,
        "prefill_share": _share(counts, phases),
        "reference_share": None if window.reference is None else float(window.reference),
        "fallback": window.fallback,
        "event_count": 0,
        "num_gpu_events": in_steps.num_rows,
        "num_gpu_events_of_no_step": in_file - in_steps.num_rows,
        "gpu_duration": (pc.sum(own["gpu_span_ns"]).as_py() or 0) / 1000,
        "gpu_busy_duration": _busy_ns(in_steps) / 1000,
        "steps": own.select(list(_STEP_FIELDS)).to_pylist(),
        "phase": phase,
    }
    return SplitFile(window, name, details)


def details_json(files: tuple[SplitFile, ...]) -> str:
    """Return the text of execution_details.json: a list with an object a file; times in µs."""
    return json.dumps([file.details for file in files], indent=2, ensure_ascii=False) + "\n"


def details_csv(files: tuple[SplitFile, ...]) -> str:
    """Return the text of execution_details.csv: a row a file, without the list of steps."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(files[0].row), lineterminator="\n")
    writer.writeheader()
    writer.writerows(file.row for file in files)
    return text.getvalue()


def is_ours(path: Path) -> bool:
    """Whether a file of that name lists windows; the index of captures has the same name."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(listed, list) and all(
        isinstance(item, dict) and "output_path" in item for item in listed
    )


def _base(source: str) -> str:
    name = source
    while Path(name).suffix.lower() in _SUFFIXES:
        name = Path(name).stem
    return name[:_LONGEST_BASE]


def _name(window: StepWindow, phase: dict[str, Any], base: str) -> str:
    kind = f"{window.kind}_steady_state"
    if window.kind == RANGE:
        kind = f"steps_{window.steps[0]}_{window.steps[-1] + 1}"
    a, b, c, bs, conc = (phase[name] for name in (*_COUNTED, "avg_bs", "avg_conc"))
    averages = f"bs{'NA' if bs is None else bs}_conc{'NA' if conc is None else conc}"
    return f"{kind}_prefill_{a}_prefilldecode_{b}_decode_{c}_{averages}_{base}.json.gz"


def _average(column: pa.ChunkedArray) -> int | None:
    """Return the mean of the known values, cut to an integer; None if none is known."""
    known = column.drop_null()
    return pc.sum(known).as_py() // len(known) if len(known) else None


def _share(counts: dict[str, int], phases: list[str]) -> float | None:
    """Return the share of the steps with a prefill; idle steps don't count."""
    busy = len(phases) - phases.count("idle")
    return (counts["num_prefill"] + counts["num_prefilldecode"]) / busy if busy else None


def _busy_ns(kernels: pa.Table) -> int:
    """Return the time with any GPU activity."""
    timed = kernels.filter(pc.and_(kernels["ts_ns"].is_valid(), kernels["dur_ns"].is_valid()))
    start = timed["ts_ns"].to_numpy()
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + timed["dur_ns"].to_numpy())[order]
    return int(union_by_group(np.zeros(len(start), dtype=np.int64), start, end, 1)[0])
