"""One step of sharded training on two H100s: rank 1 comes late, and the collectives pay for it.

Both ranks are on one clock. The first product of rank 1 takes 260 µs for 200, so that its
reduce-scatter starts 60 µs late, and rank 0 waits in its own. The second all-gather is hidden
behind the first product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from generators.kineto import H100, Drawing

BF16 = "c10::BFloat16"
SHARD, FULL = 8388608, 16777216  # elements
NCCL_STREAM, COPY_STREAM = 20, 22
STORAGE = "(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True, slots=True)
class Collective:
    """A kind of collective: the words for it in each layer, and its elements in and out."""

    op: str
    annotation: str
    word: str
    kernel: str
    elements_in: int
    elements_out: int


GATHER = Collective(
    "c10d::_allgather_base_",
    "nccl:_all_gather_base",
    "_allgather_base",
    f"ncclDevKernel_AllGather_RING_LL{STORAGE}",
    SHARD,
    FULL,
)
SCATTER = Collective(
    "c10d::_reduce_scatter_base_",
    "nccl:_reduce_scatter_base",
    "_reduce_scatter_base",
    f"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL{STORAGE}",
    FULL,
    SHARD,
)
REDUCE = Collective(
    "c10d::allreduce_",
    "nccl:all_reduce",
    "allreduce",
    f"ncclDevKernel_AllReduce_Sum_bf16_RING_LL{STORAGE}",
    2097152,
    2097152,
)


def draw(rank: int) -> Drawing:
    """Draw rank 0 or 1; README.md has both timelines."""
    group: dict[str, Any] = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl"}
    group |= {"pg_size": 2, "ranks": [0, 1]}
    info = {"backend": "nccl", "rank": rank, "world_size": 2, "pg_count": 1, "pg_config": [group]}
    d = Drawing(
        f"rank{rank}",
        H100,
        ordinal=rank,
        devices=2,
        envelope={"distributedInfo": info | {"nccl_version": "2.27.3"}},
    )
    late = 60 * rank
    step = d.annotation("ProfilerStep#5", 0, 930)
    _collective(d, rank, GATHER, 10, 100, 100)
    _product(d, 40, 200, 200 + late)
    _collective(d, rank, GATHER, 70, 250, 100)
    _product(d, 100, 400 + late, 200)
    with d.op("aten::copy_", 130, 20):
        call = d.launch("cudaMemcpyAsync", 135, 8)
    d.copy("HtoD", 380, 40, call, 1048576, stream=COPY_STREAM)
    _collective(d, rank, SCATTER, 160, 550 + late, 210 - late)
    _collective(d, rank, REDUCE, 200, 780, 100)
    with d.op("aten::_foreach_add_", 230, 20):
        call = d.launch("cudaLaunchKernel", 235, 8)
    d.kernel("void at::native::multi_tensor_apply_kernel<AddFunctor>(int)", 880, 20, call)
    with d.op("aten::item", 260, 660), d.op("aten::_local_scalar_dense", 265, 650):
        call = d.launch("cudaMemcpyAsync", 270, 10)
        d.call("cudaStreamSynchronize", 285, 627)
    d.copy("DtoH", 900, 10, call, 4)
    d.mirror("ProfilerStep#5", 200, 710, step)
    return d


def _product(d: Drawing, host: int, gpu: int, dur: int) -> None:
    args: dict[str, Any] = {
        "Input Dims": [[4096, 4096], [4096, 4096]],
        "Input type": [BF16] * 2,
        "Input Strides": [[4096, 1], [1, 4096]],
        "Concrete Inputs": [""] * 2,
    }
    with d.op("aten::mm", host, 20, **args):
        call = d.launch("cuLaunchKernelEx", host + 5, 8, cat="cuda_driver")
    d.kernel("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", gpu, dur, call)


def _collective(d: Drawing, rank: int, what: Collective, host: int, gpu: int, dur: int) -> None:
    args: dict[str, Any] = {
        "Collective name": what.word,
        "In msg nelems": what.elements_in,
        "Out msg nelems": what.elements_out,
        "Group size": 2,
        "dtype": "BFloat16",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1]",
    }
    with d.op(what.op, host, 20), d.op("record_param_comms", host + 2, 16, Rank=rank, **args):
        external = d.annotation(what.annotation, host + 4, 12)
        call = d.launch("cudaLaunchKernelExC", host + 6, 6)
    d.kernel(what.kernel, gpu, dur, call, stream=NCCL_STREAM, **args)
    d.mirror(what.annotation, gpu, dur, external, stream=NCCL_STREAM)
