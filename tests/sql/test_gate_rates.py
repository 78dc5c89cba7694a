"""How often the gate raises a false alarm, and how often it finds a slowdown: docs/regressions.md.

200 archives of 40 runs each are drawn and judged by the SQL itself, in one query a row. They are
those of data/nightly.py in small: eight ops with their shares of time. Each has its own kernel, so
that kernel_ns would say the same once more.
"""

from __future__ import annotations

import re
import sys

import numpy as np
import pyarrow as pa
import pytest
from gate_tables import DAY_US, archives, session, with_settings

ARCHIVES, RUNS = 200, 40
FACTOR = 1.08


@pytest.fixture(scope="module")
def nightly(repo_root):
    sys.path.insert(0, str(repo_root / "data"))
    try:
        from generators import nightly
    finally:
        sys.path.pop(0)
    return nightly


def documented(repo_root):
    """Read the table of docs/regressions.md: (spread, judged together) to (alarms, found) in %."""
    text = (repo_root / "docs/regressions.md").read_text("utf-8")
    rows = re.findall(
        r"^\| ([\d.]+) % \| ([\d.]+) % \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.M
    )
    return [tuple(float(cell) for cell in row) for row in rows]


def tables(values):
    """Make `trends` and `job_runs` of (archives, runs, ops) values: op_ns and busy_ns."""
    count, runs, _ = values.shape
    archive, run, op = (index.ravel() for index in np.indices(values.shape))
    label = np.char.add("a", archive.astype(str))
    share = (100 * values / values.sum(axis=2, keepdims=True)).ravel()
    whole = [index.ravel() for index in np.indices((count, runs))]
    whole_label = np.char.add("a", whole[0].astype(str))
    whole_run = np.char.add(np.char.add(whole_label, "-"), whole[1].astype(str))
    ops = {
        "label": label,
        "run_id": np.char.add(np.char.add(label, "-"), run.astype(str)),
        "subject": np.char.add("op", op.astype(str)),
        "value": values.ravel(),
        "share_pct": share,
    }
    busy = {
        "label": whole_label,
        "run_id": whole_run,
        "subject": np.full(len(whole_run), "(all)"),
        "value": values.sum(axis=2).ravel(),
        "share_pct": pa.nulls(len(whole_run), pa.float64()),
    }
    constant = {"worse": "up", "unit": "ns", "per": "step"}
    trends = pa.concat_tables(
        pa.table(
            columns
            | {name: np.full(len(columns["label"]), word) for name, word in constant.items()}
            | {"metric": np.full(len(columns["label"]), metric)}
        )
        for metric, columns in (("op_ns", ops), ("busy_ns", busy))
    )
    described = pa.table(
        {
            "run_id": whole_run,
            "label": whole_label,
            "position": runs - whole[1],
            "run_time": (whole[1] + 1) * DAY_US,
            "traces": np.ones(count * runs, np.int64),
            "per": np.full(count * runs, "step"),
            "is_good": np.ones(count * runs, bool),
        }
    )
    return trends, described


def rates(shares, *, noise, run_noise, together, seed=8):
    """Return the share of clean archives that fail, and of slowed ones where op 7 is named."""
    failing = []
    for factor, which in ((1.0, ""), (FACTOR, "AND subject = 'op7'")):
        slow = (len(shares) - 1, factor, together)
        values = archives(
            ARCHIVES, RUNS, shares=shares, noise=noise, run_noise=run_noise, slow=slow, seed=seed
        )
        with session(*tables(values)) as connection:
            with_settings(connection, newest_runs=together)
            (found,) = connection.execute(
                "SELECT count(DISTINCT label) FROM regressions WHERE verdict = 'regression' "
                + which
            ).fetchone()
        failing.append(100 * found / ARCHIVES)
    return tuple(failing)


def test_the_rates_are_those_of_the_docs(repo_root, nightly):
    shares = [call.ns for call in nightly.LAYER]
    rows = documented(repo_root)
    assert len(rows) >= 6
    for noise, run_noise, together, alarms, found in rows:
        assert rates(
            shares, noise=noise / 100, run_noise=run_noise / 100, together=int(together)
        ) == pytest.approx((alarms, found), abs=1), (noise, run_noise, together)


def test_defaults_hold_at_two_percent_of_noise_a_call(nightly):
    """Each op runs four times a trace of two steps: 2 % a call is 1 % a run."""
    shares = [call.ns for call in nightly.LAYER]
    alarms, found = rates(shares, noise=0.01, run_noise=0.005, together=1, seed=9)
    assert alarms <= 1
    assert found >= 97


def test_a_noisy_op_does_not_cry_wolf():
    """Of two ops one spreads by 20 %: its jumps of 20 and 30 % are no news."""
    draw = np.random.default_rng(4)
    values = np.ones((ARCHIVES, RUNS, 2))
    values[:, :, 0] += 0.2 * draw.standard_normal((ARCHIVES, RUNS))
    values[:, :, 1] += 0.002 * draw.standard_normal((ARCHIVES, RUNS))
    with session(*tables(np.abs(values))) as connection:
        (alarms,) = connection.execute(
            "SELECT count(DISTINCT label) FROM regressions WHERE verdict = 'regression'"
        ).fetchone()
    assert 100 * alarms / ARCHIVES <= 10  # 5 % a metric is allowed: op_ns and busy_ns
