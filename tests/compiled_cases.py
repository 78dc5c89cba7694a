"""Launches of compiled kernels, drawn as torch.profiler records them, and the worked examples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tracegen import Trace

B, F, I32, I64 = "c10::BFloat16", "float", "int", "long int"
Tensor = tuple[str, list[int]]
UNSET: Any = object()


@dataclass(frozen=True)
class Launch:
    """A launch; `scalars` are the concrete values behind the tensors.

    extra: values beyond the declared inputs, as of 2.7 and 2.8. named: whether kernel_name is
    there, as from 2.9 on. host_grid: the launcher's, up to 2.6. grid: the kernel's. us: its time.
    """

    name: str
    tensors: tuple[Tensor, ...] = ()
    scalars: tuple[str | int, ...] = ()
    kwargs: str | None = None
    named: bool = True
    extra: tuple[int, ...] = ()
    host_grid: str | None = None
    grid: tuple[int, int, int] | None = None
    us: int | str = 10
    shapes: bool = True
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def args(self) -> dict[str, Any]:
        args: dict[str, Any] = {"kernel_backend": "triton", "stream": 7}
        if self.shapes:
            args["Input Dims"] = [*(dims for _, dims in self.tensors), *[[]] * len(self.scalars)]
            args["Input type"] = [*(t for t, _ in self.tensors), *["Scalar"] * len(self.scalars)]
            values = [*self.scalars, *self.extra]
            args["Concrete Inputs"] = [*[""] * len(self.tensors), *map(str, values)]
        if self.kwargs is not None:
            args["kernel_kwargs"] = self.kwargs
            if self.named:
                args["kernel_name"] = self.name
        if self.host_grid is not None:
            args["grid"] = self.host_grid
        return args | self.more


def draw(launches: list[Launch] | tuple[Launch, ...], **envelope: Any) -> Trace:
    """Draw launches one after the other: op call, runtime call, kernel."""
    trace = Trace(**envelope)
    start = 100
    for number, launch in enumerate(launches, 1):
        trace.op(launch.name, start, 40, **launch.args)
        trace.launch(start + 5, 4, correlation=number)
        gpu = {} if launch.grid is None else {"grid": list(launch.grid), "block": [256, 1, 1]}
        trace.kernel(launch.name, start + 50, launch.us, correlation=number, **gpu)
        start += 100 + math.ceil(float(launch.us))
    return trace


def bf16(*shapes: list[int]) -> tuple[Tensor, ...]:
    return tuple((B, shape) for shape in shapes)


@dataclass(frozen=True)
class Example:
    """An example of triton.md 6: elements, FLOPs by the published weights, bytes.

    compat: the published formula over the right x. refined: capped, with what is known in place.
    x is None where nothing can be known.
    """

    launch: Launch
    x: int | None
    r: int | None = None
    flops: int | None = None
    compat: int | None = None
    refined: int | None = None
    in_place: str | None = None
    check: str = "none"


RMS = "add_mean_mul_pow_rsqrt"
EXAMPLES = {
    1: Example(
        Launch(
            "triton_poi_fused__unsafe_view_mul_silu_2",
            bf16([8, 4096, 8192], [32768, 8192]),
            (268435456,),
            "XBLOCK=1024",
        ),
        *(268_435_456, 1, 1_342_177_280, 1_610_612_736, 1_073_741_824),
        in_place="unknown",
    ),
    2: Example(
        Launch(
            f"triton_red_fused_{RMS}_0",
            bf16([8, 4096, 2048], [2048], [8, 4096, 2048]),
            (32768, 2048),
            "XBLOCK=2,R0_BLOCK=2048",
            grid=(16384, 1, 1),
        ),
        *(32_768, 2_048, 469_762_048, 268_439_552, 268_439_552),
        check="grid_ok",
    ),
    3: Example(
        Launch(
            f"triton_red_fused__unsafe_view_{RMS}_1",
            bf16([8, 4096, 2048], [32768, 2048], [2048], [8, 4096, 2048]),
            (32768, 2048),
            "XBLOCK=2,R0_BLOCK=2048",
        ),
        *(32_768, 2_048, 469_762_048, 402_657_280, 402_657_280),
    ),
    4: Example(
        Launch(
            "triton_poi_fused__unsafe_view_add_3",
            bf16([67108864], [67108864], [67108864]),
            (67108864,),
            "XBLOCK=512",
            grid=(131072, 1, 1),
        ),
        *(67_108_864, 1, 67_108_864, 536_870_912, 402_653_184),
        in_place="unknown",
        check="grid_ok",
    ),
    5: Example(
        Launch(
            "triton_red_fused__unsafe_view_add_clone_convolution_native_layer_norm_slice_transpose"
            "_view_4",
            (
                *bf16([2, 2432, 64, 64], [2432], [1, 36864, 2432]),
                *((F, [2, 4096, 1, 19]),) * 3,
            ),
            (8192, 19, 128),
            "XBLOCK=4,YBLOCK=32,R0_BLOCK=16",
            grid=(5, 256, 1),
        ),
        *(155_648, 128, 19_922_944, 221_025_024, 81_564_416),
        check="grid_ok",
    ),
    6: Example(
        Launch(
            "triton_poi_fused__unsafe_view_add_clone_convolution_mul_native_layer_norm_slice"
            "_transpose_view_7",
            (
                *bf16([2, 2432, 64, 64], [2432], [1, 36864, 2432]),
                *((F, [2, 4096, 1]),) * 2,
                *bf16([2, 14592], [14592], [2, 4096, 2432]),
            ),
            (8192, 2432),
            "XBLOCK=64,YBLOCK=64",
            grid=(38, 128, 1),
        ),
        *(19_922_944, 1, 39_845_888, 299_002_112, 119_695_616),
        in_place="unknown",
        check="grid_ok",
    ),
    7: Example(
        Launch(
            "triton_poi_fused_addmm_clone_permute_view_25",
            bf16([8192, 64], [64], [2, 16, 64, 2, 64, 2]),
            (32, 16384),
            "XBLOCK=256,YBLOCK=32",
            grid=(64, 1, 1),
        ),
        *(524_288, 1, 0, 3_145_856, 2_097_280),
        in_place="unknown",
        check="grid_ok",
    ),
    8: Example(
        Launch(
            "triton_poi_fused__unsafe_view_clone_slice_transpose_13",
            bf16([2, 38, 4429, 64], [2, 333, 2432]),
            (1619712,),
            "XBLOCK=2048,waves_per_eu=1",
            grid=(791, 1, 1),
        ),
        *(1_619_712, 1, 0, 49_564_160, 6_478_848),
        in_place="no",
        check="grid_ok",
    ),
    9: Example(
        Launch(
            "triton_poi_fused_addmm_gelu_view_15",
            bf16([2, 4096, 9728], [9728]),
            (79691776,),
            "XBLOCK=4096",
        ),
        *(79_691_776, 1, 637_534_208, 318_786_560, 318_786_560),
        in_place="yes",
    ),
    10: Example(
        Launch(
            "triton_per_fused__to_copy_add_addmm_mean_mul_pow_rsqrt_transpose_view_8",
            bf16([8192, 2432], [2432], [64], [2, 38, 4096, 64]),
            (311296, 64),
            "XBLOCK=64",
            grid=(4864, 1, 1),
        ),
        *(311_296, 64, 139_460_608, 79_696_768, 79_696_768),
        check="grid_ok",
    ),
    # 512 and 256 tokens are joined: 768 · 24 · 128 = 2,359,296 elements.
    11: Example(
        Launch(
            "triton_poi_fused__to_copy_add_addmm_cat_mean_mul_pow_rsqrt_view_9",
            (
                *bf16([512, 3072], [3072]),
                (F, [1, 512, 24, 1]),
                *bf16([128], [256, 3072], [3072]),
                (F, [1, 256, 24, 1]),
                *bf16([128], [1, 24, 768, 128]),
            ),
            (18432, 128),
            "XBLOCK=32,YBLOCK=32",
        ),
        *(2_359_296, 1, 16_515_072, 14_242_304, 9_523_712),
        in_place="no",
    ),
    12: Example(
        Launch(
            "triton_poi_fused__to_copy_div_empty_like_zeros_19",
            bf16([1, 24, 768, 128]),
            (2359296,),
            "XBLOCK=1024",
        ),
        *(2_359_296, 1, 2_359_296, 9_437_184, 4_718_592),
        in_place="written_only",
    ),
    13: Example(
        Launch(
            "triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0",
            ((I32, [888]), (I64, [888]), ("bool", [888])),
            (0, 25136, 201088, 201088, 0, 888),
            "XBLOCK=16",
            grid=(56, 1, 1),
        ),
        *(888, 1, 3_552, 15_096, 11_544),
        in_place="unknown",
        check="grid_ok",
    ),
    14: Example(
        Launch(
            "triton_poi_fused__to_copy_1",
            ((F, [131072, 64]), (B, [131072, 64])),
            (8388608,),
            "XBLOCK=1024",
        ),
        *(8_388_608, 1, 0, 83_886_080, 50_331_648),
        in_place="unknown",
    ),
    15: Example(
        Launch(
            "triton_poi_fused_0",
            ((I32, [32]), (B, [201088, 2880]), (F, [131072, 64]), (B, [32, 2880])),
            (),
            "XBLOCK=8192,waves_per_eu=1",
        ),
        None,
    ),
    16: Example(
        Launch(
            "triton_poi_fused_constant_pad_nd_moe_forward_0",
            bf16([32, 2880], [32, 3072]),
            (98304,),
            "XBLOCK=2048",
        ),
        *(98_304, 1, 0, 577_536, 380_928),
        in_place="no",
    ),
    17: Example(
        Launch(
            "triton_poi_fused_relu_0",
            ((F, [500000]), (F, [500000])),
            (500000,),
            "XBLOCK=1024",
            named=False,
            extra=(1024,),
            grid=(489, 1, 1),
        ),
        *(500_000, 1, 500_000, 6_000_000, 4_000_000),
        in_place="unknown",
        check="grid_ok",
    ),
    18: Example(
        Launch(
            "triton_red_fused_sum_0",
            ((B, [4096, 3072]), (F, [4096])),
            (4096, 3072),
            "XBLOCK=1,R0_BLOCK=2048",
            named=False,
            extra=(1, 2048),
        ),
        *(4_096, 3_072, 12_582_912, 25_182_208, 25_182_208),
    ),
    19: Example(
        Launch(
            "triton_per_fused__softmax_0",
            bf16([4096, 640], [4096, 640]),
            (4096, 640),
            "XBLOCK=2",
            named=False,
            extra=(2,),
        ),
        *(4_096, 640, 0, 10_485_760, 10_485_760),
    ),
    20: Example(
        Launch(
            "triton_poi_fused_add_0",
            bf16([512, 768], [512, 768], [512, 768]),
            (768, 512),
            "XBLOCK=16,YBLOCK=64",
        ),
        *(393_216, 1, 393_216, 3_145_728, 2_359_296),
        in_place="unknown",
    ),
    21: Example(
        Launch(
            "triton_red_fused_sum_1",
            (),
            (6144, 12, 160),
            "XBLOCK=1,YBLOCK=64,R0_BLOCK=32",
        ),
        *(73_728, 160, 11_796_480),
    ),
    22: Example(
        Launch(
            "triton_red_fused_sum_2",
            ((F, [128, 56, 56]), (F, [128])),
            (128, 56, 56),
            "XBLOCK=1,R0_BLOCK=64,R1_BLOCK=8",
        ),
        *(128, 3_136, 401_408, 1_606_144, 1_606_144),
    ),
    23: Example(
        Launch(
            "triton_poi_fused_add_1",
            bf16([512, 768], [512, 768], [512, 768]),
            (768, 512),
            host_grid="grid(768, 512)",
        ),
        *(393_216, 1, 393_216, 3_145_728, 2_359_296),
        in_place="unknown",
        check="grid_ok",
    ),
    24: Example(
        Launch(
            "triton_poi_fused_mul_0",
            ((F, [1048576]), (F, [1048576])),
            ("0.1", 1048576),
        ),
        *(1_048_576, 1, 1_048_576, 12_582_912, 8_388_608),
        in_place="unknown",
    ),
    25: Example(
        Launch(
            "my_attn_kernel_0",
            bf16([8, 64], [8, 64]),
            (1, 2, 3, 4, 5, 6, 7),
            "BLOCK_M=64",
            more={"kernel_file": "/tmp/x/ab/cab.py"},
        ),
        None,
    ),
    26: Example(
        Launch(
            "triton_poi_fused_add_2",
            bf16([67108864], [67108864]),
            (67108864,),
            "XBLOCK=512",
            more={"kernel_num_gb": 0.12582912, "kernel_flop": 0},
        ),
        *(67_108_864, 1, 67_108_864),
    ),
}
