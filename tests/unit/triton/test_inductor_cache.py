from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from cache_cases import (
    HELPER,
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
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.triton import inductor_cache
from tracehouse.triton.cache_origin import Node
from tracehouse.triton.cache_source import Missing, parse_source
from tracehouse.triton.inductor_cache import (
    NotFound,
    Skipped,
    cache_folders,
    first_folder,
    hash_of_file,
    index,
)
from tracehouse.triton.pointers import Role, element_bytes

HASH, WRAPPER, OTHER = hash_of("a"), hash_of("w"), hash_of("b")
BROKEN = "__import__('os').system('touch {mark}')"
TRANSPOSE = Kernel(
    "triton_poi_fused_clone_0",
    hints={"y": 4, "x": 16384},
    types={"in_ptr0": "*fp32", "out_ptr0": "*fp32", "ynumel": "i32", "xnumel": "i32"},
    blocks=("YBLOCK", "XBLOCK"),
    body="    ynumel = 3\n    xnumel = 9216\n    tl.store(out_ptr0 + (y0 + 3*x1), tmp0, xmask)\n",
)


def only(folder: Path):
    (kernel,) = index(folder).kernels
    return kernel


def roles(kernel):
    return [(p.name, p.type, p.bytes, p.role) for p in kernel.pointers]


# ---- where the cache is ----


def test_order_of_folders(tmp_path):
    environ = {"TORCHINDUCTOR_CACHE_DIR": "/environment"}
    found = cache_folders("/asked", environ, Path("/home/me"), Path("/tmp"), "me")
    assert [str(folder) for folder in found] == [
        "/asked",
        "/environment",
        "/home/me/.cache/torchinductor",
        "/tmp/torchinductor_me",
    ]


def test_folders_that_nobody_named_are_left_out():
    found = cache_folders(None, {"TORCHINDUCTOR_CACHE_DIR": ""}, Path("/h"), Path("/t"), "a/b:c")
    assert [str(f) for f in found] == ["/h/.cache/torchinductor", "/t/torchinductor_a_b_c"]


def test_the_first_folder_that_exists_counts(tmp_path):
    (tmp_path / "home/.cache/torchinductor").mkdir(parents=True)
    (tmp_path / "torchinductor_me").mkdir()
    found = cache_folders(tmp_path / "gone", {}, tmp_path / "home", tmp_path, "me")
    assert first_folder(found) == tmp_path / "home/.cache/torchinductor"
    assert first_folder([tmp_path / "gone"]) is None


# ---- layouts ----


@pytest.mark.parametrize("layout", ["2.2", "2.5"])
@pytest.mark.parametrize("unique", [True, False])
def test_list_hints_and_signature_by_index(tmp_path, layout, unique):
    write(tmp_path, WRAPPER, wrapper(block(MUL_SILU, MUL_SILU_COMMENT, layout, unique)))
    kernel = only(tmp_path)
    assert kernel.name == "triton_poi_fused_mul_silu_4"
    assert kernel.kernel_hash is None
    assert kernel.kind == "poi"
    assert kernel.ops == ("mul", "silu")
    assert (kernel.xnumel, kernel.rnumel, kernel.is_exact) == (786_432, 1, True)
    assert roles(kernel) == [
        ("in_out_ptr0", "*bf16", 2, Role.IN_OUT),
        ("in_ptr0", "*bf16", 2, Role.IN),
    ]
    assert kernel.source.mutated == ("in_out_ptr0",)
    assert kernel.why == ()


@pytest.mark.parametrize("layout", ["2.6", "new"])
def test_dict_hints_and_signature_by_name(tmp_path, layout):
    write(tmp_path, WRAPPER, wrapper(block(RMS_NORM, RMS_NORM_COMMENT, layout)))
    kernel = only(tmp_path)
    assert (kernel.kind, kernel.name) == ("red", RMS_NORM.name)
    assert kernel.ops == ("add", "mean", "mul", "pow", "rsqrt")
    assert kernel.source.sizes == {"x": 6_000, "r0": 1_000}
    assert (kernel.xnumel, kernel.rnumel, kernel.is_exact) == (6_000, 1_000, True)
    assert roles(kernel) == [
        ("in_ptr0", "*bf16", 2, Role.IN),
        ("in_ptr1", "*bf16", 2, Role.IN),
        ("out_ptr1", "*bf16", 2, Role.OUT),
    ]
    assert kernel.pointers[2].is_full


def test_the_graph_gives_multiplicities(tmp_path):
    write(tmp_path, WRAPPER, wrapper(block(RMS_NORM, RMS_NORM_COMMENT)))
    kernel = only(tmp_path)
    assert kernel.nodes == (
        Node("pow", 6_000_000),
        Node("mean", 6_000),
        Node("mul", 6_000_000),
        Node("mul", 6_000_000),
    )
    assert kernel.origin.counts() == {"pow": 1, "mean": 1, "mul": 2}


def test_graphs_of_2_6_have_no_shapes(tmp_path):
    comment = (
        "# Topologically Sorted Source Nodes: [x], Original ATen: [aten._to_copy, prims.iota]\n"
        "# Graph fragment:\n"
        "#   %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%a,)\n"
        "#   %get : [num_users=1] = call_function[target=operator.getitem](args = (%a, 1))\n"
        "#   %c : [num_users=1] = call_function[target=torch.ops.vllm.moe_forward.default](args)\n"
    )
    write(tmp_path, WRAPPER, wrapper(block(RMS_NORM, comment, "2.6")))
    kernel = only(tmp_path)
    assert kernel.ops == ("_to_copy", "iota")
    assert kernel.nodes == (Node("add", None), Node("moe_forward", None))


def test_dynamic_shapes_of_the_graph_are_not_known(tmp_path):
    write(
        tmp_path,
        WRAPPER,
        wrapper(block(RMS_NORM, RMS_NORM_COMMENT.replace("[6000, 1000]", "[s77, 1000]"))),
    )
    kernel = only(tmp_path)
    assert kernel.nodes[0] == Node("pow", None)
    assert (kernel.origin.reads[0].bytes, kernel.origin.reads[0].elements) == (2, None)


def test_two_dimensions(tmp_path):
    write(tmp_path, HASH, TRANSPOSE.text())
    kernel = only(tmp_path)
    assert kernel.source.sizes == {"y": 3, "x": 9_216}
    assert (kernel.xnumel, kernel.rnumel) == (27_648, 1)


@pytest.mark.parametrize(
    ("category", "hints", "sizes"),
    [
        ("pointwise", [16384], {"x": 16_384}),
        ("pointwise", [4, 16384], {"y": 4, "x": 16_384}),
        ("pointwise", [2, 4, 16384], {"z": 2, "y": 4, "x": 16_384}),
        ("reduction", [32768, 128], {"x": 32_768, "r0": 128}),
        ("persistent_reduction", [4, 32768, 128], {"y": 4, "x": 32_768, "r0": 128}),
        ("pointwise", {"y": 4, "x": 16384}, {"y": 4, "x": 16_384}),
        ("reduction", {"x": 8, "r": 16}, {"x": 8, "r0": 16}),
        ("reduction", {"x": 8, "r0_": 16, "r1_": 4}, {"x": 8, "r0": 16, "r1": 4}),
    ],
)
def test_hints_are_sizes_that_are_not_exact(tmp_path, category, hints, sizes):
    kernel = replace(RMS_NORM, category=category, hints=hints, types={"in_ptr0": "*i64"}, body="")
    found = parse_source(kernel.text())
    assert found.sizes == sizes
    assert list(found.sizes) == list(sizes)
    assert found.exact == frozenset()


def test_a_size_in_the_body_beats_its_hint_and_no_other(tmp_path):
    write(tmp_path, HASH, replace(RMS_NORM, body="    r0_numel = 1000\n    pass\n").text())
    kernel = only(tmp_path)
    assert kernel.source.sizes == {"x": 8_192, "r0": 1_000}
    assert kernel.source.exact == {"r0"}
    assert not kernel.is_exact


def test_an_expression_in_the_body_is_no_size(tmp_path):
    write(tmp_path, HASH, replace(MUL_SILU, body="    xnumel = 10*ks0\n").text())
    assert only(tmp_path).source.sizes == {"x": 1_048_576}


def test_a_size_that_was_compiled_in_is_exact(tmp_path):
    kernel = replace(RMS_NORM, body="    pass\n", constants={"xnumel": 1}, hints={"x": 1, "r0_": 8})
    write(tmp_path, HASH, kernel.text())
    assert only(tmp_path).source.exact == {"x"}


def test_two_reduced_dimensions(tmp_path):
    kernel = replace(RMS_NORM, body="    xnumel = 128\n    r0_numel = 56\n    r1_numel = 56\n")
    write(tmp_path, HASH, kernel.text())
    assert (only(tmp_path).xnumel, only(tmp_path).rnumel) == (128, 3_136)


def test_persistent_reduction_after_a_helper(tmp_path):
    kernel = Kernel(
        "triton_per_fused__softmax_3",
        category="persistent_reduction",
        hints={"x": 16, "r": 64},
        types={"in_ptr0": "*fp16", "out_ptr0": "*fp32", "out_ptr1": "*fp16", "ws_ptr": "*u8"},
        body=(
            "    xnumel = 16\n    rnumel = 50\n    RBLOCK: tl.constexpr = 64\n"
            "    tl.store(out_ptr1 + (r1 + 50*x0), tmp9, rmask & xmask)\n"
            "    tl.store(out_ptr0 + (x0), tmp7, xmask)\n"
        ),
        helper=HELPER,
    )
    write(tmp_path, HASH, kernel.text("2.6"))
    found = only(tmp_path)
    assert found.source.function == kernel.name
    assert (found.kind, found.xnumel, found.rnumel) == ("per", 16, 50)
    assert [p.is_full for p in found.pointers] == [None, False, True, None]
    assert found.pointers[3].role is Role.WORKSPACE


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"category": "foreach", "hints": None}, "for"),
        ({"extra_meta": "'combo_grid_meta': {'num_kernels': 2, 'xnumel_0': None}, "}, "poi"),
        ({"body": "    if pid < num_xblocks_0:\n        xnumel = 10\n"}, "poi"),
        ({"body": "    if a:\n        xnumel = 10\n    else:\n        xnumel = 20\n"}, "poi"),
    ],
)
def test_kernels_of_several_parts_have_no_size(tmp_path, changes, kind):
    write(tmp_path, HASH, replace(MUL_SILU, **changes).text())
    kernel = only(tmp_path)
    assert (kernel.kind, kernel.xnumel, kernel.why) == (kind, None, (Missing.COMBO,))
    assert len(kernel.pointers) == 2


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("pointwise", "poi"),
        ("reduction", "red"),
        ("persistent_reduction", "per"),
        ("template", "tem"),
        ("foreach", "for"),
        ("split_scan", "spl"),
        ("cooperative_reduction", "unk"),
        ("user_autotune", "unk"),
    ],
)
def test_kinds_of_decorators(category, kind):
    assert parse_source(replace(RMS_NORM, category=category).text()).kind == kind


