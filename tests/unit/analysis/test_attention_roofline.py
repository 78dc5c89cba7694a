"""Attention of serving steps through the tables; the numbers are those of inference.md §6.

Peaks of the H100 SXM: 989.5 TFLOPS bf16, 3.35 TB/s.
"""

from __future__ import annotations

import json

import pytest
from tracegen import Trace

import tracehouse

BF16 = "c10::BFloat16"
VLLM = "vllm::unified_attention_with_output"
V3 = "execute_%d_context_%d(sq%dsk%dsqsq%dsqsk%d)_generation_%d(sq%dsk%dsqsq%dsqsk%d)"
# The reference's worked examples: the annotation, heads, FLOPs, bytes. Widths are 128, 2 bytes.
EXAMPLES = {
    "prefill only": (
        *("step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]",),
        *(32, 8, 890843406336, 301486080),
    ),
    "third chunk": (
        V3 % (2048, 1, 2048, 6144, 4194304, 12582912, 0, 0, 0, 0, 0),
        *(32, 8, 171798691840, 58720256),
    ),
    "mixed": (
        V3 % (6147, 2, 6144, 7144, 20971520, 23019520, 3, 3, 6144, 3, 6144),
        *(64, 8, 410907574272, 255852544),
    ),
    "speculative": (
        "decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]",
        *(32, 8, 4294967296, 270532608),
    ),
    "mixed by totals": (
        "decode[bs=34 tok=1056 p=2 d=32 sqsq=524320 sqsk=589824 sk=66560]",
        *(32, 8, 5368709120, 289931264),
    ),
}
CONFIG = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 2,
    "max_position_embeddings": 16384,
    "torch_dtype": "bfloat16",
}


def inputs(tokens, h_q, h_kv, width, cache=BF16):
    """What vLLM's op records."""
    q, k = [tokens, h_q, width], [tokens, h_kv, width]
    return {
        "Input Dims": [q, k, k, q, [], [], [], [0]],
        "Input type": [BF16, cache, cache, BF16, "", "", "", BF16],
        "Concrete Inputs": [""] * 8,
    }


def drawn(*steps, **envelope):
    """Steps 10 ms apart, each (annotation, [(op, args), …]); a call takes 1 ms on the GPU."""
    trace, at = Trace(**envelope), 0
    for number, (annotation, calls) in enumerate(steps):
        trace.annotation(annotation, 10_000 * number, 900)
        for i, (name, args) in enumerate(calls):
            at += 1
            start = 10_000 * number + 20 * i + 10
            trace.op(name, start, 10, **args).launch(start + 1, 4, correlation=at)
            trace.kernel("attention", 10_000 * number + 1000 * (i + 1), 1000, correlation=at)
    return trace


@pytest.fixture
def read(tmp_path):
    def run(trace, config=None, **options):
        if config is not None:
            path = tmp_path / "config.json"
            path.write_text(json.dumps(config), encoding="utf-8")
            options["model_config"] = path
        return tracehouse.read(trace.write(tmp_path / "trace.json"), **options)

    return run


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """All worked examples as steps of one trace: rows by the name of the example."""
    steps = [
        (annotation, [(VLLM, inputs(16384, h_q, h_kv, 128))])
        for annotation, h_q, h_kv, _, _ in EXAMPLES.values()
    ]
    path = tmp_path_factory.mktemp("examples") / "trace.json"
    trace = tracehouse.read(drawn(*steps).write(path))
    rows = trace.attention_roofline.to_pylist()
    assert [row["step_id"] for row in rows] == list(range(len(EXAMPLES)))
    return dict(zip(EXAMPLES, rows, strict=True)), trace


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(examples, name):
    _, h_q, h_kv, flops, moved = EXAMPLES[name]
    row = examples[0][name]
    assert (row["flops"], row["bytes"]) == (flops, moved)
    assert (row["flops_seed"], row["bytes_seed"]) == (flops, moved)
    assert (row["flops_min"], row["flops_max"]) == (flops, flops)
    assert (row["bytes_min"], row["bytes_max"]) == (moved, moved)
    assert row["flops_per_byte"] == pytest.approx(flops / moved)
    assert (row["h_q"], row["h_kv"], row["d_qk"], row["d_v"]) == (h_q, h_kv, 128, 128)
    assert (row["source"], row["why"], row["kernel_time_ns"]) == ("inputs", None, 1_000_000)
    assert row["tflops_s"] == pytest.approx(flops / 1e9)  # in 1 ms
    assert row["tb_s"] == pytest.approx(moved / 1e9)
    roofline = max(flops / 989.5e3, moved / 3.35e3)
    assert row["roofline_ns"] == pytest.approx(roofline)
    assert row["roofline_pct"] == pytest.approx(roofline / 10_000)
    assert row["bound"] == ("compute" if flops / 989.5 > moved / 3.35 else "memory")


