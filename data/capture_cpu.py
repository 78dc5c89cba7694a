"""Capture samples/torch_cpu.json.gz: two training steps of a small block, profiled on the CPU.

Needs torch, which nothing else in the project needs:  python data/capture_cpu.py [OUTPUT]
Times, ids and the number of Python frames differ from run to run.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from generators.kineto import compress
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = 2  # recorded; one step before them warms the profiler up
EXPECTED = {  # calls in the two steps, from the model below
    "ProfilerStep": STEPS,
    "aten::linear": 4 * STEPS,
    "aten::addmm": 4 * STEPS,  # one a linear layer
    "aten::mm": 7 * STEPS,  # 4 weight gradients, 3 input gradients: the block's input needs none
    "aten::gelu": STEPS,
    "aten::scaled_dot_product_attention": STEPS,
    "torch::autograd::AccumulateGrad": 8 * STEPS,  # 4 weights, 4 biases
}
NOT_PORTABLE = ("traceName", "host_name", "hostname", "username")


class Block(torch.nn.Module):
    """A transformer block without its layer norms: attention, then a two-layer perceptron."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(dim, 3 * dim)
        self.out = torch.nn.Linear(dim, dim)
        self.up = torch.nn.Linear(dim, 4 * dim)
        self.down = torch.nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, length, dim) to the same shape."""
        batch, length, dim = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, dim))
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def capture(path: Path) -> None:
    """Profile the steps and write Kineto's own trace to `path`."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Block(dim=64, heads=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        record_shapes=True,
        with_stack=True,
    ) as prof:
        for _ in range(1 + STEPS):
            loss = model(torch.randn(2, 16, 64)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    prof.export_chrome_trace(str(path))


def scrubbed(text: str) -> str:
    """Take out of the text what names this machine: paths, host, user, the file's own name."""
    text = re.sub(r'"(?:/[^"/]+)*/(?:site|dist)-packages/', '"', text)
    text = re.sub(r'"(?:/[^"/]+)*/lib/python[0-9.]+/', '"', text)
    text = re.sub(r'"(?:/[^"/ ]+)+/([^"/]+\.py\()', r'"\1', text)
    for key in NOT_PORTABLE:
        text = re.sub(rf',?\s*"{key}": "[^"]*"(?=\s*[,}}])', "", text)
    return text


def unexpected(text: str) -> list[str]:
    """Say what in the text names this machine or differs from EXPECTED; nothing if all is well."""
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    names = Counter(event["name"].partition("#")[0] for event in events if event["ph"] == "X")
    found = [f"{name}: {names[name]} for {n}" for name, n in EXPECTED.items() if names[name] != n]
    found += re.findall(r'"/[^"]*"', text)
    return found + re.findall(rf'"[^"]*\b{re.escape(platform.node())}\b[^"]*"', text)


def main() -> None:
    """Write the sample, or exit with what is wrong with the capture."""
    here = Path(__file__).parent
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "samples" / "torch_cpu.json.gz"
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "trace.json")
        capture(raw)
        text = scrubbed(raw.read_text(encoding="utf-8"))
    wrong = unexpected(text)
    if wrong:
        sys.exit("\n".join(wrong))
    target.write_bytes(compress(text.encode()))


if __name__ == "__main__":
    main()
