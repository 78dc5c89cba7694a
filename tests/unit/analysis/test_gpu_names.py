from __future__ import annotations

import pytest

from tracehouse.analysis.gpu_names import COMM_RULES, actual_category, kind_of, short_name
from tracehouse.vocab import Category, Kind


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_Generic(ncclDevComm*, ncclWork*)",
        "rcclGenericKernel_1(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)",
        "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(int)",
        "allreduce_prototype_twoshot<CodecQ4<8>>",
        "void one_shot_all_reduce_kernel<float, 8>(float**)",
        "void trtllm::twoShotAllReduceKernel<__half, 8, true>(Params)",
        "void multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "void flashinfer::allreduce_fusion_kernel_oneshot_lamport<1, __half, 8>(Params)",
        "nvshmemi_transfer_allgather",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
        "_ZN7deep_ep12internode_ll7combineILb1ELi7168EEEvPvS1_",
        "mori::moe::EpDispatchIntraNodeKernel<__hip_bfloat16>",
        "void mscclpp::allreduce7<float>(float*)",
        "oneccl_allreduce_medium",
        "userbuffers_fp16_sum_inplace_gpu_mc_rs",
    ],
)
def test_communication(name):
    assert kind_of(Category.KERNEL, name) is Kind.COMM


@pytest.mark.parametrize(
    "name",
    [
        "moe_combine_kernel",
        "void vllm::moe::dispatch_tokens<float>(float*)",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>(long)",
        "void cutlass::device_kernel<cutlass::gemm::DispatchPolicy>(Params)",
        "void at::native::reduce_kernel<512, 1>(int)",
        "triton_red_fused_all_reduce_scale_0",
        "void deep_ep::layout::get_dispatch_layout<256>(long const*)",
        "_combined_routing_memset",
        "",
    ],
)
def test_local_work(name):
    assert kind_of(Category.KERNEL, name) is Kind.COMPUTE


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        (Category.MEMCPY, "Memcpy PtoP (Device -> Device)", Kind.MEMCPY),
        (Category.MEMCPY, "nccl copy", Kind.MEMCPY),
        (Category.MEMSET, "Memset (Device)", Kind.MEMSET),
        (Category.KERNEL, "__amd_rocclr_copyBuffer.kd", Kind.MEMCPY),
        (Category.KERNEL, "__amd_rocclr_copyBufferRectAligned", Kind.MEMCPY),
        (Category.KERNEL, "MEMORY_COPY_DEVICE_TO_HOST", Kind.MEMCPY),
        (Category.KERNEL, "__amd_rocclr_fillBufferAligned", Kind.MEMSET),
        (Category.KERNEL, "my__amd_rocclr_copyBuffer", Kind.COMPUTE),
    ],
)
def test_copies_and_fills(category, name, kind):
    assert kind_of(category, name) is kind


def test_every_rule_says_why():
    assert all(rule.why for rule in COMM_RULES)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Memcpy HtoD (Host -> Device)", Category.MEMCPY),
        ("Memset (Device)", Category.MEMSET),
        ("MemcpyLikeKernel", Category.KERNEL),
        ("gemm", Category.KERNEL),
    ],
)
def test_a_copy_filed_as_a_kernel(name, category):
    assert actual_category(Category.KERNEL, name) is category


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::Op<float> >(Op)", "reduce_kernel"),
        ("void (anonymous namespace)::softmax_warp<float>(float*, int)", "softmax_warp"),
        ("void f<(a::Kind)0, (1>2), decltype(x->y())>(int)", "f"),
        ("std::enable_if<!(false), void>::type ns::gemv<int>(int)", "gemv"),
        ("at::cuda::(anonymous namespace)::spin_kernel(long)", "spin_kernel"),
        ("ampere_sgemm_32x128_nt", "ampere_sgemm_32x128_nt"),
        ("Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH"),
        ("_ZN5aiter11rmsnorm_fwdIDF16bLi256EEEvPT0_.kd", "rmsnorm_fwd"),
        ("_Z9my_kernelPf", "my_kernel"),
        ("copy_k.kd", "copy_k"),
        ("void cut::off<int, fl", "off"),
        ("void (*)(int)", "void"),
        ("<lambda>", "<lambda>"),
        ("_ZN99short", "_ZN99short"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_short_names(name, short):
    assert short_name(name) == short
