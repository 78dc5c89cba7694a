-- The phase of each step, and the steady run it is in: to join with any table that has a step_id.
--
-- grain:   one row per (trace_id, step_id)
-- reads:   steps, steady_steps
-- columns:
--   trace_id   VARCHAR  -  trace the row belongs to
--   step_id    BIGINT   -  the step, as in steps
--   phase      VARCHAR  -  prefill, decode, mixed, idle, diffusion, training or other
--   region_id  BIGINT   -  the steady run it is in, as in steady_state; NULL if in none
--   look       VARCHAR  -  why to look at it, as in steady_steps; NULL for the others
CREATE OR REPLACE VIEW step_phases AS
SELECT
    steps.trace_id,
    steps.step_id,
    steps.phase,
    steady_steps.region_id,
    steady_steps.look
FROM steps
LEFT JOIN steady_steps
    ON steady_steps.trace_id = steps.trace_id
    AND steady_steps.step_id = steps.step_id;
