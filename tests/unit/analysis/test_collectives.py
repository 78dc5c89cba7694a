from __future__ import annotations

import pytest
from reference.frames import call, frame, kernel, op

from tracehouse.analysis.collectives import collective_of_kernel, collective_of_text
from tracehouse.analysis.link import link
from tracehouse.findings import Findings


@pytest.mark.parametrize(
    ("text", "collective"),
    [
        ('"allreduce"', "allreduce"),
        ('"_allgather_base"', "allgather"),
        ('"all_to_allv"', "alltoall"),
        ('"reduce_scatter_tensor_coalesced"', "reduce_scatter"),
        ('"reduce"', "reduce"),
        ('"Broadcast"', "broadcast"),
        ('"wait"', "wait"),  # unknown: as it stands
        ('""', None),
        ("null", None),
        ("7", None),
        ("[", None),
    ],
)
def test_the_text_of_collective_name(text, collective):
    assert collective_of_text(text) == collective


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "allreduce"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "allgather"),
        ("ncclDevKernel_ReduceScatter_Sum_f16_RING_LL", "reduce_scatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "reduce"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "sendrecv"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)", "allreduce"),
        ("ncclDevKernel_Generic(ncclDevComm*, ncclWork*)", None),
        ("void deep_ep::internode::dispatch<true>()", None),
    ],
)
def test_the_name_of_a_kernel(name, collective):
    assert collective_of_kernel(name) == collective


def collectives(*events):
    kernels = link(frame(events), "t", findings=Findings())["kernels"]
    return kernels["collective"].to_pylist()


def test_own_metadata_comes_before_the_ops_and_that_before_the_name():
    generic, specific = "ncclDevKernel_Generic", "ncclDevKernel_AllReduce_Sum_f32"
    assert collectives(
        op("record_param_comms", 0, 20, **{"Collective name": "broadcast"}),
        op("inner", 1, 9),
        call("cudaLaunchKernel", 2, 1, 1),
        call("cudaLaunchKernel", 4, 1, 2),
        call("cudaLaunchKernel", 30, 1, 3),
        kernel(generic, 40, 5, 1, **{"Collective name": "_reduce_scatter_base"}),
        kernel(specific, 50, 5, 2),
        kernel(specific, 60, 5, 3),
    ) == ["reduce_scatter", "broadcast", "allreduce"]


def test_a_copy_inside_the_op_is_no_collective():
    assert collectives(
        op("record_param_comms", 0, 20, **{"Collective name": "broadcast"}),
        call("cudaMemcpyAsync", 2, 1, 1),
        kernel("Memcpy DtoD", 40, 5, 1, cat="gpu_memcpy"),
    ) == [None]


def test_two_ops_of_one_external_id_decide_nothing():
    ids = {"External id": 3}
    assert collectives(
        op("record_param_comms", 0, 5, **ids, **{"Collective name": "broadcast"}),
        op("record_param_comms", 10, 5, **ids, **{"Collective name": "allreduce"}),
        kernel("ncclDevKernel_Generic", 40, 5, 0, **ids),
    ) == [None]
