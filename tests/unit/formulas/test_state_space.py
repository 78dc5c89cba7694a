from __future__ import annotations

import pytest
from formula_cases import work_of
from formula_layouts import layouts, work_of_backward
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_state_space as slow
from reference.tensors import SIZES, moved

BF16, F32 = "c10::BFloat16", "float"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"
TOO_LARGE = "the product of the shapes is out of range"
CONV = "DaoAILab::_causal_conv1d_fwd_cpp"
SPLIT, SCAN = "MambaSplitConv1dScanCombinedFn", "MambaChunkScanCombinedFn"


def conv_args(x, w, bias, spelling=BF16):
    """x, weight, bias, seq_idx, initial_states, out, final_states_out, silu_activation."""
    dims = [x, w, bias or [], [], [], x, [], []]
    types = [spelling, spelling, spelling if bias else "", "", "", spelling, "", "Scalar"]
    return dims, types, None, [*[""] * 7, "True"]


def split_args(x, w, heads, chunk="256", size="64", groups="1"):
    """The 18 slots of a trace: dt_limit, a pair, is not recorded."""
    dims = [x, w, [w[0]], [heads], [heads], [heads], *[[]] * 12]
    types = [BF16, BF16, BF16, F32, F32, F32, *[""] * 12]
    return dims, types, None, [*[""] * 6, chunk, *[""] * 8, size, groups, "True"]


def scan_args(x, b, heads, chunk="64"):
    """x, dt, A, B, C, chunk_size, D, z, dt_bias."""
    dims = [x, x[:3], [heads], b, b, [], [heads], x, [heads]]
    types = [BF16, BF16, F32, BF16, BF16, "", F32, BF16, F32]
    return dims, types, None, [*[""] * 5, chunk, "", "", ""]


def test_causal_convolution():
    # perf_models A14: 2·B·C·L·k; x + w + y, and the bias, which the peer has too
    done = work_of(CONV, *conv_args([2, 64, 512], [64, 4], [64]))
    assert done.flops == 2 * 2 * 64 * 512 * 4
    assert done.bytes == 2 * (65_536 + 256 + 64 + 65_536)
    assert (done.dtype, done.why) == ("bf16", None)
    assert done.parameters == {"B": 2, "T": 512, "channels": 64, "taps": 4}


def test_mamba_split():
    # perf_models A14 with B 2, T 512, H 16, P 64, G 1, N 128, chunk 256, d_conv 4:
    # D = 2·1024 + 2·128 + 16 = 2320, channels 1024 + 256 = 1280
    done = work_of(SPLIT, *split_args([2, 512, 2320], [1280, 4], 16))
    convolution = 2 * 2 * 1280 * 512 * 4
    inside = 2 * 2 * 1 * 512 * 256 * 128 + 2 * 2 * 16 * 512 * 256 * 64
    across = 4 * 2 * 16 * 512 * 128 * 64
    assert done.flops == convolution + inside + across == 1_151_336_448
    read = 2 * (2 * 512 * 2320 + 1280 * 4 + 1280) + 4 * 3 * 16
    assert done.bytes == read + 2 * 2 * 512 * 1024
    assert [done.parameters[k] for k in ("H", "P", "G", "N", "chunk")] == [16, 64, 1, 128, 256]


def test_mamba_split_with_the_size_of_heads_in_d():
    args = split_args([2, 512, 2320], [1280, 4], 16, size="", groups="")
    args[0][5] = [16, 64]
    assert work_of(SPLIT, *args).flops == 1_151_336_448


def test_mamba_scan_has_no_convolution():
    done = work_of(SCAN, *scan_args([2, 512, 16, 64], [2, 512, 1, 128], 16, "256"))
    assert done.flops == 1_151_336_448 - 2 * 2 * 1280 * 512 * 4
    x, b = 2 * 512 * 1024, 2 * 512 * 128
    assert done.bytes == 2 * (x + 2 * 512 * 16 + 2 * b + x) + 4 * 3 * 16 + 2 * x


def test_backward_is_twice_the_forward():
    # perf_models A14: the peer's backward is the forward, it should be twice that
    args = split_args([2, 512, 2320], [1280, 4], 16)
    done = work_of_backward(f"{SPLIT}Backward", SPLIT, *args)
    assert done.flops == 2 * 1_151_336_448
    inputs = 2 * (2 * 512 * 2320 + 1280 * 4 + 1280) + 4 * 3 * 16
    assert done.bytes == 2 * inputs + 2 * 2 * 512 * 1024


def test_causal_convolution_backward():
    # x, weight, bias, dout, seq_idx, initial_states, dfinal_states, dx, dweight, dbias, …
    x, w, bias = [2, 64, 512], [64, 4], [64]
    done = work_of(
        "DaoAILab::_causal_conv1d_bwd_cpp",
        [x, w, bias, x, [], [], [], x, w, bias, [], []],
        [BF16, BF16, BF16, BF16, "", "", "", BF16, F32, F32, "", "Scalar"],
        None,
        [*[""] * 11, "True"],
    )
    assert done.flops == 2 * (2 * 65_536 * 4) + 65_536
    assert done.bytes == 2 * (3 * 65_536 + 256 + 64) + 4 * (256 + 64)


