from __future__ import annotations

import pytest
from formula_cases import work_of
from hypothesis import given
from hypothesis import strategies as st
from reference import formulas_collective as slow
from reference import formulas_copy as places

from tracehouse.analysis import op_categories
from tracehouse.formulas.registry import model_of

BF16, F32, U8 = "c10::BFloat16", "float", "unsigned char"
NO_INPUTS = "its inputs were not recorded: record_shapes was off, or the op states none"
NO_SHAPE = "the shape of an input it depends on was not recorded"
MISFIT = "the shapes do not fit the op's declaration"
NO_TYPE = "the type of an input was not recorded, or is not known"
NO_VALUE = "a value that the formula depends on was not recorded"


def test_all_to_all_of_a_trace():
    # hta sampled_rank-0: c10d::alltoall_base_(output, input, …)
    dims = [[382132224], [419430400], [], [], [], []]
    done = work_of("c10d::alltoall_base_", dims, [U8, U8, "", "", "", "Scalar"])
    assert (done.flops, done.bytes) == (0, 382_132_224 + 419_430_400)
    assert done.parameters == {"bytes_in": 419_430_400, "bytes_out": 382_132_224}


def test_all_gather_of_a_trace():
    # hta sampled_rank-0: c10d::_allgather_base_(output, input, …)
    dims, types = [[1073741824], [16777216], []], ["signed char", "signed char", ""]
    assert work_of("c10d::_allgather_base_", dims, types).bytes == 1_073_741_824 + 16_777_216


def test_all_reduce_of_traces():
    # hta sampled_rank-0: nccl:all_reduce ((19618307,)) float; c10d::allreduce_ holds a list
    assert work_of("nccl:all_reduce", [[19618307]], [F32]).bytes == 2 * 19_618_307 * 4
    types = ["TensorList", "", "", "Scalar"]
    done = work_of("c10d::allreduce_", [[], [], [], []], types, element=4)
    assert (done.flops, done.bytes, done.why) == (0, None, NO_SHAPE)
    done = work_of("c10d::allreduce_", [[[10, 2], [3]], [], [], []], types, element=2)
    assert done.bytes == 2 * 23 * 2
    done = work_of("c10d::allreduce_", [[[10, 2], [3]], [], [], []], types)
    assert (done.bytes, done.why) == (None, NO_TYPE)


def test_record_param_comms_does_not_tell_what_is_received():
    # hta: the old form has the input, nccl_parser_config has no inputs at all
    types = ["long", "Scalar", "Scalar", "Scalar", "", "", ""]
    done = work_of("record_param_comms", [[384], [], [], [], [], [], []], types)
    assert (done.flops, done.bytes, done.why) == (0, None, NO_VALUE)
    assert work_of("record_param_comms", [], [], None, [""]).why == NO_INPUTS


def test_one_way():
    types = ["TensorList", "", "Scalar"]
    for op in ("c10d::broadcast_", "c10d::send", "c10d::recv_"):
        assert work_of(op, [[[53120]], [], []], types, element=4).bytes == 53_120 * 4


def test_functional_collectives():
    names = [F32, "Scalar", ""]
    done = work_of("_c10d_functional::all_reduce", [[6, 4], [], []], names)
    assert done.bytes == 2 * 96
    args = ([[6, 4], [], []], names, None, ["", "8", "0"])
    done = work_of("_c10d_functional::all_gather_into_tensor", *args)
    assert done.bytes == 96 + 8 * 96
    args = ([[6, 4], [], [], []], [F32, "", "Scalar", ""], None, ["", "sum", "3", "0"])
    done = work_of("_c10d_functional::reduce_scatter_tensor", *args)
    assert done.bytes == 96 + 32
    args = ([[6, 4], [], [], []], [F32, "", "", ""], None, ["", "[2, 8]", "[3, 3]", "0"])
    done = work_of("_c10d_functional::all_to_all_single", *args)
    assert done.bytes == 96 + 160
    done = work_of("_c10d_functional::all_to_all_single", args[0], args[1], None, ["", "[]", "[]"])
    assert done.bytes == 2 * 96
    done = work_of("_c10d_functional::all_to_all_single", args[0], args[1])
    assert (done.bytes, done.why) == (None, NO_VALUE)
    done = work_of("_c10d_functional::wait_tensor", [[6, 4]], [F32])
    assert (done.flops, done.bytes, done.why) == (0, 0, None)


