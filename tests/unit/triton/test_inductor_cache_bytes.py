from __future__ import annotations

from dataclasses import replace

import pytest
from cache_cases import (
    MUL_SILU,
    MUL_SILU_COMMENT,
    RMS_NORM,
    RMS_NORM_COMMENT,
    Kernel,
    block,
    hash_of,
    wrapper,
    write,
)

from tracehouse.triton.cache_bytes import Bytes, role_bytes, seed_bytes
from tracehouse.triton.cache_source import Missing
from tracehouse.triton.inductor_cache import index

SWIGLU = Kernel(
    "triton_poi_fused__unsafe_view_mul_silu_2",
    hints={"x": 268_435_456},
    types={"in_out_ptr0": "*bf16", "in_ptr0": "*bf16", "xnumel": "i32"},
    body="    xnumel = 268435456\n    tl.store(in_out_ptr0 + (x0), tmp5, None)\n",
)
NORM_OF_THE_PAGE = replace(
    RMS_NORM,
    hints={"x": 32_768, "r0_": 2_048},
    body="    xnumel = 32768\n    r0_numel = 2048\n",
)


def kernel_of(folder, kernel, comment=None, layout="new"):
    if comment is None:
        write(folder, hash_of("a"), kernel.text(layout))
    else:
        write(folder, hash_of("w"), wrapper(block(kernel, comment, layout)))
    (found,) = index(folder).kernels
    return found


def test_reduction_of_the_published_page(tmp_path):
    # (2 + 2) · 32,768 · 2,048 + 2 · 32,768
    kernel = kernel_of(tmp_path, NORM_OF_THE_PAGE)
    assert seed_bytes(kernel) == Bytes(268_435_456 + 65_536, None) == (268_500_992, None)


def test_pointwise_counts_what_is_read_and_written_twice(tmp_path):
    # (2 + 2 + 2) · 268,435,456, as the page's other method has it
    kernel = kernel_of(tmp_path, SWIGLU)
    assert seed_bytes(kernel) == (1_610_612_736, None)
    assert role_bytes(kernel) == (1_610_612_736, None)


def test_old_layouts_count_the_same(tmp_path):
    kernel = kernel_of(tmp_path, replace(SWIGLU, hints=[268_435_456]), layout="2.5")
    assert seed_bytes(kernel) == (1_610_612_736, None)


def test_a_reduction_of_length_one_is_pointwise(tmp_path):
    kernel = replace(NORM_OF_THE_PAGE, body="    xnumel = 10\n    r0_numel = 1\n")
    assert seed_bytes(kernel_of(tmp_path, kernel)) == ((2 + 2 + 2) * 10, None)


def test_two_dimensions_both_count(tmp_path):
    kernel = replace(
        SWIGLU,
        types={"in_ptr0": "*fp32", "out_ptr0": "*bf16", "ynumel": "i32", "xnumel": "i32"},
        body="    ynumel = 3\n    xnumel = 9216\n",
    )
    assert seed_bytes(kernel_of(tmp_path, kernel)) == ((4 + 2) * 27_648, None)


def test_sizes_known_better_beat_the_hints(tmp_path):
    kernel = kernel_of(tmp_path, replace(NORM_OF_THE_PAGE, body="    pass\n"))
    assert not kernel.is_exact
    assert seed_bytes(kernel, 10, 3) == ((2 + 2) * 30 + 2 * 10, None)
    assert role_bytes(kernel, 10, 3) == ((2 + 2) * 30 + 2 * 10, None)


def test_roles_of_a_reduction(tmp_path):
    # all that is stored goes to x elements: (2 + 2) · x · r + 2 · x
    assert role_bytes(kernel_of(tmp_path, NORM_OF_THE_PAGE)) == (268_500_992, None)
    # stored at every step: (2 + 2 + 2) · 6,000 · 1,000
    assert role_bytes(kernel_of(tmp_path / "b", RMS_NORM)) == (36_000_000, None)


@pytest.mark.parametrize(
    "store",
    [
        "    tl.store(out_ptr1 + (r0_1 + 1000*x0), tmp9, r0_mask & xmask)\n",
        "    tl.store(out_ptr1 + (r1 + 1000*x0), tmp9, rmask & xmask)\n",
        "        tl.store(out_ptr1 + (tmp4), tmp9, xmask)\n",
        "    tl.store(tl.make_block_ptr(out_ptr1, shape=[6], block_shape=[XBLOCK, R0_BLOCK]), t)\n",
        "    tl.atomic_add(out_ptr1 + (r0_1), tmp9, r0_mask, sem='relaxed')\n",
    ],
)
def test_stores_at_every_step(tmp_path, store):
    kernel = replace(RMS_NORM, body=f"    xnumel = 6000\n    r0_numel = 1000\n{store}")
    assert role_bytes(kernel_of(tmp_path, kernel)) == (36_000_000, None)