SMALL = st.integers(0, 5)


@given(
    x=st.tuples(SMALL, SMALL, SMALL),
    taps=st.integers(1, 4),
    biased=st.booleans(),
    spelling=st.sampled_from([BF16, F32, "c10::Half"]),
    data=st.data(),
)
def test_convolution_equals_the_slow_count(x, taps, biased, spelling, data):
    x, w, bias = list(x), [x[1], taps], [x[1]] if biased else None
    dims, types, _, values = conv_args(x, w, bias, spelling)
    laid = data.draw(layouts(x))
    strides = [laid, [taps, 1], [1] if bias else [], *[[]] * 5]
    done = work_of(CONV, dims, types, strides, values)
    assert done.flops == slow.convolution(*x, taps)
    read = moved(x, spelling, laid) + moved(w, spelling) + moved(bias, spelling)
    assert done.bytes == read + moved(x, spelling)
    back = work_of_backward("DaoAILab::_causal_conv1d_bwd_cpp", CONV, dims, types, strides, values)
    elements = x[0] * x[1] * x[2]
    assert back.flops == 2 * slow.convolution(*x, taps) + (elements if bias else 0)
    written = (elements + w[0] * w[1] + (x[1] if bias else 0)) * SIZES[spelling]
    assert back.bytes == read + moved(x, spelling) + written


@given(
    batch=st.integers(1, 3),
    chunks=st.integers(1, 3),
    chunk=st.integers(1, 4),
    heads=st.integers(1, 3),
    size=st.integers(1, 4),
    groups=st.integers(1, 3),
    states=st.integers(1, 4),
    taps=st.integers(1, 4),
)
def test_scan_equals_the_slow_count(batch, chunks, chunk, heads, size, groups, states, taps):
    length, inner = chunks * chunk, heads * size
    flops = slow.chunked_scan(batch, length, heads, size, groups, states, chunk)
    scanned = work_of(
        SCAN,
        *scan_args(
            [batch, length, heads, size], [batch, length, groups, states], heads, str(chunk)
        ),
    )
    assert scanned.flops == flops
    channels = inner + 2 * groups * states
    x = [batch, length, inner + channels + heads]
    done = work_of(
        SPLIT, *split_args(x, [channels, taps], heads, str(chunk), str(size), str(groups))
    )
    assert done.flops == flops + slow.convolution(batch, channels, length, taps)
    inputs = moved(x, BF16) + 2 * channels * (taps + 1) + 4 * 3 * heads
    assert done.bytes == inputs + 2 * batch * length * inner
    assert done.parameters["N"] == states


X, W = [2, 512, 2320], [1280, 4]


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (work_of(CONV), NO_INPUTS),
        (work_of(SPLIT), NO_INPUTS),
        (work_of(CONV, *conv_args([2, 64, 512], [], None)), NO_SHAPE),
        (work_of(CONV, *conv_args([2, 64, 512], [32, 4], None)), MISFIT),
        (work_of(CONV, *conv_args([64, 512], [64, 4], None)), MISFIT),
        (work_of(CONV, *conv_args([-2, 64, -5], [64, 4], None)), MISFIT),
        (work_of(CONV, *conv_args([2**40, 64, 2**40], [64, 4], None)), TOO_LARGE),
        (work_of(SPLIT, *split_args(X, W, 16)[:3]), NO_VALUE),
        (work_of(SPLIT, *split_args(X, W, 16, chunk="")), NO_VALUE),
        (work_of(SPLIT, *split_args(X, W, 16, size="")), NO_VALUE),
        (work_of(SPLIT, *split_args(X, W, 16, chunk="0")), MISFIT),
        (work_of(SPLIT, *split_args(X, W, 16, size="32")), MISFIT),
        (work_of(SPLIT, *split_args(X, W, 16, groups="-1")), MISFIT),
        (work_of(SPLIT, *split_args(X, [1281, 4], 16)), MISFIT),
        (work_of(SPLIT, *split_args([512, 2320], W, 16)), MISFIT),
        (work_of(SCAN, *scan_args([2, 512, 16, 64], [2, 500, 1, 128], 16)), MISFIT),
        (work_of(SCAN, *scan_args([2, 512, 16, 64], [2, 512, 128], 16)), MISFIT),
        (work_of(SCAN, *scan_args([2, 512, 16, 64], [], 16)), NO_SHAPE),
    ],
)
def test_bad_input_is_unknown_with_a_reason(done, why):
    assert (done.flops, done.bytes, done.why) == (None, None, why)


def test_without_types_the_flops_are_known():
    dims, _, _, values = conv_args([2, 3, 4], [3, 4], None)
    done = work_of(CONV, dims, None, None, values)
    assert (done.flops, done.bytes, done.why) == (2 * 24 * 4, None, NO_TYPE)