def test_op_perf_has_the_work_of_each_step(examples):
    """One signature in three steps: the work is that of the step."""
    rows, trace = examples
    of_ops = {row["event_id"]: row for row in trace.op_perf.to_pylist()}
    for row in rows.values():
        of_op = of_ops[row["event_id"]]
        assert (of_op["flops"], of_op["bytes"]) == (row["flops"], row["bytes"])
        assert (of_op["step_id"], of_op["counted"]) == (row["step_id"], True)
    assert len({row["signature_id"] for row in of_ops.values()}) == 2  # heads 32/8 and 64/8
    summed = trace.attention_summary.to_pylist()
    assert {row["phase"] for row in summed} == {"prefill", "mixed", "decode"}
    (decode,) = (row for row in summed if row["phase"] == "decode")
    assert (decode["calls"], decode["steps"], decode["flops"]) == (1, 1, 4294967296)


# The reference's golden rows, drawn: op, its tensors, the annotation, GFLOP, MiB.
RAGGED = "sglang_profiler::attention_paged_attention_ragged"
GOLDEN = {
    "vllm_decode_full": (
        *(VLLM, inputs(32, 64, 8, 64)),
        V3 % (32, 0, 0, 0, 0, 0, 32, 32, 55086, 32, 55086),
        *(0.902529024, 108.08984375, 7.96299),
    ),
    "vllm_prefilldecode_piecewise": (
        *(VLLM, inputs(8192, 64, 8, 64)),
        V3 % (8192, 9, 8155, 8430, 7475785, 7671310, 37, 37, 34489, 37, 34489),
        *(65.010180096, 211.826171875, 292.686),
    ),
    "sglang_decode": (
        RAGGED,
        {
            "Input Dims": [[32, 32, 128], [1], [32, 32, 128], *[[835874, 1, 8, 128]] * 2],
            "Input type": [BF16, "unsigned char", BF16, BF16, BF16],
        },
        V3 % (32, 0, 0, 0, 0, 0, 32, 32, 32785, 32, 32785),
        *(0.53714944, 128.56640625, 3.98444),
    ),
    "sglang_prefilldecode": (
        "aiter::mha_batch_prefill",
        {
            "Input Dims": [[15360, 32, 128], [900000, 8, 128], [900000, 8, 128]],
            "Input type": [BF16] * 3,
        },
        V3 % (15360, 15, 15360, 15360, 15728640, 15728640, 0, 0, 0, 0, 0),
        *(128.84901888, 300.0, 409.6),
    ),
}


def test_golden_rows(read):
    steps = [(annotation, [(op, args)]) for op, args, annotation, *_ in GOLDEN.values()]
    rows = read(drawn(*steps)).attention_roofline.to_pylist()
    for row, (*_, gflop, mib, ratio) in zip(rows, GOLDEN.values(), strict=True):
        assert row["flops"] / 1e9 == gflop
        assert row["bytes"] / 2**20 == mib
        assert row["flops_per_byte"] == pytest.approx(ratio, rel=1e-5)


def test_cache_of_8_bits(read):
    """6147·16384·2 + 13288·2048·1; the seed has one type, that of the queries."""
    annotation, h_q, h_kv, flops, moved = EXAMPLES["mixed"]
    args = inputs(6147, h_q, h_kv, 128)
    args["Input Dims"][1:3] = [[5000, 16, h_kv, 128]] * 2  # pages of 16
    args["Input type"][1:3] = ["c10::Float8_e4m3fn"] * 2
    (row,) = read(drawn((annotation, [(VLLM, args)]))).attention_roofline.to_pylist()
    assert (row["flops"], row["bytes"], row["kv_bits"]) == (flops, 228638720, 8)
    assert (row["bytes_seed"], row["note"]) == (moved, None)