def test_stores_after_the_reduction(tmp_path):
    body = "    xnumel = 6000\n    r0_numel = 1000\n    tl.store(out_ptr1 + (x0), tmp9, xmask)\n"
    found = role_bytes(kernel_of(tmp_path, replace(RMS_NORM, body=body)))
    assert found == ((2 + 2) * 6_000_000 + 2 * 6_000, None)


def test_shapes_of_the_graph_beat_everything(tmp_path):
    # x is read and y written whole, the weights are 1,000: (6,000,000 + 1,000 + 6,000,000) · 2
    kernel = kernel_of(tmp_path, RMS_NORM, RMS_NORM_COMMENT)
    assert role_bytes(kernel) == (24_002_000, None)
    assert seed_bytes(kernel) == ((2 + 2) * 6_000_000 + 2 * 6_000, None)


def test_a_buffer_counts_no_more_than_the_kernel_runs_over(tmp_path):
    table = RMS_NORM_COMMENT.replace('%w : Tensor "bf16[1000]', '%w : Tensor "bf16[90000000]')
    assert role_bytes(kernel_of(tmp_path, RMS_NORM, table)) == (36_000_000, None)


def test_buffers_that_are_not_just_the_pointers_do_not_count(tmp_path):
    missing = "\n".join(
        line for line in RMS_NORM_COMMENT.split("\n") if "PlaceHolder[target=w]" not in line
    )
    assert role_bytes(kernel_of(tmp_path / "a", RMS_NORM, missing)) == (36_000_000, None)
    other_type = RMS_NORM_COMMENT.replace('%w : Tensor "bf16', '%w : Tensor "f32')
    assert role_bytes(kernel_of(tmp_path / "b", RMS_NORM, other_type)) == (36_000_000, None)


def test_a_result_that_the_same_kernel_reads_again_is_no_input(tmp_path):
    again = RMS_NORM_COMMENT.replace(
        "#   %pow_1 :", '#   %mul_1 : Tensor "bf16[9]" = PlaceHolder[target=mul_1]\n#   %pow_1 :'
    )
    assert role_bytes(kernel_of(tmp_path, RMS_NORM, again)) == (24_002_000, None)


def test_workspaces_are_no_data(tmp_path):
    types = {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "ws_ptr": "*u8", "xnumel": "i32"}
    kernel = replace(SWIGLU, types=types, body="    xnumel = 10\n")
    assert seed_bytes(kernel_of(tmp_path, kernel)) == (80, None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"types": {"in_ptr0": "*fp7", "xnumel": "i32"}}, Missing.NO_TYPE),
        ({"types": {"in_desc": "tensordesc<fp32[16, 16]>"}}, Missing.NO_TYPE),
        ({"types": {"xnumel": "i32"}}, Missing.NO_POINTERS),
        ({"hints": None, "body": "    pass\n"}, Missing.NO_SIZES),
        ({"hints": "[f()]", "body": "    pass\n"}, Missing.BAD_SIZE_HINTS),
        ({"category": "foreach"}, Missing.COMBO),
        ({"body": f"    xnumel = {2**63 - 1}\n"}, Missing.TOO_LARGE),
    ],
)
def test_what_is_not_known_is_not_zero(tmp_path, changes, why):
    assert seed_bytes(kernel_of(tmp_path, replace(SWIGLU, **changes))) == (None, why)


def test_a_broken_signature_gives_no_bytes(tmp_path):
    text = SWIGLU.text().replace("'*bf16'", "open('/etc/passwd')")
    write(tmp_path, hash_of("a"), text)
    (kernel,) = index(tmp_path).kernels
    assert seed_bytes(kernel) == role_bytes(kernel) == (None, Missing.BAD_SIGNATURE)


def test_pointers_without_a_role_have_no_traffic_of_their_own(tmp_path):
    types = {"arg_A": "*fp16", "out_ptr0": "*fp16", "xnumel": "i32"}
    kernel = kernel_of(tmp_path, replace(SWIGLU, types=types))
    assert role_bytes(kernel) == (None, Missing.NO_ROLE)


def test_an_example_of_the_reference(tmp_path):
    # triton.md 3, the old layout: 786,432 elements, (2 + 2 + 2) bytes
    kernel = kernel_of(tmp_path, MUL_SILU, MUL_SILU_COMMENT, "2.5")
    assert seed_bytes(kernel) == role_bytes(kernel) == (4_718_592, None)
