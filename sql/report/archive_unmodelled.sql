-- Ops whose FLOPs or bytes are not known, longest first.
--
-- grain:   one row per (op, why)
-- reads:   coverage, traces
-- columns:
--   op           VARCHAR  -   the op
--   gpu_time_ns  BIGINT   ns  its GPU time, summed over traces
--   traces       BIGINT   -   traces that have it
--   why          VARCHAR  -   why they are not known
-- notes:
--   Of each trace the ten longest.
WITH
    named AS (
        SELECT
            traces.trace_id,
            unnest(coverage.unmodelled_names) AS op,
            unnest(coverage.unmodelled_names_ns) AS time_ns,
            unnest(coverage.unmodelled_why) AS why
        FROM coverage
        JOIN traces ON traces.trace_id = coverage.trace_id
        WHERE $label IS NULL
            OR traces.label = $label
    )
SELECT
    op,
    CAST(sum(time_ns) AS BIGINT) AS gpu_time_ns,
    count(DISTINCT trace_id) AS traces,
    why
FROM named
GROUP BY op, why
ORDER BY gpu_time_ns DESC, op, why;