def test_two_decorators_tell_no_kind():
    text = MUL_SILU.text()
    extra = "@triton_heuristics.reduction(size_hints=[4, 4])\n@triton_heuristics.pointwise("
    assert parse_source(text.replace("@triton_heuristics.pointwise(", extra)).kind == "unk"


def test_constants_are_no_data(tmp_path):
    by_index = replace(MUL_SILU, constants={1: None})
    assert [p.name for p in parse_source(by_index.text("2.5")).pointers] == ["in_out_ptr0"]
    by_name = replace(MUL_SILU, constants={"in_out_ptr0": None})
    assert [p.name for p in parse_source(by_name.text()).pointers] == ["in_ptr0"]


def test_a_template_has_pointers_of_its_own_names(tmp_path):
    kernel = Kernel(
        "triton_tem_fused_mm_1",
        category="template",
        hints=None,
        types={"arg_A": "*fp16", "arg_B": "*fp16", "out_ptr0": "*fp16"},
        blocks=(),
        body="    M = 128\n",
    )
    write(tmp_path, HASH, kernel.text())
    found = only(tmp_path)
    assert [p.role for p in found.pointers] == [Role.UNKNOWN, Role.UNKNOWN, Role.OUT]
    assert (found.kind, found.xnumel, found.why) == ("tem", None, (Missing.NO_SIZES,))


