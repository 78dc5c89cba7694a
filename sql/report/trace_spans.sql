-- Steps of a trace on the axis of its strip.
--
-- grain:   one row per (step_id)
-- reads:   steps, gpu_timeline
-- columns:
--   step_id   BIGINT   -   the step, as in steps
--   phase     VARCHAR  -   its phase
--   at_ns     BIGINT   ns  its start on the host, from the first GPU activity of the trace
--   until_ns  BIGINT   ns  its end on the host
--   name      VARCHAR  -   its wording, shortened
-- notes:
--   At most 4,000, those that come first; steps beyond the span of the GPU are left out.
WITH
    frame AS (
        SELECT
            min(start_ns) AS first_ns,
            max(end_ns) AS last_ns
        FROM gpu_timeline
        WHERE trace_id = $trace_id
    )
SELECT
    steps.step_id,
    steps.phase,
    steps.ts_ns - frame.first_ns AS at_ns,
    steps.ts_ns + steps.cpu_dur_ns - frame.first_ns AS until_ns,
    left(steps.annotation, 120) AS name
FROM steps
CROSS JOIN frame
WHERE steps.trace_id = $trace_id
    AND steps.cpu_dur_ns IS NOT NULL
    AND steps.ts_ns < frame.last_ns
    AND steps.ts_ns + steps.cpu_dur_ns > 2 * frame.first_ns - frame.last_ns
ORDER BY steps.step_id
LIMIT 4000;
