"""Hardware: what a device can do at best, and which device a trace ran on.

The figures are the files of data/arch; docs/architectures.md says what they hold and how a device
is recognised. Source: perf_models A2.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from tracehouse import resources
from tracehouse.errors import UsageError
from tracehouse.units import INT64_MAX

SPECS = (
    *(f"matrix_{p}" for p in "fp64 fp32 tf32 fp16 bf16 fp8 fp6 fp4 int8".split()),
    *(f"vector_{p}" for p in "fp64 fp32 fp16 bf16".split()),
)

_FOLDER = "arch"
_NEEDED = ("name", "mem_bw_gbps", "peak_tflops")
_OTHERS = (
    *("vendor", "matches", "memory_gb", "compute_units", "capability", "cache_mb", "clock_mhz"),
    "source",
)
_PEERS_KEYS = {"max_achievable_tflops": "peak_tflops", "num_cus": "compute_units"}
_FALLBACK = {"matrix_fp32": "vector_fp32", "matrix_fp64": "vector_fp64"}
_WARP_SIZE = {"NVIDIA": 32, "AMD": 64}
_NAMELESS = {"", "amd radeon graphics"}  # what ROCm says of an Instinct whose name it lacks
_GIB = 2**30
_USABLE = (0.90, 1.02)  # GDDR with ECC on leaves 15/16, firmware takes a little more
_LARGEST_FILE = 64 * 1024
_LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True)
class Arch:
    """What one device can do at best.

    mem_bw_gbps: 10⁹ bytes/s. memory_gb: as it is sold, in GiB (2³⁰ bytes) for nearly all.
    compute_units: SMs or CUs. cache_mb: the last cache that all of them share. peaks: TFLOPS by
    spec, e.g. `matrix_bf16`; dense. matches: a regex that the whole name of the device fits.
    capability: `major.minor` as deviceProperties gives it. None is unknown.
    """

    name: str
    vendor: str
    mem_bw_gbps: float
    memory_gb: float | None
    compute_units: int | None
    cache_mb: float | None
    peaks: Mapping[str, float] = field(hash=False)
    source: str
    clock_mhz: float | None = None
    capability: str | None = None
    matches: str = ""

    def peak_tflops(self, spec: str) -> float | None:
        """Return the peak of `spec`, e.g. `matrix_bf16`, in TFLOPS (TOPS of integers).

        Where no matrix unit takes fp32 or fp64, the vector units do that work and their peak
        holds. None if the table says nothing of it.
        """
        peak = self.peaks.get(spec)
        return self.peaks.get(_FALLBACK.get(spec, "")) if peak is None else peak


@functools.cache
def known() -> tuple[Arch, ...]:
    """Return the architectures of data/arch, in order of file name."""
    files = [name for name in resources.data_names(_FOLDER) if name.endswith(".json")]
    return tuple(
        _read(resources.data_text(f"{_FOLDER}/{name}"), f"data/{_FOLDER}/{name}", name)
        for name in files
    )


def recognise(device: Mapping[str, object]) -> Arch | None:
    """Return the architecture of one entry of a trace's deviceProperties, or None if in doubt.

    A name decides, if all that the device states (compute units, memory, capability, warp size)
    agrees with the file: a MIG slice or a CPX partition has fewer units than the part whose name
    it bears, and none of its peaks. A name that no file has is another part. Where ROCm lacks the
    name of an Instinct, those facts decide, if it states all of them; CUDA always gives the name,
    and NVIDIA boards of one chip differ in clocks.

    Of several that fit, none is taken, unless all their figures are equal: `MI210/MI250`.
    """
    name = device.get("name")
    name = name.strip() if isinstance(name, str) else ""
    if name.casefold() in _NAMELESS:
        fits = [a for a in known() if a.vendor == "AMD" and all(_agreement(a, device))]
    else:
        fits = [
            a
            for a in known()
            if re.fullmatch(a.matches, name, re.IGNORECASE) and False not in _agreement(a, device)
        ]
    if not fits or any(_figures(a) != _figures(fits[0]) for a in fits):
        return None
    return replace(fits[0], name="/".join(a.name for a in fits))


def chosen(name_or_path: str) -> Arch:
    """Return the architecture of that name, in any case, or of that JSON file.

    A name goes before a file of the same name.

    Raises:
        UsageError: There is no such name and no such file, or the file is not as
            docs/architectures.md says.
    """
    by_name = {arch.name.casefold(): arch for arch in known()}
    if name_or_path.casefold() in by_name:
        return by_name[name_or_path.casefold()]
    return _read(_text(name_or_path), name_or_path, Path(name_or_path).name)


def _agreement(arch: Arch, device: Mapping[str, object]) -> tuple[bool | None, ...]:
    """Compare what the device states with the file; None where either says nothing."""
    units, memory, warp, major, minor = (
        _count(device.get(key))
        for key in ("numSms", "totalGlobalMem", "warpSize", "computeMajor", "computeMinor")
    )
    usable = memory / (arch.memory_gb * _GIB) if memory and arch.memory_gb else None
    return (
        units == arch.compute_units if units and arch.compute_units else None,
        None if usable is None else _USABLE[0] <= usable <= _USABLE[1],
        warp == _WARP_SIZE.get(arch.vendor) if warp else None,
        f"{major}.{minor}" == arch.capability if major and minor is not None else None,
    )


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX:
        return value
    return None


def _figures(arch: Arch) -> Arch:
    return replace(arch, name="", source="", matches="")


def _text(name_or_path: str) -> str:
    path = Path(name_or_path)
    try:
        if not path.is_file():
            names = {arch.name.casefold(): arch.name for arch in known()}
            text = name_or_path.casefold()
            near = [name for name in names if name.startswith(text)]
            near = near or difflib.get_close_matches(text, names, 3)
            hint = f"did you mean {' or '.join(names[n] for n in near)}? " if near else ""
            _wrong(
                _shown(name_or_path),
                "neither the name of an architecture nor a file",
                f"{hint}known: {', '.join(names.values())}",
            )
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        _wrong(_shown(name_or_path), f"cannot be read: {error.strerror}", "is the path right?")
    if len(content) > _LARGEST_FILE:
        _wrong(name_or_path, f"larger than {_LARGEST_FILE:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _wrong(name_or_path, f"not UTF-8 at byte {error.start}")


def _wrong(where: str, what: str, hint: str = "docs/architectures.md has an example") -> NoReturn:
    raise UsageError(f"{where}: {what}", hint=hint)


def _read(text: str, where: str, file_name: str) -> Arch:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                _wrong(where, f"key {_shown(key)} is there {times} times")
        return dict(pairs)

    try:
        values = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        _wrong(where, f"no JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    except (RecursionError, ValueError) as error:
        _wrong(where, f"no JSON of ours: {error}")
    if not isinstance(values, dict):
        _wrong(where, "not a JSON object")
    _check_keys(where, values, (*_NEEDED, *_OTHERS))
    for key in _NEEDED:
        if key not in values:
            _wrong(where, f"key {key!r} is missing")
    word = functools.partial(_word, where, values)

    def number(key: str) -> float | None:
        return _positive(where, key, values[key]) if key in values else None

    return Arch(
        name=word("name"),
        vendor=word("vendor"),
        mem_bw_gbps=_positive(where, "mem_bw_gbps", values["mem_bw_gbps"]),
        memory_gb=number("memory_gb"),
        compute_units=_units(where, number("compute_units")),
        cache_mb=number("cache_mb"),
        peaks=_peaks(where, values["peak_tflops"]),
        source=word("source") or file_name,
        clock_mhz=number("clock_mhz"),
        capability=_pattern(where, "capability", word("capability"), _capability) or None,
        matches=_pattern(where, "matches", word("matches"), re.compile),
    )


def _peaks(where: str, values: object) -> dict[str, float]:
    if not isinstance(values, dict) or not values:
        _wrong(where, "peak_tflops: not a JSON object of TFLOPS by spec, e.g. matrix_bf16")
    where = f"{where}: peak_tflops"
    _check_keys(where, values, SPECS)
    return {spec: _positive(where, spec, value) for spec, value in values.items()}


def _check_keys(where: str, values: Mapping[str, object], allowed: Iterable[str]) -> None:
    allowed = tuple(allowed)
    for key in values:
        if key not in allowed:
            near = _PEERS_KEYS.get(key) or next(
                iter(difflib.get_close_matches(key, allowed, 1)), ""
            )
            hint = f"did you mean {near}?" if near in allowed else f"keys: {', '.join(allowed)}"
            _wrong(where, f"unknown key {_shown(key)}", hint)


def _positive(where: str, key: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if 0 < value and math.isfinite(value):
                return float(value)
        except OverflowError:
            pass
    _wrong(where, f"{key}: {_shown(value)} is no positive finite number")


def _units(where: str, value: float | None) -> int | None:
    if value is not None and value != int(value):
        _wrong(where, f"compute_units: {value} is no whole number")
    return None if value is None else int(value)


def _word(where: str, values: Mapping[str, object], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST_TEXT:
        _wrong(where, f"{key}: {_shown(value)} is no line of text")
    if key in _NEEDED and not value.strip():
        _wrong(where, f"{key}: empty")
    return value


def _pattern(where: str, key: str, text: str, check: Callable[[str], object]) -> str:
    try:
        check(text)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        _wrong(where, f"{key}: {_shown(text)}: {error}")
    return text


def _capability(text: str) -> None:
    if text and not re.fullmatch(r"\d{1,2}\.\d{1,2}", text, re.ASCII):
        raise ValueError("not major.minor, e.g. 9.0")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
