-- Steps of the steady state, and which of them are the ones to look at.
--
-- grain:   one row per (trace_id, step_id)
-- reads:   steps, steady_state
-- columns:
--   trace_id        VARCHAR  -  trace the row belongs to
--   step_id         BIGINT   -  the step, as in steps
--   region_id       BIGINT   -  the steady run it is in, as in steady_state
--   phase           VARCHAR  -  its phase
--   r               BIGINT   -  requests
--   context_length  DOUBLE   -  mean key tokens of its generation requests; NULL if unknown
--   look            VARCHAR  -  why to look at it: prefill or large_context; NULL for the others
-- notes:
--   Of a steady state the steps that carry a prefill are worth a look, and of those that decode
--   only the ones with long contexts, towards the end of requests: the longest quarter of the run.
CREATE OR REPLACE VIEW steady_steps AS
WITH
    inside AS (
        SELECT
            steps.trace_id,
            steps.step_id,
            min(steady_state.region_id) AS region_id,
            any_value(steps.phase) AS phase,
            any_value(steps.r) AS r,
            any_value(CAST(steps.g_sk AS DOUBLE) / nullif(steps.r_g, 0)) AS context_length
        FROM steps
        JOIN steady_state
            ON steady_state.trace_id = steps.trace_id
            AND steady_state.process IS NOT DISTINCT FROM steps.process
            AND steps.step_id BETWEEN steady_state.first_step AND steady_state.last_step
        WHERE steady_state.rule = 'found'
            AND steady_state.kind IN ('mixed', 'decode', 'prefill')
        GROUP BY steps.trace_id, steps.step_id
    ),
    long_contexts AS (
        SELECT
            trace_id,
            region_id,
            quantile_cont(context_length, 0.75) AS context_length
        FROM inside
        WHERE phase = 'decode'
        GROUP BY trace_id, region_id
    )
SELECT
    inside.trace_id,
    inside.step_id,
    inside.region_id,
    inside.phase,
    inside.r,
    inside.context_length,
    CASE
        WHEN inside.phase IN ('mixed', 'prefill') THEN 'prefill'
        WHEN inside.phase = 'decode' AND inside.context_length >= long_contexts.context_length
            THEN 'large_context'
    END AS look
FROM inside
LEFT JOIN long_contexts
    ON long_contexts.trace_id = inside.trace_id
    AND long_contexts.region_id = inside.region_id;
