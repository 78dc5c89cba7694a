"""What is right for the samples in data/, worked by hand from the timelines of data/README.md.

Each truth is held against the file itself, by counting the ticks that are covered, and against the
warehouse that Tracehouse makes of it. All times here are µs; a tick is the tenth of one, the finest
time that any sample uses.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tracehouse

Us = Decimal
NOTHING = Us(0)
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME = ("cuda_runtime", "cuda_driver")


@dataclass(frozen=True)
class Truth:
    """A sample's truth: `ops` has calls and direct kernel time, `by_kernel` count and time."""

    events: int
    kernels: int  # of category kernel
    gpu_events: int  # with copies and fills
    launches: int
    total: Us
    computation: Us
    ops: dict[str, tuple[int, Us]]  # a launch call without op stands for itself
    by_kernel: dict[str, tuple[int, Us]]
    comm: Us = NOTHING
    exposed_comm: Us = NOTHING
    memcpy: Us = NOTHING
    exposed_memcpy: Us = NOTHING
    without_op: Us = NOTHING
    device: int = 0
    status: str = "ok"
    warnings: set[str] = field(default_factory=set)

    @property
    def busy(self) -> Us:
        return self.computation + self.exposed_comm + self.exposed_memcpy


GEMM_MI300X = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1"
GEMM_A = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4"
STORAGE = "(ncclDevKernelArgsStorage<4096ul>)"

TRITON_BLOCK = Truth(
    # Host: 1 region + 4 Triton + 7 products + 5 of attention, 1 annotation          = 18
    # Calls: 12 launches and 4 + 1 others = 17, 12 flow starts                       = 29
    # GPU: 12 kernels, 12 flow ends, 1 annotation                                    = 25
    # Names: 2 processes · 3, 1 stream and 1 thread · 2                              = 10
    events=18 + 29 + 25 + 10 + 4,  # 4 rows of the profiler's own window: 86
    kernels=12,
    gpu_events=12,
    launches=12,
    # Queries, keys, values, output 4 · 560; gate, up 2 · 1800; down 2000; attention 3680; Triton.
    computation=Us("79.4") + 2240 + 3680 + Us("93.2") + 3600 + Us("505.3") + 2000 + Us("140.9"),
    total=Us("13040.9") - 300,  # so that 12338.8 of 12740.9 are busy
    ops={
        "aten::mm": (7, Us(2240 + 3600 + 2000)),
        "aten::_flash_attention_forward": (1, Us(3680)),
        "triton_red_fused_add_mean_mul_pow_rsqrt_0": (1, Us("79.4")),
        "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1": (1, Us("93.2")),
        "triton_poi_fused__unsafe_view_mul_silu_2": (1, Us("505.3")),
        "triton_poi_fused__unsafe_view_add_3": (1, Us("140.9")),
    },
    by_kernel={GEMM_MI300X: (7, Us(7840)), "attn_fwd": (1, Us(3680))},
)

SERVING = Truth(
    # 8 steps with prefill: 11 ops, 11 launches, 1 wait, 11 GPU rows, 22 flows, 2 annotations = 58
    # 11 decode steps: 3 ops, 4 launches, 1 wait, 11 GPU rows, 4 + 11 flows, 2 annotations   = 36
    # 1 idle step: its annotation. Names: 6 + 2 + 2 = 10; window 4.
    events=8 * 58 + 11 * 36 + 1 + 10 + 4,  # 875
    kernels=19 * (8 + 1),  # 2 layers of 4, and the choice of the token
    gpu_events=19 * (8 + 1 + 2),
    launches=8 * 11 + 11 * 4,
    # With prefill 2 · (60 + 80 + 40 + 120) + 10 a step; decode 2 · (20 + 30 + 10 + 40) + 10.
    computation=Us(8 * 610 + 11 * 210),  # 7190
    memcpy=Us(19 * (10 + 5)),  # 285
    exposed_memcpy=Us(285),  # one stream, so nothing hides it
    total=Us(18435 - 150),  # from the first input copy to the last output copy
    ops={
        "aten::mm": (8 * 6, Us(8 * 2 * (60 + 40 + 120))),  # 3520
        "vllm::unified_attention_with_output": (8 * 2, Us(8 * 2 * 80)),  # 1280
        "aten::argmax": (19, Us(190)),
        "aten::copy_": (38, Us(285)),
        "cudaGraphLaunch": (11, Us(2200)),
    },
    by_kernel={
        "kernel_unified_attention_2d": (16, Us(1280)),
        "kernel_unified_attention_3d": (22, Us(660)),
        "nvjet_tst_64x8_64x16_4x1_v_bz_TNT": (66, Us(11 * 2 * 70)),
    },
    without_op=Us(11 * 200),  # the graphs: 3520 + 1280 + 190 + 285 + 2200 = 7475, all that is busy
)

