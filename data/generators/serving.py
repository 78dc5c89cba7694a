"""A vLLM server on an H100: ramp-up, steady state, ramp-down; twenty steps, 1 ms apart.

At most eight requests run at once. Every prompt has 512 tokens, but for request F, whose 1024 are
prefilled in two chunks. A decode step is one graph launch; a step with prefill is launched kernel
by kernel. The model has two layers, 32 query and 8 KV heads of 128.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from generators.kineto import H100, Drawing

BF16 = "c10::BFloat16"
CHUNK = 512
STEPS = 20
PITCH = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the step of its first chunk, its prompt and the step of its last token.

    It does nothing in the steps `stalled`.
    """

    first: int
    prompt: int
    last: int
    stalled: range = range(0)

    def context(self, step: int) -> tuple[int, int]:
        """Return (query tokens, key tokens) prefilled in `step`; (0, 0) if none."""
        done = (step - self.first) * CHUNK
        return (CHUNK, done + CHUNK) if 0 <= done < self.prompt else (0, 0)

    def generation(self, step: int) -> int:
        """Return the key tokens of its decode in `step`; 0 if it does not decode then."""
        if step in self.stalled:
            return 0
        generated = step - self.first - self.prompt // CHUNK + 1
        return self.prompt + generated if generated > 0 and step <= self.last else 0


REQUESTS = (
    *(Request(0, 512, 6), Request(0, 512, 9)),  # A
    *(Request(1, 512, 13), Request(1, 512, 17)),  # B
    *(Request(2, 512, 15), Request(2, 512, 15)),  # C
    *(Request(3, 512, 16), Request(3, 512, 16)),  # D
    Request(7, 512, 17),  # E
    Request(10, 1024, 18),  # F, in two chunks
    Request(14, 512, 18),  # G
)


def annotation(step: int, requests: Sequence[Request] = REQUESTS) -> tuple[str, int, int]:
    """Return the wording of a step, its tokens and its number of prefilled requests."""
    chunks = [c for c in (r.context(step) for r in requests) if c[0]]
    keys = [k for k in (r.generation(step) for r in requests) if k]
    sq, sk = sum(q for q, _ in chunks), sum(k for _, k in chunks)
    sqsq, sqsk = sum(q * q for q, _ in chunks), sum(q * k for q, k in chunks)
    n = len(keys)  # one query token each
    tokens = sq + n
    context = f"context_{len(chunks)}(sq{sq}sk{sk}sqsq{sqsq}sqsk{sqsk})"
    generation = f"generation_{n}(sq{n}sk{sum(keys)}sqsq{n}sqsk{sum(keys)})"
    return f"execute_{tokens}_{context}_{generation}", tokens, len(chunks)


def draw(requests: Sequence[Request] = REQUESTS, steps: int = STEPS) -> Drawing:
    """Draw the run; README.md has the timeline of a step and the table of steps."""
    d = Drawing("serving", H100, envelope={"cuda_runtime_version": 12080})
    for step in range(steps):
        name, tokens, prefills = annotation(step, requests)
        start = step * PITCH
        if tokens == 0:
            d.annotation(name, start, 50)
            continue
        length, gpu_end = (870, 835) if prefills else (460, 435)
        external = d.annotation(name, start, length)
        _copy(d, "HtoD", start + 20, 20, start + 150, 10, 8 * tokens)
        if prefills:
            _eager_layers(d, start, tokens)
        else:
            _graph_layers(d, start)
        _sample(d, start, gpu_end, prefills > 0)
        d.mirror(name, start + 150, gpu_end - 150, external)
    return d


def _eager_layers(d: Drawing, start: int, tokens: int) -> None:
    """Draw two layers of 60 + 80 + 40 + 120 µs, launched one by one."""
    for layer in range(2):
        host, gpu = start + 50 + 100 * layer, start + 200 + 300 * layer
        _product(d, host, gpu, 60, tokens, 4096, 6144)
        q, kv = [tokens, 32, 128], [tokens, 8, 128]
        args: dict[str, Any] = {
            "Input Dims": [q, kv, kv, q, []],
            "Input type": [BF16] * 4 + [""],
            "Concrete Inputs": [""] * 5,
        }
        with d.op("vllm::unified_attention_with_output", host + 25, 20, **args):
            call = d.launch("cuLaunchKernelEx", host + 30, 8, cat="cuda_driver")
        d.kernel("kernel_unified_attention_2d", gpu + 60, 80, call)
        _product(d, host + 50, gpu + 140, 40, tokens, 4096, 4096)
        _product(d, host + 75, gpu + 180, 120, tokens, 4096, 14336)


def _product(
    d: Drawing, host: int, gpu: int, dur: int, tokens: int, inner: int, outer: int
) -> None:
    args: dict[str, Any] = {
        "Input Dims": [[tokens, inner], [inner, outer]],
        "Input type": [BF16] * 2,
        "Input Strides": [[inner, 1], [1, inner]],
        "Concrete Inputs": [""] * 2,
    }
    with d.op("aten::mm", host, 20, **args):
        call = d.launch("cudaLaunchKernelExC", host + 5, 8)
    d.kernel("nvjet_tst_128x64_64x8_2x1_v_bz_TNT", gpu, dur, call)


def _graph_layers(d: Drawing, start: int) -> None:
    """Draw two layers of 20 + 30 + 10 + 40 µs, started by one graph launch."""
    call = d.launch("cudaGraphLaunch", start + 60, 60)
    gemm, attention = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "kernel_unified_attention_3d"
    at = start + 200
    nodes = [(gemm, 20), (attention, 30), (gemm, 10), (gemm, 40)] * 2
    for node, (name, dur) in enumerate(nodes, start=1):
        d.kernel(name, at, dur, call, **{"graph id": 17, "graph node id": (17 << 32) + node})
        at += dur


def _sample(d: Drawing, start: int, gpu_end: int, is_eager: bool) -> None:
    """Draw the choice of the next tokens and their way back to the host."""
    host = start + (260 if is_eager else 140)
    args: dict[str, Any] = {
        "Input Dims": [[8, 32000], [], []],
        "Input type": [BF16, "Scalar", "Scalar"],
        "Concrete Inputs": ["", "-1", "False"],
    }
    with d.op("aten::argmax", host, 20, **args):
        call = d.launch("cudaLaunchKernel", host + 5, 8)
    end = start + gpu_end
    d.kernel("void at::native::reduce_kernel<512, 1, ArgMaxOps<float>>(int)", end - 25, 10, call)
    _copy(d, "DtoH", host + 30, end + 15 - (host + 30), end - 5, 5, 64, waits_until=end + 5)


def _copy(
    d: Drawing,
    kind: str,
    host: int,
    length: int,
    gpu: int,
    dur: int,
    size: int,
    waits_until: int = 0,
) -> None:
    args: dict[str, Any] = {
        "Input Dims": [[size // 8], [size // 8], []],
        "Input type": ["long int", "long int", "Scalar"],
        "Concrete Inputs": ["", "", "True"],
    }
    with d.op("aten::copy_", host, length, **args):
        call = d.launch("cudaMemcpyAsync", host + 5, 8)
        if waits_until:
            d.call("cudaStreamSynchronize", host + 15, waits_until - (host + 15))
    d.copy(kind, gpu, dur, call, size)