def test_cache_of_8_bits_by_the_configuration(read):
    """vLLM's op gets the new keys; in which type they are kept stands in the model's config."""
    annotation, h_q, h_kv, _, moved = EXAMPLES["mixed"]
    trace = drawn((annotation, [(VLLM, inputs(6147, h_q, h_kv, 128))]))
    (row,) = read(trace).attention_roofline.to_pylist()
    assert row["bytes"] == moved
    assert row["note"] == "the cache is taken to be of the new keys' type, 16 bits"
    quantised = CONFIG | {"quantization_config": {"kv_cache_quant_algo": "FP8"}}
    (row,) = read(trace, quantised).attention_roofline.to_pylist()
    assert (row["bytes"], row["kv_bits"], row["source"]) == (228638720, 8, "inputs")
    assert row["h_q"] == 64  # the op's own heads go before those of the configuration


def test_a_step_that_says_its_tokens_only(read):
    """Two prefills of 14,721 tokens: at least 8192·14721²/2, as in test_step_bounds."""
    trace = drawn(
        ("execute_context_2(14721)_generation_0(0)", [(VLLM, inputs(14848, 32, 8, 128))]),
        ("execute_new_1_cached_63", [(VLLM, inputs(64, 32, 8, 128))]),
    )
    first, second = read(trace).attention_roofline.to_pylist()
    assert (first["flops"], first["bytes"], first["roofline_ns"]) == (None, None, None)
    assert first["why"].startswith("the step's annotation does not say the lengths")
    assert (first["flops_min"], first["bytes_min"]) == (887635316736, 301486080)
    assert (first["flops_max"], first["bytes_max"]) == (None, None)
    assert (second["flops_min"], second["bytes_min"]) == (None, None)
    first, _ = read(trace, CONFIG).attention_roofline.to_pylist()
    assert first["flops"] is None
    assert first["flops_max"] == 8192 * (2 * 14721 * 16384) - 8192 * 14721**2 // 2
    assert first["bytes_max"] == (14721 * 8192 + 2 * 16384 * 2048) * 2


def test_heads_of_the_configuration(read):
    """An op without recorded shapes."""
    annotation, _, _, flops, moved = EXAMPLES["third chunk"]
    trace = drawn((annotation, [(VLLM, {})]))
    (row,) = read(trace).attention_roofline.to_pylist()
    assert (row["flops"], row["h_q"], row["source"], row["flops_min"]) == (None,) * 4
    assert row["why"].startswith("its inputs were not recorded")
    (row,) = (found := read(trace, CONFIG)).attention_roofline.to_pylist()
    assert (row["flops"], row["bytes"], row["source"]) == (flops, moved, "model_config")
    assert row["note"].startswith("heads of the whole model: how many ranks share them is not")
    assert (row["compute_spec"], row["bound"]) == ("matrix_bf16", "compute")
    (perf,) = found.op_perf.to_pylist()
    assert (perf["flops"], perf["dtype"]) == (flops, "bf16")
    assert json.loads(perf["params"])["model_config"] == 1


def test_ops_whose_inputs_are_not_understood(read):
    """FlashInfer's wrappers: decode is for generation; prefill, in a mixed step, may be either."""
    mixed = V3 % (104, 1, 100, 300, 10000, 30000, 4, 4, 4000, 4, 4000)
    args = {"Input Dims": [[104, 4096]], "Input type": [BF16]}
    calls = [("flashinfer::batch_decode", args), ("flashinfer::batch_prefill", args)]
    decode, prefill = read(drawn((mixed, calls)), CONFIG).attention_roofline.to_pylist()
    assert (decode["part"], decode["flops"]) == ("generation", 8192 * 8000)
    assert (prefill["part"], prefill["flops"]) == (None, None)
    only = V3 % (100, 1, 100, 300, 10000, 30000, 0, 0, 0, 0, 0)
    (row,) = read(drawn((only, calls[1:])), CONFIG).attention_roofline.to_pylist()
    assert (row["part"], row["flops"]) == ("all", 8192 * 50000)


