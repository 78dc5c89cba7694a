"""Two training steps of a two-layer perceptron on an H100, 2 ms apart.

Forward on the main thread, backward on autograd's own, then the optimizer.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from generators.kineto import H100, Drawing

AUTOGRAD_THREAD = 4300
PREFETCH_STREAM = 21
FLOAT = "float"
BATCH, DIM = 8192, 4096
GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, {}, std::array<char*, 2ul>>(int)"
FOREACH = "void at::native::multi_tensor_apply_kernel<{}>(int)"
ENGINE = "autograd::engine::evaluate_function: "


def draw() -> Drawing:
    """Draw both steps; README.md has the timeline of one."""
    d = Drawing("training", H100, envelope={"with_stack": 1, "cuda_runtime_version": 12080})
    for k in range(2):
        start = 2000 * k
        step = d.annotation(f"ProfilerStep#{3 + k}", start, 1900)
        frame = d.frame("train.py(30): train_step", start + 10, 1800)
        _forward(d, start, 10 * (k + 1), frame)
        _backward(d, start, 10 * (k + 1))
        _update(d, start, frame)
        d.call("cudaDeviceSynchronize", start + 850, 600)
        d.mirror(f"ProfilerStep#{3 + k}", start + 100, 1320, step)
    return d


def _forward(d: Drawing, start: int, sequence: int, frame: int) -> None:
    """Draw the copy of the input, two layers with a ReLU between them, the loss, and a fill."""
    with ExitStack() as open_ops:
        for at, dur, name in ((20, 40, "to"), (22, 36, "_to_copy"), (30, 26, "copy_")):
            open_ops.enter_context(d.op(f"aten::{name}", start + at, dur))
        call = d.launch("cudaMemcpyAsync", start + 35, 10)
    d.copy("HtoD", start + 100, 30, call, 4 * BATCH * DIM)

    net = d.frame("nn.Module: Net_0", start + 95, 210, frame)
    d.frame("nn.Module: Linear_0", start + 98, 54, net)
    _linear(d, start + 100, start + 200, sequence)
    d.frame("nn.Module: ReLU_0", start + 158, 34, net)
    with (
        d.op("aten::relu", start + 160, 30, **_forward_ids(sequence + 1)),
        d.op("aten::clamp_min", start + 165, 20, **_inputs([[BATCH, DIM], []], ["", "0"])),
    ):
        call = d.launch("cudaLaunchKernel", start + 170, 8)
    d.kernel(ELEMENTWISE.format("ClampMin"), start + 400, 40, call)
    d.frame("nn.Module: Linear_1", start + 198, 54, net)
    _linear(d, start + 200, start + 440, sequence + 2)

    with d.op("aten::mse_loss", start + 260, 40, **_forward_ids(sequence + 3)):
        call = d.launch("cudaLaunchKernel", start + 270, 8)
    d.kernel("void at::native::reduce_kernel<512, 1, MeanOps<float>>(int)", start + 650, 10, call)
    with d.op("aten::zeros", start + 308, 24), d.op("aten::zero_", start + 310, 20):
        call = d.launch("cudaMemsetAsync", start + 315, 7)
    d.memory(start + 309, 4096, 4096)
    d.fill(start + 670, 10, call, 4096)


def _linear(d: Drawing, host: int, gpu: int, sequence: int) -> None:
    dims = [[DIM], [BATCH, DIM], [DIM, DIM], [], []]
    inputs = _inputs(dims, ["", "", "", "1", "1"])
    with (
        d.op("aten::linear", host, 50),
        d.op("aten::addmm", host + 5, 40, **inputs, **_forward_ids(sequence)),
    ):
        call = d.launch("cudaLaunchKernel", host + 15, 10)
    d.kernel(GEMM, gpu, 200, call)


@dataclass(frozen=True, slots=True)
class Launched:
    """An op call that launches one kernel; times count from the start of the step."""

    op: str
    at: int
    dur: int
    gpu_at: int
    gpu_dur: int


KERNEL_OF = {
    "aten::mm": GEMM,
    "aten::mse_loss_backward": ELEMENTWISE.format("MseBackward"),
    "aten::threshold_backward": ELEMENTWISE.format("Threshold"),
}


def _backward(d: Drawing, start: int, sequence: int) -> None:
    """Draw the backward of loss, second layer, ReLU and first layer, on autograd's thread."""
    loss = Launched("aten::mse_loss_backward", 410, 20, 700, 10)
    _node(d, start, "MseLossBackward0", 400, 40, sequence + 3, loss)
    d.backward_of(start + 260, start + 405, sequence + 3, AUTOGRAD_THREAD)
    for_input = Launched("aten::mm", 460, 25, 710, 200)
    for_weight = Launched("aten::mm", 488, 22, 910, 200)
    _node(d, start, "AddmmBackward0", 450, 70, sequence + 2, for_input, for_weight)
    d.backward_of(start + 205, start + 455, sequence + 2, AUTOGRAD_THREAD)
    relu = Launched("aten::threshold_backward", 537, 16, 1110, 40)
    _node(d, start, "ReluBackward0", 530, 30, sequence + 1, relu)
    d.backward_of(start + 160, start + 535, sequence + 1, AUTOGRAD_THREAD)
    for_weight = Launched("aten::mm", 580, 25, 1150, 200)
    _node(d, start, "AddmmBackward0", 570, 50, sequence, for_weight)
    d.backward_of(start + 105, start + 575, sequence, AUTOGRAD_THREAD)
    _node(d, start, "torch::autograd::AccumulateGrad", 630, 20, None)


