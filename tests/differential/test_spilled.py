"""A part made with its columns in files is byte for byte the one made in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracegen import Trace

from tracehouse import spill as spilling
from tracehouse.commands.part import run_part
from tracehouse.commands.part_task import PartTask
from tracehouse.ingest.discover import SourceFile
from tracehouse.spill import Spill

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "data" / "samples"
SHARED = ROOT.parent / "shared" / "traces"
# Of each kind one: eager, with graphs, of several ranks, compiled.
REAL = ("h100/", "vllm_decode_full/graph_execution", "nccl_data", "torch_compile_triton")
OF_THE_RUN = {"analysed_at", "seconds"}


def traces(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*.json.gz"))


def tables(trace: Path, out: Path, spill_rows: int) -> dict[str, object]:
    """The checksums of the files of a part of one trace; of `traces`, its row."""
    size = trace.stat().st_size
    task = PartTask(
        out=out,
        part_id="part-000001",
        files=(SourceFile(str(trace), size, 1),),
        label=None,
        reader="scan",
        known=frozenset(),
        spill_rows=spill_rows,
    )
    staged = run_part(task).staged
    found: dict[str, object] = {n: file.checksum for n, file in staged.part.tables.items()}
    [row] = [pq.read_table(t) for t, final in staged.moves if final.parent.name == "traces"]
    names = [n for n in row.column_names if n not in OF_THE_RUN and not n.endswith("_seconds")]
    return found | {"traces": row.select(names).to_pylist()}


@pytest.fixture(scope="module")
def assert_same(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    counts = {"put away": 0}

    def check(trace: Path) -> None:
        folder = tmp_path_factory.mktemp("parts")
        in_memory = tables(trace, folder / "memory", 1 << 60)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spilling, "LEAST_BYTES", 1)
            mapped = Spill._mapped

            def counting(self: Spill, file: object) -> object:
                counts["put away"] += 1
                return mapped(self, file)

            patch.setattr(Spill, "_mapped", counting)
            in_files = tables(trace, folder / "files", 0)
        assert counts["put away"] > 30  # it is what this compares
        assert in_files.keys() == in_memory.keys()
        for name, content in in_files.items():
            assert content == in_memory[name], name

    return check


@pytest.mark.parametrize("name", traces(SAMPLES))
def test_samples(name: str, assert_same: Callable[[Path], None]) -> None:
    assert_same(SAMPLES / name)


@pytest.mark.parametrize(
    "name", [n for n in traces(SHARED) if any(kind in n for kind in REAL)] or ["(none)"]
)
def test_real_traces(shared_traces: Path, name: str, assert_same: Callable[[Path], None]) -> None:
    assert_same(shared_traces / name)


times = st.integers(0, 60)
threads = st.integers(1, 2)
shapes = st.sampled_from([None, [[4, 4], [4, 4]], [[]], "odd"])
events = st.one_of(
    st.tuples(st.just("op"), times, times, threads, shapes),
    st.tuples(st.just("annotation"), times, times, threads, st.integers(0, 2)),
    st.tuples(st.just("launch"), times, st.integers(1, 5), threads, st.integers(0, 6)),
    st.tuples(st.just("kernel"), times, times, st.integers(7, 8), st.integers(0, 6)),
    st.tuples(st.just("begin"), times, threads),
    st.tuples(st.just("end"), times, threads),
)


def drawn(items: list[tuple]) -> Trace:
    trace = Trace()
    for kind, at, *rest in items:
        if kind == "op":
            dur, thread, dims = rest
            trace.op("aten::mm", at, dur, thread=thread, **({"Input Dims": dims} if dims else {}))
        elif kind == "annotation":
            dur, thread, number = rest
            trace.annotation(f"ProfilerStep#{number}", at, dur, thread=thread)
        elif kind == "launch":
            dur, thread, correlation = rest
            trace.launch(at, dur, correlation=correlation, thread=thread)
        elif kind == "kernel":
            dur, stream, correlation = rest
            trace.kernel("gemm", at, dur, correlation=correlation, stream=stream)
        else:
            phase = "B" if kind == "begin" else "E"
            trace.event(ph=phase, cat="cpu_op", name="span", pid=100, tid=rest[0], ts=at)
    return trace


@settings(max_examples=8)
@given(items=st.lists(events, min_size=12, max_size=40))
def test_drawn_traces(
    items: list[tuple],
    assert_same: Callable[[Path], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assert_same(drawn(items).write(tmp_path_factory.mktemp("drawn") / "trace.json"))