def test_heads_among_ranks(read):
    annotation, _, _, flops, _ = EXAMPLES["third chunk"]

    def rows(ranks):
        job = {"rank": 0, "world_size": ranks}
        return read(drawn((annotation, [(VLLM, {})]), distributedInfo=job), CONFIG)

    (row,) = rows(16).attention_roofline.to_pylist()
    assert (row["h_q"], row["h_kv"]) == (2, 1)  # one head of keys on two ranks
    assert row["flops"] == flops // 16
    assert row["note"].startswith("heads of one of 16 ranks")
    (row,) = rows(1).attention_roofline.to_pylist()
    assert (row["flops"], row["note"]) == (flops, row["note"])
    assert "heads" not in row["note"]
    (row,) = rows(3).attention_roofline.to_pylist()
    assert (row["flops"], row["flops_min"]) == (None, None)
    assert row["why"] == ("the heads of --model-config do not divide among the ranks of the trace")


def test_latent_attention_of_the_configuration(read):
    config = {
        **{"num_attention_heads": 16, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64},
        **{"v_head_dim": 128, "kv_lora_rank": 512, "torch_dtype": "bfloat16"},
    }
    annotation = V3 % (64, 0, 0, 0, 0, 0, 64, 64, 65536, 64, 65536)
    trace = drawn((annotation, [("vllm::unified_mla_attention", {})]))
    (row,) = read(trace, config).attention_roofline.to_pylist()
    assert (row["h_q"], row["h_kv"], row["d_qk"], row["d_v"]) == (16, 1, 576, 512)
    assert row["flops"] == row["flops_seed"] == 16 * 1088 * 2 * 65536
    assert row["bytes"] == 64 * 16 * 1088 * 2 + 65536 * 576 * 2
    assert row["bytes_seed"] == 64 * 16 * 1088 * 2 + 65536 * 1088 * 2


def test_windows_of_layers(read):
    """Two layers, the first of which sees 128 keys: 32 requests of 1,721.4 keys on average."""
    windowed = CONFIG | {
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"],
    }
    annotation = V3 % (32, 0, 0, 0, 0, 0, 32, 32, 55086, 32, 55086)
    calls = [(VLLM, inputs(32, 64, 8, 64))]
    step = (annotation, calls * 2)
    first, second = read(drawn(step), windowed).attention_roofline.to_pylist()
    assert (first["window_keys"], second["window_keys"]) == (128, None)
    assert first["flops"] == 64 * 128 * 2 * 32 * 128
    assert first["bytes"] == 32 * 64 * 128 * 2 + 32 * 128 * 8 * 128 * 2
    assert first["flops_seed"] == second["flops"] == 902529024
    assert first["flops_max"] == first["flops"] > first["flops_min"]
    assert "upper bounds" in first["note"]
    # as many calls as no layers have: which is which?
    rows = read(drawn((annotation, calls * 3)), windowed).attention_roofline.to_pylist()
    assert {row["window_keys"] for row in rows} == {None}
    assert all("not applied" in row["note"] for row in rows)


def test_a_call_inside_another_counts_once(read):
    annotation, _, _, flops, _ = EXAMPLES["third chunk"]
    inner = {
        "Input Dims": [[2048, 32, 128], *[[900, 16, 8, 128]] * 2, [2048, 32, 128]],
        "Input type": [BF16] * 4,
    }
    trace = (
        Trace()
        .annotation(annotation, 0, 900)
        .op(VLLM, 10, 80, **inputs(2048, 32, 8, 128))
        .op("_vllm_fa2_C::varlen_fwd", 20, 40, **inner)
        .launch(30, 4, correlation=1)
        .kernel("flash_fwd", 50, 100, correlation=1)
    )
    (row,) = (found := read(trace)).attention_roofline.to_pylist()
    assert (row["name"], row["flops"]) == (VLLM, flops)
    outer, inside = found.op_perf.to_pylist()
    assert (outer["counted"], inside["counted"]) == (True, False)
    assert outer["flops"] == inside["flops"] == flops


