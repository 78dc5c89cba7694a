"""Archives of mutants through the whole pipeline: linking, SQL, formulas, publish.

No analysis fails, no file hangs the batch, and no kernel is lost that the mutation left alone.
`make mutants` runs many more of them (TRACEHOUSE_MUTANTS).
"""

from __future__ import annotations

import json
import os
import random
import zlib
from collections import Counter
from pathlib import Path

import pytest
from test_mutants import KINDS, Original, intact, original_of, us

import tracehouse
from tracehouse.vocab import GPU_CATEGORIES, canonical_category

ROOT = Path(__file__).resolve().parents[2]
# Of each kind, from each source.
MUTANTS = int(os.environ.get("TRACEHOUSE_MUTANTS", "20")) // 10
SOURCES = [
    "data/samples/training.json.gz",
    "data/samples/triton_block.json.gz",
    "data/samples/two_ranks/rank0.json.gz",
    "../shared/traces/hta/critical_path/cuda_event_sync/event_sync_trace.json.gz",
]


def identity(event: dict[str, object]) -> str | None:
    """Tell a kernel by what the warehouse keeps of it as it stood; None for any other event."""
    category = event.get("cat")
    if event.get("ph") != "X" or not isinstance(category, str):
        return None
    if canonical_category(category) not in GPU_CATEGORIES:
        return None
    return json.dumps([event.get("name"), whole(event.get("ts"))])


def whole(us_: object) -> object:
    return int(us_) if isinstance(us_, float) and us_.is_integer() else us_


def intact_kernels(original: Original, low: int, high: int) -> Counter[str]:
    """Count the kernels that a change of text[low:high] leaves alone."""
    untouched = intact(original, low, high)
    found: Counter[str] = Counter()
    for start, end, name in original.events:
        if untouched[name] > 0 and (key := identity(json.loads(original.text[start:end]))):
            untouched[name] -= 1
            found[key] += 1
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_an_archive_of_mutants(source, tmp_path):
    path = ROOT / source
    if not path.exists():
        pytest.skip(f"no {path}")
    original = original_of(zlib.decompressobj(31).decompress(path.read_bytes()))
    rng = random.Random(source)
    wanted = {}
    for kind in KINDS:
        for number in range(max(MUTANTS, 1)):
            text, low, high = kind(original.text, rng, original.start)
            file = tmp_path / "in" / f"{kind.__name__}{number}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text)
            wanted[str(file)] = intact_kernels(original, low, high), (low, high)
    report = tracehouse.analyze(tmp_path / "in", tmp_path / "out", workers=1)
    assert {r.path for r in report.results if "#" not in r.path} == set(wanted)
    kept: dict[str, Counter[str]] = {}
    with tracehouse.open(tmp_path / "out") as warehouse:
        failed = warehouse.sql("FROM issues WHERE code IN ('ANALYSIS_FAILED', 'WORKER_DIED')")
        assert failed.to_pylist() == []
        rows = warehouse.sql(
            "SELECT unnest(traces) AS trace_id, path FROM files WHERE status <> 'rejected'"
        )
        paths = {}
        for trace_id, path_ in rows.fetchall():
            paths.setdefault(trace_id, []).append(path_)
        events = warehouse.sql(
            "SELECT trace_id, events.name, events.ts_ns FROM kernels"
            " JOIN events USING (trace_id, event_id)"
        )
        for trace_id, name, ts_ns in events.fetchall():
            for path_ in paths[trace_id]:
                kept.setdefault(path_, Counter())[json.dumps([name, us(ts_ns)])] += 1
        told = dict(
            warehouse.sql(
                "SELECT path, list(code) AS codes FROM issues JOIN traces USING (trace_id)"
                " GROUP BY path"
            ).fetchall()
        )
    for path_, (kernels, where) in wanted.items():
        if "INTERLEAVED_WRITERS" not in told.get(path_, ()):
            assert not kernels - kept.get(path_, Counter()), (path_, where)
    # What was damaged can be written back, and the warehouse is whole.
    from tracehouse.commands.check import check

    assert check(tmp_path / "out").faults == ()
