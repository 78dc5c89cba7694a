-- When each step's work ran on the GPU, and how it was launched.
--
-- grain:   one row per (trace_id, step_id)
-- reads:   kernels, launches
-- columns:
--   trace_id        VARCHAR  -   trace the row belongs to
--   step_id         BIGINT   -   the step
--   start_ns        HUGEINT  ns  first start of a GPU activity
--   end_ns          HUGEINT  ns  last end of a GPU activity
--   launches        BIGINT   -   calls in it that launched something
--   graph_launches  BIGINT   -   of these, launches of graphs
-- notes:
--   A launch counts for the step that its call starts in, an activity for the step of its launch.
CREATE OR REPLACE VIEW _step_gpu AS
WITH
    spans AS (
        SELECT
            trace_id,
            step_id,
            min(CAST(ts_ns AS HUGEINT)) AS start_ns,
            max(CAST(ts_ns AS HUGEINT) + dur_ns) AS end_ns
        FROM kernels
        WHERE step_id IS NOT NULL
            AND ts_ns IS NOT NULL
            AND dur_ns IS NOT NULL
        GROUP BY trace_id, step_id
    ),
    calls AS (
        SELECT
            trace_id,
            step_id,
            count(*) AS launches,
            count(*) FILTER (WHERE is_graph) AS graph_launches
        FROM launches
        WHERE step_id IS NOT NULL
        GROUP BY trace_id, step_id
    )
SELECT
    trace_id,
    step_id,
    spans.start_ns,
    spans.end_ns,
    coalesce(calls.launches, 0) AS launches,
    coalesce(calls.graph_launches, 0) AS graph_launches
FROM spans
FULL JOIN calls USING (trace_id, step_id);