# ---- tying wrappers and kernel files, finding kernels ----


def test_a_wrapper_is_tied_to_the_kernel_file_by_its_text(tmp_path):
    write(tmp_path, HASH, RMS_NORM.text().strip())
    write(tmp_path, WRAPPER, wrapper(block(RMS_NORM, RMS_NORM_COMMENT)))
    kernel = only(tmp_path)
    assert (kernel.kernel_hash, kernel.file) == (HASH, f"aa/{HASH}.py")
    assert kernel.ops == ("add", "mean", "mul", "pow", "rsqrt")
    assert index(tmp_path).lookup(kernel_hash=HASH).kernel == kernel


def test_a_wrapper_alone_names_the_kernel_file(tmp_path):
    path = f"/tmp/torchinductor_me/aa/{HASH}.py"
    write(tmp_path, WRAPPER, wrapper(block(RMS_NORM, RMS_NORM_COMMENT, path=path)))
    cache = index(tmp_path)
    assert cache.lookup(kernel_file=f"/elsewhere/aa/{HASH}.py").kernel == cache.kernels[0]


def test_a_kernel_file_alone_tells_no_ops(tmp_path):
    write(tmp_path, HASH, RMS_NORM.text())
    found = index(tmp_path).lookup(kernel_hash=HASH).kernel
    assert (found.ops, found.nodes, found.xnumel) == (None, (), 6_000)


