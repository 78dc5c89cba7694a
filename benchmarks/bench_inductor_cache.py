"""Time the indexing of a made Inductor cache.

    python benchmarks/bench_inductor_cache.py [KERNELS]

Each kernel is a file of its own and stands in a wrapper of a graph of 50, as Inductor leaves them;
texts are of the usual length, several kilobytes. Prints CPU seconds of indexing, of reading the
same files only, and their ratio.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tracehouse.triton.inductor_cache import index

KERNELS_A_GRAPH = 50
RUNS = 3
OPS = ("add", "mean", "mul", "pow", "rsqrt")
STEPS = 60  # lines of arithmetic


def kernel_text(number: int) -> str:
    name = f"triton_red_fused_{'_'.join(OPS)}_{number}"
    pointers = [f"in_ptr{i}" for i in range(5)] + ["out_ptr0", "out_ptr1"]
    signature = dict.fromkeys(pointers, "*bf16") | {"xnumel": "i32", "r0_numel": "i32"}
    signature |= {"XBLOCK": "constexpr", "R0_BLOCK": "constexpr"}
    settings = ", ".join(f"'setting_{i}': False" for i in range(25))
    loads = "".join(
        f"        tmp{i} = tl.load(in_ptr{i % 5} + (r0_1 + 1000*x0), r0_mask & xmask, other=0.0)\n"
        f"        tmp{i + 100} = tmp{i}.to(tl.float32) + tmp{max(i - 1, 0)}\n"
        for i in range(STEPS)
    )
    return (
        "\nimport triton\nimport triton.language as tl\n\n"
        "from torch._inductor.runtime import triton_helpers, triton_heuristics\n\n"
        "@triton_heuristics.reduction(\n    size_hints={'x': 8192, 'r0_': 1024},\n"
        "    reduction_hint=ReductionHint.INNER,\n    filename=__file__,\n"
        f"    triton_meta={{'signature': {signature!r}, 'device': DeviceProperties(cc=90), "
        f"'constants': {{}}, 'configs': [{{(0,): [['tt.divisibility', 16]]}}]}},\n"
        f"    inductor_meta={{'kernel_name': '{name}', 'mutated_arg_names': [], {settings}}}\n)\n"
        f"@triton.jit\ndef {name}({', '.join(signature)}):\n"
        f"    xnumel = {6_000 + number}\n    r0_numel = 1000\n"
        f"    for r0_offset in range(0, r0_numel, R0_BLOCK):\n{loads}"
        "        tl.store(out_ptr0 + (r0_1 + 1000*x0), tmp1, r0_mask & xmask)\n"
        "    tl.store(out_ptr1 + (x0), tmp2, xmask)\n"
    )


def comment(number: int) -> str:
    nodes = "".join(
        f'#   %{op}_{number} : Tensor "bf16[6000, 1000][1000, 1]cuda:0"[num_users=1] = '
        f"call_function[target=torch.ops.aten.{op}.Tensor](args = (%x, %y), kwargs = {{}})\n"
        for op in OPS * 2
    )
    listed = ", ".join(f"aten.{op}" for op in OPS)
    return (
        f"# Topologically Sorted Source Nodes: [y], Original ATen: [{listed}]\n"
        f"# Graph fragment:\n{nodes}#   return %mul_{number}\n"
    )


def make_cache(folder: Path, kernels: int) -> list[Path]:
    paths = []

    def write(stem: str, text: str) -> None:
        path = folder / stem[1:3] / f"{stem}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)

    for first in range(0, kernels, KERNELS_A_GRAPH):
        blocks = []
        for number in range(first, min(first + KERNELS_A_GRAPH, kernels)):
            text = kernel_text(number)
            write(f"c{number:051d}"[::-1].replace("c", "k"), text)
            name = f"triton_red_fused_{'_'.join(OPS)}_{number}"
            blocks.append(
                f"\n\n{comment(number)}{name} = async_compile.triton('{name}', '''{text}'''"
                ", device_str='cuda')\n"
            )
        write(f"w{first:051d}"[::-1], "async_compile = AsyncCompile()\n" + "".join(blocks))
    return paths


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the least of a few runs."""

    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(RUNS))


def main() -> None:
    kernels = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    with tempfile.TemporaryDirectory() as folder:
        paths = make_cache(Path(folder), kernels)
        size = sum(path.stat().st_size for path in paths)
        cache = index(Path(folder))
        assert len(cache.kernels) == kernels
        assert all(kernel.ops and kernel.kernel_hash for kernel in cache.kernels)
        reading = cpu_seconds(lambda: [path.read_bytes() for path in paths])
        indexing = cpu_seconds(lambda: index(Path(folder)))
    print(f"{kernels:,} kernels, {len(paths):,} files, {size / 1e6:.0f} MB")
    print(f"index: {indexing:.2f} s of CPU, {indexing / kernels * 1e6:.0f} µs a kernel")
    print(f"reading the files alone: {reading:.2f} s, ratio {indexing / max(reading, 1e-3):.1f}")


if __name__ == "__main__":
    main()
