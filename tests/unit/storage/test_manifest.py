from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.errors import TracehouseError
from tracehouse.storage import layout
from tracehouse.storage.manifest import (
    FileEntry,
    LakeState,
    Part,
    TableFile,
    TraceRef,
    commit_part,
    commit_prune,
    load_state,
)


def entry(path: str, *traces: str, size: int = 1, status: str = "ok") -> FileEntry:
    refs = tuple(TraceRef(trace, path) for trace in traces)
    return FileEntry(path, size, 10**18 + 1, "ab" * 8, status, None, "job", refs)


def commit(out: Path, number: int, files: list[FileEntry], held: str = "") -> Part:
    """Commit a part that holds the traces named by the letters of `held`."""
    part = Part(layout.part_id(number), "2031-02-03", "0.1", tuple(files), {}, tuple(held))
    commit_part(out, part)
    return part


def test_no_lake_is_an_empty_one(tmp_path):
    assert load_state(tmp_path / "nowhere") == LakeState((), (), {}, {})


def test_a_part_comes_back_equal(tmp_path):
    refs = (TraceRef("00ff", "a.zip/x.json"), TraceRef("01ff", "a.zip/é\udcff.json"))
    files = (
        FileEntry("/t/a.zip", 2**40, 1_700_000_000_123_456_789, "0" * 16, "ok", None, "run", refs),
        FileEntry("/t/b\udcff.json", 0, 0, None, "rejected", 'no bytes: "', "", ()),
    )
    tables = {"ops": TableFile("lake/ops/part-000001.parquet", 3, 400, "ff" * 8)}
    part = Part("part-000001", "2031-02-03T04:05:06+00:00", "0.1", files, tables, ("00ff", "01ff"))
    commit_part(tmp_path, part)
    state = load_state(tmp_path)
    assert state.parts == (part,)
    assert state.files == files  # sorted by path
    assert state.owners == {"00ff": "part-000001", "01ff": "part-000001"}
    assert state.dead == {}


def test_the_newest_part_that_names_a_path_holds(tmp_path):
    commit(tmp_path, 1, [entry("a", "A"), entry("b", "B")], "AB")
    commit(tmp_path, 2, [entry("a", "C", size=2)], "C")
    state = load_state(tmp_path)
    assert state.files == (entry("a", "C", size=2), entry("b", "B"))
    assert state.owners == {"B": "part-000001", "C": "part-000002"}
    assert state.dead == {"part-000001": {"A"}}


def test_newest_is_by_number_not_by_letters(tmp_path):
    commit(tmp_path, 999_999, [entry("a", "A")], "A")
    commit(tmp_path, 1_000_000, [entry("a", "B")], "B")
    assert load_state(tmp_path).owners == {"B": "part-1000000"}
    assert layout.next_part_number(tmp_path) == 1_000_001


def test_one_content_in_two_files_is_owned_once(tmp_path):
    commit(tmp_path, 1, [entry("a", "A")], "A")
    commit(tmp_path, 2, [entry("b", "A")])  # refers to it
    assert load_state(tmp_path).owners == {"A": "part-000001"}
    commit(tmp_path, 3, [entry("a", "X")], "X")  # a changed; b still holds the content
    state = load_state(tmp_path)
    assert state.owners == {"A": "part-000001", "X": "part-000003"}
    assert state.dead == {}


def test_of_two_that_hold_a_trace_the_newest_counts(tmp_path):
    commit(tmp_path, 1, [entry("a", "A")], "A")
    commit(tmp_path, 2, [entry("b", "A"), entry("c", "C")], "AC")
    state = load_state(tmp_path)
    assert state.owners == {"A": "part-000002", "C": "part-000002"}
    assert state.dead == {"part-000001": {"A"}}


def test_pruned_paths_are_forgotten_until_seen_again(tmp_path):
    commit(tmp_path, 1, [entry("a", "A"), entry("b", "B")], "AB")
    commit_prune(tmp_path, layout.part_id(2), ["a"])
    state = load_state(tmp_path)
    assert [f.path for f in state.files] == ["b"]
    assert state.dead == {"part-000001": {"A"}}
    assert layout.next_part_number(tmp_path) == 3
    commit(tmp_path, 3, [entry("a", "A")], "A")
    state = load_state(tmp_path)
    assert [f.path for f in state.files] == ["a", "b"]
    assert state.owners == {"A": "part-000003", "B": "part-000001"}


def test_foreign_and_unfinished_files_are_no_manifests(tmp_path):
    part = commit(tmp_path, 1, [entry("a", "A")], "A")
    folder = layout.manifest_path(tmp_path, part.id).parent
    for name in ("part-000002.json.tmp-part-000002-77", "notes.json", "part-2.json", ".DS_Store"):
        (folder / name).write_text("{")
    assert load_state(tmp_path).parts == (part,)


def good() -> dict[str, object]:
    return {
        "format": 1,
        "kind": "part",
        "id": "part-000001",
        "created_at": "",
        "pipeline_version": "",
        "files": [],
        "tables": {},
        "held": [],
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\udc00".encode("utf-8", "surrogatepass"),
        json.dumps({}),
        json.dumps({**good(), "format": 2}),
        json.dumps({**good(), "id": "part-000009"}),
        json.dumps({**good(), "files": [{"path": "a"}]}),
        json.dumps({**good(), "files": 7}),
        json.dumps({**good(), "tables": []}),
        json.dumps({**good(), "held": None}),
        json.dumps({"format": 1, "kind": "prune"}),
    ],
)
def test_a_damaged_manifest_is_named_with_what_to_do(tmp_path, text):
    path = layout.manifest_path(tmp_path, "part-000001")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(good()))
    assert len(load_state(tmp_path).parts) == 1
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TracehouseError, match="part-000001") as caught:
        load_state(tmp_path)
    assert caught.value.code == "LAKE_DAMAGED"
    assert "backup" in caught.value.hint


steps = st.lists(
    st.one_of(
        st.tuples(st.dictionaries(st.sampled_from("abc"), st.sampled_from("XYZ")), st.booleans()),
        st.sets(st.sampled_from("abc")),
    ),
    max_size=7,
)


@given(steps)
def test_state_adds_up(tmp_path_factory, history):
    """Play a history against the obvious: a dict of path to content."""
    out = tmp_path_factory.mktemp("lake")
    files: dict[str, str] = {}
    holders: dict[str, set[str]] = {}
    for number, step in enumerate(history, 1):
        if isinstance(step, set):
            commit_prune(out, layout.part_id(number), step)
            files = {path: trace for path, trace in files.items() if path not in step}
            continue
        contents, holds_all = step
        new = {t for t in contents.values() if holds_all or t not in holders}
        commit(out, number, [entry(p, t) for p, t in contents.items()], "".join(sorted(new)))
        files |= contents
        for trace in new:
            holders.setdefault(trace, set()).add(layout.part_id(number))
    state = load_state(out)
    assert {f.path: f.traces[0].trace_id for f in state.files} == files
    assert state.owners == {t: max(holders[t]) for t in set(files.values())}
    # Each row of the lake counts once or is dead.
    for part in state.parts:
        counted = {t for t, owner in state.owners.items() if owner == part.id}
        assert counted.isdisjoint(state.dead.get(part.id, ()))
        assert counted | state.dead.get(part.id, frozenset()) == set(part.held)