def test_the_comment_of_another_kernel_does_not_count(tmp_path):
    bare = replace(RMS_NORM, name="triton_red_fused_9")
    cpp = "\n\ncpp_fused_0 = async_compile.cpp_pybinding(['int'], '''\nvoid kernel() {}\n''')\n"
    cpp_comment = "# Source Nodes: [], Original ATen: [aten.zeros]\n"
    text = wrapper(
        block(MUL_SILU, MUL_SILU_COMMENT),
        block(bare),
        cpp.replace("cpp_fused", cpp_comment + "cpp_fused"),
        block(RMS_NORM),
        block(TRANSPOSE, "# Original ATen: [aten.gone]\n# Source, Original ATen: [aten.clone]\n"),
    )
    write(tmp_path, WRAPPER, text)
    assert [kernel.ops for kernel in index(tmp_path).kernels] == [
        ("mul", "silu"),
        None,
        None,
        ("clone",),
    ]


def test_a_list_without_ops_is_not_unknown(tmp_path):
    comment = "# Source Nodes: [], Original ATen: []\n"
    write(tmp_path, WRAPPER, wrapper(block(MUL_SILU, comment)))
    assert only(tmp_path).ops == ()


def test_names_find_kernels_of_one_meaning_only(tmp_path):
    smaller = replace(MUL_SILU, body="    xnumel = 10\n")
    write(tmp_path, WRAPPER, wrapper(block(MUL_SILU, MUL_SILU_COMMENT)))
    cache = index(tmp_path)
    assert cache.lookup(name=MUL_SILU.name).kernel == cache.kernels[0]
    assert cache.lookup(name="triton_poi_fused_add_0") == (None, NotFound.ABSENT)
    write(tmp_path, OTHER, wrapper(block(smaller, MUL_SILU_COMMENT)))
    assert index(tmp_path).lookup(name=MUL_SILU.name) == (None, NotFound.AMBIGUOUS)


