-- How many steps of each phase traces have.
--
-- grain:   one row per (trace_id, phase)
-- reads:   steps
-- columns:
--   trace_id  VARCHAR  -  the trace
--   phase     VARCHAR  -  prefill, decode, mixed, idle, diffusion, training or other
--   steps     BIGINT   -  steps of that phase
-- notes:
--   $traces: trace_id of each. $phase: only this phase; NULL for all.
SELECT
    trace_id,
    CAST(phase AS VARCHAR) AS phase,
    count(*) AS steps
FROM steps
WHERE trace_id = ANY($traces)
    AND (CAST($phase AS VARCHAR) IS NULL OR phase = CAST($phase AS VARCHAR))
GROUP BY trace_id, phase;