# Both ranks: 14 ops, 5 annotations, 10 calls, 9 + 9 flows, 9 GPU rows, 5 mirrors = 61;
# names 3 · 3 processes + 3 streams · 2 + 1 thread · 2 = 17; window 4: 82.
RANK0 = Truth(
    events=61 + 17 + 4,
    kernels=7,
    gpu_events=9,
    launches=9,
    computation=Us(200 + 200 + 20),  # [200, 600) and [880, 900)
    comm=Us(100 + 100 + 210 + 100),
    exposed_comm=Us(100 + 0 + 160 + 100),  # the reduce-scatter [550, 760) is hidden until 600
    memcpy=Us(40 + 10),
    exposed_memcpy=Us(10),  # [380, 420) lies below the products
    total=Us(910 - 100),
    ops={
        "aten::mm": (2, Us(400)),
        "record_param_comms": (4, Us(510)),
        "aten::_foreach_add_": (1, Us(20)),
        "aten::copy_": (1, Us(40)),
        "aten::_local_scalar_dense": (1, Us(10)),
    },
    by_kernel={
        f"ncclDevKernel_AllGather_RING_LL{STORAGE}": (2, Us(200)),
        f"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL{STORAGE}": (1, Us(210)),
    },
)

RANK1 = Truth(
    events=82,
    kernels=7,
    gpu_events=9,
    launches=9,
    device=1,
    computation=Us(260 + 200 + 20),  # [200, 660) and [880, 900)
    comm=Us(100 + 100 + 150 + 100),
    exposed_comm=Us(100 + 0 + 100 + 100),  # the reduce-scatter [610, 760) is hidden until 660
    memcpy=Us(50),
    exposed_memcpy=Us(10),
    total=Us(910 - 100),
    ops={"aten::mm": (2, Us(460)), "record_param_comms": (4, Us(450))},
    by_kernel={f"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL{STORAGE}": (1, Us(150))},
)

# One step. Forward 200 + 40 + 200 and loss 10, fill 10, backward 10 + 200 + 200 + 40 + 200, update
# 3 · 20: 1170 of computation in [200, 1420). Copies: [100, 130) bare, [900, 1000) below backward.
TRAINING = Truth(
    # 30 ops, 2 annotations, 6 frames, 2 of memory, 8 of forward-backward, 15 + 1 calls, 30 of
    # flows, 15 of the GPU, 2 mirrors = 111 a step. Names 6 + 2 streams · 2 + 2 threads · 2 = 14.
    events=2 * 111 + 14 + 4,  # 240
    kernels=2 * 12,
    gpu_events=2 * (12 + 1 + 2),
    launches=2 * 15,
    computation=Us(2 * 1170),
    memcpy=Us(2 * 130),
    exposed_memcpy=Us(2 * 30),
    total=Us(2000 + 1420 - 100),
    ops={
        "aten::addmm": (4, Us(800)),
        "aten::mm": (6, Us(1200)),
        "aten::clamp_min": (2, Us(80)),
        "aten::threshold_backward": (2, Us(80)),
        "aten::_foreach_add_": (2, Us(80)),  # two kernels a call
        "aten::zero_": (2, Us(20)),
        "aten::copy_": (4, Us(260)),
    },
    by_kernel={GEMM_A: (10, Us(2000))},
)

TRUNCATED = Truth(
    # The training sample as far as the first GPU row of its second step: both steps' host rows
    # (80), 16 of forward-backward and 62 of calls (30 of them flow starts), then the first step's
    # 15 GPU rows with their 15 flow ends. The row that is cut in its middle is lost.
    events=80 + 16 + 62 + 30,  # 188
    kernels=12,
    gpu_events=15,
    launches=15,  # those whose GPU rows are there
    computation=Us(1170),
    memcpy=Us(130),
    exposed_memcpy=Us(30),
    total=Us(1420 - 100),
    ops={"aten::addmm": (2, Us(400)), "aten::mm": (3, Us(600))},
    by_kernel={GEMM_A: (5, Us(1000))},
    status="partial",
    warnings={"TRUNCATED"},
)

