"""The least time that work takes on a device, and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracehouse.analysis.columns import Ints, Words, spread
from tracehouse.analysis.kernel_hints import HOST, MEMORY, NETWORK, TF32
from tracehouse.analysis.op_work import Results, Spec
from tracehouse.formulas.arch import Arch
from tracehouse.spill import Spill

Reals = NDArray[np.float64]

COMPUTE, MEMORY_BOUND = "compute", "memory"
NO_DEVICE = "the device is not known: pass --arch"
NO_PEAK = "the device's peak of this kind is not known"
HOST_LINK = "a copy to or from the host: its link is the limit, not device memory"
NETWORK_LINK = "communication: the network is the limit, not device memory"
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of n calls.

    spec: key of the peak, NULL if none. peak_tflops, peak_tb_s: the device's, NaN if not known.
    roofline_ns: NaN if unknown. bound: compute or memory, NULL
    if unknown. why: the reason why there is no roofline although the work is known.
    """

    spec: Words
    peak_tflops: Reals
    peak_tb_s: Reals
    roofline_ns: Reals
    bound: Words
    why: Words

    def kept(self, spill: Spill) -> Limits:
        """Return the limits put away."""
        return Limits(
            spec=self.spec.kept(spill),
            peak_tflops=spill.array(self.peak_tflops),
            peak_tb_s=spill.array(self.peak_tb_s),
            roofline_ns=spill.array(self.roofline_ns),
            bound=self.bound.kept(spill),
            why=self.why.kept(spill),
        )


def limits(results: Results, bits: Ints, arch: Ints, archs: Sequence[Arch | None]) -> Limits:
    """Find the limits of calls.

    Args:
        results: their work.
        bits: what the names of their kernels tell (kernel_hints).
        arch: place of their device in `archs`.
        archs: the devices; None is not known.

    Returns:
        The roofline: the longer of the times that the FLOPs take at the peak and the bytes at the
        memory's bandwidth (perf_models A2). Work of no FLOPs, and vector work of a type without a
        peak such as integers, is bound by memory. A matrix product of a type without a peak has no
        roofline, nor has what passes a link to the host or to other devices: all of the work, or
        some where it only moves data.
    """
    spec = spread(*_specs(results.specs, results.spec, bits))
    peak = _looked_up(spec, arch, archs)
    width = np.array([np.nan if a is None else a.mem_bw_gbps for a in archs])[arch]
    with np.errstate(invalid="ignore", divide="ignore"):
        compute = results.flops / peak / 1e3
        memory = results.bytes / width
        computes = (results.flops > 0) & _of_specs(results, [s.unit != "" for s in results.specs])
        is_matrix = _of_specs(results, [s.unit == "matrix" for s in results.specs])
        usable = ~computes | ~np.isnan(peak) | ~is_matrix
        is_compute = computes & (compute >= memory)
    linked = bits & (HOST | NETWORK)
    is_local = (linked == 0) | ((bits & MEMORY != 0) & (results.flops > 0))
    known = ~np.isnan(memory) & ~np.isnan(results.flops) & usable & is_local & (results.bytes > 0)
    roofline = np.where(known, np.where(is_compute, compute, memory), np.nan)
    bound = spread(np.where(known, is_compute, -1).astype(np.int32), [MEMORY_BOUND, COMPUTE])
    no_device = np.array([a is None for a in archs], dtype=np.bool_)[arch]
    reasons = [NO_DEVICE, NO_PEAK, HOST_LINK, NETWORK_LINK]
    reason = np.where(
        ~is_local,
        np.where(linked & HOST != 0, 2, 3),
        np.where(no_device, 0, np.where(usable, -1, 1)),
    )
    worked = ~np.isnan(results.flops) & ~np.isnan(results.bytes) & np.isnan(roofline)
    why = spread(np.where(worked, reason, -1).astype(np.int32), reasons)
    return Limits(spec, peak, width / 1e3, roofline, bound, why)


def in_cache(results: Results, arch: Ints, archs: Sequence[Arch | None]) -> NDArray[np.bool_]:
    """Tell which calls move no more bytes than the device's last cache holds."""
    sizes = [None if a is None else a.cache_mb for a in archs]
    cache = np.array([np.nan if size is None else size * _MIB for size in sizes])[arch]
    with np.errstate(invalid="ignore"):
        return results.bytes <= cache


def _specs(
    specs: Sequence[Spec], spec: Ints, bits: Ints
) -> tuple[NDArray[np.int32], list[str | None]]:
    """Return the code of each call's peak, and the keys: products of fp32 may run in TF32."""
    plain = [f"{s.unit}_{s.precision}" if s.unit and s.precision else None for s in specs]
    tf32 = ["matrix_tf32" if word == "matrix_fp32" else word for word in plain]
    code = np.where(bits & TF32 != 0, spec + len(specs), spec)
    return code.astype(np.int32), [*plain, *tf32]


def _looked_up(spec: Words, arch: Ints, archs: Sequence[Arch | None]) -> Reals:
    """Return the peak of each call in TFLOPS, NaN where it is not known."""
    table = np.full((len(archs), len(spec.values) + 1), np.nan)
    for place, device in enumerate(archs):
        for code, word in enumerate(spec.values):
            peak = None if device is None else device.peak_tflops(word)
            table[place, code] = np.nan if peak is None else peak
    return table[arch, spec.codes]


def _of_specs(results: Results, flags: list[bool]) -> NDArray[np.bool_]:
    return np.array(flags, dtype=np.bool_)[results.spec]