def test_kernels_that_agree_in_all_that_counts_are_one(tmp_path):
    same = replace(MUL_SILU, body=MUL_SILU.body + "    # a comment\n")
    write(tmp_path, WRAPPER, wrapper(block(MUL_SILU, MUL_SILU_COMMENT)))
    write(tmp_path, OTHER, wrapper(block(same, MUL_SILU_COMMENT)))
    cache = index(tmp_path)
    assert len(cache.kernels) == 2
    assert cache.lookup(name=MUL_SILU.name).kernel is not None


def test_a_hash_beats_the_name(tmp_path):
    smaller = replace(MUL_SILU, body="    xnumel = 10\n")
    write(tmp_path, HASH, MUL_SILU.text())
    write(tmp_path, OTHER, smaller.text())
    cache = index(tmp_path)
    assert cache.lookup(kernel_hash=OTHER, name=MUL_SILU.name).kernel.xnumel == 10
    assert cache.lookup(kernel_hash=HASH, name=MUL_SILU.name).kernel.xnumel == 786_432


def test_a_kernel_of_another_hash_is_another_kernel(tmp_path):
    write(tmp_path, HASH, MUL_SILU.text())
    found = index(tmp_path).lookup(kernel_hash=hash_of("z"), name=MUL_SILU.name)
    assert found == (None, NotFound.ABSENT)


def test_unique_names_off_leave_the_name_that_profilers_see(tmp_path):
    write(tmp_path, WRAPPER, wrapper(block(MUL_SILU, MUL_SILU_COMMENT, "2.5", unique=False)))
    write(tmp_path, OTHER, wrapper(block(TRANSPOSE, "", "2.5", unique=False)))
    cache = index(tmp_path)
    assert cache.lookup(name="triton_poi_fused_mul_silu_4").kernel.ops == ("mul", "silu")
    assert cache.lookup(name="triton_") == (None, NotFound.AMBIGUOUS)


def test_graphs_that_share_a_kernel_keep_what_they_say_alike(tmp_path):
    other_names = RMS_NORM_COMMENT.replace("%x", "%primals_1").replace("target=x", "target=p")
    write(tmp_path, WRAPPER, wrapper(block(RMS_NORM, RMS_NORM_COMMENT)))
    write(tmp_path, OTHER, wrapper(block(RMS_NORM, other_names)))
    assert len(only(tmp_path).nodes) == 4
    wider = RMS_NORM_COMMENT.replace("bf16[6000, 1000]", "bf16[6000, 2000]")
    write(tmp_path, hash_of("x"), wrapper(block(RMS_NORM, wider)))
    kernel = only(tmp_path)
    assert (kernel.nodes, kernel.origin.reads) == ((), ())
    assert kernel.ops == ("add", "mean", "mul", "pow", "rsqrt")


def test_hash_of_a_path():
    assert hash_of_file("/tmp/torchinductor_me/mw/cmwjlpfu.py") == "cmwjlpfu"
    assert hash_of_file(r"C:\cache\mw\cmwjlpfu.py") == "cmwjlpfu"


# ---- what is hostile or broken ----


@pytest.mark.parametrize("value", ["[{0}]", "{{'x': {0}}}", "{0}", "[16 ** 9]", "{{'q': 4}}"])
def test_code_in_size_hints_is_never_run(tmp_path, value):
    mark = tmp_path / "mark"
    hints = value.format(BROKEN.format(mark=mark))
    text = replace(MUL_SILU, body="    pass\n").text().replace("[1048576]", hints)
    assert hints in text
    write(tmp_path, HASH, text)
    kernel = only(tmp_path)
    assert (kernel.xnumel, kernel.is_exact) == (None, False)
    assert kernel.why == (Missing.BAD_SIZE_HINTS, Missing.NO_SIZES)
    assert not mark.exists()


