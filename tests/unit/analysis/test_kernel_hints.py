from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tracehouse.analysis.kernel_hints import HOST, MEMORY, NETWORK, TF32, element_bytes, hints

NATIVE = "void at::native::(anonymous namespace)::"


def bits(name, category="kernel", kind="compute"):
    row = {"name": name, "category": category, "kind": kind}
    table = pa.table({k: pa.array([v]).dictionary_encode() for k, v in row.items()})
    return int(hints(table)[0])


@pytest.mark.parametrize(
    ("name", "size"),
    [
        # Names as in the traces of an H100 and an MI300X.
        (f"{NATIVE}CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned "
         "int, 3, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)", 2),
        (f"{NATIVE}CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", 4),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
         "namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::"
         "BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(x)", 4),
        (f"{NATIVE}multi_tensor_apply_kernel<TensorListMetadata<1>, UnaryOpFunctor<c10::BFloat16, "
         "1, 1, 0>, std::negate<float> >(x)", 2),
        (f"{NATIVE}multi_tensor_apply_kernel<{NATIVE[5:]}TensorListMetadata<2>, {NATIVE[5:]}"
         "CopyFunctor<int, long, 2, 1, 1>, at::native::Copy<int, long> >(x)", 6),  # 4 and 8
        (f"{NATIVE}multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<c10::Half, "
         "c10::BFloat16, 2, 1, 1>, Copy<c10::Half, c10::BFloat16> >(x)", 2),
        (f"{NATIVE}multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<float, my::Type, "
         "2, 1, 1>, Copy<float, my::Type> >(x)", None),
        ("triton_poi_fused_add_0", None),
        ("Cijk_Ailk_Bljk_BBS_BH_MT64x64x64", None),
    ],
)  # fmt: skip
def test_the_bytes_of_an_element(name, size):
    (told,) = element_bytes(np.array([bits(name)])).tolist()
    assert told == size or (size is None and np.isnan(told))


def test_two_sizes_tell_none():
    assert np.isnan(element_bytes(np.array([2 | 4]))).all()


@pytest.mark.parametrize(
    ("name", "is_tf32"),
    [
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(x)", True),
        ("ampere_sgemm_128x64_nn", False),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", False),
    ],
)
def test_products_in_tf32(name, is_tf32):
    assert bool(bits(name) & TF32) == is_tf32


@pytest.mark.parametrize(
    ("row", "where"),
    [
        (("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", "memcpy"), HOST),
        (("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy", "memcpy"), HOST),
        (("CopyHostToDevice", "gpu_memcpy", "memcpy"), HOST),
        (("CopyDeviceToDevice", "gpu_memcpy", "memcpy"), MEMORY),
        (("Memcpy DtoD (Device -> Device)", "gpu_memcpy", "memcpy"), MEMORY),
        (("Memcpy PtoP (Device -> Device)", "gpu_memcpy", "memcpy"), HOST),
        (("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "kernel", "comm"), NETWORK),
        (("my_DtoH_kernel", "kernel", "compute"), MEMORY),
        (("Memset (Device)", "gpu_memset", "memset"), MEMORY),
    ],
)
def test_what_passes_a_link(row, where):
    assert bits(*row) & (HOST | NETWORK | MEMORY) == where
