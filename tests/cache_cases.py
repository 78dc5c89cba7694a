"""Small files of an Inductor cache, in the layouts of several versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

IMPORTS = "import triton\nimport triton.language as tl\n"
HELPER = "@triton.jit\ndef _triton_helper_fn_add0(arg0_0, arg1_0):\n    return arg0_0 + arg1_0\n\n"
END = "\nasync_compile.wait(globals())\ndel async_compile\n\ndef call(args):\n    pass\n"
CALL_COMMENT = "        # Topologically Sorted Source Nodes: [z], Original ATen: [aten.mm]\n"


@dataclass
class Kernel:
    """A kernel to be written; `types` by parameter, `blocks` are the block sizes after them."""

    name: str
    category: str = "pointwise"
    hints: object = field(default_factory=lambda: {"x": 1024})
    types: dict[str, str] = field(default_factory=lambda: {"in_ptr0": "*fp32", "xnumel": "i32"})
    blocks: tuple[str, ...] = ("XBLOCK",)
    body: str = "    xnumel = 1000\n"
    mutated: tuple[str, ...] = ()
    constants: object = field(default_factory=dict)
    extra_meta: str = ""
    helper: str = ""

    def text(self, layout: str = "new", unique: bool = True) -> str:
        """Return the kernel as its file holds it. Layouts: 2.2, 2.5, 2.6, new (2.7 and later)."""
        names = [*self.types, *self.blocks]
        if layout in ("2.2", "2.5"):
            signature: object = dict(enumerate(self.types.values()))
            device = "'device': 0, 'device_type': 'cuda', "
        else:
            constexprs = dict.fromkeys(self.blocks, "constexpr") if layout == "new" else {}
            signature = self.types | constexprs
            device = "'device': DeviceProperties(type='cuda', index=0, cc=90, warp_size=32), "
        function = self.name if unique else "triton_"
        prefix = "" if layout == "2.2" else "triton_heuristics."
        parameters = ", ".join(
            f"{name} : tl.constexpr" if name in self.blocks else name for name in names
        )
        hints = f"\n    size_hints={self.hints!r}, " if self.hints is not None else ""
        return (
            f"\n{IMPORTS}\n{self.helper}@{prefix}{self.category}({hints}\n    filename=__file__,\n"
            f"    triton_meta={{'signature': {signature!r}, {device}"
            f"'constants': {self.constants!r}, "
            f"'configs': [{{(0,): [['tt.divisibility', 16]]}}]}},\n"
            f"    inductor_meta={{'autotune_hints': set(), {self.extra_meta}'kernel_name': "
            f"'{self.name}', 'mutated_arg_names': {list(self.mutated)!r}, 'num_load': 3}},\n"
            f"    min_elem_per_thread=0\n)\n@triton.jit\ndef {function}({parameters}):\n{self.body}"
        )


def block(
    kernel: Kernel, comment: str = "", layout: str = "new", unique: bool = True, path: str = ""
) -> str:
    """Return a kernel as a wrapper defines it."""
    function = kernel.name if unique else "triton_"
    comment = (f"# kernel path: {path}\n" if path else "") + comment
    device = "" if layout == "2.2" else ", device_str='cuda'"
    return (
        f"\n\n{comment}{kernel.name} = async_compile.triton('{function}', '''"
        f"{kernel.text(layout, unique)}'''{device})\n"
    )


def wrapper(*definitions: str) -> str:
    head = "import torch\nfrom torch._inductor.async_compile import AsyncCompile\n"
    return f"{head}async_compile = AsyncCompile()\n{''.join(definitions)}{END}{CALL_COMMENT}"


def hash_of(letter: str) -> str:
    return "c" + letter * 51


def write(folder: Path, stem: str, text: str) -> Path:
    """Write a file where Inductor would."""
    path = folder / stem[1:3] / f"{stem}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


RMS_NORM = Kernel(
    "triton_red_fused_add_mean_mul_pow_rsqrt_0",
    category="reduction",
    hints={"x": 8192, "r0_": 1024},
    types={
        "in_ptr0": "*bf16",
        "in_ptr1": "*bf16",
        "out_ptr1": "*bf16",
        "xnumel": "i32",
        "r0_numel": "i32",
    },
    blocks=("XBLOCK", "R0_BLOCK"),
    body=(
        "    xnumel = 6000\n    r0_numel = 1000\n    rnumel = r0_numel\n"
        "    RBLOCK: tl.constexpr = R0_BLOCK\n"
        "    for r0_offset in range(0, r0_numel, R0_BLOCK):\n"
        "        tmp0 = tl.load(in_ptr0 + (r0_1 + 1000*x0), r0_mask & xmask)\n"
        "    for r0_offset in range(0, r0_numel, R0_BLOCK):\n"
        "        tl.store(out_ptr1 + (r0_1 + 1000*x0), tmp13, r0_mask & xmask)\n"
    ),
)
RMS_NORM_COMMENT = (
    "# Topologically Sorted Source Nodes: [y], "
    "Original ATen: [aten.add, aten.mean, aten.mul, aten.pow, aten.rsqrt]\n"
    "# Source node to ATen node mapping:\n#   y => add, mean, mul, mul_1, pow_1, rsqrt\n"
    "# Graph fragment:\n"
    '#   %x : Tensor "bf16[6000, 1000][1000, 1]cuda:0" = PlaceHolder[target=x]\n'
    '#   %w : Tensor "bf16[1000][1]cuda:0" = PlaceHolder[target=w]\n'
    '#   %pow_1 : Tensor "f32[6000, 1000][1000, 1]cuda:0"[num_users=1] = '
    "call_function[target=torch.ops.aten.pow.Tensor_Scalar](args = (%x, 2), kwargs = {})\n"
    '#   %mean : Tensor "f32[6000, 1][1, 1]cuda:0"[num_users=1] = '
    "call_function[target=torch.ops.aten.mean.dim](args = (%pow_1, [-1], True), kwargs = {})\n"
    '#   %mul : Tensor "bf16[6000, 1000][1000, 1]cuda:0"[num_users=1] = '
    "call_function[target=torch.ops.aten.mul.Tensor](args = (%x, %mean), kwargs = {})\n"
    '#   %mul_1 : Tensor "bf16[6000, 1000][1000, 1]cuda:0"[num_users=1] = '
    "call_function[target=torch.ops.aten.mul.Tensor](args = (%mul, %w), kwargs = {})\n"
    "#   return %mul_1\n"
)
MUL_SILU = Kernel(
    "triton_poi_fused_mul_silu_4",
    hints=[1048576],
    types={"in_out_ptr0": "*bf16", "in_ptr0": "*bf16", "xnumel": "i32"},
    body="    xnumel = 786432\n    tl.store(in_out_ptr0 + (x0), tmp5, None)\n",
    mutated=("in_out_ptr0",),
)
MUL_SILU_COMMENT = "# Source Nodes: [h], Original ATen: [aten.mul, aten.silu]\n# h => mul, silu\n"