def test_a_call_in_no_step(read):
    trace = (
        Trace()
        .op(VLLM, 10, 80, **inputs(2048, 32, 8, 128))
        .launch(30, 4, correlation=1)
        .kernel("flash_fwd", 50, 100, correlation=1)
    )
    found = read(trace)
    assert found.attention_roofline.num_rows == 0
    (row,) = found.op_perf.to_pylist()
    assert (row["flops"], row["why"]) == (
        *(None, "the lengths of the sequences are not in its inputs"),
    )
    assert json.loads(row["params"])["H_q"] == 32


def test_which_requests_a_call_is_for(read):
    """Prefill and decode in calls of their own, and one that is neither."""
    mixed = V3 % (104, 1, 100, 300, 10000, 30000, 4, 4, 4000, 4, 4000)
    calls = [(VLLM, inputs(n, 32, 8, 128)) for n in (100, 4, 50)]
    rows = read(drawn((mixed, calls))).attention_roofline.to_pylist()
    assert [row["part"] for row in rows] == ["context", "generation", None]
    assert [row["flops"] for row in rows] == [8192 * 50000, 8192 * 8000, None]
    assert rows[2]["why"].startswith("its queries are not all of the step's")


def test_sums_that_contradict_each_other(read):
    odd = V3 % (32, 0, 0, 0, 0, 0, 32, 32, 16, 32, 16)  # fewer keys than queries
    (row,) = read(drawn((odd, [(VLLM, inputs(32, 64, 8, 64))]))).attention_roofline.to_pylist()
    assert "the step's sums contradict each other: g_sk < g_sq" in row["note"]


def test_linear_attention_by_its_tokens(read):
    # 4 heads of 16 on 2 key heads of 8: 2·2·8 + 4·16 = 96 columns; 30 of 32 tokens are real.
    args = {
        "Input Dims": [[32, 96], [32, 4], [32, 4], [32, 4, 16]],
        "Input type": [BF16] * 4,
    }
    step = (
        V3 % (30, 1, 20, 20, 400, 400, 10, 10, 99, 10, 99),
        [("vllm::gdn_attention_core", args)],
    )
    found = read(drawn(step))
    (row,) = found.op_perf.to_pylist()
    assert (row["flops"], row["bytes"]) == (30 * 4 * 7 * 16 * 8, 30 * 4 * (8 + 2 * 16 + 2) * 2)
    assert found.attention_roofline.num_rows == 0  # it has no keys to attend to


def test_numbers_out_of_range(read):
    huge = 10**16  # 64·128·2·10¹⁶ is above 2⁶², and so is 8·128·2·10¹⁶
    odd = V3 % (32, 0, 0, 0, 0, 0, 32, 32, huge, 32, huge)
    (row,) = read(drawn((odd, [(VLLM, inputs(32, 64, 8, 64))]))).attention_roofline.to_pylist()
    assert (row["flops"], row["bytes"], row["flops_max"]) == (None, None, None)
    assert row["why"] == "the product of the shapes is out of range"


def test_every_row_is_the_same_in_any_company(read, tmp_path):
    """Two traces of one part have other steps of the same number."""
    traces = tmp_path / "both"
    traces.mkdir()
    for name in ("third chunk", "speculative"):
        annotation, h_q, h_kv, *_ = EXAMPLES[name]
        trace = drawn((annotation, [(VLLM, inputs(16384, h_q, h_kv, 128))]))
        trace.write(traces / f"{name[0]}.json")
    tracehouse.analyze(traces, tmp_path / "out", workers=1)
    with tracehouse.open(tmp_path / "out") as warehouse:
        found = warehouse.sql("SELECT flops FROM attention_roofline ORDER BY flops")[
            "flops"
        ].to_pylist()
        summed = warehouse.sql("SELECT sum(calls) AS calls FROM attention_summary").to_pylist()
    assert found == [4294967296, 171798691840]
    assert summed == [{"calls": 2}]


