"""What the name of a GPU activity says: its kind and its short form."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from tracehouse.vocab import Category, Kind

_REMEMBERED = 8_192  # names: an archive has the same ones in trace after trace


class _Rule(NamedTuple):
    pattern: str
    why: str


# Kernels that move data between GPUs. Words such as dispatch or combine alone say nothing: MoE
# layers and CUTLASS use them for local work, so these rules ask for the library's name beside them.
COMM_RULES = (
    _Rule(r"nccl|rccl", "NCCL and RCCL"),
    _Rule(r"cross_device_reduce", "custom all-reduce of vLLM, SGLang and aiter"),
    _Rule(r"(reduce_scatter|all_?gather)_cross_device", "aiter's fused all-reduce, its two halves"),
    _Rule(r"quick_?reduce|allreduce_prototype", "QuickReduce"),
    _Rule(r"(one|two)_?shot_?all_?reduce", "symmetric memory, TensorRT-LLM, FlashInfer"),
    _Rule(r"multimem_(one_shot_|two_shot_)?(all_|reduce_)", "symmetric memory by multicast"),
    _Rule(r"all_?reduce_?fusion", "all-reduce fused with a norm: aiter, TensorRT-LLM, FlashInfer"),
    _Rule(r"nvshmem", "NVSHMEM"),
    _Rule(r"deep_ep(::|\d+)(intra|inter)node", "DeepEP dispatch and combine, mangled or not"),
    _Rule(r"Ep(Dispatch|Combine)(Intra|Inter)Node", "MORI expert parallelism"),
    _Rule(r"mscclpp|mscclKernel", "MSCCL++ and MSCCL"),
    _Rule(r"oneccl|\bpccl", "oneCCL, PCCL"),
    _Rule(r"userbuffers_", "TransformerEngine's overlapped communication"),
)
_COMM = re.compile("|".join(f"(?:{rule.pattern})" for rule in COMM_RULES), re.IGNORECASE)

# ROCm copies and fills by a kernel (perf_models B4, field_cases F32).
_ROCM_COPY = re.compile(
    r"(?:MEMORY_COPY_(?:HOST_TO_DEVICE|DEVICE_TO_HOST|DEVICE_TO_DEVICE)"
    r"|__amd_rocclr_copyBuffer(?:Rect)?(?:Aligned)?)(?:\.kd)?"
)
_ROCM_FILL = re.compile(r"__amd_rocclr_fillBuffer(?:Aligned)?(?:\.kd)?")
_NAMELESS = frozenset({"", "unknown"})


def says_nothing(name: str) -> bool:
    """Return whether a name is empty or `unknown` (field_cases F31)."""
    return name.strip().lower() in _NAMELESS


def actual_category(category: Category, name: str) -> Category:
    """Return the category of a GPU activity: a copy or fill that was filed as a kernel is none.

    Source: field_cases F32.
    """
    if category is Category.KERNEL:
        if name.startswith("Memcpy "):
            return Category.MEMCPY
        if name.startswith("Memset "):
            return Category.MEMSET
    return category


@functools.lru_cache(_REMEMBERED)
def kind_of(category: Category, name: str) -> Kind:
    """Return the kind of a GPU activity; `category` is its actual one.

    Source: perf_models B4; COMM_RULES go beyond it (C32).
    """
    if category is Category.MEMCPY or _ROCM_COPY.fullmatch(name):
        return Kind.MEMCPY
    if category is Category.MEMSET or _ROCM_FILL.fullmatch(name):
        return Kind.MEMSET
    return Kind.COMM if _COMM.search(name) else Kind.COMPUTE


_OPENING = {"<": ">", "(": ")", "{": "}", "[": "]"}
_CLOSING = frozenset(_OPENING.values())
_BRACKET = re.compile(r"([<>(){}\[\]])")
_MANGLED_PART = re.compile(r"(\d+)")


def _outside_brackets(text: str) -> str:
    """Return what stands outside all brackets; an arrow inside does not close one."""
    kept: list[str] = []
    expected: list[str] = []
    for piece in _BRACKET.split(text):
        if piece in _OPENING:
            expected.append(_OPENING[piece])
        elif expected:
            if piece == expected[-1]:
                expected.pop()
        elif piece not in _CLOSING:
            kept.append(piece)
    return "".join(kept)


def _last_mangled_part(name: str) -> str | None:
    """Return the last identifier of the leading qualified name of an Itanium mangled name."""
    at = 3 if name.startswith("_ZN") else 2
    found = None
    while part := _MANGLED_PART.match(name, at):
        begin = part.end()
        at = begin + int(part[1])
        if at > len(name):
            break
        found = name[begin:at]
    # A nested name ends in E, or goes on with template arguments or the like; else it is none.
    if name.startswith("_ZN") and name[at : at + 1] not in tuple("EICDB"):
        return None
    return found


@functools.lru_cache(_REMEMBERED)
def short_name(name: str) -> str:
    """Return a kernel's name without return type, namespaces, template and call arguments.

    `void at::native::reduce_kernel<512, 1>(int)` gives `reduce_kernel`; a name that leaves nothing
    is returned whole.
    """
    plain = name.removesuffix(".kd").removesuffix(" [clone .kd]")
    if plain.startswith("_Z"):
        return _last_mangled_part(plain) or name
    words = _outside_brackets(plain.replace("(anonymous namespace)", "_")).split()
    if len(words) > 1 and (words[0] == "void" or "::" in words[-1]):
        words = words[-1:]
    parts = [part for part in " ".join(words).split("::") if part]
    return parts[-1] if parts else name
