"""`tracehouse plan`: which steps of a serving benchmark to profile, and the flags that do it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tracehouse.serving.window import GROUP, Window, Workload, window_of, workload

MOST_RANGES = 1_000  # completion ranges that are listed; a run may have millions


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one framework profiles the window: the lines to paste, and what to know about them."""

    framework: str
    versions: str
    lines: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The benchmark, its window, and what to know before trusting them.

    warnings: what is wrong with the request. notes: what is unusual about the run.
    """

    load: Workload
    window: Window
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def end(self) -> int:
        """The step after the window's last: it ends with the run at the latest."""
        first, total = self.window.delay_iters, math.ceil(self.load.total_steps)
        return max(first, min(first + self.window.max_iters, total))

    @property
    def expected_prefills(self) -> Fraction:
        """Steps with a prefill that the window holds on average."""
        return (self.end - self.window.delay_iters) * self.load.ratio


def plan(conc: int, osl: int, r: float, num_prompts: int | None = None) -> Plan:
    """Return the plan for a benchmark; NUM_PROMPTS is 10·CONC by default.

    Raises:
        UsageError: a count below 1, or an R that is no number.
    """
    load = workload(conc, osl, r, num_prompts)
    window = window_of(load)
    return Plan(load, window, tuple(_warnings(load, window, r)), tuple(_notes(load, window)))


def record(planned: Plan) -> dict[str, Any]:
    """Return the plan as plain values: whole numbers as int, others as float.

    completion_ranges has the first 1,000 groups of `completion_groups`.
    """
    load, window = planned.load, planned.window
    listed = range(1, min(load.groups, MOST_RANGES) + 1)
    return {
        "conc": load.conc,
        "osl": load.osl,
        "r": plain(load.r),
        "num_prompts": load.num_prompts,
        "avg_osl": plain(load.avg_osl),
        "total_steps": plain(load.total_steps),
        "prefill_decode_steps": plain(load.prefill_decode_steps),
        "decode_only_steps": plain(load.decode_only_steps),
        "decode_only_steps_raw": plain(load.decode_only_steps_raw),
        "ratio": plain(load.ratio),
        "mean_prefills_per_step": plain(load.ratio_raw),
        "min_window_steps": load.min_window_steps,
        "max_iters_raw": plain(window.max_iters_raw),
        "delay_iters_raw": plain(window.delay_iters_raw),
        "max_iters": window.max_iters,
        "delay_iters": window.delay_iters,
        "max_iters_reason": window.max_reason or None,
        "delay_iters_reason": window.delay_reason or None,
        "first_step": window.delay_iters,
        "end_step": planned.end,
        "expected_prefill_decode_steps": plain(planned.expected_prefills),
        "completion_groups": load.groups,
        "completion_ranges": [_pair(load.completion_range(n)) for n in listed],
        "recommended_group": load.group,
        "recommended_region": _pair(load.completion_range(load.group)),
        "warnings": list(planned.warnings),
        "notes": list(planned.notes),
    }


def recipes(planned: Plan) -> tuple[Recipe, ...]:
    """Return how vLLM and SGLang profile the window."""
    return _vllm(planned), _sglang(planned)


def plain(value: Fraction) -> int | float:
    """Return a fraction as an int if it is whole, else as the nearest float."""
    return value.numerator if value.denominator == 1 else float(value)


def _pair(steps: tuple[Fraction, Fraction]) -> list[int | float]:
    return [plain(step) for step in steps]


def _warnings(load: Workload, window: Window, r: float) -> list[str]:
    found = []
    if load.is_r_clamped:
        found.append(f"R is {r}, outside 0 to 1: taken as {load.r}")
    if load.num_prompts < load.conc:
        found.append(
            f"{load.num_prompts:,} prompts never fill a batch of CONC = {load.conc:,}: "
            "there is no steady state"
        )
    if window.delay_iters >= load.total_steps:
        found.append(
            f"the run ends after {math.ceil(load.total_steps):,} steps, within its ramp-up: "
            "nothing would be profiled; take a smaller CONC, longer outputs or more prompts"
        )
    return found