TRUTHS = {
    "triton_block.json.gz": TRITON_BLOCK,
    "serving.json.gz": SERVING,
    "two_ranks/rank0.json.gz": RANK0,
    "two_ranks/rank1.json.gz": RANK1,
    "training.json.gz": TRAINING,
    "truncated.json.gz": TRUNCATED,
}
every_sample = pytest.mark.parametrize(("name", "truth"), TRUTHS.items(), ids=TRUTHS)


# The file itself


def complete_events(path: Path) -> list[dict[str, Any]]:
    """Read the events that are whole; a file that is cut off ends in the middle of one."""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    text = stream.decompress(path.read_bytes()).decode()
    if not stream.eof:
        text = text[: text.rindex("\n  }") + 4] + "]}"
    events: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return events


def ticks(events: Iterable[dict[str, Any]]) -> set[int]:
    """Return the ticks that at least one event covers."""
    covered: set[int] = set()
    for event in events:
        start, end = event["ts"] * 10, (event["ts"] + event["dur"]) * 10
        assert start == int(start), event
        assert end == int(end), event
        covered.update(range(int(start), int(end)))
    return covered


def length(covered: set[int]) -> Us:
    return Us(len(covered)) / 10


def direct_ops(events: list[dict[str, Any]]) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """Return the GPU rows of each op call, or launch call without one, by name and call."""
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in RUNTIME}
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    below: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in (e for e in events if e.get("cat") in GPU):
        call = calls[row["args"]["correlation"]]
        around = [
            op
            for op in ops
            if op["tid"] == call["tid"] and op["ts"] <= call["ts"] < op["ts"] + op["dur"]
        ]
        nearest = min(around, key=lambda o: o["dur"], default=call)
        below[nearest["name"]][id(nearest)].append(row)
    return below


@pytest.fixture(scope="module")
def samples(repo_root: Path) -> Path:
    return repo_root / "data" / "samples"


@every_sample
def test_file_has_the_counts(samples: Path, name: str, truth: Truth) -> None:
    events = complete_events(samples / name)
    gpu = [e for e in events if e.get("cat") in GPU]
    launched_by = {e["args"]["correlation"] for e in gpu}
    launches = [
        e for e in events if e.get("cat") in RUNTIME and e["args"]["correlation"] in launched_by
    ]
    assert len(events) == truth.events
    assert sum(e["cat"] == "kernel" for e in gpu) == truth.kernels
    assert len(gpu) == truth.gpu_events
    assert len(launches) == truth.launches
    assert {e["args"]["device"] for e in gpu} == {truth.device}


@every_sample
def test_file_has_the_times(samples: Path, name: str, truth: Truth) -> None:
    gpu = [e for e in complete_events(samples / name) if e.get("cat") in GPU]
    copies = ticks(e for e in gpu if e["cat"] == "gpu_memcpy")
    comm = ticks(e for e in gpu if e["name"].startswith("nccl"))
    work = ticks(e for e in gpu if e["cat"] != "gpu_memcpy" and not e["name"].startswith("nccl"))
    busy = work | comm | copies
    assert length(work) == truth.computation
    assert length(comm) == truth.comm
    assert length(comm - work) == truth.exposed_comm
    assert length(copies) == truth.memcpy
    assert length(copies - work - comm) == truth.exposed_memcpy
    assert length(busy) == truth.busy
    assert Us(max(busy) + 1 - min(busy)) / 10 == truth.total


@every_sample
def test_file_has_the_ops_and_kernels(samples: Path, name: str, truth: Truth) -> None:
    events = complete_events(samples / name)
    below = direct_ops(events)
    direct = {
        name: (len(calls), sum(length(ticks(rows)) for rows in calls.values()))
        for name, calls in below.items()
    }
    for op, expected in truth.ops.items():
        assert direct[op] == expected, op
    ops = {e["name"] for e in events if e.get("cat") == "cpu_op"}
    assert sum(time for name, (_, time) in direct.items() if name not in ops) == truth.without_op
    for kernel, (count, time) in truth.by_kernel.items():
        rows = [e for e in events if e["name"] == kernel]
        assert (len(rows), sum(e["dur"] for e in rows)) == (count, time), kernel


