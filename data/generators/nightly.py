"""Nightly runs of one job on an H100: two steps of a two-layer transformer, with noise.

Every kernel call takes its time with 2 % of noise, and every run is off by 0.5 % as a whole, as by
the clock of the device. From one night on the second product of the MLP runs another kernel, which
takes 8 % longer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from generators.kineto import BASE_TIME_NS, H100, Drawing, us_text

NIGHT_NS = 86_400_000_000_000
TOKENS, WIDTH, HIDDEN = 4096, 2048, 8192
BF16 = "c10::BFloat16"
STEPS, LAYERS = 2, 2
STEP_US = 5_000


@dataclass(frozen=True, slots=True)
class Call:
    """An op call of a layer: its inputs, the kernel that it launches, and how long that takes."""

    op: str
    dims: tuple[tuple[int, ...], ...]
    kernel: str
    ns: int


def _gemm(tile: str) -> str:
    return f"nvjet_tst_{tile}_v_bz_coopA_NNT"


_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, {}, std::array<char*, 3ul>>(int)"
_HEADS = (1, 16, TOKENS, 128)

LAYER = (
    Call(
        "aten::native_layer_norm",
        ((TOKENS, WIDTH), (), (WIDTH,), (WIDTH,)),
        "void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
        18_000,
    ),
    Call("aten::mm", ((TOKENS, WIDTH), (WIDTH, 3 * WIDTH)), _gemm("256x128_64x4_2x1"), 165_000),
    Call(
        "aten::_flash_attention_forward",
        (_HEADS, _HEADS, _HEADS),
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false>>(int)",
        310_000,
    ),
    Call("aten::mm", ((TOKENS, WIDTH), (WIDTH, WIDTH)), _gemm("128x128_64x5_2x1"), 62_000),
    Call(
        "aten::add", ((TOKENS, WIDTH), (TOKENS, WIDTH)), _ELEMENTWISE.format("CUDAFunctor_add"),
        21_000,
    ),
    Call("aten::mm", ((TOKENS, WIDTH), (WIDTH, HIDDEN)), _gemm("256x128_64x4_1x2"), 225_000),
    Call("aten::gelu", ((TOKENS, HIDDEN),), _ELEMENTWISE.format("GeluCUDAKernelImpl"), 58_000),
    Call("aten::mm", ((TOKENS, HIDDEN), (HIDDEN, WIDTH)), _gemm("192x128_64x4_1x2"), 238_000),
)  # fmt: skip
SLOW_CALL = LAYER[-1]
SLOW_KERNEL = _gemm("128x64_64x7_1x1")


def draw(
    job: str,
    night: int,
    *,
    slowdown: float = 0.0,
    noise: float = 0.02,
    run_noise: float = 0.005,
) -> Drawing:
    """Draw the run of `job` of one night; the name and the night give the noise.

    slowdown: by how much SLOW_CALL takes longer, e.g. 0.08; its kernel is SLOW_KERNEL then.
    noise, run_noise: standard deviation of a call, and of all calls of a run together.
    """
    rolled = random.Random(f"{job} {night}")
    run_factor = rolled.gauss(1, run_noise)
    d = Drawing(
        f"{job}-{night:02d}",
        H100,
        base_time_ns=BASE_TIME_NS + night * NIGHT_NS,
        envelope={"cuda_runtime_version": 12080},
    )
    for step in range(STEPS):
        start = STEP_US * step
        annotation = d.annotation(f"ProfilerStep#{10 + step}", start, 2_600)
        host, gpu_ns = start + 20, (start + 60) * 1000
        first_ns = gpu_ns
        for _ in range(LAYERS):
            for call in LAYER:
                is_slow = bool(slowdown) and call is SLOW_CALL
                length = call.ns * (1 + slowdown if is_slow else 1)
                length_ns = round(length * run_factor * rolled.gauss(1, noise))
                kernel = SLOW_KERNEL if is_slow else call.kernel
                _launch(d, call, kernel, host, gpu_ns, length_ns)
                host += 60
                gpu_ns = max(gpu_ns + length_ns + 1_500, (host + 20) * 1000)
        mirrored = us_text(gpu_ns - first_ns)
        d.mirror(f"ProfilerStep#{10 + step}", us_text(first_ns), mirrored, annotation)
    return d


def _launch(d: Drawing, call: Call, kernel: str, host: int, gpu_ns: int, length_ns: int) -> None:
    args: dict[str, Any] = {
        "Input Dims": [list(dims) for dims in call.dims],
        "Input type": [BF16 if dims else "ScalarList" for dims in call.dims],
        "Concrete Inputs": ["" if dims else f"[{WIDTH}]" for dims in call.dims],
    }
    with d.op(call.op, host, 40, **args):
        correlation = d.launch("cudaLaunchKernel", host + 10, 8)
    d.kernel(kernel, us_text(gpu_ns), us_text(length_ns), correlation)
