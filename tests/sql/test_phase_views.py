"""Views of the warehouse that split the work of a trace by phase and steady run."""

from __future__ import annotations

import pytest

import tracehouse

# data/samples/README.md: 20 steps; the mixed and decode ones of the steady run are regions 1.
GRAINS = {
    "phase_op_summary": ("op_summary", "direct_kernel_time_ns"),
    "phase_kernel_summary": ("kernel_summary", "time_ns"),
    "phase_roofline": ("roofline", "kernel_time_ns"),
    "phase_triton": ("triton_summary", "kernel_time_ns"),
}


@pytest.fixture(scope="module")
def warehouse(repo_root, tmp_path_factory):
    samples = repo_root / "data" / "samples"
    out = tmp_path_factory.mktemp("phases")
    paths = [str(samples / name) for name in ("serving.json.gz", "triton_block.json.gz")]
    tracehouse.analyze(paths, out, workers=1)
    with tracehouse.open(out) as warehouse:
        yield warehouse


def rows(warehouse, query):
    return warehouse.sql(query).fetchall()


@pytest.mark.parametrize(("view", "whole", "time"), [(k, *v) for k, v in GRAINS.items()])
def test_the_phases_add_up_to_the_trace(warehouse, view, whole, time):
    def totals(name):
        query = f"SELECT trace_id, sum(count), sum({time}) FROM {name} GROUP BY ALL ORDER BY ALL"
        return rows(warehouse, query)

    assert totals(view) == totals(whole) != []


def test_steps_have_their_phase_and_steady_run(warehouse):
    found = rows(
        warehouse,
        "SELECT phase, region_id, count(*) FROM step_phases WHERE phase IN ('decode', 'mixed')"
        " GROUP BY ALL ORDER BY ALL",
    )
    assert found == [("decode", 1, 8), ("decode", None, 3), ("mixed", 1, 5), ("mixed", None, 2)]


def test_decode_steps_of_the_steady_run_by_hand(warehouse):
    """Eight steps, each a graph of 200 us, an argmax of 10 us and two copies of 15 us together."""
    found = rows(
        warehouse,
        "SELECT name, steps, count, direct_kernel_time_ns, per_step_ns, pct FROM phase_op_summary"
        " WHERE phase = 'decode' AND region_id = 1 ORDER BY direct_kernel_time_ns DESC",
    )
    assert found == [
        ("cudaGraphLaunch", 8, 8, 1_600_000, 200_000.0, pytest.approx(100 * 1_600 / 1_800)),
        ("aten::copy_", 8, 16, 120_000, 15_000.0, pytest.approx(100 * 120 / 1_800)),
        ("aten::argmax", 8, 8, 80_000, 10_000.0, pytest.approx(100 * 80 / 1_800)),
    ]


def test_work_in_no_step_has_no_phase(warehouse):
    found = rows(
        warehouse,
        "SELECT DISTINCT phase, region_id, steps FROM phase_triton UNION ALL"
        " SELECT DISTINCT phase, region_id, steps FROM phase_roofline"
        " WHERE trace_id IN (SELECT trace_id FROM triton_kernels)",
    )
    assert set(found) == {(None, None, None)}


def test_compiled_kernels_name_their_step(warehouse):
    query = """
        SELECT count(*) FROM triton_kernels
        JOIN ops USING (trace_id, event_id)
        WHERE triton_kernels.step_id IS DISTINCT FROM ops.step_id
    """
    assert rows(warehouse, query) == [(0,)]
