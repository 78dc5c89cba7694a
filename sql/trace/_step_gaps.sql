-- How long before each step the one before it ended, on the host and on the GPU.
--
-- grain:   one row per (trace_id, step_id)
-- reads:   annotations, _step_gpu
-- columns:
--   trace_id           VARCHAR  -   trace the row belongs to
--   step_id            BIGINT   -   the step
--   gap_before_ns      BIGINT   ns  end of the annotation before to the start of its own
--   gpu_start_ns       HUGEINT  ns  first start of a GPU activity of the step
--   gpu_end_ns         HUGEINT  ns  last end of one
--   gpu_gap_before_ns  BIGINT   ns  end of the GPU work of steps before to the start of its own
--   launches           BIGINT   -   calls in it that launched something; NULL if none
--   graph_launches     BIGINT   -   of these, launches of graphs
-- notes:
--   The step before is that of the same process, on the GPU the one whose work ended last.
--   A gap is negative where the two overlap. Steps have numbers in order of time.
CREATE OR REPLACE VIEW _step_gaps AS
WITH
    ends AS (
        SELECT
            notes.trace_id,
            notes.step_id,
            notes.process,
            notes.ts_ns,
            CASE
                WHEN notes.side = 'cpu' THEN CAST(notes.ts_ns AS HUGEINT) + notes.dur_ns
            END AS end_ns,
            gpu.start_ns AS gpu_start_ns,
            gpu.end_ns AS gpu_end_ns,
            gpu.launches,
            gpu.graph_launches
        FROM annotations AS notes
        LEFT JOIN _step_gpu AS gpu
            ON gpu.trace_id = notes.trace_id
            AND gpu.step_id = notes.step_id
        WHERE notes.role = 'step'
            AND notes.step_id IS NOT NULL
    )
SELECT
    trace_id,
    step_id,
    TRY_CAST(ts_ns - lag(end_ns) OVER in_process AS BIGINT) AS gap_before_ns,
    gpu_start_ns,
    gpu_end_ns,
    TRY_CAST(gpu_start_ns - max(gpu_end_ns) OVER before AS BIGINT) AS gpu_gap_before_ns,
    launches,
    graph_launches
FROM ends
WINDOW
    in_process AS (PARTITION BY trace_id, process ORDER BY step_id),
    before AS (
        PARTITION BY trace_id, process
        ORDER BY step_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    );