def _notes(load: Workload, window: Window) -> list[str]:
    found = []
    if load.ratio_raw > 1:
        found.append(
            "CONC exceeds the mean output: every step carries prefill, "
            f"{float(load.ratio_raw):,.2f} a step on average"
        )
    if load.groups and load.group != GROUP:
        found.append(
            f"fewer than {GROUP} groups of CONC requests: group {load.group} of {load.groups} "
            "stands in for the fifth"
        )
    if window.max_iters < load.min_window_steps:
        found.append(
            f"a prefill comes once in {load.min_window_steps:,} steps: a window of "
            f"{window.max_iters:,} may hold none; take several traces"
        )
    found.append(
        "prompts longer than a prefill chunk take several steps each: prefill-decode steps are "
        "then NUM_PROMPTS·ceil(ISL/chunk)"
    )
    return found


def _vllm(planned: Plan) -> Recipe:
    load, window = planned.load, planned.window
    # Its range ratio is symmetric, avg·(1−x) = R·OSL and avg·(1+x) = OSL, and must be below 1.
    spread = f"{min(float((1 - load.r) / (1 + load.r)), 0.999):.4g}"
    return Recipe(
        "vLLM",
        "0.13 or newer",
        (
            "vllm serve MODEL \\",
            "  --profiler-config.profiler torch \\",
            "  --profiler-config.torch_profiler_dir /tmp/traces \\",
            "  --profiler-config.torch_profiler_record_shapes true \\",
            "  --profiler-config.ignore_frontend true \\",
            f"  --profiler-config.delay_iterations {window.delay_iters} \\",
            f"  --profiler-config.max_iterations {window.max_iters}",
            "vllm bench serve --model MODEL --dataset-name random --ignore-eos \\",
            f"  --num-prompts {load.num_prompts} --max-concurrency {load.conc} \\",
            f"  --random-output-len {max(1, round(load.avg_osl))} --random-range-ratio {spread} \\",
            "  --profile",
        ),
        (
            "The steps count from /start_profile, which --profile sends. Lengths are drawn from "
            f"LEN·(1−x) to LEN·(1+x): x = {spread} is this R, and holds for inputs too.",
            "For sums of lengths in the step names and a trace of the graph capture, add "
            "--profiler-config.detailed_trace_annotation true and "
            "--profiler-config.capture_torch_profiler true where the version has them (0.27 does).",
            "Versions before 0.13 know no --profiler-config; VLLM_TORCH_PROFILER_DIR, "
            "VLLM_PROFILER_DELAY_ITERS and VLLM_PROFILER_MAX_ITERS are for the last of them.",
        ),
    )


def _sglang(planned: Plan) -> Recipe:
    load, window = planned.load, planned.window
    body = {
        "start_step": window.delay_iters,
        "num_steps": window.max_iters,
        "record_shapes": True,
    }
    return Recipe(
        "SGLang",
        "0.5",
        (
            "SGLANG_TORCH_PROFILER_DIR=/tmp/traces python -m sglang.launch_server \\",
            "  --model-path MODEL --enable-mixed-chunk --skip-server-warmup",
            "curl -X POST http://127.0.0.1:30000/start_profile \\",
            "  -H 'Content-Type: application/json' \\",
            f"  -d '{json.dumps(body)}'",
            "python -m sglang.bench_serving --backend sglang --dataset-name random \\",
            f"  --num-prompts {load.num_prompts} --max-concurrency {load.conc} \\",
            f"  --random-output-len {load.osl} --random-range-ratio {plain(load.r)} \\",
            "  --warmup-requests 0",
        ),
        (
            "start_step counts from the start of the server, not from the request: start the "
            "server anew for each profile.",
            "Without --enable-mixed-chunk a prefill is a step of its own, and the window comes up "
            f"to {math.ceil(window.delay_iters * load.ratio_raw):,} steps later.",
        ),
    )
