"""An archive of many traces costs no more memory than one of few."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from pathlib import Path

import pytest
from killers import run_and_leak, run_and_note_memory
from warehouses import analyse, drawn

from tracehouse.commands import analyze, division

A_PART = 10
WARM = 2  # parts after which a process has loaded what it needs
ALLOWED = 6 << 20  # between the first and the last parts after that; the measure's own noise is 3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize(("traces", "leaks"), [(180, False), (100, True)])
def test_workers_do_not_grow(tmp_path, monkeypatch, traces, leaks):
    monkeypatch.setattr(analyze, "run_part", run_and_leak if leaks else run_and_note_memory)
    monkeypatch.setattr(division, "PART_BYTES", A_PART * (division.FILE_BYTES + 1_000))
    for number in range(traces):
        drawn(number).write(tmp_path / "in" / f"{number:03}.json")
    report = analyse(tmp_path / "in", out=tmp_path / "out", workers=2)
    assert (report.total, report.rejected) == (traces, 0)
    held = defaultdict(list)
    for line in (tmp_path / "memory").read_text().splitlines():
        pid, size = line.split()
        held[pid].append(int(size))
    assert sum(map(len, held.values())) == traces / A_PART
    assert len(held) == 2
    growths = []
    for sizes in held.values():
        settled = sizes[WARM:]
        third = max(len(settled) // 3, 1)
        growths.append(statistics.mean(settled[-third:]) - statistics.mean(settled[:third]))
    if leaks:  # a mebibyte a trace is seen
        assert max(growths) > ALLOWED, held
        return
    assert max(growths) < ALLOWED, held
    before = time.process_time()
    again = analyse(tmp_path / "in", out=tmp_path / "out", workers=2)
    assert again.unchanged == traces
    # A thousand are to take about a second; half of that for these is not to depend on the machine.
    assert time.process_time() - before < 0.5
