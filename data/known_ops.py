"""Write triton/known_ops.csv: the op names that a fused kernel's name is cut into.

Needs torch, which nothing else in the project needs:  python data/known_ops.py [OUTPUT]
The names are facts of the registries of the torch that runs it, packets without their overloads;
names of custom ops come from op_categories.csv.
"""

from __future__ import annotations

import csv
import importlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

HERE = Path(__file__).parent
REGISTER = (  # modules that register ops when imported
    "torch._higher_order_ops",
    "torch._inductor.comms",
    "torch._inductor.inductor_prims",
    "torch._prims.rng_prims",
    "torch.ao.quantization.fx._decomposed",
    "torch.distributed._functional_collectives",
    "torch.distributed._symmetric_memory",
    "torch.distributed.fsdp._fully_shard._fsdp_collectives",
    "torch.nn.attention.flex_attention",
    "torch.nn.attention.varlen",
)
# Of a name in several namespaces the first counts. Those of fused int8 and CPU ops are left out:
# their `conv2d_relu` would swallow two ops of a name that Inductor fused.
NAMESPACES = (
    "aten",
    "prims",
    "inductor",
    "inductor_prims",
    "rngprims",
    "quantized_decomposed",
    "_c10d_functional",
    "c10d_functional",
    "_c10d_functional_autograd",
    "c10d",
    "symm_mem",
    "fsdp",
    "_dtensor",
    "torch_attn",
    "flex_lib",
    "mkldnn",
    "mkl",
)
CUSTOM = ("vllm", "_C", "_moe_C", "_C_cache_ops", "aiter", "sgl_kernel", "flash_attn", "trtllm")
HIGHER_ORDER = "higher_order"
MORE = {  # in no registry above, but in names
    "c10d": ("all_gather", "all_to_all", "reduce_scatter"),
    "vllm": ("silu_and_mul", "rotary_embedding", "moe_forward", "moe_forward_shared"),
    "aten": (  # of versions before this one, and named so in traces
        "_cumsum",
        "cudnn_convolution_backward",
        "group_norm_backward",
        "layer_norm_backward",
        "miopen_convolution_backward",
        "native_rms_norm_backward",
        "rms_norm_backward",
    ),
}
# Python attributes and list methods that a registry also has; none is ever fused.
NOISE = {"clear", "count", "dim", "item", "name", "pop", "size", "update"}


def registered() -> dict[str, str]:
    """Return the names of the registries with their namespaces."""
    for module in REGISTER:
        importlib.import_module(module)
    packets = {name.split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    by_namespace: dict[str, list[str]] = {}
    for packet in sorted(packets):
        namespace, _, name = packet.partition("::")
        by_namespace.setdefault(namespace, []).append(name)
    found: dict[str, str] = {}
    for namespace in NAMESPACES:
        for name in [*by_namespace.get(namespace, ()), *MORE.get(namespace, ())]:
            found.setdefault(name, namespace)
    for name in sorted(torch._ops._higher_order_ops):
        found.setdefault(name, HIGHER_ORDER)
    for name in [name for name in found if name.startswith("_foreach_")]:
        found.setdefault(name[1:], found[name])
    return found


def custom() -> Iterable[tuple[str, str]]:
    """Yield names of custom ops with their namespaces."""
    with (HERE / "op_categories.csv").open(encoding="utf-8", newline="") as file:
        patterns = [row["pattern"] for row in csv.DictReader(file) if row["match"] == "exact"]
    for namespace in CUSTOM:
        yield from ((name, namespace) for name in MORE.get(namespace, ()))
        for pattern in patterns:
            if pattern.startswith(f"{namespace}::"):
                yield pattern.partition("::")[2], namespace


def splits(name: str, words: dict[str, str], after: str = "") -> bool:
    """Whether `name` is also a strictly increasing list of words, joined."""
    if name in words and name > after:
        return True
    cuts = [i for i, letter in enumerate(name) if letter == "_"]
    return any(
        name[:i] in words and name[:i] > after and splits(name[i + 1 :], words, name[:i])
        for i in cuts
    )


def known() -> dict[str, str]:
    """Return every name of the table with its namespace."""
    words = {
        name: namespace
        for name, namespace in registered().items()
        if name not in NOISE and re.fullmatch(r"\w+", name)
    }
    torch_words = dict(words)
    for name, namespace in custom():
        if "_" in name and not splits(name, torch_words):
            words.setdefault(name, namespace)
    return words


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "triton" / "known_ops.csv"
    with output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("name", "namespace"))
        table.writerows(sorted(known().items()))


if __name__ == "__main__":
    main()