DECODE = V3 % (32, 0, 0, 0, 0, 0, 32, 32, 55086, 32, 55086)
GPT_OSS = {
    **{"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64},
    **{"num_hidden_layers": 2, "sliding_window": 128, "torch_dtype": "bfloat16"},
    "layer_types": ["sliding_attention", "full_attention"],
}


def replayed(*names, annotation=DECODE):
    """A step that is one graph launch; its kernels take 100 µs each, back to back."""
    trace = Trace().annotation(annotation, 0, 900)
    trace.launch(10, 5, correlation=1, name="cudaGraphLaunch")
    for i, name in enumerate(names):
        trace.kernel(name, 100 * (i + 1), 100, correlation=1)
    return trace


def test_kernels_of_a_graph_that_no_op_is_known_of(read):
    """Two layers of vllm_decode_full: one kernel of the windowed one, two of the other."""
    trace = replayed(
        *("rms_norm", "kernel_unified_attention_2d", "gemm"),
        *("kernel_unified_attention_3d", "reduce_segments", "gemm"),
    )
    rows = read(trace).attention_roofline.to_pylist()
    assert [row["name"] for row in rows] == [
        "kernel_unified_attention_2d",
        "kernel_unified_attention_3d",
    ]
    assert [row["kernel_count"] for row in rows] == [1, 2]
    assert [row["kernel_time_ns"] for row in rows] == [100_000, 200_000]
    assert {(row["flops"], row["h_q"]) for row in rows} == {(None, None)}
    assert rows[0]["why"].startswith("no op is known of its kernel: pass --model-config")
    first, second = (found := read(trace, GPT_OSS)).attention_roofline.to_pylist()
    assert (first["window_keys"], second["window_keys"]) == (128, None)
    assert (second["flops"], second["bytes"] / 2**20) == (902529024, 108.08984375)
    assert second["source"] == "model_config"
    assert second["tb_s"] == pytest.approx(108.08984375 * 2**20 / 2e8)
    assert second["roofline_pct"] == pytest.approx(100 * 108.08984375 * 2**20 / 3.35e3 / 2e5)
    assert {row["event_id"] for row in (first, second)} <= set(
        found.kernels["event_id"].to_pylist()
    )


def test_ops_and_kernels_beside_each_other(read):
    """The first step ran op by op, the second as a graph: one line of numbers each."""
    trace = replayed("kernel_unified_attention_3d")
    trace.annotation(DECODE, 5000, 900).op(VLLM, 5010, 50, **inputs(32, 64, 8, 64))
    trace.launch(5020, 4, correlation=2)
    trace.kernel("kernel_unified_attention_3d", 5100, 100, correlation=2)
    plain = {key: value for key, value in GPT_OSS.items() if key != "sliding_window"}
    found = read(trace, plain)
    rows = {row["step_id"]: row for row in found.attention_roofline.to_pylist()}
    assert [rows[i]["source"] for i in (0, 1)] == ["model_config", "inputs"]
    assert [rows[i]["name"] for i in (0, 1)] == ["kernel_unified_attention_3d", VLLM]
    assert {row["flops"] for row in rows.values()} == {902529024}
    assert {row["phase"] for row in rows.values()} == {"decode"}
    assert [row["calls"] for row in found.attention_summary.to_pylist()] == [1, 1]


def test_kernels_of_one_kind_of_requests(read):
    mixed = V3 % (104, 1, 100, 300, 10000, 30000, 4, 4, 4000, 4, 4000)
    trace = replayed("flash_fwd_kernel", "paged_attention_v1_kernel", annotation=mixed)
    rows = {r["name"]: r for r in read(trace, CONFIG).attention_roofline.to_pylist()}
    decode = rows["paged_attention_v1_kernel"]
    assert (decode["part"], decode["flops"]) == ("generation", 8192 * 8000)
    either = rows["flash_fwd_kernel"]  # prefill alone, or all of it
    assert (either["part"], either["flops"]) == (None, None)
    assert either["why"].startswith("its queries are not all of the step's")


def test_kernels_that_no_attention_is(read):
    trace = replayed("reduce_segments", "gemm", "reshape_and_cache_flash_kernel")
    assert read(trace, CONFIG).attention_roofline.num_rows == 0