# (context: requests, query tokens, keys, Σ query · key; generation: requests, keys), step by step.
# A, A are prefilled in step 0, B, B in 1, C, C in 2, D, D in 3. A request decoded for the k-th time
# sees its prompt and k tokens more: in step 3 the A see 515, the B 514, the C 513 keys.
STEPS = [
    (2, 1024, 1024, 524288, 0, 0),  # 2 · 512² = 524288
    (2, 1024, 1024, 524288, 2, 1026),  # 2 · 513
    (2, 1024, 1024, 524288, 4, 2054),  # 2 · (514 + 513)
    (2, 1024, 1024, 524288, 6, 3084),  # 2 · (515 + 514 + 513)
    (0, 0, 0, 0, 8, 4116),  # 2 · (516 + 515 + 514 + 513): steady from step 3 on
    (0, 0, 0, 0, 8, 4124),  # 8 more each step
    (0, 0, 0, 0, 8, 4132),
    (1, 512, 512, 262144, 7, 3621),  # an A is done, E comes: 519 + 2 · (518 + 517 + 516)
    (0, 0, 0, 0, 8, 4141),  # 3621 + 7 + 513
    (0, 0, 0, 0, 8, 4149),
    (1, 512, 512, 262144, 7, 3635),  # the other A is done, F comes: 4149 - 521 + 7
    (1, 512, 1024, 524288, 7, 3642),  # F's second chunk sees both: 512 · 1024
    (0, 0, 0, 0, 8, 4674),  # 3642 + 7 + 1025
    (0, 0, 0, 0, 8, 4682),
    (1, 512, 512, 262144, 7, 4165),  # a B is done, G comes: 4682 - 524 + 7
    (0, 0, 0, 0, 8, 4685),  # 4165 + 7 + 513; the last steady step
    (0, 0, 0, 0, 6, 3641),  # both C are done: 4685 - 2 · 525 + 6
    (0, 0, 0, 0, 4, 2595),  # both D: 3641 - 2 · 525 + 4
    (0, 0, 0, 0, 2, 1547),  # B and E: 2595 - 528 - 522 + 2
    (0, 0, 0, 0, 0, 0),  # idle
]


def test_serving_steps_are_worded_as_drawn(samples: Path) -> None:
    events = complete_events(samples / "serving.json.gz")
    said = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    expected = []
    for rc, sq, sk, sqsk, rg, keys in STEPS:
        sqsq = rc * 512**2  # every chunk has 512 tokens
        context = f"context_{rc}(sq{sq}sk{sk}sqsq{sqsq}sqsk{sqsk})"
        generation = f"generation_{rg}(sq{rg}sk{keys}sqsq{rg}sqsk{keys})"  # one token a request
        expected.append(f"execute_{sq + rg}_{context}_{generation}")
    assert said == expected


TRITON_INPUTS = {  # as the seed prints them
    "triton_red_fused_add_mean_mul_pow_rsqrt_0": (
        [[8, 4096, 2048], [2048], [8, 4096, 2048], [], []],
        ["", "", "", "32768", "2048"],
    ),
    "triton_poi_fused__unsafe_view_mul_silu_2": (
        [[8, 4096, 8192], [32768, 8192], []],
        ["", "", "268435456"],
    ),
}


def test_triton_inputs_are_those_of_the_example(samples: Path) -> None:
    events = complete_events(samples / "triton_block.json.gz")
    ops = {e["name"]: e["args"] for e in events if e.get("cat") == "cpu_op"}
    for op, (dims, values) in TRITON_INPUTS.items():
        assert ops[op]["Input Dims"] == dims
        assert ops[op]["Concrete Inputs"] == values
        tensors = values.count("")
        scalars = len(values) - tensors
        assert ops[op]["Input type"] == ["c10::BFloat16"] * tensors + ["Scalar"] * scalars


def test_torch_capture_is_the_model_that_was_run(samples: Path) -> None:
    # Two steps of: 4 linear layers, attention, gelu; 4 weight and 3 input gradients; 8 parameters.
    events = complete_events(samples / "torch_cpu.json.gz")
    names = Counter(e["name"].partition("#")[0] for e in events if e["ph"] == "X")
    assert names["ProfilerStep"] == 2
    assert names["aten::linear"] == names["aten::addmm"] == 2 * 4
    assert names["aten::scaled_dot_product_attention"] == names["aten::gelu"] == 2
    assert names["aten::mm"] == 2 * (4 + 3)
    assert names["torch::autograd::AccumulateGrad"] == 2 * 8
    assert not [e for e in events if e.get("cat") in (*GPU, *RUNTIME)]