def _node(
    d: Drawing, start: int, name: str, at: int, dur: int, sequence: int | None, *ops: Launched
) -> None:
    """Draw a node of the backward graph, as the engine calls it."""
    ids = {} if sequence is None else {"Sequence number": sequence, "Fwd thread id": 1}
    tid = AUTOGRAD_THREAD
    with (
        d.op(ENGINE + name, start + at, dur, tid=tid, **ids),
        d.op(name, start + at + 5, dur - 10, tid=tid, **ids),
    ):
        inputs = _inputs([[BATCH, DIM], [DIM, DIM]], ["", ""])
        for op in ops:
            with d.op(op.op, start + op.at, op.dur, tid=tid, **inputs):
                call = d.launch("cudaLaunchKernel", start + op.at + 4, 8, tid=tid)
            d.kernel(KERNEL_OF[op.op], start + op.gpu_at, op.gpu_dur, call)


def _update(d: Drawing, start: int, frame: int) -> None:
    """Draw the optimizer, and the copy of the next batch on a stream of its own."""
    d.frame("torch/optim/optimizer.py(510): wrapper", start + 695, 110, frame)
    update = d.annotation("Optimizer.step#SGD.step", start + 700, 100)
    d.mirror("Optimizer.step#SGD.step", start + 1350, 70, update)
    with d.op("aten::_foreach_mul_", start + 710, 30):
        call = d.launch("cudaLaunchKernel", start + 715, 8)
    d.kernel(FOREACH.format("MulFunctor"), start + 1350, 20, call)
    with d.op("aten::_foreach_add_", start + 745, 45):
        calls = [d.launch("cudaLaunchKernel", start + at, 8) for at in (750, 765)]
    d.kernel(FOREACH.format("AddFunctor"), start + 1370, 20, calls[0])
    d.kernel(FOREACH.format("AddFunctor"), start + 1400, 20, calls[1])
    with d.op("aten::copy_", start + 805, 25):
        call = d.launch("cudaMemcpyAsync", start + 810, 8)
    d.copy("HtoD", start + 900, 100, call, 4 * BATCH * DIM, stream=PREFETCH_STREAM)
    d.memory(start + 835, -4096, 0)


def _inputs(dims: list[list[int]], values: list[str]) -> dict[str, Any]:
    types = [FLOAT if value == "" else "Scalar" for value in values]
    return {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}


def _forward_ids(sequence: int) -> dict[str, int]:
    return {"Sequence number": sequence, "Fwd thread id": 0}
