"""The words of the field: event categories, kinds of GPU activity, roles of annotations."""

from __future__ import annotations

import re
from enum import StrEnum


class Category(StrEnum):
    """Canonical categories of the events that the analysis uses."""

    CPU_OP = "cpu_op"
    RUNTIME = "cuda_runtime"
    DRIVER = "cuda_driver"
    KERNEL = "kernel"
    MEMCPY = "gpu_memcpy"
    MEMSET = "gpu_memset"
    USER_ANNOTATION = "user_annotation"
    GPU_USER_ANNOTATION = "gpu_user_annotation"


GPU_CATEGORIES = frozenset({Category.KERNEL, Category.MEMCPY, Category.MEMSET})
HOST_CATEGORIES = frozenset(
    {Category.CPU_OP, Category.RUNTIME, Category.DRIVER, Category.USER_ANNOTATION}
)

# Old and vendor spellings, lower-cased (field_cases F25). Further vendors' calls end likewise.
_SPELLINGS = {
    "operator": Category.CPU_OP,
    "runtime": Category.RUNTIME,
    "driver": Category.DRIVER,
    "memcpy": Category.MEMCPY,
    "memset": Category.MEMSET,
    **{c.value: c for c in Category},
}
_VENDORS_CALLS = (("_runtime", Category.RUNTIME), ("_driver", Category.DRIVER))


def canonical_category(text: str | None) -> Category | None:
    """Return the canonical category of a category as spelled in a file.

    None if the analysis has no use for it. Of a list, as the format allows (`kernel,gpu`), the
    first word that says something counts.
    """
    words = [] if text is None else [word.strip() for word in text.lower().split(",")]
    return next((found for word in words if (found := _canonical(word)) is not None), None)


def _canonical(word: str) -> Category | None:
    vendors = (category for suffix, category in _VENDORS_CALLS if word.endswith(suffix))
    return _SPELLINGS.get(word) or next(vendors, None)


class Kind(StrEnum):
    """Kinds of GPU activity (perf_models.md B4)."""

    COMPUTE = "compute"
    COMM = "comm"
    MEMCPY = "memcpy"
    MEMSET = "memset"


class Link(StrEnum):
    """How a GPU activity was tied to the host."""

    CORRELATION = "correlation"
    EXTERNAL_ID = "external_id"
    CAPTURE = "capture"  # its op was recorded when its graph was captured
    NONE = "none"


class Unlinked(StrEnum):
    """Why a GPU activity is not tied to the host."""

    PRE_WINDOW = "pre_window"  # launched before the recording began
    NO_CORRELATION = "no_correlation"
    AMBIGUOUS = "ambiguous"  # unrelated launches share its id
    MISSING = "missing"  # its launch call was not recorded


class Role(StrEnum):
    """Roles of annotations."""

    STEP = "step"
    SUB_STEP = "sub-step"  # work of a draft model within one step
    DUMMY = "dummy"  # a run without requests: warm-up, or waiting for other workers
    CAPTURE = "capture"  # a graph is captured, not replayed
    OTHER = "other"


class Status(StrEnum):
    """Statuses of a trace; they speak of its text."""

    OK = "ok"
    REPAIRED = "repaired"
    PARTIAL = "partial"
    REJECTED = "rejected"


class FileRole(StrEnum):
    """What files are for."""

    TRACE = "trace"
    CAPTURE = "capture"  # it shows how graphs were captured that the traces beside it replay


GRAPH_LAUNCH = re.compile(r"^[a-z]+GraphLaunch", re.ASCII)  # cuda, cu, hip and others