@pytest.mark.parametrize(
    "op", ["_C_custom_ar::all_reduce", "_C_custom_ar::qr_all_reduce", "sgl_kernel::all_reduce_reg"]
)
def test_custom_all_reduce(op):
    # A16: (handle, inp, out): 2n·b
    done = work_of(op, [[], [4, 7168], [4, 7168], []], ["Scalar", BF16, BF16, "Scalar"])
    assert (done.flops, done.bytes) == (0, 2 * 4 * 7168 * 2)


def test_custom_gather_and_scatter():
    # A16: (n_in + n_out)·b
    done = work_of("aiter::all_gather_reg", [[], [4, 64], [8, 64]], ["Scalar", BF16, BF16])
    assert done.bytes == (256 + 512) * 2
    done = work_of("aiter::reduce_scatter", [[], [8, 64], [4, 64]], ["Scalar", BF16, BF16])
    assert done.bytes == (512 + 256) * 2
    args = ([[4, 64], [], [], []], [BF16, "Scalar", "Scalar", ""], None, ["", "0", "8", "tp:0"])
    assert work_of("vllm::all_gather", *args).bytes == 256 * 2 * 9
    assert work_of("vllm::reduce_scatter", *args).bytes == 256 * 2 + 32 * 2


def test_fused_products_of_symmetric_memory_are_no_mere_collectives():
    op = "symm_mem::fused_all_gather_matmul"
    family = op_categories.load().family(op)
    assert model_of(family).slots_of(op, family) is None


shapes = st.lists(st.integers(0, 5), max_size=3)
spellings = st.sampled_from(sorted(places.SIZES))


@given(shapes, shapes, spellings)
def test_tensors_as_slow(sent, received, spelling):
    done = work_of("c10d::_reduce_scatter_base_", [received, sent, []], [spelling, spelling, ""])
    assert done.bytes == slow.exchanged([(sent, spelling)], [(received, spelling)])


@given(st.lists(shapes, min_size=1, max_size=4), spellings)
def test_lists_as_slow(tensors, spelling):
    element = places.SIZES[spelling]
    if element not in (1, 2, 4, 8, 16) or tensors == [[]]:
        return
    buffers = [(shape, spelling) for shape in tensors]
    done = work_of("c10d::allreduce_", [tensors, []], ["TensorList", ""], element=element)
    assert done.bytes == slow.exchanged(buffers, buffers)


OPS = ["c10d::allreduce_", "c10d::alltoall_base_", "_c10d_functional::all_gather_into_tensor"]
OPS += ["_c10d_functional::all_to_all_single", "c10d::unheard_of", "_C_custom_ar::all_reduce"]


@given(
    st.sampled_from(OPS),
    st.lists(
        st.one_of(
            st.lists(st.integers(-3, 4), max_size=3),
            st.lists(st.lists(st.integers(-3, 4), max_size=3), max_size=3),
        ),
        max_size=4,
    ),
    st.lists(st.sampled_from(["float", "", "Scalar", "wrong", "TensorList"]), max_size=4),
    st.lists(st.sampled_from(["", "0", "-7", "1e300", "[2]", "[-9]", "nan"]), max_size=4),
)
def test_any_inputs_are_valued_or_explained(op, dims, types, values):
    done = work_of(op, dims, types, None, values, element=4)
    assert (done.why is None) == (done.bytes is not None)
    assert done.flops == 0
    assert done.bytes is None or done.bytes >= 0


@pytest.mark.parametrize(
    ("dims", "types", "why"),
    [
        ([], [], NO_INPUTS),
        ([[8], []], [F32, ""], NO_SHAPE),
        ([[8], [-8]], [F32, F32], MISFIT),
        ([[8], [8]], None, NO_TYPE),
        ([[[8], [-8]], [8]], ["TensorList", F32], MISFIT),
    ],
)
def test_unknown_with_a_reason(dims, types, why):
    done = work_of("c10d::alltoall_base_", dims, types, None, None if dims else [""])
    assert (done.flops, done.bytes, done.why) == (0, None, why)
