"""field_cases G: inputs of ops, metadata of collectives."""

from __future__ import annotations

import pytest
from case_file import both_readers, codes, column, read_events


def op(args, name="aten::mm"):
    return (
        f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":5,"tid":5,"ts":1,"dur":9,"args":{args}}}'
    )


@pytest.mark.skip(reason="waits for issue 4: op models")
def test_f58_type_spellings():
    """Bytes per element of c10::BFloat16, float, long int and so on."""


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


@pytest.mark.skip(reason="waits for issue 5: Triton kernels")
def test_f60_triton_launch_metadata():
    """Grid and constants of a compiled kernel's launch."""


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
