"""Every wording of inference.md §1, and what follows from it, in the columns of `steps`.

The numbers are those of its tables; where it gives a rule, the arithmetic stands beside.
"""

from __future__ import annotations

import pytest
from part_tables import A, part
from reference.frames import call, frame, kernel, note, op

from tracehouse.analysis import step_grammars
from tracehouse.analysis.link import link
from tracehouse.analysis.settings import Settings
from tracehouse.analysis.summaries import summarise
from tracehouse.findings import Findings

COLUMNS = (
    *("framework", "phase", "r", "r_c", "c_sq", "c_sk", "c_sqsq", "c_sqsk"),
    *("r_g", "g_sq", "g_sk", "g_sqsq", "g_sqsk", "tokens"),
)
N = None
D = {"sq": 8155, "sk": 8430}
V3 = "execute_%d_context_%d(sq%dsk%dsqsq%dsqsk%d)_generation_%d(sq%dsk%dsqsq%dsqsk%d)"
TRT = "[Executor] _forward_step"
# name: framework, phase, R; context R, Σq, Σk, Σq², Σqk; generation R, Σq, Σk, Σq², Σqk; tokens
SAID = {
    # V3
    V3 % (32, 0, 0, 0, 0, 0, 32, 32, 55086, 32, 55086): (
        *("vllm", "decode", 32, 0, 0, 0, 0, 0),
        *(32, 32, 55086, 32, 55086, 32),
    ),
    V3 % (8192, 9, 8155, 8430, 7475785, 7671310, 37, 37, 34489, 37, 34489): (
        *("vllm", "mixed", 46, 9, 8155, 8430, 7475785, 7671310),
        *(37, 37, 34489, 37, 34489, 8192),
    ),
    V3 % (14721, 2, 14721, 16221, 108745533, 120007533, 0, 0, 0, 0, 0): (
        *("vllm", "prefill", 2, 2, 14721, 16221, 108745533, 120007533),
        *(0, 0, 0, 0, 0, 14721),
    ),
    V3 % (128, 0, 0, 0, 0, 0, 64, 128, 131072, 256, 262144): (  # speculative: two tokens each
        *("vllm", "decode", 64, 0, 0, 0, 0, 0),
        *(64, 128, 131072, 256, 262144, 128),
    ),
    V3 % (6147, 2, 6144, 7144, 20971520, 23019520, 3, 3, 6144, 3, 6144): (
        *("vllm", "mixed", 5, 2, 6144, 7144, 20971520, 23019520),
        *(3, 3, 6144, 3, 6144, 6147),
    ),
    V3 % (48, 0, 0, 0, 0, 0, 32, 32, 55086, 32, 55086): (  # 48 is padded: the sums count
        *("vllm", "decode", 32, 0, 0, 0, 0, 0),
        *(32, 32, 55086, 32, 55086, 32),
    ),
    # V2
    "execute_context_2(14721)_generation_0(0)": (
        *("vllm", "prefill", 2, 2, 14721, N, N, N),
        *(0, 0, 0, 0, 0, 14721),
    ),
    "execute_context_0(0)_generation_64(64)": (  # one token each: Σq² = Σq
        *("vllm", "decode", 64, 0, 0, 0, 0, 0),
        *(64, 64, N, 64, N, 64),
    ),
    "execute_context_0(0)_generation_32(128)": (
        *("vllm", "decode", 32, 0, 0, 0, 0, 0),
        *(32, 128, N, N, N, 128),
    ),
    "execute_context_1(2048)_generation_31(31)": (  # one request: 2048² = 4194304
        *("vllm", "mixed", 32, 1, 2048, N, 4194304, N),
        *(31, 31, N, 31, N, 2079),
    ),
    "execute_context_0(0)_generation_0(0)": (
        *("vllm", "idle", 0, 0, 0, 0, 0, 0),
        *(0, 0, 0, 0, 0, 0),
    ),
    "execute_context_2(1025)_generation_62(62)": (  # field_cases F65
        *("vllm", "mixed", 64, 2, 1025, N, N, N),
        *(62, 62, N, 62, N, 1087),
    ),
    # V1: cached requests may still be in prefill
    "execute_new_1_cached_63": ("vllm", "mixed", 64, 1, N, N, N, N, 63, N, N, N, N, N),
    "execute_new_0_cached_64": ("vllm", "decode", 64, 0, N, N, N, N, 64, N, N, N, N, N),
    "execute_new_0_cached_0": ("vllm", "idle", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "execute_new_3_cached_5": ("vllm", "mixed", 8, 3, N, N, N, N, 5, N, N, N, N, N),
    # SGLang
    "step[EXTEND bs=2 toks=14721]": (
        *("sglang", "prefill", 2, 2, 14721, N, N, N),
        *(0, 0, 0, 0, 0, 14721),
    ),
    "step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]": (
        *("sglang", "prefill", 2, 2, 14721, 14721, 108745533, 108745533),
        *(0, 0, 0, 0, 0, 14721),
    ),
    "step[DECODE bs=64]": (  # one token each is assumed
        *("sglang", "decode", 64, 0, 0, 0, 0, 0),
        *(64, 64, N, 64, N, 64),
    ),
    "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]": (
        *("sglang", "decode", 64, 0, 0, 0, 0, 0),
        *(64, 128, 131072, 256, 262144, 128),
    ),
    "step[DECODE bs=64 g_sq=64 g_sk=100032]": (  # F65: one token each, so Σqk = Σk
        *("sglang", "decode", 64, 0, 0, 0, 0, 0),
        *(64, 64, 100032, 64, 100032, 64),
    ),
    "step[MIXED bs=2]": ("sglang", "mixed", 2, N, N, N, N, N, N, N, N, N, N, N),
    "step[MIXED bs=66 c=2 g=64]": ("sglang", "mixed", 66, 2, N, N, N, N, 64, N, N, N, N, N),
    "step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=20971520 c_sqsk=23019520"
    " g_sq=3 g_sk=6144 g_sqsq=3 g_sqsk=6144]": (
        *("sglang", "mixed", 5, 2, 6144, 7144, 20971520, 23019520),
        *(3, 3, 6144, 3, 6144, 6147),
    ),
    "step[MIXED bs=1 c=1 g=0]": (  # by its counts
        *("sglang", "prefill", 1, 1, N, N, N, N),
        *(0, 0, 0, 0, 0, N),
    ),
    "step[TARGET_VERIFY bs=23 forward_id=881]": (
        *("sglang", "decode", 23, 0, 0, 0, 0, 0),
        *(23, N, N, N, N, N),
    ),
    "step[VERIFY bs=2]": ("sglang", "decode", 2, 0, 0, 0, 0, 0, 2, N, N, N, N, N),
    "step[SPLIT_PREFILL bs=3]": ("sglang", "prefill", 3, 3, N, N, N, N, 0, 0, 0, 0, 0, N),
    "step[DLLM_EXTEND bs=3]": ("sglang", "prefill", 3, 3, N, N, N, N, 0, 0, 0, 0, 0, N),
    "step[IDLE bs=0]": ("sglang", "idle", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "step[PREBUILT bs=4]": ("sglang", "idle", 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    # ATOM: 7803² + 6918² = 60886809 + 47858724 = 108745533
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": (
        *("atom", "prefill", 2, 2, 14721, 14721, 108745533, 108745533),
        *(0, 0, 0, 0, 0, 14721),
    ),
    "prefill[bs=2 tok=10000 ctx=[7803, 6918]]": (  # 4721 of them were cached
        *("atom", "prefill", 2, 2, 10000, 14721, N, N),
        *(0, 0, 0, 0, 0, 10000),
    ),
    "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]": (
        *("atom", "prefill", 6, 6, 17408, N, N, N),
        *(0, 0, 0, 0, 0, 17408),
    ),
    "decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=239616 sk=239616]": (
        *("atom", "decode", 117, 0, 0, 0, 0, 0),
        *(117, 117, 239616, 117, 239616, 117),
    ),
    "decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]": (
        *("atom", "decode", 32, 0, 0, 0, 0, 0),
        *(32, 128, 65536, 512, 262144, 128),
    ),
    "decode[bs=34 tok=1056 p=2 d=32 sqsq=524320 sqsk=589824 sk=66560]": (
        # of the totals 32 tokens are the decodes': 1056 - 32, 524320 - 32
        *("atom", "mixed", 34, 2, 1024, N, 524288, N),
        *(32, 32, N, 32, N, 1056),
    ),
    "decode[bs=34 tok=20 p=2 d=32 sqsq=524320 sqsk=589824 sk=66560]": (  # 20 - 32 < 0
        *("atom", "mixed", 34, 2, N, N, N, N),
        *(32, N, N, N, N, 20),
    ),
    "eager_decode[bs=2 tok=2 d=2 sqsq=2 sqsk=9 sk=9]": (
        *("atom", "decode", 2, 0, 0, 0, 0, 0),
        *(2, 2, 9, 2, 9, 2),
    ),
    "decode[bs=2 tok=2 d=2 sqsq=2 sqsk=9 sk=9 tbo=1]": (
        *("atom", "decode", 2, 0, 0, 0, 0, 0),
        *(2, 2, 9, 2, 9, 2),
    ),
    "prefill_bs_3_ctxlens_[5, 6, 7]": ("atom", "prefill", 3, 3, N, N, N, N, 0, 0, 0, 0, 0, N),
    "decode_step_bs_9": ("atom", "decode", 9, 0, 0, 0, 0, 0, 9, N, N, N, N, N),
    # TensorRT-LLM
    f"{TRT} 118: 1 ctx reqs, 31 gen reqs": (
        *("tensorrt_llm", "mixed", 32, 1, N, N, N, N),
        *(31, N, N, N, N, N),
    ),
    f"{TRT} 60000: 0 ctx reqs, 0 ctx tkns, 32 gen reqs": (
        *("tensorrt_llm", "decode", 32, 0, 0, 0, 0, 0),
        *(32, N, N, N, N, N),
    ),
    f"{TRT}: 2 ctx reqs, 900 ctx tokens, 0 gen reqs": (
        *("tensorrt_llm", "prefill", 2, 2, 900, N, N, N),
        *(0, 0, 0, 0, 0, 900),
    ),
    # Diffusion
    "execute_diffusion_1_256x256": ("xdit", "diffusion", 1, N, N, N, N, N, N, N, N, N, N, N),
    # none of these
    "ProfilerStep#12": ("pytorch", "other", N, N, N, N, N, N, N, N, N, N, N, N),
    "step(13)": (N, "other", N, N, N, N, N, N, N, N, N, N, N, N),
}
NO_STEPS = {
    "step[DRAFT bs=4]": "sub-step",
    "step[DRAFT_EXTEND bs=4]": "sub-step",
    "step[DRAFT_EXTEND_V2 bs=4]": "sub-step",
    "step[DRAFT_LOOP bs=4]": "sub-step",
    "draft": "sub-step",
    "draft_extend": "sub-step",
    "dummy_decode[bs=1 tok=1 d=1]": "dummy",
    "dummy_prefill[bs=1 tok=8192 ctx=[8192]]": "dummy",
    "dummy_eager_decode[bs=1 tok=1 d=1]": "dummy",
    "capture_32_FULL": "capture",
    "capture_512_PIECEWISE": "capture",
    "capture_32_DECODE": "capture",
    "forward": "other",
    "drafty": "other",
    "ProfilerStep#x": "other",
    "xstep[DECODE bs=64]": "other",
    "step[DECODE bs=64] ": "step",  # begins like a step: unparsed
}


def analysed(*events, settings=None, **more):
    """Link events and evaluate the views; returns the tables and the findings."""
    findings = Findings()
    settings = settings or Settings()
    linked = link(frame(events), A, findings=findings, grammars=settings.grammars)
    tables = part() | {k: v for k, v in linked.items() if k in part()} | more
    codes = {finding.code.word: finding.count for finding in findings}
    return linked | summarise(tables, settings=settings), codes


def steps_of(*events, **more):
    return analysed(*events, **more)[0]["steps"].to_pylist()


@pytest.fixture(scope="module")
def said():
    names = [*SAID, *NO_STEPS]
    tables, _ = analysed(*(note(name, 100 * i, 90) for i, name in enumerate(names)))
    return tables


@pytest.mark.parametrize("name", SAID)
def test_what_an_annotation_says(said, name):
    (row,) = [row for row in said["steps"].to_pylist() if row["annotation"] == name]
    assert tuple(row[column] for column in COLUMNS) == SAID[name]
    assert row["violated"] is None
    assert row["event_id"] == list(SAID).index(name)


@pytest.mark.parametrize("name", NO_STEPS)
def test_what_is_no_step(said, name):
    (row,) = [row for row in said["annotations"].to_pylist() if row["name"] == name]
    assert row["role"] == NO_STEPS[name]


def test_steps_count_in_order_of_time(said):
    rows = said["steps"].to_pylist()
    assert [row["step_id"] for row in rows] == list(range(len(SAID) + 1))
    assert [row["ts_ns"] for row in rows] == sorted(row["ts_ns"] for row in rows)


def test_totals_and_the_size_of_the_graph(said):
    rows = {row["annotation"]: row for row in said["steps"].to_pylist()}
    mixed = rows["decode[bs=34 tok=1056 p=2 d=32 sqsq=524320 sqsk=589824 sk=66560]"]
    assert [mixed[f"t_{x}"] for x in ("sk", "sqsq", "sqsk")] == [66560, 524320, 589824]
    full = rows[V3 % (6147, 2, 6144, 7144, 20971520, 23019520, 3, 3, 6144, 3, 6144)]
    assert full["t_sqsk"] == 23019520 + 6144
    assert (
        rows["decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=239616 sk=239616]"]["graph_size"] == 128
    )


@pytest.mark.parametrize(
    ("context", "violated"),
    [
        ((2, 6144, 6143, 20971520, 23019520), "c_sk < c_sq"),
        ((2, 6144, 7144, 20971520, 20971519), "c_sqsk < c_sqsq"),
        ((2, 6144, 7144, 37748737, 37748737), "c_sqsq > c_sq²"),  # 6144² = 37748736
        ((2, 6144, 7144, 18874367, 23019520), "c_sqsq · r_c < c_sq²"),  # 2 · 18874368 = 6144²
        ((2, 6144, 7144, 18874368, 23019520), None),
    ],
)
def test_sums_that_cannot_be_are_kept_and_told(context, violated):
    (row,) = steps_of(note(V3 % (6147, *context, 3, 3, 6144, 3, 6144), 0, 9))
    assert row["violated"] == violated
    assert (row["r_c"], row["c_sq"], row["c_sk"], row["c_sqsq"], row["c_sqsk"]) == context


@pytest.mark.parametrize(
    "inner",
    [
        "step[TARGET_VERIFY bs=32 g_sq=128 g_sqsq=512 g_sqsk=262144 g_sk=65536]",
        "execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)",
    ],
)
def test_what_is_recorded_inside_goes_before_what_is_assumed(inner):
    """32 requests of 4 speculated tokens and 2,048 keys: Σq² = 32 · 4², Σqk = 128 · 2,048.

    The outer one alone would mean a token each.
    """
    (row,) = steps_of(note("step[DECODE bs=32]", 0, 90), note(inner, 5, 80))
    assert row["annotation"] == inner
    sums = {name: row[name] for name in ("r_g", "g_sq", "g_sqsq", "g_sk", "g_sqsk", "tokens")}
    assert list(sums.values()) == [32, 128, 512, 65_536, 262_144, 128]
    assert (row["ts_ns"], row["cpu_dur_ns"]) == (0, 90_000)


def test_absurd_numbers():
    digits = "9" * 18
    names = [
        f"execute_context_1({digits})_generation_1({digits})",  # squares beyond int64
        "execute_context_1(" + "9" * 30 + ")_generation_0(0)",
        f"decode[bs={digits} tok={digits} p=1 d={digits} spec={digits} sqsq=1 sqsk=1 sk=1]",
        f"prefill[bs=2 tok=1 ctx=[{digits}, {digits}]]",
        f"step[DECODE bs={digits} bs=5 =4 x= ==]",
        "prefill[bs=2 tok=3 ctx=[" + ", ".join([digits] * 40) + "]]",
        "step[DECODE bs=٣]",  # digits, but not ASCII
    ]
    rows = steps_of(*(note(name, 10 * i, 9) for i, name in enumerate(names)))
    nines = int(digits)
    assert [row["annotation"] for row in rows] == names
    assert [row["c_sq"] for row in rows[:2]] == [nines, N]
    assert [row["c_sqsq"] for row in rows[:2]] == [N, N]
    assert [row["g_sq"] for row in rows[:3]] == [nines, 0, N]
    assert rows[3]["c_sk"] == 2 * nines
    assert rows[3]["c_sqsq"] is None
    assert (rows[4]["r"], rows[4]["phase"]) == (nines, "decode")
    assert rows[6]["r"] is None


def test_hostile_names():
    names = [
        "",
        "step[",
        "step[]",
        "step[DECODE",
        "step[DECODE bs=]",
        "step[" + "x" * 100_000,
        "prefill[" + "a" * 500 + "]",
        "prefill[" + "a=" * 400 + "]",
        "execute_new_1_cached_2\n",
        "execute_new_1_cached_2\x00",
        "'; DROP TABLE steps; --",
        "capture_1_" + "(" * 900,
    ]
    tables, codes = analysed(*(note(name, 10 * i, 9) for i, name in enumerate(names)))
    assert [row["name"] for row in tables["annotations"].to_pylist()] == names
    assert {row["phase"] for row in tables["steps"].to_pylist()} <= {"other", "decode", "prefill"}
    assert codes["STEP_UNPARSED"] >= 1


def test_many_distinct_names():
    names = [f"step[DECODE bs={i} {'ab'[i % 2]}{'x' * (i % 97)}={i}]" for i in range(20_000)]
    rows = steps_of(*(note(name, 10 * i, 9) for i, name in enumerate(names)))
    assert [row["r"] for row in rows] == list(range(20_000))


def test_a_hundred_thousand_forms():
    texts = [f"step[DECODE bs={i} {chr(97 + i % 26)}{'x' * (i // 26)}=1]" for i in range(20_000)]
    texts += [f"step[DECODE bs={i}]" for i in range(80_000)]
    said = step_grammars.load().read(texts)
    names = [rule.name for rule in step_grammars.load().rules]
    assert {names[rule] for rule in said.rule[:1000]} == {"sglang_decode"}
    assert said.numbers[99_999].as_py() == [79_999]
    assert said.fields[99_999].as_py() == "r"


def test_unparsed_wordings_are_steps_of_phase_other():
    tables, codes = analysed(note("step(13)", 0, 9), note("step[NEW bs=4]", 10, 9))
    assert [row["phase"] for row in tables["steps"].to_pylist()] == ["other", "other"]
    assert codes["STEP_UNPARSED"] == 2


def test_a_profiler_step_with_a_backward_pass_is_training():
    rows = steps_of(
        note("ProfilerStep#3", 0, 100),
        op("autograd::engine::evaluate_function: MmBackward0", 10, 20, tid=6),
    )
    assert [row["phase"] for row in rows] == ["training"]


def test_a_users_pattern_goes_first():
    settings = Settings(
        step_patterns=(
            r"batch(?P<iteration>\d+) new=(?P<r_c>\d+) old=(?P<r_g>\d+) q=(?P<c_sq>\d+)",
        )
    )
    rows = steps_of(
        note("batch7 new=1 old=5 q=9", 0, 9), note("step[DECODE bs=3]", 10, 9), settings=settings
    )
    assert [(row["framework"], row["phase"], row["r"]) for row in rows] == [
        ("user", "mixed", 6),
        ("sglang", "decode", 3),
    ]
    assert (rows[0]["c_sq"], rows[0]["c_sqsq"]) == (9, 81)


def test_a_users_pattern_may_mean_certain_digits():
    settings = Settings(step_patterns=(r"iter_1\d (?P<r>[1-9])",))
    names = ["iter_15 4", "iter_25 4", "iter_15 0"]
    rows = steps_of(*(note(n, 10 * i, 9) for i, n in enumerate(names)), settings=settings)
    assert [(row["annotation"], row["r"]) for row in rows] == [("iter_15 4", 4)]


def test_the_grammars_do_not_look_at_digits():
    """Rules are tried on forms, digits aside: each must fit its example whatever they are."""
    grammars = step_grammars.load()
    for name in (*SAID, *NO_STEPS):
        form = step_grammars._RUN.sub("0", name)
        first = [
            next((r.name for r in grammars.rules if r.regex.fullmatch(t)), N) for t in (name, form)
        ]
        assert first[0] == first[1]


# GPU


def test_time_gaps_and_rates_of_steps():
    #  host   0 ── step 0 ── 40   50 ── step 1 ── 90
    #  GPU        20-30 25-45              60──────100
    rows = steps_of(
        note("execute_context_1(2048)_generation_0(0)", 0, 40),
        call("cudaLaunchKernel", 1, 2, 1),
        call("cudaLaunchKernel", 4, 2, 2),
        kernel("a", 20, 10, 1, stream=7),
        kernel("b", 25, 20, 2, stream=8),
        note("execute_context_0(0)_generation_64(64)", 50, 40),
        call("cudaGraphLaunch", 51, 2, 3),
        kernel("c", 60, 10, 3),
        kernel("d", 70, 30, 3),
    )
    assert [row["gpu_busy_ns"] for row in rows] == [25_000, 40_000]
    assert [row["gpu_span_ns"] for row in rows] == [25_000, 40_000]
    assert [row["kernels"] for row in rows] == [2, 2]
    assert [row["cpu_dur_ns"] for row in rows] == [40_000, 40_000]
    assert [row["gap_before_ns"] for row in rows] == [None, 10_000]
    assert [row["gpu_gap_before_ns"] for row in rows] == [None, 15_000]
    assert [row["graph"] for row in rows] == ["eager", "full"]
    # 2048 tokens in 25 µs, 64 in 40 µs
    assert [row["tokens_per_s"] for row in rows] == pytest.approx([81_920_000.0, 1_600_000.0])


def test_several_graph_launches_are_piecewise():
    (row,) = steps_of(
        note("step[DECODE bs=3]", 0, 40),
        call("hipGraphLaunch", 1, 2, 1),
        call("hipGraphLaunch", 4, 2, 2),
        kernel("a", 20, 10, 1),
        kernel("b", 35, 10, 2),
    )
    assert row["graph"] == "piecewise"


def test_gpu_time_without_a_step_is_told():
    events = [
        note("step[DECODE bs=3]", 0, 40),
        call("cudaLaunchKernel", 1, 2, 1),
        kernel("a", 20, 30, 1),
        call("cudaLaunchKernel", 50, 2, 2),  # between the steps
        kernel("b", 55, 10, 2),
    ]
    tables, _ = analysed(*events)
    (check,) = [c for c in tables["checks"].to_pylist() if c["name"] == "without_step_pct"]
    assert (check["value"], check["ok"]) == (25.0, False)  # 10 of 40
    tables, _ = analysed(*events[1:])
    (check,) = [c for c in tables["checks"].to_pylist() if c["name"] == "without_step_pct"]
    assert check["value"] is None


# summaries


def test_summary_by_phase_and_batch():
    #  decode of 4: busy 10, 20, 30; mixed of 4: busy 40
    events = []
    for i, (name, busy) in enumerate(
        [
            ("execute_context_0(0)_generation_4(4)", 10),
            ("execute_context_0(0)_generation_4(4)", 20),
            ("execute_context_0(0)_generation_4(4)", 30),
            ("execute_context_1(60)_generation_3(3)", 40),
        ]
    ):
        events += [note(name, 100 * i, 50), call("cudaLaunchKernel", 100 * i + 1, 2, i + 1)]
        events.append(kernel("k", 100 * i + 10, busy, i + 1))
    tables, _ = analysed(*events)
    decode, mixed = tables["step_summary"].to_pylist()
    assert (decode["phase"], decode["r"], decode["steps"]) == ("decode", 4, 3)
    assert (decode["gpu_mean_ns"], decode["gpu_median_ns"]) == (20_000, 20_000)
    assert decode["gpu_p95_ns"] == pytest.approx(29_000)  # 20 + 0.9 · 10
    assert decode["gap_median_ns"] == 50_000
    assert decode["gpu_busy_pct"] == 100
    assert (decode["tokens"], decode["tokens_per_s"]) == (12, pytest.approx(12 / 60e-6))
    assert decode["over_decode_pct"] is None
    assert (mixed["phase"], mixed["over_decode_pct"]) == ("mixed", 100)  # 40 is twice 20
