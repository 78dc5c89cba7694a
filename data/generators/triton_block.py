"""A compiled transformer block on an MI300X, with the Triton kernels of TraceLens' own example.

TransformerBlock(dim=2048, n_heads=16, mlp_ratio=4), batch 8, length 4096, bf16. The four Triton
kernels have the names, inputs and times of TraceLens' page "Triton kernel performance model": 79.4
and 505.3 µs as printed there, 93.2 and 140.9 µs from the printed rates (384 MiB at 4.32 TB/s,
512 MiB at 3.81 TB/s). The times of the matrix products and of attention are ours, and round.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from generators.kineto import MI300X, Drawing, Us

BF16 = "c10::BFloat16"
ROWS, DIM, HIDDEN = 32768, 2048, 8192  # rows = batch 8 · length 4096
GEMM = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1"
GRAPH = "## Call CompiledFxGraph fexampleblock ##"
STREAM = 0


@dataclass(frozen=True, slots=True)
class Triton:
    """A Triton kernel: its tensors and element counts, then its launch settings."""

    name: str
    tensors: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    blocks: str
    warps: int


RMS_NORM = Triton(
    "triton_red_fused_add_mean_mul_pow_rsqrt_0",
    ((8, 4096, DIM), (DIM,), (8, 4096, DIM)),
    (ROWS, DIM),
    "XBLOCK=2,R0_BLOCK=2048",
    8,
)
RMS_NORM_RESIDUAL = Triton(
    "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
    ((8, 4096, DIM), (ROWS, DIM), (DIM,), (8, 4096, DIM)),
    (ROWS, DIM),
    "XBLOCK=2,R0_BLOCK=2048",
    8,
)
SWIGLU = Triton(
    "triton_poi_fused__unsafe_view_mul_silu_2",
    ((8, 4096, HIDDEN), (ROWS, HIDDEN)),
    (ROWS * HIDDEN,),
    "XBLOCK=1024",
    4,
)
RESIDUAL = Triton(
    "triton_poi_fused__unsafe_view_add_3",
    ((8, 4096, DIM), (8, 4096, DIM), (ROWS, DIM)),
    (ROWS * DIM,),
    "XBLOCK=512",
    4,
)


def draw() -> Drawing:
    """Draw the block; README.md has the timeline."""
    d = Drawing("triton_block", MI300X, envelope={"hip_runtime_version": 70226015})
    with d.op("Torch-Compiled Region: 0/0", 100, 800):
        graph = d.annotation(GRAPH, 150, 740)
        _triton(d, RMS_NORM, 200, 300, "79.4")
        for host, at in ((250, 400), (300, 960), (350, 1520)):  # queries, keys, values
            _product(d, host, at, 560, DIM, DIM)
        _attention(d, 400, 2100, 3680)
        _product(d, 500, 5800, 560, DIM, DIM)
        _triton(d, RMS_NORM_RESIDUAL, 550, 6400, "93.2")
        for host, at in ((600, 6500), (650, 8300)):  # gate, up
            _product(d, host, at, 1800, DIM, HIDDEN)
        _triton(d, SWIGLU, 700, 10200, "505.3")
        _product(d, 750, 10800, 2000, HIDDEN, DIM)
        _triton(d, RESIDUAL, 800, 12900, "140.9")
    d.call("hipDeviceSynchronize", 950, 12150)
    d.mirror(GRAPH, 300, "12740.9", graph, stream=STREAM)
    return d


def _triton(d: Drawing, kernel: Triton, host: int, at: Us, dur: Us) -> None:
    scalars = len(kernel.counts)
    letters = random.Random(kernel.name)
    digest = "c" + "".join(letters.choices("abcdefghijklmnopqrstuvwxyz234567", k=51))
    args: dict[str, Any] = {
        "Input Dims": [*kernel.tensors, *[[]] * scalars],
        "Input Strides": [*map(_strides, kernel.tensors), *[[]] * scalars],
        "Input type": [BF16] * len(kernel.tensors) + ["Scalar"] * scalars,
        "Concrete Inputs": [""] * len(kernel.tensors) + [str(n) for n in kernel.counts],
        "num_warps": kernel.warps,
        "stream": STREAM,
        "kernel_backend": "triton",
        "kernel_name": kernel.name,
        "kernel_kwargs": kernel.blocks,
        "num_stages": 1,
        "kernel_file": f"torchinductor/{digest[1:3]}/{digest}.py",
        "kernel_hash": digest,
    }
    with d.op(kernel.name, host, 40, **args):
        d.call("hipPointerGetAttribute", host + 5, 2)
        call = d.launch("hipModuleLaunchKernel", host + 15, 10)
    block = int(kernel.blocks.partition(",")[0].removeprefix("XBLOCK="))
    grid = [-(-kernel.counts[0] // block), 1, 1]
    d.kernel(kernel.name, at, dur, call, stream=STREAM, kind="Dispatch Kernel", grid=grid)


def _product(d: Drawing, host: int, at: int, dur: int, inner: int, outer: int) -> None:
    dims = [[ROWS, inner], [inner, outer], [ROWS, outer]]
    args: dict[str, Any] = {
        "Input Dims": dims,
        "Input Strides": [[inner, 1], [1, inner], [outer, 1]],
        "Input type": [BF16] * 3,
        "Concrete Inputs": [""] * 3,
    }
    with d.op("aten::mm", host, 40, **args):
        call = d.launch("hipExtModuleLaunchKernel", host + 15, 10)
    d.kernel(GEMM, at, dur, call, stream=STREAM, kind="Dispatch Kernel")


def _attention(d: Drawing, host: int, at: int, dur: int) -> None:
    heads, length = [[8, 16, 4096, 128]] * 3, [[8, 4096, 16, 128]] * 3
    scale = "0.088388347648318433"
    outer: dict[str, Any] = {
        "Input Dims": [*heads, [], [], [], []],
        "Input type": [BF16] * 3 + ["Scalar"] * 4,
        "Concrete Inputs": ["", "", "", "0.", "False", "False", scale],
    }
    inner: dict[str, Any] = {
        "Input Dims": [*length, *[[]] * 10],
        "Input type": [BF16] * 3 + ["", "", *["Scalar"] * 6, "", ""],
        "Concrete Inputs": [*[""] * 5, "4096", "4096", "0.", "False", "False", scale, "", ""],
    }
    with d.op("aten::_scaled_dot_product_flash_attention", host, 90, **outer):
        for k in range(3):  # queries, keys, values
            d.leaf_op("aten::transpose", host + 2 + 5 * k, 4)
        with d.op("aten::_flash_attention_forward", host + 20, 60, **inner):
            call = d.launch("hipLaunchKernel", host + 50, 10)
    d.kernel("attn_fwd", at, dur, call, stream=STREAM, kind="Dispatch Kernel")


def _strides(dims: tuple[int, ...]) -> list[int]:
    """Return the strides of a contiguous tensor."""
    strides = [1]
    for size in reversed(dims[1:]):
        strides.insert(0, strides[0] * size)
    return strides
