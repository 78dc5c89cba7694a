"""field_cases G: inputs of ops, metadata of collectives."""

from __future__ import annotations

import pytest
from case_file import both_readers, codes, column, read_events
from formula_cases import work_of


def op(args, name="aten::mm"):
    return (
        f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":5,"tid":5,"ts":1,"dur":9,"args":{args}}}'
    )


F58 = [
    ("c10::BFloat16", 2),
    ("float", 4),
    ("long int", 8),
    ("signed char", 1),
    ("c10::Float8_e4m3fn", 1),
    ("int", 4),
    ("double", 8),
    ("c10::Half", 2),
    ("unsigned char", 1),
    ("bool", 1),
    ("short int", 2),
    ("long", 8),
    ("c10::complex<float>", 8),
    ("float32", 4),
]


@pytest.mark.parametrize(("spelling", "size"), F58)
def test_f58_type_spellings(spelling, size):
    # each operand 6·6 elements, the product too: 3 · 36 elements of the same type
    done = work_of("aten::mm", [[6, 6], [6, 6]], [spelling, spelling])
    assert done.bytes == 3 * 36 * size
    assert done.why is None
    assert done.dtype != "unknown"


@pytest.mark.parametrize("spelling", ["Scalar", "TensorList", "", None, "c10::Float9", "FLOAT"])
def test_f58_what_is_no_type_of_a_tensor_has_no_bytes(spelling):
    done = work_of("aten::mm", [[6, 6], [6, 6]], ["float", spelling])
    assert done.bytes is None
    assert done.why is not None


@both_readers
def test_f58_lists_stay_aligned_and_unknown_texts_are_kept(tmp_path, reader):
    words = [*(spelling for spelling, _ in F58), "Scalar", "", "c10::Float9", "float"]
    quoted = ",".join(f'"{word}"' for word in words)
    shapes = ",".join(f"[{place}]" for place in range(len(words)))
    args = f'{{"Input type":[{quoted}],"Input Dims":[{shapes}]}}'
    trace = read_events(tmp_path, op(args), reader)
    (row,) = trace.signatures.to_pylist()
    assert row["input_types"] == words
    assert row["input_dims"] == [[place] for place in range(len(words))]


@both_readers
def test_f59_more_values_than_inputs(tmp_path, reader):
    trace = read_events(
        tmp_path,
        op(
            '{"Input Dims":[[64,64],[64,64],[]],"Concrete Inputs":["","","4096","128","4"],'
            '"Input type":["float","float","Scalar"]}'
        ),
        reader,
    )
    assert codes(trace)["ARGS_EXTRA"] == 1
    (row,) = trace.signatures.to_pylist()
    assert row["input_dims"] == [[64, 64], [64, 64], []]
    assert row["input_types"] == ["float", "float", "Scalar"]
    assert row["concrete_inputs"] == ["", "", "4096"]
    assert row["extra_inputs"] == ["128", "4"]


@both_readers
def test_f59_every_call_counts_and_equal_lengths_have_no_extras(tmp_path, reader):
    extra = op('{"Concrete Inputs":["1","2"],"Input type":["Scalar"]}')
    plain = op('{"Concrete Inputs":["1"],"Input type":["Scalar"]}')
    trace = read_events(tmp_path, ",".join([extra, plain, extra]), reader)
    assert codes(trace)["ARGS_EXTRA"] == 2
    assert column(trace.signatures, "extra_inputs") == [["2"], None]


@both_readers
@pytest.mark.parametrize(
    ("launch", "check"),
    [
        ('"grid":"grid(100,)","kernel_kwargs":"XBLOCK=128"', "grid_ok"),
        ('"grid":"grid(99,)"', "grid_mismatch"),
        ('"grid_0":1,"grid_1":1,"grid_2":1,"kernel_kwargs":"XBLOCK=128"', "none"),
        ('"grid":"grid(lambda: 1)","kernel_kwargs":[1,{"a":2}]', "none"),
        ('"grid":{"x":1},"kernel_kwargs":null', "none"),
    ],
)
def test_f60_triton_launch_metadata(tmp_path, reader, launch, check):
    """Grid and constants of a compiled kernel's launch; what cannot be read says nothing."""
    args = (
        '{"Input Dims":[[100],[100],[]],"Input type":["float","float","Scalar"],'
        f'"Concrete Inputs":["","","100"],{launch}}}'
    )
    trace = read_events(tmp_path, op(args, "triton_poi_fused_cos_0"), reader)
    (row,) = trace.triton_kernels.to_pylist()
    assert (row["xnumel"], row["check"], row["flops"]) == (100, check, 400)
    (raw,) = column(trace.events, "args")
    assert launch in raw


@both_readers
def test_f61_lists_of_tensors(tmp_path, reader):
    types = '"Input type":["TensorList","Scalar"]'
    trace = read_events(
        tmp_path,
        ",".join(
            [
                op('{"Input Dims":[[[2,3],[4,3]],[]],' + types + "}"),
                op('{"Input Dims":[[],[]],' + types + "}"),
            ]
        ),
        reader,
    )
    short, long = trace.signatures.to_pylist()
    assert short["member_dims"] == [[[2, 3], [4, 3]], None]
    assert short["input_dims"] == [None, []]
    assert long["member_dims"] is None
    assert long["input_dims"] == [None, []]  # of a list unknown, of a scalar []
    assert (short["input_strides"], long["input_strides"]) == (None, None)


@both_readers
def test_f62_collective_metadata(tmp_path, reader):
    kernel = (
        '{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":7,"ts":%d,"dur":5,'
        '"args":%s}'
    )
    cut = (
        '{"Collective name":"allreduce","Group size":64,'
        '"Process Group Ranks":"[0, 1, 2, ...]","In msg nelems":1024}'
    )
    trace = read_events(tmp_path, ",".join([kernel % (1, cut), kernel % (10, "{}")]), reader)
    assert column(trace.kernels, "collective") == ["allreduce", None]
    assert column(trace.kernels, "kind") == ["comm", "comm"]
    assert '"Process Group Ranks":"[0, 1, 2, ...]"' in column(trace.events, "args")[0]
    assert '"Group size":64' in column(trace.events, "args")[0]
    assert column(trace.trace_timeline, "comm_ns") == [10_000]