# The warehouse


def to_ns(us: Us) -> int:
    return int(us * 1000)


@pytest.fixture(scope="module")
def rows(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Analyse every sample once; return a function from a query about {trace} to its rows."""
    out = tmp_path_factory.mktemp("truth") / "warehouse"
    tracehouse.analyze([samples], out, workers=1)
    warehouse = tracehouse.open(out)

    def ask(query: str, name: str) -> list[dict[str, Any]]:
        trace = f"(SELECT trace_id FROM traces WHERE ends_with(path, '{name}'))"
        table: pa.Table = warehouse.sql(query.format(trace=f"trace_id IN {trace}"))
        answer: list[dict[str, Any]] = table.to_pylist()
        return answer

    return ask


@every_sample
def test_warehouse_counts(rows: Any, name: str, truth: Truth) -> None:
    [trace] = rows("SELECT status, events, kernels FROM traces WHERE {trace}", name)
    assert trace == {"status": truth.status, "events": truth.events, "kernels": truth.kernels}
    [launches] = rows(
        "SELECT count(*) AS calls, sum(kernel_count)::BIGINT AS started FROM launches"
        " WHERE {trace} AND kernel_count > 0",
        name,
    )
    assert launches == {"calls": truth.launches, "started": truth.gpu_events}
    warned = rows("SELECT code FROM issues WHERE {trace} AND severity <> 'info'", name)
    assert {row["code"] for row in warned} == truth.warnings


@every_sample
def test_warehouse_timelines(rows: Any, name: str, truth: Truth) -> None:
    expected = {
        "total_ns": to_ns(truth.total),
        "busy_ns": to_ns(truth.busy),
        "idle_ns": to_ns(truth.total - truth.busy),
        "computation_ns": to_ns(truth.computation),
        "comm_ns": to_ns(truth.comm),
        "exposed_comm_ns": to_ns(truth.exposed_comm),
        "memcpy_ns": to_ns(truth.memcpy),
        "exposed_memcpy_ns": to_ns(truth.exposed_memcpy),
    }
    columns = ", ".join(expected)
    assert rows(f"SELECT {columns} FROM trace_timeline WHERE {{trace}}", name) == [expected]
    of_device = {"device": truth.device} | expected
    assert rows(f"SELECT device, {columns} FROM gpu_timeline WHERE {{trace}}", name) == [of_device]


@every_sample
def test_warehouse_ops_and_kernels(rows: Any, name: str, truth: Truth) -> None:
    ops = {
        row["name"]: (row["count"], row["direct_kernel_time_ns"])
        for row in rows(
            "SELECT name, count, direct_kernel_time_ns FROM op_summary WHERE {trace}", name
        )
    }
    for op, (count, time) in truth.ops.items():
        assert ops[op] == (count, to_ns(time)), op
    kernels = {
        row["name"]: (row["count"], row["time_ns"])
        for row in rows("SELECT name, count, time_ns FROM kernel_summary WHERE {trace}", name)
    }
    for kernel, (count, time) in truth.by_kernel.items():
        assert kernels[kernel] == (count, to_ns(time)), kernel
    [without_op] = rows(
        "SELECT coalesce(sum(dur_ns), 0)::BIGINT AS ns FROM kernels"
        " WHERE {trace} AND op_id IS NULL",
        name,
    )
    assert without_op["ns"] == to_ns(truth.without_op)


def test_warehouse_of_the_torch_capture(rows: Any) -> None:
    name = "torch_cpu.json.gz"
    [trace] = rows("SELECT status, kernels FROM traces WHERE {trace}", name)
    assert trace == {"status": "ok", "kernels": 0}
    linear = "SELECT count(*) AS n FROM ops WHERE {trace} AND name = 'aten::linear'"
    assert rows(linear, name) == [{"n": 8}]
    codes = rows("SELECT code FROM issues WHERE {trace} AND severity <> 'info'", name)
    assert codes == [{"code": "NO_GPU_EVENTS"}]
