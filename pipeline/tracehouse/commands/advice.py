"""How to capture a better trace: a table of what to look for and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the advices look at.

    codes: of `issues`. failing: names of `checks` that are not ok. records_shapes: what the file
    says of itself.
    categories: events by category as spelled in the file. generic_kernels: distinct kernel names
    that a Triton kernel has when Inductor gives none. has_steps: whether an annotation is a step.
    """

    codes: frozenset[str]
    failing: frozenset[str]
    categories: Mapping[str, int]
    framework: str | None
    world_size: int | None
    records_shapes: bool
    generic_kernels: int
    has_comm: bool
    has_ops: bool
    has_steps: bool


@dataclass(frozen=True, slots=True)
class Advice:
    """One advice: when it applies, and its words."""

    name: str
    applies: Callable[[Evidence], bool]
    words: str


def _any_code(*words: str) -> Callable[[Evidence], bool]:
    return lambda seen: not seen.codes.isdisjoint(words)


def _fails(*names: str) -> Callable[[Evidence], bool]:
    return lambda seen: not seen.failing.isdisjoint(names)


def _lacks_rank(seen: Evidence) -> bool:
    """A single process needs no rank; one of several does."""
    several = seen.has_comm or (seen.world_size or 1) > 1
    return several and "RANK_UNKNOWN" in seen.codes


ADVICES = (
    Advice(
        "no_events",
        _any_code("NO_EVENTS"),
        "The profiler recorded nothing: call prof.step() past wait and warmup before export, and "
        "export after stop().",
    ),
    Advice(
        "no_gpu",
        lambda seen: "NO_GPU_EVENTS" in seen.codes and "NO_EVENTS" not in seen.codes,
        "Record the GPU: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] (CUDA stands for "
        "ROCm too). If it was on, another profiler held CUPTI or roctracer: stop it.",
    ),
    Advice(
        "truncated",
        _any_code("TRUNCATED"),
        "Let the profiler finish before the process ends, and look for a full disk; write to local "
        "disk under another name, then rename.",
    ),
    Advice(
        "one_writer",
        _any_code("INTERLEAVED_WRITERS", "MULTI_DOC", "RANKS_MERGED"),
        "Give each process a file of its own: put the rank into the name, or use "
        "tensorboard_trace_handler with worker_name.",
    ),
    Advice(
        "repaired",
        lambda seen: any(c.startswith("REPAIRED_") or c == "DROPPED_EVENT" for c in seen.codes),
        "Keep quotes, backslashes and control characters out of the names given to record_function "
        "and of add_metadata_json, or use a newer PyTorch, which escapes them.",
    ),
    Advice(
        "pre_window",
        _fails("pre_window_pct"),
        "Call torch.cuda.synchronize() before the recording starts, and let "
        "schedule(wait=…, warmup=…) skip the first steps: then no older work runs inside.",
    ),
    Advice(
        "unlinked",
        _fails("unlinked_pct", "ambiguous_correlations"),
        "Record the host too (ProfilerActivity.CPU), with the process that launches the kernels; "
        "launches from a binding that the profiler does not see stay unlinked.",
    ),
    Advice(
        "graphs",
        _fails("graph_without_op_pct"),
        "Take a trace while the graphs are captured and keep it in a folder capture_traces beside "
        "this one, or name it with --capture: it has the ops and shapes of each graph (vLLM and "
        "SGLang can write such a folder). Or run eagerly once.",
    ),
    Advice(
        "launches_without_op",
        _fails("launch_without_op_pct"),
        "Wrap code that launches kernels itself in record_function, or register it as a custom op: "
        "then its GPU time has a name.",
    ),
    Advice(
        "shapes",
        lambda seen: "without_shapes_pct" in seen.failing and not seen.records_shapes,
        "Record shapes: profile(record_shapes=True). Without them there are no FLOPs, no bytes, no "
        "roofline.",
    ),
    Advice(
        "triton_names",
        lambda seen: seen.generic_kernels > 0,
        "Set TORCHINDUCTOR_UNIQUE_KERNEL_NAMES=1 before compiling: Triton kernels then say what "
        "they fuse.",
    ),
    Advice(
        "steps",
        lambda seen: seen.has_ops and not seen.has_steps and seen.framework in (None, "pytorch"),
        "Call prof.step() after each iteration: without steps there is no time per step.",
    ),
    Advice(
        "stacks",
        lambda seen: seen.has_ops and "python_function" not in seen.categories,
        "To see which line called an op, take a second trace with with_stack=True; it slows the "
        "host, so keep this one for times.",
    ),
    Advice(
        "rank",
        _lacks_rank,
        "Say which rank this is: put rank0, rank1 … into the file name, or initialise "
        "torch.distributed before the profiler starts.",
    ),
    Advice(
        "clocks",
        _fails("clock_domains", "early_kernels_pct", "clipped_kernels", "untimed_kernels"),
        "The GPU's times are off: use a newer driver and profiler (CUPTI, roctracer), and record a "
        "shorter window.",
    ),
    Advice(
        "secrets",
        _any_code("SECRET_REDACTED"),
        "The file itself still holds secrets: change those tokens, delete or scrub the file, and "
        "keep the environment out of the trace's metadata.",
    ),
    Advice(
        "suffix",
        _any_code("WRONG_SUFFIX"),
        "Rename the file after what it is (.json, .json.gz, .zst, .zip): other tools go by the "
        "name.",
    ),
)


def advices(seen: Evidence) -> tuple[Advice, ...]:
    """Return the advices that apply, in the order of the table."""
    return tuple(advice for advice in ADVICES if advice.applies(seen))
