-- How many steps each phase of a trace has in each steady run.
--
-- grain:   one row per (trace_id, phase, region_id)
-- reads:   step_phases
-- columns:
--   trace_id   VARCHAR  -  trace the row belongs to
--   phase      VARCHAR  -  phase of the steps, as in steps
--   region_id  BIGINT   -  steady run, as in steady_state; NULL: in none
--   steps      BIGINT   -  steps of that phase and run
CREATE OR REPLACE VIEW _phase_steps AS
SELECT
    trace_id,
    phase,
    region_id,
    count(*) AS steps
FROM step_phases
GROUP BY trace_id, phase, region_id;
