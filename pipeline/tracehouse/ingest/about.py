"""What a trace says of itself.

Rank, devices, versions, clock; from its envelope, its words and its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

# rank3, rank-3, rank_3 at a word's border; -TP-1-; field_cases F63. A local rank counts the GPUs of
# one host, not the ranks of a job.
_RANK_IN_NAME = re.compile(
    r"(?<!local)(?<!local[-_])(?:^|[^a-z])rank[-_=]?(\d{1,6})(?![0-9])|[-_]TP-(\d{1,4})[-_.]",
    re.IGNORECASE,
)
# Engines, by what their op and annotation names hold.
_ENGINES = {"sglang": "sglang", "vllm": "vllm::"}  # SGLang runs ops of vLLM too
_SHORT = 200


@dataclass(frozen=True, slots=True)
class About:
    """Facts of one trace; None where it says nothing."""

    framework: str | None
    torch_version: str | None
    world_size: int | None
    rank: int | None
    devices: tuple[str, ...]
    arch: str | None
    base_time_ns: int | None


def about(envelope: dict[str, Any], names: Collection[str], path: str) -> About:
    """Collect the facts; `names` are the distinct event names, `path` the file's."""
    job = _mapping(envelope.get("distributedInfo"))
    rank = _integer(job.get("rank"))
    rank = rank if rank is None or rank >= 0 else None  # -1: not of a job
    devices = tuple(
        str(device["name"])[:_SHORT]
        for device in _list(envelope.get("deviceProperties"))
        if isinstance(device, dict) and isinstance(device.get("name"), str)
    )
    used = {device for device in devices if device}
    return About(
        framework=_framework(envelope, names),
        torch_version=_text(envelope.get("torch_version") or envelope.get("pytorch_version")),
        world_size=_integer(job.get("world_size")),
        rank=_rank_of_name(path) if rank is None else rank,
        devices=devices,
        arch=used.pop() if len(used) == 1 else None,
        base_time_ns=_integer(envelope.get("baseTimeNanoseconds")),
    )


def _framework(envelope: dict[str, Any], names: Collection[str]) -> str | None:
    for engine, mark in _ENGINES.items():
        if any(mark in name for name in names):
            return engine
    return "pytorch" if "schemaVersion" in envelope else None


def _rank_of_name(path: str) -> int | None:
    match = _RANK_IN_NAME.search(path.rpartition("/")[2])
    return int(match[1] or match[2]) if match else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value[:_SHORT] if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    """An integer that fits 63 bits, also one in quotes (field_cases F41)."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    return value
