-- The device time of traces and their steps: what the parts of a comparison are parts of.
--
-- grain:   one row per (trace_id)
-- reads:   steps, trace_timeline, traces
-- columns:
--   trace_id   VARCHAR  -   the trace
--   arch       VARCHAR  -   device that ran the work; NULL if unknown
--   steps      BIGINT   -   its steps, of the phase if one is given
--   busy_ns    BIGINT   ns  time with any activity on any device; of the phase's steps, summed
--   window_ns  BIGINT   ns  first start to last end on the devices; NULL for a phase
-- notes:
--   $traces: trace_id of each. $phase: only steps of this phase; NULL for the whole trace.
WITH
    phase_steps AS (
        SELECT
            trace_id,
            count(*) AS steps,
            sum(gpu_busy_ns) AS busy_ns
        FROM steps
        WHERE trace_id = ANY($traces)
            AND (CAST($phase AS VARCHAR) IS NULL OR phase = CAST($phase AS VARCHAR))
        GROUP BY trace_id
    )
SELECT
    traces.trace_id,
    traces.arch,
    coalesce(phase_steps.steps, 0) AS steps,
    CASE
        WHEN CAST($phase AS VARCHAR) IS NULL THEN trace_timeline.busy_ns
        ELSE CAST(coalesce(phase_steps.busy_ns, 0) AS BIGINT)
    END AS busy_ns,
    CASE WHEN CAST($phase AS VARCHAR) IS NULL THEN trace_timeline.total_ns END AS window_ns
FROM traces
LEFT JOIN trace_timeline
    ON trace_timeline.trace_id = traces.trace_id
LEFT JOIN phase_steps
    ON phase_steps.trace_id = traces.trace_id
WHERE traces.trace_id = ANY($traces);
