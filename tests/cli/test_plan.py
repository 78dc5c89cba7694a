"""`tracehouse plan`: as a user runs it."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex

import commandline
import pytest

FIRST = ("--conc", 64, "--osl", 1024, "--r", 0.8)


def run(*arguments):
    return commandline.run("plan", *arguments)


def record(*arguments):
    result = run(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def flags(text: str, start: str) -> str:
    """Return the command that starts with `start`, its continued lines joined."""
    return re.search(rf"^    {start}.*?[^\\]$", text, re.M | re.S)[0].replace("\\\n", " ")


def test_a_page_for_people(tracehouse):
    result = tracehouse("plan", *FIRST)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[:7] == [
        "CONC 64, OSL 1,024, R 0.8, NUM_PROMPTS 640",
        "  average output        921.6 tokens",
        "  TOTAL_STEPS           9,216",
        "  prefill-decode steps  640, a share of 0.0694444: one in 15 steps",
        "  decode-only steps     8,576",
        "  max_iters             256 (raw 256)",
        "  delay_iters           4,480 (raw 4,480)",
    ]
    # 256 · 0.0694 = 17.8
    assert lines[7].endswith("steps 4,480 to 4,735, about 17.8 of them with a prefill")
    assert "  819.2 – 1,024" in result.stdout
    assert max(map(len, lines)) <= 80


def test_as_json():
    assert record(*FIRST) == record(*FIRST, "--num-prompts", 640)
    plan = record(*FIRST)
    assert plan["avg_osl"] == 921.6
    assert plan["total_steps"] == 9216
    assert plan["prefill_decode_steps"] == 640
    assert plan["decode_only_steps"] == 8576
    assert plan["ratio"] == 5 / 72
    assert plan["min_window_steps"] == 15
    assert (plan["max_iters_raw"], plan["max_iters"]) == (256, 256)
    assert (plan["delay_iters_raw"], plan["delay_iters"]) == (4480, 4480)
    assert (plan["first_step"], plan["end_step"]) == (4480, 4736)
    assert round(plan["expected_prefill_decode_steps"], 1) == 17.8
    assert plan["completion_ranges"] == [
        [819.2, 1024], [1638.4, 2048], [2457.6, 3072], [3276.8, 4096], [4096, 5120],
        [4915.2, 6144], [5734.4, 7168], [6553.6, 8192], [7372.8, 9216], [8192, 10240],
    ]  # fmt: skip
    assert plan["recommended_region"] == [4096, 5120]
    assert plan["warnings"] == []


def test_csv_has_the_same_values():
    result = run(*FIRST, "--format", "csv")
    names, values = csv.reader(io.StringIO(result.stdout))
    plan = record(*FIRST)
    assert names == list(plan)
    shown = dict(zip(names, values, strict=True))
    assert shown["avg_osl"] == "921.6"
    assert shown["total_steps"] == "9216"
    assert shown["max_iters_reason"] == ""
    assert json.loads(shown["completion_ranges"]) == plan["completion_ranges"]


def test_where_conc_exceeds_the_mean_output():
    arguments = ("--conc", 256, "--osl", 128, "--r", 1)
    plan = record(*arguments)
    assert (plan["prefill_decode_steps"], plan["decode_only_steps"]) == (1280, 0)
    assert (plan["ratio"], plan["mean_prefills_per_step"]) == (1, 2)
    assert (plan["max_iters_raw"], plan["max_iters"]) == (8, 32)
    assert (plan["delay_iters_raw"], plan["delay_iters"]) == (636, 624)
    text = run(*arguments).stdout
    assert "max_iters             32 (raw 8; at least 32 steps)" in text
    assert "every step carries prefill, 2.00 a step" in text


def test_a_short_run():
    plan = record("--conc", 1, "--osl", 8, "--r", 0)
    assert (plan["max_iters"], plan["delay_iters"]) == (40, 1)
    # 40 steps from step 1 would pass the end of a run of 40
    assert (plan["first_step"], plan["end_step"]) == (1, 40)
    assert "(raw 128; the whole run has 40 steps)" in run("--conc", 1, "--osl", 8, "--r", 0).stdout


def test_few_prompts_take_the_middle_group():
    # 256 prompts are 4 groups of 64: the second ends at 1,638.4 – 2,048; 2 · 921.6 − 128 = 1715.2
    plan = record(*FIRST, "--num-prompts", 256)
    assert plan["recommended_region"] == [1638.4, 2048]
    assert (plan["delay_iters_raw"], plan["delay_iters"]) == (1715.2, 1715)
    assert "group 2 of 4 stands in for the fifth" in plan["notes"][0]


@pytest.mark.parametrize(("given", "used"), [("1.2", 1), ("-0.5", 0)])
def test_r_outside_0_to_1_is_clamped_with_a_warning(given, used):
    result = run("--conc", 64, "--osl", 1024, "--r", given, "--format", "json")
    assert result.returncode == 0
    assert result.stderr == f"Warning: R is {float(given)}, outside 0 to 1: taken as {used}.\n"
    assert json.loads(result.stdout)["r"] == used


def test_what_can_have_no_steady_state_is_told():
    few = run(*FIRST, "--num-prompts", 10)
    assert "10 prompts never fill a batch of CONC = 64" in few.stderr
    # 10 · 128 = 1,280 steps; the ramp-up alone takes 2,048
    short = run("--conc", 2048, "--osl", 128, "--r", 1)
    assert short.returncode == 0
    assert "the run ends after 1,280 steps, within its ramp-up" in short.stderr
    assert re.search("profile +nothing", short.stdout)
    plan = record("--conc", 2048, "--osl", 128, "--r", 1)
    assert (plan["first_step"], plan["end_step"]) == (2048, 2048)
    assert plan["expected_prefill_decode_steps"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--conc", 0, "--osl", 1024, "--r", 0.8),
        ("--conc", -1, "--osl", 1024, "--r", 0.8),
        ("--conc", 64, "--osl", 0, "--r", 0.8),
        ("--conc", 64, "--osl", -5, "--r", 0.8),
        ("--conc", 64, "--osl", 1024, "--r", "nan"),
        ("--conc", 64, "--osl", 1024, "--r", "x"),
        ("--conc", 64, "--osl", 10.5, "--r", 0.8),
        (*FIRST, "--num-prompts", 0),
        ("--conc", 64, "--osl", 1024),
        (*FIRST, "--format", "xml"),
    ],
)
def test_usage_errors_exit_with_2(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


def test_the_vllm_flags():
    text = run(*FIRST).stdout
    assert "vLLM (0.13 or newer):" in text
    words = shlex.split(flags(text, "vllm serve"))
    for name, value in {
        "profiler": "torch", "delay_iterations": "4480", "max_iterations": "256",
    }.items():  # fmt: skip
        assert words[words.index(f"--profiler-config.{name}") + 1] == value
    words = shlex.split(flags(text, "vllm bench serve"))
    length = int(words[words.index("--random-output-len") + 1])
    spread = float(words[words.index("--random-range-ratio") + 1])
    # its lengths lie at LEN·(1±x): those of R are 819.2 to 1,024
    assert abs(length * (1 - spread) - 819.2) < 1
    assert abs(length * (1 + spread) - 1024) < 1
    assert "--profile" in words


def test_the_sglang_flags():
    text = run(*FIRST).stdout
    assert "SGLang (0.5):" in text
    words = shlex.split(flags(text, "curl"))
    assert words[:4] == ["curl", "-X", "POST", "http://127.0.0.1:30000/start_profile"]
    body = json.loads(words[words.index("-d") + 1])
    assert (body["start_step"], body["num_steps"]) == (4480, 256)
    assert "--random-range-ratio 0.8" in flags(text, "python -m sglang.bench_serving")


def test_the_picture_is_to_scale():
    lines = run(*FIRST).stdout.splitlines()

    def span(name: str) -> tuple[int, int]:
        line = next(line for line in lines if line.startswith(f"  {name} "))
        return min(map(line.index, set(line) & set("░▒█─"))), max(
            i for i, c in enumerate(line) if c in "░▒█─"
        )

    start, last = span("the run")
    cells = last + 1 - start
    group, window = span("group 5 ends"), span("window")
    assert group[0] <= window[0] <= window[1] <= group[1]
    # the window lies at 4,480 to 4,736 of 9,216 steps; a cell holds about 220
    assert abs((window[0] - start) / cells - 4480 / 9216) < 1.5 / cells
    assert span("ramp-up")[0] == start


@pytest.mark.parametrize(
    "arguments",
    [
        ("--conc", 1, "--osl", 1, "--r", 0, "--num-prompts", 1),
        ("--conc", 1, "--osl", 131072, "--r", 0.123456789, "--num-prompts", 5000),
        ("--conc", 100_000, "--osl", 3, "--r", 1e-300),
        ("--conc", 777, "--osl", 1_000_000, "--r", 1, "--num-prompts", 12_345),
    ],
)
def test_it_stays_within_80_columns(arguments):
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_largest_run_that_is_allowed():
    plan = record("--conc", 1, "--osl", 10**9, "--r", 1, "--num-prompts", 10**10)
    assert plan["total_steps"] == 10**19
    assert plan["completion_groups"] == 10**10
    assert len(plan["completion_ranges"]) == 1000