@pytest.mark.parametrize(
    "signature",
    [
        BROKEN,
        "{{'in_ptr0': {broken}}}",
        "{{**{broken}}}",
        "{{0: '*bf16', 99: '*bf16'}}",
        "{{99999999999999999999: '*bf16'}}",
        "eval('1')",
    ],
)
def test_code_in_a_signature_is_never_run(tmp_path, signature):
    mark = tmp_path / "mark"
    broken = BROKEN.format(mark=mark)
    wanted = signature.format(broken=broken, mark=mark)
    text = MUL_SILU.text("2.5")
    text = text.replace("{0: '*bf16', 1: '*bf16', 2: 'i32'}", wanted)
    assert wanted in text
    write(tmp_path, HASH, text)
    kernel = only(tmp_path)
    assert (kernel.pointers, kernel.why) == (None, (Missing.BAD_SIGNATURE,))
    assert not mark.exists()


def test_numbers_without_end_are_not_known(tmp_path):
    kernel = replace(MUL_SILU, hints=None, body=f"    xnumel = {'9' * 6_000}\n")
    write(tmp_path, HASH, kernel.text())
    assert only(tmp_path).xnumel is None


@pytest.mark.parametrize("unit", ["9", " ", "'", "x: ", "\n", "[", "Original ATen: [", "{'a': "])
@pytest.mark.parametrize(
    "place",
    [
        "'in_out_ptr0': '*bf16'",
        "'constants': {",
        "size_hints=[",
        "xnumel = ",
        "'kernel_name': '",
        "# kernel path: ",
        "Original ATen: [",
        '"bf16[6000',
        "tl.store(",
    ],
)
def test_long_junk_takes_no_more_than_its_length(tmp_path, unit, place):
    text = wrapper(
        block(RMS_NORM, RMS_NORM_COMMENT, path="/a/b.py"), block(MUL_SILU, MUL_SILU_COMMENT)
    )
    assert place in text
    write(tmp_path, WRAPPER, text.replace(place, place + unit * (200_000 // len(unit))))
    index(tmp_path)  # quadratic work would take hours


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    outside = write(tmp_path / "outside", HASH, MUL_SILU.text())
    cache = tmp_path / "cache"
    inside = write(cache, OTHER, TRANSPOSE.text())
    (cache / "out.py").symlink_to(outside)
    (cache / "in.py").symlink_to(inside)
    (cache / "dangling.py").symlink_to(cache / "gone.py")
    (cache / "folder").symlink_to(outside.parent.parent)
    (cache / "loop").symlink_to(cache)
    found = index(cache)
    assert [kernel.name for kernel in found.kernels] == [TRANSPOSE.name]
    assert found.skipped[Skipped.LINK] == 1


def test_a_cache_that_is_a_link_itself_is_read(tmp_path):
    write(tmp_path / "real", HASH, MUL_SILU.text())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert len(index(tmp_path / "link").kernels) == 1


def test_pipes_large_files_and_bad_bytes_are_no_trouble(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "bad.py").write_bytes(b"\xff\xfe@triton.jit\x00" + bytes(range(256)))
    write(tmp_path, HASH, MUL_SILU.text())
    (tmp_path / "large.py").write_text(MUL_SILU.text() + "#" * 5_000)
    monkeypatch.setattr(inductor_cache, "MAX_FILE_BYTES", 4_000)
    found = index(tmp_path)
    assert [kernel.kernel_hash for kernel in found.kernels] == [HASH]
    assert found.skipped == {Skipped.OVERSIZE: 1}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_counted(tmp_path):
    write(tmp_path, HASH, MUL_SILU.text()).chmod(0)
    assert index(tmp_path).skipped == {Skipped.UNREADABLE: 1}


def test_an_unreadable_file_is_counted(tmp_path, monkeypatch):
    write(tmp_path, HASH, MUL_SILU.text())
    bad = write(tmp_path, OTHER, TRANSPOSE.text())
    open_path = Path.open

    def failing(path, *args):
        if path.name == bad.name:
            raise PermissionError(path)
        return open_path(path, *args)

    monkeypatch.setattr(Path, "open", failing)
    found = index(tmp_path)
    assert len(found.kernels) == 1
    assert found.skipped == {Skipped.UNREADABLE: 1}


def test_a_folder_that_is_gone_is_an_empty_cache(tmp_path):
    found = index(tmp_path / "gone")
    assert (found.kernels, found.files) == ((), 0)


def test_deep_folders_are_read(tmp_path):
    folder = tmp_path
    for _ in range(120):
        folder = folder / "d"
    write(folder, HASH, MUL_SILU.text())
    assert len(index(tmp_path).kernels) == 1


def test_a_wrapper_that_was_cut_short_keeps_its_whole_kernels(tmp_path):
    text = wrapper(block(MUL_SILU, MUL_SILU_COMMENT), block(RMS_NORM, RMS_NORM_COMMENT))
    write(tmp_path, WRAPPER, text[: text.index("'r0_numel': 'i32'")])
    assert [kernel.name for kernel in index(tmp_path).kernels] == [MUL_SILU.name]


def test_line_ends_of_windows(tmp_path):
    path = write(tmp_path, WRAPPER, "")
    path.write_bytes(wrapper(block(RMS_NORM, RMS_NORM_COMMENT)).replace("\n", "\r\n").encode())
    assert only(tmp_path).xnumel == 6_000


@given(st.data())
def test_no_text_raises(tmp_path_factory, data):
    text = wrapper(block(RMS_NORM, RMS_NORM_COMMENT), block(MUL_SILU, MUL_SILU_COMMENT, "2.5"))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    junk = data.draw(st.text(alphabet="{}[]()'\"\n:=,0aα\x00 ", max_size=12))
    folder = tmp_path_factory.mktemp("cache")
    write(folder, WRAPPER, text[:start] + junk + text[end:])
    index(folder)


# ---- types ----


@pytest.mark.parametrize(
    ("spellings", "width"),
    [
        ("*i1 *u8 *i8 *fp8e4nv *fp8e5 *fp8e4b8 *fp8e5b16", 1),
        ("*bf16 *fp16 *i16 *u16", 2),
        ("*fp32 *i32 *u32", 4),
        ("*fp64 *i64 *u64", 8),
        ("*kbf16", 2),
        ("bool c10::Float8_e4m3fn c10::Float8_e4m3fnuz c10::Float8_e5m2 c10::Float8_e5m2fnuz", 1),
        ("c10::Float8_e8m0fnu c10::Float4_e2m1fn_x2 c10::Byte c10::Char c10::Bool c10::quint8", 1),
        ("c10::BFloat16 BFloat16 c10::Half Half short torch.bfloat16 torch.float16", 2),
        ("float int c10::Float c10::Int float32 c10::complex<c10::Half> c10::qint32", 4),
        ("double long c10::Double c10::Long c10::complex<float> torch.int64", 8),
        ("c10::complex<double> c128", 16),
        ("f32 b8 bf16 f16 i64 u8 f8e4m3fn f64 c64", None),
    ],
)
def test_bytes_of_every_spelling(spellings, width):
    annotated = {"f32": 4, "b8": 1, "bf16": 2, "f16": 2, "i64": 8, "u8": 1, "f8e4m3fn": 1}
    for spelling in spellings.split():
        wanted = annotated.get(spelling, 8) if width is None else width
        assert element_bytes(spelling) == wanted, spelling


def test_bytes_of_spellings_of_two_words():
    words = {"signed char": 1, "unsigned char": 1, "short int": 2, "unsigned short": 2}
    words |= {"unsigned int": 4, "long int": 8, "unsigned long": 8, "long long": 8}
    assert {word: element_bytes(word) for word in words} == words


@pytest.mark.parametrize("spelling", ["", "*", "*fp7", "tensordesc<fp32[16, 16]>", "Scalar", "*k"])
def test_an_unknown_type_has_no_bytes(spelling):
    assert element_bytes(spelling) is None
